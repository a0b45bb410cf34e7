"""Errors of readouts of layers and features: notes, refusals, rows exceeded, names of columns.
docs/theory.md 20, 22
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from solvers.resources import TIME_LIMIT
from solvers.results import Array, Status

from ..convex import Loss
from ..convex import loss as as_loss
from ..errors import InvalidArgument, shorten_list
from ..given import (
    TOLERANCE,
    FeatureMoments,
    FeatureSample,
    FirstLayer,
    Given,
    GivenPoint,
    evaluate_readout,
    has_classes,
)
from ..problem import SpikedRandomFeatures, check_call
from ..saddle_point import ERRORS
from .evaluate_model import LABELS_NEEDED
from .row_fits import FITTED, FITTED_TRAINING

# Residual degrees of freedom of strata: docs/theory.md 20 says what they were found on.
FEWEST_DEGREES = 40.0
# Relative difference from fits to random rows, and how many of their standard errors, from which
# on it is noted; of errors of the rows that train it is larger.
LARGEST_DIFFERENCE, LARGEST_TRAINING_DIFFERENCE, STANDARD_ERRORS = 0.05, 0.1, 3.0
MOST_SCATTER = 0.25  # of fits, two standard errors: of training errors nothing is known from there
MOST_TRAINED = 0.75  # of the rows: of more, few are left to test fits on, whose errors scatter
FEW_DEGREES = (
    "few residual degrees of freedom: at a finite n the test error may differ by more than 5 %, "
    "the training error by more than 10 %; the classification error mostly by less"
)
FITS_DIFFER = (
    "errors that are more than 5 %, and three standard errors, off fits to random rows, as "
    "where few rows share a direction of the features, or a class: take the errors of the fits "
    "(fitted in Python, --wide)"
)
FITS_SCATTER = (
    "errors that are more than 5 % off those of fits to random rows, which scatter too much to "
    "tell, as where few rows have the largest features or errors: the theory may be far too low, "
    "and logarithms or ranks of such features do better (fitted in Python, --wide)"
)
TRAINING_DIFFERS = (
    "a training error that is more than 10 %, and three standard errors, off fits to random rows, "
    "as of near copies of rows: take that of the fits (fitted in Python, --wide)"
)
TRAINING_SCATTERS = (
    "a training error of which fits to random rows scatter too much to tell, as where the loss of "
    "nearly all rows is 0: it may be far too small (fitted in Python, --wide)"
)
FITS_DIFFERENT = FITS_DIFFER, FITS_SCATTER, TRAINING_DIFFERS, TRAINING_SCATTERS
NO_FITS = (
    "errors that fits to random rows could not check: five would take more than some ten seconds, "
    "nearly all rows train, a training set may have one class only, of which the loss has no "
    "readout with an intercept, or lam is next to 0"
)
FAR = "errors far from the answer, which are not set beside fits to random rows"
FITS_ALONE = "errors of fits to random rows alone (fitted in Python, --wide)"
# Simulated: of ten classes 4 to 5 % low at p = 80, 1.6 % at p = 240, of five 1.4 % at p = 80.
FEWEST_NEURONS_OF_CLASS = 15
RARE_FEATURES = (
    "features that are rarely very large, as a cube's: at so few neurons or samples the test error "
    "may be 4 to 20 % too low (docs/theory/23-a-network-at-its-own-dimension.md)"
)
FEW_NEURONS = "few neurons for so many classes: the classification error may be 5 % too low"
UNCENTRED = (
    "labels whose mean is far from 0, and no intercept: intercept=True (--intercept) trains one"
)
REGRESSED = (
    "labels {}, which are regressed: {} makes classes of them (classes=(), --classes none, says "
    "that they are numbers)"
)
WHOLE = REGRESSED.format("of several whole numbers a row", "one column, such as labels[:, 0],")
SHARES = REGRESSED.format(
    "that sum to 1 in each row, or are 1 once and else -1", "labels.argmax(axis=1)"
)
TIED_ROWS = (
    "{} rows whose features are all 0, at which all outputs are 0 without an intercept: the "
    "classification error has equal shares of the classes there, where scikit-learn answers the "
    "first (intercept=True, --intercept, trains one)"
)
REPEATED_ROWS = (
    "{} rows that repeat another's features and label: one trains the readout that the other "
    "tests, and errors are too small (numpy.unique(features, axis=0, return_index=True) has each "
    "once)"
)
ROW_NUMBERS = (
    "a feature, {!r}, that numbers the rows, as an id does: where rows are sorted it tells their "
    "label, and is to be left out"
)
LABEL_COLUMNS = (
    "features that are a function of the labels alone, as a copy of them is, which are to be left "
    "out: {}"
)
GUESSED = (
    "an error that is not clearly better than a guess: too few samples, a lam far from the best, "
    "or features and labels in another order of rows"
)
NO_INTERCEPT = f"{GUESSED}; or no intercept: intercept=True (--intercept) trains one"
MOST_FREQUENT = (
    "a classification error no better than that of always answering the most frequent class: see "
    "confusion of replica.solve, or --confusion"
)
BEYOND_ROWS = (
    "more samples than rows: features are taken for Gaussian in each class, and errors are scaled "
    "to meet those of the rows, where both are known; shares of a confusion matrix are not scaled"
)
BEYOND_STRATA = "more samples than rows: features are taken for Gaussian in each stratum"
BEST_AT_END = (
    "a best lam that is at an end of the range searched: none, or an infinite one, may be as good, "
    "and features of another scale, such as StandardScaler's, may have it inside"
)
SOME_ROWS = (
    "a part of the rows, at random, in the place of all: standard errors and the variance over "
    "samples are that part's"
)
ERRORS_OFF = (
    FEW_DEGREES,
    FITS_DIFFER,
    FITS_SCATTER,
    FEW_NEURONS,
    RARE_FEATURES,
    BEYOND_ROWS,
    BEYOND_STRATA,
)  # notes that errors may be; and training errors
TRAINING_OFF = FEW_DEGREES, BEYOND_ROWS, BEYOND_STRATA, TRAINING_DIFFERS, TRAINING_SCATTERS


def notes_of(model: Given, point_columns: Mapping[Any, Any]) -> dict[str, Any]:
    """Map from notes to whether each point has them, for the columns of a solution or Dataset."""
    residual_degrees = point_columns["residual_degrees"]
    if not isinstance(model, FeatureSample):
        fewest_neurons = FEWEST_NEURONS_OF_CLASS * (model.outputs if model.outputs > 1 else 0)
        has_few_neurons = len(getattr(model, "weights", ())) < fewest_neurons
        is_solved = residual_degrees > -np.inf
        layer_notes = {
            FEW_DEGREES: residual_degrees < FEWEST_DEGREES,
            FEW_NEURONS: is_solved & has_few_neurons,
        }
        if isinstance(model, FirstLayer):
            of_alpha = "samples" not in point_columns
            n = point_columns["alpha"] * model.dimension if of_alpha else point_columns["samples"]
            errors = point_columns["train_error"], point_columns["test_error"] + model.law.variance
            is_rare = has_rare_features(model.kurtosis, len(model.weights), n, *errors)
            layer_notes[RARE_FEATURES] = is_solved & is_rare
        return layer_notes
    samples = point_columns.get("samples", np.nan)  # none on a curve over alpha
    by_rows = model.by_rows(samples)
    few = residual_degrees < FEWEST_DEGREES
    notes_of_all = dict.fromkeys(notes_of_sample(model), residual_degrees > -np.inf)
    is_guess, is_most_frequent = no_better_than_constants(model, point_columns)
    is_guess &= UNCENTRED not in notes_of_all
    is_solved = (by_rows | beyond(model, samples)) & (residual_degrees > -np.inf)
    return notes_of_all | {
        FEW_DEGREES: few & np.logical_not(by_rows),
        FITS_DIFFER: differs(point_columns),
        FITS_SCATTER: (samples <= MOST_TRAINED * len(model.labels))
        & differs(point_columns, ("test_error", "loss_error"), scatter=True),
        TRAINING_DIFFERS: differs(point_columns, FITTED_TRAINING, LARGEST_TRAINING_DIFFERENCE),
        TRAINING_SCATTERS: differs(
            point_columns, FITTED_TRAINING, LARGEST_TRAINING_DIFFERENCE, True, MOST_SCATTER
        ),
        FITS_ALONE: np.logical_not(point_columns["converged"]) & has_fits(point_columns),
        NO_FITS: point_columns["converged"]
        & lacks_fits(point_columns)
        & by_rows
        & (np.rint(samples) < len(model.labels)),
        GUESSED if model.intercept else NO_INTERCEPT: is_solved & is_guess,
        MOST_FREQUENT: is_solved & is_most_frequent,
        beyond_note(model): beyond(model, samples),
        SOME_ROWS: by_rows & (model.taken(samples) < len(model.labels)),
    }


def has_rare_features(kurtosis: float, p: float, n: Any, train_error: Any, label_error: Any) -> Any:
    """True where rare large features of p neurons make errors on n samples larger than in theory.

    The sum of the relative variances of V over the samples, and of 1 / V2 over the neurons, is
    (23.11) with V / (1 + V) = 1 - (train_error / label_error)^(1/2); the latter is the test error
    on labels with their noise.
    """
    most_variance = 0.03  # simulated errors are 4 % off at .035, 14 % at .37
    response = 1 - np.sqrt(np.clip(train_error / label_error, 0, 1))
    return kurtosis * response**2 * (1 + n / p) / p > most_variance


def no_better_than_constants(model: FeatureSample, point_columns: Any) -> tuple[bool, bool]:
    """Two flags: True if no error is clearly less than a guess's, that of the best constant output;
    and True if the squared error is, but not the classification error, of labels most of which are
    of one class."""
    loss = point_columns.get("loss", getattr(point_columns, "attrs", {}).get("loss", "square"))

    def is_below(name: str, least: float, guessed: Any) -> bool:
        """True if an error is less than ``guessed``, by two standard errors or to that part."""
        error, error_bar = point_columns[name], point_columns.get(f"{name}_stderr", np.nan)
        return bool(np.any((error < least * guessed) | (error + 2 * error_bar < guessed)))

    losses = [loss] if isinstance(loss, Loss) else np.ravel(loss).tolist()
    guesses, error_name = [_error_of_constant(model, one) for one in losses], "loss_error"
    if [getattr(one, "name", one) for one in losses] == ["square"]:  # has standard errors, too
        error_name, guesses = "test_error", [2 * guesses[0]]
    guess: Any = guesses[0] if len(losses) == 1 else loss.copy(data=guesses)
    # of a loss that is known by its name alone classes tell
    is_known = bool(np.isfinite(guesses).all())
    is_guess = not is_below(error_name, 0.98, guess) if is_known else has_classes(model)
    is_most_frequent = False
    if has_classes(model):
        shares = np.unique(model.class_of_row, return_counts=True)[1] / len(model.labels)
        is_most_frequent = not is_below("classification_error", 0.9, 1 - shares.max())
        is_guess &= is_most_frequent
        # others have errors that nobody takes for small
        is_most_frequent &= bool(shares.max() > 0.7) and not is_guess
    return bool(is_guess), bool(is_most_frequent)


def _error_of_constant(model: FeatureSample, loss: Any) -> float:
    """Mean loss of the best constant output, of 0 without an intercept; NaN of a loss that is known
    by its name alone."""
    from scipy.optimize import minimize_scalar

    labels = model.labels
    try:
        minimised = as_loss(loss)
    except InvalidArgument:  # a user's
        return np.nan
    if minimised.is_square:
        of_mean = labels - model.intercept * labels.mean(axis=0)
        return float(np.square(of_mean).mean(axis=0).sum() / 2)
    if not model.intercept:
        return float(minimised(labels, np.zeros(len(labels))).mean())
    ends = (-20.0, 20.0) if minimised.kind == "margin" else (labels.min(), labels.max())

    def mean_loss(output: float) -> float:
        """Mean loss of one output for all rows."""
        return float(minimised(labels, np.full(len(labels), output)).mean())

    return float(minimize_scalar(mean_loss, bounds=ends, method="bounded").fun)


def has_fits(point_columns: Mapping[Any, Any]) -> Any:
    """True where an error of fits to random rows is known."""
    fitted = [point_columns[name] for name in point_columns if str(name).startswith("fitted_")]
    return np.any([np.isfinite(values) for values in fitted], axis=0)


def lacks_fits(point_columns: Mapping[Any, Any]) -> Any:
    """True where fits to random rows were to be made, and there are none."""
    is_asked = any(str(name).startswith("fitted_") for name in point_columns)
    return is_asked & np.logical_not(has_fits(point_columns))


def differs(
    point_columns: Mapping[Any, Any],
    names: Sequence[str] = FITTED,
    largest: float = LARGEST_DIFFERENCE,
    scatter: bool = False,
    most_scatter: float = np.inf,
) -> Any:
    """True where an error of these ``names`` is off that of fits to random rows, by more than
    ``largest`` of it and STANDARD_ERRORS.

    With ``scatter`` it is where fits cannot tell: the error is off by more than ``largest``, but
    not than STANDARD_ERRORS, two of which are more than ``largest``; or two are more than
    ``most_scatter`` of the fits' mean.
    """
    is_off: Any = False
    for name in names:
        if (fitted_name := f"fitted_{name}") in point_columns:
            fitted, stderr = point_columns[fitted_name], point_columns[f"{fitted_name}_stderr"]
            difference, least = abs(point_columns[name] - fitted), largest * fitted
            is_beyond = difference > STANDARD_ERRORS * stderr
            is_noted = np.logical_not(is_beyond) & (2 * stderr > least) if scatter else is_beyond
            is_off = is_off | ((difference > least) & is_noted)
            if scatter:
                is_off = is_off | (np.logical_not(is_beyond) & (2 * stderr > most_scatter * fitted))
    return is_off


def notes_on(model: Given, dataset: Any) -> list[str]:
    """The notes of a curve, each with the numbers of samples of the points that have it."""
    sample_axis, curve_notes = "samples" if "samples" in dataset.coords else "alpha", []
    notes_of_points = notes_of(model, dataset)
    if isinstance(model, FeatureSample) and "at_edge" in dataset:
        notes_of_points[BEST_AT_END] = dataset.at_edge != ""
    for note, noted_points in notes_of_points.items():
        is_shown = dataset.converged | (note == FITS_ALONE)
        noted_at = (noted_points & is_shown).broadcast_like(dataset.converged)
        if noted_at.any():
            of_points = dataset[sample_axis].broadcast_like(noted_at).values
            curve_notes.append(point_note(note, noted_at.values, sample_axis, of_points))
    if dataset.converged.size == 1:
        fitted = {str(name): x.item() for name, x in dataset.items() if "fitted" in str(name)}
        curve_notes = [with_means(note, fitted) for note in curve_notes]
    return curve_notes


def with_means(note: str, fitted: Mapping[str, float]) -> str:
    """A note on ``fitted`` errors of a point with these, and their standard errors."""
    means = {name: mean for name, mean in fitted.items() if not name.endswith("_stderr")}
    if note not in (*FITS_DIFFERENT, FITS_ALONE) or not means:
        return note
    found = [f"{name} {mean:.3g} ± {fitted[f'{name}_stderr']:.2g}" for name, mean in means.items()]
    return f"{note.removesuffix(')')}: {', '.join(found)})"


def point_note(note: str, noted_at: Array, axis: str, values: Array) -> str:
    """A note with how many points have it, and their ``values`` of an axis, arrays of one shape; of
    one point alone the note itself."""
    if noted_at.size == 1:
        return note
    each = np.unique(values[noted_at])
    values_text = ", ".join(f"{n:g}" for n in each[:4]) + f" to {each[-1]:g}" * (len(each) > 4)
    return f"{noted_at.sum()} of {noted_at.size} points, at {axis} {values_text}, have {note}"


def with_noted(model: Given, dataset: Any) -> Any:
    """A curve with the variables ``noted``, whether a note says that the errors of a point may be
    off, ``noted_training``, whether one says so of its training error, and ``note``, their words.
    """
    dims, notes_of_points = dataset.converged.dims, notes_of(model, dataset)
    notes_off = dict.fromkeys((*ERRORS_OFF, *TRAINING_OFF))
    notes = [note for note in notes_off if note in notes_of_points]
    has_note = np.array([dataset.converged & notes_of_points[note] for note in notes])
    words = ["; ".join(itertools.compress(notes, at)) for at in has_note.reshape(len(notes), -1).T]
    note_of_points = np.reshape(words, dataset.converged.shape)
    of_new, of_training = (
        has_note[np.isin(notes, names)].any(axis=0) for names in (ERRORS_OFF, TRAINING_OFF)
    )
    return dataset.assign(
        noted=(dims, of_new), noted_training=(dims, of_training), note=(dims, note_of_points)
    )


def notes_of_sample(model: Given) -> list[str]:
    """Notes that all points of a sample have, on its rows; none of other models."""
    if not isinstance(model, FeatureSample):
        return []
    sample_labels, sample_notes = model.labels, []
    if not (model.intercept or model.binary or model.classes):
        uncentred = np.abs(sample_labels.mean(axis=0)) > sample_labels.std(axis=0)
        sample_notes += [UNCENTRED] * bool(uncentred.any())
    if model.outputs > 1 and model.classes is None:  # () says that they are numbers
        low = min(0, sample_labels.min())  # of one class against the rest 1 and -1
        are_shares = low in (-1, 0) and np.allclose((sample_labels - low).sum(axis=1), 1 - low)
        sample_notes += [SHARES if are_shares else WHOLE] * bool(
            are_shares or (sample_labels == np.rint(sample_labels)).all()
        )
    tied_rows = 0 if model.intercept else int((~model.features.any(axis=1)).sum())
    if has_classes(model) and tied_rows > 0.02 * len(sample_labels):
        sample_notes.append(TIED_ROWS.format(tied_rows))
    names = model.columns or range(model.width)
    sample_notes += [ROW_NUMBERS.format(names[k]) for k in model.numbering_columns]
    if model.label_columns:
        label_names = shorten_list([str(names[k]) for k in model.label_columns])
        sample_notes.append(LABEL_COLUMNS.format(label_names))
    many_repeated = model.repeated > 0.02 * len(sample_labels)  # fewer hardly change an error
    return sample_notes + [REPEATED_ROWS.format(model.repeated)] * many_repeated


def beyond_note(model: Given) -> str:
    """The note on more samples than rows."""
    return BEYOND_ROWS if getattr(model, "strata", None) is None else BEYOND_STRATA


def beyond(model: Given, samples: Any) -> Any:
    """True where ``samples`` exceed the rows of a model that has rows."""
    sample_rows = len(model.labels) if isinstance(model, FeatureSample) else np.inf
    return samples > sample_rows


def classes_of(model: FeatureSample) -> FeatureSample:
    """The sample with its classes for strata, which are Gaussian at any number of samples."""
    return replace(model, strata=model.class_of_row)


def meet_rows(
    point_columns: dict[str, Any], row_errors: dict[str, Any], by_class: dict[str, Any]
) -> dict[str, Any]:
    """The columns of a point whose features are taken for Gaussian in each class, beyond the rows:
    errors are scaled to meet, at all rows, those row by row, where both are known.  Eq. (22.14)

    ``row_errors`` and ``by_class`` are the columns at all rows.  Where these could not be solved
    the point is given up, but where a loss has no answer at all rows.
    """
    met_columns = dict(point_columns)
    for name in ERRORS:
        ratio, stderr_name = np.nan, f"{name}_stderr"
        if row_errors[name] > 0 and by_class[name] > 0:  # an error that is 0 tells no ratio
            ratio = point_columns[name] / by_class[name]
            met_columns[name] = ratio * row_errors[name]
        if stderr_name in met_columns:
            met_columns[stderr_name] = ratio * row_errors[stderr_name]
    for at_all_rows in (row_errors, by_class):
        if not at_all_rows["converged"] and at_all_rows["status"] != Status.ALL_ROWS:
            met_columns |= {"converged": False, "status": at_all_rows["status"]}
            met_columns |= {name: np.nan for name in met_columns if name.startswith(ERRORS)}
    return met_columns


def refuse_limit_options(*grids: str, workers: int = 1, notes: bool = False) -> None:
    """Refuse for a given layer the options and ``grids`` of limits."""
    for limit_option, value, limit_default in (("workers", workers, 1), ("notes", notes, False)):
        if value != limit_default:
            raise InvalidArgument(limit_option, value, "left out of given layers and features")
    if grids:
        raise InvalidArgument("a grid", grids[0], "over samples (or alpha) and lam of given layers")


ACCURACY = "converged", "residual", "quadrature_error", "iterations", "status"


def column_names(model: SpikedRandomFeatures | Given, loss: Loss) -> list[str]:
    """Names of the columns of a point in tables, for a model and a loss."""
    loss_columns = [] if loss.is_square else ["loss_error", "train_loss"]
    if not isinstance(model, Given):
        bias_columns = ["trained_bias"] if model.train_bias else []
        class_error = ["classification_error"] if model.labels.binary else []
        return [*bias_columns, "test_error", "train_error", *loss_columns, *class_error, *ACCURACY]
    class_error = ["classification_error"] if has_classes(model) else []
    by_rows = isinstance(model, FeatureSample) and model.strata is None
    stderr = [f"{name}_stderr" for name in ["test_error", *class_error] if by_rows]
    error_columns = ["test_error", "train_error", *class_error, *stderr, "readout_variance"]
    freedom_columns = ["degrees_of_freedom", "degrees_of_freedom_2", "kappa", "residual_degrees"]
    return [*error_columns, *freedom_columns, *ACCURACY, *loss_columns]


@check_call
def layer_points(
    model: Given,
    samples: Array,
    lam: Array,
    loss: Loss,
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> Iterator[tuple[int, GivenPoint]]:
    """The theory at the points (samples[i], lam[i]): every i and its point, as
    :func:`evaluate_readout` has them."""
    if model.outputs > 1 and not loss.is_square:
        hint = 'labels == c are one class and the rest; for a file numpy.save("y.npy", labels == c)'
        if not isinstance(model, FeatureSample):
            hint = "target classes:1,-1,-1 is one class and the rest"
        allowed_loss = f"the square for several classes or outputs ({hint})"
        raise InvalidArgument("loss", loss.name, allowed_loss)
    if loss.kind == "margin" and not model.binary:
        raise InvalidArgument("loss", loss.name, LABELS_NEEDED)
    labels_vary = isinstance(model, FeatureMoments) and model.vary
    if isinstance(model, FeatureSample) and model.strata is not None and model.outputs == 1:
        strata_and_labels = {*zip(model.strata.tolist(), model.labels.tolist(), strict=True)}
        labels_vary = len(strata_and_labels) > len({stratum for stratum, _ in strata_and_labels})
    if labels_vary and not loss.is_square:
        raise InvalidArgument("loss", loss.name, "the square where labels vary within a stratum")
    readouts_at = partial(
        evaluate_readout, loss=loss, tol=quadrature_tol or TOLERANCE, time_limit=time_limit
    )

    @cache
    def columns_at_all_rows(sample: FeatureSample, penalty: float) -> list[dict[str, Any]]:
        """Columns at as many samples as rows, row by row and of Gaussian classes; flagged where
        rows tell no classes apart: of Gaussian ones, more samples may then have any error."""
        N = float(sample.most_by_rows)
        place = np.array([N]), np.array([penalty])
        of_rows, by_class = (
            next(readouts_at(m, *place))[1].columns for m in (sample, classes_of(sample))
        )
        is_guess, _ = no_better_than_constants(sample, of_rows | {"loss": loss})
        if of_rows["converged"] and has_classes(sample) and is_guess:
            of_rows = of_rows | {"converged": False, "status": Status.GUESS}
        return [of_rows, by_class]

    for i, point in readouts_at(model, samples, lam):
        is_beyond = point.columns["converged"] and beyond(model, samples[i])
        if is_beyond and isinstance(model, FeatureSample) and model.strata is None:
            at_all_rows = columns_at_all_rows(model, float(lam[i]))
            met_columns = meet_rows(point.columns, *at_all_rows)
            known_confusion = point.confusion if met_columns["converged"] else None
            point = point._replace(columns=met_columns, confusion=known_confusion)
        yield i, point
