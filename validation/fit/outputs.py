"""Several outputs of one readout, each fitted by ridge regression to its own column of labels."""

from collections.abc import Sequence

import numpy as np

from solvers.results import Array

from ..draws import arrays
from .ridge import Blocks, Fits, fit_ridge, predict


def fit_outputs(
    blocks: Blocks, sizes: Array, lam: Array, count: int, *, intercept: bool
) -> list[Fits]:
    """The fits of all ``count`` columns of the labels (b, C) of ``blocks``, as of ``fit_ridge``."""

    def column(c: int) -> Blocks:
        return lambda: ((Phi, y[:, c]) for Phi, y in blocks())

    return [fit_ridge(column(c), sizes, lam, intercept=intercept) for c in range(count)]


def output_errors(blocks: Blocks, fits: Sequence[Fits], samples: int) -> tuple[Array, Array, Array]:
    """Mean of |y - f|^2 over ``samples``, the variance of that mean, and, of labels that are 1 of
    their class and 0 of others, the share of samples whose largest output is another one, (A, L)
    each."""
    total, squares, wrong = np.zeros((3, *fits[0].bias.shape))
    for Phi, y in blocks():
        labels = arrays.to_host(y)[:, :, None, None]
        outputs = np.stack([arrays.to_host(predict(Phi, one)) for one in fits], axis=1)
        error = ((labels - outputs) ** 2).sum(axis=1)
        total += error.sum(axis=0)
        squares += (error**2).sum(axis=0)
        first = outputs == outputs.max(axis=1, keepdims=True)  # all of them where outputs are equal
        wrong += (1 - (first * labels).sum(axis=1) / first.sum(axis=1)).sum(axis=0)
    mean = total / samples
    return mean, np.maximum(squares / samples - mean**2, 0.0) / samples, wrong / samples
