"""A bias common to all neurons, trained with the readout.  THEORY 7, [C] App. C.8.

The bias t minimises the training objective of THEORY 4,

    E(t) = (alpha / beta) E l(y, f) + lam sum_b q2_b / 2,

with the mean training loss (epsilon_t / 2 for the square), which is a function of one variable
around the solver.  It may have several minima: a scan finds their basins, a bracketing search
the lowest one's bottom.  The scan takes brief looks, with an error each; where these do not tell
which is the lowest, or saw nothing next to a low value, the objective itself is asked.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from solvers.results import Array

from .overlaps import Overlaps

RANGE = 8.0  # the pre-activations' own scale is 1; a minimum beyond is not looked for
SCAN = 65

STEEPEST = 2.0  # slope, over the steepest that was seen
STRIDE = 8  # of the scan, where nothing was seen

Objective = Callable[[float, Array], Array]
Look = Callable[[float, Array], tuple[Array, Array]]


def objective(
    train_loss: Array, overlaps: Overlaps, alpha: Array, lam: Array, beta: float
) -> Array:
    """The training objective over p, (P,), for a mean training loss (P,)."""
    return alpha / beta * train_loss + 0.5 * lam * overlaps.q2.sum(axis=1)


def best_bias(value: Objective, look: Look, count: int, width: float) -> Array:
    """The minimising bias of every point, (count,); NaN where it is not inside the scan.

    Parameters
    ----------
    value : callable (bias, rows) -> array
        The training objective of the points ``rows`` (indices), with that bias added to all
        neurons.
    look : callable (bias, rows) -> (array, array)
        The same, more or less, and its error; NaN where it is not known.
    count : int
        Number of points.
    width : float
        Of the bracket of a minimum.
    """
    everything = np.arange(count)
    scan = np.linspace(-RANGE, RANGE, SCAN)
    values, errors = np.array([look(float(t), everything) for t in scan]).swapaxes(0, 1)
    found = np.full(count, np.nan)
    step = scan[1] - scan[0]
    for row in everything:

        def one(t: float, row: int = int(row)) -> float:
            return float(value(t, np.array([row]))[0])

        column = _certain(one, scan, values[:, row], errors[:, row])
        low = column.min()
        if np.isinf(low):
            continue
        # of equal minima the smallest bias
        start = float(min(scan[column <= low + 1e-12 * abs(low)], key=abs))
        if abs(start) == RANGE:
            continue
        ends = start - step, start + step
        bottom = minimize_scalar(one, bounds=ends, method="bounded", options={"xatol": width})
        found[row] = bottom.x if bottom.fun < low * (1 - 1e-14) else start
    return found


def _certain(value: Callable[[float], float], scan: Array, seen: Array, error: Array) -> Array:
    """The objective at the ``scan``, (SCAN,), as far as its lowest place depends on it: infinite
    where it has no value, or was not ``seen`` and is not expected to be the lowest."""
    seen, error = np.where(np.isfinite(error), seen, np.nan), error.copy()
    asked = error == 0

    def ask(i: int) -> None:
        seen[i], error[i], asked[i] = value(float(scan[i])), 0.0, True

    for stride in (STRIDE, 1):
        for i in range(0, SCAN if np.isnan(seen).all() else 0, stride):
            if not asked[i]:
                ask(i)
    while True:
        unseen = np.isnan(seen)
        known = np.where(unseen, np.inf, seen)
        spread = np.where(unseen, 0.0, error)
        highest = (known + spread).min()
        doubtful = np.where(unseen | asked, np.inf, known - spread)
        hopeful = np.where(unseen & ~asked, _expected(known), -np.inf)
        hopeful[hopeful > highest] = -np.inf
        if doubtful.min() <= highest < np.inf:
            ask(int(np.argmin(doubtful)))
        elif hopeful.max() > -np.inf:
            ask(int(np.argmax(hopeful)))  # near what is known, as it tells more of what is beyond
        else:
            return known


def _expected(known: Array) -> Array:
    """The least that may be expected of a function nowhere much steeper than between what is
    ``known`` of it, infinite where it is not."""
    at = np.flatnonzero(np.isfinite(known))
    steepest = np.max(np.abs(np.diff(known[at])) / np.diff(at), initial=0.0)
    away = np.abs(np.arange(known.size)[:, None] - at)
    return np.max(known[at] - STEEPEST * steepest * away, axis=1, initial=-np.inf)
