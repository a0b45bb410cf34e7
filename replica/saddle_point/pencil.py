"""The rows of a network of A groups after T steps: their pencil.  docs/theory.md 16-18

Given the batches of all steps, a row less the common spike, v, and the fluctuation of its squared
norm, delta, follow a linear recursion with fresh noise (18.1).  Groups of neurons share the inputs
of a batch and differ in what these do to their rows.  What the readout asks of all the covariances
C_b of v at once is

    N = (K^-1 + blockdiag C_b)^-1,    K = sqrt(tau) V1_hat sqrt(tau),  tau_b = beta V2_b,     (17.2)

on groups times inputs; of one group K is the number q of (16.6).  The C_b do not commute, but a
pencil of two layers for each step, the last step first, with an index of the group in each layer,
has K^-1 + blockdiag C_b for a Schur complement, and is linear in the samples.  For large d they
act on a direction that no label knows through x = E Q, Q = T (1 + Gh T)^-1 (18.9), and the Schur
complement is K^-1 + C with an *effective* covariance C (A x A): the trace of N over the inputs is
(K^-1 + C)^-1.  Of one group, tr (1 + q C)^-1 / d = 1 / (1 + q c_e(q)).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.linear import solve_rows
from solvers.results import Array

from ..equivalence import Batch


class GroupResolvent(NamedTuple):
    """What (17.2) is made of, at P points: the averages x (P, n); K, C, W, S and N = W K,
    (P, A, A) each; and o (P, m, A) with dC = o^T dx o."""

    x: Array
    K: Array
    C: Array
    W: Array
    S: Array
    N: Array
    outer: Array


class PencilEquations(NamedTuple):
    """The equations for the averages x at P points: what they lack of being met (P, n), and the
    derivatives of that in x (P, n, n) and in K (P, n, A, A); and those of S in x (P, n, A, A)."""

    rest: Array
    by_x: Array
    by_K: Array
    of_S: Array


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a network.

    Attributes
    ----------
    batches : tuple of Batch
        Of all steps, the last one first: so they are counted here, t = 0 being the last.
    basis : (n, S)
        The spike u and the other directions of the target, zeta, in the special ones.
    norms : bool
        Whether the fluctuation of the rows' norms is kept.
    initial_norms : float
        d times the variance of the squared norms that the rows start from.
    """

    batches: tuple[Batch, ...]
    basis: Array
    norms: bool = True
    initial_norms: float = 0.0

    def select(self, groups: NDArray[np.int64]) -> "Rows":
        """The rows of some of the groups."""
        return replace(self, batches=tuple(batch.select(groups) for batch in self.batches))

    @property
    def groups(self) -> int:
        """Their number A."""
        return len(self.batches[0].t11)

    @property
    def steps(self) -> list[slice]:
        """The indices of each step in the pencil."""
        size = 2 * self.groups
        return [slice(t * size, (t + 1) * size) for t in range(len(self.batches))]

    @cached_property
    def links(self) -> Array:
        """The pencil without samples and K^-1, (2AT, 2AT).  Eq. (18.9)"""
        between = np.ones(2 * len(self.batches) - 1)
        between[::2] = [b.decay_factor for b in self.batches]
        layers = np.diag(between, k=1) + np.diag(between, k=-1)
        layers[-1, -1] = -1.0
        return np.kron(layers, np.eye(self.groups))

    @cached_property
    def active(self) -> Array:
        """The indices within a step that samples act on, (m,): of one group both, which have a
        closed form."""
        second = sum(np.abs(b.t12).sum(axis=1) for b in self.batches)
        first = second + sum(np.abs(b.t11).sum(axis=1) for b in self.batches)
        return np.flatnonzero(np.append(first, second) + (self.groups == 1))

    @cached_property
    def entries(self) -> tuple[Array, Array, Array]:
        """Rows and columns (n,) of the entries that stand for a symmetric matrix on these indices,
        and where each place (m, m) of it stands among them."""
        rows, columns = np.triu_indices(len(self.active))
        place = np.zeros((len(self.active), len(self.active)), dtype=int)
        place[rows, columns] = place[columns, rows] = np.arange(len(rows))
        return rows, columns, place

    @cached_property
    def pairs(self) -> Array:
        """Where E Q_ik Q_jl, in the order (ij), k, l, stands among the products of two entries,
        (n, m, m)."""
        rows, columns, place = self.entries
        return place[rows][:, :, None] * len(rows) + place[columns][:, None]

    @cached_property
    def upper(self) -> tuple[Array, Array]:
        """Rows and columns in the pencil of the entries of all steps, (nT,)."""
        first = np.array([step.start for step in self.steps])[:, None]
        rows, columns = (np.ravel(first + self.active[part]) for part in self.entries[:2])
        return rows, columns

    @cached_property
    def start(self) -> Array:
        """The averages at K = 0, (nT,)."""
        K = np.zeros((1, self.groups, self.groups))
        return self._newton(K, np.zeros((1, len(self.upper[0]))))[0]

    @cached_property
    def c(self) -> Array:
        """tr C_b / d, the bulk variances, (A,)."""
        return np.diagonal(self.effective(self.start[None])[0][0])

    def full(self, x: Array) -> Array:
        """E Q as matrices (P, 2AT, 2AT), from their entries x (P, nT)."""
        matrix = np.zeros((len(x), *self.links.shape), x.dtype)
        rows, columns = self.upper
        matrix[:, rows, columns] = matrix[:, columns, rows] = x
        return matrix

    def effective(self, x: Array) -> tuple[Array, Array, Array]:
        """C (P, A, A) for the averages x (P, nT); o (P, 2AT, A) with dC = o^T dx o; and the inverse
        of the pencil's block beyond the first layer.  Eq. (17.3)"""
        A, H = self.groups, self.links + self.full(x)
        inverse = np.linalg.inv(H[:, A:, A:])
        back = inverse @ H[:, A:, :A]
        one = np.broadcast_to(np.eye(A), (len(x), A, A))
        return H[:, :A, :A] - H[:, :A, A:] @ back, np.concatenate([one, -back], axis=1), inverse

    def trace(self, x: Array, K: Array) -> Array:
        """G (P, 2AT, 2AT), the trace of the inverse pencil over the inputs, for averages x (P, nT)
        and K (P, A, A).  Eq. (17.3)"""
        C, outer, inverse = self.effective(x)
        G = outer @ np.linalg.solve(np.eye(self.groups) + K @ C, K) @ outer.swapaxes(1, 2)
        G[:, self.groups :, self.groups :] += inverse
        return np.asarray(G)

    def resolvent(self, t: int, G: Array) -> Array:
        """Q (P, n, M) of the samples of step t, on the entries that stand for it.  Eq. (18.9)"""
        b, here, A = self.batches[t], self.active, self.groups
        Gh = G[:, self.steps[t], self.steps[t]][:, here[:, None], here] / b.alpha
        if A == 1:
            g11, g12, g22 = (part[:, None] for part in (Gh[:, 0, 0], Gh[:, 0, 1], Gh[:, 1, 1]))
            b2 = b.t12 * b.t12
            D = 1 + g11 * b.t11 + 2 * g12 * b.t12 + (g12 * g12 - g11 * g22) * b2
            return np.stack([b.t11 - g22 * b2, b.t12 + g12 * b2, -g11 * b2], axis=1) / D[:, None]
        T, i = np.zeros((b.t11.shape[1], 2 * A, 2 * A), b.t11.dtype), np.arange(A)
        T[:, i, i] = b.t11.T
        T[:, i, A + i] = T[:, A + i, i] = b.t12.T
        T = T[:, here[:, None], here]
        Q = np.linalg.solve(np.eye(len(here)) + T @ Gh[:, None], T[None])
        return Q[..., *self.entries[:2]].swapaxes(1, 2)

    def equation(self, x: Array, G: Array) -> tuple[Array, Array, list[Array]]:
        """x less E Q (P, nT); its derivative in x (P, nT, nT), where dG = -G dx G; and, of every
        step, E Q_ik Q_jl / alpha in the order (ij), k, l."""
        means, squares = [], []
        for t, b in enumerate(self.batches):
            Q = self.resolvent(t, G)
            means.append(Q @ b.weights)
            square = (Q * (b.weights / b.alpha)) @ Q.swapaxes(1, 2)
            entries = square.reshape(len(x), square.shape[1] ** 2)
            squares.append(entries.take(self.pairs, axis=1))
        rows, columns = self.upper
        by_x = self.products(squares, G)[:, :, rows, columns]
        by_x = np.eye(len(rows)) - by_x * np.where(rows == columns, 1.0, 2.0)
        return x - np.concatenate(means, axis=1), by_x, squares

    def products(self, squares: list[Array], r: Array) -> Array:
        """E (Q r)_ia (Q r)_jb / alpha, symmetric in a and b, (P, nT, a, b), for r (P, 2AT, a)."""
        each = []
        for step, square in zip(self.steps, squares, strict=True):
            seen = r[:, step][:, self.active]
            a, (P, n, m, _) = seen.shape[2], square.shape
            first = (square.reshape(P, n * m, m) @ seen).reshape(P, n, m, a).swapaxes(2, 3)
            each.append((first.reshape(P, n * a, m) @ seen).reshape(P, n, a, a))
        both = np.concatenate(each, axis=1)
        return np.asarray((both + both.swapaxes(2, 3)) / 2)

    def averages(self, K: Array, start: Array | None = None) -> Array:
        """The averages x (P, nT) of real K (P, A, A), by Newton's method from ``start`` or those
        of K = 0 or, where that fails, in steps from K = 0; NaN where that fails, too."""
        x = self._newton(K, np.tile(self.start, (len(K), 1)) if start is None else start)
        lost = np.flatnonzero(np.isnan(x).any(axis=1) & np.isfinite(K).all(axis=(1, 2)))
        if lost.size:
            followed = np.tile(self.start, (lost.size, 1))
            for share in np.geomspace(1e-12, 1, 25):
                followed = self._newton(share * K[lost], followed)
            x[lost] = followed
        return x

    def _newton(self, K: Array, start: Array) -> Array:
        """The averages x (P, nT) by Newton's method; NaN where it fails, or leaves the branch."""
        x = np.array(start)
        for _ in range(40):  # a few are usual
            rest, by_x, _ = self.equation(x, self.trace(x, K))
            step = solve_rows(by_x, rest)
            x -= step
            size = 1 + np.abs(x).max(axis=1, keepdims=True, initial=0.0)
            found = (np.abs(step) <= 1e-8 * size).all(axis=1)  # the error left is its square
            if found.all():
                break
        x = np.where(found[:, None], x, np.nan)
        return np.where(self._admissible(self.trace(x, K))[:, None], x, np.nan)

    def _admissible(self, G: Array) -> NDArray[np.bool_]:
        """Where the real trace is that of the right branch, (P,): not negative on the first layer
        of every step, and not positive on the second."""
        good = np.asarray(np.isfinite(G).all(axis=(1, 2)))
        G, layer = np.where(good[:, None, None], G, 0.0), np.arange(G.shape[1]) // self.groups
        first, second = layer % 2 == 0, layer % 2 == 1
        for part in (G[:, first][:, :, first], -G[:, second][:, :, second]):
            values = np.linalg.eigvalsh(part)
            # but for rounding, relative to the largest; of K = 0 all are 0
            good &= values[:, 0] >= -1e-9 * np.maximum(values[:, -1], 1e-9)
        return good
