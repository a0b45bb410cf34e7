"""What a cell measures besides squared errors: losses, and classification errors.

Losses and classification errors of new samples are of labels with their noise, unlike test
errors.
"""

from typing import Any

import numpy as np

from replica.convex import Loss
from solvers.results import Array

from ..draw import arrays
from . import ridge


def averages(blocks: Any, fits: ridge.Fits, sizes: Array, loss: Loss) -> tuple[Array, Array]:
    """Mean loss and share of y f < 0 over the first ``sizes[a]`` samples, (A, L) each.

    Parameters
    ----------
    blocks : callable, bias -> blocks
        As for :func:`validation.fit.readout.fit`.
    fits : Fits
        At A sizes and L penalties.
    sizes : (A,) of int
    loss : Loss
    """
    lost, wrong = np.zeros((2, *fits.bias.shape))
    for bias in np.unique(fits.bias):
        own, start = fits.bias == bias, 0
        for Phi, y in blocks(float(bias))():
            labels = arrays.to_host(y)[:, None, None]
            prediction = arrays.to_host(ridge.predict(Phi, fits))
            rows = np.arange(start, start + len(labels))
            used = (rows[:, None] < sizes)[:, :, None] & own
            lost += np.where(used, loss(labels, prediction), 0.0).sum(axis=0)
            wrong += np.where(used, labels * prediction < 0, False).sum(axis=0)
            start += len(labels)
    return lost / sizes[:, None], wrong / sizes[:, None]
