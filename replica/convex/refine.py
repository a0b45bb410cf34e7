"""Points of a convex loss, each on the nodes that resolve it.  docs/theory.md 6

Points are solved on tables that all share, each larger than the last; what two successive solutions
differ by is the estimate of the error.  Points for which the next one is not much more accurate go
on to panels: they are fitted to the overlaps of a few neighbours near their solutions (``panels``),
their nodes held fixed, and the equations solved on them; then they are fitted anew, more closely
and to the last solutions, until two successive ones agree.  Where no solution is near, one is
followed along a path (``paths``).
"""

import time

import numpy as np

from solvers.results import Array, Rows, Status, largest

from ..problem import Model
from ..saddle_point import Overlaps, relative_change
from .averages import Losses
from .common_bias import slope_in_bias
from .equations import Equations
from .evaluation import Evaluation, GivenUp, Task, assign
from .label_tables import shared_tables
from .losses import Loss
from .panels import fitted_table, has_panels
from .paths import ends_of_paths
from .solve import COORDINATE_TOLERANCE, LOSS_RESIDUAL_TOLERANCE, solve_points

LOSS_QUADRATURE_TOLERANCE = 1e-6  # promised of every loss but the square
# Panels are fitted to these accuracies, over the tolerance, one after the other until the error is
# within it; beside each, the nodes of a panel along a proximal map.
FITS = ((0.3, 11), (0.01, 19), (1e-3, 27))
# Two tables may miss nearly the same: their error is taken to be larger than what they differ by.
SAFETY = 3.0
# Points that share panels: with more of them these have many nodes that most need not, with fewer
# numpy's overhead is most of the time.
TOGETHER = 8
CLOSE = 1e-2  # tolerance of the unknowns, of that of the quadrature
# On shared tables points stay while the error falls to less than this part of the last one, as it
# does on panels; that of the first table, which is not known, is taken to be
GAIN, COARSE = 0.2, 0.02
# What changes of errors are relative to is no less than these parts, as sums may cancel, or vanish:
# of a squared error that part of the labels' power, of the training loss that of the loss on new
# samples.
SMALLEST_SQUARE, SMALLEST_TRAIN_LOSS = 1e-4, 1e-2


def solve_convex(
    model: Model, alpha: Array, lam: Array, loss: Loss, tol: float, time_limit: float
) -> Evaluation:
    """The points (alpha[i], lam[i]), arrays (P,), to the quadrature tolerance ``tol``.

    Points that take longer than ``time_limit`` seconds each, on average over those that are solved
    together, are given up.
    """
    deadline = time.monotonic() + time_limit * len(alpha)
    task = Task(model, loss, alpha, lam, deadline, tol)
    found, rows = _start(task), np.arange(len(alpha))
    _on_shared_tables(task, found, rows)
    if has_panels(model):
        rows = np.flatnonzero(found.converged & ~(found.quadrature_error <= tol))
        # neighbours have their layers at nearly the same places
        rows = rows[np.lexsort((alpha[rows], lam[rows]))]
        for i in range(0, len(rows), TOGETHER):
            _on_fitted_panels(task, found, rows[i : i + TOGETHER])
    solve_near = _on_fitted_panels if has_panels(model) else _on_shared_tables
    for row in np.flatnonzero(found.points.status == Status.NO_PROGRESS)[:, None]:
        alone = task._replace(deadline=min(task.deadline, time.monotonic() + time_limit))
        try:
            for near in ends_of_paths(alone, found, row):
                assign(found.points.overlaps, row, near)
                solve_near(alone, found, row)
                if found.points.status[row[0]] is not Status.NO_PROGRESS:
                    break
        except GivenUp as given_up:
            found.points.status[row] = given_up.status
    return found


def _start(task: Task) -> Evaluation:
    """Ridge regression's overlaps as those to start from, with errors that are not known."""
    points = task.ridge()
    points.status[:], points.residual[:] = Status.NO_PROGRESS, np.inf
    unknown, none = np.full(len(task.alpha), np.inf), np.zeros(len(task.alpha))
    *losses, wrong = np.full((len(Losses._fields) + 1, len(none)), np.nan)
    nodes, slope, bias = none.astype(int), none, none.copy()
    return Evaluation(points, Losses(*losses), wrong, unknown, nodes, slope, bias)


def _on_shared_tables(task: Task, found: Evaluation, rows: Rows) -> None:
    """Solve points on the tables that all share, as long as each is much better than the last."""
    last, error = None, np.full(len(task.alpha), COARSE)
    try:
        for given in shared_tables(task.model, task.folded):
            equations = Equations(given, task.loss, task.check_time)
            new = ~found.converged
            _solve_on(task, found, rows, last, equations)
            now = found.quadrature_error
            on = ~(found.converged & (now <= task.tol))
            if has_panels(task.model):
                on &= found.converged & (new | (now < GAIN * error))
            error = np.where(new, error, now)
            last, rows = equations, rows[on[rows]]
            if not rows.size:
                return
    except GivenUp as given_up:
        found.points.status[rows] = given_up.status


def _on_fitted_panels(
    task: Task,
    found: Evaluation,
    rows: Rows,
    fits: tuple[tuple[float, int], ...] = FITS,
    last: Equations | None = None,
) -> None:
    """Solve points on panels that are fitted to all of them, ever more closely; of half of them at
    a time where these would have too many nodes."""
    done = 0
    try:
        for accuracy, order in fits:
            near = found.at(rows).points.overlaps
            given = fitted_table(task.at(rows), near, accuracy * task.tol, order)
            equations = Equations(given, task.loss, task.check_time)
            _solve_on(task, found, rows, last, equations)
            last, done = equations, done + 1
            rows = rows[found.converged[rows] & ~(found.quadrature_error[rows] <= task.tol)]
            if not rows.size:
                return
    except GivenUp as given_up:
        if given_up.status is Status.MEMORY and rows.size > 1:
            for half in np.array_split(rows, 2):
                _on_fitted_panels(task, found, half, fits[done:], last)
        else:
            found.points.status[rows] = given_up.status


def _solve_on(
    task: Task, found: Evaluation, rows: Rows, last: Equations | None, equations: Equations
) -> None:
    """Solve points that are ``found`` on the ``last`` table on the next.

    What that changed is their quadrature error: the largest change of a coordinate or, where these
    agree, of a test or training error relative to itself.
    """
    part, before = task.at(rows), found.at(rows).points.overlaps
    was_solved = found.converged[rows]
    close = min(CLOSE * task.tol, COORDINATE_TOLERANCE)
    overlaps, result = solve_points(equations, part.alpha, part.lam, before, tol=close)
    solved = result.residual <= LOSS_RESIDUAL_TOLERANCE
    pack = equations.coordinates.pack
    with np.errstate(all="ignore"):
        moved = largest(pack(overlaps) - pack(before))
    change = np.where(was_solved & solved & (last is not None), moved, np.inf)
    assign(found.points.overlaps, rows, overlaps)
    found.points.status[rows[solved]] = Status.CONVERGED
    found.points.status[rows[~solved]] = Status.NO_PROGRESS
    found.points.iterations[rows] = result.iterations
    found.points.residual[rows] = result.residual
    found.nodes[rows] = equations.table.weights.size
    found.quadrature_error[rows] = np.inf
    near = np.flatnonzero(change <= task.tol)
    if last is not None and near.size:
        _measure(part.at(near), found, rows[near], equations)
        was = last.errors(Overlaps(*(each[near] for each in before)))
        changed = _difference(equations, was, found.at(rows[near]))
        change[near] = np.maximum(change[near], changed)
    found.quadrature_error[rows] = SAFETY * change


def _measure(part: Task, found: Evaluation, rows: Rows, equations: Equations) -> None:
    """Conjugates, errors, losses and the slope in the bias of points that are solved."""
    points = found.at(rows).points
    _, conjugates = equations.update(part.alpha, part.lam, points.overlaps)
    test, losses = equations.errors(points.overlaps)
    points = points._replace(
        conjugates=conjugates, errors=points.errors._replace(test=test, train=losses.train_square)
    )
    slope = slope_in_bias(part.model, equations.table, part.alpha, points, equations.scores)
    assign(found.points, rows, points)
    assign(found.losses, rows, losses)
    found.slope[rows] = slope


def _difference(equations: Equations, was: tuple[Array, Losses], now: Evaluation) -> Array:
    """The largest change of an error, (R,), relative to itself."""
    table, (test, losses) = equations.table, was
    power = table.weights @ (table.power + table.noise)
    with np.errstate(all="ignore"):
        changes = [
            relative_change(test, now.points.errors.test, SMALLEST_SQUARE * power),
            relative_change(losses.train_square, now.losses.train_square, SMALLEST_SQUARE * power),
            relative_change(losses.train, now.losses.train, SMALLEST_TRAIN_LOSS * now.losses.test),
            relative_change(losses.test, now.losses.test, 0.0),
        ]
        return np.asarray(np.max(changes, axis=0))
