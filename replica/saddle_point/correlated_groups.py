"""The network itself, of several groups of neurons: their bulk and what acts on it.

docs/theory.md 17

The equations of ``groups`` with the effective covariance of ``group_pencil``; and overlaps along u,
the rest zeta of the target's directions and the row norms from

    M' = sqrt(tau) C_e (1 + P K C_e)^-1 sqrt(tau),                                   (17.4)

on these directions times groups, P being 1 on zeta and 0 on u and the norms.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from solvers.linear import solve_rows
from solvers.results import Array

from ..equivalence import Table
from .group_pencil import GroupRows
from .group_special import GroupSpecial
from .groups import Averages, Groups, Resolvent
from .responses import SignalSources, Susceptibility

NEWTON = 20  # steps at most; four or so are usual
SETTLED = 1e-8  # last step of the averages, relative: the error left is its square
ROUNDING = 1e-9  # of eigenvalues that are not negative, relative to the largest


class CorrelatedGroups(Groups):
    """Any number of groups of the rows of a network."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        assert isinstance(table.covariance, GroupRows)
        self.rows = table.covariance

    def start(self, smallest: Array) -> tuple[Array, Array]:
        """V2 and x of the last call where that was for as many points, else x at K = 0."""
        if len(self.last[0]) == len(smallest) and np.isfinite(self.last[0]).all():
            return self.last
        return smallest, np.tile(self.rows.start, (len(smallest), 1))

    def averages_at(self, K: Array, start: Array) -> Array:
        """The averages x (P, n) that real K implies, by Newton's method from ``start`` or, where
        that fails, from K = 0; NaN where that fails, too."""
        x = self._newton(K, start)
        lost = ~np.isfinite(x).all(axis=1) & np.isfinite(K).all(axis=(1, 2))
        if lost.any():
            x[lost] = self._newton(K[lost], np.tile(self.rows.start, (lost.sum(), 1)))
        return x

    def _newton(self, K: Array, start: Array) -> Array:
        """The averages x (P, n) by Newton's method; NaN where it fails, or leaves the branch."""
        x, done = np.array(start), np.zeros(len(K), dtype=bool)
        for _ in range(NEWTON):
            at = self.resolvent(K, x)
            rest, by_x, _ = self.rows.equation(x, self._trace_of(at))
            step = solve_rows(by_x, rest)
            x -= step
            size = 1 + np.abs(x).max(axis=1, initial=0.0)
            done = np.abs(step).max(axis=1, initial=0.0) <= SETTLED * size
            if done.all():
                break
        return np.where((done & self._admissible(self.resolvent(K, x)))[:, None], x, np.nan)

    def effective(self, x: Array) -> tuple[Array, Array, Array]:
        """C, o (P, 2A, A) with dC = o^T dx o, and the inverse of the pencil's second block."""
        return self.rows.effective(x)

    def averages(self, at: Resolvent) -> Averages:
        """The equations for x.  Eq. (18.9)"""
        rest, by_x, Q = self.rows.equation(at.x, self._trace_of(at))
        rows, columns = self.rows.upper
        U = (at.outer @ at.W)[:, self.rows.active]  # dG = -G dx G + U dK U^T, dS = U^T dx U - ...
        of_S = U[:, rows, :, None] * U[:, columns, None]
        of_S = (of_S + of_S.swapaxes(2, 3)) / np.where(rows == columns, 2.0, 1.0)[:, None, None]
        return Averages(rest, by_x, self.rows.products(Q, U), of_S)

    def susceptibility(self, V: Array, V_hat: Array, alpha: Array) -> Susceptibility:
        """(alpha/beta) M' of Eq. (16.10)"""
        V2 = self.unpack(V)[1]
        at = self.resolvent(self.scale(V2) * self.unpack(V_hat)[0])
        return Susceptibility.of(self._overlaps(at, V2, alpha), *self.kept)

    def loading_response(self, U: Array, alpha: Array) -> Array:
        """The block of theta in (alpha/beta) M'."""
        V = self.from_analytic(U)
        V1_hat, V2 = self.unpack(self.conjugates(V, alpha))[0], self.unpack(V)[1]
        at = self.resolvent(self.scale(V2) * V1_hat, U[:, : -len(self.signed)])
        along = self.kept[0]
        return self._overlaps(at, V2, alpha)[:, along[:, None], along]

    def signal_sources(
        self, V: Array, V_hat: Array, alpha: Array, theta_hat: Array, p_hat: Array
    ) -> SignalSources:
        """The terms of (15.8) in nu = (theta_hat, p_hat): through V2_b, and directly in Q_1.

        nu^T M' nu changes with sqrt(tau), with K where that acts along zeta, and with G.
        """
        V2 = self.unpack(V)[1]
        at = self.resolvent(self.scale(V2) * self.unpack(V_hat)[0])
        special, inverse = self._special(at)
        P, A, (along, rest) = len(V), self.groups, self.kept
        root = np.tile(np.sqrt(self.beta * V2), len(special.turn))
        nu = np.zeros(root.shape)
        nu[:, along], nu[:, rest] = theta_hat.reshape(P, -1), p_hat.reshape(P, -1)
        nu *= root
        w = (inverse @ nu[..., None])[..., 0]
        overlaps = (special.C @ w[..., None]).reshape(P, -1, A)
        on_zeta = overlaps[:, 1:-1]
        by_K = on_zeta.swapaxes(1, 2) @ on_zeta  # -d(nu^T M' nu) / dK
        by_K += special.through_trace(w, at.outer @ at.W, self.averages(at).by_x)
        by_tau = (nu.reshape(overlaps.shape) * overlaps).sum(axis=1)
        by_tau -= np.einsum("pab,pba->pa", at.K, by_K)
        scale = alpha**2 / self.beta
        return SignalSources(
            np.zeros((P, A, A)),
            (scale / self.beta)[:, None] * by_tau / V2,
            (scale / self.beta)[:, None, None] * self.scale(V2) * by_K,
        )

    @cached_property
    def kept(self) -> tuple[Array, Array]:
        """Where theta, groups first, and psi stand among the directions times groups."""
        order = np.arange((self.rows.basis.shape[1] + 1) * self.groups).reshape(-1, self.groups)
        spike = order[[0, -1][: self.table.loadings.shape[1]]]
        return spike.T.ravel(), order[1 : len(self.rows.basis)].T.ravel()

    def magnitude(self, V: Array) -> Array:
        """What errors of each unknown are compared with: of (x, V), of x its largest and 1."""
        n = V.shape[1] - len(self.signed)
        size = 1 + np.abs(V[:, :n]).max(axis=1, keepdims=True, initial=0.0)
        return np.concatenate([np.repeat(size, n, axis=1), super().magnitude(V[:, n:])], axis=1)

    def to_analytic(self, V: Array, alpha: Array) -> Array:
        """(x, V)."""
        V1_hat = self.unpack(self.conjugates(V, alpha))[0]
        K = self.scale(self.unpack(V)[1]) * V1_hat
        return np.concatenate([self.resolvent(K).x, V], axis=1)

    def from_analytic(self, U: Array) -> Array:
        """V, the last of the coordinates."""
        return U[:, -len(self.signed) :]

    def _admissible(self, at: Resolvent) -> NDArray[np.bool_]:
        """Where the real solution is on the right branch, (P,): N is positive, and the second block
        of G is negative."""
        good = np.asarray(np.isfinite(at.x).all(axis=1) & np.isfinite(at.N).all(axis=(1, 2)))
        first = np.linalg.eigvalsh(at.N[good])
        second = np.linalg.eigvalsh(self._trace_of(at)[good, self.groups :, self.groups :])
        good[good] = (first[:, 0] >= -ROUNDING * first[:, -1]) & (second[:, -1] < 0)
        return good

    def _trace_of(self, at: Resolvent) -> Array:
        """G (P, 2A, 2A).  Eq. (18.9)"""
        G = at.outer @ at.N @ at.outer.swapaxes(1, 2)
        G[:, self.groups :, self.groups :] += at.second
        return np.asarray(G)

    def _overlaps(self, at: Resolvent, V2: Array, alpha: Array) -> Array:
        """(alpha/beta) M', the groups of each direction side by side."""
        special, inverse = self._special(at)
        tau = np.tile(self.scale(V2), (len(special.turn),) * 2)
        return np.asarray((alpha / self.beta)[:, None, None] * tau * (special.C @ inverse))

    def _special(self, at: Resolvent) -> tuple[GroupSpecial, Array]:
        """The pencil on the special directions, and (1 + P K C)^-1 there."""
        special = GroupSpecial(self.rows, at.x, self._trace_of(at))
        directions = len(special.turn)
        on_zeta = np.ones(directions)
        on_zeta[[0, -1]] = 0.0
        acting = np.kron(np.diag(on_zeta), np.ones(at.K.shape[1:])) * np.tile(
            at.K, (directions,) * 2
        )
        return special, np.linalg.inv(np.eye(acting.shape[1]) + acting @ special.C)
