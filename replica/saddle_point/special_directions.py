"""Pencil of a network's rows on the special directions and the row norms.  docs/theory.md 17, 18

The special directions are those of the target, and the noise vectors e of all batches.  On them and
on the fluctuation delta of the squared norms, each with a group index, every sample adds to the
pencil the quadratic form

    z^T Q z + 2 z^T ((1 - Q Gh) Y delta - Q Gh phi k) - f^T J f,    f = Y delta + phi k,

at its stationary point in k.  Here z is the component along e and the directions on which labels
depend, Y delta is the effect on delta, and J = Gh (1 - Q Gh) is the average over the other
directions, in which, given e, the samples are orthogonal to phi: (18.10)-(18.11).  The Schur
complement is K^-1 + C with a C that includes delta.  (18.12) and (16.9) follow from it without
differences of nearly equal numbers.
"""

from math import prod

import numpy as np
from scipy.linalg import block_diag, null_space

from solvers.results import Array

from .linear_pencil import TrainedRows

DELTA = 1  # index of delta among the special directions


class _SampleBlock:
    """Contribution of the samples of step t to the pencil on special directions, given the trace G.

    Attributes
    ----------
    Q, rest, of_delta : (P, 2A, 2A, M)
        The matrices Q, 1 - Q Gh and (1 - Q Gh) Y at every node.
    places : (D + 2, S + 1)
        The labels' directions, e and delta, in the coordinates of ``Special``.
    along : (P, D + 2, 2A, 2A)
        Coefficients of the terms linear in k: E[x_i phi Q], with e among the x_i, and
        E[phi Y^T (1 - Gh Q)].
    solved : (P, 2A, 2A)
        D^-1 Gh.  Gh, which may be singular, is a factor of all that D^-1 acts on.
    pencil : (P, D + 2, D + 2, 2A, 2A)
        Contribution to the pencil along ``places``.
    """

    def __init__(self, rows: TrainedRows, step_index: int, G: Array, rotation: Array) -> None:
        batch, A, step = rows.batches[step_index], rows.groups, rows.steps[step_index]
        self.batch, Gh = batch, G[:, step, step] / batch.alpha
        row, column = (rows.active[entry] for entry in rows.entries[:2])
        self.Q = np.zeros((len(G), 2 * A, 2 * A, len(batch.weights)), G.dtype)
        self.Q[:, row, column] = self.Q[:, column, row] = rows.sample_resolvent(step_index, G)
        self.rest = np.eye(2 * A)[..., None] - Gh[:, None] @ self.Q
        self.of_delta = rows.norms * self._times_Y(self.rest)
        moments_on_delta = self._times_Y(Gh[:, None] @ self.of_delta.swapaxes(1, 2))  # Y^T J Y

        x_scale = np.ones((len(batch.products) - 1, 1, 1))
        x_scale[-1] = batch.alpha**-0.5  # e, along which x is phi / sqrt(alpha)
        on_x, mixed = (
            _average(batch.products[1:, 1:], self.Q),
            _average(batch.products[0, 1:], self.of_delta),
        )
        self.solved = np.linalg.inv(np.eye(2 * A) - on_x[:, -1, -1] @ Gh)  # Eq. (18.10)
        self.along = np.concatenate([x_scale * on_x[:, -1], mixed[:, -1:].swapaxes(2, 3)], axis=1)
        along_by_k = self.along @ (Gh @ self.solved)[:, None]
        self.pencil = along_by_k[:, :, None] @ self.along[:, None].swapaxes(3, 4)
        self.pencil[:, :-1, :-1] += x_scale[:, None] * x_scale * on_x  # Eq. (18.11)
        self.pencil[:, :-1, -1] += x_scale * mixed
        self.pencil[:, -1, :-1] += (x_scale * mixed).swapaxes(2, 3)
        norm_part = np.block(
            [[np.diag(batch.v), np.diag(batch.g)], [np.diag(batch.g), np.zeros((A, A))]]
        )
        self.pencil[:, -1, -1] += norm_part - _average(batch.weights, moments_on_delta)
        direction_order = np.insert(np.arange(len(rotation)), DELTA, len(rotation))
        self.places = block_diag(batch.directions @ rotation, 1.0)[:, direction_order]

    def _times_Y(self, sample_matrices: Array) -> Array:
        """Product f Y at every node, with Y = [[F, lam], [L, 0]], rows of x and columns of
        delta."""
        batch = self.batch
        first, second_layer = np.split(sample_matrices, 2, axis=2)
        return np.concatenate([first * batch.F + second_layer * batch.L, first * batch.lam], axis=2)

    def trace_derivative(self, z: Array) -> Array:
        """Minus the derivative in G of the quadratic form at z (P, S + 1, 2A), (P, 2A, 2A).

        It is E r r^T / alpha with r = Q z + (1 - Q Gh) f, plus the same for directions on which no
        label depends.
        """
        batch, z_places = self.batch, self.places @ z
        stationary_k = -self.solved @ (self.along.swapaxes(2, 3) @ z_places[..., None]).sum(axis=1)
        r = np.empty((len(z), len(batch.products), *self.Q.shape[2:]), z.dtype)
        r[:, 0] = np.einsum("pijm,pj->pim", self.of_delta, z_places[:, -1])
        r[:, 1:] = np.einsum("pijm,paj->paim", self.Q, z_places[:, :-1])
        r[:, -1] *= batch.alpha**-0.5
        r[:, -1] += np.einsum("pijm,pj->pim", self.rest, stationary_k[..., 0])
        known_directions = np.einsum("abm,paim,pbjm->pij", batch.products, r, r, optimize=True)
        other_directions = z - self.places[:-2].T @ z_places[:, :-2]
        other_directions[:, DELTA] = 0.0
        r = np.einsum("pijm,paj->paim", self.Q, other_directions)
        return (
            known_directions + np.einsum("m,paim,pajm->pij", batch.weights, r, r, optimize=True)
        ) / batch.alpha


class Special:
    """Pencil on u, delta, zeta and the other special directions, at P points with averages x
    (P, nT) and the trace G (P, 2AT, 2AT).

    Attributes
    ----------
    C : (P, (S + 1) A, (S + 1) A)
        C on the directions in this order, with the groups of a direction next to each other.
    shape : tuple of int
        Numbers of directions S + 1, of layers 2T, and of groups A.
    """

    def __init__(self, rows: TrainedRows, x: Array, G: Array) -> None:
        count, layers, A = self.shape = rows.basis.shape[1] + 1, 2 * len(rows.batches), rows.groups
        self.rows, EQ, P, layer_size = rows, rows.as_matrices(x), len(x), count * A
        rotation = np.hstack([rows.basis.T, null_space(rows.basis)])
        self.samples = [_SampleBlock(rows, t, G, rotation) for t in range(len(rows.batches))]
        H = np.zeros((P, count, count, layers * A, layers * A), np.result_type(EQ, G))
        linked_directions = np.delete(np.arange(count), DELTA)
        H[:, linked_directions, linked_directions] = (rows.links + EQ)[:, None]
        H[:, DELTA, DELTA] = rows.links
        for step, samples in zip(rows.steps, self.samples, strict=True):
            H[:, DELTA, DELTA, step, step] = 0.0  # g replaces the links within a step
            label_places, sample_places = samples.places[:-2], samples.places
            by_labels = (label_places.T @ label_places)[..., None, None]  # E Q acts on all others
            H[..., step, step] -= by_labels * EQ[:, None, None, step, step]
            H[..., step, step] += np.einsum(
                "ia,jb,pijkl->pabkl", sample_places, sample_places, samples.pencil, optimize=True
            )
        H = H.reshape(P, count, count, layers, A, layers, A).transpose(0, 3, 1, 4, 5, 2, 6)
        H = H.reshape(P, layers * layer_size, layers * layer_size)
        initial_delta = np.arange(A) - layer_size + DELTA * A  # delta of the initial rows
        # the variance is 0 if all norms are equal
        H[:, initial_delta, initial_delta] -= 1 / max(rows.initial_norms, 1e-30)
        self.back = -np.linalg.solve(H[:, layer_size:, layer_size:], H[:, layer_size:, :layer_size])
        self.C = H[:, :layer_size, :layer_size] + H[:, :layer_size, layer_size:] @ self.back

    def trace_derivative(self, w: Array) -> Array:
        """Derivative -d(w^T C w) / dG, (P, 2AT, 2AT), for vectors w (P, (S + 1) A) on all
        directions."""
        directions, layers, A = self.shape
        z = np.concatenate([w, (self.back @ w[..., None])[..., 0]], axis=1)
        z = z.reshape(-1, layers, directions, A).swapaxes(1, 2).reshape(-1, directions, layers * A)
        derivative_in_G = np.zeros((len(w), *self.rows.links.shape), z.dtype)
        for step, samples in zip(self.rows.steps, self.samples, strict=True):
            derivative_in_G[:, step, step] = samples.trace_derivative(z[..., step])
        return derivative_in_G


def norm_variance(rows: TrainedRows) -> float:
    """Largest variance, over groups, of the squared row norms times d; 0 without norms."""
    A, start_averages = rows.groups, rows.start[None]
    special_C = Special(rows, start_averages, rows.trace(start_averages, np.zeros((1, A, A)))).C[0]
    return float(np.diagonal(special_C)[DELTA * A : (DELTA + 1) * A].max())


def _average(weights: Array, node_matrices: Array) -> Array:
    """Sums over the nodes of ``weights`` (..., M) times f (P, 2A, 2A, M), (P, ..., 2A, 2A)."""
    P, n, m, M = node_matrices.shape
    weight_rows = weights.reshape(prod(weights.shape[:-1]), M)  # there may be none
    node_sums = weight_rows @ node_matrices.reshape(P, n * m, M).swapaxes(1, 2)
    return np.asarray(node_sums.reshape(P, *weights.shape[:-1], n, m))
