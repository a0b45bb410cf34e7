"""Linear pencil for the rows of a network of A groups after T steps.  docs/theory.md 16-18

Given the batches of all steps, a row less the common spike, v, and the fluctuation of its squared
norm, delta, follow a linear recursion with fresh noise (18.1).  Groups of neurons have the inputs
of a batch in common and differ in the effect of these on their rows.  The readout depends on all
covariances C_b of v through

    N = (K^-1 + blockdiag C_b)^-1,    K = sqrt(tau) V1_hat sqrt(tau),  tau_b = beta V2_b,     (17.2)

on groups times inputs; for one group K is the number q of (16.6).  The C_b do not commute.  A
pencil with two layers for each step, the last step first, and a group index in each layer, has K^-1
+ blockdiag C_b as Schur complement, and is linear in the samples.  For large d the samples act on a
direction on which no label depends through x = E Q, Q = T (1 + Gh T)^-1 (18.9).  The Schur
complement is then K^-1 + C with an *effective* covariance C (A x A): the trace of N over the inputs
is (K^-1 + C)^-1.  For one group, tr (1 + q C)^-1 / d = 1 / (1 + q c_e(q)).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.linear import solve_rows
from solvers.resources import check_time
from solvers.results import Array

from ..equivalence import Batch


class GroupResolvent(NamedTuple):
    """Matrices of (17.2) at P points: the averages x (P, n); K, C, W, S and N = W K, (P, A, A)
    each; and ``outer`` o (P, m, A) with dC = o^T dx o."""

    x: Array
    K: Array
    C: Array
    W: Array
    S: Array
    N: Array
    outer: Array


class PencilEquations(NamedTuple):
    """Equations for the averages x at P points: their residual (P, n), its derivatives in x
    (P, n, n) and in K (P, n, A, A), and the derivatives of S in x (P, n, A, A)."""

    residual: Array
    by_x: Array
    by_K: Array
    S_by_x: Array


@dataclass(frozen=True, eq=False)
class TrainedRows:
    """Rows of a network, given by the batches of its gradient steps.

    Attributes
    ----------
    batches : tuple of Batch
        Batches of all steps in reverse order: t = 0 is the last step.
    basis : (n, S)
        The spike u and the other target directions zeta, in coordinates of the special directions.
    norms : bool
        Whether the fluctuation of the rows' norms is included.
    initial_norms : float
        d times the variance of the squared norms of the initial rows.
    mean_row : float
        p times the squared length of the mean of the rows less the spike, for one kind of neurons.
    """

    batches: tuple[Batch, ...]
    basis: Array
    norms: bool = True
    initial_norms: float = 0.0
    mean_row: float = 1.0

    def select(self, groups: NDArray[np.int64]) -> "TrainedRows":
        """Copy of these rows with some of the ``groups`` only."""
        return replace(self, batches=tuple(batch.select(groups) for batch in self.batches))

    @property
    def groups(self) -> int:
        """Number A of groups."""
        return len(self.batches[0].t11)

    @property
    def steps(self) -> list[slice]:
        """Indices of each step in the pencil."""
        step_length = 2 * self.groups
        return [slice(t * step_length, (t + 1) * step_length) for t in range(len(self.batches))]

    @cached_property
    def links(self) -> Array:
        """Pencil without samples and without K^-1, (2AT, 2AT).  Eq. (18.9)"""
        couplings = np.ones(2 * len(self.batches) - 1)
        couplings[::2] = [batch.decay_factor for batch in self.batches]
        pencil_layers = np.diag(couplings, k=1) + np.diag(couplings, k=-1)
        pencil_layers[-1, -1] = -1.0
        return np.kron(pencil_layers, np.eye(self.groups))

    @cached_property
    def active(self) -> Array:
        """Indices within a step on which samples act, (m,).  For one group these are always both,
        for which there is a closed form."""
        on_second_layer = sum(np.abs(batch.t12).sum(axis=1) for batch in self.batches)
        on_first = on_second_layer + sum(np.abs(batch.t11).sum(axis=1) for batch in self.batches)
        return np.flatnonzero(np.append(on_first, on_second_layer) + (self.groups == 1))

    @cached_property
    def entries(self) -> tuple[Array, Array, Array]:
        """Rows and columns (n,) of the entries that represent a symmetric matrix on the active
        indices, and the entry (m, m) of each of its elements."""
        rows, entry_columns = np.triu_indices(len(self.active))
        entry_index = np.zeros((len(self.active), len(self.active)), dtype=int)
        entry_index[rows, entry_columns] = entry_index[entry_columns, rows] = np.arange(len(rows))
        return rows, entry_columns, entry_index

    @cached_property
    def pairs(self) -> Array:
        """Indices (n, m, m) of E Q_ik Q_jl, in the order (ij), k, l, among products of two
        entries."""
        entry_rows, entry_columns, place = self.entries
        return place[entry_rows][:, :, None] * len(entry_rows) + place[entry_columns][:, None]

    @cached_property
    def upper(self) -> tuple[Array, Array]:
        """Rows and columns in the pencil of the entries of all steps, (nT,)."""
        step_starts = np.array([step.start for step in self.steps])[:, None]
        rows, columns = (np.ravel(step_starts + self.active[entry]) for entry in self.entries[:2])
        return rows, columns

    @cached_property
    def start(self) -> Array:
        """Averages x at K = 0, (nT,)."""
        K = np.zeros((1, self.groups, self.groups))
        return self._newton(K, np.zeros((1, len(self.upper[0]))))[0]

    @cached_property
    def c(self) -> Array:
        """Bulk variances tr C_b / d, (A,)."""
        return np.diagonal(self.effective_covariance(self.start[None])[0][0])

    def as_matrices(self, x: Array) -> Array:
        """Matrices E Q (P, 2AT, 2AT) with the entries x (P, nT)."""
        pencil_matrix = np.zeros((len(x), *self.links.shape), x.dtype)
        pencil_rows, columns = self.upper
        pencil_matrix[:, pencil_rows, columns] = pencil_matrix[:, columns, pencil_rows] = x
        return pencil_matrix

    def effective_covariance(self, x: Array) -> tuple[Array, Array, Array]:
        """Effective covariance C (P, A, A) for averages x (P, nT); o (P, 2AT, A) with
        dC = o^T dx o; and the inverse of the pencil without its first layer.  Eq. (17.3)"""
        A, H = self.groups, self.links + self.as_matrices(x)
        inverse = np.linalg.inv(H[:, A:, A:])
        back = inverse @ H[:, A:, :A]
        unit = np.broadcast_to(np.eye(A), (len(x), A, A))
        return H[:, :A, :A] - H[:, :A, A:] @ back, np.concatenate([unit, -back], axis=1), inverse

    def trace(self, x: Array, K: Array) -> Array:
        """Trace G (P, 2AT, 2AT) of the inverse pencil over the inputs, for averages x (P, nT) and K
        (P, A, A).  Eq. (17.3)"""
        C, outer, inner_inverse = self.effective_covariance(x)
        G = outer @ np.linalg.solve(np.eye(self.groups) + K @ C, K) @ outer.swapaxes(1, 2)
        G[:, self.groups :, self.groups :] += inner_inverse
        return np.asarray(G)

    def sample_resolvent(self, step: int, G: Array) -> Array:
        """Resolvent Q of every sample of step t, at M nodes: its entries (P, n, M) in the order of
        ``entries``, for the trace G of the inverse pencil.  Eq. (18.9)"""
        b, active, A = self.batches[step], self.active, self.groups
        Gh = G[:, self.steps[step], self.steps[step]][:, active[:, None], active] / b.alpha
        if A == 1:
            g11, g12, g22 = (entry[:, None] for entry in (Gh[:, 0, 0], Gh[:, 0, 1], Gh[:, 1, 1]))
            b2 = b.t12 * b.t12
            D = 1 + g11 * b.t11 + 2 * g12 * b.t12 + (g12 * g12 - g11 * g22) * b2
            return np.stack([b.t11 - g22 * b2, b.t12 + g12 * b2, -g11 * b2], axis=1) / D[:, None]
        sample_matrix, i = np.zeros((b.t11.shape[1], 2 * A, 2 * A), b.t11.dtype), np.arange(A)
        sample_matrix[:, i, i] = b.t11.T
        sample_matrix[:, i, A + i] = sample_matrix[:, A + i, i] = b.t12.T
        sample_matrix = sample_matrix[:, active[:, None], active]
        Q = np.linalg.solve(np.eye(len(active)) + sample_matrix @ Gh[:, None], sample_matrix[None])
        return Q[..., *self.entries[:2]].swapaxes(1, 2)

    def residual(self, x: Array, G: Array) -> tuple[Array, Array, list[Array]]:
        """Residual x - E Q (P, nT); its derivative in x (P, nT, nT), with dG = -G dx G; and, for
        every step, E Q_ik Q_jl / alpha in the order (ij), k, l."""
        check_time()  # of many groups and samples, this takes nearly all of the time
        sample_means, sample_squares = [], []
        for step, batch in enumerate(self.batches):
            Q = self.sample_resolvent(step, G)
            sample_means.append(Q @ batch.weights)
            sample_square = (Q * (batch.weights / batch.alpha)) @ Q.swapaxes(1, 2)
            square_entries = sample_square.reshape(len(x), sample_square.shape[1] ** 2)
            sample_squares.append(square_entries.take(self.pairs, axis=1))
        pencil_rows, pencil_columns = self.upper
        by_x = self.products(sample_squares, G)[:, :, pencil_rows, pencil_columns]
        by_x = np.eye(len(pencil_rows)) - by_x * np.where(pencil_rows == pencil_columns, 1.0, 2.0)
        return x - np.concatenate(sample_means, axis=1), by_x, sample_squares

    def products(self, sample_squares: list[Array], pencil_vectors: Array) -> Array:
        """Averages E (Q r)_ia (Q r)_jb / alpha, symmetrised in a and b, (P, nT, a, b), for r
        (P, 2AT, a)."""
        step_products = []
        for step, square in zip(self.steps, sample_squares, strict=True):
            r_active = pencil_vectors[:, step][:, self.active]
            a, (P, n, m, _) = r_active.shape[2], square.shape
            partial = (square.reshape(P, n * m, m) @ r_active).reshape(P, n, m, a).swapaxes(2, 3)
            step_products.append((partial.reshape(P, n * a, m) @ r_active).reshape(P, n, a, a))
        entry_products = np.concatenate(step_products, axis=1)
        return np.asarray((entry_products + entry_products.swapaxes(2, 3)) / 2)

    def averages(self, K: Array, start: Array | None = None) -> Array:
        """Averages x (P, nT) for real K (P, A, A), by Newton's method from ``start`` or from K = 0.

        Where that fails, x is followed in steps from K = 0; NaN where that fails, too.
        """
        x = self._newton(K, np.tile(self.start, (len(K), 1)) if start is None else start)
        failed_points = np.flatnonzero(np.isnan(x).any(axis=1) & np.isfinite(K).all(axis=(1, 2)))
        if failed_points.size:
            followed_averages = np.tile(self.start, (failed_points.size, 1))
            for share_of_K in np.geomspace(1e-12, 1, 25):
                followed_averages = self._newton(share_of_K * K[failed_points], followed_averages)
            x[failed_points] = followed_averages
        return x

    def _newton(self, K: Array, start: Array) -> Array:
        """Averages x (P, nT) by Newton's method; NaN where it fails or leaves the branch."""
        averages = np.array(start)
        for _ in range(40):  # a few are enough in most cases
            pencil_residual, residual_by_x, _ = self.residual(averages, self.trace(averages, K))
            newton_step = solve_rows(residual_by_x, pencil_residual)
            averages -= newton_step
            scale_of_x = 1 + np.abs(averages).max(axis=1, keepdims=True, initial=0.0)
            # the remaining error is the square of this
            pencil_solved = (np.abs(newton_step) <= 1e-8 * scale_of_x).all(axis=1)
            if pencil_solved.all():
                break
        averages = np.where(pencil_solved[:, None], averages, np.nan)
        return np.where(self._on_right_branch(self.trace(averages, K))[:, None], averages, np.nan)

    def _on_right_branch(self, G: Array) -> NDArray[np.bool_]:
        """True where a real trace G (P, k, k) is on the right branch: positive semidefinite on the
        first layer of every step, negative semidefinite on the second."""
        on_branch = np.asarray(np.isfinite(G).all(axis=(1, 2)))
        G, layer = np.where(on_branch[:, None, None], G, 0.0), np.arange(G.shape[1]) // self.groups
        first_layers, is_second = layer % 2 == 0, layer % 2 == 1
        for block in (G[:, first_layers][:, :, first_layers], -G[:, is_second][:, :, is_second]):
            eigenvalues = np.linalg.eigvalsh(block)
            # up to rounding relative to the largest; for K = 0 all are 0
            on_branch &= eigenvalues[:, 0] >= -1e-9 * np.maximum(eigenvalues[:, -1], 1e-9)
        return on_branch
