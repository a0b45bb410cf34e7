"""A bias common to all neurons, and how the training objective changes with it.

At a solution of the saddle point the objective over p,

    E = (alpha / beta) E l(y, x*) + lam sum_b q2_b / 2

(of the square loss, half the square), is stationary in all overlaps.  The bias t enters it through
the features' moments alone, by way of what the energy (alpha / beta) E [(x* - omega)^2 / (2V) +
l(y, x*)] says of the local field: its derivative in omega is -s, and in V, -s^2 / 2.  As E xi s is
E s' times the standard deviation that xi has in omega,

    dE/dt = -(alpha / beta) E[dC s + dP.(tau s - P s') + d(S^2) s' / 2 + dV s^2 / 2],

where d is d/dt at fixed overlaps.  docs/theory.md 6, 7
"""

import numpy as np

from solvers.results import Array
from solvers.rules import Rule

from ..equivalence import Table, tabulate
from ..problem import Model
from ..saddle_point import Overlaps, ridge
from .averages import scores
from .field_of_overlaps import field_on
from .label_tables import LabelTable
from .local_field import Field, Scores
from .losses import Loss

STEP = 1e-4  # of a central difference: 1e-8 of the moments, beside 1e-12 of rounding over it


def objective(
    train_loss: Array, overlaps: Overlaps, alpha: Array, lam: Array, beta: float
) -> Array:
    """The training objective E over p, (P,), for a mean training loss (P,)."""
    return alpha / beta * train_loss + 0.5 * lam * overlaps.q2.sum(axis=1)


def slope_of_ridge(model: Model, table: Table, alpha: Array, points: ridge.Points) -> Array:
    """dE/dt (P,) of solutions of ridge regression on ``table``, where the score is
    (y - omega) / (1 + V); 0 if no bias is trained."""
    if not model.train_bias:
        return np.zeros(len(alpha))
    responses, o = ridge.responses_of(table), points.overlaps
    field = field_on(table, responses, o)
    R = 1 / (1 + field.response)
    error = (table.h - field.centre) ** 2 + table.spread + table.noise + field.power
    error -= 2 * np.einsum("pnk,kn->pn", field.pull, table.g)
    along = R[..., None] * (table.g.T - field.pull)
    found = Scores((table.h - field.centre) * R, R, error * R**2, along)
    return _slope(model, table, alpha, points, field, found)


def slope_of_loss(
    model: Model, given: LabelTable, loss: Loss, alpha: Array, points: ridge.Points
) -> Array:
    """The same of a convex loss."""
    if not model.train_bias:
        return np.zeros(len(alpha))
    with np.errstate(all="ignore"):  # rows that did not converge may hold anything
        responses = ridge.responses_of(given.table)
        field = field_on(given.table, responses, points.overlaps)
        found = scores(given.labels, loss, field)
        return _slope(model, given.table, alpha, points, field, found)


def _slope(
    model: Model, table: Table, alpha: Array, points: ridge.Points, field: Field, s: Scores
) -> Array:
    overlaps = ridge.for_groups(table, points).overlaps
    rule = Rule(table.kappa[0] if len(table.kappa) == 1 else table.kappa.T, table.weights)

    def beside(bias: float) -> Field:
        # groups that respond alike at one bias need not at another
        there = tabulate(model.with_bias(bias), rule, target=False, merged=False)
        return field_on(there, ridge.responses_of(there), overlaps)

    before, after = beside(-STEP), beside(STEP)
    C, P, power, V = ((y - x) / (2 * STEP) for x, y in zip(before, after, strict=True))
    pulled = s.along + field.pull * s.slope[..., None]
    change = C * s.mean + (P * pulled).sum(axis=-1) - power * s.slope / 2 + V * s.square / 2
    return np.asarray(-alpha / model.beta * (change @ table.weights))
