"""A bias common to all neurons, trained with the readout.  docs/theory.md 7, [C] App. C.8.

The bias t minimises the training objective of docs/theory.md 4, a function of one variable around
the solver, which knows its slope, too (``convex.common_bias``).  It may have several minima: a
scan by rough solutions, of all points at once, tells where, and solutions to the full tolerance
find the bottom of the lowest.
"""

from functools import cache

import numpy as np

from solvers.resources import time_left
from solvers.results import Array, Status
from solvers.scan_minimum import lowest_minimum

from ..convex import Evaluation, Loss, objective
from ..problem import Model
from .evaluate import evaluate_at_bias, is_ridge

# Biases scanned, two to a unit where the scale of pre-activations is 1.  Not evenly about 0, where
# symmetric problems are stationary without being lowest.
BIAS_SCAN = np.linspace(-8.0, 8.0, 33) + 0.1


def with_trained_bias(
    model: Model, alpha: Array, lam: Array, loss: Loss, tol: float | None, time_limit: float
) -> Evaluation:
    """The points (alpha[i], lam[i]), arrays (P,), each at its best bias: NaN, as its errors are,
    where that is no minimum inside the scan or was not solved.  Those that are scanned take
    ``time_limit`` seconds each, and all end at the deadline."""

    def at(
        bias: float, rows: list[int], tol: float | None, seconds: float
    ) -> tuple[Evaluation, Array]:
        """Some points at one bias; their training objectives and slopes, (2, P)."""
        there, a, b = model.with_bias(bias, train_bias=True), alpha[rows], lam[rows]
        found = evaluate_at_bias(there, a, b, loss, tol, seconds)
        value = objective(found.train_loss, found.overlaps, a, b, model.beta)
        return found, np.array([value, found.slope])

    every, square = list(range(len(alpha))), is_ridge(model, loss)
    share = np.inf if square else time_limit / len(BIAS_SCAN)
    # to a rough tolerance: which of its cells hold a minimum is told by less
    scan = np.array([at(float(bias), every, 1e-3, share)[1] for bias in BIAS_SCAN])
    # errors, which depend on the bias linearly, are then known as well as otherwise
    xtol = 1e-10 if square else 1e-6

    best = Evaluation(len(alpha))

    def find(row: int) -> None:
        """The best bias of one point."""
        finely = cache(lambda bias: at(bias, [row], tol, np.inf))
        bias, seen = np.nan, scan[..., row].T
        if time_left() > 0:
            bias = lowest_minimum(lambda t: finely(t)[1].ravel(), BIAS_SCAN, *seen, xtol=xtol)
        found = finely(float(np.nan_to_num(bias)))[0]
        best.put([row], **vars(found) | {"trained_bias": bias})
        if np.isnan(bias):
            best.flag([row], Status.TIME if time_left() < 0 else Status.AT_EDGE)

    for row in every:
        find(row)
    return best
