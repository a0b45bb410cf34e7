"""Lowest minimum of a function of one variable with known slope, from a scan.

An interval of the scan contains a minimum if the function falls into it from its lower end.
Brent's method finds the root of the slope there.  Where the function is higher than at that end, it
is taken to rise, so that a barrier inside the interval does not hide the minimum.
"""

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np

from .results import Array, ConvergenceError


def lowest_minimum(
    function: Callable[[float], Iterable[float]],
    grid: Array,
    values: Array,
    slopes: Array,
    *,
    xtol: float,
) -> float:
    """Argument of the lowest minimum; among equal minima, the one nearest to 0.

    Parameters
    ----------
    function : callable, t -> (value, slope)
        The function; NaN where it is unknown.
    grid, values, slopes : (n,)
        A scan at increasing t, as fine as the basins are wide.  Its relative error may be one in a
        thousand.  It is NaN where the function is unknown.
    xtol : float
        Bound on the error of t.

    Returns
    -------
    float
        NaN if the lowest minimum may lie beyond the ends of the scan, or where the function is
        unknown.

    Examples
    --------
    >>> x = np.linspace(-2, 2, 9)
    >>> def f(x):
    ...     return 1 + (x**2 - 1) ** 2 + x / 9, 4 * x * (x**2 - 1) + 1 / 9
    >>> round(lowest_minimum(f, x, *f(x), xtol=1e-10), 8)
    -1.01360979
    """
    from scipy.optimize import brentq

    is_known = np.isfinite(values) & np.isfinite(slopes)
    x, f = grid[is_known], values[is_known]
    level_slopes = np.where(_is_flat(f, slopes[is_known], grid), 0.0, slopes[is_known])
    if x.size < 2:
        return np.nan
    if not level_slopes.any():  # the function may still vary between the nodes
        middle, nearest = float(np.clip(0.0, x[0], x[-1])), np.abs(x).argmin()
        is_flat = next(iter(function(middle))) <= f[nearest] + 1e-8 * abs(f[nearest])
        return middle if is_flat else float(x[nearest])

    @cache
    def checked(t: float) -> tuple[float, float]:
        value, slope = function(t) if x[0] <= t <= x[-1] else (np.nan, np.nan)
        if not np.isfinite(value + slope):
            raise ConvergenceError(f"unknown at {t:g}", None)
        return value, 0.0 if _is_flat(value, slope, grid) else slope

    def minimum_in_interval(low: float, high: float) -> float:
        """The minimum in an interval, or in one next to it where the scan had an error."""
        width = high - low
        while True:
            end, inwards = (low, 1.0) if checked(low)[0] < checked(high)[0] else (high, -1.0)
            if inwards * checked(end)[1] <= 0:
                break
            low, high = low - inwards * width, high - inwards * width

        def slope(t: float) -> float:
            value, slope = checked(t)
            is_below = value < checked(end)[0] or t == end
            return slope if is_below else inwards * (abs(slope) or 1.0)

        return float(brentq(slope, low, high, xtol=xtol))

    lowest, minima = np.inf, dict[float, float]()  # values by t
    try:
        for bound, low, high in _intervals_with_minimum(x, f, level_slopes):
            if bound <= lowest + 1e-3 * abs(lowest):  # the error that the scan may have
                t = minimum_in_interval(low, high)
                minima[t] = checked(t)[0]
                lowest = min(minima.values())
    except ConvergenceError:
        return np.nan
    lowest_places = [t for t in minima if minima[t] <= lowest + 1e-8 * abs(lowest)]
    return min(lowest_places, key=lambda t: (round(abs(t), 6), -t))


def _is_flat(value: Array | float, slope: Array | float, grid: Array) -> Array:
    """True where the slope is only rounding: over the whole scan it would not change the value."""
    return np.abs(slope) * np.ptp(grid) <= 1e-10 * np.abs(value)


def _intervals_with_minimum(x: Array, f: Array, slopes: Array) -> list[tuple[float, float, float]]:
    """Intervals with a minimum: a lower bound of its value, and the two ends of the interval.

    The bound holds if the function falls no more steeply inside.  One more interval is added beyond
    either end of the scan, where nothing is known.
    """
    x = np.pad(x, 1, mode="reflect", reflect_type="odd")
    f, slopes = np.pad(f, 1, constant_values=np.inf), np.pad(slopes, 1)
    descent = np.where(f[:-1] < f[1:], -slopes[:-1], slopes[1:])  # from the lower end
    bound = np.minimum(f[:-1], f[1:]) - descent * np.diff(x)
    has_minimum = descent >= 0
    has_minimum[[0, -1]] = descent[[0, -1]] > 0
    intervals = np.stack([bound, x[:-1], x[1:]], axis=1)[has_minimum]
    return sorted(map(tuple, intervals.tolist()))
