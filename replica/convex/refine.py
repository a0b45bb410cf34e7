"""Solution of points of a convex loss, each on nodes that resolve it.  docs/theory.md 6

Points are solved on common tables of growing size.  The error estimate is the difference of two
successive solutions.  Points for which the next table is not much more accurate continue on panels
(``panels``).  Panels are fitted to the overlaps of a few neighbouring points near their solutions,
and the equations are solved on their nodes.  Then panels are fitted again, more accurately and to
the last solutions, until two successive solutions agree.  If the iteration does not converge, a
solution is followed along a path.

Continuation.  The solution is followed in the logarithms of alpha and lambda, from the nearest
solved point or from an easy penalty.  Each step starts from the linear extrapolation of the last
two solutions, in the unconstrained coordinates; steps that fail are halved.  Solutions on the path
are rough, on panels fitted to their starting points.

Fixed nodes.  A new choice of nodes changes errors by the tolerance of the quadrature.  On the nodes
of one point errors near it are smooth in all parameters, so that differences give derivatives.

Bias common to all neurons.  At a solution of the saddle point the training objective over p,

    E = (alpha / beta) E l(y, x*) + lam sum_b q2_b / 2

(where l is half the square for the square loss), is stationary in all overlaps.  The bias t enters
only through the features' moments, in the law of the local field in the energy (alpha / beta) E
[(x* - omega)^2 / (2V) + l(y, x*)].  The derivative of the energy is -s in omega, and -s^2 / 2 in V.
As E xi s is E s' times the coefficient of xi in omega,

    dE/dt = -(alpha / beta) E[dC s + dP.(tau s - P s') + d(S^2) s' / 2 + dV s^2 / 2],

where d is d/dt at fixed overlaps.  docs/theory.md 6, 7
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from typing import Any, TypeVar

import numpy as np

from solvers.fixed_point import COMBINED
from solvers.resources import GivenUp, deadline, time_left
from solvers.results import Array, Indices, Status, largest_modulus

from ..equivalence import Table, tables, tabulate_at
from ..problem import Model
from ..saddle_point import (
    SMALLEST_ERROR,
    Evaluation,
    Field,
    Overlaps,
    Scores,
    field_at_nodes,
    relative_change,
    ridge,
)
from .equations import COORDINATE_TOLERANCE, LOSS_RESIDUAL_TOLERANCE, Coordinates, Equations, Task
from .label_tables import (
    LabelTable,
    has_panels,
    has_steps,
    labels_at,
    shared_table,
    shared_tables,
    tau_rule,
)
from .panels import fitted_rules, fitted_table

Nodes = TypeVar("Nodes")  # a table, or another object that has one


def solve_on_growing_tables(
    found: Evaluation,
    rows: Indices,
    table_for: Callable[[int, Indices], Nodes | None],
    solve_on: Callable[[Nodes, Indices, Nodes | None], Indices],
    level: int = 0,
    last: Nodes | None = None,
) -> None:
    """Solve points on larger and larger tables, until no point needs a larger one.

    Parameters
    ----------
    found : Evaluation
        The results, in which points that take too long or too many nodes are flagged.
    rows : (R,)
    table_for : callable (level, rows) -> table, or an object with one
        None past the last level.  It may raise ``GivenUp``.
    solve_on : callable (table, rows, last table or None) -> rows
        Stores results in ``found`` and returns the points that need a larger table.  It may raise
        ``GivenUp`` or ``LinAlgError``.
    level, last : int, table
        Level of the first table, and the table before it.
    """
    while rows.size:
        try:
            table = table_for(level, rows)
            if table is None:
                return
            rows = solve_on(table, rows, last)
        except (GivenUp, np.linalg.LinAlgError) as error:
            status = error.status if isinstance(error, GivenUp) else Status.NOT_FINITE
            if status is not Status.TIME and rows.size > 1:  # half of the points need fewer nodes
                for half in np.array_split(rows, 2):
                    solve_on_growing_tables(found, half, table_for, solve_on, level, last)
            else:
                found.flag(rows[found.open[rows]], status)
            return
        level, last = level + 1, table


def training_objective(
    train_loss: Array, overlaps: Overlaps, alpha: Array, lam: Array, beta: float
) -> Array:
    """Training objective E over p, (P,), for a mean training loss (P,)."""
    return alpha / beta * train_loss + 0.5 * lam * overlaps.q2.sum(axis=1)


def slope_in_bias(
    model: Model, table: Table, alpha: Array, kinds: Overlaps, score: Callable[[Field], Scores]
) -> Array:
    """Derivative dE/dt (P,) of the objective in the bias, at solutions for the ``kinds`` of neurons
    of a ``table``.

    ``score`` averages the score given a local field.
    """
    overlaps = ridge.overlaps_of_groups(table, kinds)

    def field_at(bias: float) -> Field:
        # groups are not merged: they may respond alike at one bias only
        shifted = model.with_bias(bias)
        new_table = tabulate_at(shifted, table.places, table.weights, target=False, merged=False)
        return field_at_nodes(ridge.responses_of(new_table), overlaps)

    step = 1e-4  # of central differences: error 1e-8, rounding 1e-12
    with np.errstate(all="ignore"):  # points that did not converge may have any values
        field = field_at_nodes(ridge.responses_of(table), kinds)
        s, below, above = score(field), field_at(-step), field_at(step)
        C, P, S2, V = ((y - x) / (2 * step) for x, y in zip(below, above, strict=True))
        integrand = (
            C * s.mean + (P * s.p_hat_term(field)).sum(-1) - S2 * s.slope / 2 + V * s.square / 2
        )
        return np.asarray(-alpha / model.beta * (integrand @ table.weights))


def path_ends(task: Task, found: Evaluation, row: Indices) -> Iterator[Overlaps]:
    """Iterate over rough overlaps of one point, one for every path to it.  Raises ``GivenUp`` past
    the deadline."""
    for start, overlaps in _path_starts(task, found, row):
        if (end := _follow_path(task.select(row), start, overlaps)) is not None:
            yield end


def _path_starts(task: Task, found: Evaluation, row: Indices) -> Iterator[tuple[Task, Overlaps]]:
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
    shared = None if has_panels(task.model) else shared_tables(task.model)
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
        for i in range(0, len(rows), 8):
            _solve_on_fitted_panels(task, found, rows[i : i + 8])
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


def _solve_on_shared_tables(task: Task, found: Evaluation, rows: Indices) -> None:
    """Solve points on common tables, as long as each table is much more accurate than the last."""
    error = np.full(len(task.alpha), 0.02)  # a guess for the first table

    def equations(level: int, rows: Indices) -> Equations | None:
        label_tables = shared_tables(task.model)  # which are cached
        given = next(islice(label_tables, level, None), None)
        return None if given is None else Equations(given, task.loss)

    def solve_on(given: Equations, rows: Indices, last: Equations | None) -> Indices:
        is_new, previous = ~found.converged[rows], error[rows]
        _solve_on_table(task, found, given, rows, last)
        current, unfinished = found.quadrature_error[rows], found.open[rows]
        if has_panels(task.model):  # where the error falls by less, panels are better
            unfinished &= found.converged[rows] & (is_new | (current < 0.2 * previous))
        error[rows] = np.where(is_new, previous, current)
        return rows[unfinished]

    solve_on_growing_tables(found, rows, equations, solve_on)


def _solve_on_fitted_panels(task: Task, found: Evaluation, rows: Indices) -> None:
    """Solve points on panels fitted to all of them, ever more accurately.

    The points are divided into halves if the panels have too many nodes.
    """

    def equations(level: int, rows: Indices) -> Equations | None:
        if level == len(FITS):
            return None
        accuracy, order = FITS[level]
        given = fitted_table(task.select(rows), found.overlaps_at(rows), accuracy * task.tol, order)
        return Equations(given, task.loss)

    solve_on_growing_tables(found, rows, equations, partial(_solve_on_table, task, found))


def _solve_on_table(
    task: Task, found: Evaluation, equations: Equations, rows: Indices, last: Equations | None
) -> Indices:
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
        found.history = np.zeros((len(found.open), COMBINED, 2, count))
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
    subtask: Task,
    found: Evaluation,
    rows: Indices,
    equations: Equations,
    previous: dict[str, Array],
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
    if subtask.model.train_bias:
        slope = slope_in_bias(subtask.model, table, subtask.alpha, overlaps, equations.scores)
        found.store(rows, slope=slope)
    power = SMALLEST_ERROR * table.label_power.sum()
    floor: dict[str, Any] = {"test_error": power, "train_error": power, "loss_error": 0.0}
    floor["train_loss"] = 1e-2 * errors["loss_error"]
    with np.errstate(all="ignore"):
        changes = [relative_change(previous[name], errors[name], floor[name]) for name in errors]
        return np.asarray(np.max(changes, axis=0))


TIGHT_TOLERANCE = 1e-11  # estimated error of a coordinate, for differences over some thousandths


def errors_on_fixed_nodes(task: Task) -> Callable[[Task], Array]:
    """Function of tasks near ``task``, of one point each, that returns the test and training
    error (2,) on the nodes that resolve the point of ``task``.

    NaN where a point does not converge.

    Raises
    ------
    GivenUp
        Past the deadline.
    """
    unknown = np.full(2, np.nan)
    evaluation = solve_convex(task, time_left())
    overlaps = evaluation.overlaps_at(slice(None))
    try:
        if not evaluation.converged[0]:
            raise GivenUp(evaluation.status[0])
        equations_of = _held_equations(task, overlaps, evaluation.nodes[0])
    except GivenUp as given_up:
        if given_up.status is Status.TIME:
            raise
        return lambda near: unknown
    start, _ = equations_of(task.model).solve(task.alpha, task.lam, overlaps, tol=TIGHT_TOLERANCE)

    def errors(near: Task) -> Array:
        equations = equations_of(near.model)
        if equations.table.mu1.shape[0] != start.V2.shape[1]:
            return unknown  # groups that responded alike no longer do
        overlaps, result = equations.solve(near.alpha, near.lam, start, tol=TIGHT_TOLERANCE)
        errors_by_name = equations.errors(overlaps)
        pair = errors_by_name["test_error"], errors_by_name["train_error"]
        return np.where(result.converged, pair, np.nan)[:, 0]

    return errors


def _held_equations(task: Task, overlaps: Overlaps, nodes: int) -> Callable[[Model], Equations]:
    """Equations of a model near that of ``task`` on the nodes of the task, as a function of the
    model.

    Nodes of kappa are fixed; nodes of tau follow the target's kinks.
    """
    model, loss = task.model, task.loss
    if has_panels(model):
        order = 15  # nodes of a panel along the proximal map
        places, weights, tau = fitted_rules(task, overlaps, 0.01 * task.tol, order)
        # the rule over tau that follows the target's kinks is the finest one
        follows_kinks, level = has_steps(model) or model.labels.combined_mean.planes, 4
    else:
        tables = enumerate(shared_table(model, level) for level in count())
        level, given = next((i, x) for i, x in tables if x and x.table.weights.size == nodes)
        places, weights, order = given.table.places, given.table.weights, given.labels.order
        follows_kinks = True

    def equations(model: Model) -> Equations:
        table = tabulate_at(model, places, weights)
        over_tau = tau_rule(model, places, level) if follows_kinks else tau
        return Equations(LabelTable(table, labels_at(model, places, over_tau, order)), loss)

    return equations
