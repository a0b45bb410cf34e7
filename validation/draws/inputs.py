"""Inputs x ~ N(0, I_d), or of a mixture, in blocks: memory does not grow with their number."""

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from replica.problem import GaussianMixture
from solvers.results import Array

INPUT_BLOCK = 2**20  # numbers in one array of a block: 8 MiB, as fast as any larger


def gaussian_inputs(samples: int, dimension: int, rng: Generator, *, width: int) -> Iterator[Array]:
    """Yield (b, dimension) arrays of inputs, ``samples`` rows in all.

    ``width`` features of a block's inputs fit in ``INPUT_BLOCK`` numbers, as the inputs do.  The
    inputs themselves do not depend on how they are divided.

    Examples
    --------
    >>> import numpy as np
    >>> [X.shape for X in gaussian_inputs(1200, 8, np.random.default_rng(0), width=2**11)]
    [(512, 8), (512, 8), (176, 8)]
    """
    rows = max(1, INPUT_BLOCK // max(dimension, width))
    for start in range(0, samples, rows):
        yield rng.standard_normal((min(rows, samples - start), dimension))


def mixed_inputs(
    law: GaussianMixture | None,
    samples: int,
    dimension: int,
    rng: Generator,
    *,
    width: int,
    frame: Array | None = None,
) -> Iterator[tuple[Array, Array]]:
    """Inputs of a ``law``, N(0, I) where there is none, in blocks as ``gaussian_inputs`` has them,
    each with the components (b,) of its rows; along the orthonormal rows of ``frame`` (D, d), or
    the first axes."""
    known = np.zeros(samples, dtype=int) if law is None else law.components(samples, rng)
    start = 0
    for X in gaussian_inputs(samples, dimension, rng, width=width):
        component = known[start : start + len(X)]
        start += len(X)
        if law is None:
            yield X, component
        elif frame is None:
            yield law.at(X, component), component
        else:
            normal = X @ frame.T
            yield X + (law.at(normal, component) - normal) @ frame, component
