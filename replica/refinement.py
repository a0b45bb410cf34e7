"""Points that the first tables do not resolve, on finer ones.

kappa, tau and the proximal map have rules of their own, and what one of them leaves is seldom what
the others do.  Nodes are a product, so that to refine all for the sake of one would cost many
times as much: every axis is asked for what it leaves, and those that matter go on, at once as far
as that may need.
"""

from collections.abc import Callable

import numpy as np

from solvers.results import Status

from . import convex
from .common_bias import slope_of_loss
from .evaluation import Evaluation, Task
from .label_tables import KAPPA, LabelTable, Level, axes, first_level, label_table, within
from .overlaps import Overlaps
from .saddle_point import RESIDUAL_TOLERANCE, Slopes

SHARE = 0.2  # of the tolerance, that what is left along one axis may take
MOST = 0.5  # of the error, for the rest not to be asked about
RATE = 12.0  # by which that falls from level to level, at best
CLOSE = 1e-3  # tolerance of the unknowns, of that of the quadrature

Source = Callable[[Level], LabelTable | None]  # of tables, by their level


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
    return None if table is None else convex.slopes_near(table, *task.at, overlaps)


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
    is known with its error.

    ``near`` has overlaps of the solution, and ``slopes`` those of the equations there, as far as
    they are known; ``tables`` gives those for a point near overlaps.
    """
    best, names = found, axes(task.model, exact=task.loss.pieces is not None)
    doubtful, here = names, tables(near)
    close = min(CLOSE * tol, 0.1 * RESIDUAL_TOLERANCE)
    while True:
        left = dict.fromkeys(names, tol)
        if found is not None:
            most = MOST * float(found.quadrature_error[0])
            left = _left(task, near, slopes, level, here, doubtful, most)
        # an undefined distance is not a small one
        doubtful = [n for n in doubtful if n not in left or not left[n] <= SHARE * tol] or names
        here = tables(near)
        ahead = _ahead(here, level, {n: left[n] / tol for n in doubtful if n in left})
        if ahead is None:
            return best
        level, fine, coarse = ahead
        points, losses, slopes = convex.solve_from(fine, *task.at, near, slopes, tol=close)
        if points.residual[0] <= RESIDUAL_TOLERANCE:
            # thin layers may leave the iteration's own, sharper criterion some rounding
            points.status[:] = Status.CONVERGED
        error = convex.mismatch(coarse, *task.at, points, losses, slopes)
        nodes = np.array([fine.table.weights.size])
        slope = slope_of_loss(task.model, fine, task.loss, task.alpha, points)
        found = Evaluation(points, losses, points.residual, error, nodes, slope, np.zeros(1))
        # what two tables did not solve is not a matter of quadrature
        if not found.converged[0]:
            return found if best is None or not best.converged[0] else best
        if best is None or not best.quadrature_error[0] <= error[0]:
            best = found
        if error[0] <= tol:
            return found
        near = points.overlaps
        if slopes is None:
            slopes = convex.slopes_near(fine, *task.at, near)


def _left(
    task: Task,
    near: Overlaps | None,
    slopes: Slopes | None,
    level: Level,
    here: Source,
    names: list[str],
    most: float,
) -> dict[str, float]:
    """What the level below leaves along each axis, up to the first that leaves ``most``."""
    left: dict[str, float] = {}
    for name in names:
        table = here(level.along(name, by=-1))
        left[name] = np.inf
        if table is not None and near is not None:
            left[name] = float(convex.distance(table, *task.at, near, slopes)[0])
        if most <= left[name] < np.inf:
            break
    return left


def _ahead(
    tables: Source, level: Level, excess: dict[str, float]
) -> tuple[Level, LabelTable, LabelTable] | None:
    """The level after this one with its table and that below: as far along each axis as its
    ``excess`` over the tolerance may need, or as there are tables."""
    with np.errstate(all="ignore"):
        wanted = {n: np.ceil(np.log(size) / np.log(RATE)) for n, size in excess.items()}
    steps = {n: int(size) if 1 < size < np.inf else 1 for n, size in wanted.items()}
    # even nodes over kappa end there, and panels begin anew with fewer
    if "kappa" in steps:
        steps["kappa"] = min(steps["kappa"], max(1, len(KAPPA) - 1 - level.kappa))
    for most in range(max(steps.values()), 0, -1):
        after = level
        for name, by in steps.items():
            after = after.along(name, by=min(by, most))
        fine, coarse = tables(after), tables(after.along(by=-1))
        if fine is not None and coarse is not None:
            return after, fine, coarse
    return None
