"""Minima of a smooth function: all on a box, or the lowest of one variable.

Minima on a box.  A grid scan finds every basin that the grid resolves.  Around a grid point that is
lower than its neighbours, the function is interpolated on a tensor grid of Chebyshev nodes, and the
interpolant is minimised.  The error of the interpolant's slope is rounding over the box's width, so
that the argument of the minimum has as many digits as an analytic function allows.  A search on
values alone would lose half of them.

Lowest minimum of one variable, with known slope.  An interval of the scan contains a minimum if the
function falls into it from its lower end.  Brent's method finds the root of the slope there.  Where
the function is higher than at that end, it is taken to rise, so that a barrier inside the interval
does not hide the minimum.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from .chebyshev import coefficient_matrix
from .results import Array, ConvergenceError


class Minimum(NamedTuple):
    """Local minimum: its argument (k,), the value there, and the axes along which it lies at an end
    of the box or beside values that are not finite."""

    argmin: Array
    value: float
    at_edge: tuple[int, ...]


def minima(
    function: Callable[..., Array], axes: Sequence[Array], *, rtol: float = 1e-10
) -> list[Minimum]:
    """Local minima of ``function``, known to a relative tolerance, in increasing order.

    Parameters
    ----------
    function : callable (x_1 of shape (n_1,), ..., x_k of shape (n_k,)) -> array (n_1, ..., n_k)
        Values on the tensor grid of its arguments; values that are not finite are ignored.
    axes : k increasing arrays
        The grid of the scan, whose ends are the box.
    rtol : float
        Relative tolerance of the values: basins shallower than this are taken for rounding, and
        interpolation is not refined below it.

    Returns
    -------
    list of Minimum
        Empty if no value is finite.

    Examples
    --------
    >>> (low, high) = minima(lambda x: (x**2 - 1) ** 2 + x / 9, [np.linspace(-2, 2, 17)])
    >>> low.argmin.round(8).tolist(), high.argmin.round(8).tolist()
    ([-1.01360979], [0.98581053])
    """
    scanned = _finite_values(function, axes)
    box_ends = np.array([axis[[0, -1]] for axis in axes])
    width = np.ptp(box_ends, axis=1)
    basin_minima: list[Minimum] = []
    lowest = scanned.min()  # on a plateau, an end of the scan is taken
    lowest_indices = map(tuple, np.argwhere(scanned <= lowest + rtol * abs(lowest)).tolist())
    best = max(lowest_indices, key=lambda i: (len(_end_axes(i, scanned.shape)), -scanned[i]))
    k, is_known = scanned.ndim, np.pad(np.isfinite(scanned), 1, constant_values=True)
    surroundings = np.lib.stride_tricks.sliding_window_view(
        np.pad(scanned, 1, constant_values=np.inf), (3,) * k
    )
    is_minimum = np.isfinite(scanned) & (scanned <= surroundings.min(axis=tuple(range(k, 2 * k))))
    is_minimum[best] = np.isfinite(scanned[best])
    for basin in map(tuple, np.argwhere(is_minimum).tolist()):
        near_basin = [slice(max(i - 1, 0), i + 2) for i in basin]
        neighbour_values = scanned[tuple(near_basin)]
        finite_neighbours = neighbour_values[np.isfinite(neighbour_values)]
        if finite_neighbours.max() - scanned[basin] <= rtol * abs(scanned[basin]) and basin != best:
            continue
        box = [(axis[span][0], axis[span][-1]) for axis, span in zip(axes, near_basin, strict=True)]
        basin_argmin, basin_minimum, reaches_unknown = _refined(
            function, np.array(box), box_ends, rtol
        )
        least_descent = rtol * abs(scanned[basin]) if _end_axes(basin, scanned.shape) else 0.0
        if not basin_minimum <= scanned[basin] - least_descent:
            basin_argmin = np.array([axis[i] for axis, i in zip(axes, basin, strict=True)])
            basin_minimum = float(scanned[basin])
        box_end_distance = np.abs(basin_argmin[:, None] - box_ends).min(axis=1)
        at_edge = {int(axis) for axis in np.flatnonzero(box_end_distance <= 1e-9 * width)}
        for axis, unit in enumerate(np.eye(k, dtype=int)):
            beside = [tuple(np.add(basin, 1) + side * unit) for side in (-1, 1)]
            if reaches_unknown or not all(is_known[index] for index in beside):
                at_edge.add(axis)
        basin_minima.append(Minimum(basin_argmin, basin_minimum, tuple(sorted(at_edge))))
    distinct: list[Minimum] = []
    for minimum in sorted(basin_minima, key=lambda minimum: minimum.value):
        # two neighbouring intervals of the scan may lead to the same minimum
        if all(np.abs((minimum.argmin - other.argmin) / width).max() > 1e-6 for other in distinct):
            distinct.append(minimum)
    return distinct


def _end_axes(scan_index: tuple[int, ...], scan_shape: tuple[int, ...]) -> list[int]:
    """Axes along which an index lies at an end."""
    return [axis for axis, i in enumerate(scan_index) if i in (0, scan_shape[axis] - 1)]


def _finite_values(function: Callable[..., Array], axes: Sequence[Array]) -> Array:
    """Values of ``function`` on the tensor grid of ``axes``, with infinity for NaN."""
    scan_values = np.asarray(function(*axes), dtype=float)
    return np.where(np.isfinite(scan_values), scan_values, np.inf)


def _refined(
    function: Callable[..., Array], basin_box: Array, ends: Array, rtol: float
) -> tuple[Array, float, bool]:
    """Argument and value of the minimum of ``function`` in and near ``basin_box`` (k, 2), and
    whether a box around it has values that are not finite: it is then the lowest node, of value inf
    where no value is finite.

    It is the minimum of the Chebyshev interpolant on the box, of few nodes until the box has shrunk
    once.  While the last coefficients of the interpolant are above ``rtol`` times its range, the
    box shrinks around its minimum.  The box moves where the minimum lies on one of its sides, other
    than at the ``ends`` (k, 2) of the axes: a valley oblique to the axes leads out of the box.
    """
    # degree 1.2 for each digit, for a curve with several bumps in a box
    box_limits, times_narrowed, fine_nodes = basin_box, 0, round(-1.2 * np.log10(rtol)) + 1
    node_count, argmin, box_minimum = fine_nodes // 2 + 1, basin_box.mean(axis=1), np.inf
    lowest_node, lowest_value = argmin, np.inf
    for _ in range(20):  # at most 20 boxes
        box_middle, radius = box_limits.mean(axis=1), np.ptp(box_limits, axis=1) / 2
        box_nodes = box_middle[:, None] + radius[:, None] * chebyshev.chebpts1(node_count)
        values = _finite_values(function, box_nodes)
        lowest_box_value = values.min()
        if lowest_box_value < lowest_value:
            node_indices = np.unravel_index(values.argmin(), values.shape)
            lowest_value = float(lowest_box_value)
            lowest_node = np.array([x[i] for x, i in zip(box_nodes, node_indices, strict=True)])
        if not np.isfinite(values).all():
            return lowest_node, lowest_value, True
        # without the base, rounding is relative to the range, not to the value
        coefficients = _apply_to_axes(coefficient_matrix(node_count), values - lowest_box_value)
        x, series_height = _series_minimum(coefficients)
        argmin, box_minimum = box_middle + radius * x, float(lowest_box_value + series_height)
        tails = [np.abs(np.take(coefficients, [-2, -1], axis=k)).max() for k in range(values.ndim)]
        value_accuracy = max(1e-14, rtol**2) * np.abs(values).max()
        box_resolved = max(tails) <= max(rtol * np.ptp(values), value_accuracy)
        at_box_end = np.where(x < 0, box_limits[:, 0] == ends[:, 0], box_limits[:, 1] == ends[:, 1])
        if (at_box_end | (np.abs(x) < 1)).all():
            if box_resolved or times_narrowed == 4:
                break
            radius, times_narrowed, node_count = radius / 6, times_narrowed + 1, fine_nodes
        box_limits = np.clip(argmin[:, None] + radius[:, None] * [-1, 1], ends[:, :1], ends[:, 1:])
    return argmin, box_minimum, False


def _apply_to_axes(axis_matrix: Array, tensor_values: Array) -> Array:
    """Tensor product of ``axis_matrix``, applied to every axis of ``tensor_values``."""
    for axis in range(tensor_values.ndim):
        tensor_values = np.moveaxis(np.tensordot(axis_matrix, tensor_values, (1, axis)), 0, axis)
    return tensor_values


def _series_minimum(coefficients: Array) -> tuple[Array, float]:
    """Argument (k,) and value of the minimum in [-1, 1]^k of a Chebyshev series in k variables.

    Newton's method starts from the lowest point of a fine grid.  It moves along the axes that do
    not have the point at an end.
    """
    k = coefficients.ndim
    fine_grid = np.linspace(-1, 1, 53)  # dense enough to see every basin of the interpolant
    heights = _apply_to_axes(chebyshev.chebvander(fine_grid, len(coefficients) - 1), coefficients)
    x = fine_grid[list(np.unravel_index(np.argmin(heights), heights.shape))]
    gradients = [chebyshev.chebder(coefficients, axis=i) for i in range(k)]
    hessians = [[chebyshev.chebder(gradient, axis=j) for j in range(k)] for gradient in gradients]
    series_height = _series_value(coefficients, x)
    for _ in range(5):
        free_axes = np.abs(x) < 1
        gradient = np.array([_series_value(series, x) for series in gradients])[free_axes]
        hessian = np.array([[_series_value(series, x) for series in row] for row in hessians])
        step = np.zeros(k)
        try:
            step[free_axes] = np.linalg.solve(hessian[np.ix_(free_axes, free_axes)], -gradient)
        except np.linalg.LinAlgError:  # the series is constant: any x is as good
            break
        if np.abs(step).max() < 1e-15:
            break
        to_sides = np.divide(np.sign(step) - x, step, out=np.full(k, np.inf), where=step != 0)
        fraction = min(1, to_sides.min())  # of the step, up to the first side of the box
        trial_x = np.where(to_sides > fraction, np.clip(x + fraction * step, -1, 1), np.sign(step))
        trial_height = _series_value(coefficients, trial_x)
        if not trial_height <= series_height + 1e-15 * np.abs(coefficients).max():
            break
        x, series_height = trial_x, trial_height
    return x, series_height


def _series_value(series: Array, series_argument: Array) -> float:
    """Value of a Chebyshev series in k variables at x in [-1, 1]^k, by T_n(cos t) = cos(n t)."""
    for angle in np.arccos(series_argument):
        series = np.cos(angle * np.arange(len(series))) @ series
    return float(series)


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
        value_at_t, slope_at_t = function(t) if grid_t[0] <= t <= grid_t[-1] else (np.nan, np.nan)
        if not np.isfinite(value_at_t + slope_at_t):
            raise ConvergenceError(f"unknown at {t:g}", None)
        return value_at_t, 0.0 if _is_flat(value_at_t, slope_at_t, grid) else slope_at_t

    def minimum_in_interval(low: float, high: float) -> float:
        """The minimum in an interval, or in one next to it where the scan had an error."""
        interval_width = high - low
        while True:
            lower_end, inwards = (low, 1.0) if checked(low)[0] < checked(high)[0] else (high, -1.0)
            if inwards * checked(lower_end)[1] <= 0:
                break
            low, high = low - inwards * interval_width, high - inwards * interval_width

        def inward_slope(t: float) -> float:
            value_at_t, slope_at_t = checked(t)
            below_lower_end = value_at_t < checked(lower_end)[0] or t == lower_end
            return slope_at_t if below_lower_end else inwards * (abs(slope_at_t) or 1.0)

        return float(brentq(inward_slope, low, high, xtol=xtol))

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
