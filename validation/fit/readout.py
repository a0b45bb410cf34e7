"""Readout of ridge regression, with an intercept or a bias, and its errors.  Eq. (1.2)

A bias common to all neurons minimises the training objective that the ridge regression leaves,
at every size and penalty by itself.

Losses and classification errors of new samples are of labels with their noise; test errors are
of noiseless targets.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from replica.convex import Loss
from replica.convex import loss as named_loss
from replica.observables import BIAS_SCAN
from solvers import arrays
from solvers.results import Array
from solvers.scan_minimum import lowest_minimum

from .ridge import Blocks, Fits, fit_ridge, predict

DIFFERENCE = 1e-4  # of a central difference: 1e-8 of the loss, beside 1e-12 of rounding over it
BOTTOM = 1e-6  # error of a trained bias, to which the objective is flat to 1e-12


def fit_readout(
    features: Callable[[float], Blocks],
    sizes: Array,
    lam: Array,
    *,
    intercept: bool,
    train_bias: bool,
) -> Fits:
    """Readout of the square loss at every size and penalty, with an intercept or a bias where one
    is trained.

    Parameters
    ----------
    features : callable, bias -> blocks
        ``blocks()`` yields the rows of Phi, with that bias added to all neurons, and the
        labels: at least ``max(sizes)`` of them.
    sizes : (A,) of int
    lam : (L,)
    intercept, train_bias : bool
        What is trained besides the readout.  Where no bias is best inside the range that the
        theory searches, readout, intercept and training error are NaN.

    Raises
    ------
    InvalidArgument
        If a penalty is too small for the system to be solved in double precision.
    """

    def fits_at(bias: float, sizes: Array, lam: Array) -> Fits:
        """The ridge fits with one common bias."""
        fits = fit_ridge(features(bias), sizes, lam, intercept=intercept)
        return fits._replace(bias=np.full_like(fits.bias, bias))

    if not train_bias:
        return fits_at(0.0, sizes, lam)

    def objective(fits: Fits, sizes: Array, lam: Array) -> Array:
        """sum (y - f)^2 / 2 + lam |a|^2 / 2 and its slope in the bias, (2, A, L). At the readout,
        which makes it stationary, the slope is that of the loss."""
        power = (arrays.to_host(fits.readouts) ** 2).sum(axis=0)
        before, after = (
            mean_losses(
                features, fits._replace(bias=fits.bias + shift), sizes, named_loss("square")
            )[0]
            for shift in (-DIFFERENCE, DIFFERENCE)
        )
        value = sizes[:, None] * fits.train / 2 + lam * power / 2
        return np.array([value, sizes[:, None] * (after - before) / (2 * DIFFERENCE)])

    scan = np.array([objective(fits_at(float(t), sizes, lam), sizes, lam) for t in BIAS_SCAN])

    def at_best(a: int, b: int) -> Fits:
        """The fit of one size and penalty at its best bias."""
        one = sizes[a : a + 1], lam[b : b + 1]
        fit = cache(lambda bias: fits_at(bias, *one))
        bias = lowest_minimum(
            lambda t: objective(fit(t), *one).ravel(), BIAS_SCAN, *scan[:, :, a, b].T, xtol=BOTTOM
        )
        found = fit(float(np.nan_to_num(bias)))
        if np.isnan(bias):
            found = Fits(*(part * np.nan for part in found))._replace(bias=found.bias)
        return found

    fits = [at_best(a, b) for a in range(len(sizes)) for b in range(len(lam))]
    readouts, *others = zip(*fits, strict=True)
    xp, shape = arrays.namespace(readouts[0]), (len(sizes), len(lam))
    joined = xp.reshape(xp.stack(readouts, axis=1), (-1, *shape))
    return Fits(joined, *(np.reshape(of, shape) for of in others))


def mean_losses(
    blocks: Callable[[float], Blocks], fits: Fits, sizes: Array, loss: Loss
) -> tuple[Array, Array]:
    """Mean loss, the sum of all outputs, and share of wrong classes over the first ``sizes[a]``
    samples, (A, L) each.

    ``blocks``, of a bias, are as for :func:`fit_readout`; ``fits`` are at A
    sizes and L penalties.
    """
    losses, wrong = np.zeros((2, *fits.bias.shape))
    for bias in np.unique(fits.bias):
        at_bias, start = fits.bias == bias, 0
        for Phi, y in blocks(float(bias))():
            labels = arrays.to_host(y)[:, None, None]  # (b, 1, 1), or (b, 1, 1, C) of C outputs
            prediction = arrays.to_host(predict(Phi, fits))
            rows = np.arange(start, start + len(labels))
            used = (rows[:, None] < sizes)[:, :, None] & at_bias
            each = loss(labels, prediction).reshape(*used.shape, -1).sum(axis=3)
            losses += np.where(used, each, 0.0).sum(axis=0)
            wrong += np.where(used, _misses(labels, prediction), 0.0).sum(axis=0)
            start += len(labels)
    return losses / sizes[:, None], wrong / sizes[:, None]


def _misses(labels: Array, prediction: Array) -> Array:
    """Misclassification of each sample: 1 where the sign of a prediction is not the label, or the
    largest of several outputs is not that of the class, whose label is 1; a share where outputs are
    equal, or 0."""
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
        at_bias = fits.bias == bias
        for Phi, y in blocks(float(bias))():
            error = (y[:, None, None, ...] - predict(Phi, fits)) ** 2
            xp = arrays.namespace(error)
            error = error if y.ndim == 1 else xp.sum(error, axis=3)
            total += np.where(at_bias, arrays.to_host(xp.sum(error, axis=0)), 0.0)
            squares += np.where(at_bias, arrays.to_host(xp.sum(error**2, axis=0)), 0.0)
    mean = total / samples
    return mean, np.maximum(squares / samples - mean**2, 0.0) / samples
