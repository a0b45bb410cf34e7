"""Residual of a solution in the equations of ridge regression.  docs/theory.md 4"""

import numpy as np

from solvers.results import Array

from ..equivalence import Table
from .overlaps import Conjugates, Overlaps
from .ridge import Points, responses_of, solve_points, sources
from .rows import TabulatedRows

# Errors are sums that may cancel, and theta, chi and psi may vanish.  A change of an error is
# relative to at least this share of the error without a readout, a change of an overlap to at least
# this share of an overlap that makes the output as large as the target.
SMALLEST_ERROR, SMALLEST_OVERLAP = 1e-4, 1e-4


def solve_and_check(
    fine: Table, coarse: Table, alpha: Array, lam: Array, start: Overlaps | None = None
) -> tuple[Points, Array]:
    """Solutions on the table ``fine``, with their residual, and their quadrature error (P,).

    The quadrature error is the residual on ``coarse``, or the error of a network's tabulated rows
    if that is larger.
    """
    points = solve_points(fine, alpha, lam, start)
    with np.errstate(all="ignore"):  # points that are not finite are flagged
        on_fine, error = (residual(table, alpha, lam, points) for table in (fine, coarse))
    if isinstance(fine.covariance, TabulatedRows):
        q = fine.beta * points.overlaps.V2[:, 0] * points.conjugates.V1[:, 0, 0]
        error = np.maximum(error, fine.covariance.error(q))
    return points._replace(residual=on_fine), error


def residual(table: Table, alpha: Array, lam: Array, points: Points) -> Array:
    """Largest relative violation of the original equations on ``table`` by ``points``, (P,).

    Every unknown is recomputed from its own equation of (4.1)-(4.11), with all others as in
    ``points``, and compared relatively.  On the table on which the points were solved this is the
    residual; on a coarser one it estimates the quadrature error of that table.
    """
    responses, o, conjugates = responses_of(table), points.overlaps, points.conjugates
    V, psi_psi = responses.pack(o.V1, o.V2), o.psi @ o.psi.swapaxes(1, 2)
    R = responses.shrinkage(V)  # Eq. (4.1)
    V_hat = responses.conjugates_from(R, alpha)  # Eq. (4.2)
    susceptibility = responses.susceptibility(V, V_hat, alpha)
    # overlaps follow from the given conjugates: recomputed ones have large rounding errors
    new_special = susceptibility.overlaps(conjugates.special)  # Eqs. (4.5), (4.6)
    from_signal = responses.signal_sources(V, susceptibility, alpha, conjugates.special)
    special = np.concatenate([o.theta, o.psi], axis=2).reshape(len(alpha), -1)
    gap = np.concatenate([o.m, special], axis=1) @ table.regressors  # Eq. (4.5)
    gap = (gap - table.target_parts).reshape(len(alpha), -1, table.weights.size)
    error = np.einsum("pln,pln->pn", gap, gap) + (table.unexplained + table.noise)  # Eq. (4.7)
    error += responses.at_nodes(responses.pack(o.Q1 - psi_psi, o.q2))
    R2 = R * R
    square = R2 * error
    X1, X2 = sources(responses, square, alpha, conjugates.m, from_signal.X2)  # Eq. (4.8)
    X = responses.pack(X1, X2)
    Q1, q2 = responses.unpack(responses.second_moments_at(V_hat, lam, X, V))  # Eq. (4.9)
    Q = responses.pack(Q1 + from_signal.Q1 + psi_psi, q2)
    # values, references and floors of relative changes, (P, k) each
    changes = [*_signal_changes(table, R, gap, new_special, special, o.m, conjugates)]
    given = (conjugates.V1, conjugates.V2), (conjugates.X1, conjugates.X2), (o.Q1, o.q2)
    for value, pair in zip((V_hat, X, Q), given, strict=True):
        reference = responses.pack(*pair)
        changes.append((value, reference, responses.magnitude(reference)))
    power = table.weights * (table.power + table.noise)
    no_readout = np.full(len(alpha), power.sum()), R2 @ power
    new_errors = error @ table.weights - table.noise, square @ table.weights  # Eq. (4.11)
    for new, old, scale in zip(new_errors, points.errors, no_readout, strict=True):
        changes.append((new[:, None], old[:, None], SMALLEST_ERROR * scale[:, None]))
    values, references, floors = zip(*changes, strict=True)
    # for V: near a threshold one pass of (4.3)-(4.4) hardly moves it, unlike Newton's step
    distance = responses.newton_distance(V, alpha, lam)
    value, reference = np.concatenate(values, axis=1), np.concatenate(references, axis=1)
    change = relative_change(value, reference, np.concatenate(floors, axis=1))
    return np.asarray(np.abs(np.concatenate([change, distance], axis=1)).max(axis=1))


def relative_change(value: Array, reference: Array | float, floor: Array | float = 0.0) -> Array:
    """|value - reference| over |reference|, or over ``floor`` where that is larger; 0/0 is 0."""
    scale = np.maximum(np.abs(reference), floor)
    return np.asarray(np.abs(value - reference) / np.where(scale > 0, scale, 1.0))


def _signal_changes(
    table: Table,
    R: Array,
    gap: Array,
    new_special: Array,
    special: Array,
    m: Array,
    conjugates: Conjugates,
) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    """Changes that the signal's equations (4.5), (4.6) would make, as values, references and floors
    for ``relative_change``: of the conjugates of m and of the overlaps, then of the overlaps.

    A conjugate is compared with a term of the target's size.  An overlap is compared with no less
    than SMALLEST_OVERLAP times an overlap whose output has the target's size.
    """
    P, count = len(R), len(table.offsets)
    norms = np.sqrt(R @ table.weighted_powers.T)
    norms, power = norms[:, :-1], norms[:, -1:]
    moments = (R[:, None] * gap).reshape(P, -1) @ table.weighted_regressors.T
    given = np.concatenate([conjugates.m, conjugates.special.reshape(P, -1)], axis=1)
    # terms m mu_0 cancel where mu_0 are nearly dependent: the floor is their rounding over 1e-10
    term_sizes = np.vecdot(np.abs(m), norms[:, :count])[:, None]
    floor = norms * np.maximum(power, 1e-6 * term_sizes)
    floor_of_overlaps = SMALLEST_OVERLAP * power / norms[:, count:]  # infinite for a loading of 0
    overlaps = new_special.reshape(P, -1), special, floor_of_overlaps
    return (moments + given, np.zeros_like(given), floor), overlaps
