"""The errors of a convex loss beside a point that is solved, on the nodes of that point.

Nodes that are chosen anew at every point move its errors by the tolerance of the quadrature.  On
nodes that are held the errors are smooth in all parameters, and differences are derivatives.
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

TIGHT = 1e-11  # estimated error of a coordinate: differences are over some thousandths


def errors_near(task: Task) -> Callable[[Task], Array]:
    """The squared test and training error, (2,), of points near that of ``task``, a task of one
    point each, on the nodes that resolve it; NaN where they do not converge.

    Raises
    ------
    GivenUp
        Past the deadline.
    """
    unknown = np.full(2, np.nan)
    found = solve_convex(task, time_left())
    overlaps = found.overlaps_at(slice(None))
    try:
        if not found.converged[0]:
            raise GivenUp(found.status[0])
        equations_of = _held_nodes(task, overlaps, found.nodes[0])
    except GivenUp as given_up:
        if given_up.status is Status.TIME:
            raise
        return lambda near: unknown
    start, _ = equations_of(task.model).solve(task.alpha, task.lam, overlaps, tol=TIGHT)

    def errors(near: Task) -> Array:
        equations = equations_of(near.model)
        if equations.table.mu1.shape[0] != start.V2.shape[1]:
            return unknown  # what responded alike does so no longer
        overlaps, result = equations.solve(near.alpha, near.lam, start, tol=TIGHT)
        known = equations.errors(overlaps)
        both = known["test_error"], known["train_error"]
        return np.where(result.converged, both, np.nan)[:, 0]

    return errors


def _held_nodes(task: Task, overlaps: Overlaps, nodes: int) -> Callable[[Model], Equations]:
    """The equations of models near that of ``task`` on the nodes of kappa that resolve it, and
    those of tau, which follow the target's kinks."""
    model, loss = task.model, task.loss
    if has_panels(model):
        order = 15  # nodes of a panel along a proximal map
        places, weights, tau = fitted_rules(task, overlaps, 0.01 * task.tol, order)
        # the rule over tau that follows a target's kinks as they move is the finest
        follow, level = has_steps(model) or model.labels.combined_mean.planes, 4
    else:
        shared = enumerate(shared_table(model, level, task.folded) for level in count())
        level, given = next((i, x) for i, x in shared if x and x.table.weights.size == nodes)
        places, weights, order = given.table.places, given.table.weights, given.labels.order
        follow = True

    def equations(model: Model) -> Equations:
        table = tabulate_at(model, places, weights)
        over_tau = tau_rule(model, places, level) if follow else tau
        return Equations(LabelTable(table, labels_at(model, places, over_tau, order)), loss)

    return equations
