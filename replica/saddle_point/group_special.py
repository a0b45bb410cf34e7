"""What the special directions and the row norms see of the rows of several groups of neurons.
docs/theory.md 17

On the special directions (those of the target, and the noise vector e of the batch) and on the
fluctuation delta of the squared norms, each with an index of the group beside it, the pencil of
``group_pencil`` has for each sample the quadratic form

    min over kappa of  z^T T z + 2 z^T y - (T z + y + phi kappa)^T J (T z + y + phi kappa),

z being what it sees along the directions that labels know and e, y = Y delta what it adds to delta,
and J = Gh - Gh Q Gh what is left of the other directions, in which, given e, the samples are
orthogonal to phi.  That is (18.10)-(18.11) with matrices over the groups.
"""

import numpy as np
from scipy.linalg import block_diag, null_space

from solvers.linear import solve_rows
from solvers.results import Array

from .group_pencil import GroupRows


class GroupSpecial:
    """The pencil on S special directions and delta, at P points with averages x (P, n) and the
    trace G (P, 2A, 2A).

    Attributes
    ----------
    C : (P, (S + 1) A, (S + 1) A)
        C_e on the directions in the order of ``turn``, the groups of each side by side.
    """

    def __init__(self, rows: GroupRows, x: Array, G: Array) -> None:
        self.rows, self.G = rows, G
        b, A, P = rows.batch, rows.groups, len(x)
        S, w = b.labels.shape[1], b.weights
        power = float(w @ b.rho**2)
        self.phi = b.rho / np.sqrt(power) if power else 0 * b.rho  # Eq. (18.10)
        self.Y = _sums(rows)
        Gh, here = G / b.alpha, rows.active
        self.Q = np.zeros((P, len(w), 2 * A, 2 * A), G.dtype)
        self.Q[:, :, here[:, None], here] = rows.resolvent(Gh[:, here[:, None], here])
        self.BY = self.Y - self.Q @ (Gh[:, None] @ self.Y)  # (1 - Q Gh) Y
        # weights times x, of the label directions and then of e: phi / sqrt(alpha); and x x^T
        of_e = b.alpha**-0.5 * self.phi
        x1 = np.column_stack([b.labels[:, 0, 1:], of_e * w])
        x2 = np.empty((len(w), S, S))
        x2[:, :-1, :-1], x2[:, -1, -1] = b.labels[:, 1:, 1:], of_e**2 * w
        x2[:, -1, :-1] = x2[:, :-1, -1] = of_e[:, None] * b.labels[:, 0, 1:]

        def average(weights: Array, f: Array) -> Array:
            """Sums over the nodes of ``weights`` (M, ...) times f (P, M, 2A, 2A)."""
            return np.einsum("m...,pmij->p...ij", weights, f)

        H = np.zeros((P, S + 1, S + 1, 2 * A, 2 * A), G.dtype)
        links = np.kron([[0.0, 1.0], [1.0, -1.0]], np.eye(A))
        H[:, range(S), range(S)] = links
        H[:, S - 1, S - 1] += rows.full(x)
        own = np.block([[np.diag(b.v), np.diag(b.g)], [np.diag(b.g), np.zeros((A, A))]])
        H[:, :S, :S] += average(x2, self.Q)  # Eq. (18.11)
        H[:, :S, S] = average(x1, self.BY)
        H[:, S, :S] = H[:, :S, S].swapaxes(-1, -2)
        H[:, S, S] = own - np.einsum("m,mji,pjk,pmkl->pil", w, self.Y, Gh, self.BY, optimize=True)
        # The terms of phi.  D^-1 of (18.10) is (1 - E[phi^2 Q] Gh)^-1 Gh^-1, and Gh, which may be
        # singular, is a factor of all that it acts on.
        self.inverse = np.linalg.inv(np.eye(2 * A) - average(w * self.phi**2, self.Q) @ Gh)
        self.along = np.empty((P, S + 1, 2 * A, 2 * A), G.dtype)
        self.along[:, :S] = average(x1 * self.phi[:, None], self.Q)
        self.along[:, S] = average(w * self.phi, self.BY).swapaxes(-1, -2)
        moved = self.along @ (Gh @ self.inverse)[:, None]
        H += moved[:, :, None] @ self.along.swapaxes(-1, -2)[:, None]

        self.turn = block_diag(np.vstack([rows.basis, null_space(rows.basis).T]), 1.0)
        H = np.einsum("ia,jb,pabkl->pijkl", self.turn, self.turn, H)
        size = (S + 1) * A
        H = H.reshape(P, S + 1, S + 1, 2, A, 2, A).transpose(0, 3, 1, 4, 5, 2, 6)
        H = H.reshape(P, 2 * size, 2 * size)
        last = range(2 * size - A, 2 * size)  # the second indices of delta: what rows start from
        if rows.initial_norms:
            H[:, last, last] -= 1 / rows.initial_norms
        else:
            H = H[:, :-A, :-A]
        self.inner = -np.linalg.solve(H[:, size:, size:], H[:, size:, :size])
        self.C = H[:, :size, :size] + H[:, :size, size:] @ self.inner

    def through_trace(self, w: Array, U: Array, by_x: Array) -> Array:
        """-d(w^T C w) / dK (P, A, A), for vectors w (P, (S + 1) A) on the directions of ``turn``.

        C changes through G: dG = (1 - L)^-1 U dK U^T, L X = G E[Q X Q] G / alpha, and ``by_x``
        (P, n, n) is 1 - L^T on the active indices.
        """
        direct, rows = self._by_trace(w), self.rows
        moved = self.Q @ (self.G @ direct @ self.G)[:, None] @ self.Q
        once = np.einsum("m,pmij->pij", rows.batch.weights / rows.batch.alpha, moved)
        upper = tuple(rows.active[index] for index in rows.upper)
        total = direct + rows.full(solve_rows(by_x, once[:, *upper]))
        return np.asarray(U.swapaxes(1, 2) @ total @ U)

    def _by_trace(self, w: Array) -> Array:
        """-d(w^T C w) / dG, (P, 2A, 2A): E r r^T / alpha with
        r = Q (z - Gh (y + phi kappa)) + y + phi kappa, and the part of e beside the samples'."""
        b, A, P = self.rows.batch, self.rows.groups, len(w)
        second = np.zeros_like(w)
        rest = (self.inner @ w[..., None])[..., 0]
        second[:, : rest.shape[1]] = rest
        z = np.concatenate([part.reshape(P, -1, A) for part in (w, second)], axis=2)
        z = (self.turn.T @ z)[..., None]  # of the special directions, then of delta
        kappa = self.along[:, :-1] @ z[:, :-1]
        kappa = kappa.sum(axis=1) + self.along[:, -1].swapaxes(1, 2) @ z[:, -1]
        kappa = -(self.inverse @ kappa)[:, None]
        Gh, phi = self.G[:, None] / b.alpha, self.phi[:, None, None]
        of_e = self.Q @ z[:, None, -2]
        constant = b.alpha**-0.5 * phi * of_e + self.BY @ z[:, None, -1]
        constant = constant + phi * (kappa - self.Q @ (Gh @ kappa))
        on_x = [self.Q @ z[:, None, a] for a in range(b.labels.shape[1] - 1)]
        r = np.stack([constant, *on_x], axis=2)[..., 0]  # the coefficients of 1, x_1, ...
        total = np.einsum("mab,pmai,pmbj->pij", b.labels, r, r, optimize=True)
        total += np.einsum("m,pmi,pmj->pij", b.weights, of_e[..., 0], of_e[..., 0], optimize=True)
        return total / b.alpha


def _sums(rows: GroupRows) -> Array:
    """Y of (18.11) at every node, (M, 2A, 2A): rows of x, columns of delta; 0 without norms."""
    b, A, i = rows.batch, rows.groups, np.arange(rows.groups)
    Y = np.zeros((len(b.rho), 2 * A, 2 * A))
    if rows.norms:
        Y[:, i, i], Y[:, i, A + i], Y[:, A + i, i] = b.F.T, b.lam.T, b.L.T
    return Y
