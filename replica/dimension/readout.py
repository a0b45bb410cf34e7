"""Ridge regression on the table of a network at its own dimension.  docs/theory.md 23

The mean feature, the special directions and the functions of the loadings are n regressors phi,
with prior covariance P, times 1 / (alpha d), of their coefficients.  Their number is finite: they
add to the response V a leverage of order 1/d,

    V_s = phi^T H^-1 phi / (alpha d),    H = E[phi phi^T / (1 + V)] + P^-1.          (23.6)

Equations (4.1)-(4.11) hold at a given leverage, with what its change -dV_s/ds adds to the variance
of the output.  Both are iterated.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from solvers.newton import newton
from solvers.results import Array, Rows

from ..equivalence import Table
from ..saddle_point import CorrelatedGroup, Errors, Susceptibility, penalty_on_m, ridge

SETTLED, MOST_PASSES = 1e-8, 60  # of the leverage and its change, relative
FREE = 1e12  # prior variance of an output intercept, relative to the largest other


class Readouts(NamedTuple):
    """Readouts at P points.

    Attributes
    ----------
    V : (P, 2)
        V1 and V2.
    m : (P, n_0)
        Coefficients of the offsets.
    errors : Errors
    wrong : (P,)
        Classification errors of labels +-1 that are functions of the nodes.
    residual : (P,)
        Residual of the responses, and changes of the leverage and the errors in the last pass.
    passes : (P,)
        Numbers of solutions at a given leverage.
    """

    V: Array
    m: Array
    errors: Errors
    wrong: Array
    residual: Array
    passes: NDArray[np.int64]


class LeveragedGroup(CorrelatedGroup):
    """Responses of one group with tabulated rows, and a ``leverage`` (P, N) in V at P points."""

    def __init__(self, table: Table, leverage: Array) -> None:
        super().__init__(table)
        self.leverage = leverage

    def shrinkage(self, V: Array) -> Array:
        """1 / (1 + V + V_s) at every node, (P, N).  Eq. (23.6)"""
        R = super().shrinkage(V)
        return np.asarray(R / (1 + R * self.leverage))

    def _sides(self, V: Array, alpha: Array, lam: Array) -> tuple[Array, Array, Array, Array]:
        """The two sides of (i), (ii), with 1 + mu_2^2 V2 + V_s in the place of 1 + mu_2^2 V2."""
        left, right, d_left, d_right = super()._sides(V, alpha, lam)
        R, w = self.shrinkage(V), self.table.weights
        right[:, 1] += alpha * ((R * self.leverage) @ w)
        by_V1 = (R**2 * self.leverage) @ (w * self.coefficients[0])
        d_right[:, 1, 0] -= alpha * V[:, 0] * by_V1
        return left, right, d_left, d_right


def solve_readouts(table: Table, alpha: Array, lam: Array, V: Array) -> Readouts:
    """Readouts at P points, alpha and lam (P,), from guesses of V (P, 2).

    Eqs. (4.1)-(4.11), (23.3)-(23.6)
    """
    phi, w, y, count = table.regressors, table.weights, table.h, len(table.offsets)
    V, leverage, residual, passes = _solve_responses(table, alpha, lam, V)
    fit = _fit(table, alpha, V, leverage)
    coefficients = (fit.H_inverse @ ((w * fit.R * y) @ phi.T)[..., None])[..., 0]
    gap = y - coefficients @ phi
    special_hat = ((w * fit.R * gap) @ phi.T)[:, None, count:]
    m_hat = penalty_on_m(table, alpha, V[:, 1:]) * coefficients[:, :count]
    of_signal = fit.group.signal_sources(V, fit.susceptibility, alpha, special_hat)
    known = gap**2 + table.spread + table.noise
    error0 = known + fit.group.at_nodes(fit.group.pack(of_signal.Q1, 0 * V[:, 1:]))  # Eq. (4.7)
    error, drift, rows = np.zeros_like(gap), np.zeros(len(V)), np.arange(len(V))
    of_leverage = np.zeros_like(gap)  # -dV_s/ds, which adds to the variance of the output
    for _ in range(MOST_PASSES):
        at, group, R = V[rows], LeveragedGroup(table, leverage[rows]), fit.R[rows]
        before = error0[rows] + of_leverage[rows]
        sources = m_hat[rows], of_signal.X2[rows]
        X1, X2 = ridge.sources(group, R * R * before, alpha[rows], *sources)  # Eq. (4.8)
        through_leverage = (R * (R * before * leverage[rows] - of_leverage[rows])) @ w
        X2 = X2 + (alpha[rows] / table.beta * through_leverage / at[:, 1])[:, None]
        Q = group.second_moments(at, alpha[rows], lam[rows], group.pack(X1, X2))  # Eq. (4.10)
        error[rows] = before + group.at_nodes(Q)
        H_inverse = fit.H_inverse[rows]
        change = H_inverse @ _averages(phi, w * R * R * error[rows]) @ H_inverse
        change += (Q[:, 1] / at[:, 1])[:, None, None] * fit.of_prior[rows]
        new = _quadratic(change, phi) / (alpha[rows] * table.dimension)[:, None]
        drift[rows] = (np.abs(new - of_leverage[rows]) @ w) / (error[rows] @ w)
        of_leverage[rows] = new
        rows = rows[drift[rows] > SETTLED]
        if not rows.size:
            break
    wrong = class_error(table, y - gap, error - known)
    errors = Errors(error @ w - table.noise, (fit.R**2 * error) @ w)  # Eq. (4.11)
    return Readouts(V, coefficients[:, :count], errors, wrong, np.maximum(residual, drift), passes)


def _solve_responses(
    table: Table, alpha: Array, lam: Array, V: Array
) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """V1 and V2 (P, 2), the leverage (P, N), the residual of both and the number of passes (P,)."""
    V, leverage = V.copy(), np.zeros((len(alpha), len(table.weights)))
    residual, passes, rows = np.full(len(V), np.inf), np.zeros(len(V), int), np.arange(len(V))

    def system(U: Array, which: Rows) -> tuple[Array, Array]:
        at = rows[which]
        return LeveragedGroup(table, leverage[at]).log_residual(U, alpha[at], lam[at])

    for _ in range(MOST_PASSES):
        found = newton(system, V[rows], tol=1e-12)
        V[rows] = found.value
        H_inverse = _fit(table, alpha[rows], V[rows], leverage[rows]).H_inverse
        new = _quadratic(H_inverse, table.regressors)
        new /= (alpha[rows] * table.dimension)[:, None]  # Eq. (23.6)
        change = np.abs((new - leverage[rows]) / (1 + new)).max(axis=1)
        residual[rows] = np.maximum(found.residual, change)
        leverage[rows], passes[rows] = new, passes[rows] + 1
        rows = rows[change > SETTLED]
        if not rows.size:
            break
    return V, leverage, residual, passes


class _Fit(NamedTuple):
    """Ridge regression on the regressors at P points, at given responses.

    Attributes
    ----------
    group : LeveragedGroup
    R : (P, N)
        1 / (1 + V + V_s).
    susceptibility : Susceptibility
    H_inverse, of_prior : (P, n, n)
        H^-1 of (23.6), and H^-1 P^-1 H^-1.
    """

    group: LeveragedGroup
    R: Array
    susceptibility: Susceptibility
    H_inverse: Array
    of_prior: Array


def _fit(table: Table, alpha: Array, V: Array, leverage: Array) -> _Fit:
    """Ridge regression at responses V (P, 2) and a ``leverage`` (P, N)."""
    group, phi = LeveragedGroup(table, leverage), table.regressors
    R = group.shrinkage(V)
    susceptibility = group.susceptibility(V, group.conjugates(V, alpha), alpha)
    root = _prior_roots(table, alpha, V, susceptibility)
    transposed = root.swapaxes(1, 2)
    within = transposed @ _averages(phi, table.weights * R) @ root
    inner = np.linalg.inv(np.eye(len(phi)) + within)
    H_inverse = root @ inner @ transposed
    return _Fit(group, R, susceptibility, H_inverse, root @ inner @ inner @ transposed)


def class_error(table: Table, centre: Array, variance: Array) -> Array:
    """Classification errors (P,) of labels +-1 that are functions of the nodes, for an output of
    mean ``centre`` and ``variance`` (P, N) there."""
    below = ndtr(-table.h * centre / np.sqrt(np.maximum(variance, 1e-300)))
    return np.asarray(below @ table.weights)


def _prior_roots(table: Table, alpha: Array, V: Array, susceptibility: Susceptibility) -> Array:
    """Roots (P, n, n) of the prior covariances: offsets by their price, special directions by
    (17.4)."""
    penalty, special = penalty_on_m(table, alpha, V[:, 1:]), susceptibility.roots()[0]
    priced = np.isfinite(1 / np.where(penalty > 0, penalty, np.nan))
    variances = np.where(priced, 1 / np.where(priced, penalty, 1.0), 0.0)
    largest = np.maximum(variances.max(axis=1), (special**2).max(axis=(1, 2)))[:, None]
    count = penalty.shape[1]
    root = np.zeros((len(V), count + special.shape[1], count + special.shape[2]))
    root[:, range(count), range(count)] = np.sqrt(np.where(priced, variances, FREE * largest))
    root[:, count:, count:] = special
    return root


def _averages(phi: Array, weights: Array) -> Array:
    """Averages of phi phi^T, (P, n, n), with ``weights`` (P, N) of the nodes."""
    return np.stack([(phi * one) @ phi.T for one in weights])


def _quadratic(matrices: Array, phi: Array) -> Array:
    """Quadratic forms of ``matrices`` (P, n, n) in phi (n, N) at every node, (P, N)."""
    return np.stack([((one @ phi) * phi).sum(axis=0) for one in matrices])
