"""Responses of one group of neurons with isotropic rows, so a Marchenko-Pastur resolvent.
docs/theory.md 5

For Newton and for the linear response, the two sides of (4.3)-(4.4) would cancel to the
last digits near the interpolation thresholds alpha = beta and alpha = 1, so the equations
are used in two equivalent forms without differences of nearly equal numbers.  Adding up
(4.4), lambda V2 + V2_hat V2 + V1_hat V1 = 1 and V1 / (c V2) = 1 - beta V1_hat V1; with (4.2),

    lambda V2   = (1 - alpha/beta) + (alpha/beta) E[1 / (1 + V)]                 (i)
    V1 / (c V2) = (1 - alpha) + alpha E[(1 + mu_2^2 V2) / (1 + V)]               (ii)

(i) decreases in V1 and V2; (ii) falls in V1 and rises in V2: the Jacobian is never
singular and the solution is unique.
"""

from typing import Any

import numpy as np

from solvers.linear import solve_rows
from solvers.marchenko_pastur import ResolventAverages, resolvent_averages
from solvers.results import Array

from .responses import Responses


class Isotropic(Responses):
    """Responses of one group; packed vectors are pairs (V1, V2)."""

    magnitude: Any = staticmethod(np.abs)  # both are positive

    def image(self, V_hat: Array, lam: Array, guess: Array | None = None) -> Array:
        """(V1, V2) from their conjugates: (4.3)-(4.4), in the form of (5.3)."""
        bulk_averages = self._averages(V_hat, lam, guess)[0]
        return np.stack([bulk_averages.weighted, bulk_averages.inverse], axis=1)

    def second_moments_at(self, V_hat: Array, lam: Array, X: Array, guess: Array) -> Array:
        """(Q1, q2) at fixed conjugates: (4.9) in the form of (5.3), for a network with the
        derivative of c_e (15.8)."""
        bulk, c, slope = self._averages(V_hat, lam, guess)
        V1_hat, bulk_level = V_hat[:, 0], lam + V_hat[:, 1]
        X1, X2 = X.T
        dq = self.beta * bulk.inverse2 * (bulk_level * X1 - V1_hat * X2)
        by_variance = bulk.mixed * slope * dq / (c + slope * self.beta * V1_hat**2 * bulk.mixed)
        Q1 = bulk.weighted2 * X1 + bulk.mixed * X2 - bulk_level * by_variance
        return np.stack([Q1, bulk.mixed * X1 + bulk.inverse2 * X2 + V1_hat * by_variance], axis=1)

    def _averages(
        self, V_hat: Array, lam: Array, guess: Array | None
    ) -> tuple[ResolventAverages, Array, Array]:
        """Averages of (5.2), the bulk variance and its derivative in q; q = beta V2 V1_hat, with V2
        of the ``guess`` or, without one, 1."""
        V2 = np.ones(len(V_hat)) if guess is None else guess[:, 1]
        c, c_slope = self.bulk_variance(self.beta * V2 * V_hat[:, 0])
        return resolvent_averages(lam + V_hat[:, 1], V_hat[:, 0], c, self.beta), c, c_slope

    def log_residual(self, V: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """Differences of the logarithms of both sides of (i), (ii), with derivatives in log V."""
        left_sides, right_sides, d_left, d_right = self._sides(V, alpha, lam)
        residual = np.log(left_sides) - np.log(right_sides)
        return residual, d_left / left_sides[..., None] - d_right / right_sides[..., None]

    def analytic_residual(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """Differences of both sides of (i), (ii), with derivatives in V: here U = V."""
        left_sides, right_sides, d_left, d_right = self._sides(U, alpha, lam)
        return left_sides - right_sides, (d_left - d_right) / U[:, None, :]

    def second_moments(self, V: Array, alpha: Array, lam: Array, X: Array) -> Array:
        """(Q1, q2), minus the derivative of V in s: V_hat + s X adds s X.V to the left side of (i),
        s beta X1 V1 to the left side of (ii), and s beta X1 V2 to the q of its bulk variance."""
        _, _, d_left, d_right = self._sides(V, alpha, lam)
        c, c_slope = self.bulk_variance(self.beta * V[:, 1] * self.conjugates(V, alpha)[:, 0])
        source_of_ii = self.beta * X[:, 0] * V[:, 0] * (1 - c_slope / c**2)
        side_source = np.stack([(X * V).sum(axis=1), source_of_ii], axis=1)
        return solve_rows(d_left - d_right, side_source) * V

    def bulk_variance(self, q: Array) -> tuple[Array, Array]:
        """Bulk variance at q (P,), of a network the effective variance c_e, and its derivative."""
        return self.table.c, np.zeros(1)

    def _sides(self, V: Array, alpha: Array, lam: Array) -> tuple[Array, Array, Array, Array]:
        """The two sides of (i), (ii), (P, 2) each, and their derivatives in log V, (P, 2, 2).

        A negative constant is moved to the other side, so that all four are positive.
        """
        V1, V2 = V[:, 0], V[:, 1]
        R, w, (m1, m2) = self.shrinkage(V), self.table.weights, self.table.response_coefficients
        # E[{1, m2} R], then E[{m1, m2, m1 m2, m1^2} R^2], m1 = mu_1^2, m2 = mu_2^2, R = 1 / (1 + V)
        R_mean, R_m2 = R @ w, R @ (w * m2)
        R2_m1, R2_m2, R2_m1_m2, R2_m1_m1 = np.stack([m1, m2, m1 * m2, m1 * m1]) * w @ (R**2).T
        ratio = alpha / self.beta
        # left of (ii): the bulk variance is that at the q of (4.2)
        q = alpha * V2 * (R @ (w * m1))
        c, c_slope = self.bulk_variance(q)
        share_unresolved, c_by_q = V1 / (c * V2), c_slope / c
        sides_dtype = np.result_type(V, alpha, lam, self.beta, R)
        left_sides, right_sides = np.empty((2, len(V), 2), sides_dtype)
        left_sides[:, 0] = lam * V2 + np.maximum(ratio - 1, 0)
        left_sides[:, 1] = share_unresolved + np.maximum(alpha - 1, 0)
        right_sides[:, 0] = np.maximum(1 - ratio, 0) + ratio * R_mean
        right_sides[:, 1] = np.maximum(1 - alpha, 0) + alpha * (R_mean + V2 * R_m2)
        d_left, d_right = np.zeros((2, len(V), 2, 2), sides_dtype)
        d_left[:, 0, 1] = lam * V2
        d_left[:, 1, 0] = share_unresolved * (1 + c_by_q * alpha * V1 * V2 * R2_m1_m1)
        d_left[:, 1, 1] = -share_unresolved * (1 + c_by_q * (q - alpha * V2**2 * R2_m1_m2))
        d_right[:, 0, 0], d_right[:, 0, 1] = -ratio * V1 * R2_m1, -ratio * V2 * R2_m2
        # (1 + m2 V2) / (1 + V) = 1 - m1 V1 / (1 + V)
        d_right[:, 1, 0] = -alpha * V1 * (R2_m1 + V2 * R2_m1_m2)
        d_right[:, 1, 1] = alpha * V1 * V2 * R2_m1_m2
        return left_sides, right_sides, d_left, d_right
