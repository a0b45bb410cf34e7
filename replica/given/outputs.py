"""Several outputs of one readout: one for each class, or a vector.  docs/theory.md 22

All outputs have one response V, and equations for the label of one serve for all.  What is
quadratic in labels is a matrix (C, C): its entries follow from the labels y^c and their sums
y^c + y^c' in pairs, which are equations of one label, too.  The output for a new input of a stratum
is N(C, v) in R^C, (22.11), and of classes the largest is the answer.
"""

import numpy as np
from scipy.special import ndtr, ndtri

from solvers.resources import check_time
from solvers.results import Array

from .strata import StratumLabels

FEWEST, MOST = 4, 15  # draws of the outputs of a stratum, as powers of 2
DRAW_BLOCK = 2**17  # of these draws at a time, so that they stay in the cache


def with_sums(labels: Array) -> Array:
    """Labels (C, ...) of C classes and, after them, their sums in pairs.

    >>> with_sums(np.array([1, 10, 100])).tolist()
    [1, 10, 100, 11, 101, 110]
    """
    i, j = np.triu_indices(len(labels), 1)
    return np.concatenate([labels, labels[i] + labels[j]])


def covariances(variances: Array, outputs: int) -> Array:
    """The matrices (N, C, C) with the ``variances`` (P, N) of C outputs and of their sums."""
    i, j = np.triu_indices(outputs, 1)
    found = np.zeros((variances.shape[1], outputs, outputs))
    np.einsum("ncc->cn", found)[:] = variances[:outputs]
    between = (variances[outputs:] - variances[i] - variances[j]) / 2
    found[:, i, j] = found[:, j, i] = between.T
    return found


def largest_output(mean: Array, covariance: Array) -> Array:
    """P(output c is the largest) (N, C), of outputs N(mean, covariance), (N, C) and (N, C, C).

    Along the principal axis of their differences it is an integral in closed form; over the others
    the mean of multiples of square roots of primes, shifted at random in each stratum and folded.
    Outputs that are equal share alike.  Raises ``GivenUp`` past the deadline.
    """
    N, C = mean.shape
    apart = np.eye(C) - 1 / C
    mean = mean - mean.mean(axis=1, keepdims=True)
    sizes, turns = np.linalg.eigh(apart @ covariance @ apart)  # some are 0, or below by rounding
    tie = 1e-24 * np.mean(mean**2 + np.einsum("ncc->nc", covariance)) + 1e-300
    roots = turns * np.sqrt(np.maximum(sizes, 0.0) + tie)[:, None, :]
    # in the order of their slopes along the last axis, the longest
    order = roots[:, :, -1].argsort(axis=1)
    mean = np.take_along_axis(mean, order, axis=1)
    roots = np.take_along_axis(roots, order[:, :, None], axis=1)
    power = np.clip(int(18 - 1.2 * np.log2(N)), FEWEST, MOST)  # errors of many strata average out
    primes = [n for n in range(2, 10 * C) if all(n % k for k in range(2, int(n**0.5) + 1))]
    points = np.outer(np.arange(2**power), np.sqrt(primes[: C - 1]))
    shifts, shares = np.random.default_rng(0).random((N, 1, C - 1)), np.zeros((N, C))
    step = max(1, DRAW_BLOCK // points.size)
    for start in range(0, N, step):
        check_time()
        i = slice(start, start + step)
        normal = ndtri(np.clip(np.abs(2 * ((points + shifts[i]) % 1) - 1), 1e-16, 1 - 1e-16))
        # outputs first, (C, R, S) of R strata and S draws
        here = np.moveaxis(mean[i, None] + normal @ roots[i, :, -2::-1].swapaxes(1, 2), 2, 0).copy()
        slope, low, high = roots[i, :, -1].T[..., None], here * 0 - np.inf, here * 0 + np.inf
        for c in range(C - 1):  # from where on each of the next is above output c
            with np.errstate(divide="ignore"):
                meets = (here[c] - here[c + 1 :]) / (slope[c + 1 :] - slope[c])
            high[c] = meets.min(axis=0)
            np.maximum(low[c + 1 :], meets, out=low[c + 1 :])
        found = np.maximum(ndtr(high) - ndtr(low), 0).mean(axis=2)
        np.put_along_axis(shares[i], order[i], found.T, axis=1)
    return shares


def wrong_outputs(labels: StratumLabels, mean: Array, variances: Array) -> tuple[Array, Array]:
    """P(the output of another class is the largest) (N,) in every stratum, and the confusion
    matrix (C, C): shares of the largest outputs in the inputs of each class.  Its rows sum to 1,
    and are NaN of a class without inputs."""
    h = labels.h[: labels.outputs]
    largest = largest_output(mean[: len(h)].T, covariances(variances, len(h)))
    own = labels.weights * h
    with np.errstate(invalid="ignore"):
        return 1 - (h * largest.T).sum(axis=0), own @ largest / own.sum(axis=1)[:, None]
