"""The bulk of the weights, as the ridge equations see it.  docs/theory.md 4.

The responses V1 (A x A, symmetric) and V2 (A) of P points travel as one packed vector
(P, D): the upper triangle of V1, then V2.  With ``moments`` B(kappa), V(kappa) = V . B.
(4.1)-(4.2) are the same for every bulk and stand here, with the solver; what the kinds of
bulk differ in is (4.3)-(4.4) and its linear response.  Where a docstring does not say
otherwise, V, alpha, lam and the table may be complex: the spectrum solves the same equations
at complex lam, and derivatives are taken by complex steps.

* ``isotropic.Isotropic``, one group of neurons, in closed form;
* ``correlated.Correlated``, the same with the row covariance of the network itself;
* ``groups.Groups``, any number of groups.

They also have the susceptibility of the overlaps along the spikes and along the rest of the
target, at given (V, Vh): that of (4.5)-(4.6), or the 2 x 2 block of (15.6).
"""

from abc import ABC, abstractmethod
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.fixed_point import Limits, fixed_point
from solvers.newton import newton
from solvers.results import Array, Result, Status, largest

from ..equivalence import Table

PATIENCE = 8  # iterations that cost as much as Newton's, for one group


@lru_cache(maxsize=64)
def _upper(groups: int) -> tuple[Array, Array]:
    """np.triu_indices, which costs as much as several points of one group."""
    rows, columns = np.triu_indices(groups)
    return rows, columns


class Susceptibility(NamedTuple):
    """Overlaps as linear functions of their conjugates, both flattened over groups:
    theta = root root^T theta_hat + cross p_hat, psi = cross^T theta_hat + own p_hat.

    root, back : (P, n, n)
        back^T root = 1, where root is not singular.
    cross : (P, n, n')
    own : (P, n', n')
    missing : (P, n, n) or None
        Projection on the conjugates that no overlap susceptibility to, where there may be any.
    """

    root: Array
    back: Array
    cross: Array
    own: Array
    missing: Array | None = None

    @classmethod
    def of(cls, M: Array, along: Array, rest: Array) -> "Susceptibility":
        """From the matrix M (P, N, N) of all overlaps over all conjugates, and which of them
        belong to theta and to psi."""
        values, vectors = np.linalg.eigh(M[:, along[:, None], along])
        root = np.sqrt(np.maximum(values, 0.0))
        # a singular M has eigenvalues of 1e-16, so roots of 1e-8, relative to the largest
        kept = root > 1e-7 * root[:, -1:]
        root = np.where(kept, root, 0.0)
        inverse = np.where(kept, 1 / np.where(kept, root, 1.0), 0.0)
        missing = None
        if not kept.all():
            missing = (vectors * ~kept[:, None]) @ vectors.transpose(0, 2, 1)
        return cls(
            vectors * root[:, None],
            vectors * inverse[:, None],
            M[:, along[:, None], rest],
            M[:, rest[:, None], rest],
            missing,
        )


class SignalSources(NamedTuple):
    """What theta_hat and p_hat add to X1 (P, A, A), to X2 (P, A) and, past the responses, to
    Q1 (P, A, A).  Eqs. (4.8), (15.8)"""

    X1: Array
    X2: Array
    Q1: Array


class Responses(ABC):
    """The resolvent of a bulk and its linear response, on one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.beta = table.beta
        self.groups = len(table.mu1)
        self.upper = _upper(self.groups)
        self._workspace: dict[Any, Array] = {}

    @cached_property
    def products(self) -> Array:
        """mu_1^a mu_1^b (a <= b), then mu_2^2: what (4.2) averages, (D, N)."""
        a, b = self.upper
        return np.concatenate([self.table.mu1[a] * self.table.mu1[b], self.table.mu2sq])

    @cached_property
    def moments(self) -> Array:
        """B(kappa): ``products`` with those of two groups twice, (D, N)."""
        a, b = self.upper
        twice = np.concatenate([np.where(a == b, 1.0, 2.0), np.ones(self.groups)])
        return twice[:, None] * self.products

    @cached_property
    def weighted_products(self) -> Array:
        """``products`` times the quadrature weights, as columns (N, D)."""
        return (self.table.weights * self.products).T

    @cached_property
    def signed(self) -> Array:
        """Which unknowns may be negative: V1 between two groups, (D,)."""
        a, b = self.upper
        return np.concatenate([a != b, np.zeros(self.groups, dtype=bool)])

    @cached_property
    def diagonal(self) -> Array:
        """Where V1_aa stands in a packed vector, (A,)."""
        return np.flatnonzero(self.upper[0] == self.upper[1])

    def pack(self, first: Array, second: Array) -> Array:
        """(P, A, A) and (P, A) as (P, D)."""
        return np.concatenate([first[:, *self.upper], second], axis=1)

    def unpack(self, V: Array) -> tuple[Array, Array]:
        """(P, D) as (P, A, A) and (P, A)."""
        a, b = self.upper
        first = np.empty((len(V), self.groups, self.groups), dtype=V.dtype)
        first[:, a, b] = first[:, b, a] = V[:, : a.size]
        return first, V[:, a.size :]

    def size(self, V: Array) -> Array:
        """The magnitude each unknown is compared with, (P, D): V1 between groups may vanish."""
        if self.groups == 1:
            return np.abs(V)
        first, second = self.unpack(V)
        root = np.sqrt(np.abs(np.diagonal(first, axis1=1, axis2=2)))
        return self.pack(root[:, :, None] * root[:, None, :], np.abs(second))

    def shrinkage(self, V: Array, out: Array | None = None) -> Array:
        """1 / (1 + V(kappa)), (P, N).  Eq. (4.1)"""
        total = np.matmul(V, self.moments, out=out)
        total += 1
        return np.asarray(np.reciprocal(total, out=total))

    def conjugates(self, V: Array, alpha: Array) -> Array:
        """(Vh1, Vh2), packed (P, D).  Eq. (4.2)"""
        return self.averages(self.shrinkage(V, self.workspace(V)), alpha)

    def workspace(self, V: Array) -> Array:
        """An array (P, N) for an intermediate that is used up before the next one: fresh
        memory of this size would cost as much as the arithmetic."""
        kind = np.result_type(V, self.moments)
        held = self._workspace.get(kind)
        if held is None or len(held) < len(V):
            held = self._workspace[kind] = np.empty((len(V), self.table.weights.size), kind)
        return held[: len(V)]

    def averages(self, R: Array, alpha: Array) -> Array:
        """(Vh1, Vh2), packed, from R = 1 / (1 + V).  Eq. (4.2)"""
        return alpha[:, None] / self.beta * (R @ self.weighted_products)

    @abstractmethod
    def overlaps(self, V_hat: Array, lam: Array) -> Array:
        """(V1, V2), packed (P, D), from their conjugates; all real.  Eqs. (4.3)-(4.4)"""

    @abstractmethod
    def second_moments_at(self, V_hat: Array, lam: Array, X: Array) -> Array:
        """(Q1, q2) for sources X at fixed conjugates, all packed (P, D); all real.  Eq. (4.9)"""

    @abstractmethod
    def log_residual(self, V: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """Dimensionless residuals (P, D) of (4.1)-(4.4), and their derivatives (P, D, D) in
        log V (in V / size where V is signed); all real."""

    @abstractmethod
    def equations(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """(4.1)-(4.4) as dimensionless residuals (P, D) that are analytic in everything, and
        their derivatives (P, D, D) in the coordinates U."""

    def coordinates(self, V: Array) -> Array:
        """What ``equations`` are analytic in, (P, D): V, or V2 and something for V1."""
        return V

    def from_coordinates(self, U: Array) -> Array:
        """V from its coordinates, both (P, D)."""
        return U

    @abstractmethod
    def second_moments(self, V: Array, alpha: Array, lam: Array, X: Array) -> Array:
        """(Q1, q2) for sources X that do not contain Q, all packed (P, D).

        (4.9) with the part of (4.8) that is linear in Q moved to the left, i.e. minus the
        derivative of the solution of (4.1)-(4.4) under Vh -> Vh + s X.
        """

    def susceptibility(self, V: Array, V_hat: Array, alpha: Array) -> Susceptibility:
        """theta = alpha c V2 theta_hat and psi = alpha V1 p_hat.  Eqs. (4.5)-(4.6)"""
        V1, V2 = self.unpack(V)
        A, K = self.table.loadings.shape[:2]
        rest = len(self.table.g)
        root = np.repeat(np.sqrt(alpha[:, None] * self.table.c * V2), K, axis=1)
        size = np.eye(A * K)
        own = alpha[:, None, None, None, None] * V1[:, :, None, :, None]
        own = own * np.eye(rest)[:, None, :]
        return Susceptibility(
            root[:, :, None] * size,
            (1 / root)[:, :, None] * size,
            np.zeros((len(V), A * K, A * rest)),
            own.reshape(len(V), A * rest, A * rest),
        )

    def signal_sources(
        self, V: Array, V_hat: Array, alpha: Array, theta_hat: Array, p_hat: Array
    ) -> SignalSources:
        """The terms of (4.8) in theta_hat (P, A, K) and p_hat (P, A, K')."""
        scale = alpha**2 / self.beta
        X1 = scale[:, None, None] * (p_hat @ p_hat.transpose(0, 2, 1))
        X2 = scale[:, None] * self.table.c * (theta_hat**2).sum(axis=2)
        return SignalSources(X1, X2, np.zeros_like(X1))

    def solve(self, alpha: Array, lam: Array, tol: float, start: Array | None = None) -> Result:
        """V at every point, ``Result.value`` (P, D).  Eqs. (4.1)-(4.4)

        Iteration of (4.2) -> (4.3)-(4.4) first; points where it contracts slowly go on to
        Newton.  ``start`` is a close guess, which goes to Newton at once: of such a point the
        iteration's small steps do not say how far the solution is.  ``Result.residual`` is
        the relative residual of the undamped map.
        """

        def step(V: Array, rows: NDArray[np.int64]) -> Array:
            return self.overlaps(self.conjugates(V, alpha[rows]), lam[rows])

        if start is None:
            ones = np.ones((len(alpha), self.groups))
            start = self.pack(ones[:, :, None] * np.eye(self.groups), ones)
            start = step(start, np.arange(len(alpha)))
            limits = Limits(patience=PATIENCE * self.groups)
        else:
            limits = Limits(max_iterations=1)
        first = fixed_point(step, start, tol=tol, size=self.size, limits=limits)
        usable = np.isfinite(first.value) & ((first.value > 0) | self.signed)
        slow = np.flatnonzero((first.status != Status.CONVERGED) & usable.all(axis=1))
        if slow.size == 0:
            return first
        second = newton(
            lambda V, rows: self.log_residual(V, alpha[slow[rows]], lam[slow[rows]]),
            first.value[slow],
            size=self.size,
            signed=self.signed,
            tol=max(tol, 1e-13),
        )
        value, residual = first.value.copy(), first.residual.copy()
        iterations, status = first.iterations.copy(), first.status.copy()
        value[slow], status[slow] = second.value, second.status
        iterations[slow] += second.iterations
        error = (step(second.value, slow) - second.value) / self.size(second.value)
        residual[slow] = largest(error)
        return Result(value, residual, iterations, status)
