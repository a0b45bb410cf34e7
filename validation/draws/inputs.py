"""Inputs x ~ N(0, I_d), in blocks so that memory does not grow with their number."""

from collections.abc import Iterator

from numpy.random import Generator

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
