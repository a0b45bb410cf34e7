"""What of the spectrum stands beside its bulk: an atom at 0, and outliers.  docs/theory.md 9"""

import numpy as np

from solvers.results import Array

from ..equivalence import Table
from ..problem import SpikedRandomFeatures


def atom(table: Table, alpha: float) -> float:
    """1 - (rank of the features) / p.

    A group whose features are linear in the input given kappa adds to the rank only as long as
    the input has directions left; one whose features are functions of kappa alone, nothing.
    """
    size = max(float((table.c[:, None] * table.mu1**2 + table.mu2sq).max()), 1e-300)
    curved = table.mu2sq.max(axis=1) > 1e-13 * size
    straight = (table.c * (table.mu1**2).max(axis=1) > 1e-13 * size) & ~curved
    width = table.beta * table.fractions
    rank = width[curved].sum() + min(1.0, width[straight].sum())
    return float(max(0.0, 1 - min(alpha, rank) / table.beta))


def outliers(model: SpikedRandomFeatures, table: Table) -> Array:
    """Eigenvalues of (sqrt(pi_a pi_b) E mu_0^a mu_0^b), the largest first, without zeros."""
    root = np.sqrt(model.geometry.fractions)
    mean = root[:, None] * table.offsets[: len(root)]
    values = np.linalg.eigvalsh((mean * table.weights) @ mean.T)[::-1]
    return np.asarray(values[values > 1e-12 * max(values[0], 1e-12)])
