"""Nodes along the proximal map of a loss, for averages over t0.  docs/theory.md 6

With t = prox(t0) as the variable nothing has to be solved for:

    t0 = t + V rho'(t),   dt0 = (1 + V rho''(t)) dt,   g = -rho'(t),

between the kinks of rho, and at a kink t stays while t0 passes V times the jump of rho'.  The
graph is cut into panels that are short where the average's density changes and where rho bends.
"""

from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from solvers.results import Array
from solvers.rules import composite

from .losses import Loss
from .smoothness import BEND_STRETCH

LONGEST_PANEL = 5.0  # in the standard deviations of t0
# Panels that are added when a distance from a bend, or from where a density changes most, grows by
# a factor e.
GRADED_PANELS = 0.7
# The panels' ends are looked for on cells: so much of a factor e in that distance each, and no
# fewer or more than these.
CELL_LENGTH, FEWEST_CELLS, MOST_CELLS = 0.1, 3, 16
MOST_PANELS = 384
# Least scale beside a kink at which a stretch begins or ends, of the stretch's length.
KINK_SCALE = 1e-7
SMALLEST_SCALE = 1e-300
# Standard deviations of t0 that ends of the range may be off by: they need not be exact, but an end
# that jumps from pass to pass would hinder the iteration.
END_SLACK = 1e-3


class Spacing(Protocol):
    """How t0 is to be cut into panels for a density of it.  Arrays (..., 1) and (..., C)."""

    @property
    def slack(self) -> Array:
        """How far off in t0 the ends of the range may be."""

    def along(self, t0: Array) -> Array:
        """A coordinate that increases by one from panel to panel."""

    def at(self, along: Array) -> Array:
        """t0 at values of that coordinate."""

    def finest(self, first: Array, last: Array) -> tuple[Array, Array] | None:
        """Which of two ends panels are shortest at, in proportion to the distance further away,
        and the scale of t0 there."""


class Even(NamedTuple):
    """For a density that changes over ``sd`` (..., 1)."""

    sd: Array

    @property
    def slack(self) -> Array:
        return END_SLACK * self.sd

    def along(self, t0: Array) -> Array:
        return t0 / (LONGEST_PANEL * self.sd)

    def at(self, along: Array) -> Array:
        return along * (LONGEST_PANEL * self.sd)

    def finest(self, first: Array, last: Array) -> None:
        return None


class Tail(NamedTuple):
    """For a density that changes with the logarithm of the distance from ``pole`` (..., 1) on
    one ``side`` of it, 1 or -1, from ``least`` on."""

    side: float
    pole: Array
    least: Array
    slack: Array

    def along(self, t0: Array) -> Array:
        # what is nearer is not asked for
        away = np.maximum(self.side * (t0 - self.pole), self.least / 2)
        return self.side * np.log(away)

    def at(self, along: Array) -> Array:
        return self.pole + self.side * np.exp(self.side * along)

    def finest(self, first: Array, last: Array) -> tuple[Array, Array]:
        return (first if self.side > 0 else last), self.least


class Curve(NamedTuple):
    """Points (..., L) of the graph: t0, t, the score g of (6.1), dg / dt0 (NaN both where V = 0),
    and the length of t0 that each stands for."""

    t0: Array
    t: Array
    score: Array
    slope: Array
    length: Array


class Stretch(NamedTuple):
    """A part of the graph: t from ``first`` to ``last`` between kinks, or at a ``kink`` t0 from
    ``first`` to ``last``."""

    kink: float | None
    first: Array
    last: Array


def proximal_nodes(
    loss: Loss, V: Array, low: Array, high: Array, spacing: Spacing, order: int
) -> Curve:
    """Points with t0 between ``low`` and ``high``.

    All arrays (..., 1), with ``order`` points a panel; V = 0 everywhere is t = t0.
    """
    parts = stretches(loss, V, low, high, spacing)
    curves = [nodes_on(part, loss, V, spacing, order) for part in parts]
    return Curve(*(np.concatenate(parts, axis=-1) for parts in zip(*curves, strict=True)))


def stretches(loss: Loss, V: Array, low: Array, high: Array, spacing: Spacing) -> list[Stretch]:
    """The parts of the graph with t0 between ``low`` and ``high``, of no length where they are
    not."""
    moved = bool(np.any(V))
    # ends need not be exact, where nothing of the densities is or another part begins
    first, last = loss.proximal(np.stack([low, high]), V, spacing.slack) if moved else (low, high)
    ends = (-np.inf, *loss.kinks, np.inf)
    parts = [
        Stretch(None, np.clip(a, first, last), np.clip(b, first, last)) for a, b in pairwise(ends)
    ]
    for kink, *both in loss.flats(V) if moved and loss.jumps else ():
        parts.append(Stretch(kink, *(np.clip(end, low, high) for end in both)))
    return parts


def nodes_on(part: Stretch, loss: Loss, V: Array, spacing: Spacing, order: int) -> Curve:
    """Points on one stretch of the graph, with ``order`` points a panel."""
    if part.kink is None:
        return _between(loss, V, part.first, part.last, spacing, order)
    return _at(part.kink, V, part.first, part.last, spacing, order)


def _between(
    loss: Loss, V: Array, first: Array, last: Array, spacing: Spacing, order: int
) -> Curve:
    """Points with t from ``first`` to ``last``, where rho is smooth."""
    # longest at a bend, in t; in proportion to the distance away from it
    bends, longest = loss.bends or (0.0,), BEND_STRETCH * loss.width
    moved = bool(np.any(V))
    marks: list[tuple[Array | float, Array | float]] = [(bend, longest) for bend in bends]
    if (finest := spacing.finest(first, last)) is not None:
        # of t0, which may pass most of a tail while t stays near a bend
        end, scale = finest
        if moved:
            beside = np.minimum(scale, last - first) * KINK_SCALE  # of a kink
            near = np.clip(end, first + beside, last - beside)
            scale = np.maximum(scale / (1 + V * loss.second(near)), beside)
        marks.append((end, np.maximum(scale, SMALLEST_SCALE)))
    grid = np.concatenate([_around(at, scale, first, last) for at, scale in marks], axis=-1)
    grid = np.clip(np.sort(grid, axis=-1), first, last)

    inside = np.clip(grid, np.nextafter(first, np.inf), np.nextafter(last, -np.inf))
    t0 = grid + V * loss.derivative(inside) if moved else grid  # not beyond a kink
    bent = sum(_graded((grid - bend) / (longest * GRADED_PANELS)) for bend in bends)
    t, length = composite(order, _even(spacing.along(t0) + GRADED_PANELS * bent, grid))
    if not moved:
        unknown = np.full_like(t, np.nan)
        return Curve(t, t, unknown, unknown, length)
    second = loss.second(t)
    stretch = 1 + V * second
    score = -np.asarray(loss.derivative(t), dtype=float)
    return Curve(t - V * score, t, score, -second / stretch, length * stretch)


def _around(at: Array | float, scale: Array | float, first: Array, last: Array) -> Array:
    """Points from ``first`` to ``last``, even on the ``scale`` of what is ``at`` one of them, and
    in proportion to the distance further away."""
    a, b = (np.arcsinh((end - at) / scale) for end in (first, last))
    longest = (b - a).max(initial=0.0, where=np.isfinite(b - a))
    cells = int(np.clip(np.ceil(longest / CELL_LENGTH), FEWEST_CELLS, MOST_CELLS))
    return np.asarray(at + scale * np.sinh(a + (b - a) * np.linspace(0, 1, cells + 1)))


def _graded(x: Array) -> Array:
    """arcsinh x, computed in half the time that numpy's takes."""
    return np.asarray(np.copysign(np.log(np.abs(x) + np.sqrt(x * x + 1)), x))


def _at(kink: float, V: Array, low: Array, high: Array, spacing: Spacing, order: int) -> Curve:
    """Points with t0 from ``low`` to ``high``, where t stays at a kink."""
    start, end = spacing.along(low), spacing.along(high)
    panels = _panels(end - start)
    inner = spacing.at(start + (end - start) * np.arange(1, panels) / panels)
    t0, length = composite(order, np.concatenate([low, np.clip(inner, low, high), high], axis=-1))
    with np.errstate(all="ignore"):
        return Curve(t0, np.full_like(t0, kink), (kink - t0) / V, np.full_like(t0, -1) / V, length)


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
    return int(np.clip(np.ceil(longest), 1, MOST_PANELS))
