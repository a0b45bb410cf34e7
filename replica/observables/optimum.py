"""The ridge penalty and the learning rate with the smallest test error.

The exact test error (4.11) is minimised in log lam, log eta or both, by ``solvers.minima``: a
scan over the whole range, on which every basin shows, and polishing to about ten digits.  The
test error may have several minima; all that were found are reported, the lowest is returned.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from solvers.minima import Minimum, minima
from solvers.results import Array, ConvergenceError, Status

from ..equivalence.table import table_at
from ..errors import InvalidArgument
from ..problem.srf import FINITE, GradientStep, number
from ..saddle_point import ridge
from ..steps.network import Model, Network
from .solution import Solution, evaluate, positive, solve

LAM = (1e-8, 1e4)
ETA = (1e-2, 1e2)
SCAN = 40  # values of lam scanned: 3 a decade
RESOLVED = 1e-10  # agreement of the scan's table with the one its lowest point needs
ETA_SCAN = 12  # values of eta: 3 a decade


@dataclass(frozen=True)
class LocalMinimum:
    """A local minimum of the test error; ``at_edge`` names the parameters that lie at an end
    of their range, where the error may fall further.  ``eta`` is NaN where it was not varied."""

    lam: float
    eta: float
    test_error: float
    at_edge: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Optimum:
    """The parameters of the smallest test error, and the theory there.

    Attributes
    ----------
    lam, eta : float
        The best ridge penalty and learning rate; eta is NaN where it was not varied.
    test_error : float
        NaN if no point converged.
    at_edge : tuple of str
        Those of "lam" and "eta" that lie at an end of the range searched.
    minima : tuple of LocalMinimum
        All that were found, the lowest first.
    point : Solution
        The theory at the optimum.
    """

    lam: float
    eta: float
    test_error: float
    at_edge: tuple[str, ...]
    minima: tuple[LocalMinimum, ...]
    point: Solution

    @property
    def converged(self) -> bool:
        """Whether the point at the optimum did."""
        return self.point.converged


def optimal_lambda(model: Model, *, alpha: float, lam: tuple[float, float] = LAM) -> Optimum:
    """The ridge penalty of the smallest test error.

    Parameters
    ----------
    model : SpikedRandomFeatures or Network
    alpha : float
        Readout samples over input dimension, n/d.
    lam : (float, float)
        The range searched, on a logarithmic scale.

    Raises
    ------
    InvalidArgument
        If an argument is out of range.
    ConvergenceError
        If the equations could be solved nowhere in the range.

    Examples
    --------
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> best = optimal_lambda(step.srf(beta=1.0), alpha=1.0)
    >>> round(best.lam, 6), round(best.test_error, 9), best.at_edge
    (0.297901, 0.039607592, ())
    """
    if not isinstance(model, Model):
        raise InvalidArgument("model", model, "a model, such as step.srf(beta=1)")
    (ratio,), axis = positive("alpha", [alpha]), log_axis("lam", lam, SCAN)
    return _search(
        lambda level, x: _errors(model, ratio, level)(np.exp(x)),
        [axis],
        ("lam",),
        lambda found, _: solve(model, alpha=alpha, lam=found),
    )


def optimal_eta(
    step: GradientStep | Network,
    *,
    alpha: float,
    beta: float | None = None,
    lam: float | None = None,
    eta: tuple[float, float] = ETA,
    lam_range: tuple[float, float] = LAM,
) -> Optimum:
    """The learning rate of the smallest test error, at a ridge penalty or with the best one.

    Parameters
    ----------
    step : GradientStep or Network
        Its own eta does not matter.
    alpha : float
        Readout samples over input dimension, n/d.
    beta : float
        Width over input dimension p/d, for a GradientStep; a Network has its own.
    lam : float
        The ridge penalty; where absent, it is optimised together with eta.
    eta, lam_range : (float, float)
        The ranges searched, on logarithmic scales.

    Raises
    ------
    InvalidArgument
        If an argument is out of range.
    ConvergenceError
        If the equations could be solved nowhere in the range.

    Examples
    --------
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=1.0)
    >>> best = optimal_eta(step, alpha=1.0, beta=1.0)
    >>> round(best.eta, 5), round(best.lam, 6), round(best.test_error, 9)
    (4.81835, 0.155212, 0.03030855)
    """
    if not isinstance(step, GradientStep | Network):
        raise InvalidArgument("step", step, "a GradientStep or the Network of one")
    if (beta is None) == isinstance(step, GradientStep):
        raise InvalidArgument("beta", beta, "given with a GradientStep (p/d), and only then")
    (ratio,) = positive("alpha", [alpha])
    rates = log_axis("eta", eta, ETA_SCAN)
    if lam is None:
        penalties = log_axis("lam_range", lam_range, SCAN // 2)
    else:
        penalties = np.log(positive("lam", [lam]))

    def model(rate: float) -> Model:
        found = with_rate(step, float(rate))
        return found if isinstance(found, Network) else found.srf(beta=cast(float, beta))

    def errors(level: int, x: Array, y: Array = penalties) -> Array:
        rows = [_errors(model(rate), ratio, level)(np.exp(y)) for rate in np.exp(x)]
        return np.array(rows) if lam is None else np.array(rows)[:, 0]

    return _search(
        errors,
        [rates, penalties] if lam is None else [rates],
        ("eta", "lam") if lam is None else ("eta",),
        lambda found, rate: solve(
            model(rate), alpha=alpha, lam=found if lam is None else float(lam)
        ),
    )


def with_rate(problem: GradientStep | Network, eta: float) -> GradientStep | Network:
    """``problem`` with another learning rate."""
    if isinstance(problem, Network):
        return replace(problem, step=replace(problem.step, eta=eta))
    return replace(problem, eta=eta)


def log_axis(name: str, limits: tuple[float, float], count: int) -> Array:
    """Logarithms of ``count`` values from the first of ``limits`` to the second.

    Raises
    ------
    InvalidArgument
    """
    allowed = "two positive numbers, the smaller first"
    try:
        low, high = limits
    except (TypeError, ValueError):
        raise InvalidArgument(name, limits, allowed) from None
    low = number(name, low, 0, FINITE, allowed, open_low=True)
    high = number(name, high, low, FINITE, allowed, open_low=True)
    return np.linspace(np.log(low), np.log(high), count)


def _errors(model: Model, alpha: float, level: int) -> Callable[[Array], Array]:
    """Test errors of ``model`` as a function of lam (P,); NaN where it did not converge.

    On one table: the scan is spared the estimate of the quadrature error.
    """
    if model.train_bias or model.channel:
        return lambda lam: evaluate(model, np.full(lam.size, alpha), lam).points.errors.test
    table = table_at(model, level)
    assert table is not None

    def at(lam: Array) -> Array:
        points = ridge.solve_points(table, np.full(lam.size, alpha), lam)
        return np.where(points.status == Status.CONVERGED, points.errors.test, np.nan)

    return at


def _search(
    errors: Callable[..., Array],
    axes: list[Array],
    names: tuple[str, ...],
    point: Callable[[float, float], Solution],
) -> Optimum:
    """Minimise ``errors(level, *axes)``, on finer tables until the lowest point is resolved."""
    for level in itertools.count(1):
        optimum = _optimum(minima(partial(errors, level), axes), names, point)
        resolved = abs(optimum.minima[0].test_error / optimum.test_error - 1) <= RESOLVED
        model = optimum.point.model
        finer = table_at(model, level + 1)
        judged = model.train_bias or model.channel  # by ``evaluate``, at every point
        if resolved or finer is None or judged or not optimum.converged:
            break
    return optimum


def _optimum(
    found: list[Minimum], names: tuple[str, ...], point: Callable[[float, float], Solution]
) -> Optimum:
    """The lowest of the minima found in the logarithms of ``names``."""
    if not found:
        raise ConvergenceError("the equations could be solved nowhere in the range", None)
    local = []
    for one in found:
        place = {"lam": np.nan, "eta": np.nan}
        place |= dict(zip(names, np.exp(one.place).tolist(), strict=True))
        edge = tuple(names[k] for k in one.at_edge)
        local.append(LocalMinimum(place["lam"], place["eta"], one.value, edge))
    best = local[0]
    solution = point(best.lam, best.eta)
    return Optimum(
        solution.lam, best.eta, solution.test_error, best.at_edge, tuple(local), solution
    )
