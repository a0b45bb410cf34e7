"""How far a solution is from solving the equations of ridge regression.  docs/theory.md 4"""

import numpy as np

from solvers.linear import solve_rows
from solvers.results import Array, largest

from ..equivalence import Table
from .overlaps import Overlaps
from .responses import Responses
from .ridge import (
    Points,
    compiled_points,
    conditional_error,
    responses_of,
    solve_points,
    sources,
)
from .rows import TabulatedRows

# Of the target's power: an error of a point is a sum that may cancel, and is compared with no less
# than that part of the terms it is a sum of.
SMALLEST_ERROR = 1e-4


def solve_and_check(
    fine: Table, coarse: Table, alpha: Array, lam: Array, start: Overlaps | None = None
) -> tuple[Points, Array]:
    """The points on the table ``fine``, with their residual there in them, and their residual on
    ``coarse``, (P,): the quadrature error, which that of a network's tabulated rows is one of."""
    if fine.one_group is not None:
        points, error = compiled_points(fine, coarse, alpha, lam)
    else:
        points, error = check(solve_points(fine, alpha, lam, start), fine, coarse, alpha, lam)
    if isinstance(fine.covariance, TabulatedRows) and not fine.covariance.tangent:
        q = fine.beta * points.overlaps.V2[:, 0] * points.conjugates.V1[:, 0, 0]
        error = np.maximum(error, fine.covariance.error(q))
    return points, error


def check(
    points: Points, fine: Table, coarse: Table, alpha: Array, lam: Array
) -> tuple[Points, Array]:
    """``points`` with their residual on ``fine`` in them, and their residual on ``coarse``."""
    own, error = (residual(table, alpha, lam, points) for table in (fine, coarse))
    return points._replace(residual=own), error


def residual(table: Table, alpha: Array, lam: Array, points: Points) -> Array:
    """How far ``points`` are from solving the original equations on ``table``, (P,).

    Every unknown is recomputed from its own equation of (4.1)-(4.11), the rest being as in
    ``points``, and compared relatively.  On the table that the points were solved on, this is
    the residual; on a coarser one, it estimates that table's quadrature error.
    """
    responses, overlaps = responses_of(table), points.overlaps
    V = responses.pack(overlaps.V1, overlaps.V2)
    R = responses.shrinkage(V)  # Eq. (4.1)
    W = R * table.weights
    V_hat = responses.conjugates_from(R, alpha)  # Eq. (4.2)
    log_residual, slope = responses.log_residual(V, alpha, lam)
    V_again = responses.from_conjugates(V_hat, lam, V)  # Eqs. (4.3)-(4.4)
    parts = [
        relative_change(V_again, V, responses.magnitude(V)),
        # near a threshold that map hardly moves V: Newton's step is the distance left
        np.abs(solve_rows(slope, log_residual)),
        *_of_signal(table, points, W),
        *_of_errors(responses, alpha, lam, points, W * R, V_hat),
    ]
    return np.max([largest(part.reshape(len(V), -1)) for part in parts], axis=0)


def relative_change(value: Array, reference: Array | float, floor: Array | float = 0.0) -> Array:
    """|value - reference| over |reference|, or over ``floor`` where that is larger; 0/0 is 0."""
    scale = np.maximum(np.abs(reference), floor)
    return np.asarray(np.abs(value - reference) / np.where(scale > 0, scale, 1.0))


def _of_signal(table: Table, points: Points, W: Array) -> tuple[Array, Array]:
    """Residuals of Eq. (4.5), (P, n) for n regressors, and of p_hat of Eq. (4.6), (P, A, K'), given
    the quadrature weights times 1 / (1 + V), ``W`` (P, N)."""
    overlaps, conjugates = points.overlaps, points.conjugates
    P = len(W)
    # Eq. (4.5): one stationarity condition for each regressor, against the size of its terms
    readout = np.concatenate([overlaps.m, overlaps.theta.reshape(P, -1)], axis=1)
    # large m of nearly dependent mu_0 cancel in the outputs, before averages can round them
    unbalanced = (W * (table.h - readout @ table.regressors)) @ table.regressors.T
    unbalanced -= np.concatenate([conjugates.m, conjugates.theta.reshape(P, -1)], axis=1)
    power = (W @ table.power)[:, None]
    size = np.sqrt((W @ (table.regressors**2).T) * power)
    p_hat = (W @ table.slope_target.T).reshape(conjugates.p.shape)  # Eq. (4.6)
    p_size = np.sqrt((W @ (table.mu1**2).T) * power)[..., None]
    return relative_change(unbalanced, 0, size), relative_change(p_hat, conjugates.p, p_size)


def _of_errors(
    responses: Responses,
    alpha: Array,
    lam: Array,
    points: Points,
    W: Array,
    V_hat: Array,
) -> tuple[Array, Array]:
    """Changes of (Q1, q2), packed (P, D), by (4.7)-(4.9), and of the errors (P, 2) by (4.11), given
    the quadrature weights times 1 / (1 + V)^2, ``W`` (P, N), and V_hat (P, D)."""
    table, overlaps, conjugates = responses.table, points.overlaps, points.conjugates
    V = responses.pack(overlaps.V1, overlaps.V2)
    signal = responses.signal_sources(V, V_hat, alpha, conjugates.theta, conjugates.p)
    Q = responses.pack(overlaps.Q1, overlaps.q2)
    error = conditional_error(table, overlaps.m, overlaps.theta, overlaps.psi)
    error += Q @ responses.coefficients  # Eq. (4.7)
    power = table.power + table.noise
    floor = SMALLEST_ERROR * np.stack([np.full(len(V), table.weights @ power), W @ power], axis=1)
    weighted = W * error
    X = sources(table, weighted, alpha, conjugates.m, signal)  # Eq. (4.8)
    Q_again = responses.second_moments_at(V_hat, lam, responses.pack(*X))  # Eq. (4.9)
    Q_again += responses.pack(signal.Q1, np.zeros_like(overlaps.q2))
    errors = np.stack(
        [error @ table.weights - table.noise, weighted.sum(axis=1)], axis=1
    )  # Eq. (4.11)
    return (
        relative_change(Q_again, Q, responses.magnitude(Q)),
        relative_change(errors, np.stack(points.errors, axis=1), floor),
    )
