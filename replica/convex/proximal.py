"""Quadrature nodes along the proximal map of a loss, for averages over t0.  docs/theory.md 6

With t = prox(t0) as the variable, no equation has to be solved:

    t0 = t + V rho'(t),   dt0 = (1 + V rho''(t)) dt,   g = -rho'(t),

between the kinks of rho.  At a kink t is constant while t0 increases by V times the jump of rho'.
The graph of the map is divided into panels that are short where the density of t0 varies and where
rho bends.
"""

from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from solvers.piecewise import average_proximal, average_score
from solvers.results import Array
from solvers.rules import composite_legendre

from .losses import Loss
from .smoothness import BEND_STRETCH

# Quantities to average over t0: g, g' and g^2, or t, t^2 and rho(t).
Averaged = Literal["score", "residual"]
EXACT_AVERAGES = {"score": average_score, "residual": average_proximal}

FAR = 7.0  # standard deviations of t0: a Gaussian has the mass 3e-12 beyond
LONGEST_PANEL = 5.0  # in standard deviations of t0


class Graph(NamedTuple):
    """Points (..., L) of the graph of a proximal map: t0, t, the score g of (6.1), dg / dt0, and
    the quadrature weight in t0."""

    t0: Array
    t: Array
    score: Array
    slope: Array
    length: Array


def proximal_nodes(loss: Loss, V: Array, low: Array, high: Array, sd: Array, order: int) -> Graph:
    """Points of the graph with t0 between ``low`` and ``high``, for a density of t0 with standard
    deviation ``sd``, arrays (..., 1); a panel has ``order`` points."""
    # ends need not be exact, as the density vanishes there or another part of the graph begins; but
    # an end that jumps from pass to pass would disturb the iteration
    first, last = loss.proximal(np.stack([low, high]), V, 1e-3 * sd)
    curves = [
        _smooth_points(loss, V, np.clip(start, first, last), np.clip(end, first, last), sd, order)
        for start, end in pairwise((-np.inf, *loss.kinks, np.inf))
    ]
    for kink, start, end in loss.flats(V) if loss.jumps else ():
        curves.append(
            _at_kink(kink, V, np.clip(start, low, high), np.clip(end, low, high), sd, order)
        )
    return Graph(*(np.concatenate(parts, axis=-1) for parts in zip(*curves, strict=True)))


def averaged_values(quantity: Averaged, loss: Loss, curve: Graph) -> Array:
    """Values of the averaged quantities at points of the graph, (3, ..., L)."""
    if quantity == "residual":
        return np.stack([curve.t, curve.t**2, loss.value(curve.t)])
    return np.stack([curve.score, curve.slope, curve.score**2])


def _smooth_points(loss: Loss, V: Array, first: Array, last: Array, sd: Array, order: int) -> Graph:
    """Points of the graph with t from ``first`` to ``last``, where rho is smooth."""
    # panel lengths in t: ``longest`` at a bend, and in proportion to the distance from it
    bends, longest = loss.bends or (0.0,), BEND_STRETCH * loss.width
    grid = np.concatenate([_bend_grid(bend, longest, first, last) for bend in bends], axis=-1)
    grid = np.clip(np.sort(grid, axis=-1), first, last)
    inside = np.clip(grid, np.nextafter(first, np.inf), np.nextafter(last, -np.inf))
    t0 = grid + V * loss.derivative(inside)  # with the slope on this side of a kink
    rate = 0.7  # number of panels while the distance from a bend grows by a factor e
    bent = sum(np.arcsinh((grid - bend) / (longest * rate)) for bend in bends)
    t, length = composite_legendre(
        order, _even_breaks(t0 / (LONGEST_PANEL * sd) + rate * bent, grid)
    )
    curvature, score = loss.second(t), -loss.derivative(t)
    stretch = 1 + V * curvature
    return Graph(t - V * score, t, score, -curvature / stretch, length * stretch)


def _bend_grid(centre: float, scale: float, first: Array, last: Array) -> Array:
    """Grid from ``first`` to ``last``, even on a ``scale`` near ``centre``, and with spacing in
    proportion to the distance further away."""
    a, b = (np.arcsinh((end - centre) / scale) for end in (first, last))
    longest = (b - a).max(initial=0.0, where=np.isfinite(b - a))
    cells = int(np.clip(np.ceil(10 * longest), 3, 16))
    return np.asarray(centre + scale * np.sinh(a + (b - a) * np.linspace(0, 1, cells + 1)))


def _at_kink(kink: float, V: Array, low: Array, high: Array, sd: Array, order: int) -> Graph:
    """Points of the graph with t0 from ``low`` to ``high``, where t is constant at a kink."""
    panels = _panel_count((high - low) / (LONGEST_PANEL * sd))
    t0, length = composite_legendre(order, low + (high - low) * np.linspace(0, 1, panels + 1))
    return Graph(t0, np.full_like(t0, kink), (kink - t0) / V, np.full_like(t0, -1) / V, length)


def _even_breaks(along: Array, grid: Array) -> Array:
    """Ends of panels (..., M + 1) at equal distances in ``along``, a function that is given on the
    ``grid``; both are (..., C) and increasing."""
    start, total = along[..., :1], np.ptp(along, axis=-1, keepdims=True)
    fraction = np.where(total > 0, (along - start) / np.where(total > 0, total, 1), 0.0)
    fraction[..., -1] = 1.0
    fraction = np.maximum.accumulate(np.nan_to_num(fraction), axis=-1)
    wanted = np.linspace(0, 1, _panel_count(total) + 1)
    # one interpolation for all rows, each shifted beyond the previous one
    row_offset = 2.0 * np.arange(total.size).reshape(total.shape)
    breaks = np.interp(row_offset + wanted, (row_offset + fraction).ravel(), grid.ravel())
    breaks[..., 0], breaks[..., -1] = grid[..., 0], grid[..., -1]
    return breaks


def _panel_count(lengths: Array) -> int:
    """Number of panels for the longest of ``lengths``, which are in units of panels."""
    longest = lengths.max(initial=1.0, where=np.isfinite(lengths))
    return int(np.clip(np.ceil(longest), 1, 384))
