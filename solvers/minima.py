"""Minima of a smooth function on a box: a scan, then Chebyshev interpolation.

The scan finds every basin that the grid resolves.  In the cells around a grid point lower than
its neighbours the function is interpolated on a tensor grid of Chebyshev nodes, and the
interpolant is minimised.  The interpolant's slope is wrong by rounding over the cell's width,
not by the root of rounding: unlike a search on values alone, the place of the minimum has as
many digits as an analytic function allows.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from .chebyshev import to_coefficients
from .results import Array

CHEBYSHEV_DEGREE = 12  # in a cell of a scan, ten digits or so of a curve of several bumps


class Minimum(NamedTuple):
    """A local minimum: its place (k,), the value there, and the axes along which it lies at an end,
    or beside values that are not known."""

    place: Array
    value: float
    at_edge: tuple[int, ...]


def minima(function: Callable[..., Array], axes: Sequence[Array]) -> list[Minimum]:
    """Local minima of ``function``, the lowest first.

    Parameters
    ----------
    function : callable (x_1 of shape (n_1,), ..., x_k of shape (n_k,)) -> array (n_1, ..., n_k)
        Values on the tensor grid of its arguments; those that are not finite are passed over.
    axes : k increasing arrays
        The grid of the scan; its ends are the box.

    Returns
    -------
    list of Minimum
        Empty if no value is finite.

    Examples
    --------
    >>> (low, high) = minima(lambda x: (x**2 - 1) ** 2 + x / 9, [np.linspace(-2, 2, 17)])
    >>> low.place.round(8).tolist(), high.place.round(8).tolist()
    ([-1.01360979], [0.98581053])
    """
    values = _finite_values(function, axes)
    ends = np.array([axis[[0, -1]] for axis in axes])
    width = np.ptp(ends, axis=1)
    local: list[Minimum] = []
    flat = 1e-10  # a basin shallower than this, relative to its value, is rounding
    least = values.min()  # of a plateau, an end of the scan is taken
    near = map(tuple, np.argwhere(values <= least + flat * abs(least)).tolist())
    best = max(near, key=lambda i: (len(_ends(i, values.shape)), -values[i]))
    k, known = values.ndim, np.pad(np.isfinite(values), 1, constant_values=True)
    cells = np.lib.stride_tricks.sliding_window_view(
        np.pad(values, 1, constant_values=np.inf), (3,) * k
    )
    lowest = np.isfinite(values) & (values <= cells.min(axis=tuple(range(k, 2 * k))))
    lowest[best] = np.isfinite(values[best])
    for index in map(tuple, np.argwhere(lowest).tolist()):
        around = [slice(max(i - 1, 0), i + 2) for i in index]
        cell = values[tuple(around)]
        finite = cell[np.isfinite(cell)]
        if finite.max() - values[index] <= flat * abs(values[index]) and index != best:
            continue
        box = [(axis[part][0], axis[part][-1]) for axis, part in zip(axes, around, strict=True)]
        place, value = _polish(function, np.array(box), ends)
        lower = flat * abs(values[index]) if _ends(index, values.shape) else 0.0
        if not value <= values[index] - lower:
            place = np.array([axis[i] for axis, i in zip(axes, index, strict=True)])
            value = float(values[index])
        from_end = np.abs(place[:, None] - ends).min(axis=1)
        at_edge = {int(axis) for axis in np.flatnonzero(from_end <= 1e-9 * width)}
        for axis, unit in enumerate(np.eye(k, dtype=int)):
            at = np.add(index, 1)
            if not (known[tuple(at - unit)] and known[tuple(at + unit)]):
                at_edge.add(axis)
        local.append(Minimum(place, value, tuple(sorted(at_edge))))
    kept: list[Minimum] = []
    for one in sorted(local, key=lambda one: one.value):
        # two neighbouring cells of the scan may lead to the same
        if all(np.abs((one.place - other.place) / width).max() > 1e-6 for other in kept):
            kept.append(one)
    return kept


def rough_minima(
    function: Callable[[Array], Array], axis: Array, *, flat: float, xtol: float
) -> list[Minimum]:
    """The same of a function of one variable that is known to a relative tolerance ``flat``: a
    scan, and between the neighbours of a point lower than they are Brent's method, to ``xtol``."""
    from scipy.optimize import minimize_scalar

    values = _finite_values(function, [axis])
    around = np.pad(values, 1, constant_values=np.inf)
    local = []
    for i in np.flatnonzero((values <= np.minimum(around[:-2], around[2:])) & np.isfinite(values)):
        place, value, edge = axis[i], values[i], not np.isfinite(around[[i, i + 2]]).all()
        near = around[i : i + 3]
        if near[np.isfinite(near)].max() <= (1 + flat) * value and value > values.min():
            continue
        if not edge:
            found = minimize_scalar(
                lambda x: _finite_values(function, [np.array([x])]).item(),
                bounds=(axis[i - 1], axis[i + 1]),
                method="bounded",
                options={"xatol": xtol},
            )
            place, value = found.x, found.fun
        local.append(Minimum(np.array([place]), float(value), (0,) if edge else ()))
    return sorted(local, key=lambda one: one.value)


def _ends(index: tuple[int, ...], shape: tuple[int, ...]) -> list[int]:
    """The axes at whose ends an index lies."""
    return [axis for axis, i in enumerate(index) if i in (0, shape[axis] - 1)]


def _finite_values(function: Callable[..., Array], axes: Sequence[Array]) -> Array:
    """Values of ``function`` on the tensor grid of ``axes``, infinite where they are not finite."""
    values = np.asarray(function(*axes), dtype=float)
    return np.where(np.isfinite(values), values, np.inf)


def _polish(function: Callable[..., Array], box: Array, ends: Array) -> tuple[Array, float]:
    """The lowest point of ``function`` in and near ``box`` (k, 2), and its value.

    Of an interpolant on the box and, while its last coefficients are above 1e-10 times its range,
    of others on ever smaller boxes around the point before.  Where that point lies on
    a side of its box, other than at the ``ends`` (k, 2) of the axes, the box moves there: a valley
    oblique to the axes leads out of it.  NaN where no value is known.
    """
    limits, narrowed = box, 0
    place, value = box.mean(axis=1), np.nan
    for _ in range(20):  # boxes, at most
        middle, half = limits.mean(axis=1), np.ptp(limits, axis=1) / 2
        nodes = middle[:, None] + half[:, None] * chebyshev.chebpts1(CHEBYSHEV_DEGREE + 1)
        values = _finite_values(function, nodes)
        if not np.isfinite(values).all():
            break
        base = values.min()
        # rounding is relative to the range then, not to the value
        coefficients = _along_axes(to_coefficients(CHEBYSHEV_DEGREE + 1), values - base)
        where, height = _lowest(coefficients)
        place, value = middle + half * where, float(base + height)
        tails = [np.abs(np.take(coefficients, [-2, -1], axis=k)).max() for k in range(values.ndim)]
        resolved = max(tails) <= max(1e-10 * np.ptp(values), 1e-14 * np.abs(values).max())
        at_end = np.where(where < 0, limits[:, 0] == ends[:, 0], limits[:, 1] == ends[:, 1])
        if (at_end | (np.abs(where) < 1)).all():
            if resolved or narrowed == 4:
                break
            half, narrowed = half / 6, narrowed + 1
        limits = np.clip(place[:, None] + half[:, None] * [-1, 1], ends[:, :1], ends[:, 1:])
    return place, value


def _along_axes(matrix: Array, values: Array) -> Array:
    """``values`` with ``matrix`` applied to each of their axes."""
    for k in range(values.ndim):
        values = np.moveaxis(np.tensordot(matrix, values, (1, k)), 0, k)
    return values


def _lowest(coefficients: Array) -> tuple[Array, float]:
    """Place (k,) and value of the minimum in [-1, 1]^k of a Chebyshev series in k variables: the
    lowest on a fine grid, then Newton along the axes at whose ends it does not lie."""
    k = coefficients.ndim
    grid = np.linspace(-1, 1, 53)  # dense enough to see every basin of the interpolant
    values = _along_axes(chebyshev.chebvander(grid, CHEBYSHEV_DEGREE), coefficients)
    x = grid[list(np.unravel_index(np.argmin(values), values.shape))]
    slopes = [chebyshev.chebder(coefficients, axis=i) for i in range(k)]
    second = [[chebyshev.chebder(slope, axis=j) for j in range(k)] for slope in slopes]
    height = _evaluate(coefficients, x)
    for _ in range(5):
        free = np.abs(x) < 1
        slope = np.array([_evaluate(part, x) for part in slopes])[free]
        matrix = np.array([[_evaluate(part, x) for part in row] for row in second])
        step = np.zeros(k)
        try:
            step[free] = np.linalg.solve(matrix[np.ix_(free, free)], -slope)
        except np.linalg.LinAlgError:  # flat: any place is as good
            break
        if np.abs(step).max() < 1e-15:
            break
        to_side = np.divide(np.sign(step) - x, step, out=np.full(k, np.inf), where=step != 0)
        share = min(1, to_side.min())  # along a valley, up to the first side that it reaches
        trial = np.where(to_side > share, np.clip(x + share * step, -1, 1), np.sign(step))
        lower = _evaluate(coefficients, trial)
        if not lower <= height + 1e-15 * np.abs(coefficients).max():
            break
        x, height = trial, lower
    return x, height


def _evaluate(series: Array, x: Array) -> float:
    """A Chebyshev series in k variables at one point of [-1, 1]^k: T_n(cos t) = cos(n t)."""
    for angle in np.arccos(x):
        series = np.cos(angle * np.arange(len(series))) @ series
    return float(series)
