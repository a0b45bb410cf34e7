"""Continuation to points of a convex loss at which the iteration alone does not converge.

The solution is followed in the logarithms of alpha and lambda, from the nearest solved point or
from an easy penalty.  Each step starts from the linear extrapolation of the last two solutions, in
the unconstrained coordinates; steps that fail are halved.  Solutions on the path are rough, on
panels fitted to their starting points.
"""

from collections.abc import Iterator

import numpy as np

from solvers.resources import GivenUp
from solvers.results import Rows, Status

from ..equivalence import tables
from ..saddle_point import Overlaps
from .equations import Equations
from .evaluation import Evaluation, Task
from .label_tables import shared_tables
from .panels import fitted_table, has_panels
from .unconstrained import Coordinates


def path_ends(task: Task, found: Evaluation, row: Rows) -> Iterator[Overlaps]:
    """Iterate over rough overlaps of one point, one for every path to it.  Raises ``GivenUp`` past
    the deadline."""
    for start, overlaps in _path_starts(task, found, row):
        if (end := _follow_path(task.select(row), start, overlaps)) is not None:
            yield end


def _path_starts(task: Task, found: Evaluation, row: Rows) -> Iterator[tuple[Task, Overlaps]]:
    """Starting points of paths to one point, with their overlaps: the nearest solved point, and a
    rough solution at an easy penalty."""
    solved = np.flatnonzero(found.converged)
    if solved.size:
        places = np.log([task.alpha, task.lam])
        distance = np.abs(places[:, solved] - places[:, row]).max(axis=0)
        nearest = solved[[np.argmin(distance)]]
        yield task.select(nearest), found.overlaps_at(nearest)
    for lam in (0.1, 100.0, 0.01):
        easy_task = task.select(row)._replace(lam=np.array([lam]))
        if (rough := _rough_solution(easy_task, easy_task.ridge().overlaps)) is not None:
            yield easy_task, rough[0]
            return


def _follow_path(task: Task, begin: Task, overlaps: Overlaps) -> Overlaps | None:
    """Rough overlaps of one point, by continuation from the overlaps ``near`` of ``begin``."""
    start, end = (np.log([point.alpha[0], point.lam[0]]) for point in (begin, task))
    length = np.abs(end - start).max()
    coordinates, travelled, step = Coordinates(next(tables(task.model))), 0.0, np.log(4)
    position = coordinates.pack(overlaps)
    slope = np.zeros_like(position)
    while travelled < length:
        target = min(travelled + step, length)
        alpha, lam = np.exp(start + (end - start) * target / length)[:, None]
        guess = coordinates.unpack(position + slope * (target - travelled))
        if (solution := _rough_solution(task._replace(alpha=alpha, lam=lam), guess)) is not None:
            overlaps, iterations = solution
            previous, position = position, coordinates.pack(overlaps)
            slope, travelled = (position - previous) / (target - travelled), target
            step *= 2 if iterations <= 6 else 1
        elif (step := (target - travelled) / 2) < np.log(1.05):
            return None  # it would take too many steps
    # once more, on nodes fitted to the solution at the end
    final = _rough_solution(task, overlaps)
    return None if final is None else final[0]


def _rough_solution(task: Task, near: Overlaps) -> tuple[Overlaps, int] | None:
    """Rough overlaps of one point, on nodes fitted to the overlaps ``near``, and the number of
    iterations.  None without a solution, or with too many nodes."""
    shared = None if has_panels(task.model) else shared_tables(task.model, task.folded)
    try:
        label_table = next(shared, None) if shared else fitted_table(task, near, 1e-2, order=7)
    except GivenUp as given_up:
        if given_up.status is Status.TIME:
            raise
        label_table = None
    if label_table is None:
        return None
    tol = 1e-5  # of the unknowns, which determine the place of layers
    overlaps, result = Equations(label_table, task.loss).solve(task.alpha, task.lam, near, tol=tol)
    return (overlaps, int(result.iterations[0])) if result.residual[0] <= tol else None
