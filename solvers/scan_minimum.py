"""The lowest minimum of a function of one variable whose slope is known, from a scan.

A cell of the scan holds a minimum where the function falls into it from its lower end.  There the
slope has a root, which Brent's method finds; beyond the first place that is higher than that end
the function is taken to rise, so that a barrier inside the cell does not hide the minimum.
"""

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np

from .results import Array, ConvergenceError


def lowest_minimum(
    function: Callable[[float], Iterable[float]],
    places: Array,
    values: Array,
    slopes: Array,
    *,
    xtol: float,
) -> float:
    """The place of the lowest minimum, and of equal ones that nearest to 0.

    Parameters
    ----------
    function : callable, place -> (value, slope)
        NaN where it is not known.
    places, values, slopes : (n,)
        A scan at increasing places, as fine as the basins are wide; it may be off by one in a
        thousand, and is NaN where nothing is known.
    xtol : float
        Bound on the error of the place.

    Returns
    -------
    float
        NaN if the lowest minimum may lie beyond the ends of the scan, or was not found since the
        function is not known there.

    Examples
    --------
    >>> x = np.linspace(-2, 2, 9)
    >>> def f(x):
    ...     return 1 + (x**2 - 1) ** 2 + x / 9, 4 * x * (x**2 - 1) + 1 / 9
    >>> round(lowest_minimum(f, x, *f(x), xtol=1e-10), 8)
    -1.01360979
    """
    from scipy.optimize import brentq

    known = np.isfinite(values) & np.isfinite(slopes)
    x, v = places[known], values[known]
    s = np.where(_level(v, slopes[known], places), 0.0, slopes[known])
    if x.size < 2:
        return np.nan
    if not s.any():  # it need not be flat between the places
        middle, nearest = float(np.clip(0.0, x[0], x[-1])), np.abs(x).argmin()
        flat = next(iter(function(middle))) <= v[nearest] + 1e-8 * abs(v[nearest])
        return middle if flat else float(x[nearest])

    @cache
    def at(place: float) -> tuple[float, float]:
        value, slope = function(place) if x[0] <= place <= x[-1] else (np.nan, np.nan)
        if not np.isfinite(value + slope):
            raise ConvergenceError(f"unknown at {place:g}", None)
        return value, 0.0 if _level(value, slope, places) else slope

    def bottom(low: float, high: float) -> float:
        """The minimum in a cell, or next to it where the scan was off."""
        width = high - low
        while True:
            end, inwards = (low, 1.0) if at(low)[0] < at(high)[0] else (high, -1.0)
            if inwards * at(end)[1] <= 0:
                break
            low, high = low - inwards * width, high - inwards * width

        def slope(place: float) -> float:
            value, slope = at(place)
            below = value < at(end)[0] or place == end
            return slope if below else inwards * (abs(slope) or 1.0)

        return float(brentq(slope, low, high, xtol=xtol))

    lowest, found = np.inf, dict[float, float]()  # values by place
    try:
        for bound, low, high in _cells(x, v, s):
            if bound <= lowest + 1e-3 * abs(lowest):  # as far as the scan may be off
                place = bottom(low, high)
                found[place] = at(place)[0]
                lowest = min(found.values())
    except ConvergenceError:
        return np.nan
    equal = [place for place in found if found[place] <= lowest + 1e-8 * abs(lowest)]
    return min(equal, key=lambda place: (round(abs(place), 6), -place))


def _level(value: Array | float, slope: Array | float, places: Array) -> Array:
    """Where the slope is only rounding: it changes the value by so little over the whole scan."""
    return np.abs(slope) * np.ptp(places) <= 1e-10 * np.abs(value)


def _cells(x: Array, v: Array, s: Array) -> list[tuple[float, float, float]]:
    """Those that hold a minimum: how low it may be, if the slope grows no steeper, and the ends.
    Beyond the ends of the scan there is one more to either side, of which nothing is known."""
    x = np.pad(x, 1, mode="reflect", reflect_type="odd")
    v, s = np.pad(v, 1, constant_values=np.inf), np.pad(s, 1)
    falls = np.where(v[:-1] < v[1:], -s[:-1], s[1:])  # from the lower end into the cell
    bound = np.minimum(v[:-1], v[1:]) - falls * np.diff(x)
    holds = falls >= 0
    holds[[0, -1]] = falls[[0, -1]] > 0
    cells = np.stack([bound, x[:-1], x[1:]], axis=1)[holds]
    return sorted(map(tuple, cells.tolist()))
