"""The errors of the readout of given layers and features, at a point and on a grid.

docs/theory.md 20
"""

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.resources import TIME_LIMIT
from solvers.results import Array

from ..convex import Loss
from ..display import Progress
from ..errors import InvalidArgument
from ..given import TOLERANCE, FeatureMoments, FeatureSample, Given, ReadoutPoints, evaluate
from ..problem import asked, limits, positive, samples_of
from .axes import data_set, losses_of, scalar_arguments
from .beyond_rows import meet_rows, with_noted

if TYPE_CHECKING:
    import xarray

ALIKE = "the square where labels vary within a stratum"
FREEDOM = ["degrees_of_freedom", "degrees_of_freedom_2", "kappa", "residual_degrees"]


def layer_curve(
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
    each = [layer_points(model, n, second, one, *accuracy, advance).columns for one in losses]
    shown = dict.fromkeys(name for one in losses for name in layer_columns(model, one))
    columns = {key: np.concatenate([columns[key] for columns in each]) for key in shown}
    columns["status"] = np.array([status.value for status in columns["status"]])
    constants = model.described
    if not (names or losses[0].is_square):
        constants["loss"] = losses[0].name
    single = scalar_arguments(**{name: value}, lam=lam)
    return with_noted(model, data_set(names | axes, columns, constants, single))


def has_classes(model: Given) -> bool:
    """Whether outputs name a class: labels are +-1, or one of several."""
    return model.binary or bool(getattr(model, "classes", None))


def refuse_options(allowed: str, **options: Any) -> None:
    """Refuse options with other values than their defaults; ``allowed`` says when they are left
    out."""
    usual = dict(quadrature_tol=None, workers=1, notes=False)
    for name, value in options.items():
        if value != usual[name]:
            raise InvalidArgument(name, value, allowed)


def refuse_limit_options(*grids: str, **options: Any) -> None:
    """Refuse for a given layer the ``options`` and ``grids`` of limits."""
    refuse_options("left out of given layers and features", **options)
    if grids:
        raise InvalidArgument("a grid", grids[0], "over samples (or alpha) and lam of given layers")


def layer_columns(model: Given, loss: Loss) -> list[str]:
    """Names of the columns of a point in tables."""
    binary = ["classification_error"] if has_classes(model) else []
    losses = [] if loss.is_square else ["loss_error", "train_loss"]
    rows = isinstance(model, FeatureSample) and model.strata is None
    stderr = [f"{name}_stderr" for name in ["test_error", *binary] if rows]
    stderr += ["classification_sensitivity"] * (rows and model.outputs > 1 and bool(binary))
    fit = ["readout_variance", *FREEDOM]
    accuracy = ["converged", "residual", "quadrature_error", "iterations", "status"]
    return ["test_error", "train_error", *binary, *stderr, *fit, *accuracy, *losses]


def layer_points(
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
        label_of: dict[Any, float] = {}
        for of, label in zip(model.strata.tolist(), model.labels.tolist(), strict=True):
            if label_of.setdefault(of, label) != label:
                both = f"{label_of[of]:g} and {label:g} in stratum {of}"
                raise InvalidArgument("loss", loss.name, f"{ALIKE} ({both})")
    if isinstance(model, FeatureMoments) and model.vary and not loss.is_square:
        raise InvalidArgument("loss", loss.name, ALIKE)
    how = loss, tol or TOLERANCE, seconds
    points = evaluate(model, samples, lam, *how, advance)
    return points._replace(columns=meet_rows(model, samples, lam, points, *how))
