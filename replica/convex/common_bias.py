"""Bias common to all neurons: the training objective, and its derivative in the bias.

At a solution of the saddle point the objective over p,

    E = (alpha / beta) E l(y, x*) + lam sum_b q2_b / 2

(where l is half the square for the square loss), is stationary in all overlaps.  The bias t enters
only through the features' moments, in the law of the local field in the energy (alpha / beta) E
[(x* - omega)^2 / (2V) + l(y, x*)].  The derivative of the energy is -s in omega, and -s^2 / 2 in V.
As E xi s is E s' times the coefficient of xi in omega,

    dE/dt = -(alpha / beta) E[dC s + dP.(tau s - P s') + d(S^2) s' / 2 + dV s^2 / 2],

where d is d/dt at fixed overlaps.  docs/theory.md 6, 7
"""

from collections.abc import Callable

import numpy as np

from solvers.results import Array

from ..equivalence import Table, tabulate_at
from ..problem import Model
from ..saddle_point import Field, Overlaps, Scores, field_at_nodes, ridge


def training_objective(
    train_loss: Array, overlaps: Overlaps, alpha: Array, lam: Array, beta: float
) -> Array:
    """Training objective E over p, (P,), for a mean training loss (P,)."""
    return alpha / beta * train_loss + 0.5 * lam * overlaps.q2.sum(axis=1)


def slope_in_bias(
    model: Model, table: Table, alpha: Array, points: ridge.Points, score: Callable[[Field], Scores]
) -> Array:
    """Derivative dE/dt (P,) of the objective in the bias, at solutions on ``table``.

    ``score`` averages the score given a local field.  The derivative is 0 if no bias is trained.
    """
    if not model.train_bias:
        return np.zeros(len(alpha))
    overlaps = ridge.expand_kinds(table, points).overlaps

    def field_at(bias: float) -> Field:
        # groups are not merged: they may respond alike at one bias only
        shifted = model.with_bias(bias)
        new_table = tabulate_at(shifted, table.places, table.weights, target=False, merged=False)
        return field_at_nodes(ridge.responses_of(new_table), overlaps)

    step = 1e-4  # of central differences: error 1e-8, rounding 1e-12
    with np.errstate(all="ignore"):  # points that did not converge may have any values
        field = field_at_nodes(ridge.responses_of(table), points.overlaps)
        s, below, above = score(field), field_at(-step), field_at(step)
        C, P, S2, V = ((y - x) / (2 * step) for x, y in zip(below, above, strict=True))
        integrand = (
            C * s.mean + (P * s.p_hat_term(field)).sum(-1) - S2 * s.slope / 2 + V * s.square / 2
        )
        return np.asarray(-alpha / model.beta * (integrand @ table.weights))
