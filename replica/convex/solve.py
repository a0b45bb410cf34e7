"""Any convex loss: solutions of the saddle point on one table of labels.  docs/theory.md 6

The fixed point of one pass (``equations``) is iterated by Anderson's method first, and by Newton's
where that is slow.  Many points are solved at once.
"""

from collections.abc import Callable

import numpy as np

from solvers.fixed_point import Anderson, Limits, fixed_point
from solvers.newton import newton
from solvers.results import Array, Result, Rows, Status, largest

from ..saddle_point import Errors, Overlaps, ridge
from .averages import Losses
from .equations import LONGEST_STEP_OF_M, Equations, PointsOnTable

COORDINATE_TOLERANCE = 1e-9  # estimated error of the coordinates, which are of order one
# Largest change of a coordinate in one pass at a solution: thin layers of the averages leave that
# much rounding.
LOSS_RESIDUAL_TOLERANCE = 1e-8
ANDERSON_MEMORY = 6  # earlier passes that are combined
ANDERSON_PASSES, NEWTON_STEPS = 30, 15  # at most
# Unknowns, beyond which the differences for Newton's slopes take too long.
MANY_UNKNOWNS = 40
# Largest change of a coordinate by passes that Anderson's method combines: less than m's longest
# step, as a pass that takes m that far starts from where the map is not yet nearly linear.
ANDERSON_BEGINS = 1.0
ANDERSON_LONGEST = 4.0  # change of a coordinate by a combination: a factor of 50 in a logarithm

Map = Callable[[Array, Rows], Array]
System = Callable[[Array, Rows], tuple[Array, Array]]


def solve_points(
    problem: PointsOnTable,
    start: Overlaps | None = None,
    *,
    tol: float = COORDINATE_TOLERANCE,
    longest_step: float = LONGEST_STEP_OF_M,
    check: Callable[[], None] = lambda: None,
) -> tuple[ridge.Points, Losses]:
    """Overlaps and errors at the P points of a problem.

    Rows that did not converge hold whatever the solver left; callers mask them.  The residual is
    the largest change of a coordinate in one pass.

    Parameters
    ----------
    problem : PointsOnTable
    start : Overlaps, optional
        Guesses, such as the overlaps on another table; ridge regression's unless given.
    tol : float
        Estimated error of a coordinate.
    longest_step : float
        Of m in one pass.  Shorter ones find their way where E[mu_0 s] is all but a jump.
    check : callable
        Called before every pass: what it raises ends the iteration.
    """
    equations = Equations(problem.label_table, problem.loss, longest_step)
    if start is None:
        start = ridge.solve_points(equations.table, problem.alpha, problem.lam).overlaps
    first = np.nan_to_num(equations.coordinates.pack(start))

    def image(x: Array, rows: Rows) -> Array:
        check()
        return equations.image(x, problem.alpha[rows], problem.lam[rows])

    def system(x: Array, rows: Rows) -> tuple[Array, Array]:
        check()
        return equations.system(x, problem.alpha[rows], problem.lam[rows])

    result = _iterated(image, first, tol)
    if first.shape[1] <= MANY_UNKNOWNS:
        result = _by_newton(system, first, result, tol)
    overlaps = equations.coordinates.unpack(result.value)
    with np.errstate(all="ignore"):
        update = equations.update(problem.alpha, problem.lam, overlaps)
        test, losses = equations.errors(overlaps)
        residual = largest(equations.coordinates.pack(update.overlaps) - result.value)
    errors = Errors(test, losses.train_square)
    account = residual, result.iterations, result.status
    return ridge.Points(overlaps, update.conjugates, errors, *account), losses


def _iterated(image: Map, start: Array, tol: float) -> Result:
    """Coordinates of the solutions, ``Result.value`` (P, k), by Anderson's method."""
    return fixed_point(
        image,
        start,
        tol=tol,
        size=np.ones_like,
        anderson=Anderson(ANDERSON_MEMORY, ANDERSON_BEGINS, ANDERSON_LONGEST),
        limits=Limits(max_iterations=ANDERSON_PASSES),
    )


def _by_newton(system: System, start: Array, first: Result, tol: float) -> Result:
    """The ``first`` result with the rows that are not solved taken on by Newton's method."""
    rows = np.flatnonzero(~first.converged)
    if not rows.size:
        return first
    usable = np.isfinite(first.value[rows]).all(axis=1, keepdims=True)
    second = newton(
        lambda x, inner: system(x, rows[inner]),
        np.where(usable, first.value[rows], start[rows]),
        size=np.ones_like,
        signed=np.ones(start.shape[1], dtype=bool),
        tol=tol,
        max_iterations=NEWTON_STEPS,
    )
    # differences, and layers of the averages, leave Newton's residual some rounding
    small = second.residual <= 0.1 * LOSS_RESIDUAL_TOLERANCE
    second.status[(second.status == Status.NO_PROGRESS) & small] = Status.CONVERGED
    value, residual = first.value.copy(), first.residual.copy()
    iterations, status = first.iterations.copy(), first.status.copy()
    value[rows], residual[rows], status[rows] = second.value, second.residual, second.status
    iterations[rows] += second.iterations
    return Result(value, residual, iterations, status)
