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

from solvers.results import Array

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
    the closed forms, Newton's equations and the linear response are those of ``Isotropic``, at the
    q of given V2 and V1_hat.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        assert isinstance(table.covariance, TabulatedRows)
        self.tables, self.rows = table.covariance, table.covariance.rows

    @cached_property
    def analytic(self) -> Responses:
        """Responses by the pencil, which holds at complex arguments, where the tables do not: E Q,
        as a function of q, has many complex branches."""
        return CorrelatedGroups(replace(self.table, covariance=self.rows))

    def bulk_variance(self, q: Array) -> tuple[Array, Array]:
        """Effective variance c_e at q (P,), and its derivative.  Eq. (16.6)"""
        return self.tables.c_e(q)

    def signal_response(self, V: Array, V_hat: Array) -> SignalResponse:
        """Signal response with the tabulated C on u, delta and zeta.  Eq. (18.12)"""
        q = self.beta * V[:, 1] * V_hat[:, 0]
        C, C_slope = self.tables.special_covariance(q)
        K = q[:, None, None]
        return SignalResponse(
            self.table, C.shape[1], K, C, lambda w: -w[:, None] @ C_slope @ w[..., None]
        )


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
