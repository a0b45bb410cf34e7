"""The bulk of the network itself: one group whose rows have a covariance.  docs/theory.md 16, 18

With the effective variance c_e(q) of ``rows``, the resolvent equations (16.6) are those of
isotropic rows of variance c_e(q), q = beta V2 V1_hat; so closed forms, Newton's equations and
responses are the isotropic ones, with c_e and what it changes.  Along u, the row norms and zeta,
the overlaps are those of the resolvent (16.9),

    M' = tau C_e W,    W = (1 + q P C_e)^-1,    tau = beta V2,

P being 1 on zeta and 0 on u and the norms.  The derivatives of nu^T M' nu that (15.8) has are forms
in nu' = W nu: d(q C_e)/dq with respect to tau at fixed V1_hat, and that with respect to V1_hat at
fixed tau is tau^2 times dC_e/dq less the square of (C_e nu') on zeta.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.marchenko_pastur import ResolventAverages, resolvent_averages
from solvers.newton import newton
from solvers.results import Array

from ..equivalence import Table
from .isotropic import Isotropic
from .pencil import bulk_residual, matrices, pencil
from .responses import SignalSources, Susceptibility
from .rows import Rows


class Special(NamedTuple):
    """On u, the row norms (where they are kept), and zeta: (P, n, n) each."""

    C: Array  # C_e
    qC_slope: Array  # d(q C_e)/dq
    C_slope: Array  # dC_e/dq
    W: Array


class Correlated(Isotropic):
    """One group; packed vectors are pairs (V1, V2)."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        assert isinstance(table.covariance, Rows)
        self.rows = table.covariance

    @cached_property
    def kept(self) -> NDArray[np.int64]:
        """Which of u, the norms and zeta are unknowns."""
        size = len(self.rows.basis) + 1
        return np.delete(np.arange(size), [] if self.table.loadings.shape[1] == 2 else [1])

    def from_conjugates(self, V_hat: Array, lam: Array) -> Array:
        """Eq. (16.6)"""
        averages, _, _ = self._averages(V_hat, lam)
        return np.stack([averages.weighted, averages.inverse], axis=1)

    def second_moments_at(self, V_hat: Array, lam: Array, X: Array) -> Array:
        """-dV[X] of Eq. (15.8): as for isotropic rows, and through c_e."""
        r, q, c = self._averages(V_hat, lam)
        V1_hat, level = V_hat[:, 0], lam + V_hat[:, 1]
        X1, X2 = X.T
        slope = self.rows.effective(q)[1]
        dq = self.beta * r.mixed * (level * X1 - V1_hat * X2) * (1 + q * c) ** 2 / c
        dc = slope * dq / (1 + slope * self.beta * V1_hat**2 * r.mixed / c)
        by_c = r.mixed / c * dc
        return np.stack(
            [
                r.weighted2 * X1 + r.mixed * X2 - level * by_c,
                r.mixed * X1 + r.inverse2 * X2 + V1_hat * by_c,
            ],
            axis=1,
        )

    def magnitude(self, V: Array) -> Array:
        """Of V, its modulus; of coordinates, the averages E Q count against 1 and the largest."""
        size = np.abs(V)
        averages = size[:, :-2]
        averages[:] = 1 + averages.max(axis=1, keepdims=True, initial=0.0)
        return size

    def to_analytic(self, V: Array, alpha: Array) -> Array:
        """E Q of every step, (11, 12, 22) each, then q and V2."""
        q = self.rows.at_ratio(V[:, 0] / V[:, 1])
        averages = self.rows.averages(q)[..., [0, 0, 1], [0, 1, 1]].reshape(len(V), -1)
        return np.column_stack([averages, q, V[:, 1]])

    def from_analytic(self, U: Array) -> Array:
        """V1 = V2 c_e p, and V2."""
        q, V2 = U[:, -2:].T
        c = pencil(matrices(U[:, :-2]), q)[0]
        return np.stack([V2 * c / (1 + q * c), V2], axis=1)

    def analytic_residual(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """E Q less what it is an average of (18.9), then the differences of both sides of (i) and
        (ii): q as a function of V1 / V2, and E Q as one of q, have many complex branches."""
        q, V2 = U[:, -2:].T
        rest, slope, c, c_slope = bulk_residual(self.rows.batches, U[:, :-2], q)
        p = 1 / (1 + q * c)
        V = np.stack([V2 * c * p, V2], axis=1)
        left, right, d_left, d_right = self._sides(V, alpha, lam, (p, np.zeros_like(p)))
        by_V = (d_left - d_right) / V[:, None, :]
        n = U.shape[1] - 2
        # c_e and p, as functions of (E Q, q)
        dc = np.concatenate([c_slope, np.zeros((len(U), 1), c_slope.dtype)], axis=1)
        dp = -(p * p)[:, None] * q[:, None] * dc
        dp[:, n] -= c * p * p
        dV1 = V2[:, None] * (dc * p[:, None] + c[:, None] * dp)
        matrix = np.zeros((len(U), n + 2, n + 2), np.result_type(U, by_V))
        matrix[:, :n, : n + 1] = slope
        matrix[:, n:, : n + 1] = by_V[:, :, :1] * dV1[:, None]
        matrix[:, n + 1, : n + 1] += dp
        matrix[:, n:, n + 1] = by_V[:, :, 0] * (c * p)[:, None] + by_V[:, :, 1]
        return np.concatenate([rest, left - right], axis=1), matrix

    def residual_near(self, V: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """Both sides of (i) and (ii) with the c_e that is tabulated: there is one branch only."""
        return super().analytic_residual(V, alpha, lam)

    def unresolved(self, ratio: Array) -> tuple[Array, Array]:
        """p as a function of V1 / V2 = c_e p."""
        q = self.rows.at_ratio(ratio)
        c, slope = self.rows.effective(q)
        p = ratio / c
        dp = -(c + q * slope) * p  # of log p in q
        return p, p * dp / (slope / c + dp)  # d log(V1 / V2) = d log c_e + d log p

    def loading_response(self, U: Array, alpha: Array) -> Array:
        """The same block of (alpha/beta) M', with C_e where no table reaches."""
        q, V2 = U[:, -2:].T
        C = self.rows.special_at(q, matrices(U[:, :-2]))
        M = self._special_of(q, C, np.zeros_like(C))
        theta = np.s_[: self.table.loadings.shape[1]]
        return np.asarray((alpha * V2)[:, None, None] * (M.C @ M.W)[:, theta, theta])

    def susceptibility(self, V: Array, V_hat: Array, alpha: Array) -> Susceptibility:
        """(alpha/beta) M' of Eq. (16.10)"""
        of = self._special(V, V_hat)
        M = (alpha * V[:, 1])[:, None, None] * (of.C @ of.W)
        theta = self.table.loadings.shape[1]
        order = np.arange(len(self.kept))
        return Susceptibility.of(M, order[:theta], order[theta:])

    def signal_sources(
        self, V: Array, V_hat: Array, alpha: Array, theta_hat: Array, p_hat: Array
    ) -> SignalSources:
        """The terms of (15.8) in nu = (theta_hat, p_hat): through V2, and directly in q_1."""
        of = self._special(V, V_hat)
        nu = of.W @ np.concatenate([theta_hat[:, 0], p_hat[:, 0]], axis=1)[..., None]
        zeta = (of.C @ nu)[:, theta_hat.shape[2] :]
        back = nu.swapaxes(1, 2)
        X2 = (alpha**2 / self.beta)[:, None] * (back @ of.qC_slope @ nu)[..., 0]
        Q1 = zeta.swapaxes(1, 2) @ zeta - back @ of.C_slope @ nu
        Q1 *= ((alpha * V[:, 1]) ** 2)[:, None, None]
        return SignalSources(np.zeros((len(V), 1, 1)), X2, Q1)

    def _averages(self, V_hat: Array, lam: Array) -> tuple[ResolventAverages, Array, Array]:
        """The averages of (5.2) with the c_e that they imply; q and c_e (P,)."""
        V1_hat, level = V_hat[:, 0], lam + V_hat[:, 1]
        beta = self.beta

        def system(c: Array, rows: NDArray[np.int64]) -> tuple[Array, Array]:
            c, v = c[:, 0], V1_hat[rows]
            r = resolvent_averages(level[rows], v, c, beta)
            value, slope = self.rows.effective(beta * v * r.inverse)
            # d V2 / dc = -V1_hat <D/S^2> / c
            jacobian = 1 + slope / value * beta * v**2 * r.mixed
            return np.log(c / value)[:, None], jacobian[:, None, None]

        start = np.full((len(lam), 1), self.rows.c)
        c = newton(system, start, tol=1e-15).value[:, 0]
        averages = resolvent_averages(level, V1_hat, c, beta)
        return averages, beta * V1_hat * averages.inverse, c

    def _special(self, V: Array, V_hat: Array) -> Special:
        """Eq. (16.9)"""
        q = self.beta * V[:, 1] * V_hat[:, 0]
        return self._special_of(q, *self.rows.special(q))

    def _special_of(self, q: Array, C: Array, slope: Array) -> Special:
        """The same from C_e and its derivative on all of u, the norms and zeta."""
        rows, columns = np.ix_(self.kept, self.kept)
        C, slope = (part[:, rows, columns] for part in (C, slope))
        q = q[:, None, None]
        zeta = np.diag(self.kept > 1).astype(float)
        W = np.linalg.inv(np.eye(len(zeta)) + q * zeta @ C)
        return Special(C, C + q * slope, slope, W)
