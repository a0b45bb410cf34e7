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
from scipy.special import ndtr

from solvers.newton import newton
from solvers.results import Array, Rows

from ..equivalence import Table
from ..saddle_point import CorrelatedGroup, Errors, Susceptibility, penalty_on_m, ridge

SETTLED, MOST_PASSES = 1e-9, 60  # of the leverage and its change, relative
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
    passes : int
    """

    V: Array
    m: Array
    errors: Errors
    wrong: Array
    residual: Array
    passes: int


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
    phi, w, y = table.regressors, table.weights, table.h
    leverage = np.zeros((len(alpha), len(w)))
    scale = 1 / (alpha * table.dimension)

    def system(U: Array, rows: Rows) -> tuple[Array, Array]:
        return LeveragedGroup(table, leverage[rows]).log_residual(U, alpha[rows], lam[rows])

    passes = 0
    while passes < MOST_PASSES:
        passes += 1
        found = newton(system, V, tol=1e-12)
        V, group = found.value, LeveragedGroup(table, leverage)
        R = group.shrinkage(V)
        susceptibility = group.susceptibility(V, group.conjugates(V, alpha), alpha)
        root = _prior_roots(table, alpha, V, susceptibility)
        within = root.swapaxes(1, 2) @ _averages(phi, w * R) @ root
        inner = np.linalg.inv(np.eye(len(phi)) + within)
        H_inverse = root @ inner @ root.swapaxes(1, 2)
        new = _quadratic(scale[:, None, None] * H_inverse, phi)
        settled = np.abs(new - leverage).max(axis=1) / (1 + new.max(axis=1))
        leverage = new
        if not settled.max() > SETTLED:
            break
    moments = (w * R * y) @ phi.T
    coefficients = (H_inverse @ moments[..., None])[..., 0]
    gap = y - coefficients @ phi
    count, special = len(table.offsets), ((w * R * gap) @ phi.T)[:, None, len(table.offsets) :]
    m_hat = penalty_on_m(table, alpha, V[:, 1:]) * coefficients[:, :count]
    of_signal = group.signal_sources(V, susceptibility, alpha, special)
    error0 = gap**2 + table.spread + table.noise  # Eq. (4.7)
    error0 = error0 + group.at_nodes(group.pack(of_signal.Q1, np.zeros((len(V), 1))))
    R2, own = R * R, np.zeros_like(R)  # own: -dV_s/ds, which adds to the variance
    of_prior = root @ inner @ inner @ root.swapaxes(1, 2)
    for _ in range(MOST_PASSES):
        known = error0 + own
        X1, X2 = ridge.sources(group, R2 * known, alpha, m_hat, of_signal.X2)  # Eq. (4.8)
        through = (R * (R * known * group.leverage - own)) @ w
        X2 = X2 + (alpha / table.beta * through / V[:, 1])[:, None]
        Q = group.second_moments(V, alpha, lam, group.pack(X1, X2))  # Eq. (4.10)
        error = known + group.at_nodes(Q)
        change = H_inverse @ _averages(phi, w * R2 * error) @ H_inverse
        change += (Q[:, 1] / V[:, 1])[:, None, None] * of_prior
        new = _quadratic(scale[:, None, None] * change, phi)
        drift = (np.abs(new - own) @ w) / (error @ w)
        own = new
        if not drift.max() > SETTLED:
            break
    variance = error - gap**2 - table.spread - table.noise
    wrong = class_error(table, y - gap, variance)
    errors = Errors(error @ w - table.noise, (R2 * error) @ w)  # Eq. (4.11)
    residual = np.max([found.residual, settled, drift], axis=0)
    return Readouts(V, coefficients[:, :count], errors, wrong, residual, passes)


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
