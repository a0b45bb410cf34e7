"""Any convex loss: solutions of the saddle point on one table of labels.  docs/theory.md 6

The fixed point of one pass (``equations``) is iterated by Anderson's method first, then by Newton's
where that is slow, last along a path of decreasing lambda.  Many points are solved at once.  One
point whose solution is known on another table, with the slopes there, is solved by Broyden's.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from solvers.broyden import Root, broyden
from solvers.fixed_point import Anderson, Leave, Limits, fixed_point
from solvers.newton import newton
from solvers.results import Array, Result, Rows, Status, largest

from ..saddle_point import Errors, Overlaps, ridge
from .averages import Losses
from .coordinates import Slopes
from .equations import LONGEST_STEP_OF_M, Equations, PointsOnTable

COORDINATE_TOLERANCE = 1e-10  # estimated error of the coordinates, which are of order one
# Largest change of a coordinate in one pass at a solution: thin layers of the averages leave that
# much rounding.
LOSS_RESIDUAL_TOLERANCE = 1e-8
LOSS_QUADRATURE_TOLERANCE = 1e-6  # promised of every loss but the square
ROUGH_TOLERANCE, ROUGH_RESIDUAL = 1e-4, 1e-3  # of a solution that others start from
ANDERSON_MEMORY = 6  # earlier passes that are combined
ANDERSON_PASSES, QUICK_PASSES = 60, 30  # at most, of Anderson's method
NEWTON_STEPS, BROYDEN_STEPS = 15, 10  # at most
# Largest change of a coordinate by passes that Anderson's method combines: less than m's longest
# step, as a pass that takes m that far starts from where the map is not yet nearly linear.
ANDERSON_BEGINS = 1.0
ANDERSON_LONGEST = 4.0  # change of a coordinate by a combination: a factor of 50 in a logarithm
PENALTY_FACTOR = 4.0  # between the penalties of a path
LARGE_TABLE = 2**16  # nodes, from which on a table is left at the first difficulty
# Unknowns, beyond which the differences for slopes take more passes than the slopes save.
MANY_UNKNOWNS = 40
# Change of a coordinate in one pass, from where on few passes are left: when to ask if a point is
# worth them.
CLOSE_TO_SOLUTION = 1e-3

# Which of the named points (R,), by their overlaps before and after a pass, are not worth more.
GiveUp = Callable[[Overlaps, Overlaps, Rows], NDArray[np.bool_]]


def solve_points(
    problem: PointsOnTable,
    start: Overlaps | None = None,
    *,
    quick: bool = False,
    longest_step: float = LONGEST_STEP_OF_M,
    give_up: GiveUp | None = None,
) -> tuple[ridge.Points, Losses]:
    """Overlaps and errors at the P points of a problem.

    Rows that did not converge hold whatever the solver left; callers mask them.  The residual is
    the largest change of a coordinate in one pass.

    Parameters
    ----------
    problem : PointsOnTable
    start : Overlaps, optional
        Guesses, such as the overlaps on another table; ridge regression's unless given.
    quick : bool
        By Anderson's method alone: callers have another table, or a nearer start, to go on to.
    longest_step : float
        Of m in one pass.  Shorter ones find their way where E[mu_0 s] is all but a jump.
    give_up : callable, optional
        Asked of points that come close: those it names are left as ``Status.LEFT``, and their
        errors mean nothing.
    """
    equations = Equations(problem.label_table, problem.loss, longest_step)
    unpack, leave = equations.coordinates.unpack, None
    if (ask := give_up) is not None:
        leave = Leave(CLOSE_TO_SOLUTION, lambda x, image, rows: ask(unpack(x), unpack(image), rows))
    result = _solve(equations, problem, start, quick, leave)
    overlaps = unpack(result.value)
    with np.errstate(all="ignore"):
        update = equations.update(problem.alpha, problem.lam, overlaps)
        if (result.status == Status.LEFT).all():
            test, *unknown = np.full((1 + len(Losses._fields), len(problem.alpha)), np.nan)
            losses = Losses(*unknown)
        else:
            test, losses = equations.errors(overlaps)
        residual = largest(equations.coordinates.pack(update.overlaps) - result.value)
    errors = Errors(test, losses.train_square)
    account = residual, result.iterations, result.status
    return ridge.Points(overlaps, update.conjugates, errors, *account), losses


def solve_near(
    problem: PointsOnTable,
    start: Overlaps,
    slopes: Slopes,
    tol: float = COORDINATE_TOLERANCE,
    residual_tol: float = LOSS_RESIDUAL_TOLERANCE,
) -> tuple[ridge.Points, Losses, Slopes] | None:
    """One point, (1,), from a ``start`` near it, with the ``slopes`` there as another table gives
    them; with the slopes as far as they were corrected.  None if a residual of ``residual_tol`` is
    not reached."""
    equations = Equations(problem.label_table, problem.loss)
    root = _root_near(equations, problem, start, slopes, tol, residual_tol)
    if root is None:
        return None
    overlaps = equations.coordinates.unpack(root.value[None])
    with np.errstate(all="ignore"):
        test, losses = equations.errors(overlaps)
    account = np.array([root.residual]), np.array([root.iterations]), np.array([Status.CONVERGED])
    errors = Errors(test, losses.train_square)
    points = ridge.Points(overlaps, root.rest.conjugates, errors, *account)
    return points, losses, Slopes(root.slopes, equations.coordinates)


def solve_roughly(
    problem: PointsOnTable, start: Overlaps, slopes: Slopes | None
) -> tuple[Overlaps, Slopes | None] | None:
    """One point, (1,), from a ``start`` near it, to a few digits: overlaps to start from on other
    tables, and slopes there.  None where no solution was found."""
    equations = Equations(problem.label_table, problem.loss)
    if slopes is not None:
        root = _root_near(equations, problem, start, slopes, ROUGH_TOLERANCE, ROUGH_RESIDUAL)
        if root is not None:
            overlaps = equations.coordinates.unpack(root.value[None])
            return overlaps, Slopes(root.slopes, equations.coordinates)
    points, _ = solve_points(problem, start, quick=_is_large(problem))
    if not points.residual[0] <= ROUGH_RESIDUAL:
        return None
    return points.overlaps, slopes_near(problem, points.overlaps)


def solve_from(
    problem: PointsOnTable,
    start: Overlaps | None,
    slopes: Slopes | None,
    quick: bool | None = None,
    tol: float = COORDINATE_TOLERANCE,
    residual_tol: float = LOSS_RESIDUAL_TOLERANCE,
) -> tuple[ridge.Points, Losses, Slopes | None]:
    """One point, by ``solve_near`` or else by ``solve_points``; with the slopes that the first has
    corrected, None where it did not succeed.  Only large tables are solved ``quick``, unless
    said."""
    if start is not None and slopes is not None:
        near = solve_near(problem, start, slopes, tol, residual_tol)
        if near is not None:
            return near
    quick = _is_large(problem) if quick is None else quick
    return *solve_points(problem, start, quick=quick), None


def slopes_near(problem: PointsOnTable, overlaps: Overlaps) -> Slopes | None:
    """Slopes of the equations at ``overlaps``, for one point; None where there are so many that
    differences would take longer than Anderson's method."""
    equations = Equations(problem.label_table, problem.loss)
    x = equations.coordinates.pack(overlaps)
    if x.shape[1] > MANY_UNKNOWNS:
        return None
    return Slopes(equations.system(x, problem.alpha, problem.lam)[1][0], equations.coordinates)


def _is_large(problem: PointsOnTable) -> bool:
    """Whether a pass takes so long that a difficult point had better be solved elsewhere."""
    return problem.label_table.labels.size > LARGE_TABLE


def _root_near(
    equations: Equations,
    problem: PointsOnTable,
    start: Overlaps,
    slopes: Slopes,
    tol: float,
    residual_tol: float,
) -> Root | None:
    """A root x - T(x) = 0 of one point by Broyden's method; None where it does not converge."""
    matrix = equations.coordinates.slopes_from(slopes.coordinates, slopes.matrix)
    if matrix is None:
        return None
    with np.errstate(all="ignore"):
        return broyden(
            lambda x: equations.residual(x, problem.alpha, problem.lam),
            equations.coordinates.pack(start)[0],
            matrix,
            tol=tol,
            enough=residual_tol,
            max_iterations=BROYDEN_STEPS,
        )


def _solve(
    equations: Equations,
    problem: PointsOnTable,
    start: Overlaps | None,
    quick: bool,
    leave: Leave | None,
) -> Result:
    """Coordinates of the solutions, ``Result.value`` (P, k): Anderson, then Newton; without a
    start, a path in lambda from where the problem is easy."""
    alpha, lam = problem.alpha, problem.lam
    near = start
    if near is None:
        near = ridge.solve_points(equations.table, alpha, lam).overlaps
    first = np.nan_to_num(equations.coordinates.pack(near))
    if quick:
        return _anderson(equations, alpha, lam, first, QUICK_PASSES, leave)
    result = _anderson_newton(equations, alpha, lam, first, leave)
    rows = _unsolved(result)
    if start is not None or not rows.size:
        return result
    return _replace(result, rows, _path(equations, alpha[rows], lam[rows]))


def _anderson_newton(
    equations: Equations, alpha: Array, lam: Array, start: Array, leave: Leave | None = None
) -> Result:
    """Anderson's method from coordinates ``start`` (P, k), and Newton's for the rows it leaves."""
    first = _anderson(equations, alpha, lam, start, ANDERSON_PASSES, leave)
    rows = _unsolved(first)
    if not rows.size:
        return first
    usable = np.isfinite(first.value[rows]).all(axis=1, keepdims=True)
    second = newton(
        lambda x, inner: equations.system(x, alpha[rows[inner]], lam[rows[inner]]),
        np.where(usable, first.value[rows], start[rows]),
        size=np.ones_like,
        signed=np.ones(start.shape[1], dtype=bool),
        tol=COORDINATE_TOLERANCE,
        max_iterations=NEWTON_STEPS,
    )
    # differences, and layers of the averages, leave Newton's residual some rounding
    small = second.residual <= 0.1 * LOSS_RESIDUAL_TOLERANCE
    second.status[(second.status == Status.NO_PROGRESS) & small] = Status.CONVERGED
    return _replace(first, rows, second)


def _anderson(
    equations: Equations,
    alpha: Array,
    lam: Array,
    start: Array,
    passes: int,
    leave: Leave | None,
) -> Result:
    """Anderson's method from coordinates ``start`` (P, k), for so many ``passes`` at most."""
    return fixed_point(
        lambda x, rows: equations.image(x, alpha[rows], lam[rows]),
        start,
        tol=COORDINATE_TOLERANCE,
        size=np.ones_like,
        anderson=Anderson(ANDERSON_MEMORY, ANDERSON_BEGINS, ANDERSON_LONGEST),
        limits=Limits(max_iterations=passes, leave=leave),
    )


def _path(equations: Equations, alpha: Array, lam: Array) -> Result:
    """From a penalty of order one down to ``lam``, by factors of PENALTY_FACTOR or less, every
    stage extrapolated from the last two."""
    top = np.maximum(lam * PENALTY_FACTOR, 1.0)
    stages = int(np.ceil(np.log(top / lam).max() / np.log(PENALTY_FACTOR)))
    first = ridge.solve_points(equations.table, alpha, top).overlaps
    start, before = np.nan_to_num(equations.coordinates.pack(first)), None
    iterations = np.zeros(len(alpha), dtype=np.int64)
    for stage in np.linspace(0.0, 1.0, stages + 1):
        result = _anderson_newton(equations, alpha, top ** (1 - stage) * lam**stage, start)
        iterations += result.iterations
        if not result.converged.any():
            break
        ahead = result.value if before is None else 2 * result.value - before
        start, before = np.where(result.converged[:, None], ahead, start), result.value
    return Result(result.value, result.residual, iterations, result.status)


def _unsolved(result: Result) -> Rows:
    """Rows that neither converged nor were given up."""
    return np.flatnonzero(~result.converged & (result.status != Status.LEFT))


def _replace(result: Result, rows: Rows, by: Result) -> Result:
    """``result`` with the named rows taken from ``by``, iterations added up."""
    value, residual = result.value.copy(), result.residual.copy()
    iterations, status = result.iterations.copy(), result.status.copy()
    value[rows], residual[rows], status[rows] = by.value, by.residual, by.status
    iterations[rows] += by.iterations
    return Result(value, residual, iterations, status)
