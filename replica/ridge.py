"""Ridge regression on the features: the saddle point and its errors.  THEORY 4.

The responses (V1, V2) solve (4.1)-(4.4), which ``isotropic`` does; everything else is
linear algebra, written here for any number of groups A, spikes K and remaining target
directions K'.  Arrays run over P points (alpha, lambda), then nodes N; W_j below is the
quadrature weight times 1/(1 + V), so that W @ f is E[f / (1 + V)] at every point.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array

from . import isotropic
from .equivalence import Table
from .overlaps import Conjugates, Errors, Overlaps

TOLERANCE = 1e-13


class Points(NamedTuple):
    """Solutions at P points, with the solver's account of (4.1)-(4.4)."""

    overlaps: Overlaps
    conjugates: Conjugates
    errors: Errors
    residual: Array
    iterations: NDArray[np.int64]
    status: NDArray[np.object_]


def solve_points(
    table: Table, alpha: Array, lam: Array, start: Overlaps | None = None, tol: float = TOLERANCE
) -> Points:
    """Overlaps and errors at the points (alpha, lam), arrays of shape (P,).

    ``start`` holds guesses, such as the overlaps on another table.  Rows that did not
    converge hold whatever the solver left; callers mask them.
    """
    bulk = isotropic.bulk(table)
    guess = None if start is None else packed(start.V1, start.V2)
    result = isotropic.solve(bulk, alpha, lam, tol, guess)
    V = result.value
    V_hat = isotropic.conjugates(bulk, V, alpha)
    V1, V2 = V[:, :1, None], V[:, 1:]

    shape = len(table.mu1), len(table.g)
    R = isotropic.resistance(bulk, V)
    W = R * table.weights
    m, theta, theta_hat = spikes(table, W, alpha, V2)
    p_hat = (W @ table.slope_target.T).reshape(-1, *shape)
    psi = alpha[:, None, None] * (V1 @ p_hat)  # Eq. (4.6)

    error0 = conditional_error(table, m, theta, psi)
    W *= R
    X = sources(table, W * error0, alpha, theta_hat, p_hat)
    Q = isotropic.respond(bulk, V, alpha, lam, packed(*X))
    X1, X2 = sources(table, W * (error0 + Q @ bulk.moments), alpha, theta_hat, p_hat)
    # (4.9) once more as it stands: a q2 much smaller than V2 is lost in the joint system.
    Q = isotropic.response(bulk, V_hat, lam, packed(X1, X2))
    error = error0
    error += Q @ bulk.moments  # Eq. (4.7)

    overlaps = Overlaps(V1, V2, m, theta, psi, Q[:, :1, None], Q[:, 1:])
    hats = Conjugates(V_hat[:, :1, None], V_hat[:, 1:], theta_hat, p_hat, X1, X2)
    # Eq. (4.11)
    errors = Errors(error @ table.weights - table.noise, np.einsum("pn,pn->p", W, error))
    return Points(overlaps, hats, errors, result.residual, result.iterations, result.status)


def packed(first: Array, second: Array) -> Array:
    """(P, 1, 1) and (P, 1) as the pair (P, 2) of the one-group bulk."""
    return np.concatenate([first[:, 0], second], axis=1)


def spikes(table: Table, W: Array, alpha: Array, V2: Array) -> tuple[Array, Array, Array]:
    """m (P, A), theta and theta_hat (P, A, K): the normal equations of h on C.  Eq. (4.5)

    m is free; theta is held back by theta_hat = theta / (alpha c V2).  Where the mu_0 are
    zero or dependent, the least-norm solution is taken.
    """
    A, K = len(table.mu0), len(table.kappa)
    gram, moment = normal_equations(table, W)
    size = len(table.regressors)
    stiffness = np.repeat(1 / (alpha[:, None] * table.c * V2), K, axis=1)  # (P, A K)
    diagonal = np.arange(A, size)
    gram[:, diagonal, diagonal] += stiffness
    solution = least_norm(gram, moment)
    theta = solution[:, A:]
    theta_hat = stiffness * theta
    return solution[:, :A], theta.reshape(-1, A, K), theta_hat.reshape(-1, A, K)


def normal_equations(table: Table, W: Array) -> tuple[Array, Array]:
    """E[F F' / (1 + V)] (P, n, n) and E[F h / (1 + V)] (P, n) of the n regressors F."""
    size = len(table.regressors)
    gram = (W @ table.regressor_pairs).reshape(-1, size, size)
    return gram, W @ (table.regressors * table.h).T


def least_norm(gram: Array, moment: Array) -> Array:
    """Least-norm solutions of positive semidefinite systems (P, n, n), scaled to unit diagonal."""
    scale = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))
    scale = np.where(scale > 0, scale, 1.0)
    scaled = gram / (scale[:, :, None] * scale[:, None, :])
    target = (moment / scale)[..., None]
    inverse = np.linalg.pinv(scaled, rcond=1e-15, hermitian=True)
    solution = inverse @ target
    solution += inverse @ (target - scaled @ solution)  # one refinement: residual to rounding
    return np.asarray(solution[..., 0] / scale)


def conditional_error(table: Table, m: Array, theta: Array, psi: Array) -> Array:
    """epsilon(kappa), (P, N), without its terms in Q1 and q2.  Eq. (4.7)"""
    P = len(m)
    minus = np.full((P, 1), -1.0)
    square = np.concatenate([m, theta.reshape(P, -1), minus], axis=1)  # C - h
    error = square @ np.vstack([table.regressors, table.h])
    np.multiply(error, error, out=error)
    rest = np.concatenate([-2 * psi.reshape(P, -1), -minus], axis=1)
    error += rest @ np.vstack([table.slope_target, table.spread + table.noise])
    return error


def sources(
    table: Table, weighted: Array, alpha: Array, theta_hat: Array, p_hat: Array
) -> tuple[Array, Array]:
    """X1 (P, A, A) and X2 (P, A) from ``weighted`` = weights epsilon / (1 + V)^2.  Eq. (4.8)"""
    A = len(table.mu1)
    ratio = alpha / table.beta
    X1 = ratio[:, None, None] * (weighted @ table.slope_pairs).reshape(-1, A, A)
    X2 = ratio[:, None] * (weighted @ table.mu2sq.T)
    X1 += (alpha * ratio)[:, None, None] * (p_hat @ p_hat.transpose(0, 2, 1))
    X2 += (alpha * ratio)[:, None] * table.c * (theta_hat**2).sum(axis=2)
    return X1, X2


def mismatch(table: Table, alpha: Array, lam: Array, points: Points) -> Array:
    """How far ``points`` are from solving the original equations on ``table``, (P,).

    Every unknown is recomputed from its own equation (4.2)-(4.11), the rest being as in
    ``points``, and compared relatively.  On the table the points were solved with, this is
    the residual; on a coarser one, it estimates that table's quadrature error.
    """
    bulk = isotropic.bulk(table)
    o, hats = points.overlaps, points.conjugates
    V, Q = packed(o.V1, o.V2), packed(o.Q1, o.q2)
    shape = len(table.mu1), len(table.g)
    R = isotropic.resistance(bulk, V)
    W = R * table.weights
    V_hat = isotropic.conjugates(bulk, V, alpha)
    # Eq. (4.5): one stationarity condition for each regressor, against the size of its terms.
    gram, moment = normal_equations(table, W)
    readout = np.concatenate([o.m, o.theta.reshape(len(V), -1)], axis=1)
    pull = moment - (gram @ readout[..., None])[..., 0]
    pull[:, len(table.mu0) :] -= hats.theta.reshape(len(V), -1)
    target = (W @ table.power)[:, None]
    size = np.sqrt(np.diagonal(gram, axis1=1, axis2=2) * target)
    p_hat = (W @ table.slope_target.T).reshape(-1, *shape)
    p_size = np.sqrt((W @ (table.mu1**2).T) * target)[..., None]
    error = conditional_error(table, o.m, o.theta, o.psi)
    error += Q @ bulk.moments
    W *= R
    W *= error
    X = sources(table, W, alpha, hats.theta, hats.p)
    Q_again = isotropic.response(bulk, V_hat, lam, packed(*X))
    errors = np.stack([error @ table.weights - table.noise, W.sum(axis=1)], axis=1)
    scale = 1e-4 * (table.weights @ table.power + table.noise)
    parts = [
        relative(isotropic.overlaps(bulk, V_hat, lam), V),
        relative(pull, 0, size),
        relative(p_hat, hats.p, p_size),
        relative(Q_again, Q),
        relative(errors, np.stack(points.errors, axis=1), scale),
    ]
    return np.max([part.reshape(len(V), -1).max(axis=1) for part in parts], axis=0)


def relative(value: Array, reference: Array | float, floor: Array | float = 0.0) -> Array:
    """|value - reference| over |reference|, or over ``floor`` where that is larger; 0/0 is 0."""
    scale = np.maximum(np.abs(reference), floor)
    return np.asarray(np.abs(value - reference) / np.where(scale > 0, scale, 1.0))
