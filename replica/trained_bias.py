"""A bias common to all neurons, trained with the readout.  THEORY 7, [C] App. C.8.

The bias t minimises the training objective of THEORY 4, a function of one variable around the
solver, which knows its slope, too (``common_bias``).  It may have several minima: looks at even
biases tell their basins, a cubic between two looks how deep each is, and the bottom is where the
slope vanishes.  Looks may be off: the objective itself is asked for the bottom of every basin
that may be the lowest.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array

RANGE = 8.0  # the pre-activations' own scale is 1; a minimum beyond is not looked for
SCAN = 33
CELL = 2 * RANGE / (SCAN - 1)
TIE = 1e-8  # relative: minima that are closer are equal
MOST = 40  # steps to a bottom

Ask = Callable[[float], tuple[float, float]]


class Looks(NamedTuple):
    """The training objective and its slope, (SCAN,) each, at the biases of ``scan``, more or less;
    NaN where there is none to be had.  ``doubt``, called with a place in these, says how far the
    value there may be off."""

    values: Array
    slopes: Array
    doubt: Callable[[int], float]


class Basin(NamedTuple):
    """Around a minimum of the cubic between two looks: its value, bias and curvature, and the
    places of the looks."""

    value: float
    bias: float
    curvature: float
    places: tuple[int, int]


def scan() -> Array:
    """The biases that are looked at, (SCAN,)."""
    return np.linspace(-RANGE, RANGE, SCAN)


def best_bias(looks: Looks, ask: Ask, width: float) -> float:
    """The bias of the lowest minimum; NaN where it is not inside of what was looked at, or could
    not be found.

    ``ask`` gives the objective and its slope at a bias, NaN where they are not known; from the
    bias returned the next step is below ``width``.  Of equal minima it is the smallest.
    """
    known, level = np.isfinite(looks.values), _level(looks)
    if known.any() and level[known].all():  # the bias makes no difference
        return float(min(scan()[known], key=abs))
    low, best = np.inf, np.nan
    for basin in sorted(_basins(looks)):
        tie = TIE * abs(low) if np.isfinite(low) else 0.0
        doubt = max(map(looks.doubt, basin.places)) if basin.value > low else 0.0
        # a cubic is wrong by less than it dips below both looks
        dip = min(looks.values[i] for i in basin.places) - basin.value
        nearer = abs(basin.bias) < abs(best)
        if basin.value - dip - doubt <= low + tie:
            value, bias = _bottom(ask, basin, low + tie if nearer else low - tie, width)
            if np.isnan(value):
                return np.nan
            if value < low - tie or (value <= low + tie and abs(bias) < abs(best)):
                low, best = value, bias
    return np.nan if _falls_below(looks, low) else best


def _basins(looks: Looks) -> list[Basin]:
    """In the cells in which the slope rises through zero."""
    values, g = looks.values, looks.slopes
    with np.errstate(invalid="ignore"):
        cells = np.flatnonzero((g[:-1] < 0) & (g[1:] >= 0))
    found = []
    for i in map(int, cells):
        rise = (values[i + 1] - values[i]) / CELL
        # the slope of the cubic is a s^2 + b s + c, in parts s of the cell
        a, b, c = 3 * (g[i] + g[i + 1] - 2 * rise), 2 * (3 * rise - 2 * g[i] - g[i + 1]), g[i]
        root = np.sqrt(max(b**2 - 4 * a * c, 0.0))
        s = min(-2 * c / max(b + root, -2 * c), 1.0)
        value = values[i] + CELL * s * (c + s * (b / 2 + s * a / 3))
        bias = scan()[i] + s * CELL
        found.append(Basin(float(value), float(bias), float(root / CELL), (i, i + 1)))
    return found


def _level(looks: Looks) -> NDArray[np.bool_]:
    """Where the slope makes no difference, (SCAN,)."""
    return np.abs(looks.slopes) * CELL <= TIE * np.abs(looks.values)


def _falls_below(looks: Looks, low: float) -> bool:
    """Whether the objective is below ``low``, or may fall there, at an end of what was seen."""
    known = np.isfinite(looks.values)
    left, right = known.copy(), known.copy()
    left[1:] &= ~known[:-1]
    right[:-1] &= ~known[1:]
    falls = (left & (looks.slopes > 0)) | (right & (looks.slopes < 0))
    falls &= ~_level(looks)
    for i in map(int, np.flatnonzero(left | right)):
        doubt = looks.doubt(i)
        if looks.values[i] + (-doubt if falls[i] else doubt) < low:
            return True
    return False


def _bottom(ask: Ask, basin: Basin, enough: float, width: float) -> tuple[float, float]:
    """Value and bias of the bottom of a basin, where the slope vanishes: by the secant method,
    between what the slopes leave.  Of no use is one that does not come down to ``enough``, which
    is left early; the value is NaN if none is found."""
    low, high = -RANGE, RANGE
    t, curvature = basin.bias, basin.curvature
    value, slope = ask(t)
    for _ in range(MOST):
        if not np.isfinite(value):
            break
        low, high = (t, high) if slope < 0 else (low, t)
        # no farther than a cell, also where the curvature is none
        step = -slope / max(curvature, abs(slope) / CELL)
        if abs(step) <= width or value - abs(step * slope) > enough:
            return value, t
        end = high if step > 0 else low
        before, last = t, slope
        t = t + step if abs(step) < abs(end - t) else (t + end) / 2
        value, slope = ask(t)
        curvature = (slope - last) / (t - before)
    return np.nan, t
