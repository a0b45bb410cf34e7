"""Fits of the readout to random rows of a sample, beside which the theory of its errors is checked.

Row by row the theory holds where many rows share each direction of the features (docs/theory.md
22).  Few of them, as of one-hot features or near copies of rows, may make errors several times as
large, and no number of the theory tells how much.  Fits do.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from solvers.resources import one_thread
from solvers.results import Array, ConvergenceError

from ..convex import Loss
from ..errors import InvalidArgument
from ..fit import fit_convex_readout, fit_ridge, misclassified, predict, squared_error
from ..given import FeatureSample, Given, has_classes

# Errors that fits have, too, of new rows and of the rows that train.
FITTED = "test_error", "loss_error", "classification_error"
FITTED_TRAINING = "train_error", "train_loss"
# Fits go on, twice as many each time, until all errors of new rows are known to that part of
# themselves, with which 5 % are five standard errors (three are noted), or to the most.
FIRST_FITS, FEWEST_FITS, MOST_FITS, PRECISION = 20, 5, 1024, 0.01
MOST_OF_OTHER_LOSSES = 64  # a fit takes some 10 to 50 ms, however few its rows
# Multiplications at one number of samples that all fits may take, half a second, and that the
# fewest may.  Of a loss other than the square a fit has some thirty steps.
WORK, MOST_WORK, NEWTON_STEPS = 1e10, 1e11, 30
MOST_TESTED = 2000  # rows that a fit is tested on
# Rows that all fits together are tested on, unless there are fewer in all: of so few errors near
# n = N, rarely large ones are missed, and with them most of the mean and of its scatter.
FEWEST_TESTED = 400
GRAM_POWER = 1e9  # of rows over lam: up to it 1e-7 of lam is rounded in their Gram matrix


def fitted_errors(model: Given, samples: Any, lam: Any, loss: Loss) -> dict[str, Array]:
    """Means over fits to ``samples`` random rows, tested on others, and their standard errors.

    For P points, ``fitted_test_error`` and ``fitted_train_error`` (P,) or, of a loss other than the
    square, ``fitted_loss_error`` and ``fitted_train_loss``, and of classes
    ``fitted_classification_error``, each with ``_stderr``.
    They are NaN where all rows train, or more, where nearly all do and too few are tested, where no
    fit is known, and where five would take more than some ten seconds; there are none of a model
    without rows.
    """
    if not isinstance(model, FeatureSample) or model.strata is not None:
        return {}
    names = ["test_error" if loss.is_square else "loss_error"]
    names += ["classification_error"] * has_classes(model)
    names += ["train_error" if loss.is_square else "train_loss"]
    samples, lam = np.broadcast_arrays(np.rint(samples), lam)
    means = np.full((2, len(names), *samples.shape), np.nan)
    has_others = (samples >= 1) & (samples < len(model.labels)) & np.isfinite(lam)
    for n in np.unique(samples[has_others]):
        at_n = has_others & (samples == n)
        penalties, place = np.unique(lam[at_n], return_inverse=True)
        try:
            fitted = _means_of_fits(model, loss, int(n), penalties)
        except (InvalidArgument, ConvergenceError):  # a penalty next to 0, of double precision
            fitted = np.full((2, len(names), penalties.size), np.nan)
            for i in range(penalties.size) if penalties.size > 1 else ():
                one = slice(i, i + 1)
                with suppress(InvalidArgument, ConvergenceError):
                    fitted[..., one] = _means_of_fits(model, loss, int(n), penalties[one])
        means[:, :, at_n] = fitted[..., place]
    fitted_names = [f"fitted_{name}{end}" for end in ("", "_stderr") for name in names]
    return dict(zip(fitted_names, means.reshape(-1, *samples.shape), strict=True))


@one_thread()
def _means_of_fits(model: FeatureSample, loss: Loss, n: int, lam: Array) -> Array:
    """Means of K errors of fits to n rows at L penalties, and their standard errors, (2, K, L); or
    NaN, (2, 1, L), where five would take more than some ten seconds, or are tested on too few."""
    rng = np.random.default_rng(0)  # points that are solved apart have the same fits
    p, smaller = model.width, min(n, model.width)
    work = n * p * smaller + lam.size * smaller**3 / 3
    if not loss.is_square:
        work = NEWTON_STEPS * lam.size * (n * p * smaller + smaller**3 / 3)
    if FEWEST_FITS * work > MOST_WORK:
        return np.full((2, 1, lam.size), np.nan)
    most = MOST_FITS if loss.is_square else min(MOST_FITS, MOST_OF_OTHER_LOSSES)
    most_fits = int(np.clip(WORK / work, FEWEST_FITS, most))
    row_count, coordinates, fitted = len(model.labels), model.row_coordinates, list[Array]()
    tested_by_each = min(MOST_TESTED, row_count - n)
    fewest_fits = min(FEWEST_TESTED, row_count) / tested_by_each
    if most_fits < fewest_fits:
        return np.full((2, 1, lam.size), np.nan)
    folds = row_count // (row_count - n)
    orders = _orders_of_rows(row_count, n, folds, rng)
    while True:
        for order in islice(orders, min(max(FIRST_FITS, len(fitted)), most_fits - len(fitted))):
            rows = order[: n + MOST_TESTED]
            fitted.append(_errors_of_fit(model, coordinates, rows, loss, n, lam))
        used = fitted[: len(fitted) // folds * folds or None]  # each row as often as any other
        mean, stderr = np.mean(used, axis=0), np.std(used, axis=0, ddof=1) / len(used) ** 0.5
        is_known = len(fitted) >= fewest_fits and (stderr <= PRECISION * mean)[:-1].all()
        if len(fitted) == most_fits or is_known:
            break
    if has_classes(model):  # one wrong answer more or less may be chance, also where none is wrong
        stderr[1] = np.maximum(stderr[1], 1 / (len(used) * tested_by_each))
    return np.stack([mean, stderr])


def _orders_of_rows(
    row_count: int, n: int, folds: int, rng: np.random.Generator
) -> Iterator[Array]:
    """Orders of all rows, of which the first n train and the others test: in as many as there are
    ``folds``, no row is tested twice."""
    while True:
        order = rng.permutation(row_count)
        for fold in range(folds):
            yield np.roll(order, fold * (row_count - n))


def _errors_of_fit(
    model: FeatureSample,
    coordinates: Array,
    rows: Array,
    loss: Loss,
    n: int,
    lam: Array,
) -> Array:
    """Test or loss error, of classes the share of wrong ones, and training error or loss, (K, L),
    of a fit to the first n of some ``rows``, tested on the others, by the ``coordinates`` (N, r) of
    all."""
    features, labels = coordinates[rows], model.labels[rows]
    features = features - model.intercept * features[:n].mean(axis=0)
    power = np.square(features).sum() / model.width
    if n < features.shape[1] and power > GRAM_POWER * lam.min():  # coordinates along the rows of
        # the fit: in its Gram matrix columns of a large scale would round the others, or lam
        features = features @ np.linalg.qr(features[:n].T)[0]
    features = features * (features.shape[1] / model.width) ** 0.5  # fits divide by their own
    train, sizes = lambda: [(features[:n], labels[:n])], np.array([n])
    fit = fit_ridge if loss.is_square else partial(fit_convex_readout, loss=loss)
    fits = fit(train, sizes, lam, intercept=model.intercept)
    test_labels, outputs = labels[n:, None, None], predict(features[n:], fits)
    if loss.is_square:
        test_losses, train_loss = squared_error(test_labels, outputs)[0], fits.train
    else:
        test_losses = loss(test_labels, outputs)
        train_loss = loss(labels[:n, None, None], predict(features[:n], fits)).mean(axis=0)
    test_means = [test_losses.mean(axis=0)]
    if has_classes(model):
        test_means.append(misclassified(test_labels, outputs).mean(axis=0))
    return np.concatenate([*test_means, train_loss])
