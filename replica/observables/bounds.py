"""Bounds on the test error: the trained network can and cannot learn so much along the spikes.

docs/theory.md 8, [C] Eqs. (26)-(28) and App. E.  For given features, optimised over the ridge
penalty and at every alpha, L <= inf_lam epsilon_g <= U with

    U = E (k - h^2) + min_m E (h - mu_0.m)^2,                                    (8.1)
    L = E (k - h^2) - E |g|^2 + min_{m, theta} E (h - C)^2
                              + min_psi E |g - sum_b mu_1^b psi_b|^2,            (8.2)

with the square of (8.2) completed.  U is reached as lam -> infinity.  With a trained bias both are
minimised over it ([C] Eq. (132)).  Neither depends on alpha, lam or the width.  The functions that
attain them are weighted least squares of the target on all that the output may be made of.  Over
the learning rate they are smallest at (8.3).
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from solvers.linear import least_squares
from solvers.minima import lowest_minimum, minima
from solvers.resources import TIME_LIMIT, GivenUp, check_time, deadline
from solvers.results import Array, ConvergenceError, Status
from solvers.successive_refinement import settle

from ..convex import BIAS_SCAN
from ..display import Displayed
from ..equivalence import Table, rules, table_at_kappa, tables, tabulate
from ..errors import InvalidArgument
from ..plotting import plot_bounds, plot_functions
from ..problem import (
    LabelLaw,
    Problem,
    SpikedRandomFeatures,
    axis,
    check_call,
    check_step,
    describe_with_step,
    refuse_options,
)
from ..saddle_point import ridge
from ..steps import model_of
from .evaluate_model import RIDGE_QUADRATURE_TOLERANCE
from .optimum import ETA_RANGE, ETA_SCAN, logarithms

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Bounds(Displayed):
    """Bounds on the test error at the best ridge penalty, of :func:`replica.bounds`.

    Attributes
    ----------
    model : SpikedRandomFeatures
        The model bounded; of a step, of width beta = 1, on which the bounds do not depend.
    lower, upper : float
        L of (8.2) and U of (8.1), on noiseless targets; NaN if not converged.
    linear : float
        Error of the best linear predictor of the inputs, not of these features, which may do worse;
        kernels and random features of this scaling do not surpass it.  With a constant where the
        network can fit one.
    coefficients : (G + A K,) or (G + 1 + A K,)
        m (last, the output intercept where one is trained) and theta at the lower bound.
    offsets : (G,) or (G + 1,)
        m at the upper bound.
    psi : (A, K')
        Overlap with the rest of the target's directions at the lower bound.
    bias_lower, bias_upper : float
        The trained bias at either bound; 0 if none is trained.
    quadrature_error : float
        Change of either bound on a rule of about half the size, relative to E sigma_*^2.
    status : Status
    """

    model: SpikedRandomFeatures
    lower: float
    upper: float
    linear: float
    coefficients: Array
    offsets: Array
    psi: Array
    bias_lower: float
    bias_upper: float
    quadrature_error: float
    status: Status

    @property
    def converged(self) -> bool:
        """True if the quadrature error met its tolerance and any trained bias was found."""
        return self.status == Status.CONVERGED

    def lower_function(self, kappa: ArrayLike) -> Array:
        """C(kappa) that attains the lower bound, at kappa (...) or, with K spikes, (K, ...)."""
        lower_m, lower_theta = np.split(self.coefficients, [len(self.offsets)])
        lower_special = np.concatenate([lower_theta.reshape(len(self.psi), -1), self.psi], axis=1)
        return self._combine(np.append(lower_m, lower_special), self.bias_lower, kappa)

    def upper_function(self, kappa: ArrayLike) -> Array:
        """mu_0.m that attains the upper bound, likewise: the network of a large penalty."""
        return self._combine(self.offsets, self.bias_upper, kappa)

    def target_function(self, kappa: ArrayLike) -> Array:
        """h(kappa), the conditional mean of the target that both approximate, likewise."""
        kappa_table, averaged = table_at_kappa(self.model, kappa)
        return averaged(kappa_table.h)

    @property
    def settings(self) -> dict[str, Any]:
        """The problem in plain values, without the width."""
        return {
            name: value for name, value in describe_with_step(self.model).items() if name != "beta"
        }

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """The functions that attain both bounds, :func:`replica.plotting.plot_functions`."""
        return plot_functions(self, ax)

    def _facts(self) -> dict[str, Any]:
        bound_status = f"{self.status.value} (quadrature_error {self.quadrature_error:.1e})"
        return {"lower": self.lower, "upper": self.upper, "linear": _linear_text(self.linear)} | {
            "status": bound_status
        }

    def _rows(self) -> list[dict[str, Any]]:
        bound_names = ("lower", "upper", "linear", "bias_lower", "bias_upper", "converged")
        return [{name: getattr(self, name) for name in bound_names}]

    def _combine(self, bound_weights: Array, bias: float, kappa: ArrayLike) -> Array:
        """The mean regressors at kappa, as many as ``bound_weights`` (n,), weighted."""
        kappa_table, averaged = table_at_kappa(self.model.with_bias(bias), kappa)
        mean_regressors = kappa_table.regressors[: len(bound_weights), : kappa_table.weights.size]
        return averaged(bound_weights @ mean_regressors)


@dataclass(frozen=True, eq=False, repr=False)
class BoundsOverEta(Displayed):
    """Bounds at several learning rates: ``eta``, ``lower``, ``upper`` (n,), the rate's own
    ``each`` (n Bounds), and the best ``linear`` predictor's error."""

    eta: Array
    lower: Array
    upper: Array
    linear: float
    each: tuple[Bounds, ...]

    @property
    def converged(self) -> bool:
        """True if every bound did."""
        return all(bounds.converged for bounds in self.each)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the problem that all rates share, in plain values."""
        first_rate, last_rate = self.each[0].settings, self.each[-1].settings
        return {key: text for key, text in first_rate.items() if last_rate.get(key) == text}

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw both bounds against the rate, :func:`replica.plotting.plot_bounds`."""
        return plot_bounds(self._rows(), self.linear, ax=ax, described=self.settings)

    def _facts(self) -> dict[str, Any]:
        bound_facts = {bound: getattr(self, bound) for bound in ("eta", "lower", "upper")}
        return bound_facts | {"linear": _linear_text(self.linear)}

    def _rows(self) -> list[dict[str, Any]]:
        bound_rows = zip(self.eta.tolist(), self.lower.tolist(), self.upper.tolist(), strict=True)
        return [{"eta": eta, "lower": low, "upper": up} for eta, low, up in bound_rows]


def _linear_text(linear: float) -> str:
    """Error of the best linear predictor, with the variables in which it is linear."""
    return f"{linear:.6g} (the best linear predictor of the inputs, not of these features)"


@dataclass(frozen=True, eq=False, repr=False)
class BestBounds(Displayed):
    """Bounds optimised over the learning rate, of :func:`replica.best_bounds`.  Eq. (8.3)

    Attributes
    ----------
    lower, upper : float
        min over eta of L and of U.
    eta_lower, eta_upper : float
        Learning rates at which L and U are smallest.
    edge_lower, edge_upper : bool
        True if that rate is an end of the range searched: the minimum may lie beyond.
    at_lower, at_upper : Bounds
        Both bounds, with their functions, at either rate.
    """

    lower: float
    upper: float
    eta_lower: float
    eta_upper: float
    edge_lower: bool
    edge_upper: bool
    at_lower: Bounds
    at_upper: Bounds

    @property
    def settings(self) -> dict[str, Any]:
        """The problem, in plain values, without the learning rate."""
        return {setting: x for setting, x in self.at_upper.settings.items() if setting != "eta"}

    def _facts(self) -> dict[str, Any]:
        bound_names = ("lower", "eta_lower", "upper", "eta_upper", "edge_lower", "edge_upper")
        return {bound_name: getattr(self, bound_name) for bound_name in bound_names}

    def _rows(self) -> list[dict[str, Any]]:
        return [self._facts()]


@overload
def bounds(
    problem: Problem,
    *,
    eta: None = None,
    beta: float | None = ...,
    theory: str | None = ...,
    quadrature_tol: float = ...,
    time_limit: float = ...,
) -> Bounds: ...


@overload
def bounds(
    problem: Problem,
    *,
    eta: ArrayLike,
    beta: float | None = ...,
    theory: str | None = ...,
    quadrature_tol: float = ...,
    time_limit: float = ...,
) -> BoundsOverEta: ...


@check_call
def bounds(
    problem: Problem,
    *,
    eta: ArrayLike | None = None,
    beta: float | None = None,
    theory: str | None = None,
    quadrature_tol: float = RIDGE_QUADRATURE_TOLERANCE,
    time_limit: float = TIME_LIMIT,
) -> Bounds | BoundsOverEta:
    """Lower and upper bound on the test error at the best penalty.  Eqs. (8.1)-(8.2)

    Parameters
    ----------
    problem : GradientStep or SpikedRandomFeatures
        A model, step.srf(beta=...) or step.network(beta=...), has its own beta and theory.
    eta : array (n,), optional
        Learning rates to take in turn instead of the step's own.
    beta : float
        Width of a GradientStep, on which bounds do not depend; 1 unless given.
    theory : {"srf", "network"}
        Theory of a GradientStep: the published one, "srf", unless given.
    quadrature_tol : float
        Bound on the estimated quadrature error, relative to E sigma_*^2.
    time_limit : float
        Seconds a rate, after which its bounds are flagged.

    Returns
    -------
    Bounds, or BoundsOverEta where ``eta`` is given

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or eta is given without a step.

    Examples
    --------
    >>> from replica import GradientStep, bounds
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> b = bounds(step)
    >>> round(b.lower, 6), round(b.upper, 6), round(b.linear, 6)
    (0.006708, 0.046354, 0.064453)
    """
    accuracies, model = (quadrature_tol, time_limit), _bounded_model(problem, beta, theory)
    if eta is None:
        return bounds_of_model(model, *accuracies)
    if problem.step is None:
        raise InvalidArgument("eta", eta, "left out: an sRF has no learning rate")
    eta_axis = axis("eta", eta)
    each = tuple(bounds_of_model(model.model_at(eta=float(rate)), *accuracies) for rate in eta_axis)
    lower, upper = np.array([(rate_bound.lower, rate_bound.upper) for rate_bound in each]).T
    return BoundsOverEta(eta_axis, lower, upper, each[0].linear, each)


@check_call
def best_bounds(
    step: Problem,
    *,
    eta: tuple[float, float] = ETA_RANGE,
    beta: float | None = None,
    theory: str | None = None,
    quadrature_tol: float = RIDGE_QUADRATURE_TOLERANCE,
    time_limit: float = TIME_LIMIT,
) -> BestBounds:
    """The smallest bounds over the learning rate, by a search over a range.  Eq. (8.3)

    Parameters
    ----------
    step : GradientStep, or a model made by one
        The eta of the step, such as 1, does not matter.
    eta : (float, float)
        The range searched, on a logarithmic scale.
    beta, theory
        As in :func:`bounds`, for a GradientStep.
    quadrature_tol : float
        As in :func:`bounds`.
    time_limit : float
        Seconds after which the search is given up.

    Raises
    ------
    InvalidArgument
    ConvergenceError
        If there is no rate in the range whose bounds could be computed, or not all in time.

    Examples
    --------
    >>> import numpy as np
    >>> from replica import GradientStep, best_bounds
    >>> step = GradientStep(student="erf", target="erf", alpha0=np.inf, eta=1.0)
    >>> best = best_bounds(step)
    >>> best.upper < 1e-8, round(float(best.at_upper.model.r), 4), best.edge_upper
    (True, 1.7321, False)
    """
    check_step(step, "problem")
    model = _bounded_model(step, beta, theory)

    def bounds_at(rate: float) -> Bounds:
        rate_bounds = bounds_of_model(model.model_at(eta=rate), quadrature_tol)
        check_time()
        return rate_bounds

    def search_eta(bound: str) -> tuple[float, bool, Bounds]:
        """Rate at which ``bound`` is lowest, whether at an end of the range, and the
        bounds there."""
        rates = [logarithms("eta", eta, 2 * ETA_SCAN)]
        local = minima(lambda x: np.array([getattr(bounds_at(e), bound) for e in np.exp(x)]), rates)
        if not local:
            raise ConvergenceError("no bound could be computed in the range of eta", None)
        best_rate = float(np.exp(local[0].argmin[0]))
        return best_rate, bool(local[0].at_edge), bounds_at(best_rate)

    with deadline(time_limit):
        eta_lower, edge_lower, at_lower = search_eta("lower")
        eta_upper, edge_upper, at_upper = search_eta("upper")
    rates, bound_edges = (eta_lower, eta_upper), (edge_lower, edge_upper)
    return BestBounds(at_lower.lower, at_upper.upper, *rates, *bound_edges, at_lower, at_upper)


def _bounded_model(problem: Problem, beta: float | None, theory: str | None) -> Any:
    """Model to bound, of width 1 unless given; InvalidArgument for one that bounds do not cover."""
    refuse_options(problem, "alpha0", "reuse", "dimension")
    return model_of(problem, 1.0 if beta is None and problem.schedule else beta, theory)


def bounds_of_model(
    model: SpikedRandomFeatures, quadrature_tol: float, time_limit: float = TIME_LIMIT
) -> Bounds:
    """The bounds of one model, over its trained bias if it has one, in so many seconds."""
    try:
        with deadline(time_limit):
            bound_fits = best_fits(model, quadrature_tol)
    except GivenUp as given_up:
        first_table = tabulate(model, next(rules(model)), target=False)  # with fits that are NaN
        bound_fits = BoundFits.on((first_table, first_table))._replace(status=given_up.status)
    (lower_fit, upper_fit), bound_errors = bound_fits.each, bound_fits.errors()
    lower_theta, psi = np.split(lower_fit.special, [lower_fit.table.loadings.shape[1]], axis=1)
    return Bounds(
        model=model,
        lower=bound_errors[0],
        upper=bound_errors[1],
        linear=linear_error(model),
        coefficients=np.append(lower_fit.m, lower_theta),
        offsets=upper_fit.m,
        psi=psi,
        bias_lower=bound_fits.biases[0],
        bias_upper=bound_fits.biases[1],
        quadrature_error=bound_fits.change,
        status=bound_fits.status,
    )


class Fit(NamedTuple):
    """The function that attains a bound on a table: m (F,), and the overlaps with special
    directions (A, K + K')."""

    table: Table
    m: Array
    special: Array

    @classmethod
    def best(cls, table: Table, count: int) -> "Fit":
        """The best with the first ``count`` regressors alone."""
        root, coefficients = np.sqrt(table.per_part(table.weights)), np.zeros(len(table.regressors))
        regressors = (root * table.regressors[:count]).T
        coefficients[:count] = least_squares(regressors[None], (root * table.target_parts)[None])[0]
        m, special = np.split(coefficients, [len(table.offsets)])
        return cls(table, m, special.reshape(len(table.mu1), -1))

    def error(self, table: Table | None = None) -> float:
        """The test error by the moments of another table, or of its own.  Eqs. (8.1)-(8.2)"""
        error_table = self.table if table is None else table
        conditional = ridge.conditional_error(error_table, self.m[None], self.special[None])[1][0]
        return float(error_table.weights @ conditional - error_table.noise)


class BoundFits(NamedTuple):
    """Functions that attain the lower and the upper bound, ``each`` with its bias added to all
    neurons, known to a ``change`` relative to E y^2."""

    each: tuple[Fit, Fit]
    biases: tuple[float, float] = (0.0, 0.0)
    change: float = np.inf
    status: Status = Status.QUADRATURE

    @classmethod
    def on(cls, tables: tuple[Table, Table]) -> "BoundFits":
        """Fits on the table of either, the upper one without theta and psi.  Eqs. (8.1)-(8.2)"""
        lower, upper = tables
        return cls((Fit.best(lower, len(lower.regressors)), Fit.best(upper, len(upper.offsets))))

    def errors(self) -> tuple[float, float]:
        """The lower and the upper bound; NaN unless they are known."""
        if self.status is not Status.CONVERGED:
            return np.nan, np.nan
        return self.each[0].error(), self.each[1].error()


def best_fits(model: SpikedRandomFeatures, quadrature_tol: float) -> BoundFits:
    """Functions that attain the bounds of a model, at the best biases if one is trained."""
    if not model.train_bias:
        return _fits_at_biases(model, (0.0, 0.0), quadrature_tol)

    power = LabelLaw(model.labels.mean).averages(model.inputs).power

    @cache
    def errors(bias: float) -> Array:
        return np.array(_fits_at_biases(model, (bias, bias), quadrature_tol).errors())

    def with_slopes(bias: float) -> Array:
        """The two bounds plus E y^2 (row 0), and their slopes in the bias (row 1)."""
        # The difference leaves 1e-8 of the bound's third derivative, and rounding 1e-12; the bound
        # is flat to the square of both.
        h = 1e-4
        return np.array([errors(bias) + power, (errors(bias + h) - errors(bias - h)) / (2 * h)])

    bias_scan = np.array([with_slopes(float(bias)) for bias in BIAS_SCAN])

    def best_bias(i: int) -> float:
        scanned_bounds = bias_scan[..., i].T
        return lowest_minimum(lambda b: with_slopes(b)[:, i], BIAS_SCAN, *scanned_bounds, xtol=1e-8)

    best_biases = best_bias(0), best_bias(1)
    if np.isnan(best_biases).any():
        return _fits_at_biases(model, (0.0, 0.0), quadrature_tol)._replace(status=Status.AT_EDGE)
    return _fits_at_biases(model, best_biases, quadrature_tol)


def _fits_at_biases(
    model: SpikedRandomFeatures, biases: tuple[float, float], quadrature_tol: float
) -> BoundFits:
    """Functions that attain the bounds at given biases, on tables of growing size.

    A function is fitted on the finer of two tables, and its error measured on both: the
    difference, relative to E y^2, estimates the quadrature error.
    """
    check_time()

    def relative_change(coarse: BoundFits, fine: BoundFits) -> float:
        fit_pairs = zip(coarse.each, fine.each, strict=True)
        bound_changes = [f.error() - f.error(c.table) for c, f in fit_pairs]
        label_power = fine.each[0].table.weights @ fine.each[0].table.power
        return float(np.abs(bound_changes).max() / (label_power or 1.0))

    pairs = (tables(model.with_bias(bias)) for bias in biases)
    # as far as there are both
    settled_fits = settle(zip(*pairs, strict=False), BoundFits.on, relative_change, quadrature_tol)
    fit_status = Status.CONVERGED if settled_fits.converged else Status.QUADRATURE
    return settled_fits.value._replace(biases=biases, change=settled_fits.change, status=fit_status)


def linear_error(model: SpikedRandomFeatures) -> float:
    """E sigma_*^2 - (E sigma_*)^2 - |C_1|^2, of N(0, I), with the constant kept where none can be
    fitted: an odd student without biases and intercept.  docs/theory.md 8"""
    target_law = LabelLaw(model.labels.mean).averages(model.inputs)
    h0 = model.student.moments(model.geometry.bias, np.ones_like(model.geometry.bias)).mean
    has_constant = model.intercept or model.train_bias or bool(np.abs(h0).max() > 1e-12)
    # of the coordinates, with the constant first where there is one
    linear_terms = len(target_law.first) + 1
    gram = np.empty((linear_terms, linear_terms))
    gram[0], gram[1:, 0], gram[1:, 1:] = 1.0, target_law.inputs, target_law.second
    gram[0, 1:], C_1 = target_law.inputs, np.append(target_law.mean, target_law.first)
    terms = slice(None if has_constant else 1, None)
    return float(target_law.power - C_1[terms] @ np.linalg.pinv(gram[terms, terms]) @ C_1[terms])
