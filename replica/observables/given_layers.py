"""The errors of the readout of given layers and features, at a point and on a grid.

docs/theory.md 20
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.resources import TIME_LIMIT
from solvers.results import Array, Status

from ..convex import Loss
from ..convex import loss as as_loss
from ..display import Displayed, Progress
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
from ..plotting import plot_confusion
from ..problem import limits, one_positive, positive
from .axes import data_set, given_as_one, losses_of
from .beyond_rows import meet_rows, notes_of

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

ALIKE = "the square where labels vary within a stratum"
FREEDOM = ["degrees_of_freedom", "degrees_of_freedom_2", "kappa", "residual_degrees"]


@dataclass(frozen=True, eq=False, repr=False)
class ReadoutSolution(Displayed):
    """The theory of a given layer's readout at one point, of :func:`replica.solve`.

    Attributes
    ----------
    model : FirstLayer, FeatureSample or FeatureMoments
    samples : float
        Number n of the readout's samples.
    lam : float
    loss : Loss
        What the readout minimises, beside the penalty.
    test_error : float
        Of a FirstLayer E (target - prediction)^2 on noiseless targets, of given features on
        labels; NaN if not converged.  Eq. (20.5)
    train_error, loss_error, train_loss, classification_error : float
        As a :class:`Solution` has them.
    readout_variance : float
        What the variance of the prediction over the readout's samples adds to the test error: the
        mean of K readouts, each of samples of its own, has 1/K of it.  Row by row samples are
        parts of the same N rows, and it is 0 at n = N.
    squared_norm : float
        |a|^2 / p of the readout's weights, on average over its samples; of it the penalty has
        lam p / 2 in the training objective of (1.2).  NaN of Gaussian strata of a FeatureSample,
        and of several outputs.
    test_error_stderr, classification_error_stderr : float
        Their standard errors over samples of as many rows, by how they scatter from row to row;
        those of rows scaled where there are more samples; NaN where strata are not rows.
    classification_sensitivity : float
        d log(classification error) / d log v, v the variances of all outputs over the readout's
        samples: of several classes row by row, else NaN.  The theory has v to 5 or 10 % where a
        class has some tens of samples.
    degrees_of_freedom : float
        df_1 = tr A (A + lambda)^-1 of the fit, for A = (n/p) E -s' phi phi^T: how many of the
        readout's weights the samples determine.
    degrees_of_freedom_2 : float
        df_2 = tr [A (A + lambda)^-1]^2.  Of one stratum and the square loss the test error on
        labels is n / (n - df_2), the overfitting coefficient, times that of the mean readout.  It
        is of the population: NaN row by row, where rows tell that of themselves alone.
    kappa : float
        Effective penalty lam p / (n E -s'), p lam (1 + V) / n of one stratum and the square loss:
        the mean readout is the ridge fit of the population with kappa added to the second moments
        of its features.  Of several strata each counts by its -E s'.  Eq. (20.16)
    residual_degrees : float
        (n - df_2) / (1 + cv^2), cv the spread of responses V over strata over their mean.  The
        theory is of large n: errors are off by two or three parts in so many.  Eq. (20.15); df_2
        is here of moments as they are measured, and row by row df_1 is in its place.
    converged : bool
    status : Status
        Its value is a sentence.
    residual : float
        Largest change of an unknown in one pass of all equations.
    quadrature_error : float
        Largest relative change of an error from coarser strata with fewer Hermite degrees.
    iterations, strata, directions : int
        Passes of the equations; strata of the last of them, or rows; and special directions, along
        which these are cut.
    confusion : (C, C) or None
        Of several classes, in their order: shares of outputs that are largest, of the rows of each
        class.  Rows sum to 1.
    """

    model: Given
    samples: float
    lam: float
    loss: Loss
    test_error: float
    train_error: float
    loss_error: float
    train_loss: float
    classification_error: float
    readout_variance: float
    squared_norm: float
    test_error_stderr: float
    classification_error_stderr: float
    classification_sensitivity: float
    degrees_of_freedom: float
    degrees_of_freedom_2: float
    kappa: float
    residual_degrees: float
    converged: bool
    status: Status
    residual: float
    quadrature_error: float
    iterations: int
    strata: int
    directions: int
    confusion: Array | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The layer and the point, in plain values; the loss where it is not the square."""
        named = {} if self.loss.is_square else {"loss": self.loss.name}
        return self.model.described | {"samples": self.samples, "lam": self.lam} | named

    def plot_confusion(self, ax: "Axes | None" = None) -> "Axes":
        """The confusion matrix of several classes, :func:`replica.plotting.plot_confusion`."""
        return plot_confusion(self, ax)

    def _facts(self) -> dict[str, Any]:
        binary = ["classification_error"] if has_classes(self.model) else []
        errors: dict[str, Any] = {}
        losses = [] if self.loss.is_square else ["loss_error", "train_loss"]
        squares = [] if self.loss.kind == "margin" else ["test_error", "train_error"]
        for name in [*binary, *losses, *squares]:
            stderr = getattr(self, f"{name}_stderr", np.nan)
            value = getattr(self, name)
            errors[name] = value if np.isnan(stderr) else f"{value:.6g} +- {stderr:.2g}"
        accuracy = f"residual {self.residual:.1e}, quadrature_error {self.quadrature_error:.1e}"
        notes = [note for note, said in notes_of(self.model, vars(self)).items() if said]
        said = {"note": "; ".join(notes)} if notes else {}
        return errors | {"status": f"{self.status.value} ({accuracy})"} | said

    def _rows(self) -> list[dict[str, Any]]:
        names = ["samples", "lam", *shown_of_layer(self.model, self.loss)]
        row = {name: getattr(self, name) for name in names}
        return [row | {"status": self.status.value}]


def solve_given(
    model: Given,
    alpha: Any,
    samples: Any,
    lam: Any,
    loss: Any,
    quadrature_tol: float | None,
    time_limit: float,
) -> tuple[ReadoutSolution, ReadoutPoints]:
    """:func:`replica.solve` of a given layer, and the points that it is the one of."""
    name, value = asked(model, alpha, samples)
    n, penalty = samples_of(model, name, one_positive(name, value)), one_positive("lam", lam)
    minimised = as_loss(loss)
    points = _points(model, n, penalty, minimised, quadrature_tol, time_limit)
    at = {"samples": n.item(), "lam": penalty.item(), "loss": minimised}
    columns = {name: column.item() for name, column in points.columns.items()}
    return ReadoutSolution(model=model, **at, **columns, confusion=points.confusion), points


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
    each = [_points(model, n, second, one, *accuracy, advance).columns for one in losses]
    shown = dict.fromkeys(name for one in losses for name in shown_of_layer(model, one))
    columns = {key: np.concatenate([columns[key] for columns in each]) for key in shown}
    columns["status"] = np.array([status.value for status in columns["status"]])
    constants = model.described
    if not (names or losses[0].is_square):
        constants["loss"] = losses[0].name
    return data_set(names | axes, columns, constants, given_as_one(**{name: value}, lam=lam))


def has_classes(model: Given) -> bool:
    """Whether outputs name a class: labels are +-1, or one of several."""
    return model.binary or bool(getattr(model, "classes", None))


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
    stderr += ["classification_sensitivity"] * (rows and model.outputs > 1 and bool(binary))
    fit = ["readout_variance", *FREEDOM]
    accuracy = ["converged", "residual", "quadrature_error", "iterations", "status"]
    return ["test_error", "train_error", *binary, *stderr, *fit, *accuracy, *losses]


def _points(
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
