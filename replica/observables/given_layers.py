"""The errors of the readout of given layers and features, at a point and on a grid.

docs/theory.md 20
"""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.resources import TIME_LIMIT
from solvers.results import Array

from ..convex import Loss
from ..convex import loss as as_loss
from ..display import Progress
from ..errors import InvalidArgument
from ..given import (
    TOLERANCE,
    FeatureMoments,
    FeatureSample,
    Given,
    ReadoutPoints,
    asked,
    evaluate,
    samples_of,
)
from ..problem import limits, positive
from .axes import data_set, given_as_one, losses_of

if TYPE_CHECKING:
    import xarray

# Residual degrees of freedom, of strata and of rows: docs/theory.md 20 and 22 say what they were
# found on.
FEWEST_DEGREES, FEWEST_OF_ROWS = 40.0, 1.0
FEW_DEGREES = (
    "few residual degrees of freedom: at a finite n the test error may differ by more than 5 %, "
    "the training error by more than 10 %"
)

ALIKE = "the square where labels vary within a stratum"
FREEDOM = ["degrees_of_freedom", "degrees_of_freedom_2", "kappa", "residual_degrees"]
BEYOND_ROWS = "more samples than rows: features are taken for Gaussian in each class"


def curve_given(
    model: Given,
    alpha: Any,
    samples: Any,
    lam: Any,
    loss: Any = "square",
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
    progress: Progress | None = None,
) -> "xarray.Dataset":
    """:func:`replica.learning_curve` of a given layer."""
    name, value = asked(model, alpha, samples)
    axes = {name: positive(name, value), "lam": positive("lam", lam)}
    losses, names = losses_of(loss)
    first, second = (x.ravel() for x in np.meshgrid(*axes.values(), indexing="ij"))
    n, count, done = samples_of(model, name, first), len(first) * len(losses), itertools.count(1)

    def advance() -> None:
        if progress is not None:
            progress(next(done), count)

    accuracy = quadrature_tol, time_limit
    each = [points_of_layer(model, n, second, one, *accuracy, advance).columns for one in losses]
    shown = dict.fromkeys(name for one in losses for name in shown_of_layer(model, one))
    columns = {key: np.concatenate([columns[key] for columns in each]) for key in shown}
    columns["status"] = np.array([status.value for status in columns["status"]])
    constants = model.described
    if not (names or losses[0].is_square):
        constants["loss"] = losses[0].name
    return data_set(names | axes, columns, constants, given_as_one(**{name: value}, lam=lam))


def has_classes(model: Given) -> bool:
    """Whether outputs name a class: labels are +-1, or one of several."""
    return model.binary or getattr(model, "classes", None) is not None


def few_degrees(model: Given, samples: Any, residual_degrees: Any) -> Any:
    """Whether the ``residual_degrees`` of points are so few that their errors may be off."""
    rows = isinstance(model, FeatureSample) and model.by_rows(samples)
    return residual_degrees < FEWEST_DEGREES + (FEWEST_OF_ROWS - FEWEST_DEGREES) * rows


def beyond(model: Given, samples: Any) -> Any:
    """Whether there are more ``samples`` than the rows of a model that goes row by row."""
    if not isinstance(model, FeatureSample) or model.strata is not None:
        return np.zeros(np.shape(samples), bool)
    return np.asarray(samples) > len(model.labels)


def gaussian_change(model: FeatureSample, lam: float, loss: Any) -> float:
    """The relative change of the classification error by Gaussian classes, at n = N, where rows
    have one, too: NaN if either is not known."""
    classes = replace(model, strata=model.class_of_row)
    at = np.array([len(model.labels)], float), np.array([lam]), as_loss(loss), None, TIME_LIMIT
    rows, gaussian = (
        points_of_layer(one, *at).columns["classification_error"].item() for one in (model, classes)
    )
    return gaussian / rows - 1


def left_out(allowed: str, **options: Any) -> None:
    """Refuse options that are changed, where what is ``allowed`` is to leave them out."""
    usual = dict(quadrature_tol=None, workers=1, notes=False)
    for name, value in options.items():
        if value != usual[name]:
            raise InvalidArgument(name, value, allowed)


def of_limits_alone(*grids: str, **options: Any) -> None:
    """Refuse for a given layer what is changed of the options, and ``grids``, that limits alone
    have."""
    left_out("left out of given layers and features", **options)
    if grids:
        raise InvalidArgument("a grid", grids[0], "over samples (or alpha) and lam of given layers")


def shown_of_layer(model: Given, loss: Loss) -> list[str]:
    """The names of what tables show of a point."""
    binary = ["classification_error"] if has_classes(model) else []
    losses = [] if loss.is_square else ["loss_error", "train_loss"]
    rows = isinstance(model, FeatureSample) and model.strata is None
    stderr = [f"{name}_stderr" for name in ["test_error", *binary] if rows]
    fit = ["readout_variance", *FREEDOM]
    accuracy = ["converged", "residual", "quadrature_error", "iterations", "status"]
    return ["test_error", "train_error", *binary, *stderr, *fit, *accuracy, *losses]


def points_of_layer(
    model: Given,
    samples: Array,
    lam: Array,
    loss: Loss,
    quadrature_tol: float | None,
    time_limit: float,
    advance: Callable[[], None] = lambda: None,
) -> ReadoutPoints:
    """The theory at the points (samples[i], lam[i])."""
    tol, seconds = limits(quadrature_tol, time_limit)
    if model.outputs > 1 and not loss.is_square:
        one = "labels == c" if isinstance(model, FeatureSample) else "target classes:1,-1,-1"
        allowed = f"the square for several classes or outputs ({one} is one class and the rest)"
        raise InvalidArgument("loss", loss.name, allowed)
    if loss.kind == "margin" and not model.binary:
        allowed = "one of residuals, such as huber:1, unless labels are +-1"
        raise InvalidArgument("loss", loss.name, allowed)
    if isinstance(model, FeatureSample) and not (loss.is_square or model.strata is None):
        pairs = set(zip(model.strata.tolist(), model.labels.tolist(), strict=True))
        if len(pairs) > len(np.unique(model.strata)):
            raise InvalidArgument("loss", loss.name, ALIKE)
    if isinstance(model, FeatureMoments) and model.vary and not loss.is_square:
        raise InvalidArgument("loss", loss.name, ALIKE)
    return evaluate(model, samples, lam, loss, tol or TOLERANCE, seconds, advance)
