"""Points that the first tables do not resolve, on finer ones.

kappa, tau and the proximal map have rules of their own, and what one of them leaves is seldom what
the others do.  Nodes are a product, so that to refine all for the sake of one would cost many
times as much: every axis is asked for what it leaves, and those that matter go on, at once as far
as that may need.
"""

from collections.abc import Callable

import numpy as np

from solvers.results import Status

from ..saddle_point import Overlaps
from .common_bias import slope_of_loss
from .coordinates import Slopes
from .evaluation import Evaluation, Task
from .label_tables import KAPPA, LabelTable, Level, Source, axes, first_level, label_table, within
from .solve import LOSS_RESIDUAL_TOLERANCE, slopes_near, solve_from
from .table_change import change_of_overlaps, change_of_points

SHARE = 0.2  # of the tolerance, that what is left along one axis may take
RATE = 12.0  # by which that falls from level to level, at best
CLOSE = 1e-3  # tolerance of the unknowns, of that of the quadrature


def solve_refined(task: Task, found: Evaluation, tol: float) -> Evaluation:
    """A point ``found`` on the first tables: on the first shared ones that meet the tolerance, or
    else the best."""

    def shared(level: Level) -> LabelTable | None:
        return label_table(task.model, level) if within(task.model, level) else None

    near, slopes = None, None
    if found.converged[0]:
        near = found.points.overlaps
        slopes = slopes_on_shared(task, near)
    best = refine(task, found, near, slopes, first_level(task.model), lambda _: shared, tol)
    assert best is not None  # no worse than ``found``
    return best


def slopes_on_shared(task: Task, overlaps: Overlaps) -> Slopes | None:
    """Slopes of the equations on the coarsest of the shared tables, if there is one."""
    table = label_table(task.model, first_level(task.model).along(by=-1))
    return None if table is None else slopes_near(task.on(table), overlaps)


def refine(
    task: Task,
    found: Evaluation | None,
    near: Overlaps | None,
    slopes: Slopes | None,
    level: Level,
    tables: Callable[[Overlaps | None], Source],
    tol: float,
) -> Evaluation | None:
    """A point on tables beyond ``level``, or the best of those and what was ``found`` there, if it
    is known with its error; None if neither is solved.

    ``near`` has overlaps of the solution, and ``slopes`` those of the equations there, as far as
    they are known; ``tables`` gives those for a point near overlaps.
    """
    best, names = found, axes(task.model, exact=task.loss.pieces is not None)
    here, left = tables(near), dict.fromkeys(names, tol)
    close = min(CLOSE * tol, 0.1 * LOSS_RESIDUAL_TOLERANCE)
    while True:
        if found is not None:
            left = _left(task, found, slopes, level, here, names, SHARE * tol)
            here = tables(near)
        # an undefined distance is not a small one
        wanted = [name for name in names if not left[name] <= SHARE * tol] or names
        ahead = _ahead(here, level, {name: left[name] / tol for name in wanted})
        if ahead is None:
            return best
        level, fine, coarse = ahead
        points, losses, slopes = solve_from(task.on(fine), near, slopes, tol=close)
        if not points.residual[0] <= LOSS_RESIDUAL_TOLERANCE:
            return best  # what two tables did not solve is not a matter of quadrature
        # thin layers may leave the iteration's own, sharper criterion some rounding
        points.status[:] = Status.CONVERGED
        near = points.overlaps
        if slopes is None:
            slopes = slopes_near(task.on(fine), near)
        error = change_of_points(task.on(coarse), points, losses, slopes)
        nodes = np.array([fine.table.weights.size])
        slope = slope_of_loss(task.model, fine, task.loss, task.alpha, points)
        found = Evaluation(points, losses, points.residual, error, nodes, slope, np.zeros(1))
        if error[0] <= tol:
            return found
        if best is None or not (best.converged[0] and best.quadrature_error[0] <= error[0]):
            best = found


def _left(
    task: Task,
    found: Evaluation,
    slopes: Slopes | None,
    level: Level,
    here: Source,
    names: list[str],
    small: float,
) -> dict[str, float]:
    """What the level below leaves along each axis: of the equations, or where that is ``small``
    along all of them, of the errors, too."""
    points, unknown = found.points, dict.fromkeys(names, np.inf)
    if not found.converged[0]:
        return unknown
    below = {name: here(level.along(name, by=-1)) for name in names}
    tables = {name: table for name, table in below.items() if table is not None}
    left = {
        name: float(change_of_overlaps(task.on(table), points.overlaps, slopes)[0])
        for name, table in tables.items()
    }
    if all(size <= small for size in left.values()):
        left = {
            name: float(change_of_points(task.on(table), points, found.losses, slopes)[0])
            for name, table in tables.items()
        }
    return unknown | left


def _ahead(
    tables: Source, level: Level, excess: dict[str, float]
) -> tuple[Level, LabelTable, LabelTable] | None:
    """The level after this one with its table and that below: as far along each axis as its
    ``excess`` over the tolerance may need, or as there are tables."""
    with np.errstate(all="ignore"):
        wanted = {n: np.ceil(np.log(size) / np.log(RATE)) for n, size in excess.items()}
    steps = {n: int(size) if 1 < size < np.inf else 1 for n, size in wanted.items()}
    if "kappa" in steps:
        # even nodes of shared tables end there, and panels begin anew with fewer
        steps["kappa"] = min(steps["kappa"], max(1, len(KAPPA) - 1 - level.kappa))
    found = _together(tables, level, steps)
    if found is None:  # along an axis there may be none left
        able = {n: by for n, by in steps.items() if tables(level.along(n)) is not None}
        found = _together(tables, level, able)
    return found


def _together(
    tables: Source, level: Level, steps: dict[str, int]
) -> tuple[Level, LabelTable, LabelTable] | None:
    for most in range(max(steps.values(), default=0), 0, -1):
        after = level
        for name, by in steps.items():
            after = after.along(name, by=min(by, most))
        fine, coarse = tables(after), tables(after.along(by=-1))
        if fine is not None and coarse is not None:
            return after, fine, coarse
    return None
