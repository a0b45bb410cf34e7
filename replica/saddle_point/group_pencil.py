"""The rows of several groups of neurons after one step: their pencil.  docs/theory.md 17

Groups of neurons share the inputs of the batch and differ in what these do to their rows: in the
first-step readout, and in a bias.  What the readout asks of all covariances C_b at once is

    N = (K^-1 + blockdiag C_b)^-1,    K = sqrt(tau) V1_hat sqrt(tau),  tau_b = beta V2_b,

on groups times inputs.  The C_b do not commute, but the pencil of ``pencil`` with an index of the
group beside its own is linear in the samples all the same: with T(rho), Q = T (1 + G T / alpha)^-1
and G now 2A x 2A matrices, and the matrix K in the place of the number q, it gives an effective
covariance C_e (A x A): the trace of N over the inputs is (K^-1 + C_e)^-1.  (17.2)-(17.3)
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array


class GroupBatch(NamedTuple):
    """The sample of one step, at M nodes of the residual rho, as A groups of neurons see it.

    Attributes
    ----------
    alpha : float
        Samples over input dimension.
    rho, weights : (M,)
    square, linear : (A,)
        t11 = square rho^2 and t12 = linear rho of (18.5).
    labels : (M, D + 1, D + 1)
        Weights times the products of (1, x_1, ..., x_D), the inputs along the target's directions.
    F, lam, L : (A, M)
        Of (18.5).
    g, v : (A,)
        Of (18.6) and (18.7).
    """

    alpha: float
    rho: Array
    weights: Array
    square: Array
    linear: Array
    labels: Array
    F: Array
    lam: Array
    L: Array
    g: Array
    v: Array


@dataclass(frozen=True, eq=False)
class GroupRows:
    """The rows of a network of several groups of neurons, A of them.

    Attributes
    ----------
    batch : GroupBatch
    basis : (n, S)
        The spike u and the other directions of the target, zeta, in the special ones: those of the
        target, and the batch's noise vector.
    norms : bool
        Whether the fluctuation of the rows' norms is kept.
    initial_norms : float
        d times the variance of the squared norms that the rows start from.
    """

    batch: GroupBatch
    basis: Array
    norms: bool = True
    initial_norms: float = 0.0

    def of(self, groups: NDArray[np.int64]) -> "GroupRows":
        """The rows of some of the groups."""
        parts = ("square", "linear", "F", "lam", "L", "g", "v")
        return replace(
            self, batch=self.batch._replace(**{k: getattr(self.batch, k)[groups] for k in parts})
        )

    @property
    def groups(self) -> int:
        """Their number A."""
        return len(self.batch.square)

    @cached_property
    def active(self) -> Array:
        """The indices of the pencil that samples act on, (m,), of 2A."""
        both = np.concatenate([self.batch.square + np.abs(self.batch.linear), self.batch.linear])
        return np.flatnonzero(both)

    @cached_property
    def upper(self) -> tuple[Array, Array]:
        """Rows and columns of the n = m (m + 1) / 2 entries that stand for a symmetric matrix on
        ``active``."""
        rows, columns = np.triu_indices(len(self.active))
        return rows, columns

    @cached_property
    def samples(self) -> Array:
        """T at every node, on the active indices, (M, m, m)."""
        b, A = self.batch, self.groups
        T = np.zeros((len(b.rho), 2 * A, 2 * A), b.rho.dtype)
        i = np.arange(A)
        T[:, i, i] = b.square * b.rho[:, None] ** 2
        T[:, i, A + i] = T[:, A + i, i] = b.linear * b.rho[:, None]
        return T[:, self.active[:, None], self.active]

    @cached_property
    def start(self) -> Array:
        """E Q at K = 0, (n,): there G is 0 but for -1 on the second indices."""
        second = np.where(self.active >= self.groups, -1 / self.batch.alpha, 0.0)
        mean = np.tensordot(self.batch.weights, self.resolvent(np.diag(second)), 1)
        return np.asarray(mean[self.upper])

    @cached_property
    def c(self) -> Array:
        """tr C_b / d, the bulk variances, (A,)."""
        return np.diagonal(self.effective(self.start[None])[0][0])

    @cached_property
    def v(self) -> float:
        """d times the variance of the squared norms, the largest of a group; 0 if not kept."""
        if not self.norms:
            return 0.0
        b = self.batch
        along = b.L @ b.labels[:, 0, 1:]  # of (1/n) sum L x, along the target's directions
        across = b.L**2 @ b.weights / b.alpha
        v = b.v + (along**2).sum(axis=1) + across + b.g**2 * self.initial_norms  # Eq. (18.2)
        return float(v.max())

    @property
    def largest(self) -> Array:
        """C_b has no eigenvalue above this, (A,)."""
        b = self.batch
        widest = (1 + b.alpha**-0.5) ** 2  # of the mean of x x^T, and weighted
        size = np.abs(b.rho).max()
        return (1 + np.abs(b.linear) * size * widest) ** 2 + b.square * size**2 * widest

    def full(self, x: Array) -> Array:
        """E Q as matrices (P, 2A, 2A), from their entries x (P, n)."""
        matrix = np.zeros((len(x), 2 * self.groups, 2 * self.groups), x.dtype)
        rows, columns = (self.active[index] for index in self.upper)
        matrix[:, rows, columns] = matrix[:, columns, rows] = x
        return matrix

    def effective(self, x: Array) -> tuple[Array, Array, Array]:
        """C_e (P, A, A) for the averages x (P, n); o (P, 2A, A) with dC_e = o^T dx o; and
        the inverse of the pencil's second block, (P, A, A)."""
        A, one = self.groups, np.eye(self.groups)
        H = self.full(x)
        inverse = np.linalg.inv(H[:, A:, A:] - one)
        mixed = one + H[:, :A, A:]
        back = inverse @ mixed.swapaxes(1, 2)
        outer = np.concatenate([np.broadcast_to(one, back.shape), -back], axis=1)
        return H[:, :A, :A] - mixed @ back, outer, inverse

    def resolvent(self, Gh: Array) -> Array:
        """Q (..., M, m, m) on the active indices for Gh (..., m, m) there.  Eq. (18.9)"""
        T = self.samples
        matrix = np.eye(T.shape[-1]) + T @ Gh[..., None, :, :]
        return np.linalg.solve(matrix, np.broadcast_to(T, matrix.shape))

    def equation(self, x: Array, G: Array) -> tuple[Array, Array, Array]:
        """x less E Q (P, n), its derivative in x (P, n, n), where dG = -G dx G; and Q."""
        here, (rows, columns) = G[:, self.active[:, None], self.active], self.upper
        Q = self.resolvent(here / self.batch.alpha)
        mean = Q[..., rows, columns].swapaxes(1, 2) @ self.batch.weights
        by_x = self.products(Q, here)[:, :, rows, columns]
        return x - mean, np.eye(len(rows)) - by_x * np.where(rows == columns, 1.0, 2.0), Q

    def products(self, Q: Array, right: Array) -> Array:
        """E (Q r)_ia (Q r)_jb / alpha, symmetric in a and b, (P, n, a, b), for r (P, m, a)."""
        (P, M, m), a = Q.shape[:3], right.shape[2]
        rows, columns = self.upper
        moved = (Q @ right[:, None]).reshape(P, M, m * a)
        w = self.batch.weights / self.batch.alpha
        both = (moved * w[:, None]).swapaxes(1, 2) @ moved
        both = both.reshape(P, m, a, m, a).transpose(0, 1, 3, 2, 4)[:, rows, columns]
        return np.asarray((both + both.swapaxes(2, 3)) / 2)
