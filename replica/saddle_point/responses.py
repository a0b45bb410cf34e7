"""The responses V1 and V2 of the readout: the closed equations (4.1)-(4.4).  docs/theory.md 4

For P points (alpha, lambda) and A groups of neurons the responses V1 (A x A, symmetric) and V2
(A) travel as one packed vector V (P, D): the upper triangle of V1, then V2.  With the
``coefficients`` B(kappa) of the table, V(kappa) = V . B(kappa).

(4.1)-(4.2) are the same for all rows and stand here, with the solver.  What the kinds of rows
differ in is (4.3)-(4.4), its linear response, and how the overlaps answer the signal (4.5)-(4.6):

* ``isotropic.Isotropic``, one group of neurons, in closed form;
* ``groups.Groups``, any number of groups;
* ``correlated.CorrelatedGroup`` and ``CorrelatedGroups``, the same with the row covariance that
  gradient steps leave, where theta and psi answer together (17.4).

Where a docstring does not say otherwise, V and lam may be complex: the spectrum solves the same
equations at complex lam.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.fixed_point import fixed_point
from solvers.linear import solve_rows
from solvers.newton import newton
from solvers.results import Array, Result, largest_modulus

from ..equivalence import Table

MANY = 600  # unknowns, as of 34 groups: from there on systems are not solved by matrices
MEMORY = 10  # of Anderson's method

# kept, as making them takes as long as several points of one group
_upper = lru_cache(maxsize=64)(np.triu_indices)


class Susceptibility(NamedTuple):
    """The overlaps with special directions as a linear function of their conjugates, both flattened
    over groups: theta = root root^T theta_hat.  Eqs. (4.5), (4.13)

    Attributes
    ----------
    root, inverse_root : (P, n, n)
        inverse_root^T root = 1 where root is not singular, and the pseudo-inverse elsewhere.
    response : SignalResponse, optional
        Of a network, what it is made of.
    """

    root: Array
    inverse_root: Array
    response: Any = None

    @classmethod
    def of(cls, response: Any, V2: Array, alpha: Array) -> "Susceptibility":
        """Of a network, from the matrices (alpha/beta) M' of (17.4); NaN where one is."""
        M = response.overlaps(V2, alpha)
        known = np.asarray(np.isfinite(M).all(axis=(1, 2)))
        values, vectors = np.linalg.eigh(np.where(known[:, None, None], M.real, 0.0))
        vectors[~known] = np.nan
        root = np.sqrt(np.maximum(values, 0.0))
        # a singular M has eigenvalues of 1e-16, so roots of 1e-8, relative to the largest
        regular = root > 1e-7 * root[:, -1:]
        root = np.where(regular, root, 0.0)
        inverse = np.where(regular, 1 / np.where(regular, root, 1.0), 0.0)
        root, inverse = vectors * root[:, None], vectors * inverse[:, None]
        return cls(root, inverse, response)

    def answer(self, special_hat: Array) -> Array:
        """The overlaps (P, A, K + K') of conjugates."""
        flat = special_hat.reshape(len(special_hat), self.root.shape[1], 1)
        return (self.root @ (self.root.transpose(0, 2, 1) @ flat)).reshape(special_hat.shape)


class SignalSources(NamedTuple):
    """What the conjugates of the signal add to the source X2 (P, A) and, of a network's rows,
    directly to Q1 (P, A, A).  Eqs. (4.8), (15.8)"""

    X2: Array
    Q1: Array


class Responses(ABC):
    """The responses of one table's neurons: their equations, solution and linear response."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.beta = table.beta
        self.groups = len(table.mu1)
        self.upper = _upper(self.groups)

    @cached_property
    def products(self) -> Array:
        """mu_1^a mu_1^b (a <= b), then mu_2^2: what (4.2) averages, (D, N)."""
        a, b = self.upper
        return np.concatenate([self.table.mu1[a] * self.table.mu1[b], self.table.mu2sq])

    @cached_property
    def coefficients(self) -> Array:
        """B (D, N), of which V(kappa) = V . B(kappa): ``products``, twice those of two groups,
        which the packed vector holds once.  Eq. (4.1)"""
        a, b = self.upper
        twice = np.concatenate([np.where(a == b, 1.0, 2.0), np.ones(self.groups)])
        return twice[:, None] * self.products

    def at_nodes(self, V: Array) -> Array:
        """V . B(kappa) at every node, (P, N), of packed V (P, D).  Eq. (4.1)"""
        if len(self.signed) <= MANY:
            return np.asarray(V @ self.coefficients)
        (first, second), mu1 = self.unpack(V), self.table.mu1
        return ((first @ mu1) * mu1).sum(axis=1) + second @ self.table.mu2sq

    def moments(self, weighted: Array) -> Array:
        """Sums (P, D) over the nodes of ``weighted`` (P, N) times ``products``.  Eq. (4.2)"""
        if len(self.signed) <= MANY:
            return np.asarray(weighted @ self.products.T)
        mu1 = self.table.mu1
        first = (mu1 * weighted[:, None]) @ mu1.T
        return self.pack(first, weighted @ self.table.mu2sq.T)

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
        """One vector (..., D) from a symmetric matrix (..., A, A), such as V1, and (..., A), such
        as V2."""
        return np.concatenate([first[..., *self.upper], second], axis=-1)

    def unpack(self, V: Array) -> tuple[Array, Array]:
        """The matrix (..., A, A) and the vector (..., A) that ``pack`` made V (..., D) of."""
        a, b = self.upper
        first = np.empty((*V.shape[:-1], self.groups, self.groups), dtype=V.dtype)
        first[..., a, b] = first[..., b, a] = V[..., : a.size]
        return first, V[..., a.size :]

    def magnitude(self, V: Array) -> Array:
        """What errors of each unknown are compared with, (P, D): its modulus, and of V1 between
        two groups, which may vanish, the geometric mean of theirs."""
        if self.groups == 1:
            return np.abs(V)
        first, second = self.unpack(V)
        root = np.sqrt(np.abs(np.diagonal(first, axis1=1, axis2=2)))
        return self.pack(root[:, :, None] * root[:, None, :], np.abs(second))

    def shrinkage(self, V: Array) -> Array:
        """1 / (1 + V(kappa)), (P, N): what training leaves of a sample's error."""
        total = 1 + self.at_nodes(V)  # Eq. (4.1)
        return np.asarray(np.reciprocal(total, out=total))

    def conjugates_from(self, shrinkage: Array, alpha: Array) -> Array:
        """(V1_hat, V2_hat), packed (P, D), from 1 / (1 + V(kappa)) (P, N), or -E[s' | kappa] of a
        convex loss.  Eq. (4.2)"""
        return alpha[:, None] / self.beta * self.moments(shrinkage * self.table.weights)

    def conjugates(self, V: Array, alpha: Array) -> Array:
        """(V1_hat, V2_hat), packed (P, D).  Eqs. (4.1)-(4.2)"""
        return self.conjugates_from(self.shrinkage(V), alpha)

    @abstractmethod
    def image(self, V_hat: Array, lam: Array, near: Array | None = None) -> Array:
        """The coordinates U of ``to_analytic`` of (V1, V2) from their conjugates, and a guess; all
        real.  (4.3)-(4.4)"""

    def from_conjugates(self, V_hat: Array, lam: Array, near: Array | None = None) -> Array:
        """(V1, V2), packed (P, D), from their conjugates, all real, and a guess.  (4.3)-(4.4)"""
        return self.from_analytic(self.image(V_hat, lam, near))

    @abstractmethod
    def second_moments_at(self, V_hat: Array, lam: Array, X: Array, near: Array) -> Array:
        """(Q1, q2) for sources X at fixed conjugates, and a guess of (V1, V2), all packed (P, D);
        all real.  Eq. (4.9)"""

    @abstractmethod
    def second_moments(self, V: Array, alpha: Array, lam: Array, X: Array) -> Array:
        """(Q1, q2) for sources X that do not contain Q, all packed (P, D).

        (4.9) with the part of (4.8) that is linear in Q moved to the left, i.e. minus the
        derivative of the solution of (4.1)-(4.4) under V_hat -> V_hat + s X.
        """

    @abstractmethod
    def log_residual(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """Dimensionless residuals (P, D) of (4.1)-(4.4), and their derivatives (P, D, D) in the
        logarithms of the coordinates U of ``to_analytic`` (in U / magnitude where those are
        signed); all real."""

    @abstractmethod
    def analytic_residual(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """(4.1)-(4.4) as dimensionless residuals (P, D) that are analytic in everything, and
        their derivatives (P, D, D) in the coordinates U of ``to_analytic``."""

    def distance(self, V: Array, alpha: Array, lam: Array) -> Array:
        """Newton's step from V (P, D), relative to it: what is left, (P, n)."""
        log_residual, slope = self.log_residual(self.to_analytic(V, alpha), alpha, lam)
        return np.asarray(solve_rows(slope, log_residual))

    def to_analytic(self, V: Array, alpha: Array) -> Array:
        """Coordinates U (P, D) in which ``analytic_residual`` is analytic: V itself, or V2 and
        something that V1 is an explicit function of."""
        return V

    @property
    def analytic(self) -> "Responses":
        """The same, by equations that hold at any complex lam and not only close to real ones."""
        return self

    def from_analytic(self, U: Array) -> Array:
        """V (P, D) at the coordinates U (P, D) of ``to_analytic``."""
        return U

    def loading_response(self, U: Array, alpha: Array) -> Array:
        """What the overlaps with special directions are of their conjugates at the coordinates U,
        which may be complex, (P, n, n)."""
        V = self.from_analytic(U)
        root = self.susceptibility(V, self.conjugates(V, alpha), alpha).root
        return np.asarray(root @ root.swapaxes(1, 2))

    def response(self, V: Array, V_hat: Array) -> Any:
        """How the overlaps of a network answer the signal, a ``SignalResponse``."""
        return None

    def susceptibility(self, V: Array, V_hat: Array, alpha: Array) -> Susceptibility:
        """alpha c V2 of Eq. (4.5), for all special directions; of a network (alpha/beta) M'."""
        if (response := self.response(V, V_hat)) is not None:
            return Susceptibility.of(response, self.unpack(V)[1], alpha)
        directions = self.table.loadings.shape[1] + len(self.table.g)
        root = np.sqrt(alpha[:, None] * self.table.c * self.unpack(V)[1])
        root = np.repeat(root, directions, axis=1)[..., None]
        unit = np.eye(root.shape[1])
        return Susceptibility(root * unit, 1 / root * unit)

    def signal_sources(
        self, V: Array, of: Susceptibility, alpha: Array, special_hat: Array
    ) -> SignalSources:
        """The last term of (4.8), in the conjugates (P, A, K + K') of the signal; of a network's
        rows, those of (15.8)."""
        if of.response is not None:
            return of.response.sources(self.unpack(V)[1], alpha, special_hat)
        scale = (alpha**2 / self.beta)[:, None] * self.table.c
        A = self.groups
        return SignalSources(scale * (special_hat**2).sum(axis=2), np.zeros((len(V), A, A)))

    def solve(self, alpha: Array, lam: Array, tol: float, start: Array | None = None) -> Result:
        """V at every point, ``Result.value`` (P, D).  Eqs. (4.1)-(4.4)

        Iteration of (4.2) -> (4.3)-(4.4) first; points where it contracts slowly go on to
        Newton.  ``start`` is a close guess, which goes to Newton at once: of such a point the
        iteration's small steps do not say how far the solution is.  ``Result.residual`` is
        the relative residual of the undamped map.
        """

        def step(U: Array, rows: NDArray[np.int64]) -> Array:
            return self.image(self.conjugates(self.from_analytic(U), alpha[rows]), lam[rows], U)

        if start is None:
            ones = np.tile(np.where(self.signed, 0.0, 1.0), (len(alpha), 1))
            start = self.image(self.conjugates(ones, alpha), lam)
            # Newton's method takes as long as 8 further steps.  The contraction tells how far it is
            # once V changes by less than .02: before, V may grow by a constant factor for decades,
            # or creep, and Newton's method does not find the solution.
            limits: dict[str, Any] = {"patience": 8, "linear_below": 0.02}
        else:
            start, limits = self.to_analytic(start, alpha), {"max_iterations": 1}
        many = len(self.signed) > MANY  # where Newton's matrix takes as long as 100 steps
        if many:
            history = np.zeros((*start.shape[:1], MEMORY, 2, start.shape[1]))
            limits = {"history": history, "linear_below": 0.3}
            limits |= {"longest_step": 4.0, "max_iterations": 100}
        found = fixed_point(step, start, tol=tol, size=self.magnitude, **limits)
        # x, which ``Groups`` carries before V, may have either sign
        signed = np.pad(self.signed, (start.shape[1] - len(self.signed), 0), constant_values=True)
        usable = np.isfinite(found.value) & ((found.value > 0) | signed)
        slow = np.flatnonzero(~found.converged & usable.all(axis=1))
        if slow.size and not many:
            second = newton(
                lambda U, rows: self.log_residual(U, alpha[slow[rows]], lam[slow[rows]]),
                found.value[slow],
                size=self.magnitude,
                signed=signed,
                tol=max(tol, 1e-13),
                max_iterations=40,  # 10 are many, and one of 48 groups takes a third of a second
            )
            error = (step(second.value, slow) - second.value) / self.magnitude(second.value)
            found = found.continued(slow, replace(second, residual=largest_modulus(error)))
        return replace(found, value=self.from_analytic(found.value))
