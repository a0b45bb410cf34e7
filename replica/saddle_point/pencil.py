"""The augmented pencil of the network's rows.  docs/theory.md 16, 18

Given the batches of all steps, a row less the common spike, v, and the fluctuation of its squared
norm, delta, follow a linear recursion with fresh noise (18.1); together they have the covariance

    Chat = [[C, k], [k^T, v]] / d.                                                     (18.2)

A pencil that is linear in the samples has 1/q + Chat for a Schur complement.  For large d the
samples act through averages of Q = T (1 + Gh T)^-1 (18.9): on a direction that no label knows
through E Q, on the few special ones through (18.11).  The Schur complement of that is 1/q + C_e(q),
with an *effective* covariance: of a direction that no label knows a number c_e(q), with

    p(q) = (1/d) tr (1 + q C)^-1 = 1 / (1 + q c_e(q)),

and on the special directions and delta a matrix C_e(q), from which (18.12), (16.9) follow without
differences of nearly equal numbers.  Both are Chat at q = 0, bounded, and smooth in log q.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from solvers.results import Array

NEWTON = 40  # steps at most; a few are usual
SETTLED = 1e-8  # last step of the averages E Q, relative: the error left is its square
# Where F, lam and L stand in the matrix Y of (18.11): rows of x, columns of delta.
PLACES = np.array([[[1, 0], [0, 0]], [[0, 1], [0, 0]], [[0, 0], [1, 0]]], dtype=float)


class Batch(NamedTuple):
    """The sample of one step at M nodes.  Eqs. (18.4)-(18.7), (18.10)

    Attributes
    ----------
    alpha : float
        Samples over input dimension.
    weights : (M,)
    t11, t12 : (M,)
        What a sample adds to the pencil.
    pairs : (M, n, n)
        Weights times the products of (x_1, ..., x_D, phi, F, lam, L), n = D + 4: the projections
        of the input on the D ``directions``, and the sample's weights in the vectors of a row.
    directions : (D, S)
        All that the labels know, in the coordinates of the special directions.
    own : int
        Which special direction is the batch's noise vector.
    g, v : float
        How delta is passed on, and d times the variance of what is added to it.
    """

    alpha: float
    weights: Array
    t11: Array
    t12: Array
    pairs: Array
    directions: Array
    own: int
    g: float
    v: float


def resolvent(batch: Batch, Gh: Array) -> Array:
    """Q = T (1 + Gh T)^-1 at every node, (P, 3, M): Q_11, Q_12 and Q_22, for symmetric Gh
    (P, 2, 2).  Eq. (18.9)"""
    x, y, w = (part[:, None] for part in (Gh[:, 0, 0], Gh[:, 0, 1], Gh[:, 1, 1]))
    a, b = batch.t11, batch.t12
    b2 = b * b
    D = 1 + x * a + 2 * y * b + (y * y - x * w) * b2
    return np.stack([a - w * b2, b + y * b2, -x * b2], axis=1) / D[:, None]


def symmetric(parts: Array) -> Array:
    """(..., 2, 2) from the last axis (11, 12, 22)."""
    return parts[..., [0, 1, 1, 2]].reshape(*parts.shape[:-1], 2, 2)


def pencil(EQ: Array, q: Array) -> tuple[Array, Array]:
    """c_e (P,) and the trace G (P, 2T, 2T) of the inverse, for the averages EQ (P, T, 2, 2) of the
    steps, the last step first.  Eq. (18.9)"""
    P, T = EQ.shape[:2]
    H = np.zeros((P, 2 * T, 2 * T), np.result_type(EQ, q))
    link(H)
    H[:, -1, -1] = -1.0
    for t in range(T):
        H[:, 2 * t : 2 * t + 2, 2 * t : 2 * t + 2] += EQ[:, t]
    inner = np.linalg.inv(H[:, 1:, 1:])
    back = (inner @ H[:, 1:, :1])[..., 0]
    c = H[:, 0, 0] - (H[:, 0, 1:] * back).sum(axis=1)
    g = q / (1 + q * c)
    outer = np.concatenate([np.ones((P, 1)), -back], axis=1)
    G = g[:, None, None] * outer[:, :, None] * outer[:, None]
    G[:, 1:, 1:] += inner
    return c, G


def link(H: Array) -> None:
    """Add 1 next to the diagonal of every matrix."""
    size = H.shape[-1]
    for i in range(size - 1):
        H[..., i, i + 1] += 1.0
        H[..., i + 1, i] += 1.0


def blocks(G: Array) -> Array:
    """The blocks G_ts (P, T, T, 2, 2) of a matrix (P, 2T, 2T)."""
    P, size = G.shape[:2]
    return G.reshape(P, size // 2, 2, size // 2, 2).transpose(0, 1, 3, 2, 4)


def averages(batches: Sequence[Batch], G: Array) -> tuple[Array, Array]:
    """E Q of every step (P, T, 2, 2), and E Q_ij Q_kl (P, T, 2, 2, 2, 2)."""
    mean, square = [], []
    own = blocks(G)
    for t, batch in enumerate(batches):
        Q = resolvent(batch, own[:, t, t] / batch.alpha)
        mean.append(symmetric(Q @ batch.weights))
        product = (Q * batch.weights) @ Q.swapaxes(1, 2)
        square.append(symmetric(symmetric(product).transpose(0, 2, 3, 1)))
    return np.stack(mean, axis=1), np.stack(square, axis=1)


def response(square: Array, G: Array) -> Array:
    """d E Q_t / d x_s = E[Q G_ts dx_s G_st Q] / alpha_t where x_s is added to the pencil of step s,
    (P, 4 T, 4 T), from E Q_ij Q_kl / alpha_t and the blocks of G."""
    P, T = square.shape[:2]
    left = np.einsum("ptijkl,ptsja->ptsikla", square, G)
    return np.einsum("ptsikla,pstbk->ptilsab", left, G).reshape(P, 4 * T, 4 * T)


def bulk(batches: Sequence[Batch], q: Array, start: Array) -> Array:
    """E Q (P, T, 2, 2) at q (P,) by Newton's method from ``start``; NaN where it does not settle.

    ``batches`` have the last step first.  Eq. (18.9)
    """
    P, T = len(q), len(batches)
    x = np.array(start)
    alpha = np.array([batch.alpha for batch in batches])
    done = np.zeros(P, dtype=bool)
    for _ in range(NEWTON):
        _, G = pencil(x, q)
        mean, square = averages(batches, G)
        rest = (mean - x).reshape(P, -1)
        slope = response(square / alpha[:, None, None, None, None], blocks(G))
        step = np.linalg.solve(np.eye(4 * T) - slope, rest[..., None])[..., 0]
        x = x + step.reshape(x.shape)
        done = np.abs(step).max(axis=1) <= SETTLED * np.abs(x).reshape(P, -1).max(axis=1)
        if done.all():
            break
    return np.where(done[:, None, None, None], x, np.nan)


def matrices(parts: Array) -> Array:
    """E Q of T steps (P, T, 2, 2) from their entries (11, 12, 22), (P, 3 T)."""
    return symmetric(parts.reshape(len(parts), -1, 3))


def bulk_residual(
    batches: Sequence[Batch], parts: Array, q: Array
) -> tuple[Array, Array, Array, Array]:
    """Entries of E Q (P, 3 T) less the averages that they imply, and their derivatives in these
    entries and q, (P, 3 T, 3 T + 1); c_e (P,), and its derivatives in the entries (P, 3 T).
    All may be complex.  Eq. (18.9)"""
    P, T = len(q), len(batches)
    c, G = pencil(matrices(parts), q)
    mean, square = averages(batches, G)
    square = square / np.array([batch.alpha for batch in batches])[:, None, None, None, None]
    upper, twice = ([0, 0, 1], [0, 1, 1]), np.array([1.0, 2.0, 1.0])
    # c_e = o^T H o with the pencil H without 1/q, o being the first row of G over G_11
    o = (G[:, 0] / G[:, 0, :1]).reshape(P, T, 2)
    outer = o[..., :, None] * o[..., None, :]
    c_slope = (outer[..., *upper] * twice).reshape(P, -1)
    by_x = response(square, blocks(G)).reshape(P, T, 2, 2, T, 2, 2)
    by_x = ((by_x + by_x.swapaxes(-1, -2)) / 2)[:, :, *upper][..., *upper] * twice
    slope = np.eye(3 * T) - by_x.reshape(P, 3 * T, -1)
    # d G_tt = o_t o_t^T dq / (1 + q c_e)^2
    by_q = np.einsum("ptijkl,ptjk->ptil", square, outer) / ((1 + q * c) ** 2)[:, None, None, None]
    rest = parts - mean[..., *upper].reshape(P, -1)
    by_q = by_q[..., *upper].reshape(P, -1, 1)
    return rest, np.concatenate([slope, by_q], axis=2), c, c_slope


def special(batches: Sequence[Batch], q: Array, EQ: Array, initial_norms: float = 0.0) -> Array:
    """C_e (P, S + 1, S + 1) on the S special directions and delta, at q (P,) with the averages
    E Q of ``bulk``.  Eqs. (18.10)-(18.12)

    ``initial_norms`` is d times the variance of the squared norms that the rows start from.
    """
    P, T, S = len(q), len(batches), batches[0].directions.shape[1]
    own = blocks(pencil(EQ, q)[1])
    H = np.zeros((P, S + 1, S + 1, 2 * T, 2 * T), np.result_type(EQ, q))
    for a in range(S):
        link(H[:, a, a])
        H[:, a, a, -1, -1] = -1.0
    for i in range(1, 2 * T - 1, 2):
        H[:, S, S, i, i + 1] = H[:, S, S, i + 1, i] = 1.0
    for t, batch in enumerate(batches):
        pair = (np.s_[2 * t : 2 * t + 2],) * 2
        H[:, S, S, *pair] += np.array([[batch.v, batch.g], [batch.g, 0.0]])
        for a in range(S):
            H[:, a, a, *pair] += EQ[:, t]
        known, on_delta, delta = with_samples(batch, own[:, t, t] / batch.alpha, EQ[:, t])
        unit = np.eye(S)[batch.own]
        active = np.vstack([batch.directions, unit])  # what the labels know, and what they are
        H[:, :S, :S, *pair] += np.einsum("ia,pijkl,jb->pabkl", active, known, active)
        mixed = np.einsum("ia,pikl->pakl", active, on_delta)
        H[:, :S, S, *pair] += mixed
        H[:, S, :S, *pair] += mixed.swapaxes(-1, -2)
        H[:, S, S, *pair] += delta
    H = H.transpose(0, 3, 1, 4, 2).reshape(P, 2 * T * (S + 1), -1)
    # the last index of delta: rows on a sphere have none
    if initial_norms:
        H[:, -1, -1] -= 1 / initial_norms
    else:
        H = H[:, :-1, :-1]
    first, rest = slice(S + 1), slice(S + 1, None)
    return H[:, first, first] - H[:, first, rest] @ np.linalg.solve(
        H[:, rest, rest], H[:, rest, first]
    )


def with_samples(batch: Batch, Gh: Array, EQ: Array) -> tuple[Array, Array, Array]:
    """What the samples of a batch add to the pencil on the directions (x_1, ..., x_D, e) that its
    labels know, e being its noise vector, beyond E Q: between these (P, D + 1, D + 1, 2, 2), with
    delta (P, D + 1, 2, 2), and on delta (P, 2, 2).  Eqs. (18.10)-(18.11)"""
    D = len(batch.directions)
    n = D + 4
    x, phi, Y = slice(D + 1), D, slice(D + 1, n)  # phi is what e is made of
    columns = batch.pairs.reshape(-1, n * n)
    A = symmetric((resolvent(batch, Gh) @ columns).swapaxes(1, 2))
    A = A.reshape(-1, n, n, 2, 2)  # E w_i w_j Q
    A0 = columns.sum(axis=0).reshape(n, n, 1, 1) * np.eye(2)
    Gij = Gh[:, None, None]
    B = A0 - A @ Gij  # E w_i w_j (1 - Q Gh)
    J = Gij @ B  # E w_i w_j J
    scale = np.ones(D + 1)
    scale[-1] = batch.alpha**-0.5
    known = scale[:, None, None, None] * scale[:, None, None] * A[:, x, x]
    known[:, range(D), range(D)] -= EQ[:, None]
    on_delta = scale[:, None, None] * np.einsum("pakij,kjl->pail", B[:, x, Y], PLACES)
    delta = -np.einsum("kji,pkmjl,mln->pin", PLACES, J[:, Y, Y], PLACES)
    if (
        np.isfinite(batch.alpha) and A0[phi, phi].any()
    ):  # given e, the samples are orthogonal to phi
        X = scale[:, None, None] * A[:, x, phi] @ Gh[:, None]
        phi_J_Y = np.einsum("pkij,kjl->pil", J[:, phi, Y], PLACES)
        D_phi_J_Y = np.linalg.solve(J[:, phi, phi], phi_J_Y)
        D_X = np.linalg.solve(J[:, None, phi, phi], X.swapaxes(-1, -2))
        known = known + X[:, :, None] @ D_X[:, None]
        on_delta = on_delta + X @ D_phi_J_Y[:, None]
        delta = delta + phi_J_Y.swapaxes(-1, -2) @ D_phi_J_Y
    return known, on_delta, delta


def without_norms(batch: Batch) -> Array:
    """The pairs of a batch that does not see the norms of the rows."""
    pairs = batch.pairs.copy()
    D = len(batch.directions)
    pairs[:, D + 1 :], pairs[:, :, D + 1 :] = 0.0, 0.0
    return pairs
