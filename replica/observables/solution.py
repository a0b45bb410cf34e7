"""The Solution at one point: errors, overlaps, status, figure; and solve, which finds it."""

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.resources import TIME_LIMIT, deadline
from solvers.results import Array, ConvergenceError, Status

from ..convex import Loss
from ..convex import loss as as_loss
from ..display import Displayed
from ..errors import InvalidArgument
from ..given import FeatureSample, Given, GivenPoint
from ..plotting import add_legend, error_drawn, mark_place, plot_confusion, plot_curve, setting
from ..problem import (
    SpikedRandomFeatures,
    asked,
    check_call,
    describe_with_step,
    number,
    samples_of,
)
from ..saddle_point import COLUMNS, Conjugates, Overlaps
from ..steps import GradientStep, model_of
from .evaluate_model import evaluate
from .grid import Grid, solve_grid, with_points
from .readout_curves import column_names, layer_points, notes_of, with_means
from .row_fits import fitted_errors
from .theory_changes import (
    CHANGES,
    few_products_note,
    headline_error,
    large_penalty_note,
    of_size,
    price_note,
    ratio_note,
    shift_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NETWORK_TIME = 5.0  # seconds


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Solution(Displayed):
    """The theory at one point, of :func:`replica.solve`.

    Attributes
    ----------
    model : SpikedRandomFeatures, FirstLayer, FeatureSample or FeatureMoments
        The model that was solved.
    alpha, lam : float
        Readout samples over input dimension, and ridge penalty.
    samples : float
        Number n of readout samples of a given layer or of given features, of which alpha is NaN.
    test_error : float
        E (E[y|x] - prediction)^2, of given features on labels, of a target "classes:..." on the
        label of the component itself, Bayes noise included; NaN if not converged.  With labels
        flipped with probability q, E[y|x] is (1 - 2 q) times the sign.  Eqs. (4.11), (20.5)
    train_error : float
        Mean squared training residual; NaN if not converged.
    loss : Loss
        Loss that the readout minimises, beside the penalty.
    loss_error : float
        Mean loss on new samples, labels with their noise; half the square for the square loss.
    train_loss : float
        Mean loss on the training samples.
    classification_error : float
        P(y f < 0) + P(f = 0) / 2 on new samples where labels are +-1, of several classes the share
        of new samples whose largest output is another; NaN elsewhere, or where no rule resolves it.
    converged : bool
        True if residual and quadrature error are within their tolerances.
    status : Status
        End of the solution; ``status.value`` is a sentence.
    residual : float
        Largest relative violation of any of the original equations at this point; of a given layer
        largest change of an unknown in one pass of all equations.
    quadrature_error : float
        Residual on a rule of about half the size, a bound on the error of the rule used.  The
        error of the groups that stand for a continuous readout is ``model.law_error``.  Of a given
        layer largest relative change of an error from coarser strata with fewer Hermite degrees.
    iterations : int
        Evaluations of the saddle-point equations, or passes of those of a given layer.
    overlaps, conjugates : Overlaps, Conjugates
        Overlaps without the leading axis over points; groups in the order of ``model.geometry``,
        where equal ones are merged and empty ones left out.  None of a given layer, which has the
        default of ``nodes`` and ``trained_bias``, too.
    nodes : int
        Size of the quadrature rule.
    trained_bias : float
        The common bias that minimises the training objective; 0 if none is trained.  As the
        bottom of a minimum it is known to about 1e-8, of a loss other than the square to 1e-5,
        and the test error with it.
    readout_variance : float
        Part of the test error that results from the variance of the prediction over the readout's
        samples: the mean of K readouts, each of samples of its own, has 1/K of it.  Row by row
        samples are parts of the same N rows, and it is 0 at n = N.  Readout variance and squared
        norm are known to ten times the tolerance of the errors, or NaN.  All attributes from here
        on are of given layers and features.
    squared_norm : float
        |a|^2 / p of the readout's weights, on average over its samples; the penalty is lam p / 2
        times this in the training objective of (1.2).  NaN of Gaussian strata of a FeatureSample,
        and of several outputs.
    test_error_stderr, classification_error_stderr : float
        Standard errors of both errors over the rows that test, by their scatter from row to row.
        The rows there are to train are not in them: at n far below N samples of as many rows
        scatter up to twice as much.  With more samples than rows, scaled from those of all rows;
        NaN where strata are not rows.
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
    strata, directions : int
        Strata of the last pass, or rows; and special directions, along which these are cut.
    confusion : (C, C) or None
        Shares of the answers, of the rows of each class; classes in their order, two as -1 and
        +1.  Rows sum to 1, and are NaN of a class without inputs.
    row_errors : (2, N) or None
        Of a FeatureSample row by row: test error and classification error of each row, where it
        does not train, the latter NaN without classes; their means are the errors above.  Of two
        tables of the same rows the mean of the differences, and its standard error, say which is
        better.  None where a part of the rows stands for all, of more samples than rows, with
        strata, and where the point is not solved.
    """

    model: Any
    alpha: float = np.nan
    samples: float = np.nan
    lam: float
    test_error: float
    train_error: float
    loss: Loss
    loss_error: float
    train_loss: float
    classification_error: float
    converged: bool
    status: Status
    residual: float
    quadrature_error: float
    iterations: int
    overlaps: Overlaps | Any = None
    conjugates: Conjugates | Any = None
    nodes: int = 0
    trained_bias: float = 0.0
    readout_variance: float = np.nan
    squared_norm: float = np.nan
    test_error_stderr: float = np.nan
    classification_error_stderr: float = np.nan
    degrees_of_freedom: float = np.nan
    degrees_of_freedom_2: float = np.nan
    kappa: float = np.nan
    residual_degrees: float = np.nan
    strata: int = 0
    directions: int = 0
    confusion: Array | None = None
    row_errors: Array | None = None

    @cached_property
    def finite_size_shift(self) -> float:
        """Relative change of the test error, or where labels are +-1 of the classification error,
        from the limit d -> inf to ``dimension`` 1000, or to the model's own: of a network to one of
        that size (docs/theory.md 23), of an sRF to where the overlaps m have their price
        (docs/readout.md).  Of a readout that reuses the step's samples it is the change of a
        readout on fresh ones.

        Computed on first access, in about the time of the point itself, for a network with tables
        in some tenths of a second; NaN where either did not converge, is not covered or takes more
        than some seconds, -0.5 where it is that or further, which the theory does not tell.
        """
        return self._change("finite_size_shift")

    @cached_property
    def network_difference(self) -> float:
        """Relative change of the same error from this sRF to the network after the same step.

        Computed on first access; NaN where either did not converge, or the network's own theory
        does not cover it or takes more than some seconds, 0 for a model that is no sRF of a step.
        docs/network.md
        """
        return self._change("network_difference")

    @cached_property
    def fitted(self) -> dict[str, float]:
        """Means over some tens of fits to random rows, and their standard errors, of a sample:
        ``fitted_test_error`` and ``fitted_train_error`` or, of a loss other than the square,
        ``fitted_loss_error`` and ``fitted_train_loss``, and of classes
        ``fitted_classification_error``, each with ``_stderr``.

        Computed on first access, in about the time of the point itself; empty of other models, NaN
        where all rows train, or more.
        """
        means = fitted_errors(self.model, [self.samples], [self.lam], self.loss)
        return {name: mean.item() for name, mean in means.items()}

    def _change(self, change_name: str) -> float:
        """Relative change of the headline error under one of CHANGES."""
        if self._is_given:
            return 0.0
        with deadline(NETWORK_TIME):
            changed = self._grid(headline_error(self.model)).with_changes([change_name])
            return float(changed.columns[change_name].item())

    def _grid(self, *names: str) -> Grid:
        """The point as a grid, with the columns that are named."""
        point_axes = {name: np.array([value]) for name, value in self.place.items()}
        point_columns = {name: np.array([getattr(self, name)]) for name in names}
        return Grid(self.model, point_axes, [self.model], point_columns, [self.loss])

    @property
    def notes(self) -> list[str]:
        """Sentences on how far this point may be off, and why: the size of a network, an sRF in its
        place, few samples, or more of them than rows; and where alpha may be meant for n."""
        if self._is_given:
            noted = notes_of(self.model, vars(self) | self.fitted)
            return [with_means(note, self.fitted) for note, has_note in noted.items() if has_note]
        point_changes = [(name, getattr(self, name), change) for name, change in CHANGES.items()]
        at_d = of_size(self.model).dimension
        n = [
            f"{name} {shift_text(x, said) if name == 'finite_size_shift' else f'{x:+.0%}{said}'}"
            for name, x, change in point_changes
            for said in [change.said.format(d=at_d)]
            if abs(x) > change.noted
        ]
        has_changes = self.converged and getattr(self, headline_error(self.model)) > 0
        unknown = [name for name, x, _ in point_changes if has_changes and np.isnan(x)]
        n += [f"{name} is not known: no answer, or none in time" for name in unknown]
        has_size = self.model.rows is not None and np.isfinite(self.model.dimension)
        with deadline(NETWORK_TIME):
            few_text = few_products_note([self.model], np.array([self.alpha]))
        says_price = n or has_size or not self.loss.is_square
        price_text = price_note(self.model, self.loss) if says_price else ""
        penalty_text = large_penalty_note(self.model.reuse, self.alpha, self.lam)
        of_errors = self._grid("train_error", "test_error").notes_on_errors()
        others = (few_text, *of_errors, price_text, penalty_text, ratio_note(self.alpha))
        return n + [note for note in others if note]

    @property
    def _is_given(self) -> bool:
        """True if the model is a given layer or given features, not a limit."""
        return isinstance(self.model, Given)

    @property
    def settings(self) -> dict[str, Any]:
        """The problem and the point, in plain values; the loss where it is not the square."""
        described = self.model.described if self._is_given else describe_with_step(self.model)
        loss_setting = {} if self.loss.is_square else {"loss": self.loss.name}
        return described | self.place | loss_setting

    @property
    def place(self) -> dict[str, float]:
        """Coordinates of the point: alpha, or samples of what is given, and lam."""
        sample_place = {"samples": self.samples} if self._is_given else {"alpha": self.alpha}
        return sample_place | {"lam": self.lam}

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """The errors at ten times fewer to ten times more samples, of features up to all rows; a
        star at this point, an open square where a note says that it may be off."""
        (sample_axis, value), (_, lam) = self.place.items()
        fewest = max(value / 10, 1.0) if sample_axis == "samples" else value / 10
        sample_rows = len(self.model.labels) if isinstance(self.model, FeatureSample) else np.inf
        most = max(
            value, min(10 * value, sample_rows)
        )  # few rows may be too few for Gaussian strata
        curve_axes: dict[str, Any] = {sample_axis: np.geomspace(fewest, most, 41), "lam": lam}
        error_curve = solve_grid(self.model, **curve_axes, loss=self.loss).dataset(fits=False)
        if self._is_given:  # fits to random rows here alone
            curve_axes[sample_axis] = [value]
            here = solve_grid(self.model, **curve_axes, loss=self.loss).dataset()
            error_curve = with_points(error_curve, here, sample_axis)
        ax = plot_curve(error_curve, ax)
        mark_place(ax, value, getattr(self, error_drawn(error_curve)), setting(sample_axis, value))
        return add_legend(ax)

    def plot_confusion(self, ax: "Axes | None" = None) -> "Axes":
        """The confusion matrix of classes, :func:`replica.plotting.plot_confusion`."""
        return plot_confusion(self, ax)

    def _facts(self) -> dict[str, Any]:
        point_errors: dict[str, Any] = {}
        loss_names = [] if self.loss.is_square else ["loss_error", "train_loss"]
        # outputs are not fitted to labels by losses of the margin
        square_names = [] if self.loss.kind == "margin" else ["test_error", "train_error"]
        for name in ("classification_error", *loss_names, *square_names):
            error, stderr = getattr(self, name), getattr(self, f"{name}_stderr", np.nan)
            if name in column_names(self.model, self.loss):
                point_errors[name] = error if np.isnan(stderr) else f"{error:.6g} +- {stderr:.2g}"
        accuracy = f"residual {self.residual:.1e}, quadrature_error {self.quadrature_error:.1e}"
        point_notes = {"notes": "; ".join(self.notes)} if self.notes else {}
        return point_errors | {"status": f"{self.status.value} ({accuracy})"} | point_notes

    def _rows(self) -> list[dict[str, Any]]:
        point_row = {name: getattr(self, name) for name in column_names(self.model, self.loss)}
        return [self.place | point_row | {"status": self.status.value}]


class AtPoint(Displayed):
    """A result at one ``point``, a Solution."""

    point: Any

    @property
    def settings(self) -> dict[str, Any]:
        """The problem and the point, in plain values."""
        return dict(self.point.settings)


@check_call
def solve(
    model: SpikedRandomFeatures | GradientStep | Given,
    *,
    alpha: float | None = None,
    samples: float | None = None,
    lam: float,
    beta: float | None = None,
    theory: str | None = None,
    loss: Any = "square",
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
    raise_on_failure: bool = False,
) -> Solution:
    """Test error, training error and overlaps at one point.  docs/theory.md 4, 6, 20

    The notes of a given layer or of features, where errors may be off, are logged as warnings.

    Parameters
    ----------
    model : GradientStep, SpikedRandomFeatures, FirstLayer, FeatureSample or FeatureMoments
        A model, step.srf(beta=...) or step.network(beta=...), has its own beta and theory.
    alpha : float
        Readout samples over input dimension, n/d.
    samples : float
        Number n of readout samples, in the place of alpha, of a FirstLayer or FeatureSample.
    lam : float
        Ridge penalty lambda of (1.2), positive.
    beta : float
        Width over input dimension p/d, for a GradientStep.
    theory : {"srf", "network"}
        Theory of a GradientStep: the published one, "srf", unless given.
    loss : str or Loss
        Convex loss of the readout: ridge regression's square unless given, see
        :func:`replica.loss`.
    quadrature_tol : float
        Bound on the estimated relative quadrature error; 1e-10 unless given, 1e-6 for a loss
        other than the square, and for the square where labels are +-1 at random; 1e-5 where
        samples of the step are reused, or 1e-3 if no rule reaches that; 2e-3 of a network at
        its own dimension.  Of a given layer largest relative change of an error from coarser
        strata: 1e-3 unless given.
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
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> point = solve(step, alpha=0.9, lam=0.1, beta=1.0)
    >>> round(point.test_error, 7), round(point.train_error, 7), point.converged
    (0.0425039, 0.0168595, True)
    >>> round(solve(step, alpha=0.9, lam=0.1, beta=1.0, theory="network").test_error, 7)
    0.0416284
    """
    problem: SpikedRandomFeatures | Given = model_of(model, beta, theory, alpha, Given, samples)
    if isinstance(problem, Given):
        solution, _ = solve_layer(problem, alpha, samples, lam, loss, quadrature_tol, time_limit)
        for point_note in solution.notes:
            logging.getLogger(__name__).warning(point_note)
    else:
        alpha, minimised_loss = number("alpha", alpha), as_loss(loss)
        evaluated_point = evaluate(
            problem,
            np.array([alpha]),
            np.array([number("lam", lam)]),
            loss=minimised_loss,
            quadrature_tol=quadrature_tol,
            time_limit=time_limit,
        )
        solution = Solution(
            model=problem,
            alpha=alpha,
            lam=float(lam),
            loss=minimised_loss,
            overlaps=Overlaps(*(overlap[0] for overlap in evaluated_point.overlaps)),
            conjugates=Conjugates(*(overlap[0] for overlap in evaluated_point.conjugates)),
            **{name: getattr(evaluated_point, name).item() for name in COLUMNS},
        )
    if raise_on_failure and not solution.converged:
        place_text = ", ".join(f"{name}={value:g}" for name, value in solution.place.items())
        raise ConvergenceError(
            f"at {place_text}: {solution.status.value} "
            f"(residual {solution.residual:.1e}, quadrature {solution.quadrature_error:.1e})",
            solution,
        )
    return solution


def solve_layer(
    model: Given,
    alpha: Any = None,
    samples: Any = None,
    lam: Any = None,
    loss: Any = "square",
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> tuple[Solution, GivenPoint]:
    """Solution of a given layer, see :func:`replica.solve`, and the point that it is of; notes are
    not logged."""
    samples_name, asked_value = asked(model, alpha, samples)
    readout_samples = samples_of(model, samples_name, np.array([number(samples_name, asked_value)]))
    layer_lam, layer_loss = np.array([number("lam", lam)]), as_loss(loss)
    layer_place = model, readout_samples, layer_lam, layer_loss
    ((_, given_point),) = layer_points(*layer_place, quadrature_tol, time_limit)
    if isinstance(given_point.columns["status"], InvalidArgument):
        raise given_point.columns["status"]
    of_point: dict[str, Any] = given_point.columns | {"confusion": given_point.confusion}
    row_count = len(model.labels) if isinstance(model, FeatureSample) else 0
    if given_point.row_errors is not None and given_point.row_errors[0].size == row_count:
        of_point["row_errors"] = given_point.row_errors
    layer_point = {"samples": readout_samples.item(), "lam": layer_lam.item(), "loss": layer_loss}
    return Solution(model=model, **layer_point, **of_point), given_point
