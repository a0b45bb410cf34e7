"""Solution of points of a convex loss, each on nodes that resolve it.  docs/theory.md 6

Points are solved on common tables of growing size.  The error estimate is the difference of two
successive solutions.  Points for which the next table is not much more accurate continue on panels
(``panels``).  Panels are fitted to the overlaps of a few neighbouring points near their solutions,
and the equations are solved on their nodes.  Then panels are fitted again, more accurately and to
the last solutions, until two successive solutions agree.  If the iteration does not converge, a
solution is followed along a path (``continuation``).
"""

from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from solvers.resources import GivenUp, deadline
from solvers.results import Array, Rows, largest_modulus

from ..saddle_point import SMALLEST_ERROR, Overlaps, relative_change
from .common_bias import slope_in_bias
from .continuation import path_ends
from .equations import COORDINATE_TOLERANCE, LOSS_RESIDUAL_TOLERANCE, MEMORY, Equations
from .evaluation import Evaluation, Task, solve_on_growing_tables
from .label_tables import shared_tables
from .panels import fitted_table, has_panels

LOSS_QUADRATURE_TOLERANCE = 1e-6  # promised accuracy for every loss but the square
# Accuracies of successive fits of panels, in units of the tolerance, and the nodes of a panel along
# a proximal map.  Fits stop once the error is within the tolerance.
FITS = ((0.3, 11), (0.01, 19), (1e-3, 27), (1e-3, 27))


def solve_convex(task: Task, time_limit: float) -> Evaluation:
    """Solve the points of a task to its tolerance.

    A point that needs a path is given up after ``time_limit`` seconds.
    """
    alpha, lam, panels = task.alpha, task.lam, has_panels(task.model)
    found, rows = Evaluation(len(alpha)), np.arange(len(alpha))
    start = task.ridge()
    found.store(rows, overlaps=start.overlaps, conjugates=start.conjugates)
    _solve_on_shared_tables(task, found, rows)
    if panels:
        rows = np.flatnonzero(found.open & found.converged)
        # neighbouring points have layers at nearly the same places
        rows = rows[np.lexsort((alpha[rows], lam[rows]))]
        # with more points, panels have many nodes that most points do not need; with fewer, numpy's
        # overhead dominates
        for block in np.split(rows, range(8, len(rows), 8)):
            _solve_on_fitted_panels(task, found, block)
    solve_near = _solve_on_fitted_panels if panels else _solve_on_shared_tables
    for row in np.flatnonzero(found.open & ~found.converged)[:, None]:
        try:
            with deadline(time_limit):
                for overlaps in path_ends(task, found, row):
                    found.store(row, overlaps=overlaps)
                    solve_near(task, found, row)
                    if found.converged[row[0]] or not found.open[row[0]]:
                        break
        except GivenUp as given_up:
            found.flag(row, given_up.status)
    return found


def _solve_on_shared_tables(task: Task, found: Evaluation, rows: Rows) -> None:
    """Solve points on common tables, as long as each table is much more accurate than the last."""
    error = np.full(len(task.alpha), 0.02)  # a guess for the first table

    def equations(level: int, rows: Rows) -> Equations | None:
        label_tables = shared_tables(task.model, task.folded)  # which are cached
        given = next(islice(label_tables, level, None), None)
        return None if given is None else Equations(given, task.loss)

    def solve_on(given: Equations, rows: Rows, last: Equations | None) -> Rows:
        is_new, previous = ~found.converged[rows], error[rows]
        _solve_on_table(task, found, given, rows, last)
        current, unfinished = found.quadrature_error[rows], found.open[rows]
        if has_panels(task.model):  # where the error falls by less, panels are better
            unfinished &= found.converged[rows] & (is_new | (current < 0.2 * previous))
        error[rows] = np.where(is_new, previous, current)
        return rows[unfinished]

    solve_on_growing_tables(found, rows, equations, solve_on)


def _solve_on_fitted_panels(task: Task, found: Evaluation, rows: Rows) -> None:
    """Solve points on panels fitted to all of them, ever more accurately.

    The points are divided into halves if the panels have too many nodes.
    """

    def equations(level: int, rows: Rows) -> Equations | None:
        if level == len(FITS):
            return None
        accuracy, order = FITS[level]
        given = fitted_table(task.select(rows), found.overlaps_at(rows), accuracy * task.tol, order)
        return Equations(given, task.loss)

    solve_on_growing_tables(found, rows, equations, partial(_solve_on_table, task, found))


def _solve_on_table(
    task: Task, found: Evaluation, equations: Equations, rows: Rows, last: Equations | None
) -> Rows:
    """Solve points on the next table, with their solutions on the ``last`` as guesses.

    Returns the points to refine further.  The quadrature error of a point is the largest change of
    a coordinate or, if this is small, of an error relative to itself.
    """
    part, guess = task.select(rows), found.overlaps_at(rows)
    tolerance = min(1e-2 * task.tol, COORDINATE_TOLERANCE)
    pack = equations.coordinates.pack
    start = pack(guess)
    count = start.shape[1]  # dependent mu_0 may be independent on another table
    if found.history is None or found.history.shape[3] != count:
        found.history = np.zeros((len(found.open), MEMORY, 2, count))
    history = found.history[rows]
    overlaps, result = equations.solve(part.alpha, part.lam, guess, history, tol=tolerance)
    found.history[rows] = history
    solved = result.residual <= LOSS_RESIDUAL_TOLERANCE
    with np.errstate(all="ignore"):
        coordinate_change = largest_modulus(pack(overlaps) - start)
    compared = found.converged[rows] & solved & (last is not None)
    change = np.where(compared, coordinate_change, np.inf)
    found.store(
        rows,
        overlaps=overlaps,
        converged=solved,
        residual=result.residual,
        iterations=result.iterations,
        nodes=equations.table.weights.size,
    )
    near = np.flatnonzero(change <= task.tol)
    if last is not None and near.size:
        previous = last.errors(Overlaps(*(values[near] for values in guess)))
        error_change = _store_errors(part.select(near), found, rows[near], equations, previous)
        change[near] = np.maximum(change[near], error_change)
    error = 3 * change  # two tables may have nearly the same error
    found.store(rows, quadrature_error=error, open=~(solved & (error <= task.tol)))
    return rows[found.open[rows] & found.converged[rows]]


def _store_errors(
    subtask: Task, found: Evaluation, rows: Rows, equations: Equations, previous: dict[str, Array]
) -> Array:
    """Store conjugates, errors, losses and the slope in the bias of solved points.

    Returns the largest relative change of an error from its ``previous`` value, (R,).  As sums may
    cancel or vanish, the change is relative to at least a fraction of the labels' power; for the
    training loss, of the loss on new samples.
    """
    overlaps, table = found.overlaps_at(rows), equations.table
    _, conjugates, _ = equations.update(subtask.alpha, subtask.lam, overlaps)
    errors = equations.errors(overlaps)
    found.store(rows, conjugates=conjugates, **errors)
    points = found.points_at(rows)
    slope = slope_in_bias(subtask.model, table, subtask.alpha, points, equations.scores)
    found.store(rows, slope=slope)
    power = SMALLEST_ERROR * (table.weights @ (table.power + table.noise))
    floor: dict[str, Any] = {"test_error": power, "train_error": power, "loss_error": 0.0}
    floor["train_loss"] = 1e-2 * errors["loss_error"]
    with np.errstate(all="ignore"):
        changes = [relative_change(previous[name], errors[name], floor[name]) for name in errors]
        return np.asarray(np.max(changes, axis=0))
