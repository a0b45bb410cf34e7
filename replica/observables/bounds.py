"""What the trained network can and cannot learn along the spikes: bounds on its test error.

docs/theory.md 8, [C] Eqs. (26)-(28) and App. E.  For given features, optimised over the ridge
penalty and at every alpha, L <= inf_lam epsilon_g <= U with

    U = E (k - h^2) + min_m E (h - mu_0.m)^2,                                    (8.1)
    L = E (k - h^2) - E |g|^2 + min_{m, theta} E (h - C)^2
                              + min_psi E |g - sum_b mu_1^b psi_b|^2,            (8.2)

(8.2) with its square completed: weighted least squares of h and g on the columns of the table.
U is reached as lam -> infinity.  With a trained bias both are minimised over it ([C] Eq. (132)),
and over the learning rate in ``best_bounds`` (8.3).  Neither depends on alpha, lam or the width.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from solvers.linear import least_squares
from solvers.minima import minima
from solvers.results import Array, ConvergenceError, Status
from solvers.settle import settle

from ..equivalence import Table, at_points, table_at
from ..problem import (
    LabelLaw,
    Problem,
    SpikedRandomFeatures,
    axis,
    check_problem,
    check_step,
    logarithms,
)
from .evaluate import QUADRATURE_TOLERANCE
from .optimum import ETA, ETA_SCAN
from .trained_bias import RANGE, SCAN


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds on the test error at the best ridge penalty.

    Attributes
    ----------
    model : SpikedRandomFeatures
        With the best bias of the lower bound in it, where one is trained.
    lower, upper : float
        L of (8.2) and U of (8.1), on noiseless targets; NaN if not converged.
    linear : float
        Error of the best linear predictor, which kernels and random features of this scaling
        do not surpass; with a constant where the network can fit one.
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
        """Whether the quadrature error met its tolerance and any trained bias was found."""
        return self.status == Status.CONVERGED

    def lower_function(self, kappa: ArrayLike) -> Array:
        """C(kappa) that attains the lower bound, at kappa (...) or, with K spikes, (K, ...)."""
        return self._combine(self.coefficients, self.bias_lower, kappa)

    def upper_function(self, kappa: ArrayLike) -> Array:
        """mu_0.m that attains the upper bound, likewise: the network of a large penalty."""
        return self._combine(self.offsets, self.bias_upper, kappa)

    def target_function(self, kappa: ArrayLike) -> Array:
        """h(kappa), the conditional mean of the target that both approximate, likewise."""
        table, shape = at_points(self.model, kappa)
        return table.h.reshape(shape)

    def _combine(self, weights: Array, bias: float, kappa: ArrayLike) -> Array:
        table, shape = at_points(self.model.with_bias(bias), kappa)
        return (weights @ table.regressors[: len(weights)]).reshape(shape)


@dataclass(frozen=True, eq=False)
class BoundsOverEta:
    """Bounds at several learning rates: ``eta``, ``lower``, ``upper`` (n,), the rate's own
    ``each`` (n Bounds), and the best ``linear`` predictor's error."""

    eta: Array
    lower: Array
    upper: Array
    linear: float
    each: tuple[Bounds, ...]

    @property
    def converged(self) -> bool:
        """Whether all of them did."""
        return all(one.converged for one in self.each)


@dataclass(frozen=True, eq=False)
class BestBounds:
    """Bounds optimised over the learning rate.  Eq. (8.3)

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


@overload
def bounds(problem: Problem, *, eta: None = None, quadrature_tol: float = ...) -> Bounds: ...


@overload
def bounds(problem: Problem, *, eta: ArrayLike, quadrature_tol: float = ...) -> BoundsOverEta: ...


def bounds(
    problem: Problem,
    *,
    eta: ArrayLike | None = None,
    quadrature_tol: float = QUADRATURE_TOLERANCE,
) -> Bounds | BoundsOverEta:
    """Lower and upper bound on the test error at the best penalty.  Eqs. (8.1)-(8.2)

    Parameters
    ----------
    problem : SpikedRandomFeatures or GradientStep
    eta : array (n,), optional
        Learning rates to take in turn instead of the step's own.
    quadrature_tol : float
        Bound on the estimated quadrature error, relative to E sigma_*^2.

    Returns
    -------
    Bounds, or BoundsOverEta where ``eta`` is given

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or eta is given without a step.

    Examples
    --------
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> found = bounds(step)
    >>> round(found.lower, 6), round(found.upper, 6), round(found.linear, 6)
    (0.006708, 0.046354, 0.064453)
    """
    check_problem(problem)
    if eta is not None:
        check_step(problem, "eta", "left out: an sRF has no learning rate")
        rates = axis("eta", eta)
        each = tuple(
            of_model(problem.model(eta=float(rate), beta=1.0), quadrature_tol) for rate in rates
        )
        lower, upper = (np.array([getattr(b, name) for b in each]) for name in ("lower", "upper"))
        return BoundsOverEta(rates, lower, upper, each[0].linear, each)
    # the bounds do not depend on the width
    return of_model(problem.model(beta=1.0), quadrature_tol)


def best_bounds(
    step: Problem,
    *,
    eta: tuple[float, float] = ETA,
    quadrature_tol: float = QUADRATURE_TOLERANCE,
) -> BestBounds:
    """The smallest bounds over the learning rate, by a search over a range.  Eq. (8.3)

    Parameters
    ----------
    step : GradientStep, or the network of one
        Its own eta does not matter.
    eta : (float, float)
        The range searched, on a logarithmic scale.
    quadrature_tol : float
        As in :func:`bounds`.

    Raises
    ------
    InvalidArgument
    ConvergenceError
        If there is no rate in the range whose bounds could be computed.

    Examples
    --------
    >>> step = GradientStep(student="erf", target="erf", alpha0=np.inf, eta=1.0)
    >>> best = best_bounds(step)
    >>> best.upper < 1e-8, round(float(best.at_upper.model.r), 4), best.edge_upper
    (True, 1.7321, False)
    """
    check_step(step, "problem")

    def at(rate: float) -> Bounds:
        return of_model(step.model(eta=rate, beta=1.0), quadrature_tol)

    def search(name: str) -> tuple[float, bool, Bounds]:
        found = minima(
            lambda x: np.array([getattr(at(rate), name) for rate in np.exp(x)]),
            [logarithms("eta", eta, 2 * ETA_SCAN)],
        )
        if not found:
            raise ConvergenceError("no bound could be computed in the range of eta", None)
        rate = float(np.exp(found[0].place[0]))
        return rate, bool(found[0].at_edge), at(rate)

    (low, edge_low, at_low), (high, edge_high, at_high) = search("lower"), search("upper")
    return BestBounds(at_low.lower, at_high.upper, low, high, edge_low, edge_high, at_low, at_high)


def of_model(model: SpikedRandomFeatures, quadrature_tol: float) -> Bounds:
    """The bounds of one model, over its trained bias if it has one."""
    if not model.train_bias:
        return _of_features(model, 0.0, 0.0, quadrature_tol)
    grid = np.linspace(-RANGE, RANGE, SCAN)
    best: list[float] = []
    for name in ("lower", "upper"):

        def errors(biases: Array, name: str = name) -> Array:
            at = (_of_features(model, t, t, quadrature_tol) for t in biases)
            return np.array([getattr(one, name) for one in at])

        inside = [one for one in minima(errors, [grid]) if not one.at_edge]
        best.append(float(inside[0].place[0]) if inside else np.nan)
    if np.isnan(best).any():
        failed = _of_features(model, 0.0, 0.0, quadrature_tol)
        return replace(failed, lower=np.nan, upper=np.nan, status=Status.AT_EDGE)
    return _of_features(model, best[0], best[1], quadrature_tol)


def _of_features(
    model: SpikedRandomFeatures, bias_lower: float, bias_upper: float, quadrature_tol: float
) -> Bounds:
    """Both bounds, each with its bias added to all neurons."""
    settled = settle(
        _table_pairs(model.with_bias(bias_lower), model.with_bias(bias_upper)),
        lambda pair: _fit(*pair),
        _change,
        quadrature_tol,
    )
    fit, met = settled.value, settled.met
    return Bounds(
        model=model,
        lower=fit.lower if met else np.nan,
        upper=fit.upper if met else np.nan,
        linear=linear_error(model),
        coefficients=fit.coefficients,
        offsets=fit.offsets,
        psi=fit.psi,
        bias_lower=bias_lower,
        bias_upper=bias_upper,
        quadrature_error=settled.change,
        status=Status.CONVERGED if met else Status.QUADRATURE,
    )


class _Fit(NamedTuple):
    """Both bounds on the tables ``low`` and ``high``, with the functions that reach them."""

    low: Table
    high: Table
    coefficients: Array
    psi: Array
    offsets: Array
    lower: float
    upper: float


def _table_pairs(
    lower: SpikedRandomFeatures, upper: SpikedRandomFeatures
) -> Iterator[tuple[Table, Table]]:
    """Finer and finer tables of two models that differ in their biases."""
    for level in itertools.count():
        low, high = table_at(lower, level), table_at(upper, level)
        if low is None or high is None:
            return
        yield low, high


def _fit(low: Table, high: Table) -> _Fit:
    """The lower bound on the table ``low`` and the upper one on ``high``.  Eqs. (8.1)-(8.2)"""
    C, psi = _weighted_fit(low, low.regressors, low.h[None])[0], _slopes(low)
    m = _weighted_fit(high, high.offsets, high.h[None])[0]
    return _Fit(low, high, C, psi, m, _lower(low, C, psi), _upper(high, m))


def _change(coarse: _Fit, fine: _Fit) -> float:
    """How much the bounds of ``fine`` differ when its functions are judged on the coarse tables,
    relative to E y^2."""
    lower = _lower(coarse.low, fine.coefficients, fine.psi)
    upper = _upper(coarse.high, fine.offsets)
    change = max(abs(fine.lower - lower), abs(fine.upper - upper))
    return float(change / (fine.low.weights @ fine.low.power))


def _upper(table: Table, m: Array) -> float:
    """Eq. (8.1) at given m."""
    return float(table.weights @ (table.spread + (table.h - m @ table.offsets) ** 2))


def _lower(table: Table, C: Array, psi: Array) -> float:
    """Eq. (8.2) at given m, theta and psi."""
    along = (table.h - C @ table.regressors) ** 2
    across = ((table.g - psi.T @ table.mu1) ** 2 - table.g**2).sum(axis=0)
    return float(table.weights @ (table.spread + along + across))


def _slopes(table: Table) -> Array:
    """psi (A, K') of the lower bound: least squares of g on the mu_1."""
    return _weighted_fit(table, table.mu1, table.g).T


def _weighted_fit(table: Table, columns: Array, targets: Array) -> Array:
    """Coefficients (T, n) of ``columns`` (n, N) that fit ``targets`` (T, N) best in L2(kappa)."""
    root = np.sqrt(table.weights)
    design = np.broadcast_to((root * columns).T, (len(targets), root.size, len(columns)))
    return least_squares(design, root * targets)


def linear_error(model: SpikedRandomFeatures) -> float:
    """E sigma_*^2 - (E sigma_*)^2 - |C_1|^2, with the constant kept where none can be fitted:
    an odd student without biases and intercept.  docs/theory.md 8"""
    target = LabelLaw(model.labels.mean).averages()
    h0 = model.student.moments(model.geometry.bias, np.ones_like(model.geometry.bias)).mean
    constant = model.intercept or model.train_bias or bool(np.abs(h0).max() > 1e-12)
    return float(target.power - target.first @ target.first - constant * target.mean**2)
