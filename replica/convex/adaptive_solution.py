"""Points of a convex loss: guesses, paths from solved points, nodes fitted to each.
docs/theory.md 6

Points are solved on common tables of growing size.  The error estimate is the difference of two
successive solutions.  Points that the finest table does not resolve continue on panels
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
from itertools import count, islice
from typing import Any

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
    solve_on_growing_tables,
)
from .equations import COORDINATE_TOLERANCE, LOSS_RESIDUAL_TOLERANCE, Coordinates, Equations, Task
from .label_tables import (
    LabelTable,
    has_jumps,
    has_panels,
    labels_at,
    shared_table,
    shared_tables,
    tau_rule,
)
from .panels import fitted_rules, fitted_table


def training_objective(
    train_loss: Array, overlaps: Overlaps, alpha: Array, lam: Array, beta: float
) -> Array:
    """Training objective E over p, (P,), for a mean training loss (P,)."""
    return alpha / beta * train_loss + 0.5 * lam * overlaps.q2.sum(axis=1)


# Biases scanned, two to a unit where the scale of pre-activations is 1.  Not evenly about 0, where
# symmetric problems are stationary without being lowest.
BIAS_SCAN = np.linspace(-8.0, 8.0, 33) + 0.1


@np.errstate(all="ignore")  # points that are not finite are flagged
def slope_in_bias(
    model: Model, table: Table, alpha: Array, kinds: Overlaps, score: Callable[[Field], Scores]
) -> Array:
    """Derivative dE/dt (P,) of the objective in the bias, at solutions for the ``kinds`` of neurons
    of a ``table``.

    ``score`` averages the score given a local field.
    """
    group_overlaps = ridge.overlaps_of_groups(table, kinds)

    def field_at(bias: float) -> Field:
        # groups are not merged: they may respond alike at one bias only
        shifted = model.with_bias(bias)
        biased_table = tabulate_at(shifted, table.places, table.weights, target=False, merged=False)
        return field_at_nodes(ridge.responses_of(biased_table), group_overlaps)

    bias_step = 1e-4  # of central differences: error 1e-8, rounding 1e-12
    field = field_at_nodes(ridge.responses_of(table), kinds)
    s, field_below, above = score(field), field_at(-bias_step), field_at(bias_step)
    dC, dP, S2, V = ((y - x) / (2 * bias_step) for x, y in zip(field_below, above, strict=True))
    bias_slope = (
        dC * s.mean + (dP * s.p_hat_term(field)).sum(-1) - S2 * s.slope / 2 + V * s.square / 2
    )
    return np.asarray(-alpha / model.beta * (bias_slope @ table.weights))


def path_ends(task: Task, evaluation: Evaluation, point: Indices) -> Iterator[Overlaps]:
    """Iterate over rough overlaps of one point, one for every path to it.  Raises ``GivenUp`` past
    the deadline."""
    for start_task, overlaps in _path_starts(task, evaluation, point):
        if (end_overlaps := _follow_path(task.select(point), start_task, overlaps)) is not None:
            yield end_overlaps


def _path_starts(task: Task, solved: Evaluation, point: Indices) -> Iterator[tuple[Task, Overlaps]]:
    """Starting points of paths to one point, with their overlaps: the nearest solved point, and a
    rough solution at an easy penalty."""
    solved_points = np.flatnonzero(solved.converged)
    if solved_points.size:
        log_parameters = np.log([task.alpha, task.lam])
        distance = np.abs(log_parameters[:, solved_points] - log_parameters[:, point]).max(axis=0)
        nearest_point = solved_points[[np.argmin(distance)]]
        yield task.select(nearest_point), solved.overlaps_at(nearest_point)
    for lam in (0.1, 100.0, 0.01):
        easy_task = task.select(point)._replace(lam=np.array([lam]))
        if (rough_start := _rough_solution(easy_task, easy_task.ridge().overlaps)) is not None:
            yield easy_task, rough_start[0]
            return


def _follow_path(task: Task, start_task: Task, path_overlaps: Overlaps) -> Overlaps | None:
    """Rough overlaps of one point, by continuation from the ``path_overlaps`` of ``start_task``."""
    log_start, log_end = (np.log([point.alpha[0], point.lam[0]]) for point in (start_task, task))
    path_length = np.abs(log_end - log_start).max()
    coordinates, path_travelled, path_step = Coordinates(next(tables(task.model))), 0.0, np.log(4)
    coordinate_vector = coordinates.pack(path_overlaps)
    path_slope = np.zeros_like(coordinate_vector)
    while path_travelled < path_length:
        path_target = min(path_travelled + path_step, path_length)
        alpha, lam = np.exp(log_start + (log_end - log_start) * path_target / path_length)[:, None]
        guess = coordinates.unpack(coordinate_vector + path_slope * (path_target - path_travelled))
        if (solution := _rough_solution(task._replace(alpha=alpha, lam=lam), guess)) is not None:
            path_overlaps, path_iterations = solution
            previous_vector, coordinate_vector = coordinate_vector, coordinates.pack(path_overlaps)
            path_slope = (coordinate_vector - previous_vector) / (path_target - path_travelled)
            path_travelled = path_target
            path_step *= 2 if path_iterations <= 6 else 1
        elif (path_step := (path_target - path_travelled) / 2) < np.log(1.05):
            return None  # it would take too many steps
    # once more, on nodes fitted to the solution at the end
    end_solution = _rough_solution(task, path_overlaps)
    return None if end_solution is None else end_solution[0]


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


LOSS_QUADRATURE_TOLERANCE = 1e-6  # promised accuracy for every loss but the square
# Accuracies of successive fits of panels, in units of the tolerance, and the nodes of a panel along
# a proximal map.  Fits stop once the error is within the tolerance.
FITS = ((0.3, 11), (0.01, 19), (1e-3, 27), (1e-3, 27))


@np.errstate(all="ignore")  # points that are not finite are flagged
def solve_convex(task: Task, time_limit: float) -> Evaluation:
    """Solve the points of a task to its tolerance.

    A point that needs a path is given up after ``time_limit`` seconds.
    """
    alpha, lam, on_panels = task.alpha, task.lam, has_panels(task.model)
    evaluation, point_rows = Evaluation(len(alpha)), np.arange(len(alpha))
    ridge_points = task.ridge()
    evaluation.store(point_rows, overlaps=ridge_points.overlaps, conjugates=ridge_points.conjugates)
    _solve_on_shared_tables(task, evaluation, point_rows)
    if on_panels:
        point_rows = np.flatnonzero(evaluation.open & evaluation.converged)
        # neighbouring points have layers at nearly the same places
        point_rows = point_rows[np.lexsort((alpha[point_rows], lam[point_rows]))]
        # with more points, panels have many nodes that most points do not need; with fewer, numpy's
        # overhead dominates
        for first_point in range(0, len(point_rows), 8):
            _solve_on_fitted_panels(task, evaluation, point_rows[first_point : first_point + 8])
    solve_near = _solve_on_fitted_panels if on_panels else _solve_on_shared_tables
    for point in np.flatnonzero(evaluation.open & ~evaluation.converged)[:, None]:
        try:
            with deadline(time_limit):
                for end_overlaps in path_ends(task, evaluation, point):
                    evaluation.store(point, overlaps=end_overlaps)
                    solve_near(task, evaluation, point)
                    if evaluation.converged[point[0]] or not evaluation.open[point[0]]:
                        break
        except GivenUp as given_up:
            evaluation.flag(point, given_up.status)
    return evaluation


def _solve_on_shared_tables(task: Task, evaluation: Evaluation, point_rows: Indices) -> None:
    """Solve points on common tables of growing size."""

    def solve_on(
        level: int, rows: Indices, last: Equations | None
    ) -> tuple[Equations | None, Indices]:
        label_tables = shared_tables(task.model, task.folded)  # which are cached
        label_table = next(islice(label_tables, level, None), None)
        if label_table is None:
            return None, rows[:0]
        table_equations = Equations(label_table, task.loss)
        return table_equations, _solve_on_table(task, evaluation, table_equations, rows, last)

    solve_on_growing_tables(evaluation, point_rows, solve_on)


def _solve_on_fitted_panels(task: Task, found: Evaluation, point_rows: Indices) -> None:
    """Solve points on panels fitted to all of them, ever more accurately.

    The points are divided into halves if the panels have too many nodes.
    """

    def solve_on(
        level: int, rows: Indices, last: Equations | None
    ) -> tuple[Equations | None, Indices]:
        if level == len(FITS):
            return None, rows[:0]
        accuracy, order = FITS[level]
        given = fitted_table(task.select(rows), found.overlaps_at(rows), accuracy * task.tol, order)
        fitted_equations = Equations(given, task.loss)
        return fitted_equations, _solve_on_table(task, found, fitted_equations, rows, last)

    solve_on_growing_tables(found, point_rows, solve_on)


def _solve_on_table(
    task: Task, evaluation: Evaluation, equations: Equations, rows: Indices, last: Equations | None
) -> Indices:
    """Solve points on the next table, with their solutions on the ``last`` as guesses.

    Returns the points to refine further.  The quadrature error of a point is the largest change of
    a coordinate or, if this is small, of an error relative to itself.
    """
    part, start = task.select(rows), evaluation.overlaps_at(rows)
    tolerance = min(1e-2 * task.tol, COORDINATE_TOLERANCE)
    pack_overlaps = equations.coordinates.pack
    start_coordinates = pack_overlaps(start)
    packed_size = start_coordinates.shape[1]  # dependent mu_0 may be independent on another table
    if evaluation.history is None or evaluation.history.shape[3] != packed_size:
        evaluation.history = np.zeros((len(evaluation.open), COMBINED, 2, packed_size))
    point_history = evaluation.history[rows]
    overlaps, solution = equations.solve(part.alpha, part.lam, start, point_history, tol=tolerance)
    evaluation.history[rows] = point_history
    point_solved = solution.residual <= LOSS_RESIDUAL_TOLERANCE
    coordinate_change = largest_modulus(pack_overlaps(overlaps) - start_coordinates)
    compared_points = evaluation.converged[rows] & point_solved & (last is not None)
    coordinate_error = np.where(compared_points, coordinate_change, np.inf)
    evaluation.store(
        rows,
        overlaps=overlaps,
        converged=point_solved,
        residual=solution.residual,
        iterations=solution.iterations,
        nodes=equations.table.weights.size,
    )
    near = np.flatnonzero(coordinate_error <= task.tol)
    if last is not None and near.size:
        previous = last.errors(Overlaps(*(values[near] for values in start)))
        error_change = _store_errors(part.select(near), evaluation, rows[near], equations, previous)
        coordinate_error[near] = np.maximum(coordinate_error[near], error_change)
    error = 3 * coordinate_error  # two tables may have nearly the same error
    evaluation.store(rows, quadrature_error=error, open=~(point_solved & (error <= task.tol)))
    return rows[evaluation.open[rows] & evaluation.converged[rows]]


def _store_errors(
    subtask: Task,
    evaluation: Evaluation,
    point_rows: Indices,
    equations: Equations,
    previous: dict[str, Array],
) -> Array:
    """Store conjugates, errors, losses and the slope in the bias of solved points.

    Returns the largest relative change of an error from its ``previous`` value, (R,).  As sums may
    cancel or vanish, the change is relative to at least a fraction of the labels' power; for the
    training loss, of the loss on new samples.
    """
    overlaps, table = evaluation.overlaps_at(point_rows), equations.table
    _, conjugates, _ = equations.update(subtask.alpha, subtask.lam, overlaps)
    errors = equations.errors(overlaps)
    evaluation.store(point_rows, conjugates=conjugates, **errors)
    if subtask.model.train_bias:
        bias_slope = slope_in_bias(subtask.model, table, subtask.alpha, overlaps, equations.scores)
        evaluation.store(point_rows, slope=bias_slope)
    power_unit = SMALLEST_ERROR * table.label_power.sum()
    floor: dict[str, Any] = {"test_error": power_unit, "train_error": power_unit, "loss_error": 0.0}
    floor["train_loss"] = 1e-2 * errors["loss_error"]
    changes = [relative_change(previous[name], errors[name], floor[name]) for name in errors]
    return np.asarray(np.max(changes, axis=0))


def errors_on_fixed_nodes(task: Task) -> Callable[[Task], Array]:
    """Function of tasks near ``task``, of one point each, that returns the test and training
    error (2,) on the nodes that resolve the point of ``task``.

    NaN where a point does not converge.

    Raises
    ------
    GivenUp
        Past the deadline.
    """
    tight_tolerance = 1e-11  # of a coordinate, for differences over some thousandths
    no_errors = np.full(2, np.nan)
    evaluation = solve_convex(task, time_left())
    overlaps = evaluation.overlaps_at(slice(None))
    try:
        if not evaluation.converged[0]:
            raise GivenUp(evaluation.status[0])
        equations_of = _held_equations(task, overlaps, evaluation.nodes[0])
    except GivenUp as given_up:
        if given_up.status is Status.TIME:
            raise
        return lambda near: no_errors
    start, _ = equations_of(task.model).solve(task.alpha, task.lam, overlaps, tol=tight_tolerance)

    def fixed_node_errors(near: Task) -> Array:
        near_equations = equations_of(near.model)
        if near_equations.table.mu1.shape[0] != start.V2.shape[1]:
            return no_errors  # groups that responded alike no longer do
        overlaps, result = near_equations.solve(near.alpha, near.lam, start, tol=tight_tolerance)
        errors_by_name = near_equations.errors(overlaps)
        error_pair = errors_by_name["test_error"], errors_by_name["train_error"]
        return np.where(result.converged, error_pair, np.nan)[:, 0]

    return fixed_node_errors


def _held_equations(task: Task, overlaps: Overlaps, nodes: int) -> Callable[[Model], Equations]:
    """Equations of a model near that of ``task`` on the nodes of the task, as a function of the
    model.

    Nodes of kappa are fixed; nodes of tau follow the target's kinks.
    """
    model, loss = task.model, task.loss
    if has_panels(model):
        prox_order = 15  # nodes of a panel along the proximal map
        places, held_weights, tau = fitted_rules(task, overlaps, 0.01 * task.tol, prox_order)
        # the rule over tau that follows the target's kinks is the finest one
        follows_kinks, level = has_jumps(model) or model.labels.combined_mean.planes, 4
    else:
        tables = enumerate(shared_table(model, level, task.folded) for level in count())
        level, label_table = next((i, x) for i, x in tables if x and x.table.weights.size == nodes)
        places, held_weights = label_table.table.places, label_table.table.weights
        prox_order = label_table.labels.order
        follows_kinks = True

    def held_equations(model: Model) -> Equations:
        table = tabulate_at(model, places, held_weights)
        over_tau = tau_rule(model, places, level) if follows_kinks else tau
        return Equations(LabelTable(table, labels_at(model, places, over_tau, prox_order)), loss)

    return held_equations
