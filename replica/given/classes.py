"""Classes of a readout with several outputs: which output is the largest, and the confusion matrix.

What is quadratic in labels is a matrix (C, C): its entries follow from the labels y^c and their
sums y^c + y^c' in pairs, which are equations of one label, too.  The output for a new input of a
stratum is N(C, v) in R^C, (22.11), and of classes the largest is the answer.
"""

import numpy as np
from scipy.special import ndtr, ndtri

from solvers.resources import CACHE_NUMBERS, check_time
from solvers.results import Array

from .strata import StratumLabels


def with_sums(labels: Array) -> Array:
    """Labels (C, ...) of C classes and, after them, their sums in pairs.

    >>> with_sums(np.array([1, 10, 100])).tolist()
    [1, 10, 100, 11, 101, 110]
    """
    first_class, second_class = np.triu_indices(len(labels), 1)
    return np.concatenate([labels, labels[first_class] + labels[second_class]])


def covariances(variances: Array, outputs: int) -> Array:
    """The matrices (N, C, C) with the ``variances`` (P, N) of C outputs and of their sums."""
    i, j = np.triu_indices(outputs, 1)
    output_covariances = np.zeros((variances.shape[1], outputs, outputs))
    np.einsum("ncc->cn", output_covariances)[:] = variances[:outputs]
    off_diagonal = (variances[outputs:] - variances[i] - variances[j]) / 2
    output_covariances[:, i, j] = output_covariances[:, j, i] = off_diagonal.T
    return output_covariances


def win_probabilities(mean: Array, covariance: Array) -> Array:
    """P(output c is the largest) (N, C), of outputs N(mean, covariance), (N, C) and (N, C, C).

    Along the principal axis of their differences it is an integral in closed form; over the others
    the mean of multiples of square roots of primes, shifted at random in each stratum and folded.
    Outputs that are equal share alike.  Raises ``GivenUp`` past the deadline.
    """
    N, C = mean.shape
    centring = np.eye(C) - 1 / C
    mean = mean - mean.mean(axis=1, keepdims=True)
    # some eigenvalues are 0, or below by rounding
    axis_lengths, axis_turns = np.linalg.eigh(centring @ covariance @ centring)
    equal_outputs = 1e-24 * np.mean(mean**2 + np.einsum("ncc->nc", covariance)) + 1e-300
    axes = axis_turns * np.sqrt(np.maximum(axis_lengths, 0.0) + equal_outputs)[:, None, :]
    # in the order of their slopes along the last axis, the longest
    slope_order = axes[:, :, -1].argsort(axis=1)
    mean = np.take_along_axis(mean, slope_order, axis=1)
    axes = np.take_along_axis(axes, slope_order[:, :, None], axis=1)
    # 2^4 to 2^15 draws of the outputs of a stratum: errors of many strata average out
    lattice_bits = np.clip(int(18 - 1.2 * np.log2(N)), 4, 15)
    lattice_primes = [n for n in range(2, 10 * C) if all(n % k for k in range(2, int(n**0.5) + 1))]
    lattice = np.outer(np.arange(2**lattice_bits), np.sqrt(lattice_primes[: C - 1]))
    shifts, win_chances = np.random.default_rng(0).random((N, 1, C - 1)), np.zeros((N, C))
    block_size = max(1, CACHE_NUMBERS // lattice.size)
    for first_stratum in range(0, N, block_size):
        check_time()
        i = slice(first_stratum, first_stratum + block_size)
        draws = ndtri(np.clip(np.abs(2 * ((lattice + shifts[i]) % 1) - 1), 1e-16, 1 - 1e-16))
        # outputs first, (C, R, S) of R strata and S draws
        here = np.moveaxis(mean[i, None] + draws @ axes[i, :, -2::-1].swapaxes(1, 2), 2, 0).copy()
        slope, lowest_win, upto = axes[i, :, -1].T[..., None], here * 0 - np.inf, here * 0 + np.inf
        for c in range(C - 1):  # from where on each of the next is above output c
            with np.errstate(divide="ignore"):
                output_crossings = (here[c] - here[c + 1 :]) / (slope[c + 1 :] - slope[c])
            upto[c] = output_crossings.min(axis=0)
            np.maximum(lowest_win[c + 1 :], output_crossings, out=lowest_win[c + 1 :])
        block_wins = np.maximum(ndtr(upto) - ndtr(lowest_win), 0).mean(axis=2)
        np.put_along_axis(win_chances[i], slope_order[i], block_wins.T, axis=1)
    return win_chances


def wrong_outputs(labels: StratumLabels, mean: Array, variances: Array) -> tuple[Array, Array]:
    """P(the output of another class is the largest) (N,) in every stratum, and the confusion
    matrix (C, C): shares of the largest outputs in the inputs of each class.  Its rows sum to 1,
    and are NaN of a class without inputs."""
    class_h = labels.h[: labels.outputs]
    win_shares = win_probabilities(mean[: len(class_h)].T, covariances(variances, len(class_h)))
    own = labels.weights * class_h
    with np.errstate(invalid="ignore"):
        return 1 - (class_h * win_shares.T).sum(axis=0), own @ win_shares / own.sum(axis=1)[:, None]
