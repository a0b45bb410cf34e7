"""A bias common to all neurons, trained with the readout.  THEORY 7, [C] App. C.8.

The bias t minimises the training objective of THEORY 4,

    E(t) = (alpha / beta) E l(y, f) + lam sum_b q2_b / 2,

with the mean training loss (epsilon_t / 2 for the square), which is a function of one variable
around the solver.  It may have several minima: a scan finds their basins, a bracketing search
the lowest one's bottom.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from solvers.results import Array

from .overlaps import Overlaps

RANGE = 8.0  # the pre-activations' own scale is 1; a minimum beyond is not looked for
SCAN = 65

Objective = Callable[[float, Array], Array]


def objective(
    train_loss: Array, overlaps: Overlaps, alpha: Array, lam: Array, beta: float
) -> Array:
    """The training objective over p, (P,), for a mean training loss (P,)."""
    return alpha / beta * train_loss + 0.5 * lam * overlaps.q2.sum(axis=1)


def best_bias(value: Objective, rough: Objective, count: int, slack: float, width: float) -> Array:
    """The minimising bias of every point, (count,); NaN where it is not inside the scan.

    Parameters
    ----------
    value : callable (bias, rows) -> array
        The training objective of the points ``rows`` (indices), with that bias added to all
        neurons.
    rough : callable, of the same form
        The same within ``slack``, relative, to tell its basins.
    count : int
        Number of points.
    width : float
        Of the bracket of a minimum.
    """
    everything = np.arange(count)
    # Nearest to 0 first, so that of equal minima the smallest bias is taken.
    scan = np.array(sorted(np.linspace(-RANGE, RANGE, SCAN), key=abs))
    values = np.array([rough(t, everything) for t in scan])
    found = np.full(count, np.nan)
    step = 2 * RANGE / (SCAN - 1)
    for row in everything[np.isfinite(values).any(axis=0)]:
        column = np.where(np.isfinite(values[:, row]), values[:, row], np.inf)
        if slack:  # the lowest must be told for certain
            near = column <= column.min() + 2 * slack * abs(column.min())
            column[~near] = np.inf
            column[near] = [float(value(t, np.array([row]))[0]) for t in scan[near]]
            column[np.isnan(column)] = np.inf
        low = column.min()
        start = scan[np.argmax(column <= low + 1e-12 * abs(low))]
        if abs(start) == RANGE:
            continue
        bottom = minimize_scalar(
            lambda t, row=row: float(value(t, np.array([row]))[0]),
            bounds=(start - step, start + step),
            method="bounded",
            options={"xatol": width},
        )
        found[row] = bottom.x if bottom.fun < low * (1 - 1e-14) else start
    return found
