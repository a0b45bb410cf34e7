"""The ridge penalty and the learning rate with the smallest test error.

The exact test error (4.11) is minimised in log lam, log eta or both, by ``solvers.minima``: a
scan over the whole range, on which every basin shows, and polishing to about ten digits.  The
test error may have several minima; all that were found are reported, the lowest is returned.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from solvers.minima import Minimum, minima
from solvers.results import Array, ConvergenceError, Status

from ..equivalence import table_at
from ..problem import Problem, SpikedRandomFeatures, check_model, check_step, logarithms, positive
from ..saddle_point import ridge
from .search_ranges import ETA_RANGE, ETA_SCAN, LAM_RANGE, LAM_SCAN
from .solution import Solution, evaluate, solve

# Relative difference between the error on the table of the scan and the one solved to its
# tolerance, up to which the scan's minimum is that of the theory: the accuracy of ``solve``.
AGREEMENT_OF_SCAN = 1e-10


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


def optimal_lambda(
    model: SpikedRandomFeatures, *, alpha: float, lam: tuple[float, float] = LAM_RANGE
) -> Optimum:
    """The ridge penalty of the smallest test error.

    Parameters
    ----------
    model : SpikedRandomFeatures
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
    >>> from replica import GradientStep
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> best = optimal_lambda(step.srf(beta=1.0), alpha=1.0)
    >>> round(best.lam, 6), round(best.test_error, 9), best.at_edge
    (0.297901, 0.039607592, ())
    """
    check_model(model)
    (ratio,), penalties = positive("alpha", [alpha]), logarithms("lam", lam, LAM_SCAN)
    return _search(
        lambda level, x: _errors(model, ratio, level)(np.exp(x)),
        [penalties],
        ("lam",),
        lambda best_lam, _: solve(model, alpha=alpha, lam=best_lam),
    )


def optimal_eta(
    step: Problem,
    *,
    alpha: float,
    beta: float | None = None,
    lam: float | None = None,
    eta: tuple[float, float] = ETA_RANGE,
    lam_range: tuple[float, float] = LAM_RANGE,
) -> Optimum:
    """The learning rate of the smallest test error, at a ridge penalty or with the best one.

    Parameters
    ----------
    step : GradientStep, or the network of one
        Its own eta does not matter.
    alpha : float
        Readout samples over input dimension, n/d.
    beta : float
        Width over input dimension p/d, for a GradientStep; a network has its own.
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
    >>> from replica import GradientStep
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=1.0)
    >>> best = optimal_eta(step, alpha=1.0, beta=1.0)
    >>> round(best.eta, 5), round(best.lam, 6), round(best.test_error, 9)
    (4.81835, 0.155212, 0.03030855)
    """
    check_step(step)
    width = step.at_width(beta).beta
    (ratio,) = positive("alpha", [alpha])
    rates = logarithms("eta", eta, ETA_SCAN)
    if lam is None:
        penalties = logarithms("lam_range", lam_range, LAM_SCAN // 2)
    else:
        penalties = np.log(positive("lam", [lam]))

    def model(rate: float) -> SpikedRandomFeatures:
        return step.model(eta=float(rate), beta=width)

    def errors(level: int, x: Array, y: Array = penalties) -> Array:
        rows = [_errors(model(rate), ratio, level)(np.exp(y)) for rate in np.exp(x)]
        return np.array(rows) if lam is None else np.array(rows)[:, 0]

    return _search(
        errors,
        [rates, penalties] if lam is None else [rates],
        ("eta", "lam") if lam is None else ("eta",),
        lambda best_lam, rate: solve(
            model(rate), alpha=alpha, lam=best_lam if lam is None else float(lam)
        ),
    )


def _errors(model: SpikedRandomFeatures, alpha: float, level: int) -> Callable[[Array], Array]:
    """Test errors (P,) of ``model`` as a function of lam (P,); NaN where it did not converge.

    All are solved on the table of that level, without an estimate of its quadrature error.
    """
    if _is_evaluated(model):
        return lambda lam: evaluate(model, np.full(lam.size, alpha), lam).points.errors.test
    table = table_at(model, level)
    assert table is not None

    def at(lam: Array) -> Array:
        points = ridge.solve_points(table, np.full(lam.size, alpha), lam)
        return np.where(points.status == Status.CONVERGED, points.errors.test, np.nan)

    return at


def _is_evaluated(model: SpikedRandomFeatures) -> bool:
    """Whether each point of the scan is left to ``evaluate``, which chooses its table: where a bias
    is trained, or labels are +-1 at random, which ridge regression's equations do not cover."""
    return model.train_bias or model.labels.channel


def _search(
    errors: Callable[..., Array],
    axes: list[Array],
    names: tuple[str, ...],
    point: Callable[[float, float], Solution],
) -> Optimum:
    """Minimise ``errors(level, *axes)``, on finer tables until the lowest point is resolved."""
    for level in itertools.count(1):
        optimum = _optimum(minima(partial(errors, level), axes), names, point)
        difference = abs(optimum.minima[0].test_error / optimum.test_error - 1)
        model = optimum.point.model
        final = _is_evaluated(model) or table_at(model, level + 1) is None
        if difference <= AGREEMENT_OF_SCAN or final or not optimum.converged:
            break
    return optimum


def _optimum(
    found: list[Minimum], names: tuple[str, ...], point: Callable[[float, float], Solution]
) -> Optimum:
    """The lowest of the minima ``found`` in the logarithms of ``names``, with the solution
    ``point(lam, eta)`` there."""
    if not found:
        raise ConvergenceError("the equations could be solved nowhere in the range", None)
    local = []
    for minimum in found:
        place = {"lam": np.nan, "eta": np.nan}
        place |= dict(zip(names, np.exp(minimum.place).tolist(), strict=True))
        edge = tuple(names[k] for k in minimum.at_edge)
        local.append(LocalMinimum(place["lam"], place["eta"], minimum.value, edge))
    best = local[0]
    solution = point(best.lam, best.eta)
    return Optimum(
        solution.lam, best.eta, solution.test_error, best.at_edge, tuple(local), solution
    )
