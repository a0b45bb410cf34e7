"""Responses, and signal response, of networks, whose bulk has a row covariance.
docs/theory.md 15-18

The resolvent equations are those of isotropic rows, with the effective covariance C of
``linear_pencil`` instead of the bulk variances.  Along u, the row norms delta, zeta and the other
special directions, the susceptibility is the resolvent in the form (4.13),

    M' = sqrt(tau) C W sqrt(tau),    W = (1 + Pi K C)^-1,    tau = beta V2,           (17.4)

where C is from ``special_directions``.  Pi is 0 on u, the norms and zeta, in which the output has
separate terms, and 1 on the other directions.  The derivatives of nu^T M' nu in (15.8) are
quadratic forms in w = W sqrt(tau) nu.  In K at fixed tau the form is dC/dK minus the square of C w
where Pi is 1.  In log tau_b at fixed V1_hat it is w C w of group b, plus K dC/dK.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from solvers.marchenko_pastur import ResolventAverages, resolvent_averages
from solvers.newton import newton
from solvers.results import Array, Indices

from ..equivalence import Table
from .groups import Groups, geometric_means
from .isotropic import Isotropic
from .linear_pencil import GroupResolvent, PencilEquations, TrainedRows
from .responses import Responses, identity
from .row_covariances import TabulatedRows
from .special_directions import DELTA, Special


class SignalResponse(NamedTuple):
    """Response of the overlaps with special directions to the signal, at P points.  Eq. (17.4)

    Attributes
    ----------
    table
        Table of the groups.
    output_directions : int
        Number of leading directions in which the output has terms: u, norms and zeta.
    K, C : (P, A, A), (P, nA, nA)
        K of (17.2), and C on n directions, with the groups of a direction next to each other.
    slope : callable
        Function of vectors w with the value -d(w^T C w) / dK.
    """

    table: Table
    output_directions: int
    K: Array
    C: Array
    slope: Callable[[Array], Array]

    @property
    def overlap_indices(self) -> Array:
        """Indices of the overlaps, groups first, among directions times groups, (A (K + K'),).

        The overlaps are along u, the norms if these fluctuate, and zeta.
        """
        A, overlap_count = self.K.shape[1], self.table.loadings.shape[1] + len(self.table.g)
        flat_indices = np.arange(self.output_directions * A).reshape(self.output_directions, A)
        without_norms = overlap_count < self.output_directions
        return (np.delete(flat_indices, DELTA, axis=0) if without_norms else flat_indices).T.ravel()

    def overlaps(self, V2: Array, alpha: Array) -> Array:
        """Susceptibility (alpha/beta) M' of the overlaps with special directions to their
        conjugates, in the order of ``overlap_indices``.  Eq. (17.4)"""
        root_V2 = np.tile(geometric_means(V2), (self.C.shape[1] // V2.shape[1],) * 2)
        M = alpha[:, None, None] * root_V2 * (self.C @ self._matrix_W())
        overlap_indices = self.overlap_indices
        return np.asarray(M[:, overlap_indices[:, None], overlap_indices])

    def sources(self, V2: Array, alpha: Array, special_hat: Array) -> tuple[Array, Array]:
        """Contributions of the special directions' conjugates nu (P, A, K + K') to the second
        moments: to X2 (P, A) of every group, as V2_b changes M', and to Q_1 (P, A, A).
        Eq. (15.8)"""
        P, A = V2.shape
        nu = np.zeros(self.C.shape[:2], np.result_type(special_hat, V2))
        nu[:, self.overlap_indices] = special_hat.reshape(P, -1)
        root_tau = np.tile(np.sqrt(V2), self.C.shape[1] // A)
        W_nu = self._matrix_W() @ (root_tau * nu)[..., None]
        Cw, C_slope = (self.C @ W_nu).reshape(P, -1, A), self.slope(W_nu[..., 0])
        Cw_bound = Cw[:, self.output_directions :]
        by_K = C_slope + Cw_bound.swapaxes(1, 2) @ Cw_bound  # -d(nu^T M' nu) / dK
        by_tau = (W_nu.reshape(Cw.shape) * Cw).sum(axis=1) - (self.K * C_slope).sum(axis=2)
        source_scale = (alpha**2 / self.table.beta)[:, None]
        root_tau = alpha[:, None] * root_tau[:, :A]
        return source_scale * by_tau / V2, root_tau[:, :, None] * root_tau[:, None] * by_K

    def _matrix_W(self) -> Array:
        """Matrix W = (1 + Pi K C)^-1, (P, nA, nA).  Eq. (17.4)"""
        A = self.K.shape[1]
        n, identity_matrix = self.C.shape[1] // A, identity(self.C.shape[1])
        if n == self.output_directions:  # of tables: Pi is 0
            return identity_matrix[None]
        Pi_K = np.zeros((len(self.K), n, A, n, A), self.K.dtype)
        Pi_K[:, range(self.output_directions, n), :, range(self.output_directions, n)] = self.K
        return np.linalg.inv(identity_matrix + Pi_K.reshape(self.C.shape) @ self.C)


class CorrelatedGroup(Isotropic):
    """Responses of one group with tabulated rows; packed vectors are pairs (V1, V2).

    With c_e(q), q = beta V2 V1_hat, instead of c, (16.6) are the equations of isotropic rows.  So
    the closed forms, Newton's equations and the linear response are those of ``Isotropic``.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        assert isinstance(table.covariance, TabulatedRows)
        self.tables, self.rows = table.covariance, table.covariance.rows

    @cached_property
    def analytic(self) -> Responses:
        """Responses by the pencil, which holds at complex arguments, where the tables do not: q as
        a function of V1 / V2, and E Q as a function of q, have many complex branches."""
        return CorrelatedGroups(replace(self.table, covariance=self.rows))

    def log_residual(self, V: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """Residuals (i) and (ii) of isotropic rows.  Where p is above 1/2, V1 / V2 = c_e p replaces
        (ii), with the q of (4.2): (ii) has lost digits of 1 - p, on which c_e may depend
        steeply."""
        log_residual, log_slope = super().log_residual(V, alpha, lam)
        R, w, (m1, m2) = self.shrinkage(V), self.table.weights, self.table.response_coefficients
        q = alpha * V[:, 1] * (R @ (w * m1))
        q_by_V = -alpha[:, None] * V[:, 1:] * V * (R**2 @ (w * m1 * np.stack([m1, m2])).T)
        q_by_V[:, 1] += q  # dq / d log V
        effective_c, c_slope = self.tables.c_e(q)
        p = 1 / (1 + q * effective_c)
        log_ratio_residual = np.log(V[:, 0] / V[:, 1] / (effective_c * p))
        log_ratio_by_q = c_slope / effective_c - (effective_c + q * c_slope) * p
        small_q = p > 0.5
        log_residual[small_q, 1] = log_ratio_residual[small_q]
        log_slope[small_q, 1] = np.array([1.0, -1.0]) - (log_ratio_by_q[:, None] * q_by_V)[small_q]
        return log_residual, log_slope

    def unresolved(self, ratio: Array) -> tuple[Array, Array]:
        """Share p of unresolved directions as a function of V1 / V2 = c_e p, and its derivative in
        log(V1 / V2); NaN where V1 / V2 is above its largest value c."""
        inverse_ratio = 1 / np.where(ratio <= self.tables.c * (1 + 1e-12), ratio, np.nan)
        q, c, c_slope = self._self_consistent(
            lambda c, rows: (inverse_ratio[rows] - 1 / c, 1 / c**2), len(ratio)
        )
        p_share = ratio / c
        dp = -(c + q * c_slope) * p_share  # d log p / dq
        return p_share, p_share * dp / (c_slope / c + dp)  # d log(V1 / V2) = d log c_e + d log p

    def signal_response(self, V: Array, V_hat: Array) -> SignalResponse:
        """Signal response with the tabulated C on u, delta and zeta.  Eq. (18.12)"""
        q = self.beta * V[:, 1] * V_hat[:, 0]
        C, C_slope = self.tables.special_covariance(q)
        K = q[:, None, None]
        return SignalResponse(
            self.table, C.shape[1], K, C, lambda w: -w[:, None] @ C_slope @ w[..., None]
        )

    def _averages(self, V_hat: Array, lam: Array) -> tuple[ResolventAverages, Array, Array]:
        """Averages of (5.2) at the effective variance c_e that they imply, with c_e and its
        derivative in q.  Eq. (16.6)"""
        V1_hat, bulk_level, beta = V_hat[:, 0], lam + V_hat[:, 1], self.beta

        def q_of_c(c: Array, rows: Indices) -> tuple[Array, Array]:
            averages = resolvent_averages(bulk_level[rows], V1_hat[rows], c, beta)
            q_slope = -beta * V1_hat[rows] ** 2 * averages.mixed / c
            return beta * V1_hat[rows] * averages.inverse, q_slope

        _, c, c_slope = self._self_consistent(q_of_c, len(lam))
        return resolvent_averages(bulk_level, V1_hat, c, beta), c, c_slope

    def _self_consistent(
        self, q_of: Callable[[Array, Indices], tuple[Array, Array]], point_count: int
    ) -> tuple[Array, Array, Array]:
        """Solution q of q = q_of(c_e(q)), with c_e(q) and its derivative; NaN where there is none.

        ``q_of`` returns q and its derivative in c, for some of ``point_count`` points.
        """

        def system(row_c: Array, rows: Indices) -> tuple[Array, Array]:
            q, dq = q_of(row_c[:, 0], rows)
            effective_c, c_slope = self.tables.c_e(np.maximum(q, 0.0))
            log_slope = np.where(q < 0, 0.0, row_c[:, 0] * c_slope / effective_c * dq) - 1
            return np.log(effective_c[:, None] / row_c), log_slope[:, None, None]

        c_root = newton(system, np.full((point_count, 1), self.tables.c))
        q = q_of(np.where(c_root.converged, c_root.value[:, 0], np.nan), np.arange(point_count))[0]
        return q, *self.tables.c_e(q)


class CorrelatedGroups(Groups):
    """Responses of any number of groups: (17.2) and equations for the averages x of the pencil."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        assert isinstance(table.covariance, TrainedRows)
        self.rows, self._known = table.covariance, dict[tuple[tuple[int, ...], bytes], Array]()

    def averages_at(self, K: Array, guess: Array | None = None) -> Array:
        """Averages x (P, n) that real K implies, from a guess.  Averages without a guess are
        cached, as several equations need them at a solution."""
        if guess is not None:
            return self.rows.averages(K, guess)
        averages_key, known_averages = (K.shape, K.tobytes()), self._known
        if averages_key not in known_averages:
            self._known = known_averages = {averages_key: self.rows.averages(K)}
        return known_averages[averages_key]

    def effective_covariance(self, x: Array) -> tuple[Array, Array]:
        """Effective covariance C, and o (P, 2AT, A) with dC = o^T dx o."""
        return self.rows.effective_covariance(x)[:2]

    def pencil_equations(self, res: GroupResolvent) -> PencilEquations:
        """Equations for the averages x.  Eq. (18.9)"""
        G = self.rows.trace(res.x, res.K)
        pencil_residual, by_x, sample_squares = self.rows.residual(res.x, G)
        pencil_rows, columns = self.rows.upper
        U = res.outer @ res.W  # dG = -G dx G + U dK U^T, dS = U^T dx U - ...
        dS = U[:, pencil_rows, :, None] * U[:, columns, None]
        dS = (dS + dS.swapaxes(2, 3)) / np.where(pencil_rows == columns, 2.0, 1.0)[:, None, None]
        return PencilEquations(pencil_residual, by_x, self.rows.products(sample_squares, U), dS)

    def signal_response(self, V: Array, V_hat: Array, x: Array | None = None) -> SignalResponse:
        """Signal response with C of the pencil, for averages x or, by default, those that K
        implies. C depends on K through G alone."""
        V1_hat, V2 = self.unpack(V_hat)[0], self.unpack(V)[1]
        resolvent = self.resolvent(self.scale(V2) * V1_hat, x)
        G = self.rows.trace(resolvent.x, resolvent.K)
        special, U = Special(self.rows, resolvent.x, G), resolvent.outer @ resolvent.W

        def C_slope(w: Array) -> Array:
            by_G, eqs = special.trace_derivative(w), self.pencil_equations(resolvent)
            rows, columns = self.rows.upper
            pencil_by_x = -(G @ by_G @ G)[:, rows, columns] * np.where(rows == columns, 1.0, 2.0)
            dx = -np.linalg.solve(eqs.by_x, eqs.by_K.reshape(*pencil_by_x.shape, self.groups**2))
            through_x = (pencil_by_x[:, None] @ dx).reshape(resolvent.K.shape)
            return np.asarray(U.swapaxes(1, 2) @ by_G @ U + through_x)

        return SignalResponse(self.table, 1 + len(self.rows.basis), resolvent.K, special.C, C_slope)

    def susceptibility_matrix(self, U: Array, alpha: Array) -> Array:
        """Susceptibility (alpha/beta) M' at coordinates U that may be complex."""
        V = self.from_analytic(U)
        signal_response = self.signal_response(V, self.conjugates(V, alpha), self.averages_in(U))
        return signal_response.overlaps(self.unpack(V)[1], alpha)
