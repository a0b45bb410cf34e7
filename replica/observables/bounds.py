"""Bounds on the test error: the trained network can and cannot learn so much along the spikes.

docs/theory.md 8, [C] Eqs. (26)-(28) and App. E.  For given features, optimised over the ridge
penalty and at every alpha, L <= inf_lam epsilon_g <= U with

    U = E (k - h^2) + min_m E (h - mu_0.m)^2,                                    (8.1)
    L = E (k - h^2) - E |g|^2 + min_{m, theta} E (h - C)^2
                              + min_psi E |g - sum_b mu_1^b psi_b|^2,            (8.2)

with the square of (8.2) completed.  U is reached as lam -> infinity.  With a trained bias both are
minimised over it ([C] Eq. (132)).  Neither depends on alpha, lam or the width.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from solvers.resources import TIME_LIMIT, GivenUp, deadline
from solvers.results import Array, Status

from ..display import Displayed
from ..equivalence import rules, table_at_kappa, tabulate
from ..errors import InvalidArgument, answering
from ..plotting import plot_bounds, plot_functions
from ..problem import (
    Problem,
    SpikedRandomFeatures,
    axis,
    check_fixed_alpha0,
    describe_with_step,
    limits,
    tolerance,
)
from ..steps import model_of
from .bound_fits import BoundFits, best_fits, linear_error
from .evaluate_model import RIDGE_QUADRATURE_TOLERANCE

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


@answering
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
    check_fixed_alpha0(problem)
    problem.refuse_reuse()
    problem.refuse_own_dimension()
    accuracies = tolerance(quadrature_tol), limits(None, time_limit)[1]
    model = model_of(problem, 1.0 if beta is None and problem.schedule else beta, theory)
    if eta is None:
        return bounds_of_model(model, *accuracies)
    if problem.step is None:
        raise InvalidArgument("eta", eta, "left out: an sRF has no learning rate")
    etas = axis("eta", eta)
    each = tuple(bounds_of_model(model.model_at(eta=float(rate)), *accuracies) for rate in etas)
    lower, upper = np.array([(rate_bound.lower, rate_bound.upper) for rate_bound in each]).T
    return BoundsOverEta(etas, lower, upper, each[0].linear, each)


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
