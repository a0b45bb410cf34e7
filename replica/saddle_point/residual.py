"""Residual of a solution in the equations of ridge regression.  docs/theory.md 4"""

from functools import partial

import numpy as np

from solvers.results import Array, largest_modulus

from ..equivalence import Table
from .local_field import Field, Scores, ridge_errors, ridge_scores
from .one_group import SMALLEST_ERROR, SMALLEST_OVERLAP
from .overlaps import Conjugates, Overlaps
from .responses import Susceptibility
from .ridge import Points, responses_of, solve_compiled, solve_general
from .rows import TabulatedRows
from .signal import Signal
from .sweep import sweep


def solve_and_check(
    fine: Table, coarse: Table, alpha: Array, lam: Array, start: Overlaps | None = None
) -> tuple[Points, Array]:
    """Solutions on the table ``fine``, with their residual, and their quadrature error (P,).

    The quadrature error is the residual on ``coarse``, or the error of a network's tabulated rows
    if that is larger.
    """
    found = solve_compiled(fine, coarse, alpha, lam)
    if found is None:
        found = with_residuals(solve_general(fine, alpha, lam, start), fine, coarse, alpha, lam)
    points, error = found
    if isinstance(fine.covariance, TabulatedRows):
        q = fine.beta * points.overlaps.V2[:, 0] * points.conjugates.V1[:, 0, 0]
        error = np.maximum(error, fine.covariance.error(q))
    return points, error


def with_residuals(
    points: Points, fine: Table, coarse: Table, alpha: Array, lam: Array
) -> tuple[Points, Array]:
    """The ``points`` with their residual on ``fine`` set, and their residual on ``coarse``."""
    residual_on_fine, error = (residual(table, alpha, lam, points) for table in (fine, coarse))
    return points._replace(residual=residual_on_fine), error


def residual(table: Table, alpha: Array, lam: Array, points: Points) -> Array:
    """Largest relative violation of the original equations on ``table`` by ``points``, (P,).

    Every unknown is recomputed from its own equation of (4.1)-(4.11), with all others as in
    ``points``, and compared relatively.  On the table on which the points were solved this is the
    residual; on a coarser one it estimates the quadrature error of that table.
    """
    responses, o, conjugates = responses_of(table), points.overlaps, points.conjugates

    def signal(_: Scores, __: Field, ___: Array, M: Susceptibility) -> Signal:
        # overlaps follow from the given conjugates: recomputed ones have large rounding errors
        return Signal(o.m, M.overlaps(conjugates.special), conjugates.m, conjugates.special)

    score = partial(ridge_scores, table)
    new_overlaps, new_conjugates, s = sweep(responses, alpha, lam, o, score, signal)
    changes = _signal_changes(table, s, new_overlaps, o, conjugates)
    for new, old in ((new_overlaps, o), (new_conjugates, conjugates)):
        for pair in (slice(2), slice(-2, None)):  # (V1, V2) and (Q1, q2), or their conjugates
            after, before = responses.pack(*new[pair]), responses.pack(*old[pair])
            changes.append(relative_change(after, before, responses.magnitude(before)))
    power = table.power + table.noise
    no_readout = table.weights @ power, (s.slope**2 * table.weights) @ power
    for error, given, scale in zip(ridge_errors(table, s), points.errors, no_readout, strict=True):
        changes.append(relative_change(error, given, SMALLEST_ERROR * scale))
    # near a threshold (4.3)-(4.4) hardly move V: Newton's step is the distance to the solution
    changes.append(np.abs(responses.newton_distance(responses.pack(o.V1, o.V2), alpha, lam)))
    return np.max([largest_modulus(change.reshape(len(alpha), -1)) for change in changes], axis=0)


def relative_change(value: Array, reference: Array | float, floor: Array | float = 0.0) -> Array:
    """|value - reference| over |reference|, or over ``floor`` where that is larger; 0/0 is 0."""
    scale = np.maximum(np.abs(reference), floor)
    return np.asarray(np.abs(value - reference) / np.where(scale > 0, scale, 1.0))


def _signal_changes(
    table: Table, s: Scores, new_overlaps: Overlaps, o: Overlaps, conjugates: Conjugates
) -> list[Array]:
    """Relative changes of the overlaps with special directions, and of the conjugates of these and
    of m.  Eqs. (4.5), (4.6)

    A conjugate is compared with no less than a term of the target's size.  An overlap is compared
    with no less than SMALLEST_OVERLAP times an overlap whose output has the target's size.
    """
    P, W = len(s.mean), s.slope * table.weights
    power = (W @ table.power)[:, None]
    regressor_norms = np.sqrt(table.per_part(W) @ (table.regressors**2).T)
    moments = (s.flat * table.per_part(table.weights)) @ table.regressors.T
    given_conjugates = np.concatenate([conjugates.m, conjugates.special.reshape(P, -1)], axis=1)
    term_sizes = np.vecdot(np.abs(o.m), regressor_norms[:, : len(table.offsets)])[:, None]
    size = regressor_norms * np.sqrt(power)
    # terms m mu_0 cancel where mu_0 are nearly dependent: the floor is their rounding over 1e-10
    floor = np.maximum(size, 1e-6 * regressor_norms * term_sizes)
    with np.errstate(divide="ignore", invalid="ignore"):  # a loading of 0 has no unit
        unit = (power / size)[:, len(table.offsets) :].reshape(conjugates.special.shape)
    return [
        relative_change(moments - given_conjugates, 0, floor),
        relative_change(new_overlaps.special, o.special, SMALLEST_OVERLAP * unit),
    ]
