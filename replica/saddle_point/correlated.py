"""The responses of the network itself: bulks with a row covariance.  docs/theory.md 15-18

With the effective covariance C of ``pencil`` in the place of the bulk variances, the resolvent
equations are those of isotropic rows.  Along u, the row norms delta, zeta and what other special
directions there are, the overlaps are those of the resolvent in the form (4.13),

    M' = sqrt(tau) C W sqrt(tau),    W = (1 + Pi K C)^-1,    tau = beta V2,           (17.4)

C being that of ``special``, and Pi 0 on u, the norms and zeta, which the output has terms of its
own in, and 1 on the others.  The derivatives of nu^T M' nu that (15.8) has are forms in
w = W sqrt(tau) nu: in K at fixed tau, dC/dK less the square of C w where Pi is 1; and in log tau_b
at fixed V1_hat, w C w of group b, and K dC/dK.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from solvers.marchenko_pastur import ResolventAverages, resolvent_averages
from solvers.results import Array

from ..equivalence import Table
from .groups import Groups, geometric_means
from .isotropic import Isotropic
from .pencil import GroupResolvent, PencilEquations, Rows
from .responses import Responses, SignalSources
from .rows import TabulatedRows
from .special import Special


class SignalResponse(NamedTuple):
    """How the overlaps along special directions answer the signal, at P points.  Eq. (17.4)

    Attributes
    ----------
    table, rows
        Of the groups.
    K, C : (P, A, A), (P, nA, nA)
        C on n directions, the groups of each side by side.
    slope : callable
        -d(w^T C w) / dK of vectors w.
    """

    table: Table
    rows: Rows
    K: Array
    C: Array
    slope: Callable[[Array], Array]

    @property
    def own(self) -> int:
        """Directions, the first, that the output has terms of its own in: u, norms and zeta."""
        return 1 + len(self.rows.basis)

    @property
    def unknowns(self) -> Array:
        """Where the overlaps, groups first, stand among the directions times groups: u, the norms
        where they fluctuate, and zeta, (A (K + K'),)."""
        A, spikes = self.K.shape[1], self.table.loadings.shape[1]
        order = np.arange(self.own * A).reshape(self.own, A)
        return np.concatenate([order[:spikes], order[2:]]).T.ravel()

    def overlaps(self, V2: Array, alpha: Array) -> Array:
        """(alpha/beta) M', between the unknowns.  Eq. (17.4)"""
        size = np.tile(geometric_means(V2), (self.C.shape[1] // V2.shape[1],) * 2)
        M, unknowns = alpha[:, None, None] * size * (self.C @ self._shrunk()), self.unknowns
        return np.asarray(M[:, unknowns[:, None], unknowns])

    def sources(self, V2: Array, alpha: Array, special_hat: Array) -> SignalSources:
        """The terms of (15.8) in the conjugates nu: through V2_b, and directly in Q_1."""
        P, A = V2.shape
        nu = np.zeros(self.C.shape[:2], np.result_type(special_hat, V2))
        nu[:, self.unknowns] = special_hat.reshape(P, -1)
        root = np.tile(np.sqrt(V2), self.C.shape[1] // A)
        w = self._shrunk() @ (root * nu)[..., None]
        Cw, slope = (self.C @ w).reshape(P, -1, A), self.slope(w[..., 0])
        bound = Cw[:, self.own :]
        by_K = slope + bound.swapaxes(1, 2) @ bound  # -d(nu^T M' nu) / dK
        by_tau = (w.reshape(Cw.shape) * Cw).sum(axis=1) - (self.K * slope).sum(axis=2)
        size = (alpha**2 / self.table.beta)[:, None]
        root = alpha[:, None] * root[:, :A]
        return SignalSources(size * by_tau / V2, root[:, :, None] * root[:, None] * by_K)

    def _shrunk(self) -> Array:
        """W.  Eq. (17.4)"""
        A = self.K.shape[1]
        n = self.C.shape[1] // A
        acting = np.zeros((len(self.K), n, A, n, A), self.K.dtype)
        acting[:, range(self.own, n), :, range(self.own, n)] = self.K
        return np.linalg.inv(np.eye(n * A) + acting.reshape(self.C.shape) @ self.C)


class CorrelatedGroup(Isotropic):
    """One group, of tabulated rows; packed vectors are pairs (V1, V2).

    With c_e(q), q = beta V2 V1_hat, in the place of c, (16.6) are the equations of isotropic rows,
    so closed forms, Newton's equations and responses are the isotropic ones.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        assert isinstance(table.covariance, TabulatedRows)
        self.tables, self.rows = table.covariance, table.covariance.rows

    @cached_property
    def analytic(self) -> Responses:
        """By the pencil, which holds where no table reaches: q as a function of V1 / V2, and E Q
        as one of q, have many complex branches."""
        return CorrelatedGroups(replace(self.table, covariance=self.rows))

    def log_residual(self, V: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """As of isotropic rows, but V1 / V2 = c_e p with the q of (4.2) where p is above 1/2: there
        (ii) has lost the digits of 1 - p, on which c_e may depend steeply."""
        residual, slope = super().log_residual(V, alpha, lam)
        R, w, (m1, m2) = self.shrinkage(V), self.table.weights, self.coefficients
        q = alpha * V[:, 1] * (R @ (w * m1))
        by_V = -alpha[:, None] * V[:, 1:] * V * (R**2 @ (w * m1 * np.stack([m1, m2])).T)
        by_V[:, 1] += q  # dq / d log V
        c, dc = self.tables.effective(q)
        p = 1 / (1 + q * c)
        off = np.log(V[:, 0] / V[:, 1] / (c * p))
        by_q = dc / c - (c + q * dc) * p
        few = p > 0.5
        residual[few, 1] = off[few]
        slope[few, 1] = np.array([1.0, -1.0]) - (by_q[:, None] * by_V)[few]
        return residual, slope

    def unresolved(self, ratio: Array) -> tuple[Array, Array]:
        """p as a function of V1 / V2 = c_e p; NaN above its largest value c."""
        inverse = 1 / np.where(ratio <= self.tables.c * (1 + 1e-12), ratio, np.nan)
        q, c, slope = self._consistent(lambda c: (inverse - 1 / c, 1 / c**2), ratio)
        p = ratio / c
        dp = -(c + q * slope) * p  # of log p in q
        return p, p * dp / (slope / c + dp)  # d log(V1 / V2) = d log c_e + d log p

    def response(self, V: Array, V_hat: Array) -> SignalResponse:
        """C of the tables, on u, delta and zeta.  Eq. (18.12)"""
        q = self.beta * V[:, 1] * V_hat[:, 0]
        C, slope = self.tables.special(q)
        return SignalResponse(
            self.table, self.rows, q[:, None, None], C, lambda w: -w[:, None] @ slope @ w[..., None]
        )

    def _averages(self, V_hat: Array, lam: Array) -> tuple[ResolventAverages, Array, Array]:
        """With the c_e that they imply.  Eq. (16.6)"""
        V1_hat, level, beta = V_hat[:, 0], lam + V_hat[:, 1], self.beta

        def q_of(c: Array) -> tuple[Array, Array]:
            r = resolvent_averages(level, V1_hat, c, beta)
            return beta * V1_hat * r.inverse, -beta * V1_hat**2 * r.mixed / c

        _, c, slope = self._consistent(q_of, lam)
        return resolvent_averages(level, V1_hat, c, beta), c, slope

    def _consistent(
        self, q_of: Callable[[Array], tuple[Array, Array]], like: Array
    ) -> tuple[Array, Array, Array]:
        """q, c_e(q) and its derivative where q is that of ``q_of`` (c), which has its derivative in
        c beside it, for as many points as ``like``; by Newton's method in log c, halved where it
        leaves what the signs so far allow; NaN where there is no such q."""

        def step(c: Array) -> tuple[Array, Array]:
            q, dq = q_of(c)
            value, slope = self.tables.effective(np.where(q < 0, 0.0, q))
            slope = np.where(q < 0, 0.0, slope)  # of c_e(0) for all these
            off = np.log(value / c)
            return off, np.asarray(off / (1 - c * slope / value * dq))

        c = np.full(len(like), self.tables.c)
        low, high = 1e-6 * c, c
        nearly = 1e-8  # the last step of log c_e: what is left is its square
        for _ in range(40):
            off, change = step(c)
            low, high = np.where(off > 0, c, low), np.where(off < 0, c, high)
            ahead = c * np.exp(change)
            settled = ~(np.abs(change) > nearly)
            inside = settled | ((low < ahead) & (ahead < high))
            c = np.where(inside, ahead, np.sqrt(low * high))
            if settled.all():
                break
        c = np.where(np.abs(change) <= nearly, c, np.nan)
        q = q_of(c)[0]
        return q, *self.tables.effective(q)


class CorrelatedGroups(Groups):
    """Any number of groups: the equations for the averages x of the pencil beside (17.2)."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        assert isinstance(table.covariance, Rows)
        self.rows, self._known = table.covariance, dict[tuple[tuple[int, ...], bytes], Array]()

    def averages_at(self, K: Array, near: Array | None = None) -> Array:
        """The averages x (P, n) that real K implies, from a guess.  Those from no guess are kept:
        at a solution several equations ask for them."""
        if near is not None:
            return self.rows.averages(K, near)
        key, known = (K.shape, K.tobytes()), self._known
        if key not in known:
            self._known = known = {key: self.rows.averages(K)}
        return known[key]

    def effective(self, x: Array) -> tuple[Array, Array]:
        """C, and o (P, 2AT, A) with dC = o^T dx o."""
        return self.rows.effective(x)[:2]

    def averages(self, at: GroupResolvent) -> PencilEquations:
        """The equations for x.  Eq. (18.9)"""
        G = self.rows.trace(at.x, at.K)
        rest, by_x, squares = self.rows.equation(at.x, G)
        rows, columns = self.rows.upper
        U = at.outer @ at.W  # dG = -G dx G + U dK U^T, dS = U^T dx U - ...
        of_S = U[:, rows, :, None] * U[:, columns, None]
        of_S = (of_S + of_S.swapaxes(2, 3)) / np.where(rows == columns, 2.0, 1.0)[:, None, None]
        return PencilEquations(rest, by_x, self.rows.products(squares, U), of_S)

    def response(self, V: Array, V_hat: Array, x: Array | None = None) -> SignalResponse:
        """C of the pencil, which depends on K through G alone, for averages x or those of K."""
        V1_hat, V2 = self.unpack(V_hat)[0], self.unpack(V)[1]
        at = self.resolvent(self.scale(V2) * V1_hat, x)
        G = self.rows.trace(at.x, at.K)
        special, U = Special(self.rows, at.x, G), at.outer @ at.W

        def slope(w: Array) -> Array:
            by_G, of = special.by_trace(w), self.averages(at)
            rows, columns = self.rows.upper
            by_x = -(G @ by_G @ G)[:, rows, columns] * np.where(rows == columns, 1.0, 2.0)
            dx = -np.linalg.solve(of.by_x, of.by_K.reshape(*by_x.shape, self.groups**2))
            through_x = (by_x[:, None] @ dx).reshape(at.K.shape)
            return np.asarray(U.swapaxes(1, 2) @ by_G @ U + through_x)

        return SignalResponse(self.table, self.rows, at.K, special.C, slope)

    def loading_response(self, U: Array, alpha: Array) -> Array:
        """(alpha/beta) M'."""
        V = self.from_analytic(U)
        of = self.response(V, self.conjugates(V, alpha), self.averages_in(U))
        return of.overlaps(self.unpack(V)[1], alpha)
