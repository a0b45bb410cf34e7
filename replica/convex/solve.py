"""Any convex loss: points on a table of labels, and what another table leaves of them.
docs/theory.md 6

Many points at once from nothing, or one from a solution and the slopes of the equations on another
table; how ``Equations`` are solved is said there.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from solvers.fixed_point import Leave
from solvers.linear import solve_rows
from solvers.results import Array, Rows, Status, largest

from ..saddle_point import Errors, Overlaps, relative_change, ridge
from .averages import Losses
from .equations import LONGEST, RESIDUAL_TOLERANCE, TOLERANCE, Equations, Slopes
from .label_tables import LabelTable
from .losses import Loss

ROUGHLY, ROUGH_RESIDUAL = 1e-4, 1e-3  # of a solution that others start from
QUADRATURE_TOLERANCE = 1e-6
LARGE = 2**16  # nodes, for a solution to be pursued past the first difficulty
MANY = 40  # unknowns: slopes take more passes than they save
CLOSE = 1e-3  # change of a coordinate in one pass, from where on few passes are left

# Which of the named points (R,), by their overlaps before and after a pass, are not worth more.
Hopeless = Callable[[Overlaps, Overlaps, Rows], NDArray[np.bool_]]


def solve_points(
    given: LabelTable,
    loss: Loss,
    alpha: Array,
    lam: Array,
    start: Overlaps | None = None,
    *,
    brief: bool = False,
    longest: float = LONGEST,
    hopeless: Hopeless | None = None,
) -> tuple[ridge.Points, Losses]:
    """Overlaps and errors at the points (alpha, lam), arrays (P,).

    ``start`` holds guesses, such as the overlaps on another table; ridge regression's unless
    given.  The residual is the largest change of a coordinate in one pass.  Rows that did not
    converge hold whatever the solver left; callers mask them.  A ``brief`` solution is not
    pursued past the first difficulty: callers have another table, or a nearer start.  ``longest``
    bounds the steps of m: shorter ones find their way where a jump is all that E[mu_0 s] has.
    Points that come close are left there if they are ``hopeless``, and their errors mean nothing.
    """
    equations, leave = Equations(given, loss, longest), None
    unpack = equations.coordinates.unpack
    if (ask := hopeless) is not None:
        leave = Leave(CLOSE, lambda x, image, rows: ask(unpack(x), unpack(image), rows))
    result = equations.solve(alpha, lam, start, brief, leave)
    overlaps = unpack(result.value)
    with np.errstate(all="ignore"):
        found = equations.update(alpha, lam, overlaps)
        if (result.status == Status.LEFT).all():
            test, *rest = np.full((1 + len(Losses._fields), len(alpha)), np.nan)
            lost = Losses(*rest)
        else:
            test, lost = equations.errors(overlaps)
        residual = largest(equations.coordinates.pack(found.overlaps) - result.value)
    errors = Errors(test, lost.train_square)
    account = residual, result.iterations, result.status
    return ridge.Points(overlaps, found.conjugates, errors, *account), lost


def solve_near(
    given: LabelTable,
    loss: Loss,
    alpha: Array,
    lam: Array,
    start: Overlaps,
    slopes: Slopes,
    tol: float = TOLERANCE,
    enough: float = RESIDUAL_TOLERANCE,
) -> tuple[ridge.Points, Losses, Slopes] | None:
    """One point, (1,), from a ``start`` near it, with the ``slopes`` there as another table gives
    them; with the slopes learnt.  None if that does not leave a residual that is ``enough``."""
    equations = Equations(given, loss)
    root = equations.root_near(alpha, lam, start, slopes, tol, enough)
    if root is None:
        return None
    overlaps = equations.coordinates.unpack(root.value[None])
    with np.errstate(all="ignore"):
        test, lost = equations.errors(overlaps)
    account = np.array([root.residual]), np.array([root.iterations]), np.array([Status.CONVERGED])
    errors = Errors(test, lost.train_square)
    points = ridge.Points(overlaps, root.rest.conjugates, errors, *account)
    return points, lost, Slopes(root.slopes, equations.coordinates)


def approach(
    given: LabelTable,
    loss: Loss,
    alpha: Array,
    lam: Array,
    start: Overlaps,
    slopes: Slopes | None,
) -> tuple[Overlaps, Slopes | None] | None:
    """One point, (1,), from a ``start`` near it, roughly: overlaps to start from on other tables,
    with slopes there.  None if there are none."""
    equations = Equations(given, loss)
    if slopes is not None:
        root = equations.root_near(alpha, lam, start, slopes, ROUGHLY, ROUGH_RESIDUAL)
        if root is not None:
            overlaps = equations.coordinates.unpack(root.value[None])
            return overlaps, Slopes(root.slopes, equations.coordinates)
    points, _ = solve_points(given, loss, alpha, lam, start, brief=given.labels.size > LARGE)
    if not points.residual[0] <= ROUGH_RESIDUAL:
        return None
    return points.overlaps, slopes_near(given, loss, alpha, lam, points.overlaps)


def solve_from(
    given: LabelTable,
    loss: Loss,
    alpha: Array,
    lam: Array,
    start: Overlaps | None,
    slopes: Slopes | None,
    brief: bool | None = None,
    tol: float = TOLERANCE,
    enough: float = RESIDUAL_TOLERANCE,
) -> tuple[ridge.Points, Losses, Slopes | None]:
    """One point, by ``solve_near`` or else by ``solve_points``; with the slopes learnt, None
    where those given did not do."""
    if start is not None and slopes is not None:
        near = solve_near(given, loss, alpha, lam, start, slopes, tol, enough)
        if near is not None:
            return near
    brief = given.labels.size > LARGE if brief is None else brief
    return *solve_points(given, loss, alpha, lam, start, brief=brief), None


def slopes_near(
    given: LabelTable, loss: Loss, alpha: Array, lam: Array, overlaps: Overlaps
) -> Slopes | None:
    """Slopes of the equations at ``overlaps``, for one point; None where there are so many that
    differences would take longer than Anderson's method."""
    equations = Equations(given, loss)
    x = equations.coordinates.pack(overlaps)
    if x.shape[1] > MANY:
        return None
    return Slopes(equations.system(x, alpha, lam)[1][0], equations.coordinates)


def mismatch(
    given: LabelTable,
    loss: Loss,
    alpha: Array,
    lam: Array,
    points: ridge.Points,
    lost: Losses,
    slopes: Slopes | None = None,
) -> Array:
    """How far ``points``, found on another table, are from solving the equations on ``given``,
    (P,): the largest change of a coordinate as in ``distance``, and of an error relative to
    itself."""
    equations, table = Equations(given, loss), given.table
    apart = _distance(equations, alpha, lam, points.overlaps, slopes)
    power = table.weights @ (table.power + table.noise)
    with np.errstate(all="ignore"):
        test, again = equations.errors(points.overlaps)
        # errors are sums that may cancel, or vanish: compared with a part of their natural size
        changes = [
            relative_change(test, points.errors.test, 1e-4 * power),
            relative_change(again.train_square, lost.train_square, 1e-4 * power),
            relative_change(again.train, lost.train, 1e-2 * lost.test),
            relative_change(again.test, lost.test, 0.0),
        ]
        return np.asarray(np.maximum(apart, np.max(changes, axis=0)))


def distance(
    given: LabelTable,
    loss: Loss,
    alpha: Array,
    lam: Array,
    overlaps: Overlaps,
    slopes: Slopes | None = None,
    after: Overlaps | None = None,
) -> Array:
    """Of ``overlaps`` from a solution on ``given``, (P,): the largest change of a coordinate in one
    pass, or, of one point, by one step of Newton's method with ``slopes`` that another table
    gave.  If those are no solution on the other table, either, ``after`` is what a pass there
    makes of them, and the change is from that."""
    return _distance(Equations(given, loss), alpha, lam, overlaps, slopes, after)


def _distance(
    equations: Equations,
    alpha: Array,
    lam: Array,
    overlaps: Overlaps,
    slopes: Slopes | None,
    after: Overlaps | None = None,
) -> Array:
    coordinates = equations.coordinates
    with np.errstate(all="ignore"):
        elsewhere = coordinates.pack(overlaps if after is None else after)
        change = coordinates.pack(equations.update(alpha, lam, overlaps).overlaps) - elsewhere
        if slopes is not None:
            matrix = coordinates.slopes_from(slopes.coordinates, slopes.matrix)
            change = change if matrix is None else solve_rows(matrix[None], change)
    return largest(change)
