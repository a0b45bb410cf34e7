"""A bias common to all neurons, trained with the readout.  docs/theory.md 7, [C] App. C.8.

The bias t minimises the training objective of docs/theory.md 4, a function of one variable around
the solver, which knows its slope, too (``common_bias``).  It may have several minima: a scan of
evenly spaced biases shows their basins, a cubic between two of its points how deep each is, and
the bottom is where the slope vanishes.  The scan may be inexact: the objective itself is evaluated
at the bottom of every basin that may be the lowest.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array

from .search_ranges import LARGEST_BIAS

TIE = 1e-8  # relative: minima that are closer are equal
HIGHER = 1e-6  # relative: more than tables of different sizes may disagree
ROUNDING = 1e-13  # of the objective
MOST = 60  # steps to a bottom

Ask = Callable[[float], tuple[float, float]]


class BiasScan(NamedTuple):
    """The training objective and its slope, (n,) each, at evenly spaced biases ``at`` (n,), both
    approximate; NaN where they are not known.  ``doubt``, called with an index into these, bounds
    the error of the value there."""

    at: Array
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


def best_bias(looks: BiasScan, ask: Ask, width: float) -> float:
    """The bias of the lowest minimum; NaN where it is not inside of what was looked at, or could
    not be found.

    ``ask`` gives the objective and its slope at a bias, NaN where they are not known; from the
    bias returned the next step is below ``width``.  Of equal minima it is the smallest.
    """
    low, best, searched = np.inf, np.nan, np.zeros(len(looks.at), dtype=bool)
    for basin in sorted(_basins(looks)):
        tie = TIE * abs(low) if np.isfinite(low) else 0.0
        doubt = max(map(looks.doubt, basin.places)) if basin.value > low else 0.0
        # a smooth function is taken to be off its cubic by no more than that dips below both looks
        i, j = basin.places
        dip = min(looks.values[i], looks.values[j]) - basin.value if j == i + 1 else 0.0
        nearer = abs(basin.bias) < abs(best)
        if basin.value - dip - doubt <= low + tie:
            enough = low + tie if nearer else low - tie
            value, bias = _bottom(ask, looks.at, basin, enough, width)
            searched[[i, j]] = True
            if np.isnan(value):
                return np.nan
            if value < low - tie or (value <= low + tie and abs(bias) < abs(best)):
                low, best = value, bias
    # where it makes no difference, the least of the biases that are as good
    level, values = _level(looks), looks.values
    least = values[level].min(initial=np.inf)
    if np.isfinite(least) and least <= low + TIE * abs(least):
        place = float(min(looks.at[level & (values <= least + TIE * abs(least))], key=abs))
        value, _ = ask(place)
        if value < low or (value <= low + TIE * abs(low) and abs(place) < abs(best)):
            low, best = value, place
    return np.nan if _falls_below(looks, searched, low - TIE * abs(low)) else best


def _basins(looks: BiasScan) -> list[Basin]:
    """Between looks, next to each other or with a gap between them, where a cubic has a minimum."""
    known, found = np.flatnonzero(np.isfinite(looks.values)), []
    for i, j in zip(map(int, known[:-1]), map(int, known[1:]), strict=True):
        values, slopes, size = looks.values, looks.slopes, looks.at[j] - looks.at[i]
        rise = (values[j] - values[i]) / size
        # the slope of the cubic is a s^2 + b s + c, in parts s of the way
        a = 3 * (slopes[i] + slopes[j] - 2 * rise)
        b, c = 2 * (3 * rise - 2 * slopes[i] - slopes[j]), slopes[i]
        square = b**2 - 4 * a * c
        if square <= 0 or b + np.sqrt(square) == 0:
            continue
        s = -2 * c / (b + np.sqrt(square))  # of two roots that where the slope rises
        if 0 < s <= 1:
            value = values[i] + size * s * (c + s * (b / 2 + s * a / 3))
            bias, curvature = looks.at[i] + s * size, np.sqrt(square) / size
            found.append(Basin(float(value), float(bias), float(curvature), (i, j)))
    return found


def _level(looks: BiasScan) -> NDArray[np.bool_]:
    """Where the slope makes no difference, (n,)."""
    return np.abs(looks.slopes) * (looks.at[1] - looks.at[0]) <= TIE * np.abs(looks.values)


def _falls_below(looks: BiasScan, searched: NDArray[np.bool_], low: float) -> bool:
    """Whether the objective is below ``low`` where no basin was searched, or may fall there at an
    end of what was seen."""
    known = np.isfinite(looks.values)
    left, right = known.copy(), known.copy()
    left[1:] &= ~known[:-1]
    right[:-1] &= ~known[1:]
    falls = (left & (looks.slopes > 0)) | (right & (looks.slopes < 0))
    falls &= ~_level(looks)
    for i in map(int, np.flatnonzero(known & (falls | (looks.values < low) & ~searched))):
        doubt = looks.doubt(i)
        if looks.values[i] + (-doubt if falls[i] else doubt) < low:
            return True
    return False


def _bottom(ask: Ask, at: Array, basin: Basin, enough: float, width: float) -> tuple[float, float]:
    """Value and bias of the bottom of a basin, where the slope vanishes: by the secant method,
    between what the slopes leave of the way between two looks.  Of no use is one that does not
    come down to ``enough``, which is left early; the value is NaN if none is found."""
    cell, (i, j) = float(at[1] - at[0]), basin.places
    low, high, reach = float(at[i]), float(at[j]), cell
    t, curvature, asked = basin.bias, basin.curvature, set[float]()
    best, where, last = np.inf, t, 0.0  # value, bias and slope of the lowest so far
    for _ in range(MOST):
        value, slope = ask(t)
        asked.add(t)
        if not np.isfinite(value):
            return np.nan, t
        if value > best + HIGHER * abs(best):  # over a barrier, or a jump as of odd students at 0
            low, high = (low, t) if t > where else (t, high)
            step = (t - where) / 2
        else:
            if best < np.inf and ((slope < 0 and t >= high) or (slope > 0 and t <= low)):
                reach *= 2  # looks were off, and may be for long
            low, high = _narrowed(low, high, t, slope, reach)
            if best < np.inf and t != where:
                curvature = (slope - last) / (t - where)
            best, where, last = value, t, slope
            level = abs(slope) * cell <= ROUNDING * abs(value)
            # no farther than it reaches, also where the curvature is none
            step = 0.0 if level else -slope / max(curvature, abs(slope) / reach)
            if abs(step) <= width or value - abs(step * slope) > enough:
                return best, where
        if high - low <= width:
            return (best, where) if abs(where) < LARGEST_BIAS else (np.nan, t)
        end = high if step > 0 else low
        beyond = (where + end) / 2 if end in asked else end
        t = where + step if low < where + step < high else beyond
    return np.nan, t


def _narrowed(low: float, high: float, t: float, slope: float, reach: float) -> tuple[float, float]:
    """Where the bottom is, between ``low`` and ``high``, knowing the slope at t: up to ``reach``
    beyond an end if that is what it says there."""
    if slope < 0:
        return t, min(t + reach, LARGEST_BIAS) if t >= high else high
    if slope > 0:
        return max(t - reach, -LARGEST_BIAS) if t <= low else low, t
    return low, high
