"""Nodes along the proximal map of a loss, for averages over t0.  docs/theory.md 6

With t = prox(t0) as the variable nothing has to be solved for:

    t0 = t + V rho'(t),   dt0 = (1 + V rho''(t)) dt,   g = -rho'(t),

between the kinks of rho, and at a kink t stays while t0 passes V times the jump of rho'.  The
graph is cut into panels that are short where the average's density changes and where rho bends.
"""

from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from solvers.piecewise import average_proximal, average_score
from solvers.results import Array
from solvers.rules import composite_legendre

from .losses import Loss
from .smoothness import BEND_STRETCH

# What is averaged over t0: g, g' and g^2, or t, t^2 and rho(t).
Averaged = Literal["score", "residual"]
OF_PIECES = {"score": average_score, "residual": average_proximal}

FAR = 7.0  # standard deviations of t0, beyond which a Gaussian holds 3e-12
LONGEST_PANEL = 5.0  # in the standard deviations of t0


class Graph(NamedTuple):
    """Points (..., L) of the graph: t0, t, the score g of (6.1), dg / dt0, and the length of t0
    that each stands for."""

    t0: Array
    t: Array
    score: Array
    slope: Array
    length: Array


def proximal_nodes(loss: Loss, V: Array, low: Array, high: Array, sd: Array, order: int) -> Graph:
    """Points with t0 between ``low`` and ``high``, ``order`` a panel, for a density of t0 that
    changes over ``sd``: arrays (..., 1)."""
    # ends need not be exact, where nothing of the densities is or another part begins; but one that
    # jumps from pass to pass would hinder the iteration
    first, last = loss.proximal(np.stack([low, high]), V, 1e-3 * sd)
    curves = [
        _between(loss, V, np.clip(start, first, last), np.clip(end, first, last), sd, order)
        for start, end in pairwise((-np.inf, *loss.kinks, np.inf))
    ]
    for kink, start, end in loss.flats(V) if loss.jumps else ():
        curves.append(_at(kink, V, np.clip(start, low, high), np.clip(end, low, high), sd, order))
    return Graph(*(np.concatenate(parts, axis=-1) for parts in zip(*curves, strict=True)))


def at_points(what: Averaged, loss: Loss, curve: Graph) -> Array:
    """What is ``Averaged``, at points (3, ..., L)."""
    if what == "residual":
        return np.stack([curve.t, curve.t**2, loss.value(curve.t)])
    return np.stack([curve.score, curve.slope, curve.score**2])


def _between(loss: Loss, V: Array, first: Array, last: Array, sd: Array, order: int) -> Graph:
    """Points with t from ``first`` to ``last``, where rho is smooth."""
    # longest at a bend, in t; in proportion to the distance away from it
    bends, longest = loss.bends or (0.0,), BEND_STRETCH * loss.width
    grid = np.concatenate([_around(bend, longest, first, last) for bend in bends], axis=-1)
    grid = np.clip(np.sort(grid, axis=-1), first, last)
    inside = np.clip(grid, np.nextafter(first, np.inf), np.nextafter(last, -np.inf))
    t0 = grid + V * loss.derivative(inside)  # not beyond a kink
    graded = 0.7  # panels that are added when the distance from a bend grows by a factor e
    bent = sum(np.arcsinh((grid - bend) / (longest * graded)) for bend in bends)
    t, length = composite_legendre(order, _even(t0 / (LONGEST_PANEL * sd) + graded * bent, grid))
    second, score = loss.second(t), -loss.derivative(t)
    stretch = 1 + V * second
    return Graph(t - V * score, t, score, -second / stretch, length * stretch)


def _around(at: float, scale: float, first: Array, last: Array) -> Array:
    """Points from ``first`` to ``last``, even on the ``scale`` of what is ``at`` one of them, and
    in proportion to the distance further away."""
    a, b = (np.arcsinh((end - at) / scale) for end in (first, last))
    longest = (b - a).max(initial=0.0, where=np.isfinite(b - a))
    cells = int(np.clip(np.ceil(10 * longest), 3, 16))
    return np.asarray(at + scale * np.sinh(a + (b - a) * np.linspace(0, 1, cells + 1)))


def _at(kink: float, V: Array, low: Array, high: Array, sd: Array, order: int) -> Graph:
    """Points with t0 from ``low`` to ``high``, where t stays at a kink."""
    panels = _panels((high - low) / (LONGEST_PANEL * sd))
    t0, length = composite_legendre(order, low + (high - low) * np.linspace(0, 1, panels + 1))
    return Graph(t0, np.full_like(t0, kink), (kink - t0) / V, np.full_like(t0, -1) / V, length)


def _even(along: Array, grid: Array) -> Array:
    """Ends of panels (..., M + 1), at even distances in ``along``, known on the ``grid``, both
    (..., C) and increasing."""
    start, total = along[..., :1], np.ptp(along, axis=-1, keepdims=True)
    share = np.where(total > 0, (along - start) / np.where(total > 0, total, 1), 0.0)
    share[..., -1] = 1.0
    share = np.maximum.accumulate(np.nan_to_num(share), axis=-1)
    wanted = np.linspace(0, 1, _panels(total) + 1)
    # all rows at once, each beyond the one before
    row = 2.0 * np.arange(total.size).reshape(total.shape)
    breaks = np.interp(row + wanted, (row + share).ravel(), grid.ravel())
    breaks[..., 0], breaks[..., -1] = grid[..., 0], grid[..., -1]
    return breaks


def _panels(lengths: Array) -> int:
    """How many panels cover the longest of ``lengths``, which count panels."""
    longest = lengths.max(initial=1.0, where=np.isfinite(lengths))
    return int(np.clip(np.ceil(longest), 1, 384))
