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
    """Mean loss, the sum of all outputs, and share of wrong classes over the first ``sizes[a]``
    samples, (A, L) each.

    ``blocks``, of a bias, are as for :func:`validation.fit.readout.fit_readout`; ``fits`` are at A
    sizes and L penalties.
    """
    losses, wrong = np.zeros((2, *fits.bias.shape))
    for bias in np.unique(fits.bias):
        own, start = fits.bias == bias, 0
        for Phi, y in blocks(float(bias))():
            labels = arrays.to_host(y)[:, None, None]  # (b, 1, 1), or (b, 1, 1, C) of C outputs
            prediction = arrays.to_host(predict(Phi, fits))
            rows = np.arange(start, start + len(labels))
            used = (rows[:, None] < sizes)[:, :, None] & own
            each = loss(labels, prediction).reshape(*used.shape, -1).sum(axis=3)
            losses += np.where(used, each, 0.0).sum(axis=0)
            wrong += np.where(used, _misses(labels, prediction), 0.0).sum(axis=0)
            start += len(labels)
    return losses / sizes[:, None], wrong / sizes[:, None]


def _misses(labels: Array, prediction: Array) -> Array:
    """Whether the sign of a prediction is not the label, or the largest of several is not that of
    the class, whose label is 1; a share of 1 where outputs are equal, or 0."""
    if labels.ndim == 3:  # an output of 0, where all neurons are silent: half of them are wrong
        return np.asarray((labels * prediction < 0) + 0.5 * (prediction == 0))
    first = prediction == prediction.max(axis=3, keepdims=True)
    return np.asarray(1 - (first * labels).sum(axis=3) / first.sum(axis=3))


def squared_errors(
    blocks: Callable[[float], Blocks], fits: Fits, samples: int
) -> tuple[Array, Array]:
    """Mean of (y - f)^2, the sum of all outputs, over ``samples`` and the variance of that mean,
    (A, L) each.

    ``blocks`` is as for :func:`mean_losses`.
    """
    total, squares = np.zeros((2, *fits.bias.shape))
    for bias in np.unique(fits.bias):
        own = fits.bias == bias
        for Phi, y in blocks(float(bias))():
            error = (y[:, None, None, ...] - predict(Phi, fits)) ** 2
            xp = arrays.namespace(error)
            error = error if y.ndim == 1 else xp.sum(error, axis=3)
            total += np.where(own, arrays.to_host(xp.sum(error, axis=0)), 0.0)
            squares += np.where(own, arrays.to_host(xp.sum(error**2, axis=0)), 0.0)
    mean = total / samples
    return mean, np.maximum(squares / samples - mean**2, 0.0) / samples
