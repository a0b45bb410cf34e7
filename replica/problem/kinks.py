"""Kinks of a function of one argument, found from its values, and its numerical derivative.

A third difference over a length d is of the order d^3 where a function is smooth, and d^2, d or 1
where its second derivative, its derivative or the function itself jumps.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from solvers.results import Array

Function = Callable[[Array], Array]

# Grid over the range of Gaussian rules, in steps of 0.01; not at 0, where odd functions vanish.
SCAN_GRID = np.arange(-1300, 1300) * 0.01 + 1e-4
LENGTHS = (1e-4, 1e-5)  # lengths of the third differences that confirm a kink
# Distances from a kink at which a function is tried on both sides.
SIDES = np.concatenate([-np.geomspace(1, 1e-4, 50), np.geomspace(1e-4, 1, 50)])
ROUNDING = 1e-13  # of a third difference, relative to the function around it


def crossings(function: Function, value: float = 0.0) -> list[float]:
    """Points at which a function crosses a ``value``, to rounding, by bisection."""
    function_values = function(SCAN_GRID) - value
    cells = np.flatnonzero(function_values[:-1] * function_values[1:] < 0)
    cell_low, high, above = SCAN_GRID[cells], SCAN_GRID[cells + 1], function_values[cells] > 0
    for _ in range(50):  # down to 1e-17
        middle = (cell_low + high) / 2
        is_below = (function(middle) > value) == above
        cell_low, high = np.where(is_below, middle, cell_low), np.where(is_below, high, middle)
    return [float(crossing) for crossing in high]


def find_kinks(function: Function) -> tuple[float, ...]:
    """Points at which a function, its derivative or its second derivative jumps, by bisection.

    Examples
    --------
    >>> find_kinks(lambda x: np.where(x > 0.3, 0.0, np.abs(x + 1)))
    (-1.0, 0.3)
    >>> find_kinks(np.tanh)
    ()
    """
    window, shift = 0.03, 6  # every point is in three windows; windows 6 points apart are disjoint
    third_difference = np.abs(_third_difference(function, SCAN_GRID, window))
    function_scale = np.abs(function(SCAN_GRID)).max()
    neighbour_size = np.minimum(np.roll(third_difference, shift), np.roll(third_difference, -shift))
    suspect_places = np.flatnonzero(
        (third_difference > 4 * neighbour_size) & (third_difference > ROUNDING * function_scale)
    )
    found_kinks: list[float] = []
    for i in suspect_places:
        kink_place = _largest_difference(function, SCAN_GRID[i], window)
        new_kink = not any(abs(kink_place - other_kink) < LENGTHS[0] for other_kink in found_kinks)
        if new_kink and abs(kink_place) < SCAN_GRID[-1] and _is_kink(function, kink_place):
            found_kinks.append(kink_place)
    return tuple(sorted(found_kinks)) if len(found_kinks) <= 32 else ()  # more are of no use


def _third_difference(function: Function, start: Array, length: float) -> Array:
    """Third difference of the values at four equidistant points from ``start`` on."""
    values = function(start + length * np.linspace(0, 1, 4).reshape(-1, *np.ones(start.ndim, int)))
    return np.asarray(values[3] - 3 * values[2] + 3 * values[1] - values[0])


def _largest_difference(function: Function, window_low: float, window_width: float) -> float:
    """Position of the largest third difference: the window is halved down to rounding."""
    while window_width > 4e-16 * max(1.0, abs(window_low)):
        window_halves = window_low + window_width * np.linspace(0, 0.5, 5)
        difference_size = np.abs(_third_difference(function, window_halves, window_width / 2))
        best_half = int(difference_size.argmax())
        if difference_size[best_half] <= 1e-14 * np.abs(function(window_halves)).max():  # rounding
            break
        window_low, window_width = float(window_halves[best_half]), window_width / 2
    kink_middle = window_low + window_width / 2
    rounded_kink = round(kink_middle, 8) + 0.0
    return rounded_kink if abs(kink_middle - rounded_kink) < 1e-11 else kink_middle


def _is_kink(function: Function, kink_place: float) -> bool:
    """True if third differences across ``kink_place`` decrease too slowly for a smooth function."""
    long_difference, short_difference = (
        np.abs(_third_difference(function, kink_place - d * np.linspace(0.1, 0.9, 9), d)).max()
        for d in LENGTHS
    )
    around = np.abs(function(kink_place + np.linspace(-1, 1, 21) * LENGTHS[0])).max()
    # for a smooth function they decrease by 1000 between these lengths
    return bool(short_difference > ROUNDING * around and long_difference < 300 * short_difference)


def central_difference(function: Function, kinks: Sequence[float], x: Array) -> Array:
    """Derivative at ``x`` by an eighth-order central difference, with an error of about 1e-13.

    Its stencil, four steps on either side, lies on one side of the nearest kink: at points within
    5e-7 of a kink it is the derivative at that distance, on their side.
    """
    difference_step: Any = 2e-2
    if len(kinks):
        kink_array = np.asarray(kinks)
        kink = kink_array[np.abs(x[..., None] - kink_array).argmin(axis=-1)]
        x = kink + np.copysign(np.maximum(np.abs(x - kink), 5e-7), x - kink)
        difference_step = np.minimum(np.abs(x - kink) / 5, difference_step)
    total = np.zeros_like(x)
    for k, weight_k in enumerate((4 / 5, -1 / 5, 4 / 105, -1 / 280), start=1):
        total += weight_k * (function(x + k * difference_step) - function(x - k * difference_step))
    return np.asarray(total / difference_step)
