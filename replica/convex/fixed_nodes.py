"""Errors of a convex loss near a solved point, on the quadrature nodes of that point.

A new choice of nodes changes errors by the tolerance of the quadrature.  On fixed nodes the errors
are smooth in all parameters, so that their differences give derivatives.
"""

from collections.abc import Callable
from itertools import count

import numpy as np

from solvers.resources import GivenUp, time_left
from solvers.results import Array, Status

from ..equivalence import tabulate_at
from ..problem import Model
from ..saddle_point import Overlaps
from .equations import Equations
from .evaluation import Task
from .label_tables import LabelTable, has_steps, labels_at, shared_table, tau_rule
from .panels import fitted_rules, has_panels
from .refine import solve_convex

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
    """Function of models near that of ``task`` that returns their equations on its nodes.

    Nodes of kappa are fixed; nodes of tau follow the target's kinks.
    """
    model, loss = task.model, task.loss
    if has_panels(model):
        order = 15  # nodes of a panel along the proximal map
        places, weights, tau = fitted_rules(task, overlaps, 0.01 * task.tol, order)
        # the rule over tau that follows the target's kinks is the finest one
        follows_kinks, level = has_steps(model) or model.labels.combined_mean.planes, 4
    else:
        tables = enumerate(shared_table(model, level, task.folded) for level in count())
        level, given = next((i, x) for i, x in tables if x and x.table.weights.size == nodes)
        places, weights, order = given.table.places, given.table.weights, given.labels.order
        follows_kinks = True

    def equations(model: Model) -> Equations:
        table = tabulate_at(model, places, weights)
        over_tau = tau_rule(model, places, level) if follows_kinks else tau
        return Equations(LabelTable(table, labels_at(model, places, over_tau, order)), loss)

    return equations
