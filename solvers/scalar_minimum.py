"""Lowest minimum of a function of one variable with known slope, from a scan.

A cell of the scan contains a minimum if the function falls into the cell from its lower end.
Brent's method finds the root of the slope there.  Where the function is higher than at that end, it
is taken to rise, so that a barrier inside the cell does not hide the minimum.
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
    """Place of the lowest minimum; among equal minima, the one nearest to 0.

    Parameters
    ----------
    function : callable, place -> (value, slope)
        The function; NaN where it is unknown.
    places, values, slopes : (n,)
        A scan at increasing places, as fine as the basins are wide.  Its relative error may be one
        in a thousand.  It is NaN where the function is unknown.
    xtol : float
        Bound on the error of the place.

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

    known = np.isfinite(values) & np.isfinite(slopes)
    x, f = places[known], values[known]
    level_slopes = np.where(_is_flat(f, slopes[known], places), 0.0, slopes[known])
    if x.size < 2:
        return np.nan
    if not level_slopes.any():  # the function may still vary between the places
        middle, nearest = float(np.clip(0.0, x[0], x[-1])), np.abs(x).argmin()
        is_flat = next(iter(function(middle))) <= f[nearest] + 1e-8 * abs(f[nearest])
        return middle if is_flat else float(x[nearest])

    @cache
    def checked(place: float) -> tuple[float, float]:
        value, slope = function(place) if x[0] <= place <= x[-1] else (np.nan, np.nan)
        if not np.isfinite(value + slope):
            raise ConvergenceError(f"unknown at {place:g}", None)
        return value, 0.0 if _is_flat(value, slope, places) else slope

    def minimum_in_cell(low: float, high: float) -> float:
        """Place of the minimum in a cell, or in one next to it where the scan had an error."""
        width = high - low
        while True:
            end, inwards = (low, 1.0) if checked(low)[0] < checked(high)[0] else (high, -1.0)
            if inwards * checked(end)[1] <= 0:
                break
            low, high = low - inwards * width, high - inwards * width

        def slope(place: float) -> float:
            value, slope = checked(place)
            below = value < checked(end)[0] or place == end
            return slope if below else inwards * (abs(slope) or 1.0)

        return float(brentq(slope, low, high, xtol=xtol))

    lowest, found = np.inf, dict[float, float]()  # values by place
    try:
        for bound, low, high in _cells_with_minimum(x, f, level_slopes):
            if bound <= lowest + 1e-3 * abs(lowest):  # the error that the scan may have
                place = minimum_in_cell(low, high)
                found[place] = checked(place)[0]
                lowest = min(found.values())
    except ConvergenceError:
        return np.nan
    lowest_places = [place for place in found if found[place] <= lowest + 1e-8 * abs(lowest)]
    return min(lowest_places, key=lambda place: (round(abs(place), 6), -place))


def _is_flat(value: Array | float, slope: Array | float, places: Array) -> Array:
    """True where the slope is only rounding: over the whole scan it would not change the value."""
    return np.abs(slope) * np.ptp(places) <= 1e-10 * np.abs(value)


def _cells_with_minimum(x: Array, f: Array, slopes: Array) -> list[tuple[float, float, float]]:
    """Cells that contain a minimum: a lower bound of its value, and the two ends of the cell.

    The bound holds if the function falls no more steeply inside the cell.  One more cell is added
    beyond either end of the scan, where nothing is known.
    """
    x = np.pad(x, 1, mode="reflect", reflect_type="odd")
    f, slopes = np.pad(f, 1, constant_values=np.inf), np.pad(slopes, 1)
    descent = np.where(f[:-1] < f[1:], -slopes[:-1], slopes[1:])  # from the lower end
    bound = np.minimum(f[:-1], f[1:]) - descent * np.diff(x)
    has_minimum = descent >= 0
    has_minimum[[0, -1]] = descent[[0, -1]] > 0
    cells = np.stack([bound, x[:-1], x[1:]], axis=1)[has_minimum]
    return sorted(map(tuple, cells.tolist()))
