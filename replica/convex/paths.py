"""Paths to a point of a convex loss whose iteration does not end where a solution is.

A solution is followed in the logarithms of alpha and lambda, from the nearest point that is solved,
or from an easy penalty: each step starts from where the straight line through the last two
solutions leads, in the coordinates in which an iteration extrapolates; steps that fail are halved.
Solutions on the way are rough, on panels that are fitted to where they start.
"""

from collections.abc import Iterator

import numpy as np

from solvers.resources import GivenUp
from solvers.results import Rows, Status

from ..equivalence import tables
from ..saddle_point import Overlaps
from .coordinates import Coordinates
from .equations import Equations
from .evaluation import Evaluation, Task
from .label_tables import shared_tables
from .panels import fitted_table, has_panels


def ends_of_paths(task: Task, found: Evaluation, row: Rows) -> Iterator[Overlaps]:
    """Rough overlaps of one point, by every path that leads to it.  Raises ``GivenUp`` past the
    deadline."""
    for start, near in _starts(task, found, row):
        if (end := _along(task.at(row), start, near)) is not None:
            yield end


def _starts(task: Task, found: Evaluation, row: Rows) -> Iterator[tuple[Task, Overlaps]]:
    """Points from which a path may lead to one, with their overlaps: the nearest that is solved,
    and one at an easy penalty, roughly."""
    solved = np.flatnonzero(found.converged)
    if solved.size:
        places = np.log([task.alpha, task.lam])
        away = np.abs(places[:, solved] - places[:, row]).max(axis=0)
        nearest = solved[[np.argmin(away)]]
        yield task.at(nearest), found.overlaps_at(nearest)
    for lam in (0.1, 100.0, 0.01):
        there = task.at(row)._replace(lam=np.array([lam]))
        if (near := _rough(there, there.ridge().overlaps)) is not None:
            yield there, near[0]
            return


def _along(task: Task, begin: Task, near: Overlaps) -> Overlaps | None:
    """Rough overlaps of one point, along a path from where they are ``near`` another's."""
    start, end = (np.log([each.alpha[0], each.lam[0]]) for each in (begin, task))
    length = np.abs(end - start).max()
    coordinates, done, step = Coordinates(next(tables(task.model))), 0.0, np.log(4)
    at = coordinates.pack(near)
    slope = np.zeros_like(at)
    while done < length:
        ahead = min(done + step, length)
        alpha, lam = np.exp(start + (end - start) * ahead / length)[:, None]
        guess = coordinates.unpack(at + slope * (ahead - done))
        if (trial := _rough(task._replace(alpha=alpha, lam=lam), guess)) is not None:
            near, iterations = trial
            before, at = at, coordinates.pack(near)
            slope, done = (at - before) / (ahead - done), ahead
            step *= 2 if iterations <= 6 else 1
        elif (step := (ahead - done) / 2) < np.log(1.05):
            return None  # it would take too many
    # once more, on nodes that are fitted to a solution there
    last = _rough(task, near)
    return None if last is None else last[0]


def _rough(task: Task, near: Overlaps) -> tuple[Overlaps, int] | None:
    """Rough overlaps of one point, on nodes that are fitted to those near it, and the iterations
    they took; None where there are none, or would be too many nodes."""
    shared = None if has_panels(task.model) else shared_tables(task.model, task.folded)
    try:
        given = next(shared, None) if shared else fitted_table(task, near, 1e-2, order=7)
    except GivenUp as given_up:
        if given_up.status is Status.TIME:
            raise
        given = None
    if given is None:
        return None
    tol = 1e-5  # of the unknowns: layers are where they say
    overlaps, result = Equations(given, task.loss).solve(task.alpha, task.lam, near, tol=tol)
    return (overlaps, int(result.iterations[0])) if result.residual[0] <= tol else None
