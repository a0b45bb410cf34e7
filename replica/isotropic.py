"""The bulk of one group of neurons: isotropic rows, so a Marchenko-Pastur resolvent.

Solves (4.1)-(4.4) at A = 1 for V1, V2 and answers linear response (4.9), through THEORY 5.
Arrays run over P points (alpha, lambda).

Damped iteration of V -> (4.2) -> (5.3) is tried first; points where it contracts slowly
go to Newton.  There, the two sides of (4.3)-(4.4) would cancel to the last digits near the
interpolation thresholds alpha = beta and alpha = 1, so the equations are used in two
equivalent forms without differences of nearly equal numbers.  Adding up (4.4),
lambda V2 + Vh2 V2 + Vh1 V1 = 1 and V1 / (c V2) = 1 - beta Vh1 V1; with (4.2),

    lambda V2   = (1 - alpha/beta) + (alpha/beta) E[1 / (1 + V)]                 (i)
    V1 / (c V2) = (1 - alpha) + alpha E[(1 + mu_2^2 V2) / (1 + V)]               (ii)

(i) decreases in V1 and V2; (ii) falls in V1 and rises in V2: the Jacobian is never
singular and the solution is unique.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.fixed_point import fixed_point
from solvers.marchenko_pastur import resolvent_averages
from solvers.newton import newton
from solvers.results import Array, Result, Status

from .equivalence import Table

PATIENCE = 8  # iterations that cost as much as Newton's


class Bulk(NamedTuple):
    """What (4.1)-(4.4) need of a table: ``moments`` (2, N) are mu_1^2 and mu_2^2."""

    moments: Array
    weights: Array
    c: float
    beta: float


def bulk(table: Table) -> Bulk:
    """The one group of ``table``."""
    moments = np.stack([table.mu1[0] ** 2, table.mu2sq[0]])
    return Bulk(moments, table.weights, float(table.c[0]), table.beta)


def resistance(b: Bulk, V: Array) -> Array:
    """1 / (1 + V(kappa)), shape (P, N), with V = mu_1^2 V1 + mu_2^2 V2.  Eq. (4.1)"""
    total = V @ b.moments
    total += 1
    return np.asarray(np.reciprocal(total, out=total))


def conjugates(b: Bulk, V: Array, alpha: Array) -> Array:
    """(Vh1, Vh2), shape (P, 2).  Eq. (4.2)"""
    averages = resistance(b, V) @ (b.weights * b.moments).T
    return np.asarray(alpha[:, None] / b.beta * averages)


def overlaps(b: Bulk, V_hat: Array, lam: Array) -> Array:
    """(V1, V2), shape (P, 2), from their conjugates.  Eqs. (4.3)-(4.4) through (5.3)"""
    averages = resolvent_averages(lam + V_hat[:, 1], V_hat[:, 0], b.c, b.beta)
    return np.stack([averages.weighted, averages.inverse], axis=1)


def solve(b: Bulk, alpha: Array, lam: Array, tol: float, start: Array | None = None) -> Result:
    """V = (V1, V2) at every point: ``Result.value`` has shape (P, 2).  Eqs. (4.1)-(4.4)

    ``start`` (P, 2) is a guess.  ``Result.residual`` is the relative residual of the
    undamped (4.1)-(4.4).
    """

    def step(V: Array, rows: NDArray[np.int64]) -> Array:
        return overlaps(b, conjugates(b, V, alpha[rows]), lam[rows])

    if start is None:
        start = overlaps(b, conjugates(b, np.ones((len(alpha), 2)), alpha), lam)
    first = fixed_point(step, start, tol=tol, patience=PATIENCE)
    slow = np.flatnonzero(first.status != Status.CONVERGED)
    if slow.size == 0:
        return first
    second = newton(
        lambda V, rows: balance(b, V, alpha[slow[rows]], lam[slow[rows]]),
        first.value[slow],
        tol=max(tol, 1e-13),
    )
    value, residual = first.value.copy(), first.residual.copy()
    iterations, status = first.iterations.copy(), first.status.copy()
    value[slow], status[slow] = second.value, second.status
    iterations[slow] += second.iterations
    residual[slow] = np.abs(step(second.value, slow) / second.value - 1).max(axis=1)
    return Result(value, residual, iterations, status)


def balance(b: Bulk, V: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
    """Log-residuals (P, 2) of (i), (ii) and their derivatives in log V (P, 2, 2)."""
    left, right, d_left, d_right = _sides(b, V, alpha, lam)
    residual = np.log(left) - np.log(right)
    return residual, d_left / left[..., None] - d_right / right[..., None]


def respond(b: Bulk, V: Array, alpha: Array, lam: Array, X: Array) -> Array:
    """(Q1, q2) for sources X = (X1, X2) that do not contain Q: all of shape (P, 2).

    (4.9) with the part of (4.8) linear in Q moved to the left, i.e. minus the derivative of
    the solution of (4.1)-(4.4) under Vh -> Vh + s X.  In (i) that adds s X.V, in (ii)
    s beta X1 V1, to the left side.
    """
    _, _, d_left, d_right = _sides(b, V, alpha, lam)
    source = np.stack([(X * V).sum(axis=1), b.beta * X[:, 0] * V[:, 0]], axis=1)
    relative = np.linalg.solve(d_left - d_right, source[..., None])[..., 0]
    return np.asarray(relative * V)


def response(b: Bulk, V_hat: Array, lam: Array, X: Array) -> Array:
    """(Q1, q2) for sources X at fixed conjugates, all of shape (P, 2).  Eqs. (4.9), (5.3)"""
    r = resolvent_averages(lam + V_hat[:, 1], V_hat[:, 0], b.c, b.beta)
    X1, X2 = X.T
    return np.stack([r.weighted2 * X1 + r.mixed * X2, r.mixed * X1 + r.inverse2 * X2], axis=1)


def _sides(b: Bulk, V: Array, alpha: Array, lam: Array) -> tuple[Array, Array, Array, Array]:
    """The two sides of (i), (ii), (P, 2) each, and their derivatives in log V, (P, 2, 2).

    A negative constant is moved to the other side, so that all four are positive.
    """
    w, (m1, m2) = b.weights, b.moments
    V1, V2 = V[:, 0], V[:, 1]
    W = resistance(b, V)
    # E[{1, m2} W], then E[{m1, m2, m1 m2} W^2].
    E, E2 = (W @ (w[:, None] * np.stack([np.ones_like(w), m2], axis=1))).T
    np.multiply(W, W, out=W)
    F1, F2, F12 = (W @ (w[:, None] * np.stack([m1, m2, m1 * m2], axis=1))).T
    ratio, quotient = alpha / b.beta, V1 / (b.c * V2)
    left, right = np.empty((2, len(V), 2))
    left[:, 0] = lam * V2 + np.maximum(ratio - 1, 0)
    left[:, 1] = quotient + np.maximum(alpha - 1, 0)
    right[:, 0] = np.maximum(1 - ratio, 0) + ratio * E
    right[:, 1] = np.maximum(1 - alpha, 0) + alpha * (E + V2 * E2)
    d_left, d_right = np.zeros((2, len(V), 2, 2))
    d_left[:, 0, 1] = lam * V2
    d_left[:, 1, 0], d_left[:, 1, 1] = quotient, -quotient
    d_right[:, 0, 0], d_right[:, 0, 1] = -ratio * V1 * F1, -ratio * V2 * F2
    # (1 + m2 V2) / (1 + V) = 1 - m1 V1 / (1 + V)
    d_right[:, 1, 0] = -alpha * V1 * (F1 + V2 * F12)
    d_right[:, 1, 1] = alpha * V1 * V2 * F12
    return left, right, d_left, d_right
