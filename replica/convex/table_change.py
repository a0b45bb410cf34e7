"""What another table of labels makes of a solution: the estimate of the quadrature error.

A solution on one table does not quite solve the equations on another.  How far its overlaps, or
its errors, change from the one to the other bounds what the coarser of the two is wrong by.
"""

import numpy as np

from solvers.linear import solve_rows
from solvers.results import Array, largest

from ..saddle_point import Overlaps, relative_change, ridge
from .averages import Losses
from .coordinates import Slopes
from .equations import Equations, PointsOnTable

# Errors are sums that may cancel, or vanish: they are compared with no less than these parts, of
# squared errors of the labels' power, and of the training loss of the loss on new samples.
SMALLEST_SQUARE, SMALLEST_TRAIN_LOSS = 1e-4, 1e-2


def change_of_points(
    problem: PointsOnTable, points: ridge.Points, losses: Losses, slopes: Slopes | None = None
) -> Array:
    """How far ``points``, solved on another table, are from solving the ``problem``, (P,): the
    largest change of a coordinate as in ``change_of_overlaps``, and of an error relative to
    itself."""
    equations = Equations(problem.label_table, problem.loss)
    apart = _change(equations, problem, points.overlaps, slopes)
    table = equations.table
    power = table.weights @ (table.power + table.noise)
    with np.errstate(all="ignore"):
        test, again = equations.errors(points.overlaps)
        changes = [
            relative_change(test, points.errors.test, SMALLEST_SQUARE * power),
            relative_change(again.train_square, losses.train_square, SMALLEST_SQUARE * power),
            relative_change(again.train, losses.train, SMALLEST_TRAIN_LOSS * losses.test),
            relative_change(again.test, losses.test, 0.0),
        ]
        return np.asarray(np.maximum(apart, np.max(changes, axis=0)))


def change_of_overlaps(
    problem: PointsOnTable,
    overlaps: Overlaps,
    slopes: Slopes | None = None,
    after: Overlaps | None = None,
) -> Array:
    """How far ``overlaps`` are from a solution of the ``problem``, (P,): the largest change of a
    coordinate in one pass, or, of one point, by one step of Newton's method with ``slopes`` that
    another table gave.  If those are no solution on the other table, either, ``after`` is what a
    pass there makes of them, and the change is from that."""
    equations = Equations(problem.label_table, problem.loss)
    return _change(equations, problem, overlaps, slopes, after)


def _change(
    equations: Equations,
    problem: PointsOnTable,
    overlaps: Overlaps,
    slopes: Slopes | None,
    after: Overlaps | None = None,
) -> Array:
    """The largest change of a coordinate (P,), as ``change_of_overlaps`` defines it."""
    coordinates = equations.coordinates
    with np.errstate(all="ignore"):
        elsewhere = coordinates.pack(overlaps if after is None else after)
        update = equations.update(problem.alpha, problem.lam, overlaps)
        change = coordinates.pack(update.overlaps) - elsewhere
        if slopes is not None:
            matrix = coordinates.slopes_from(slopes.coordinates, slopes.matrix)
            change = change if matrix is None else solve_rows(matrix[None], change)
    return largest(change)
