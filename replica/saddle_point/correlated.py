"""The bulk of the network itself: one group whose rows have a covariance.  docs/theory.md 15.

In the variable x of ``row_covariance`` the resolvent equations (15.5) are those of isotropic
rows of an effective variance C_e(x), with x C_e = beta Vh1 V1; so closed forms, Newton's
equations and responses are the isotropic ones, with C_e and what it changes.  Along (u, zeta)
and the row norms, the overlaps are those of the resolvent

    M' = (C^-1/tau + Vh1 (1 - u u^T))^-1                                     (15.6), (15.7)

on the extended covariance [[C, k], [k^T, v]]; Vh1 does not act on the norms.
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
from .responses import SignalSources, Susceptibility
from .row_covariance import RowCovariance


class Block(NamedTuple):
    """M' on u, (where kept) the row norms, and zeta: (P, n, n) each."""

    inverse: Array  # M' / tau
    by_tau: Array  # dM'/dtau at fixed Vh1
    by_force: Array  # -dM'/dVh1 at fixed tau, over tau^2


class Correlated(Isotropic):
    """One group; packed vectors are pairs (V1, V2)."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        assert isinstance(table.covariance, RowCovariance)
        self.covariance = table.covariance

    @cached_property
    def kept(self) -> list[int]:
        """Which of u, the norms and zeta are unknowns."""
        return [0, 1, 2] if self.table.loadings.shape[1] == 2 else [0, 2]

    def from_conjugates(self, V_hat: Array, lam: Array) -> Array:
        """Eq. (15.5)"""
        averages, _ = self._averages(V_hat, lam)
        return np.stack([averages.weighted, averages.inverse], axis=1)

    def second_moments_at(self, V_hat: Array, lam: Array, X: Array) -> Array:
        """-dV[X] of Eq. (15.8): as for isotropic rows, and through C_e."""
        r, c = self._averages(V_hat, lam)
        V1_hat, level = V_hat[:, 0], lam + V_hat[:, 1]
        X1, X2 = X.T
        x = self.beta * V1_hat * r.weighted / c
        slope = self.covariance.effective(x)[1][0]
        dx = self.beta / c * r.mixed * (level * X1 - V1_hat * X2)
        dc = slope * dx / (1 + slope * self.beta * (V1_hat / c) ** 2 * r.weighted2)
        by_c = r.mixed / c * dc
        return np.stack(
            [
                r.weighted2 * X1 + r.mixed * X2 - level * by_c,
                r.mixed * X1 + r.inverse2 * X2 + V1_hat * by_c,
            ],
            axis=1,
        )

    def analytic_residual(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """Differences of both sides of (i), (ii) in U = (x, V2): the inner solve for x given
        V1 / V2 has many complex roots."""
        (C, p), (dC, dp) = self.covariance.effective(U[:, 0])
        V = self.from_analytic(U)
        left, right, d_left, d_right = self._sides(V, alpha, lam, (p, np.zeros_like(p)))
        slope = (d_left - d_right) / V[:, None, :]
        by_x = slope[..., 0] * (U[:, 1] * (dC * p + C * dp))[:, None]
        by_x[:, 1] += dp
        by_V2 = slope[..., 0] * (C * p)[:, None] + slope[..., 1]
        return left - right, np.stack([by_x, by_V2], axis=2)

    def to_analytic(self, V: Array) -> Array:
        """x and V2."""
        return np.stack([self.covariance.at_ratio(V[:, 0] / V[:, 1])[0], V[:, 1]], axis=1)

    def from_analytic(self, U: Array) -> Array:
        """V1 = V2 C_e p, and V2."""
        x, V2 = U.T
        C, p = self.covariance.effective(x)[0]
        return np.stack([V2 * (C * p), V2], axis=1)

    def unresolved(self, ratio: Array) -> tuple[Array, Array]:
        """p as a function of V1 / V2 = C_e p."""
        x, C = self.covariance.at_ratio(ratio)
        dC, dp = self.covariance.effective(x)[1]
        p = ratio / C
        return p, dp / (dC / C + dp / p)  # d log(V1 / V2) = dC/C + dp/p

    def susceptibility(self, V: Array, V_hat: Array, alpha: Array) -> Susceptibility:
        """Eq. (15.7)"""
        M = (alpha * V[:, 1])[:, None, None] * self._block(V).inverse  # (alpha/beta) M'
        order = np.arange(len(self.kept))
        return Susceptibility.of(M, order[:-1], order[-1:])

    def signal_sources(
        self, V: Array, V_hat: Array, alpha: Array, theta_hat: Array, p_hat: Array
    ) -> SignalSources:
        """The terms of (15.8) in nu = (theta_hat, p_hat): through V2, and directly in q_1."""
        block = self._block(V)
        nu = np.concatenate([theta_hat[:, 0], p_hat[:, 0]], axis=1)
        X2 = alpha**2 / self.beta * np.einsum("pi,pij,pj->p", nu, block.by_tau, nu)
        Q1 = (alpha * V[:, 1]) ** 2 * np.einsum("pi,pij,pj->p", nu, block.by_force, nu)
        return SignalSources(np.zeros((len(V), 1, 1)), X2[:, None], Q1[:, None, None])

    def _averages(self, V_hat: Array, lam: Array) -> tuple[ResolventAverages, Array]:
        """The averages of (5.2) with the C_e that they imply, and C_e (P,)."""
        V1_hat, level = V_hat[:, 0], lam + V_hat[:, 1]
        beta = self.beta

        def system(c: Array, rows: NDArray[np.int64]) -> tuple[Array, Array]:
            c, v = c[:, 0], V1_hat[rows]
            r = resolvent_averages(level[rows], v, c, beta)
            x = beta * v * r.weighted / c
            (value, _), (slope, _) = self.covariance.effective(x)
            # c dx/dc = -beta v^2 <D^2/S^2> / c
            jacobian = 1 + slope / value * beta * v**2 * r.weighted2 / c
            return np.log(c / value)[:, None], jacobian[:, None, None]

        start = np.full((len(lam), 1), self.covariance.c)
        c = newton(system, start, tol=1e-15).value[:, 0]
        return resolvent_averages(level, V1_hat, c, beta), c

    def _block(self, V: Array) -> Block:
        """Eq. (15.6) with the row norms: M~ on (u, norms, zeta), then without Vh1 along u."""
        of = self.covariance
        ratio = V[:, 0] / V[:, 1]  # C_e p
        x, C = of.at_ratio(ratio)
        r = of.resolvent(x, ratio / C)
        turn = of.basis
        R, R2, CR, CR2, CCR2 = (turn @ part @ turn.T for part in (r.R, r.R2, r.CR, r.CR2, r.CCR2))
        q = r.q[:, None, None]
        norm = np.array([False, True, False])
        both, one = np.s_[:, 1:2, 1:2], norm[:, None] ^ norm
        # M~/tau = C (1 + q P C)^-1 on the extended C, P being 0 on the norms; its derivatives
        M = np.where(one, R, CR)
        M[both] = of.v - q * R[both]
        by_tau = np.where(one, R2, CR2)
        by_tau[both] = of.v - q * (R + R2)[both]
        by_force = np.where(one, CR2, CCR2)
        by_force[both] = R2[both]
        # 1 - Vh1 M~_uu = R_uu
        along = M[:, :, :1]
        freed = np.eye(3) + q / R[:, :1, :1] * np.array([[[1.0], [0], [0]]]) * M[:, :1]
        back = freed.transpose(0, 2, 1)
        by_force = by_force - along * along.transpose(0, 2, 1)
        found = (M @ freed, back @ by_tau @ freed, back @ by_force @ freed)
        pick = np.ix_(self.kept, self.kept)
        return Block(*(part[:, *pick] for part in found))
