"""How far a solution is from solving the equations of ridge regression.  docs/theory.md 4"""

from functools import partial

import numpy as np

from solvers.results import Array, largest_modulus

from ..equivalence import Table
from .local_field import Field, Scores, errors_of_ridge, scores_of_ridge
from .one_group import SMALLEST_ERROR, SMALLEST_OVERLAP
from .overlaps import Conjugates, Overlaps
from .responses import Susceptibility
from .ridge import Points, compiled_points, general_points, responses_of
from .rows import TabulatedRows
from .signal import Signal
from .sweep import sweep


def solve_and_check(
    fine: Table, coarse: Table, alpha: Array, lam: Array, start: Overlaps | None = None
) -> tuple[Points, Array]:
    """The points on the table ``fine``, with their residual there in them, and their residual on
    ``coarse``, (P,): the quadrature error, which that of a network's tabulated rows is one of."""
    found = compiled_points(fine, coarse, alpha, lam)
    if found is None:
        found = check(general_points(fine, alpha, lam, start), fine, coarse, alpha, lam)
    points, error = found
    if isinstance(fine.covariance, TabulatedRows):
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
    responses, o, hats = responses_of(table), points.overlaps, points.conjugates

    def signal(_: Scores, __: Field, ___: Array, M: Susceptibility) -> Signal:
        # conjugates are what samples, each by a large sum, leave: overlaps are of those kept
        return Signal(o.m, M.answer(hats.special), hats.m, hats.special)

    score = partial(scores_of_ridge, table)
    again, hats_again, s = sweep(responses, alpha, lam, o, score, signal)
    changes = _of_signal(table, s, again, o, hats)
    for all_after, all_before in ((again, o), (hats_again, hats)):
        for part in (slice(2), slice(-2, None)):  # (V1, V2) and (Q1, q2), or their conjugates
            after, before = responses.pack(*all_after[part]), responses.pack(*all_before[part])
            changes.append(relative_change(after, before, responses.magnitude(before)))
    power = table.power + table.noise
    of_no_readout = table.weights @ power, (s.slope**2 * table.weights) @ power
    for new, old, most in zip(errors_of_ridge(table, s), points.errors, of_no_readout, strict=True):
        changes.append(relative_change(new, old, SMALLEST_ERROR * most))
    # near a threshold (4.3)-(4.4) hardly move V: Newton's step is the distance left
    changes.append(np.abs(responses.distance(responses.pack(o.V1, o.V2), alpha, lam)))
    return np.max([largest_modulus(change.reshape(len(alpha), -1)) for change in changes], axis=0)


def relative_change(value: Array, reference: Array | float, floor: Array | float = 0.0) -> Array:
    """|value - reference| over |reference|, or over ``floor`` where that is larger; 0/0 is 0."""
    scale = np.maximum(np.abs(reference), floor)
    return np.asarray(np.abs(value - reference) / np.where(scale > 0, scale, 1.0))


def _of_signal(
    table: Table, s: Scores, again: Overlaps, o: Overlaps, hats: Conjugates
) -> list[Array]:
    """Changes of the conjugates of m and of the overlaps with special directions, and of these,
    each compared with no less than what would be of the target's size, or that part of it.
    Eqs. (4.5), (4.6)"""
    P, W = len(s.mean), s.slope * table.weights
    power = (W @ table.power)[:, None]
    of_regressors = np.sqrt(table.per_part(W) @ (table.regressors**2).T)
    moments = (s.parts * table.per_part(table.weights)) @ table.regressors.T
    kept = np.concatenate([hats.m, hats.special.reshape(P, -1)], axis=1)
    terms = np.vecdot(np.abs(o.m), of_regressors[:, : len(table.offsets)])[:, None]
    size = of_regressors * np.sqrt(power)
    # |m mu_0| cancel where mu_0 are nearly dependent: this is their rounding, over a residual of
    # 1e-10
    floor = np.maximum(size, 1e-6 * of_regressors * terms)
    with np.errstate(divide="ignore", invalid="ignore"):  # a loading of 0 has no unit
        unit = (power / size)[:, len(table.offsets) :].reshape(hats.special.shape)
    return [
        relative_change(moments - kept, 0, floor),
        relative_change(again.special, o.special, SMALLEST_OVERLAP * unit),
    ]
