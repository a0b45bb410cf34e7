"""Responses V1, V2 of the readout, (4.1)-(4.4), and the susceptibility of special directions.
docs/theory.md 4

For P points (alpha, lambda) and A groups of neurons the responses V1 (A x A, symmetric) and V2
(A) are packed into one vector V (P, D): the upper triangle of V1, then V2.  With the
``coefficients`` B(kappa) of the table, V(kappa) = V . B(kappa).

This module has (4.1)-(4.2), which hold for all rows of the first layer, and the solver.  Subclasses
have (4.3)-(4.4), its linear response, and the response of overlaps to the signal (4.5)-(4.6):

* ``isotropic.Isotropic``: one group of neurons, in closed form;
* ``groups.Groups``: any number of groups;
* ``correlated.CorrelatedGroup`` and ``CorrelatedGroups``: one or more groups of a network, with the
  row covariance after gradient steps, which couples theta and psi (17.4).

Unless a docstring says otherwise, V and lam may be complex: the spectrum needs complex lam.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.fixed_point import COMBINED, fixed_point
from solvers.linear import solve_rows
from solvers.newton import newton
from solvers.results import Array, Result, largest_modulus

from ..equivalence import Table

RESPONSE_TOLERANCE = 1e-13  # relative accuracy of the responses: some hundred times rounding
LARGEST_MATRIX = 600  # unknowns (34 groups): larger linear systems are solved by iteration

# cached, as computing the indices takes as long as several points of one group
_upper = lru_cache(maxsize=64)(np.triu_indices)
identity = lru_cache(maxsize=64)(np.eye)


class Susceptibility(NamedTuple):
    """Linear map from conjugates to overlaps with special directions, both flattened over groups:
    theta = root root^T theta_hat.  Eqs. (4.5), (4.13)

    Attributes
    ----------
    matrix : (P, n, n)
        Matrix of the map: diagonal for isotropic rows, (alpha/beta) M' of (17.4) in a network.
    penalty : (P, G) or (P, G + 1)
        Penalty on m in E[mu_0 s] = penalty m, the counterpart of 1 / (alpha c V2) in
        E[kappa mu_1 s] = theta / (alpha c V2); 0 for the intercept, and in the limit of infinite
        dimension.
    response : SignalResponse, optional
        Signal response of a network, from which the map was computed.
    """

    matrix: Array
    penalty: Array
    response: Any = None

    def roots(self) -> tuple[Array, Array]:
        """Square root of the map, and its transposed inverse (pseudo-inverse if it is singular),
        (P, n, n) each."""
        if self.response is None:
            root, unit_matrix = np.sqrt(self.matrix), np.eye(self.matrix.shape[1])
            return root, unit_matrix / np.where(unit_matrix, root, 1.0)
        finite_M = np.asarray(np.isfinite(self.matrix).all(axis=(1, 2)))
        M_eigenvalues, vectors = np.linalg.eigh(np.where(finite_M[:, None, None], self.matrix, 0.0))
        vectors[~finite_M] = np.nan
        root = np.sqrt(np.maximum(M_eigenvalues, 0.0))
        # a singular M has eigenvalues of 1e-16 by rounding, so roots of 1e-8, relative to the
        # largest
        is_regular = root > 1e-7 * root[:, -1:]
        root = np.where(is_regular, root, 0.0)
        inverse_root = np.where(is_regular, 1 / np.where(is_regular, root, 1.0), 0.0)
        return vectors * root[:, None], vectors * inverse_root[:, None]


class SignalSources(NamedTuple):
    """Contributions of the signal's conjugates to the sources X and, in a network, to the second
    moments Q, packed (P, D) both.  Eqs. (4.8), (15.8)"""

    X: Array
    Q: Array


class Responses(ABC):
    """Responses of a table's neurons: their equations, their solution and their linear response."""

    signal_response: Any = None  # a method for a network: the ``SignalResponse`` at (V, V_hat)

    def __init__(self, table: Table) -> None:
        self.table = table
        self.beta = table.beta
        self.groups = len(table.mu1)
        self.upper = _upper(self.groups)
        self.unknowns = len(self.upper[0]) + self.groups

    def at_nodes(self, V: Array) -> Array:
        """V(kappa) = V . B(kappa) at every node, (P, N), for packed V (P, D).  Eq. (4.1)"""
        if self.unknowns <= LARGEST_MATRIX:
            return np.asarray(V @ self.table.response_coefficients)
        (V1_matrix, V2_vector), mu1 = self.unpack(V), self.table.mu1
        return ((V1_matrix @ mu1) * mu1).sum(axis=1) + V2_vector @ self.table.mu2sq

    @cached_property
    def signed(self) -> Array:
        """Boolean array (D,): unknowns that may be negative, V1 between two groups."""
        first_group, second_group = self.upper
        return np.concatenate([first_group != second_group, np.zeros(self.groups, dtype=bool)])

    @cached_property
    def diagonal(self) -> Array:
        """Indices of V1_aa in a packed vector, (A,)."""
        return np.flatnonzero(self.upper[0] == self.upper[1])

    def pack(self, V1_matrix: Array, V2_vector: Array) -> Array:
        """Packed vector (..., D) of a symmetric matrix (..., A, A), such as V1, and a vector (...,
        A), such as V2."""
        if self.groups == 1:
            return np.concatenate([V1_matrix[..., 0], V2_vector], axis=-1)
        return np.concatenate([V1_matrix[..., *self.upper], V2_vector], axis=-1)

    def unpack(self, V: Array) -> tuple[Array, Array]:
        """Matrix (..., A, A) and vector (..., A) from a packed vector V (..., D)."""
        if self.groups == 1:
            return V[..., :1, None], V[..., 1:]
        first_group, b = self.upper
        V1_matrix = np.empty((*V.shape[:-1], self.groups, self.groups), dtype=V.dtype)
        V1_matrix[..., first_group, b] = V1_matrix[..., b, first_group] = V[..., : first_group.size]
        return V1_matrix, V[..., first_group.size :]

    def magnitude(self, V: Array) -> Array:
        """Scale of the error of each unknown, (P, D): its modulus.  For V1 between two groups,
        which may vanish, it is the geometric mean of the diagonal entries."""
        V1_matrix, V2_vector = self.unpack(V)
        root_V1 = np.sqrt(np.abs(np.diagonal(V1_matrix, axis1=1, axis2=2)))
        return self.pack(root_V1[:, :, None] * root_V1[:, None, :], np.abs(V2_vector))

    def shrinkage(self, V: Array) -> Array:
        """Shrinkage 1 / (1 + V(kappa)) of a sample's error by training on it, (P, N)."""
        response_at_nodes = 1 + self.at_nodes(V)  # Eq. (4.1)
        return np.asarray(np.reciprocal(response_at_nodes, out=response_at_nodes))

    def conjugates_from(self, shrinkage: Array, alpha: Array) -> Array:
        """Conjugates (V1_hat, V2_hat), packed (P, D), from the ``shrinkage`` (P, N), or from
        -E[s' | kappa] of a convex loss.  Eq. (4.2)"""
        ratio = alpha[:, None] / self.beta
        if self.unknowns <= LARGEST_MATRIX:
            return np.asarray(ratio * (shrinkage @ self.table.weighted_response_products.T))
        mu1, weighted_shrinkage = self.table.mu1, shrinkage * self.table.weights
        V1_hat = (mu1 * weighted_shrinkage[:, None]) @ mu1.T
        return ratio * self.pack(V1_hat, weighted_shrinkage @ self.table.mu2sq.T)

    def conjugates(self, V: Array, alpha: Array) -> Array:
        """Conjugates (V1_hat, V2_hat) of V, packed (P, D).  Eqs. (4.1)-(4.2)"""
        return self.conjugates_from(self.shrinkage(V), alpha)

    @abstractmethod
    def image(self, V_hat: Array, lam: Array, guess: Array | None = None) -> Array:
        """Responses (V1, V2), in the coordinates U of ``to_analytic``, from their conjugates and a
        guess; all real.  Eqs. (4.3)-(4.4)"""

    def from_conjugates(self, V_hat: Array, lam: Array, guess: Array | None = None) -> Array:
        """Responses (V1, V2), packed (P, D), from their conjugates and a guess; all real.
        Eqs. (4.3)-(4.4)"""
        return self.from_analytic(self.image(V_hat, lam, guess))

    @abstractmethod
    def second_moments_at(self, V_hat: Array, lam: Array, X: Array, guess: Array) -> Array:
        """Second moments (Q1, q2) for sources X at fixed conjugates, with a guess of (V1, V2).  All
        are real and packed (P, D).  Eq. (4.9)"""

    @abstractmethod
    def second_moments(self, V: Array, alpha: Array, lam: Array, X: Array) -> Array:
        """Second moments (Q1, q2) for sources X that do not contain Q, all packed (P, D).

        They solve (4.9) with the part of (4.8) that is linear in Q on the left.  This is minus the
        derivative in s of the solution of (4.1)-(4.4) under V_hat -> V_hat + s X.
        """

    @abstractmethod
    def log_residual(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """Dimensionless residuals (P, D) of (4.1)-(4.4), and their derivatives (P, D, D), all real.

        Derivatives are in the logarithms of the coordinates U of ``to_analytic``, and in
        U / magnitude for signed ones.
        """

    @abstractmethod
    def analytic_residual(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """Dimensionless residuals (P, D) of (4.1)-(4.4) that are analytic in all arguments, and
        their derivatives (P, D, D) in the coordinates U of ``to_analytic``."""

    def newton_distance(self, V: Array, alpha: Array, lam: Array) -> Array:
        """Newton's step from V (P, D) relative to V: an estimate of the remaining distance."""
        log_residual, log_slope = self.log_residual(self.to_analytic(V, alpha), alpha, lam)
        return np.asarray(solve_rows(log_slope, log_residual))

    def to_analytic(self, V: Array, alpha: Array) -> Array:
        """Coordinates U (P, D) in which ``analytic_residual`` is analytic: V itself, unless a
        subclass has other ones."""
        return V

    @property
    def analytic(self) -> "Responses":
        """Responses with equations that hold at any complex lam, not only close to real ones."""
        return self

    def from_analytic(self, U: Array) -> Array:
        """Packed V (P, D) at the coordinates U of ``to_analytic``."""
        return U

    def susceptibility_matrix(self, U: Array, alpha: Array) -> Array:
        """Matrix (P, n, n) from conjugates to overlaps with special directions, at coordinates U
        that may be complex."""
        V = self.from_analytic(U)
        return self.susceptibility(V, self.conjugates(V, alpha), alpha).matrix

    def susceptibility(self, V: Array, V_hat: Array, alpha: Array) -> Susceptibility:
        """Susceptibility alpha c V2 of Eq. (4.5) for all special directions, (alpha/beta) M' in a
        network; and the penalty on m."""
        table, V2 = self.table, V[:, -self.groups :]
        kinds, m_penalty = table.kinds, np.zeros((len(V), len(table.offsets)), V.dtype)
        if table.dimension < np.inf:
            kind_susceptibility = alpha[:, None] * table.shares * V2[:, kinds]
            m_penalty[:, : len(kinds)] = 1 / table.dimension / kind_susceptibility
        if self.signal_response is not None:
            signal_response = self.signal_response(V, V_hat)
            signal_susceptibility = signal_response.overlaps(V2, alpha)
            return Susceptibility(signal_susceptibility.real, m_penalty, signal_response)
        isotropic_diagonal = (alpha[:, None] * table.c * V2)[..., None, None]
        n = len(table.regressors) - len(table.offsets)
        isotropic_matrix = isotropic_diagonal * identity(n).reshape(self.groups, -1, n)
        return Susceptibility(isotropic_matrix.reshape(-1, n, n), m_penalty)

    def signal_sources(
        self, V: Array, M: Susceptibility, alpha: Array, m_hat: Array, special_hat: Array
    ) -> SignalSources:
        """Contributions of the signal's conjugates ``special_hat`` (P, A, K + K'): the last term of
        (4.8); in a network, the terms of (15.8).

        At a finite dimension ``m_hat`` (P, G) acts as theta_hat does (docs/readout.md), of the
        groups of a kind by their shares.
        """
        table, A, source_scale = self.table, self.groups, (alpha**2 / self.beta)[:, None]
        X, Q = np.zeros((2, *V.shape))
        if M.response is not None:
            X[:, -A:], Q1 = M.response.sources(V[:, -A:], alpha, special_hat)
            Q[:, :-A] = Q1[:, *self.upper]
        else:
            X[:, -A:] = source_scale * table.c * np.vecdot(special_hat, special_hat)
        if table.dimension < np.inf:
            shares = table.shares[:, None] * (table.kinds[:, None] == np.arange(A))
            X[:, -A:] += source_scale * table.dimension * (m_hat[:, : len(shares)] ** 2 @ shares)
        return SignalSources(X, Q)

    def solve(self, alpha: Array, lam: Array, tol: float, start: Array | None = None) -> Result:
        """Solve (4.1)-(4.4) for V at every point, ``Result.value`` (P, D).

        The map (4.2) -> (4.3)-(4.4) is iterated; points where it contracts slowly are then solved
        by Newton's method.  A close guess ``start`` goes to Newton's method at once, as small steps
        of the iteration from it do not show how far the solution is.  ``Result.residual`` is the
        relative residual of the undamped map.
        """

        def next_U(U: Array, rows: NDArray[np.int64]) -> Array:
            return self.image(self.conjugates(self.from_analytic(U), alpha[rows]), lam[rows], U)

        if start is None:
            unit_response = np.tile(np.where(self.signed, 0.0, 1.0), (len(alpha), 1))
            start = self.image(self.conjugates(unit_response, alpha), lam)
            # Newton's method takes as long as 8 further steps.  The contraction rate is used once V
            # changes by less than .02: before, V may grow by a constant factor for decades, or
            # creep, and Newton's method does not find the solution.
            limits: dict[str, Any] = {"patience": 8, "linear_below": 0.02}
        else:
            start, limits = self.to_analytic(start, alpha), {"max_iterations": 1}
        # a matrix for Newton would take as long as 100 steps
        is_large_system = len(self.signed) > LARGEST_MATRIX
        if is_large_system:
            history = np.zeros((*start.shape[:1], COMBINED, 2, start.shape[1]))
            limits = dict(history=history, linear_below=0.3, longest_step=4.0, max_iterations=100)
        solution = fixed_point(next_U, start, tol=tol, size=self.magnitude, **limits)
        # the averages x, which ``Groups`` has before V, may have either sign
        signed = np.pad(self.signed, (start.shape[1] - len(self.signed), 0), constant_values=True)
        usable_points = np.isfinite(solution.value) & ((solution.value > 0) | signed)
        slow = np.flatnonzero(~solution.converged & usable_points.all(axis=1))
        if slow.size and not is_large_system:
            refined = newton(
                lambda U, rows: self.log_residual(U, alpha[slow[rows]], lam[slow[rows]]),
                solution.value[slow],
                size=self.magnitude,
                signed=signed,
                tol=max(tol, 1e-13),
                max_iterations=40,  # 10 are many, and one of 48 groups takes a third of a second
            )
            error = (next_U(refined.value, slow) - refined.value) / self.magnitude(refined.value)
            solution.value[slow], solution.residual[slow] = refined.value, largest_modulus(error)
            solution.iterations[slow] += refined.iterations
            solution.status[slow] = refined.status
        return replace(solution, value=self.from_analytic(solution.value))
