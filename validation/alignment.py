"""How the neurons of a simulated network turn into the target's directions, step by step."""

import numpy as np

from solvers.results import Array


def cosines(rows: Array, directions: Array) -> Array:
    """Cosines (p, T) of ``rows`` (p, d) with orthonormal ``directions`` (T, d); 0 for no row.

    Examples
    --------
    >>> cosines(np.array([[3.0, 4.0, 0.0]]), np.eye(2, 3)).tolist()
    [[0.6, 0.8]]
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows @ directions.T / np.where(lengths > 0, lengths, 1.0))
