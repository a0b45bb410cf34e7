"""Ridge regression at a network's own dimension: responses, and the leverage of each node.
docs/theory.md 23

The mean feature, the special directions and the functions of the loadings are n regressors phi,
with prior covariance P, times 1 / (alpha d), of their coefficients.  Their number is finite: they
add to the response V a leverage of order 1/d.  V1 is of all directions, also of the k that are
among the regressors, and V2 of features whose part of degree two is independent noise, while it has
N = D^2/2 directions only:

    V_s = phi^T H^-1 phi / (alpha d) - k mu_1^2 V1 / d - s_2 V2 g / (1 + g),
    H = E[phi phi^T / (1 + V)] + P^-1,  g = alpha (d/N) V2 E[s_2 / (1 + V)].         (23.6), (23.9)

The mean feature depends on the length of an input in the bulk, which differs from sample to sample
by 1/sqrt(d): sd of it is a regressor of its own at every node, with the same coefficient (23.10).

The mean of the rows, which the step has shrunk to s times its length, is what a readout with a mean
feature pays for; its price is that of m times 1 - (1 - s^2) V1_hat V1 (23.8).

Equations (4.1)-(4.11) hold at a given leverage, with what its change -dV_s/ds adds to the variance
of the output.  Both are iterated.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from solvers.fixed_point import fixed_point
from solvers.newton import newton
from solvers.results import Array, Indices, Result, largest_modulus

from ..equivalence import Table
from ..saddle_point import CorrelatedGroup, MeanSquaredErrors, Susceptibility
from .tabulate import LoadedRows, LoadedTable


class Readouts(NamedTuple):
    """Readouts at P points.

    Attributes
    ----------
    V : (P, 2)
        V1 and V2.
    m : (P, n_0)
        Coefficients of the offsets.
    errors : MeanSquaredErrors
    wrong : (P,)
        Classification errors of labels +-1 that are functions of the nodes.
    residual : (P,)
        Largest residual of the responses, the leverage and what it adds to the errors; inf where
        1 + V + V_s is negative at a node.
    passes : (P,)
        Numbers of solutions at a given leverage.
    rare : (P,)
        Sum of the relative variances of V over samples, and of 1 / V2 over neurons, that come from
        rare large features.  Eq. (23.11)
    """

    V: Array
    m: Array
    errors: MeanSquaredErrors
    wrong: Array
    residual: Array
    passes: NDArray[np.int64]
    rare: Array


class LeveragedGroup(CorrelatedGroup):
    """Responses of one group with tabulated rows, and a ``leverage`` (P, N) in V at P points."""

    def __init__(self, table: LoadedTable, leverage: Array) -> None:
        super().__init__(table)
        assert isinstance(table.covariance, LoadedRows)
        self.leverage, self.shortened = leverage, 1 - table.covariance.mean_row

    def shrinkage(self, V: Array) -> Array:
        """1 / (1 + V + V_s) at every node, (P, N).  Eq. (23.6)"""
        return np.asarray(1 / (1 + self.at_nodes(V) + self.leverage))

    def prices(self, V: Array, V_hat: Array) -> Array:
        """Penalties on the offsets over the penalty on m of independent rows, (P, n_0).
        Eq. (23.8)"""
        offset_prices = np.ones((len(V), len(self.table.offsets)))
        offset_prices[:, 0] -= self.shortened * V_hat[:, 0] * V[:, 0]
        return offset_prices

    def share_of_products(self, R: Array, V: Array, alpha: Array) -> Array:
        """The number g (P,) of what samples take of the products of two directions of the bulk.
        Eq. (23.9)"""
        table = self.table
        assert isinstance(table, LoadedTable)
        return np.asarray(alpha * V[:, 1] * (R @ (table.weights * table.square)) / table.products)

    def _sides(self, V: Array, alpha: Array, lam: Array) -> tuple[Array, Array, Array, Array]:
        """The two sides of (i), (ii), with 1 + mu_2^2 V2 + V_s in the place of 1 + mu_2^2 V2."""
        left, right, d_left, d_right = super()._sides(V, alpha, lam)
        R, w = self.shrinkage(V), self.table.weights
        right[:, 1] += alpha * ((R * self.leverage) @ w)
        by_V1 = (R**2 * self.leverage) @ (w * self.table.response_coefficients[0])
        d_right[:, 1, 0] -= alpha * V[:, 0] * by_V1
        return left, right, d_left, d_right


def solve_readouts(table: LoadedTable, alpha: Array, lam: Array, V: Array) -> Readouts:
    """Readouts at P points, alpha and lam (P,), from guesses of V (P, 2).

    Eqs. (4.1)-(4.11), (23.3)-(23.6)
    """
    phi, w, label_means, count = table.regressors, table.weights, table.h, len(table.offsets)
    V, leverage, residual, passes = _solve_responses(table, alpha, lam, V)
    fit = _fit(table, alpha, V, leverage)
    coefficients = (fit.H_inverse @ ((w * fit.R * label_means) @ phi.T)[..., None])[..., 0]
    label_gap = label_means - coefficients @ phi
    special_hat = ((w * fit.R * label_gap) @ phi.T)[:, None, count:]
    offset_prices = fit.group.prices(V, fit.conjugates)
    m_hat = fit.susceptibility.penalty * np.sqrt(offset_prices) * coefficients[:, :count]
    signal_sources = fit.group.signal_sources(V, fit.susceptibility, alpha, m_hat, special_hat)
    # -d(price of m) / d(V1_hat V1)
    spared_price = fit.group.shortened * coefficients[:, 0] ** 2
    spared_price /= table.beta * table.dimension * V[:, 1]
    Q1_of_signal = signal_sources.Q[:, :1] - (spared_price * V[:, 0])[:, None]
    known_error = label_gap**2 + table.spread + table.noise
    length_error = (coefficients[:, :1] * table.by_length) ** 2  # Eq. (23.10)
    signal_error = known_error + length_error + Q1_of_signal * table.mu1**2  # Eq. (4.7)
    g = fit.group.share_of_products(fit.R, V, alpha)
    error_size = signal_error @ w  # of -dV_s/ds, which adds to the variance of the output
    error = np.empty_like(label_gap)

    def of_leverage(x: Array, rows: Indices) -> Array:
        V_rows, group, R = V[rows], LeveragedGroup(table, leverage[rows]), fit.R[rows]
        leverage_error = error_size[rows, None] * x
        before = signal_error[rows] + leverage_error
        X = group.conjugates_from(R * R * before, alpha[rows]) + signal_sources.X[rows]  # Eq. (4.8)
        X[:, 0] += (spared_price * fit.conjugates[:, 0])[rows]
        through_leverage = (R * (R * before * leverage[rows] - leverage_error)) @ w
        X[:, 1] += alpha[rows] / table.beta * through_leverage / V_rows[:, 1]
        Q = group.second_moments(V_rows, alpha[rows], lam[rows], X)  # Eq. (4.10)
        error[rows] = before + group.at_nodes(Q)
        H_inverse = fit.H_inverse[rows]
        change = H_inverse @ _averages(table, w * R * R * error[rows]) @ H_inverse
        change += (Q[:, 1] / V_rows[:, 1])[:, None, None] * fit.of_prior[rows]
        by_samples = V_rows[:, 1] * group.share_of_products(R**2 * error[rows], V_rows, alpha[rows])
        of_products = (g * (2 + g))[rows] * Q[:, 1] - by_samples
        of_products /= (1 + g[rows]) ** 2
        new_V_s = _leverage(table, alpha[rows], change, Q[:, :1] + Q1_of_signal[rows], of_products)
        return new_V_s / error_size[rows, None]

    drift = _iterate_leverage(of_leverage, np.zeros_like(label_gap), w).residual
    wrong = class_error(table, label_means - label_gap, error - known_error)
    errors = MeanSquaredErrors(error @ w - table.noise, (fit.R**2 * error) @ w)  # Eq. (4.11)
    rare = V[:, 1] ** 2 * (fit.R**2 @ (w * table.fourth))
    rare *= (1 + alpha / table.beta) / (table.beta * table.dimension)
    residual = np.maximum(residual, drift)
    return Readouts(V, coefficients[:, :count], errors, wrong, residual, passes, rare)


def _solve_responses(
    table: LoadedTable, alpha: Array, lam: Array, V: Array
) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """V1 and V2 (P, 2), the leverage (P, N), the residual of both and the number of passes (P,)."""
    V = V.copy()

    def new_leverage(leverage: Array, rows: Indices) -> Array:
        def system(U: Array, which: Indices) -> tuple[Array, Array]:
            leveraged_points = rows[which]
            return LeveragedGroup(table, leverage[which]).log_residual(
                U, alpha[leveraged_points], lam[leveraged_points]
            )

        V[rows] = newton(system, V[rows], tol=1e-12).value
        fit = _fit(table, alpha[rows], V[rows], leverage)
        response_violation = largest_modulus(system(V[rows], np.arange(len(rows)))[0])
        # solutions of other branches have a negative 1 + V + V_s somewhere
        response_residual[rows] = np.where((fit.R > 0).all(axis=1), response_violation, np.inf)
        g = fit.group.share_of_products(fit.R, V[rows], alpha[rows])
        return _leverage(table, alpha[rows], fit.H_inverse, V[rows, :1], V[rows, 1] * g / (1 + g))

    response_residual = np.empty(len(V))
    leverage_start = np.zeros((len(V), len(table.weights)))
    found = _iterate_leverage(new_leverage, leverage_start, table.weights)
    return V, found.value, np.maximum(found.residual, response_residual), found.iterations


def _iterate_leverage(
    step: Callable[[Array, Indices], Array], leverage_start: Array, node_weights: Array
) -> Result:
    """Fixed point of a leverage, or of its change, at nodes with ``node_weights`` (N,), from
    ``leverage_start`` (P, N)."""
    combined_passes = 2  # that Anderson's method combines
    settled, most_passes = 1e-8, 60  # of the leverage and its change, relative
    return fixed_point(
        step,
        leverage_start,
        tol=settled,
        size=lambda x: 1 + np.abs(x),
        history=np.zeros((len(leverage_start), combined_passes, 2, leverage_start.shape[1])),
        weights=node_weights,
        linear_below=1.0,
        max_iterations=most_passes,
    )


def _leverage(
    table: LoadedTable, alpha: Array, H_inverse: Array, V1: Array, of_products: Array
) -> Array:
    """Leverage V_s (P, N) from H^-1 (P, n, n), V1 (P, 1) and V2 g / (1 + g), (P,), or their
    changes.  Eqs. (23.6), (23.9)"""
    phi, loading_count = table.regressors, len(table.kappa)
    leverage_sum = np.stack([np.einsum("in,in->n", H_row @ phi, phi) for H_row in H_inverse])
    leverage_sum += H_inverse[:, 0, :1] * table.by_length**2
    leverage_sum = leverage_sum / alpha[:, None] - loading_count * V1 * table.mu1**2
    return np.asarray(leverage_sum / table.dimension - of_products[:, None] * table.square)


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
    conjugates : (P, 2)
        V1_hat and V2_hat.
    """

    group: LeveragedGroup
    R: Array
    susceptibility: Susceptibility
    H_inverse: Array
    of_prior: Array
    conjugates: Array


def _fit(table: LoadedTable, alpha: Array, V: Array, leverage: Array) -> _Fit:
    """Ridge regression at responses V (P, 2) and a ``leverage`` (P, N)."""
    leveraged, phi = LeveragedGroup(table, leverage), table.regressors
    R = leveraged.shrinkage(V)
    conjugates = leveraged.conjugates(V, alpha)
    susceptibility = leveraged.susceptibility(V, conjugates, alpha)
    prior_penalty = susceptibility.penalty * leveraged.prices(V, conjugates)
    root = _prior_roots(prior_penalty, susceptibility)
    root_T = root.swapaxes(1, 2)
    prior_average = root_T @ _averages(table, table.weights * R) @ root
    inner = np.linalg.inv(np.eye(len(phi)) + prior_average)
    H_inverse = root @ inner @ root_T
    return _Fit(leveraged, R, susceptibility, H_inverse, root @ inner @ inner @ root_T, conjugates)


def class_error(table: Table, centre: Array, variance: Array) -> Array:
    """Classification errors (P,) of labels +-1 that are functions of the nodes, for an output of
    mean ``centre`` and ``variance`` (P, N) there."""
    error_chance = ndtr(-table.h * centre / np.sqrt(np.maximum(variance, 1e-300)))
    return np.asarray(error_chance @ table.weights)


def _prior_roots(penalty: Array, susceptibility: Susceptibility) -> Array:
    """Roots (P, n, n) of the prior covariances: offsets by their ``penalty`` (P, n_0), special
    directions by (17.4)."""
    free = 1e12  # prior variance of an output intercept, relative to the largest other
    special_roots = susceptibility.roots()[0]
    is_priced = np.isfinite(1 / np.where(penalty > 0, penalty, np.nan))
    variances = np.where(is_priced, 1 / np.where(is_priced, penalty, 1.0), 0.0)
    largest = np.maximum(variances.max(axis=1), (special_roots**2).max(axis=(1, 2)))[:, None]
    count = penalty.shape[1]
    root = np.zeros((len(penalty), count + special_roots.shape[1], count + special_roots.shape[2]))
    root[:, range(count), range(count)] = np.sqrt(np.where(is_priced, variances, free * largest))
    root[:, count:, count:] = special_roots
    return root


def _averages(table: LoadedTable, weights: Array) -> Array:
    """Averages of phi phi^T, (P, n, n), with ``weights`` (P, N) of the nodes, also over the lengths
    of inputs in the bulk, on which the first depends.  Eq. (23.10)"""
    phi = table.regressors
    phi_averages = np.empty((len(weights), len(phi), len(phi)))
    for i, phi_row in enumerate(phi):  # the upper half of a symmetric matrix
        phi_averages[:, i, i:] = phi_averages[:, i:, i] = (weights * phi_row) @ phi[i:].T
    phi_averages[:, 0, 0] += weights @ table.by_length**2
    return phi_averages
