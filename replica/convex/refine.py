"""Points of a convex loss, each on the nodes that resolve it.  docs/theory.md 6

Points are solved on tables that all share, each larger than the last; what two successive solutions
differ by is the estimate of the error.  Points for which the next one is not much more accurate go
on to panels: they are fitted to the overlaps of a few neighbours near their solutions (``panels``),
their nodes held fixed, and the equations solved on them; then they are fitted anew, more closely
and to the last solutions, until two successive ones agree.  Where no solution is near, one is
followed along a path (``paths``).
"""

from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from solvers.resources import GivenUp, deadline
from solvers.results import Array, Rows, largest_modulus

from ..saddle_point import SMALLEST_ERROR, Overlaps, relative_change
from .common_bias import slope_in_bias
from .equations import COORDINATE_TOLERANCE, LOSS_RESIDUAL_TOLERANCE, MEMORY, Equations
from .evaluation import Evaluation, Task, on_growing_tables
from .label_tables import shared_tables
from .panels import fitted_table, has_panels
from .paths import ends_of_paths

LOSS_QUADRATURE_TOLERANCE = 1e-6  # promised of every loss but the square
# Panels are fitted to these accuracies, over the tolerance, one after the other until the error is
# within it, the last to solutions of its own; beside each, the nodes of a panel along a proximal
# map.
FITS = ((0.3, 11), (0.01, 19), (1e-3, 27), (1e-3, 27))


def solve_convex(task: Task, time_limit: float) -> Evaluation:
    """The points of a task, each to its tolerance; those that need a path are given up after
    ``time_limit`` seconds each."""
    alpha, lam, panels = task.alpha, task.lam, has_panels(task.model)
    found, rows = Evaluation(len(alpha)), np.arange(len(alpha))
    start = task.ridge()
    found.put(rows, overlaps=start.overlaps, conjugates=start.conjugates)
    _on_shared_tables(task, found, rows)
    if panels:
        rows = np.flatnonzero(found.open & found.converged)
        # neighbours have their layers at nearly the same places
        rows = rows[np.lexsort((alpha[rows], lam[rows]))]
        # with more points panels have many nodes that most need not, with fewer numpy's overhead is
        # most of the time
        for few in np.split(rows, range(8, len(rows), 8)):
            _on_fitted_panels(task, found, few)
    solve_near = _on_fitted_panels if panels else _on_shared_tables
    for row in np.flatnonzero(found.open & ~found.converged)[:, None]:
        try:
            with deadline(time_limit):
                for near in ends_of_paths(task, found, row):
                    found.put(row, overlaps=near)
                    solve_near(task, found, row)
                    if found.converged[row[0]] or not found.open[row[0]]:
                        break
        except GivenUp as given_up:
            found.flag(row, given_up.status)
    return found


def _on_shared_tables(task: Task, found: Evaluation, rows: Rows) -> None:
    """Solve points on the tables that all share, as long as each is much better than the last."""
    error = np.full(len(task.alpha), 0.02)  # that of the first table is not known

    def equations(level: int, rows: Rows) -> Equations | None:
        shared = shared_tables(task.model, task.folded)  # they are kept
        given = next(islice(shared, level, None), None)
        return None if given is None else Equations(given, task.loss)

    def solve_on(given: Equations, rows: Rows, last: Equations | None) -> Rows:
        new, before = ~found.converged[rows], error[rows]
        _solve_on(task, found, given, rows, last)
        now, on = found.quadrature_error[rows], found.open[rows]
        if has_panels(task.model):  # on them the error falls to less than this part of the last
            on &= found.converged[rows] & (new | (now < 0.2 * before))
        error[rows] = np.where(new, before, now)
        return rows[on]

    on_growing_tables(found, rows, equations, solve_on)


def _on_fitted_panels(task: Task, found: Evaluation, rows: Rows) -> None:
    """Solve points on panels that are fitted to all of them, ever more closely; of half of them at
    a time where these would have too many nodes."""

    def equations(level: int, rows: Rows) -> Equations | None:
        if level == len(FITS):
            return None
        accuracy, order = FITS[level]
        given = fitted_table(task.at(rows), found.overlaps_at(rows), accuracy * task.tol, order)
        return Equations(given, task.loss)

    on_growing_tables(found, rows, equations, partial(_solve_on, task, found))


def _solve_on(
    task: Task, found: Evaluation, equations: Equations, rows: Rows, last: Equations | None
) -> Rows:
    """Solve points that are ``found`` on the ``last`` table on the next: those that may go on.

    What that changed is their quadrature error: the largest change of a coordinate or, where these
    agree, of a test or training error relative to itself.
    """
    part, before = task.at(rows), found.overlaps_at(rows)
    close = min(1e-2 * task.tol, COORDINATE_TOLERANCE)
    pack = equations.coordinates.pack
    start = pack(before)
    count = start.shape[1]  # mu_0 that are dependent on one table need not be on another
    if found.past is None or found.past.shape[3] != count:
        found.past = np.zeros((len(found.open), MEMORY, 2, count))
    past = found.past[rows]
    overlaps, result = equations.solve(part.alpha, part.lam, before, past, tol=close)
    found.past[rows] = past
    solved = result.residual <= LOSS_RESIDUAL_TOLERANCE
    with np.errstate(all="ignore"):
        moved = largest_modulus(pack(overlaps) - start)
    compared = found.converged[rows] & solved & (last is not None)
    change = np.where(compared, moved, np.inf)
    found.put(
        rows,
        overlaps=overlaps,
        converged=solved,
        residual=result.residual,
        iterations=result.iterations,
        nodes=equations.table.weights.size,
    )
    near = np.flatnonzero(change <= task.tol)
    if last is not None and near.size:
        was = last.errors(Overlaps(*(each[near] for each in before)))
        changed = _measured(part.at(near), found, rows[near], equations, was)
        change[near] = np.maximum(change[near], changed)
    error = 3 * change  # two tables may miss nearly the same
    found.put(rows, quadrature_error=error, open=~(solved & (error <= task.tol)))
    return rows[found.open[rows] & found.converged[rows]]


def _measured(
    part: Task, found: Evaluation, rows: Rows, equations: Equations, was: dict[str, Array]
) -> Array:
    """Put down conjugates, errors, losses and the slope in the bias of points that are solved.

    By how much an error differs from what it ``was`` at most, (R,), relative to itself; as sums may
    cancel, or vanish, to no less than a part of the labels' power, or, of the training loss, of the
    loss on new samples.
    """
    overlaps, table = found.overlaps_at(rows), equations.table
    _, conjugates, _ = equations.update(part.alpha, part.lam, overlaps)
    errors = equations.errors(overlaps)
    found.put(rows, conjugates=conjugates, **errors)
    points = found.points_at(rows)
    slope = slope_in_bias(part.model, table, part.alpha, points, equations.scores)
    found.put(rows, slope=slope)
    power = SMALLEST_ERROR * (table.weights @ (table.power + table.noise))
    least: dict[str, Any] = {"test_error": power, "train_error": power, "loss_error": 0.0}
    least["train_loss"] = 1e-2 * errors["loss_error"]
    with np.errstate(all="ignore"):
        changes = [relative_change(was[name], errors[name], least[name]) for name in errors]
        return np.asarray(np.max(changes, axis=0))
