"""Errors of fitted readouts over samples that come in blocks.

Losses and classification errors of new samples are of labels with their noise; test errors are
of noiseless targets.
"""

from collections.abc import Callable

import numpy as np

from replica.convex import Loss
from solvers.results import Array

from ..draws import arrays
from .ridge import Blocks, Fits, predict


def mean_losses(
    blocks: Callable[[float], Blocks], fits: Fits, sizes: Array, loss: Loss
) -> tuple[Array, Array]:
    """Mean loss and share of y f < 0, with half of those of f = 0, over the first ``sizes[a]``
    samples, (A, L) each.

    ``blocks``, of a bias, are as for :func:`validation.fit.readout.fit_readout`; ``fits`` are at A
    sizes and L penalties.
    """
    losses, wrong = np.zeros((2, *fits.bias.shape))
    for bias in np.unique(fits.bias):
        own, start = fits.bias == bias, 0
        for Phi, y in blocks(float(bias))():
            labels = arrays.to_host(y)[:, None, None]
            prediction = arrays.to_host(predict(Phi, fits))
            rows = np.arange(start, start + len(labels))
            used = (rows[:, None] < sizes)[:, :, None] & own
            losses += np.where(used, loss(labels, prediction), 0.0).sum(axis=0)
            # an output of 0, where all neurons are silent, names no class: half of them are wrong
            misses = (labels * prediction < 0) + 0.5 * (prediction == 0)
            wrong += np.where(used, misses, 0.0).sum(axis=0)
            start += len(labels)
    return losses / sizes[:, None], wrong / sizes[:, None]


def squared_errors(
    blocks: Callable[[float], Blocks], fits: Fits, samples: int
) -> tuple[Array, Array]:
    """Mean of (y - f)^2 over ``samples`` and the variance of that mean, (A, L) each.

    ``blocks`` is as for :func:`mean_losses`.
    """
    total, squares = np.zeros((2, *fits.bias.shape))
    for bias in np.unique(fits.bias):
        own = fits.bias == bias
        for Phi, y in blocks(float(bias))():
            error = (y[:, None, None] - predict(Phi, fits)) ** 2
            xp = arrays.namespace(error)
            total += np.where(own, arrays.to_host(xp.sum(error, axis=0)), 0.0)
            squares += np.where(own, arrays.to_host(xp.sum(error**2, axis=0)), 0.0)
    mean = total / samples
    return mean, np.maximum(squares / samples - mean**2, 0.0) / samples
