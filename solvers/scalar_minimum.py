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
    grid_t, grid_f = grid[is_known], values[is_known]
    level_slopes = np.where(_is_flat(grid_f, slopes[is_known], grid), 0.0, slopes[is_known])
    if grid_t.size < 2:
        return np.nan
    if not level_slopes.any():  # the function may still vary between the nodes
        scan_middle, nearest = float(np.clip(0.0, grid_t[0], grid_t[-1])), np.abs(grid_t).argmin()
        is_flat = next(iter(function(scan_middle))) <= grid_f[nearest] + 1e-8 * abs(grid_f[nearest])
        return scan_middle if is_flat else float(grid_t[nearest])

    @cache
    def checked(t: float) -> tuple[float, float]:
        minimum_value, slope = function(t) if grid_t[0] <= t <= grid_t[-1] else (np.nan, np.nan)
        if not np.isfinite(minimum_value + slope):
            raise ConvergenceError(f"unknown at {t:g}", None)
        return minimum_value, 0.0 if _is_flat(minimum_value, slope, grid) else slope

    def minimum_in_interval(low: float, high: float) -> float:
        """The minimum in an interval, or in one next to it where the scan had an error."""
        interval_width = high - low
        while True:
            lower_end, inwards = (low, 1.0) if checked(low)[0] < checked(high)[0] else (high, -1.0)
            if inwards * checked(lower_end)[1] <= 0:
                break
            low, high = low - inwards * interval_width, high - inwards * interval_width

        def slope(t: float) -> float:
            minimum_value, slope = checked(t)
            below_lower_end = minimum_value < checked(lower_end)[0] or t == lower_end
            return slope if below_lower_end else inwards * (abs(slope) or 1.0)

        return float(brentq(slope, low, high, xtol=xtol))

    lowest, found_minima = np.inf, dict[float, float]()  # values by t
    try:
        for minimum_bound, low, high in _intervals_with_minimum(grid_t, grid_f, level_slopes):
            if minimum_bound <= lowest + 1e-3 * abs(lowest):  # the error that the scan may have
                t = minimum_in_interval(low, high)
                found_minima[t] = checked(t)[0]
                lowest = min(found_minima.values())
    except ConvergenceError:
        return np.nan
    lowest_places = [t for t in found_minima if found_minima[t] <= lowest + 1e-8 * abs(lowest)]
    return min(lowest_places, key=lambda t: (round(abs(t), 6), -t))


def _is_flat(value: Array | float, slope: Array | float, scan_grid: Array) -> Array:
    """True where the slope is only rounding: over the whole scan it would not change the value."""
    return np.abs(slope) * np.ptp(scan_grid) <= 1e-10 * np.abs(value)


def _intervals_with_minimum(x: Array, f: Array, slopes: Array) -> list[tuple[float, float, float]]:
    """Intervals with a minimum: a lower bound of its value, and the two ends of the interval.

    The bound holds if the function falls no more steeply inside.  One more interval is added beyond
    either end of the scan, where nothing is known.
    """
    x = np.pad(x, 1, mode="reflect", reflect_type="odd")
    f, slopes = np.pad(f, 1, constant_values=np.inf), np.pad(slopes, 1)
    descent = np.where(f[:-1] < f[1:], -slopes[:-1], slopes[1:])  # from the lower end
    minimum_bound = np.minimum(f[:-1], f[1:]) - descent * np.diff(x)
    has_minimum = descent >= 0
    has_minimum[[0, -1]] = descent[[0, -1]] > 0
    minimum_intervals = np.stack([minimum_bound, x[:-1], x[1:]], axis=1)[has_minimum]
    return sorted(map(tuple, minimum_intervals.tolist()))
