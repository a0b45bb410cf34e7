"""The errors of the readout of given layers and features, at a point and on a grid.

docs/theory.md 20
"""

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
    FeatureSample,
    Given,
    Posterior,
    ReadoutPoints,
    asked,
    derivatives,
    evaluate,
    samples_of,
)
from ..problem import limits, one_positive, positive
from .axes import data_set, given_as_one, is_list, losses_of

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, eq=False, repr=False)
class ReadoutSolution(Displayed):
    """The theory of a given layer's readout at one point, of :func:`replica.solve`.

    Attributes
    ----------
    model : FirstLayer or FeatureSample
    samples : float
        Number n of the readout's samples.
    lam : float
    loss : Loss
        What the readout minimises, beside the penalty.
    test_error : float
        Of a FirstLayer E (target - prediction)^2 on noiseless targets, of a FeatureSample on
        labels; NaN if not converged.  Eq. (20.5)
    train_error : float
        Mean squared training residual.
    loss_error : float
        Mean loss on new samples; half the square for the square loss.
    train_loss : float
        Mean loss on the training samples.
    classification_error : float
        P(y f < 0) on new samples where labels are +-1; NaN elsewhere.
    readout_variance : float
        What the variance of the prediction over the readout's samples adds to the test error: the
        mean of K readouts, each of samples of its own, has 1/K of it.
    squared_norm : float
        |a|^2 / p of the readout's weights, on average over its samples; of it the penalty has
        lam p / 2 in the training objective of (1.2).  NaN of a FeatureSample.
    converged : bool
    status : Status
        Its value is a sentence.
    residual : float
        Largest change of an unknown in one pass of all equations.
    quadrature_error : float
        Largest relative change of an error from coarser strata with fewer Hermite degrees.
    iterations, strata : int
        Passes of the equations, and strata of the last of them.
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
    converged: bool
    status: Status
    residual: float
    quadrature_error: float
    iterations: int
    strata: int

    @property
    def settings(self) -> dict[str, Any]:
        """The layer and the point, in plain values; the loss where it is not the square."""
        named = {} if self.loss.is_square else {"loss": self.loss.name}
        return self.model.described | {"samples": self.samples, "lam": self.lam} | named

    def _facts(self) -> dict[str, Any]:
        binary = ["classification_error"] if self.model.binary else []
        errors = {name: getattr(self, name) for name in [*binary, "test_error", "train_error"]}
        accuracy = f"residual {self.residual:.1e}, quadrature_error {self.quadrature_error:.1e}"
        return errors | {"status": f"{self.status.value} ({accuracy})"}

    def _rows(self) -> list[dict[str, Any]]:
        names = ["samples", "lam", *shown_of_layer(self.model, self.loss)]
        row = {name: getattr(self, name) for name in names}
        return [row | {"status": self.status.value}]


def solve_given(
    model: Given, alpha: Any, samples: Any, lam: Any, loss: Any, **options: Any
) -> tuple[ReadoutSolution, Posterior | None]:
    """:func:`replica.solve` of a given layer, and the law of its readout; ``options`` are the
    tolerance and the time limit."""
    _, at = _one(model, alpha, samples, lam, loss)
    points = _points(evaluate, model, *at, **options)
    return _solution(model, points, *at), points.last


def gradient_given(
    model: Given, alpha: Any, samples: Any, lam: Any, loss: Any, **options: Any
) -> tuple[ReadoutSolution, dict[str, tuple[float, float]]]:
    """The point of :func:`replica.gradient`, and the derivatives of its test and training error in
    samples, or alpha, and lam."""
    asked, at = _one(model, alpha, samples, lam, loss)
    points, slopes = _points(derivatives, model, *at, **options)
    values = asked | {"lam": at[1].item()}
    each = zip(values.items(), slopes, strict=True)
    return _solution(model, points, *at), {name: tuple(s / value) for (name, value), s in each}


def _one(
    model: Given, alpha: Any, samples: Any, lam: Any, loss: Any
) -> tuple[dict[str, float], tuple[Array, Array, Loss]]:
    """What is asked of alpha and samples; n and lam of one point, arrays (1,), and the loss."""
    name, value = asked(model, alpha, samples)
    given = one_positive(name, value)
    at = {name: given.item()}
    return at, (samples_of(model, name, given), one_positive("lam", lam), as_loss(loss))


def _solution(
    model: Given, points: ReadoutPoints, n: Array, penalty: Array, minimised: Loss
) -> ReadoutSolution:
    """The one of the ``points``."""
    more = {"loss_error", "train_loss", "classification_error", "squared_norm", "strata"}
    shown = {*shown_of_layer(model, minimised), *more}
    columns = {key: getattr(points, key).item() for key in shown}
    at = {"samples": n.item(), "lam": penalty.item(), "loss": minimised}
    return ReadoutSolution(model=model, **at, **columns)


def curve_given(
    model: Given,
    alpha: Any,
    samples: Any,
    lam: Any,
    loss: Any = "square",
    progress: Progress | None = None,
    **options: Any,
) -> "xarray.Dataset":
    """:func:`replica.learning_curve` of a given layer, as ``solve_given``."""
    name, value = asked(model, alpha, samples)
    axes, losses = {name: positive(name, value), "lam": positive("lam", lam)}, losses_of(loss)
    first, second = (x.ravel() for x in np.meshgrid(*axes.values(), indexing="ij"))
    at = samples_of(model, name, first), second
    done, count = 0, len(first) * len(losses)

    def advance() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, count)

    each = [_points(evaluate, model, *at, one, advance=advance, **options) for one in losses]
    shown = dict.fromkeys(name for one in losses for name in shown_of_layer(model, one))
    columns = {key: np.concatenate([getattr(points, key) for points in each]) for key in shown}
    columns["status"] = np.array([status.value for status in columns["status"]])
    constants = model.described
    if is_list(loss):
        axes = {"loss": np.array([one.name for one in losses])} | axes
    elif not losses[0].is_square:
        constants["loss"] = losses[0].name
    return data_set(axes, columns, constants, given_as_one(**{name: value}, lam=lam))


def of_limits_alone(**options: Any) -> None:
    """Refuse for a given layer what is changed of the options that limits alone have."""
    usual = {"method": "newton", "rule": "auto", "workers": 1, "notes": False}
    for name, value in options.items():
        if name not in usual:
            raise InvalidArgument("a grid", name, "over samples (or alpha) and lam of given layers")
        if value != usual[name]:
            raise InvalidArgument(name, value, "left out of given layers and features")


def shown_of_layer(model: Given, loss: Loss) -> list[str]:
    """The names of what tables show of a point."""
    binary = ["classification_error"] if model.binary else []
    losses = [] if loss.is_square else ["loss_error", "train_loss"]
    accuracy = ["converged", "residual", "quadrature_error", "iterations", "status"]
    return ["test_error", "train_error", *binary, "readout_variance", *accuracy, *losses]


def _points(
    found: Callable[..., Any],
    model: Given,
    samples: Array,
    lam: Array,
    loss: Loss,
    tol: float | None = None,
    time_limit: float = TIME_LIMIT,
    **told: Any,
) -> Any:
    """What is ``found`` of the theory at the points (samples[i], lam[i])."""
    tol, time_limit = limits(tol, time_limit)
    if loss.kind == "margin" and not model.binary:
        allowed = "one of residuals, such as huber:1, unless labels are +-1"
        raise InvalidArgument("loss", loss.name, allowed)
    if isinstance(model, FeatureSample) and not loss.is_square:
        order = np.argsort(model.strata, kind="stable")
        same = model.strata[order][1:] == model.strata[order][:-1]
        if (same & (np.diff(model.labels[order]) != 0)).any():
            allowed = "the square where labels vary within a stratum"
            raise InvalidArgument("loss", loss.name, allowed)
    return found(model, samples, lam, loss, tol or TOLERANCE, time_limit, **told)
