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
ROUNDING = 1e-13  # of a third difference, relative to the function around it


def crossings(function: Function, value: float = 0.0) -> list[float]:
    """Points at which a function crosses a ``value``, to rounding, by bisection."""
    y = function(SCAN_GRID) - value
    cells = np.flatnonzero(y[:-1] * y[1:] < 0)
    low, high, above = SCAN_GRID[cells], SCAN_GRID[cells + 1], y[cells] > 0
    for _ in range(50):  # down to 1e-17
        middle = (low + high) / 2
        is_below = (function(middle) > value) == above
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return [float(place) for place in high]


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
    size = np.abs(_third_difference(function, SCAN_GRID, window))
    scale = np.abs(function(SCAN_GRID)).max()
    neighbours = np.minimum(np.roll(size, shift), np.roll(size, -shift))
    suspects = np.flatnonzero((size > 4 * neighbours) & (size > ROUNDING * scale))
    kinks: list[float] = []
    for i in suspects:
        place = _largest_difference(function, SCAN_GRID[i], window)
        is_new = not any(abs(place - other) < LENGTHS[0] for other in kinks)
        if is_new and abs(place) < SCAN_GRID[-1] and _is_kink(function, place):
            kinks.append(place)
    return tuple(sorted(kinks)) if len(kinks) <= 32 else ()  # more are of no use


def _third_difference(function: Function, start: Array, length: float) -> Array:
    """Third difference of the values at four equidistant points from ``start`` on."""
    y = function(start + length * np.linspace(0, 1, 4).reshape(-1, *np.ones(start.ndim, int)))
    return np.asarray(y[3] - 3 * y[2] + 3 * y[1] - y[0])


def _largest_difference(function: Function, low: float, width: float) -> float:
    """Position of the largest third difference: the window is halved down to rounding."""
    while width > 4e-16 * max(1.0, abs(low)):
        halves = low + width * np.linspace(0, 0.5, 5)
        size = np.abs(_third_difference(function, halves, width / 2))
        best = int(size.argmax())
        if size[best] <= 1e-14 * np.abs(function(halves)).max():  # rounding
            break
        low, width = float(halves[best]), width / 2
    middle = low + width / 2
    rounded = round(middle, 8) + 0.0
    return rounded if abs(middle - rounded) < 1e-11 else middle


def _is_kink(function: Function, place: float) -> bool:
    """True if third differences across ``place`` decrease too slowly for a smooth function."""
    long, short = (
        np.abs(_third_difference(function, place - d * np.linspace(0.1, 0.9, 9), d)).max()
        for d in LENGTHS
    )
    around = np.abs(function(place + np.linspace(-1, 1, 21) * LENGTHS[0])).max()
    # for a smooth function they decrease by 1000 between these lengths
    return bool(short > ROUNDING * around and long < 300 * short)


def central_difference(function: Function, kinks: Sequence[float], x: Array) -> Array:
    """Derivative at ``x`` by an eighth-order central difference, with an error of about 1e-13.

    Its stencil may straddle a kink.  Quadrature nodes this close to one weigh about 1e-3 step, and
    the tolerance of such integrals is larger (``Activation.slope_tolerance``).
    """
    step: Any = 2e-2
    if len(kinks):
        distance = np.abs(x[..., None] - np.asarray(kinks)).min(axis=-1)
        step = np.clip(distance / 5, 1e-7, step)
    total = np.zeros_like(x)
    for k, weight in enumerate((4 / 5, -1 / 5, 4 / 105, -1 / 280), start=1):
        total += weight * (function(x + k * step) - function(x - k * step))
    return np.asarray(total / step)
