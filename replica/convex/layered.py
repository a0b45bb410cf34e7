"""Points of a loss with kinks or bends whose layers no shared table resolves, on tables of their
own, with panels over kappa that close in on the layers of the solution.  docs/theory.md 6

Where the layers are is known once the point is solved, roughly: on the last shared table, or at
a nearby penalty.  A point that has no such start is followed along a path of penalties, each
stage on the panels that the two before let expect.
"""

from itertools import product

import numpy as np

from solvers.results import Array, Status

from ..saddle_point import Overlaps
from .coordinates import Coordinates
from .evaluation import Evaluation, Task
from .label_tables import Level, Source, label_table
from .own_tables import own_label_tables
from .refinement import refine, slopes_on_shared
from .solve import slopes_near, solve_from, solve_points, solve_roughly

# Of a start and along a path, and of the coarser of the first two tables that are compared.
ROUGH, FIRST = Level(0, 0, 0), Level(1, 1, 2)
EARLY = (Level(1, 5, 2), Level(3, 7, 4))  # of the shared tables on which a path may start
# Penalties to start a path from, and the longest steps of m there.
EASY = ((0.1, 2.0), (0.1, 0.3), (100.0, 2.0), (0.01, 0.3))
FACTOR = 4.0  # between penalties, at first
ALONG = 1e-6  # residual of a stage
ARRIVED = 1e-12  # in log lam
FEW = 6  # iterations: the next step may be twice as long
SHORT = 0.2  # step in log lam that is worth every effort
STAGES = 24
WORK = 2**24  # nodes, times iterations, on one path: a second


def solve_layered(task: Task, start: Overlaps | None, tol: float) -> Evaluation | None:
    """A point on tables of its own.

    ``start`` has overlaps near the solution, if any are known.  None where nothing was found.
    """
    found = None if start is None else _refine(task, start, tol)
    if found is None:
        start = _follow(task)
        found = None if start is None else _refine(task, start, tol)
    return found


def _refine(task: Task, start: Overlaps, tol: float) -> Evaluation | None:
    def tables(near: Overlaps | None) -> Source:
        assert near is not None
        return own_label_tables(task.model, task.loss, near)

    near, slopes = start, slopes_on_shared(task, start)
    rough = tables(near)(ROUGH)
    if rough is not None:
        # layers may be too thin for it even where finer ones have a solution
        near, slopes = solve_roughly(task.on(rough), near, slopes) or (near, slopes)
    return refine(task, None, near, slopes, FIRST, tables, tol)


def _easy(task: Task) -> tuple[Coordinates, Array, Overlaps] | None:
    """An easy penalty with the overlaps there, on a shared table."""
    tables = [table for table in (label_table(task.model, level) for level in EARLY) if table]
    for table, (lam, longest) in product(tables, EASY):
        there = task._replace(lam=np.array([lam]))
        points, _ = solve_points(there.on(table), quick=True, longest_step=longest)
        if points.status[0] is Status.CONVERGED:
            return Coordinates(table.table), there.lam, points.overlaps
    return None


def _follow(task: Task) -> Overlaps | None:
    """Overlaps at the point or near it, followed from those at an easy penalty."""
    begin = _easy(task)
    if begin is None:
        return None
    coordinates, lam, overlaps = begin
    x, slope = coordinates.pack(overlaps), 0.0  # by log lam
    slopes = slopes_on_shared(task._replace(lam=lam), overlaps)
    step, work = np.log(FACTOR), WORK
    for _ in range(STAGES):
        left = np.log(task.lam / lam)
        if abs(left[0]) <= ARRIVED:
            return overlaps
        change = np.clip(left, -step, step)
        ahead = coordinates.unpack(x + slope * change)
        table = own_label_tables(task.model, task.loss, ahead)(ROUGH)
        if table is None or work < 0:
            return None
        there = task._replace(lam=lam * np.exp(change))
        short = step <= SHORT
        trial, _, slopes = solve_from(there.on(table), ahead, slopes, quick=not short)
        work -= table.labels.size * int(trial.iterations[0])
        if trial.residual[0] <= ALONG:
            overlaps, before = trial.overlaps, x
            x = coordinates.pack(overlaps)
            slope, lam = (x - before) / change, there.lam
            step *= 2 if trial.iterations[0] <= FEW else 1
        elif short:
            return None
        else:
            step = abs(float(change[0])) / 2
            slopes = slopes_near(task._replace(lam=lam).on(table), overlaps)
            work -= table.labels.size * len(x[0])
    return None
