"""Where a function of one argument bends or jumps, by its values alone, and its slope elsewhere.

A third difference over a length d is of the order d^3 where a function is smooth; d^2, d or 1
where its second derivative, its derivative or the function itself jumps.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from solvers.results import Array

Function = Callable[[Array], Array]

# As far as Gaussian rules reach, in steps of 0.01; not at 0, where odd functions vanish.
PLACES = np.arange(-1300, 1300) * 0.01 + 1e-4
LENGTHS = (1e-4, 1e-5)  # of third differences that tell a kink
NOTHING = 1e-13  # of a third difference, relative to the function around it


def crossings(function: Function, value: float = 0.0) -> list[float]:
    """Where a function passes a ``value``, to rounding, by bisection."""
    y = function(PLACES) - value
    cells = np.flatnonzero(y[:-1] * y[1:] < 0)
    low, high, above = PLACES[cells], PLACES[cells + 1], y[cells] > 0
    for _ in range(50):  # down to 1e-17
        middle = (low + high) / 2
        before = (function(middle) > value) == above
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return [float(place) for place in high]


def find_kinks(function: Function) -> tuple[float, ...]:
    """Where a function, its derivative or its second derivative jumps, by bisection.

    Examples
    --------
    >>> find_kinks(lambda x: np.where(x > 0.3, 0.0, np.abs(x + 1)))
    (-1.0, 0.3)
    >>> find_kinks(np.tanh)
    ()
    """
    window, apart = 0.03, 6  # every place is in three windows; those so far apart share none
    size = np.abs(_third_difference(function, PLACES, window))
    scale = np.abs(function(PLACES)).max()
    beside = np.minimum(np.roll(size, apart), np.roll(size, -apart))
    suspects = np.flatnonzero((size > 4 * beside) & (size > NOTHING * scale))
    found: list[float] = []
    for i in suspects:
        place = _narrowed(function, PLACES[i], window)
        new = not any(abs(place - other) < LENGTHS[0] for other in found)
        if new and abs(place) < PLACES[-1] and _is_kink(function, place):
            found.append(place)
    return tuple(sorted(found)) if len(found) <= 32 else ()  # one with more is left as it is


def _third_difference(function: Function, start: Array, length: float) -> Array:
    """Of the values at four equal distances from ``start`` on."""
    y = function(start + length * np.linspace(0, 1, 4).reshape(-1, *np.ones(start.ndim, int)))
    return np.asarray(y[3] - 3 * y[2] + 3 * y[1] - y[0])


def _narrowed(function: Function, low: float, width: float) -> float:
    """The middle of the smallest window, by halves, in which third differences are largest."""
    while width > 4e-16 * max(1.0, abs(low)):
        halves = low + width * np.linspace(0, 0.5, 5)
        size = np.abs(_third_difference(function, halves, width / 2))
        best = int(size.argmax())
        if size[best] <= 1e-14 * np.abs(function(halves)).max():  # rounding
            break
        low, width = float(halves[best]), width / 2
    middle = low + width / 2
    nice = round(middle, 8) + 0.0
    return nice if abs(middle - nice) < 1e-11 else middle


def _is_kink(function: Function, place: float) -> bool:
    """Whether third differences across ``place`` fall more slowly than those of a smooth
    function."""
    long, short = (
        np.abs(_third_difference(function, place - d * np.linspace(0.1, 0.9, 9), d)).max()
        for d in LENGTHS
    )
    around = np.abs(function(place + np.linspace(-1, 1, 21) * LENGTHS[0])).max()
    # of a smooth function they fall by 1000 between these lengths
    return bool(short > NOTHING * around and long < 300 * short)


def difference(function: Function, kinks: Sequence[float], x: Array) -> Array:
    """The derivative at ``x`` by an eighth-order central difference with error about 1e-13.

    Its stencil may straddle a kink; quadrature nodes that close to one weigh ~1e-3 * step
    and the kinked integrals are asked for less accuracy (see ``Activation.slope_moments``).
    """
    step: Any = 2e-2
    if len(kinks):
        distance = np.abs(x[..., None] - np.asarray(kinks)).min(axis=-1)
        step = np.clip(distance / 5, 1e-7, step)
    total = np.zeros_like(x)
    for k, weight in enumerate((4 / 5, -1 / 5, 4 / 105, -1 / 280), start=1):
        total += weight * (function(x + k * step) - function(x - k * step))
    return np.asarray(total / step)
