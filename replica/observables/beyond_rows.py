"""Notes on the points of given layers and features; and errors of a sample for more samples than it
has rows.  docs/theory.md 20, 22
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from solvers.results import Array

from ..convex import ERRORS, Loss
from ..given import FeatureSample, Given, ReadoutPoints, evaluate

# Residual degrees of freedom, of strata and of rows: docs/theory.md 20 and 22 say what they were
# found on, and the sensitivity of several classes.
FEWEST_DEGREES, FEWEST_OF_ROWS = 40.0, 1.0
LARGEST_SENSITIVITY, FEWEST_OF_CLASS = 0.35, 3
FEWEST_OF_HINGE = 60
FEW_DEGREES = (
    "few residual degrees of freedom: at a finite n the test error may differ by more than 5 %, "
    "the training error by more than 10 %"
)
SENSITIVE = (
    "few samples of a class, and its classification error depends on which they are: it may be "
    "5 to 20 % too low, and far more where it is itself below some 5 %"
)
HINGE = "few samples for the hinge loss: its classification error may be up to 10 % too high"
UNCENTRED = (
    "labels whose mean is far from 0, and no intercept: intercept=True (--intercept) trains one"
)
WHOLE = (
    "labels of several whole numbers a row, which are regressed: labels[:, 0] are the classes of "
    "one column (classes=(), --classes none, says that they are numbers)"
)
SHARES = (
    "labels that sum to 1 in each row, or are 1 once and else -1, which are regressed: "
    "labels.argmax(axis=1) makes classes of them (classes=(), --classes none, says that they are "
    "numbers)"
)
REPEATED = (
    "{} rows that repeat another's features and label: one trains the readout that the other "
    "tests, and errors are too small (numpy.unique(features, axis=0, return_index=True) has each "
    "once)"
)
MOST_REPEATED = 0.01  # of the rows, without a note
BEYOND_ROWS = (
    "more samples than rows: features are taken for Gaussian in each class, and errors are scaled "
    "to meet those of the rows, where both are known"
)
BEYOND_STRATA = "more samples than rows: features are taken for Gaussian in each stratum"
SOME_ROWS = (
    "a part of the rows, at random, stands for all: standard errors and the variance over samples "
    "are that part's"
)


def notes_of(model: Given, points: Mapping[Any, Any]) -> dict[str, Any]:
    """Notes, and whether each point has them, of the columns of a solution or of a Dataset."""
    samples = points.get("samples", np.nan)  # none on a curve over alpha
    rows = isinstance(model, FeatureSample) and model.by_rows(samples)
    degrees = points["residual_degrees"]
    fewest = FEWEST_DEGREES + (FEWEST_OF_ROWS - FEWEST_DEGREES) * rows
    # with few samples of a class errors are near those of a guess, whatever the variance
    sensitive = points.get("classification_sensitivity", np.nan * degrees)
    fewest_samples = FEWEST_OF_CLASS * model.outputs
    few = (sensitive > LARGEST_SENSITIVITY) | ((sensitive > 0) & (samples < fewest_samples))
    loss = points.get("loss", getattr(points, "attrs", {}).get("loss"))
    loss = loss.name if isinstance(loss, Loss) else loss
    of_all = dict.fromkeys(_of_sample(model), degrees > -np.inf)
    return of_all | {
        FEW_DEGREES: degrees < fewest,
        SENSITIVE: few,
        HINGE: rows & (samples < FEWEST_OF_HINGE) & (loss == "hinge"),
        beyond_note(model): beyond(model, samples),
        SOME_ROWS: rows & takes_part(model, samples),
    }


def notes_on(model: Given, dataset: Any) -> list[str]:
    """The notes of a curve, each with the numbers of samples of the points that have it."""
    name, notes = "samples" if "samples" in dataset.coords else "alpha", []
    for note, said in notes_of(model, dataset).items():
        where = (said & dataset.converged).broadcast_like(dataset.converged)
        if where.any():
            each = np.unique(dataset[name].broadcast_like(where).values[where.values])
            at = ", ".join(f"{n:g}" for n in each[:4]) + f" to {each[-1]:g}" * (len(each) > 4)
            count = f"{int(where.sum())} of {where.size} points"
            notes.append(f"{count}, at {name} {at}, have {note}")
    return notes


def with_noted(model: Given, dataset: Any) -> Any:
    """A curve with the variable ``noted``: whether a note says that the errors of a point may be
    off."""
    said = notes_of(model, dataset)
    off = said[FEW_DEGREES] | said[SENSITIVE] | said[HINGE] | said[beyond_note(model)]
    return dataset.assign(noted=off & dataset.converged)


def _of_sample(model: Given) -> list[str]:
    """Notes on the rows of a sample, which all of its points have."""
    if not isinstance(model, FeatureSample):
        return []
    labels, notes = model.labels, []
    if not (model.intercept or model.binary or model.classes):
        uncentred = np.abs(labels.mean(axis=0)) > labels.std(axis=0)
        notes += [UNCENTRED] * bool(uncentred.any())
    if model.outputs > 1 and model.classes is None:  # () says that they are numbers
        low = min(0, labels.min())  # of one class against the rest 1 and -1
        shares = low in (-1, 0) and np.allclose((labels - low).sum(axis=1), 1 - low)
        notes += [SHARES if shares else WHOLE] * bool(shares or (labels == np.rint(labels)).all())
    many = model.repeated > MOST_REPEATED * len(labels)
    return notes + [REPEATED.format(model.repeated)] * many


def beyond_note(model: Given) -> str:
    """The note on more samples than rows."""
    return BEYOND_ROWS if getattr(model, "strata", None) is None else BEYOND_STRATA


def beyond(model: Given, samples: Any) -> Any:
    """True where ``samples`` exceed the rows of a model that has rows."""
    rows = len(model.labels) if isinstance(model, FeatureSample) else np.inf
    return samples > rows


def takes_part(model: Given, samples: Any) -> Any:
    """True if fewer rows than all stand for a sample, at a number of ``samples``."""
    return isinstance(model, FeatureSample) and model.taken(samples) < len(model.labels)


def classes_of(model: FeatureSample) -> FeatureSample:
    """The sample with its classes for strata, which are Gaussian at any number of samples."""
    return replace(model, strata=model.class_of_row)


def meet_rows(
    model: Given, samples: Array, lam: Array, points: ReadoutPoints, *how: Any
) -> dict[str, Array]:
    """The columns of points (samples[i], lam[i]), of which errors of Gaussian classes beyond the
    rows are scaled to meet those row by row, where both are known.  Eq. (22.14)"""
    columns, past = dict(points.columns), beyond(model, samples)
    if not (past.any() and isinstance(model, FeatureSample) and model.strata is None):
        return columns
    penalties, of = np.unique(lam[past], return_inverse=True)
    at = np.full(penalties.size, float(model.most_by_rows)), penalties, *how
    rows, classes = (evaluate(one, *at).columns for one in (model, classes_of(model)))
    for name in ERRORS:
        # an error that is 0 tells no ratio
        known = (rows[name] > 0) & (classes[name] > 0)
        part = columns[name][past] / np.where(known, classes[name], np.nan)[of]
        columns[name][past] = np.where(known[of], part * rows[name][of], columns[name][past])
        stderr = f"{name}_stderr"
        if stderr in columns:
            columns[stderr][past] = part * rows[stderr][of]
    return columns
