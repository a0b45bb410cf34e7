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

from collections.abc import Callable

import numpy as np

from solvers.results import Array

from ..equivalence import Table, tabulate_at
from ..problem import Model
from ..saddle_point import Field, Overlaps, Scores, field_at_nodes, ridge


def objective(
    train_loss: Array, overlaps: Overlaps, alpha: Array, lam: Array, beta: float
) -> Array:
    """The training objective E over p, (P,), for a mean training loss (P,)."""
    return alpha / beta * train_loss + 0.5 * lam * overlaps.q2.sum(axis=1)


def slope_in_bias(
    model: Model, table: Table, alpha: Array, points: ridge.Points, score: Callable[[Field], Scores]
) -> Array:
    """dE/dt (P,) at solutions on ``table``, with their averages of the score given the local
    field; 0 if no bias is trained."""
    if not model.train_bias:
        return np.zeros(len(alpha))
    overlaps = ridge.expand_kinds(table, points).overlaps

    def beside(bias: float) -> Field:
        # groups that respond alike at one bias need not at another
        moved = model.with_bias(bias)
        there = tabulate_at(moved, table.places, table.weights, target=False, merged=False)
        return field_at_nodes(ridge.responses_of(there), overlaps)

    step = 1e-4  # of a central difference: 1e-8 of the moments, beside 1e-12 of rounding over it
    with np.errstate(all="ignore"):  # rows that did not converge may hold anything
        field = field_at_nodes(ridge.responses_of(table), points.overlaps)
        s, before, after = score(field), beside(-step), beside(step)
        C, P, S2, V = ((y - x) / (2 * step) for x, y in zip(before, after, strict=True))
        change = (
            C * s.mean + (P * s.p_hat_term(field)).sum(-1) - S2 * s.slope / 2 + V * s.square / 2
        )
        return np.asarray(-alpha / model.beta * (change @ table.weights))
