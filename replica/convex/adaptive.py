"""Points of a convex loss, each on the nodes that resolve it.  docs/theory.md 6

Points are solved on tables that all share, each larger than the last; what two successive solutions
differ by is the estimate of the error.  A point that the next one is not expected to resolve goes
on to panels of its own: they are fitted to overlaps near the solution (``panels``), their nodes
held fixed, and the equations solved on them; then they are fitted anew, more closely and to the
last solution, until two successive ones agree.  Where no solution is near, one is followed along a
path from a point that is solved, or from an easy penalty.
"""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from solvers.results import Array, Rows, Status, largest

from ..equivalence import table_at
from ..problem import Model
from ..saddle_point import Overlaps, relative_change, ridge
from .averages import Losses, scores
from .common_bias import slope_in_bias
from .coordinates import Coordinates
from .evaluation import Evaluation, GivenUp, Task, assign
from .label_tables import LabelTable, shared_tables
from .losses import Loss
from .panels import fitted_table, has_panels
from .solve import LOSS_RESIDUAL_TOLERANCE, solve_points

LOSS_QUADRATURE_TOLERANCE = 1e-6  # promised of every loss but the square
# Panels are fitted along a path to this accuracy, with so many nodes a panel along a proximal map,
# and not with Kronrod's;
ROUGH_FIT = 1e-2, 7, False
# at its end to these, over the tolerance, one after the other until a finer one changes the
# solution by less than that.
FITS = (0.3, 9, False), (0.03, 13, False), (0.003, 19, True), (3e-4, 27, False)
ROUGH_TOLERANCE = 1e-5  # of the unknowns along a path: layers are where they say
# Penalties from which a path may start, and the longest steps of m there.
EASY = ((0.1, 2.0), (0.1, 0.3), (100.0, 2.0), (0.01, 0.3))
FACTOR = 4.0  # between the penalties of a path, at first
FEW = 6  # passes: the next step may be twice as long
SHORTEST = 1.05  # the same at least: nearer ones would take too many
CLOSE = 1e-2  # tolerance of the unknowns, of that of the quadrature
COARSE = 0.02  # error of the first shared table, and
GAIN = 0.2  # of the next ones over those before: of panels it is better
# Errors are sums that may cancel, or vanish: they are compared with no less than these parts, of
# squared errors of the labels' power, and of the training loss of the loss on new samples.
SMALLEST_SQUARE, SMALLEST_TRAIN_LOSS = 1e-4, 1e-2


def solve_convex(
    model: Model, alpha: Array, lam: Array, loss: Loss, tol: float, time_limit: float
) -> Evaluation:
    """The points (alpha[i], lam[i]), arrays (P,), to the quadrature tolerance ``tol``.

    Points that take longer than ``time_limit`` seconds each, on average over those that are solved
    together, are given up.
    """
    task = Task(model, loss, alpha, lam, time.monotonic() + time_limit * len(alpha))
    found, rows = _start(task), np.arange(len(alpha))
    _on_shared_tables(task, found, rows, tol)
    solve_near = _on_own_panels if has_panels(model) else _on_shared_tables
    rows = np.flatnonzero(found.converged & ~(found.quadrature_error <= tol))
    if rows.size and has_panels(model):
        _on_own_panels(task, found, rows, tol)
    for row in np.flatnonzero(found.points.status == Status.NO_PROGRESS)[:, None]:
        alone = task._replace(deadline=min(task.deadline, time.monotonic() + time_limit))
        if _follow(alone, found, row):
            solve_near(alone, found, row, tol)
    return found


def _start(task: Task) -> Evaluation:
    """Ridge regression's overlaps as those to start from, with errors that are not known."""
    table = table_at(task.model, 0)
    assert table is not None
    points = ridge.solve_points(table, task.alpha, task.lam)
    points.status[:] = Status.NO_PROGRESS
    unknown, none = np.full(len(task.alpha), np.inf), np.zeros(len(task.alpha))
    losses = Losses(*(np.full_like(none, np.nan) for _ in Losses._fields))
    return Evaluation(points, losses, unknown.copy(), unknown, none.astype(int), none.copy(), none)


def _on_shared_tables(task: Task, found: Evaluation, rows: Rows, tol: float) -> None:
    """Solve points on the tables that all share, as long as the next is expected to do."""
    error = np.full(len(task.alpha), COARSE)
    try:
        for given in shared_tables(task.model, task.folded):
            new = ~found.converged
            _solve_on(given, task, found, rows, tol)
            now = found.quadrature_error
            on = ~(found.converged & (now <= tol))
            if has_panels(task.model):
                on &= found.converged & (new | (now < GAIN * error))
            error = np.where(new, error, now)
            rows = rows[on[rows]]
            if not rows.size:
                return
    except GivenUp as given_up:
        found.points.status[rows] = given_up.status


def _on_own_panels(task: Task, found: Evaluation, rows: Rows, tol: float) -> None:
    """Solve points on panels that are fitted to all of them, ever more closely; of half of them at
    a time where these would have too many nodes."""
    try:
        for accuracy, order, kronrod in FITS:
            part, overlaps = task.at(rows), found.at(rows).points.overlaps
            given = fitted_table(part, overlaps, accuracy * tol, order, kronrod)
            _solve_on(given, task, found, rows, tol)
            rows = rows[found.converged[rows] & ~(found.quadrature_error[rows] <= tol)]
            if not rows.size:
                return
    except GivenUp as given_up:
        if given_up.status is Status.MEMORY and rows.size > 1:
            for half in np.array_split(rows, 2):
                _on_own_panels(task, found, half, tol)
        else:
            found.points.status[rows] = given_up.status


def _solve_on(given: LabelTable, task: Task, found: Evaluation, rows: Rows, tol: float) -> None:
    """Solve points that are ``found`` on one table on the next, and say what that changed."""
    before = found.at(rows)
    close = min(CLOSE * tol, LOSS_RESIDUAL_TOLERANCE)
    after = _solved(task.at(rows), given, before.points.overlaps, tol=close)
    change = np.where(before.converged, difference(given, before, after), np.inf)
    assign(found, rows, replace(after, quadrature_error=change))


def difference(given: LabelTable, first: Evaluation, second: Evaluation) -> Array:
    """How far solutions of the same points on two tables are apart, (P,), the second on the one
    that is ``given``: the largest change of a coordinate, or of an error relative to itself."""
    table, coordinates = given.table, Coordinates(given.table)
    power = table.weights @ (table.power + table.noise)
    with np.errstate(all="ignore"):
        before, after = (coordinates.pack(each.points.overlaps) for each in (first, second))
        squares = [
            (first.points.errors.test, second.points.errors.test),
            (first.losses.train_square, second.losses.train_square),
        ]
        changes = [relative_change(*pair, SMALLEST_SQUARE * power) for pair in squares]
        least = SMALLEST_TRAIN_LOSS * second.losses.test
        changes.append(relative_change(first.losses.train, second.losses.train, least))
        changes.append(relative_change(first.losses.test, second.losses.test, 0.0))
        return np.asarray(np.max([largest(before - after), *changes], axis=0))


def _solved(task: Task, given: LabelTable, start: Overlaps, **options: Any) -> Evaluation:
    """Points on one table, whose error is not known."""
    points, losses = solve_points(task.on(given), start, check=task.check_time, **options)
    points.status[points.residual <= LOSS_RESIDUAL_TOLERANCE] = Status.CONVERGED
    points.status[~(points.residual <= LOSS_RESIDUAL_TOLERANCE)] = Status.NO_PROGRESS
    score = partial(scores, given.labels, task.loss)
    slope = slope_in_bias(task.model, given.table, task.alpha, points, score)
    unknown, none = np.full(len(slope), np.inf), np.zeros(len(slope))
    nodes = np.full(len(slope), given.table.weights.size)
    return Evaluation(points, losses, points.residual, unknown, nodes, slope, none)


def _follow(task: Task, found: Evaluation, row: Rows) -> bool:
    """Put overlaps near the solution of one point where those it starts from are: followed from the
    nearest point that is solved, or an easy penalty.  Whether they were found."""
    try:
        for begin in _nearest, _easy:
            start = begin(task, found, row)
            near = None if start is None else _along(task.at(row), *start)
            if near is not None:
                assign(found, row, near)
                return True
    except GivenUp as given_up:
        found.points.status[row] = given_up.status
    return False


def _along(task: Task, begin: Task, near: Evaluation) -> Evaluation | None:
    """A rough solution of one point, along a path from where it is ``near`` another's."""
    start, end = (np.log([each.alpha[0], each.lam[0]]) for each in (begin, task))
    length = np.abs(end - start).max()
    done, step = 0.0, np.log(FACTOR)
    while done < length:
        ahead = min(done + step, length)
        alpha, lam = np.exp(start + (end - start) * ahead / length)[:, None]
        trial = _rough(task._replace(alpha=alpha, lam=lam), near.points.overlaps)
        if trial is not None:
            done, near = ahead, trial
            step *= 2 if trial.points.iterations[0] <= FEW else 1
        elif (step := (ahead - done) / 2) < np.log(SHORTEST):
            return None
    return near


def _rough(task: Task, near: Overlaps, longest_step: float = 2.0) -> Evaluation | None:
    """A rough solution of one point on nodes that are fitted to overlaps near it, if there is
    one."""
    given = _rough_table(task, near)
    if given is None:
        return None
    found = _solved(task, given, near, tol=ROUGH_TOLERANCE, longest_step=longest_step)
    return found if found.residual[0] <= ROUGH_TOLERANCE else None


def _rough_table(task: Task, near: Overlaps) -> LabelTable | None:
    """Rough nodes for overlaps near one point; None where they would be too many."""
    if not has_panels(task.model):
        return next(shared_tables(task.model, task.folded), None)
    try:
        return fitted_table(task, near, *ROUGH_FIT)
    except GivenUp as given_up:
        if given_up.status is Status.TIME:
            raise
        return None


def _nearest(task: Task, found: Evaluation, row: Rows) -> tuple[Task, Evaluation] | None:
    """The solved point that is nearest to one, and its solution."""
    solved = np.flatnonzero(found.converged)
    if not solved.size:
        return None
    places = np.log([task.alpha, task.lam])
    away = np.abs(places[:, solved] - places[:, row]).max(axis=0)
    nearest = solved[[np.argmin(away)]]
    return task.at(nearest), found.at(nearest)


def _easy(task: Task, _: Evaluation, row: Rows) -> tuple[Task, Evaluation] | None:
    """A point at an easy penalty in the place of its own, and its solution, roughly."""
    for lam, longest_step in EASY:
        there = task.at(row)._replace(lam=np.array([lam]))
        near = _rough(there, _start(there).points.overlaps, longest_step)
        if near is not None:
            return there, near
    return None
