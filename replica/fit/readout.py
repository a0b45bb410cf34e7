"""Readout of ridge regression, with an intercept or a bias, and its errors.  Eq. (1.2)

A bias common to all neurons minimises the training objective that the ridge regression leaves,
at every size and penalty by itself.

Losses and classification errors of new samples are of labels with their noise; test errors are
of noiseless targets.

Ridge regression is on nested designs, at all sizes and penalties at once:

    (Phi^T Phi / p + lam I) a = Phi^T y / sqrt(p),  f(x) = phi(x) . a / sqrt(p)          (1.2)

The designs are the first n rows of one matrix Phi, for several n.  With K = Phi Phi^T / p,

    a = Phi^T w / sqrt(p),  (K + lam I) w = y,  y - f = lam w                           (dual)

is the same solution, for n < p.  The p x p system, for the others, needs Phi only block by block.

An unregularised output intercept is the mean that features and fit leave of the labels.

Systems are symmetric and dense, on the host or on a device: those of numpy arrays are solved by
scipy; of another library (a torch tensor on a GPU) by the functions of its own array namespace.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack

from solvers import arrays
from solvers.minima import lowest_minimum
from solvers.results import Array

from ..convex import BIAS_SCAN, Loss
from ..convex import loss as named_loss
from ..errors import InvalidArgument

EPS = np.finfo(float).eps  # a system whose reciprocal condition is below has no certain digit


def _solve_penalties(gram: Any, b: Any, lam: Array) -> Any:
    """(gram + lam I)^-1 b, (k, L, C), for a symmetric ``gram`` >= 0 and b (k, C), or
    InvalidArgument if a system is singular in double precision."""
    xp = arrays.namespace(gram)
    return xp.stack([_solve_shifted(gram, b, float(penalty)) for penalty in lam], axis=1)


def _solve_shifted(gram: Any, b: Any, shift: float) -> Any:
    """(gram + shift I)^-1 b, (k, C), by the system of unit diagonal: units of features are no
    reason for it to be singular."""
    xp, shifted_gram = arrays.namespace(gram), arrays.namespace(gram).asarray(gram, copy=True)
    arrays.diagonal_view(shifted_gram)[:] += shift
    diagonal = xp.linalg.diagonal(shifted_gram)
    # of a centred matrix rounding may leave less than 0: it is then singular
    scale = xp.where(diagonal > 0, diagonal, 1.0)[:, None] ** -0.5
    shifted_gram *= scale
    shifted_gram *= scale.T
    b = b * scale
    try:
        if isinstance(gram, np.ndarray):
            gram_norm = float(np.linalg.norm(shifted_gram))
            # LAPACK has matrices by columns, of which the symmetric one is its own transpose
            factor = cho_factor(shifted_gram.T, overwrite_a=True, check_finite=False)
            if lapack.dpocon(factor[0], gram_norm)[0] > EPS:  # as scipy.linalg.solve tests it
                return scale * cho_solve(factor, b, check_finite=False)
        else:
            roots = arrays.to_host(xp.linalg.diagonal(xp.linalg.cholesky(shifted_gram)))
            if roots.min() ** 2 > EPS * roots.max() ** 2:  # which bounds the condition
                return scale * xp.linalg.solve(shifted_gram, b)
    except (LinAlgError, RuntimeError):  # torch's own error is a RuntimeError
        pass
    allowed_lam = "larger for these features, whose Gram matrix is singular in double precision"
    raise InvalidArgument("lam", shift, allowed_lam)


# features (b, p) and labels (b,), or (b, C) of C outputs; repeatable
Blocks = Callable[[], Iterable[tuple[Any, Any]]]
BlocksAt = Callable[[float], Blocks]  # of a bias added to all neurons


class Fits(NamedTuple):
    """Trained readouts at A sizes and L penalties.

    readouts (p, A, L); intercepts (A, L); bias added to all neurons (A, L); mean squared
    training residuals (A, L), the sum of all outputs.  With C outputs the first two have an axis
    (C,) more.
    """

    readouts: Any
    intercepts: Array
    bias: Array
    train: Array


def fit_ridge(blocks: Blocks, sizes: Array, lam: Array, *, intercept: bool = False) -> Fits:
    """The readout at every size and penalty.

    Parameters
    ----------
    blocks : callable
        ``blocks()`` yields the rows of Phi and the labels: at least ``max(sizes)`` of them.
    sizes : (A,) of int
    lam : (L,)
    intercept : bool

    Raises
    ------
    InvalidArgument
        If a penalty is too small for the system to be solved in double precision.

    Examples
    --------
    >>> import numpy as np
    >>> from replica.fit import fit_ridge, predict
    >>> Phi, y = np.eye(2), np.array([1.0, 2.0])
    >>> fits = fit_ridge(lambda: [(Phi, y)], np.array([2]), np.array([0.5]))
    >>> predict(Phi, fits)[:, 0, 0].round(12).tolist()
    [0.5, 1.0]
    """
    ascending, place = np.unique(sizes, return_inverse=True)
    Phi, y = next(iter(blocks()))
    xp, p, single_output = arrays.namespace(Phi), Phi.shape[1], y.ndim == 1

    def columns() -> Iterator[tuple[Any, Any]]:
        """The blocks with labels (b, C)."""
        return ((Phi, xp.reshape(y, (y.shape[0], -1))) for Phi, y in blocks())

    small, large = ascending[ascending < p], ascending[ascending >= p]
    fitted_sizes = _fit_dual(columns, small, lam, intercept) if small.size else []
    fitted_sizes += _fit_primal(columns, large, lam, intercept) if large.size else []
    readouts, intercepts, train = zip(*(fitted_sizes[i] for i in place), strict=True)
    not_trained = np.zeros((len(sizes), len(lam)))
    fits = Fits(xp.stack(readouts, axis=1), np.array(intercepts), not_trained, np.array(train))
    if large.size:
        residual_squares, _ = _sample_means(lambda bias: columns, fits, sizes, squared_error)
        fits = fits._replace(train=np.where(np.isnan(fits.train), residual_squares, fits.train))
    if single_output:
        fits = fits._replace(readouts=fits.readouts[..., 0], intercepts=fits.intercepts[..., 0])
    return fits


def predict(features: Any, fits: Fits) -> Any:
    """f = Phi a / sqrt(p) + intercept, (n, A, L), or (n, A, L, C) of C outputs."""
    xp, p = arrays.namespace(features), fits.readouts.shape[0]
    readout_outputs = features @ xp.reshape(fits.readouts, (p, -1)) / p**0.5
    readout_outputs = xp.reshape(readout_outputs, (-1, *fits.intercepts.shape))
    return readout_outputs + arrays.like(fits.intercepts, features)


FittedSize = tuple[Any, Array, Array]  # readouts (p, L, C), intercepts (L, C), training error (L,)


def _fit_dual(blocks: Blocks, sizes: Array, lam: Array, intercept: bool) -> list[FittedSize]:
    """Fits at ascending ``sizes`` by n x n systems, of weights w (n, L, C): y - f = lam w.

    With an intercept, by the Gram matrix of centred rows, whose weights have the sum 0.
    """
    Z, y = _first_rows(blocks, int(sizes[-1]))
    Z /= Z.shape[1] ** 0.5
    xp, row_gram, fitted_sizes = arrays.namespace(Z), Z @ Z.T, []
    for n in sizes.tolist():
        gram, mean_weight = row_gram[:n, :n], np.full(n, intercept / n)
        mean = mean_weight @ y[:n]
        if intercept:
            row_means = xp.mean(gram, axis=0)
            gram = gram - (row_means - xp.mean(row_means))
            gram -= row_means[:, None]
        dual_weights = _solve_penalties(gram, arrays.like(y[:n] - mean, Z), lam)
        if intercept:  # rounding, which 1 / lam multiplies along (1, ..., 1)
            dual_weights = dual_weights - xp.mean(dual_weights, axis=0)
        readouts = Z[:n, :].T @ xp.reshape(dual_weights, (n, -1))
        fitted_means = mean_weight @ arrays.to_host(Z[:n, :] @ readouts)
        train = lam**2 * (arrays.to_host(dual_weights) ** 2).sum(axis=(0, 2)) / n
        readouts = xp.reshape(readouts, (-1, *dual_weights.shape[1:]))
        fitted_sizes.append((readouts, mean - fitted_means.reshape(dual_weights.shape[1:]), train))
    return fitted_sizes


def _first_rows(blocks: Blocks, count: int) -> tuple[Any, Array]:
    """The first ``count`` rows of the features, and their labels (count, C) on the host."""
    Phi: Any = None
    for rows_read, (features, y) in _blocks_cut_at_sizes(blocks, np.array([count])):
        if Phi is None:
            xp, first_labels = arrays.namespace(features), np.empty((count, y.shape[1]))
            Phi = xp.empty((count, features.shape[1]), dtype=features.dtype, device=features.device)
        block_rows = slice(rows_read - y.shape[0], rows_read)
        Phi[block_rows, :] = features
        first_labels[block_rows] = arrays.to_host(y)
    return Phi, first_labels


def _fit_primal(blocks: Blocks, sizes: Array, lam: Array, intercept: bool) -> list[FittedSize]:
    """Fits at ascending ``sizes`` by p x p systems; the training error is left NaN.

    (The residual's square as a difference of quadratic forms would lose the digits by which
    it is smaller than the labels'.)
    """
    fitted_sizes: list[FittedSize] = []
    moment_sums: list[Any] = []
    for rows_summed, (Phi, y) in _blocks_cut_at_sizes(blocks, sizes):
        xp, Z = arrays.namespace(Phi), Phi / Phi.shape[1] ** 0.5
        block_sums = [Z.T @ Z, Z.T @ y, xp.sum(Z, axis=0), xp.sum(y, axis=0)]
        for moment, block_sum in zip(moment_sums, block_sums, strict=True) if moment_sums else ():
            moment += block_sum
        gram_sum, label_moment, feature_sum, label_sum = moment_sums = moment_sums or block_sums
        del block_sums  # of p^2 numbers
        if rows_summed not in sizes:
            continue
        mean_weight = 1 / rows_summed if intercept else 0.0
        feature_mean, mean = mean_weight * feature_sum, mean_weight * label_sum
        centred_gram = gram_sum
        if intercept:
            centred_gram = feature_mean[:, None] * -feature_sum
            centred_gram += gram_sum
        primal = _solve_penalties(centred_gram, label_moment - feature_sum[:, None] * mean, lam)
        flat_readouts = xp.reshape(primal, (Z.shape[1], -1))
        fitted_means = arrays.to_host(feature_mean @ flat_readouts).reshape(len(lam), -1)
        no_train_error = np.full(len(lam), np.nan)
        fitted_sizes.append((primal, arrays.to_host(mean) - fitted_means, no_train_error))
    return fitted_sizes


def _blocks_cut_at_sizes(blocks: Blocks, sizes: Array) -> Iterator[tuple[int, tuple[Any, Any]]]:
    """Blocks cut at every size, each with the number of rows up to its end."""
    row = 0
    for Phi, y in blocks():
        last_row = min(row + y.shape[0], int(sizes[-1]))
        sizes_inside = np.unique(sizes[(sizes > row) & (sizes < last_row)])
        cut_rows = [row, *sizes_inside.tolist(), last_row]
        for low, high in itertools.pairwise(cut_rows):
            yield high, (Phi[low - row : high - row, :], y[low - row : high - row, :])
        row = last_row
        if row >= sizes[-1]:
            return


DIFFERENCE = 1e-4  # of a central difference: 1e-8 of the loss, beside 1e-12 of rounding over it


def fit_readout(
    features: BlocksAt,
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
        Whether these are trained, too.  Where no bias is best inside the range that the
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
        readout_norms = (arrays.to_host(fits.readouts) ** 2).sum(axis=0)
        loss_below, loss_above = (
            mean_losses(
                features, fits._replace(bias=fits.bias + shift), sizes, named_loss("square")
            )[0]
            for shift in (-DIFFERENCE, DIFFERENCE)
        )
        value = sizes[:, None] * fits.train / 2 + lam * readout_norms / 2
        return np.array([value, sizes[:, None] * (loss_above - loss_below) / (2 * DIFFERENCE)])

    scan = np.array([objective(fits_at(float(t), sizes, lam), sizes, lam) for t in BIAS_SCAN])

    def fit_at_best_bias(a: int, b: int) -> Fits:
        """The fit of one size and penalty at its best bias."""
        size_and_penalty = sizes[a : a + 1], lam[b : b + 1]
        fit = cache(lambda bias: fits_at(bias, *size_and_penalty))
        bias_scan = scan[:, :, a, b].T
        # to such a bias the objective is flat to 1e-12
        bias = lowest_minimum(
            lambda t: objective(fit(t), *size_and_penalty).ravel(), BIAS_SCAN, *bias_scan, xtol=1e-6
        )
        best_fit = fit(float(np.nan_to_num(bias)))
        if np.isnan(bias):
            best_fit = Fits(*(field * np.nan for field in best_fit))._replace(bias=best_fit.bias)
        return best_fit

    fits = [fit_at_best_bias(a, b) for a in range(len(sizes)) for b in range(len(lam))]
    readouts, *other_fields = zip(*fits, strict=True)
    xp, fit_shape = arrays.namespace(readouts[0]), (len(sizes), len(lam))
    joined_readouts = xp.reshape(xp.stack(readouts, axis=1), (-1, *fit_shape))
    return Fits(joined_readouts, *(np.reshape(fit_field, fit_shape) for fit_field in other_fields))


def mean_losses(blocks: BlocksAt, fits: Fits, sizes: Array, loss: Loss) -> Array:
    """Mean loss, the sum of all outputs, and share of wrong classes over the first ``sizes[a]``
    samples, (2, A, L).

    ``blocks``, of a bias, are as for :func:`fit_readout`; ``fits`` are at A
    sizes and L penalties.
    """
    return _sample_means(blocks, fits, sizes, lambda y, f: (loss(y, f), misclassified(y, f)))


def squared_errors(blocks: BlocksAt, fits: Fits, sizes: Array) -> tuple[Array, Array]:
    """Mean of (y - f)^2, the sum of all outputs, over the first ``sizes[a]`` samples and the
    variance of that mean, (A, L) each.

    ``blocks`` is as for :func:`mean_losses`.
    """
    error_means, square_means = _sample_means(blocks, fits, sizes, squared_error)
    return error_means, np.maximum(square_means - error_means**2, 0.0) / sizes[:, None]


def _sample_means(blocks: BlocksAt, fits: Fits, sizes: Array, measured: Any) -> Array:
    """Means (2, A, L) of two quantities, ``measured`` of labels and outputs, over the first
    ``sizes[a]`` samples; sums of all outputs."""
    loss_sums = np.zeros((2, *fits.bias.shape))
    for bias in np.unique(fits.bias):
        has_bias, samples_read = fits.bias == bias, 0
        for Phi, y in blocks(float(bias))():
            host_y = arrays.to_host(y)[:, None, None]  # (b, 1, 1), or (b, 1, 1, C) of C outputs
            sample_index = np.arange(samples_read, samples_read + len(host_y))
            used = (sample_index[:, None] < sizes)[:, :, None] & has_bias
            block_losses = measured(host_y, arrays.to_host(predict(Phi, fits)))
            for loss_sum, loss in zip(loss_sums, block_losses, strict=True):
                loss_sum += np.where(used, loss.reshape(*used.shape, -1).sum(axis=3), 0).sum(axis=0)
            samples_read += len(host_y)
    return loss_sums / sizes[:, None]


def squared_error(labels: Array, prediction: Array) -> tuple[Array, Array]:
    """Squared error, the sum of all outputs, and its square."""
    output_errors = ((labels - prediction) ** 2).reshape(*prediction.shape[:3], -1).sum(axis=3)
    return output_errors, output_errors**2


def misclassified(labels: Array, prediction: Array) -> Array:
    """Misclassification of each sample: 1 where the sign of a prediction is not the label, or the
    largest of several outputs is not that of the class, whose label is 1; a share where outputs are
    equal, or 0."""
    if labels.ndim == 3:  # an output of 0, where all neurons are silent: half of them are wrong
        return np.asarray((labels * prediction < 0) + 0.5 * (prediction == 0))
    is_largest = prediction == prediction.max(axis=3, keepdims=True)
    return np.asarray(1 - (is_largest * labels).sum(axis=3) / is_largest.sum(axis=3))
