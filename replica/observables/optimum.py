"""The ridge penalty and the learning rate with the smallest test error.

The exact test error (4.11) is minimised in log lam, log eta or both, by ``solvers.minima``: a
scan over the whole range, on which every basin shows, and polishing to about ten digits.  The
test error may have several minima; all that were found are reported, the lowest is returned.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.minima import Minimum, minima
from solvers.resources import TIME_LIMIT, GivenUp, check_time, deadline
from solvers.results import Array, ConvergenceError, Status

from ..convex import loss as as_loss
from ..display import reasons_text
from ..errors import InvalidArgument
from ..given import FeatureSample, FirstLayer, Given
from ..plotting import AT_END, add_legend, mark_smallest, plot_curve
from ..problem import (
    MAX_NUMBER,
    Problem,
    SpikedRandomFeatures,
    asked,
    check_call,
    check_step,
    number,
)
from ..steps import GradientStep, model_of
from .evaluate_model import evaluate
from .grid import solve_grid
from .readout_curves import BEST_AT_END
from .solution import AtPoint, solve, solve_layer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Ends of the ranges searched unless others are given, on logarithmic scales.  An optimum at an end
# is reported as such, so that a range too small for a problem shows.
LAM_RANGE, ETA_RANGE = (1e-8, 1e4), (1e-2, 1e2)
SEARCHED_RANGES = {"lam": LAM_RANGE, "eta": ETA_RANGE}
LAM_SCAN, ETA_SCAN = 40, 12  # values scanned: 3 a decade, to see every basin


@dataclass(frozen=True)
class LocalMinimum:
    """A local minimum of the test error; ``at_edge`` names the parameters that lie at an end
    of their range, or beside values at which the equations could not be solved: there the error
    may fall further.  ``eta`` is NaN where it was not varied."""

    lam: float
    eta: float
    test_error: float
    at_edge: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Optimum(AtPoint):
    """The parameters of the smallest test error, and the theory there.

    Returned by :func:`replica.optimal_lambda` and :func:`replica.optimal_eta`.

    Attributes
    ----------
    lam, eta : float
        The best ridge penalty and learning rate; eta is NaN where it was not varied.
    test_error : float
        Smallest test error; NaN if no point converged.
    at_edge : tuple of str
        Names among "lam" and "eta" of the parameters at an end of the range searched, or of the
        part of it where the equations could be solved.
    minima : tuple of LocalMinimum
        All minima that were found, the lowest first.
    point : Solution
        The theory at the optimum.
    """

    lam: float
    eta: float
    test_error: float
    at_edge: tuple[str, ...]
    minima: tuple[LocalMinimum, ...]
    point: Any

    @property
    def converged(self) -> bool:
        """True if the point at the optimum did."""
        return self.point.converged

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """The test error around the optimum, along lam or eta or over both; a star at it."""
        searched = [name for name in ("lam", "eta") if np.isfinite(getattr(self.minima[0], name))]
        drawn_grids = {name: getattr(self, name) * np.geomspace(0.01, 100, 41) for name in searched}
        optimum_lam = drawn_grids.pop("lam", self.lam)
        optimum_place = self.point.place | {"lam": optimum_lam}
        error_curve = solve_grid(self.point.model, **optimum_place, grids=drawn_grids).dataset(
            fits=False
        )
        ax = plot_curve(error_curve, ax, error="test_error", train=False)
        if len(searched) == 1:
            edge_note = f",\n{AT_END}" if self.at_edge else ""
            mark_smallest(ax, self.test_error, {searched[0]: getattr(self, searched[0])}, edge_note)
        return add_legend(ax)

    def _facts(self) -> dict[str, Any]:
        best_names = ("lam", "test_error") if np.isnan(self.eta) else ("lam", "eta", "test_error")
        best_values = {name: getattr(self, name) for name in best_names}
        edge_text = f"{', '.join(self.at_edge)}: at an end of the range searched or solved"
        at_edge = {"at_edge": edge_text} if self.at_edge else {}
        of_scale = bool(self.at_edge) and isinstance(self.point.model, FeatureSample)
        optimum_notes = [*self.point.notes, *[BEST_AT_END] * of_scale]
        note_facts = {"notes": "; ".join(optimum_notes)} if optimum_notes else {}
        return best_values | at_edge | {"minima": f"{len(self.minima)} found"} | note_facts

    def _rows(self) -> list[dict[str, Any]]:
        return [asdict(minimum) for minimum in self.minima]


@check_call
def optimal_lambda(
    model: SpikedRandomFeatures | GradientStep | Given,
    *,
    alpha: float | None = None,
    samples: float | None = None,
    lam: tuple[float, float] = LAM_RANGE,
    beta: float | None = None,
    theory: str | None = None,
    loss: Any = "square",
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> Optimum:
    """The ridge penalty of the smallest test error (4.11), or (20.5), of the square loss.

    Of another loss take the smallest loss_error of :func:`replica.learning_curve` over some lam.

    Parameters
    ----------
    model : GradientStep, SpikedRandomFeatures, FirstLayer, FeatureSample or FeatureMoments
        A model, step.srf(beta=...) or step.network(beta=...), has its own beta and theory.
    alpha, samples : float
        As in :func:`replica.solve`; of what is given the best penalty is known to a hundredth where
        it gains 3e-7 of the error, of a FirstLayer 1e-3; elsewhere it may be an end of the range.
    beta : float
        Width over input dimension p/d, for a GradientStep.
    theory : {"srf", "network"}
        Theory of a GradientStep: the published one, "srf", unless given.
    lam : (float, float)
        The range searched, on a logarithmic scale.
    loss : str or Loss
        The square: another is refused, with what to do in its place.
    quadrature_tol : float
        As in :func:`replica.solve`, of the point at the optimum, and of a FirstLayer in the search.
    time_limit : float
        Seconds after which the search is given up: those of a given layer are hundreds where it has
        thousands of neurons.

    Raises
    ------
    InvalidArgument
        If an argument is out of range.
    ConvergenceError
        If the equations could be solved nowhere in the range, or not in time.

    Examples
    --------
    >>> from replica import GradientStep, optimal_lambda
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> best = optimal_lambda(step, alpha=1.0, beta=1.0)
    >>> round(best.lam, 6), round(best.test_error, 9), best.at_edge
    (0.297901, 0.039607592, ())
    """
    problem: Any = model_of(model, beta, theory, alpha, Given, samples)
    of_square(loss)
    log_lam = logarithms("lam", lam, LAM_SCAN)
    how = {"quadrature_tol": quadrature_tol, "time_limit": time_limit}
    if isinstance(problem, Given):
        number(*asked(problem, alpha, samples))
        with deadline(time_limit):
            return _search_given(problem, {"alpha": alpha, "samples": samples}, log_lam[::3], how)
    alpha = number("alpha", alpha)
    with deadline(time_limit):
        return _search(lambda _: problem, alpha, {"lam": log_lam}, how, like=problem)


def of_square(loss: Any) -> None:
    """Refuse a loss, or several, that is not the square."""
    if np.ndim(loss) > 0 or not as_loss(loss).is_square:
        allowed_loss = (
            "the square where the best penalty or rate is searched: of another take the smallest "
            "loss_error of learning_curve over some lam (of replica curve or readout --lam "
            "0.001:10:9:log), or replica.sklearn.ProbeCurve(loss=...)"
        )
        raise InvalidArgument("loss", getattr(loss, "name", loss), allowed_loss)


def _search_given(model: Given, at: dict[str, Any], axis: Array, how: dict[str, Any]) -> Optimum:
    """The lowest test error of what is given over logarithms of lam.  Errors of a layer are smooth
    to their tolerance alone, which hides a shallower basin.  Of classes it takes no covariances of
    outputs."""
    searched_model, search_tol, search_rtol = model, how["quadrature_tol"], 1e-3
    unsolved: list[Any] = []
    if not isinstance(model, FirstLayer):  # there are no strata to refine
        search_tol, search_rtol = 2e-4, 3e-7  # errors of rows are smooth to the latter
        if isinstance(model, FeatureSample) and model.by_rows(at["samples"]):
            searched_model = replace(model, classes=() if model.classes else None)

    def search_errors(x: Array) -> Array:
        search_grid = solve_grid(searched_model, lam=np.exp(x), **at, quadrature_tol=search_tol)
        check_time()
        columns = search_grid.columns
        unsolved.extend(columns["status"][~columns["converged"]].tolist())
        return columns["test_error"]

    basins = minima(search_errors, [axis], rtol=search_rtol)
    if not basins:
        why = reasons_text(unsolved)
        raise ConvergenceError(f"the equations could be solved nowhere in the range: {why}", None)
    return _optimum([_local_minimum(basin, ["lam"]) for basin in basins], lambda _: model, at | how)


@check_call
def optimal_eta(
    step: Problem,
    *,
    alpha: float,
    beta: float | None = None,
    theory: str | None = None,
    lam: float | None = None,
    eta: tuple[float, float] = ETA_RANGE,
    lam_range: tuple[float, float] = LAM_RANGE,
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> Optimum:
    """The learning rate of the smallest test error, at a ridge penalty or with the best one.

    Parameters
    ----------
    step : GradientStep, or a model made by one
        The eta of the step, such as 1, does not matter.
    alpha : float
        Readout samples over input dimension, n/d.
    beta, theory
        As in :func:`replica.solve`.
    lam : float
        The ridge penalty; where absent, it is optimised together with eta.
    eta, lam_range : (float, float)
        The ranges searched, on logarithmic scales.
    quadrature_tol : float
        As in :func:`replica.solve`, of the point at the optimum.
    time_limit : float
        Seconds after which the search is given up.

    Raises
    ------
    InvalidArgument
        If an argument is out of range.
    ConvergenceError
        If the equations could be solved nowhere in the range, or not in time.

    Examples
    --------
    >>> from replica import GradientStep, optimal_eta
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=1.0)
    >>> best = optimal_eta(step, alpha=1.0, beta=1.0)
    >>> round(best.eta, 5), round(best.lam, 6), round(best.test_error, 9)
    (4.81835, 0.155212, 0.03030855)
    """
    check_step(step)
    step_model = model_of(step, beta, theory)
    log_axes = {"eta": logarithms("eta", eta, ETA_SCAN)}
    if lam is None:
        log_axes["lam"] = logarithms("lam_range", lam_range, LAM_SCAN // 2)
    point_options = {"quadrature_tol": quadrature_tol, "time_limit": time_limit}
    with deadline(time_limit):
        rated = lambda rate: model_of(step_model.model_at(eta=rate), alpha=alpha)  # noqa: E731
        return _search(rated, alpha, log_axes, point_options, lam, like=step_model)


def _search(
    model: Callable[[float], SpikedRandomFeatures],
    alpha: float,
    axes: dict[str, Array],
    point_options: dict[str, Any],
    lam: float | None = None,
    *,
    like: SpikedRandomFeatures,
) -> Optimum:
    """The lowest test error of ``model(eta)`` over the logarithms ``axes`` of lam and eta, or of
    one of them, which is solved with ``point_options``.  All models are ``like`` one, but for the
    rate."""
    number("alpha", alpha)
    fixed_logs = {"eta": np.full(1, np.nan)}  # in logarithms; that of no rate is never looked at
    if lam is not None:
        fixed_logs["lam"] = np.log([number("lam", lam)])

    def search_errors(tol: float | None, *varied: Array) -> Array:
        check_time()
        search_logs = fixed_logs | dict(zip(axes, varied, strict=True))
        rates, penalties = np.exp(search_logs["eta"]).tolist(), np.exp(search_logs["lam"])
        alphas = np.full(penalties.size, float(alpha))
        searched_points = (evaluate(model(x), alphas, penalties, quadrature_tol=tol) for x in rates)
        return np.reshape([point.test_error for point in searched_points], [x.size for x in varied])

    # Relative tolerances of the error at the minimum: of its place on the tables searched, and
    # between these and ``solve``.  Points on reused samples, and of networks at their own
    # dimension, take a hundred times as long: their minimum is searched to 1e-3 of its error.
    is_slow_search = like.reuse > 0 or np.isfinite(like.own_dimension)
    search_rtol, error_change = (1e-4, 1e-3) if is_slow_search else (1e-10, 1e-10)
    # on first tables alone, unless a bias is trained or labels are +-1 at random; then on those
    # that resolve each point
    for tol in (None,) if like.train_bias or like.labels.channel else (np.inf, None):
        basins = minima(partial(search_errors, tol), list(axes.values()), rtol=search_rtol)
        local_minima = [_local_minimum(basin, [*axes]) for basin in basins]
        best_optimum = _optimum(local_minima, model, {"alpha": alpha} | point_options, lam)
        optimum_change = abs(local_minima[0].test_error - best_optimum.test_error)
        if optimum_change <= error_change * best_optimum.test_error or not best_optimum.converged:
            break
    return best_optimum


def _local_minimum(basin: Minimum, names: Sequence[str]) -> LocalMinimum:
    """A minimum over logarithms of the parameters of these ``names``."""
    best_values = zip(names, np.exp(basin.argmin), strict=True)
    parameters = {"lam": np.nan, "eta": np.nan} | dict(best_values)
    at_edge = tuple(names[k] for k in basin.at_edge)
    return LocalMinimum(float(parameters["lam"]), float(parameters["eta"]), basin.value, at_edge)


def _optimum(
    basins: Sequence[LocalMinimum],
    model: Callable[[float], Any],
    at: dict[str, Any],
    lam: float | None = None,
) -> Optimum:
    """The theory of ``model(eta)`` at the lowest of the ``basins``, or at ``lam``, before the
    deadline."""
    if not basins:
        raise ConvergenceError("the equations could be solved nowhere in the range", None)
    lowest = basins[0]
    of, best_lam = model(lowest.eta), lowest.lam if lam is None else lam
    is_given = isinstance(of, Given)
    point = solve_layer(of, **at, lam=best_lam)[0] if is_given else solve(of, **at, lam=best_lam)
    if point.status is Status.TIME:
        raise GivenUp(Status.TIME)
    return Optimum(point.lam, lowest.eta, point.test_error, lowest.at_edge, tuple(basins), point)


def logarithms(name: str, limits: tuple[float, float], count: int) -> Array:
    """Logarithms of ``count`` values, evenly spaced in them, between two ``limits``."""
    allowed_limits = "two positive numbers, the smaller first"
    try:
        low_limit, high_limit = limits
        low_limit = number(name, low_limit, 0, MAX_NUMBER, allowed_limits, open_low=True)
        high_limit = number(name, high_limit, low_limit, MAX_NUMBER, allowed_limits, open_low=True)
    except (TypeError, ValueError):  # InvalidArgument is one, too: the limits are one argument
        raise InvalidArgument(name, limits, allowed_limits) from None
    return np.linspace(np.log(low_limit), np.log(high_limit), count)
