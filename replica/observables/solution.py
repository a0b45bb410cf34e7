"""The theory at one point."""

from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from solvers.resources import TIME_LIMIT, deadline
from solvers.results import ConvergenceError, Status

from ..convex import Loss
from ..convex import loss as as_loss
from ..display import Displayed
from ..given import Given, needs_alpha
from ..plotting import mark_optimum, plot_curve
from ..problem import SpikedRandomFeatures, check_model, describe_with_step, flag, one_positive
from ..saddle_point import Conjugates, Overlaps
from .changes import CHANGES, error_shown
from .evaluate import evaluate
from .given_layers import ReadoutSolution, solve_given

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NETWORK_TIME = 5.0  # seconds


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Displayed):
    """The theory at one point, of :func:`replica.solve`.

    Attributes
    ----------
    model : SpikedRandomFeatures
        What was solved.
    alpha, lam : float
        Where: readout samples over dimension, and ridge penalty.
    test_error : float
        E (target - prediction)^2 on noiseless targets; NaN if not converged.  Eq. (4.11)
    train_error : float
        Mean squared training residual; NaN if not converged.
    loss : Loss
        What the readout minimises, beside the penalty.
    loss_error : float
        Mean loss on new samples, labels with their noise; half the square for the square loss.
    train_loss : float
        Mean loss on the training samples.
    classification_error : float
        P(y f < 0) + P(f = 0) / 2 on new samples where labels are +-1; NaN elsewhere, or where no
        rule resolves it.
    overlaps, conjugates : Overlaps, Conjugates
        Without the leading axis over points; groups in the order of ``model.geometry``, where
        equal ones are merged and empty ones left out.
    converged : bool
        Whether residual and quadrature error are within their tolerances.
    status : Status
        Its value is a sentence.
    residual : float
        Largest relative violation of any of the original equations at this point.
    quadrature_error : float
        The same on a rule of about half the size: a bound on the error of the rule used.  It
        says nothing of the groups that stand for a continuous readout: ``model.law_error``.
    iterations : int
        Evaluations of the saddle-point equations.
    nodes : int
        Size of the quadrature rule.
    trained_bias : float
        The common bias that minimises the training objective; 0 if none is trained.  As the
        bottom of a minimum it is known to about 1e-8, of a loss other than the square to 1e-5,
        and the test error with it.
    """

    model: SpikedRandomFeatures
    alpha: float
    lam: float
    test_error: float
    train_error: float
    loss: Loss
    loss_error: float
    train_loss: float
    classification_error: float
    overlaps: Overlaps
    conjugates: Conjugates
    converged: bool
    status: Status
    residual: float
    quadrature_error: float
    iterations: int
    nodes: int
    trained_bias: float

    @cached_property
    def finite_size_shift(self) -> float:
        """How far this limit is from a network of ordinary size: the relative change of the test
        error, or where labels are +-1 of the classification error, from here to ``dimension`` 1000,
        where the overlaps m have their price.

        Computed when asked for, in about the time of the point itself; NaN where either did not
        converge or it takes more than some seconds, 0 of a model that has a finite dimension.
        Other corrections, of order 1 / d, are not in it.  docs/readout.md
        """
        return self._change("finite_size_shift")

    @cached_property
    def network_difference(self) -> float:
        """How far the network itself is from this sRF after the same step: the relative change of
        the same error.

        Computed when asked for; NaN where either did not converge, or the network's own theory
        does not cover it or takes more than some seconds, 0 of what is no sRF of a step.
        docs/network.md
        """
        return self._change("network_difference")

    def _change(self, name: str) -> float:
        """That of CHANGES, of the error that matters most."""
        shown = error_shown(self.model)

        def error(model: SpikedRandomFeatures) -> float:
            return getattr(solve(model, alpha=self.alpha, lam=self.lam, loss=self.loss), shown)

        with deadline(NETWORK_TIME):
            return float(CHANGES[name].of(self.model, getattr(self, shown), error))

    @property
    def settings(self) -> dict[str, Any]:
        """The problem and the point, in plain values; the loss where it is not the square."""
        named = {} if self.loss.is_square else {"loss": self.loss.name}
        return describe_with_step(self.model) | {"alpha": self.alpha, "lam": self.lam} | named

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """The errors at ten times fewer to ten times more samples, a star at this point."""
        import xarray

        alpha, name = self.alpha * np.geomspace(0.1, 10, 41), error_shown(self.model)
        at = evaluate(self.model, alpha, np.full(alpha.size, self.lam), loss=self.loss).columns
        variables = {key: ("alpha", at[key]) for key in columns_shown(self.model, self.loss)}
        settings = {key: value for key, value in self.settings.items() if key != "alpha"}
        ax = plot_curve(xarray.Dataset(variables, {"alpha": alpha}, settings), ax)
        mark_optimum(ax, self.alpha, getattr(self, name))
        return ax

    def _facts(self) -> dict[str, Any]:
        names = dict.fromkeys([error_shown(self.model), "test_error", "train_error"])
        errors = {name: getattr(self, name) for name in names}
        accuracy = f"residual {self.residual:.1e}, quadrature_error {self.quadrature_error:.1e}"
        facts = errors | {"status": f"{self.status.value} ({accuracy})"}
        changes = {name: getattr(self, name) for name in CHANGES}
        return facts | {
            name: f"{value:+.0%} {CHANGES[name].said}"
            for name, value in changes.items()
            if abs(value) > CHANGES[name].noted
        }

    def _rows(self) -> list[dict[str, Any]]:
        names = ["alpha", "lam", *columns_shown(self.model, self.loss)]
        row = {name: getattr(self, name) for name in names}
        return [row | {"status": self.status.value}]


def columns_shown(model: SpikedRandomFeatures, loss: Loss) -> list[str]:
    """The names of what tables show of a point."""
    bias = ["trained_bias"] if model.train_bias else []
    losses = [] if loss.is_square else ["loss_error", "train_loss"]
    binary = ["classification_error"] if model.labels.binary else []
    accuracy = ["converged", "residual", "quadrature_error", "iterations", "status"]
    return [*bias, "test_error", "train_error", *losses, *binary, *accuracy]


@overload
def solve(
    model: SpikedRandomFeatures,
    *,
    alpha: float,
    lam: float,
    loss: Any = ...,
    quadrature_tol: float | None = ...,
    time_limit: float = ...,
    raise_on_failure: bool = ...,
) -> Solution: ...


@overload
def solve(
    model: Given,
    *,
    alpha: float | None = ...,
    samples: float | None = ...,
    lam: float,
    loss: Any = ...,
    quadrature_tol: float | None = ...,
    time_limit: float = ...,
    raise_on_failure: bool = ...,
) -> ReadoutSolution: ...


def solve(
    model: SpikedRandomFeatures | Given,
    *,
    alpha: float | None = None,
    samples: float | None = None,
    lam: float,
    loss: Any = "square",
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
    raise_on_failure: bool = False,
) -> Solution | ReadoutSolution:
    """Test error, training error and overlaps at one point.  docs/theory.md 4, 6, 20

    Parameters
    ----------
    model : SpikedRandomFeatures, FirstLayer, FeatureSample or FeatureMoments
        Of a step: step.srf(beta=...) or step.network(beta=...).
    alpha : float
        Readout samples over input dimension, n/d.
    samples : float
        Number n of readout samples, in the place of alpha, of a FirstLayer or FeatureSample.
    lam : float
        Ridge penalty lambda of (1.2), positive.
    loss : str or Loss
        Convex loss of the readout: ridge regression's square unless given, see
        :func:`replica.loss`.
    quadrature_tol : float
        Bound on the estimated relative quadrature error; 1e-10 unless given, 1e-6 for a loss
        other than the square, and for the square where labels are +-1 at random.  Of a given layer
        largest relative change of an error from coarser strata: 1e-3 unless given.
    time_limit : float
        Seconds after which a point that is not solved is flagged.
    raise_on_failure : bool
        Raise instead of returning a point that did not converge.

    Raises
    ------
    InvalidArgument
        If alpha, samples or lam is missing or out of range, or an option does not fit the model.
    QuadratureError
        If a function of the model cannot be integrated, such as one with undeclared kinks.
    ConvergenceError
        On request, with the Solution inside.

    Examples
    --------
    >>> from replica import GradientStep, solve
    >>> model = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0).srf(beta=1.0)
    >>> point = solve(model, alpha=0.9, lam=0.1)
    >>> round(point.test_error, 7), round(point.train_error, 7), point.converged
    (0.0425039, 0.0168595, True)
    """
    solution: Solution | ReadoutSolution
    if isinstance(model, Given):
        solution, _ = solve_given(model, alpha, samples, lam, loss, quadrature_tol, time_limit)
    else:
        check_model(model)
        if alpha is None or samples is not None:
            alpha = needs_alpha(alpha, samples)
        assert alpha is not None
        evaluated = evaluate(
            model,
            one_positive("alpha", alpha),
            one_positive("lam", lam),
            loss=loss,
            quadrature_tol=quadrature_tol,
            time_limit=time_limit,
        )
        columns = evaluated.columns
        solution = Solution(
            model=model,
            alpha=float(alpha),
            lam=float(lam),
            loss=as_loss(loss),
            overlaps=Overlaps(*map(itemgetter(0), evaluated.overlaps)),
            conjugates=Conjugates(*map(itemgetter(0), evaluated.conjugates)),
            **dict(zip(columns, map(methodcaller("item"), columns.values()), strict=True)),
        )
    failed = not solution.converged
    if raise_on_failure is not False and flag("raise_on_failure", raise_on_failure) and failed:
        name = "samples" if isinstance(model, Given) else "alpha"
        raise ConvergenceError(
            f"at {name}={getattr(solution, name):g}, lam={solution.lam:g}: {solution.status.value} "
            f"(residual {solution.residual:.1e}, quadrature {solution.quadrature_error:.1e})",
            solution,
        )
    return solution
