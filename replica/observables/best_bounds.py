"""The bounds on the test error at the learning rate that makes them smallest.  Eq. (8.3)"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.minima import minima
from solvers.resources import TIME_LIMIT, check_time, deadline
from solvers.results import ConvergenceError

from ..display import Displayed
from ..errors import answering
from ..problem import Problem, check_fixed_alpha0, check_step, limits, logarithms, tolerance
from ..steps import model_of
from .bounds import Bounds, bounds_of_model
from .evaluate_model import RIDGE_QUADRATURE_TOLERANCE
from .optimum import ETA_RANGE, ETA_SCAN


@dataclass(frozen=True, eq=False, repr=False)
class BestBounds(Displayed):
    """Bounds optimised over the learning rate, of :func:`replica.best_bounds`.  Eq. (8.3)

    Attributes
    ----------
    lower, upper : float
        min over eta of L and of U.
    eta_lower, eta_upper : float
        Where they are attained.
    edge_lower, edge_upper : bool
        Whether that is an end of the range searched: the minimum may lie beyond.
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


@answering
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
        Its own eta, such as 1, does not matter.
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
    check_fixed_alpha0(step)
    step.refuse_reuse()
    quadrature_tol = tolerance(quadrature_tol)
    model = model_of(step, 1.0 if beta is None and step.schedule else beta, theory)

    def bounds_at(rate: float) -> Bounds:
        rate_bounds = bounds_of_model(model.model_at(eta=rate), quadrature_tol)
        check_time()
        return rate_bounds

    def search_eta(name: str) -> tuple[float, bool, Bounds]:
        """Rate at which the bound ``name`` is lowest, whether at an end of the range, and the
        bounds there."""
        rates = [logarithms("eta", eta, 2 * ETA_SCAN)]
        local = minima(lambda x: np.array([getattr(bounds_at(e), name) for e in np.exp(x)]), rates)
        if not local:
            raise ConvergenceError("no bound could be computed in the range of eta", None)
        best_rate = float(np.exp(local[0].argmin[0]))
        return best_rate, bool(local[0].at_edge), bounds_at(best_rate)

    with deadline(limits(None, time_limit)[1]):
        eta_lower, edge_lower, at_lower = search_eta("lower")
        eta_upper, edge_upper, at_upper = search_eta("upper")
    rates, bound_edges = (eta_lower, eta_upper), (edge_lower, edge_upper)
    return BestBounds(at_lower.lower, at_upper.upper, *rates, *bound_edges, at_lower, at_upper)
