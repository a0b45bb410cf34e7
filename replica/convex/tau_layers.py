"""Panels over tau that close in on the layers of real labels with little noise of their own.

Given kappa and tau, t0 is Gaussian around D = E[y | z] - C - P tau with variance s^2 = S^2 - P^2
plus that of the noise.  Where D passes an end of a stretch of the proximal map, the average
over t0 changes in a stretch of tau of width s / |dD / dtau|.  Where two such places merge, as kappa
changes, or D passes an end over a whole stretch of tau at once, the average over tau has a layer in
kappa.  Large penalties leave s small.  A loss without kinks that bends as sharply counts as one,
and s as no less than what it bends over.  One direction tau.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from solvers.results import Array
from solvers.rules import Rule, closing_in, gauss_legendre

from ..problem import Model, remainder
from .local_field import Field
from .losses import Loss

REACH = 8.2
GRID = 129
EVEN = np.linspace(-REACH, REACH, GRID)  # tau, between which sign changes and extrema are
BESIDE = 1e-7  # from a kink to the point that stands for its side
STRIDE = 1e3  # times that, for the slope there
CUT = 16  # parts that such an interval is cut into,
ROUNDS = 3  # again and again
EDGE = 1.5  # widths, from where a loss bends most to where it has
NEAR = 10.0  # s, from an extremum of D to an end that it still feels
THINNEST = 1e-8  # layer worth resolving, at kappa = 0
LITTLE = 0.1  # variance, of the labels' power
TINY = 1e-24  # on s^2
MUCH = 1e12  # variance: layers are wide enough
FINE = 4.0  # cells of kappa in a layer that need no others to place it
FAR = 3.0  # tau, as far out as is likely
NARROW = 0.4  # passage of a plateau that panels do not resolve without help


class Line(NamedTuple):
    """D at N values of kappa (1, N), of which Gamma kappa (T, N), C and P (N,) are parts; s (N,);
    the ends (E, N) and, for each, the thinnest layer worth resolving (E, N)."""

    model: Model
    kappa: Array
    centre: Array
    prediction: Array
    pull: Array
    sd: Array
    ends: Array
    least: Array

    def at(self, rows: Array, tau: Array) -> Array:
        """D at the named kappa (M,) and ``tau`` (M, G)."""
        rest = remainder(self.model.geometry.gamma)[:, 0]
        z = self.centre[:, rows, None] + rest[:, None, None] * tau
        label = np.asarray(self.model.labels.mean(*z), dtype=float)
        return label - self.prediction[rows, None] - self.pull[rows, None] * tau

    def some(self, rows: Array) -> "Line":
        """At the named kappa alone."""
        return Line(self.model, *(part[..., rows] for part in self[1:]))


class Turns(NamedTuple):
    """Position and value of vertices, and the value at the points they are near, (N, G - 2),
    infinite where there is none; the second derivative."""

    at: Array
    value: Array
    middle: Array
    bend: Array


Lines = Callable[[Array], Line]


def line(model: Model, loss: Loss, kappa: Array, field: Field, usual: float = 0.0) -> Line:
    """D at kappa (1, N), where the fields of one point are ``field``; for layers in kappa, with the
    ``usual`` size of predictions."""
    pull, V = field.pull[0, :, 0], field.response[0]
    sd = np.sqrt(np.maximum(field.power[0] - pull**2, 0.0) + _blur(model, loss) + TINY)
    ends, least = [], []
    jumps = [right - left > 1e-9 for _, left, right in loss.flats(np.ones(()))]
    for (kink, left, right), jump in zip(loss.flats(V), jumps, strict=True):
        # where kappa is unlikely, or for new samples, whose loss has a kink but no jump, less
        # is worth resolving
        ends += [np.full_like(V, kink), left]
        least += [np.sqrt(THINNEST), THINNEST]
        if jump:
            ends.append(right)
            least.append(THINNEST)
    for bend in () if loss.kinks else loss.bends:
        for side in (-1.0, 1.0):
            edge = bend + side * EDGE * loss.width
            ends.append(edge + V * np.asarray(loss.derivative(np.array(edge)), dtype=float))
            least.append(THINNEST)
    # where features vanish layers in kappa are of no account: nothing of the equations is there
    rare = np.exp((kappa**2).sum(axis=0) / 2) * np.maximum(1.0, usual / _size(field))
    widths = np.array(least)[:, None] * rare
    centre = model.geometry.gamma @ kappa
    return Line(model, kappa, centre, field.centre[0], pull, sd, np.array(ends), widths)


def usual_size(kappa: Array, field: Field) -> float:
    """Of predictions, from even values of kappa (1, N)."""
    weights = np.exp(-(kappa**2).sum(axis=0) / 2)
    return float(np.sqrt(weights @ _size(field) ** 2 / weights.sum()))


def _size(field: Field) -> Array:
    return np.sqrt(field.power[0] + field.centre[0] ** 2)


def _blur(model: Model, loss: Loss) -> float:
    """The least variance that real labels have around E[y | z], or the like of Student's t; with
    that over which a loss without kinks bends."""
    sigma = 0.0 if model.labels.student_t is None else model.labels.student_t[1]
    own = 0.0 if loss.kinks else loss.width
    return min(variance for variance, _ in model.labels.gaussians) + sigma**2 + own**2


def sharp(model: Model, loss: Loss) -> bool:
    """Whether kinks, or bends as sharp, are seen through labels with little noise, in one
    direction tau."""
    rest = remainder(model.geometry.gamma)
    bent = bool(loss.kinks or loss.bends)
    if model.labels.binary or not bent or rest.shape[1] > 1 or not rest.any():
        return False
    z = rest * EVEN  # at kappa = 0
    weight = np.exp(-(EVEN**2) / 2)
    power = float(np.asarray(model.labels.mean(*z)) ** 2 @ weight / weight.sum())
    return _blur(model, loss) < LITTLE * power


def tau_rules(d: Line, law: list[tuple[float, float]], nodes: int, closing: float) -> list[Rule]:
    """Nodes (N, T, 1) and weights (N, T) over tau for every Gaussian of the ``law`` that is added
    to the labels, with that many ``nodes`` a panel; ``closing`` is how fast panels close in."""
    least, found = min(variance for variance, _ in law), []
    for variance, _ in law:
        more = np.clip(variance - least, 0.0, MUCH)
        rule = tau_rule(d._replace(sd=np.sqrt(d.sd**2 + more)), nodes, closing)
        found.append(Rule(rule.nodes[..., None], rule.weights))
    return found


def tau_rule(d: Line, nodes: int, closing: float) -> Rule:
    """Nodes and weights (N, T) over tau, with that many ``nodes`` a panel."""
    breaks = closing_in(*_layers(d), REACH, _kinks(d), closing=closing)
    return gauss_legendre(nodes, breaks, REACH, panel=2 * REACH)


def tangencies(first: Line, lines: Lines) -> list[tuple[float, float]]:
    """Layers (position, width) in kappa: where an extremum of D over tau, or a kink, passes an
    end, and places where D is there come and go.  ``first`` has D at values of kappa between
    which that is looked for."""
    kappa = first.kappa[0]
    which, cell = np.nonzero(_change(_counts(first)))
    if not cell.size:
        return []
    low, high = kappa[cell], kappa[cell + 1]
    width, known = _passage(first.some(cell), first.some(cell + 1), which)
    thin = ~(known & (width >= FINE * (high - low)))
    if thin.any():
        ends, each = which[thin], np.arange(np.count_nonzero(thin))

        def changes(parts: Array) -> Array:
            counts = _counts(lines(parts.ravel())).reshape(-1, *parts.shape, 3)
            return _change(counts[ends, each])

        low[thin], high[thin] = _closer(low[thin], high[thin], changes)
        width[thin], _ = _passage(lines(low[thin]), lines(high[thin]), ends)
    return list(zip(low, width, strict=True))


def _passage(before: Line, after: Line, which: Array) -> tuple[Array, Array]:
    """How wide in kappa the passage of an extremum by the ends named is, between ``before`` and
    ``after``, and whether there is an extremum where D is smooth (M,)."""
    each, turns = np.arange(which.size), _turns(before)
    near = np.argmin(np.abs(turns.value - before.ends[which, each][:, None]), axis=1)
    known = np.isfinite(turns.value[each, near])
    place = np.clip(turns.at[each, near][:, None], -REACH, REACH)
    beyond, short = (d.at(each, place)[:, 0] - d.ends[which, each] for d in (after, before))
    apart = (after.kappa - before.kappa)[0]
    width = before.sd * apart / np.maximum(np.abs(beyond - short), 1e-300)
    return np.maximum(np.maximum(width, before.least[which, each]), apart), known


def plateaus(first: Line, lines: Lines) -> list[tuple[float, float]]:
    """Layers (position, width) in kappa: where D passes an end over a stretch of tau at once, as
    beside a kink of the target or far out it may change little."""
    kappa = first.kappa[0]
    away, spread, piece = _plateaus(first)
    least = np.tile(first.least, (len(away) // len(first.ends), 1))
    step = np.abs(np.diff(away))
    thin = (spread * (kappa[1] - kappa[0]))[:, :-1] < NARROW * step
    change = (away[:, 1:] > 0) != (away[:, :-1] > 0)
    alike = (piece[:, 1:] == piece[:, :-1]) & (piece[:, 1:] >= 0)
    which, cell = np.nonzero(change & thin & alike & (least < NARROW)[:, :-1])
    if not cell.size:
        return []
    each = np.arange(cell.size)

    def there(parts: Array) -> Array:
        away, spread, _ = _plateaus(lines(parts.ravel()))
        return np.stack([x.reshape(-1, *parts.shape)[which, each] for x in (away, spread)])

    def changes(parts: Array) -> Array:
        above = there(parts)[0] > 0
        return above[:, 1:] != above[:, :-1]

    low, high = _closer(kappa[cell], kappa[cell + 1], changes)
    away, spread = there(np.stack([low, high], axis=-1))
    width = spread[:, 0] * (high - low) / np.maximum(np.abs(np.diff(away)[:, 0]), 1e-300)
    least = np.maximum(least[which, cell], high - low)
    return list(zip(low, np.maximum(width, least), strict=True))


def _plateaus(d: Line) -> tuple[Array, Array, Array]:
    """From either side of every kink and from far out, (I, N) each: D less each of the ends, how
    far it spreads over one of tau there, and in which piece of the target that is, -1 out of
    range."""
    kinks, away, spread, piece = _kinks(d), [], [], []
    far = [(np.full(d.sd.size, place), np.sign(place) * -BESIDE) for place in (-FAR, FAR)]
    for place, step in (*far, *_sides(d)):
        near, slope = _next_to(d, place, step)
        left = np.sum(kinks < (place + step)[:, None], axis=1)
        for end in d.ends:
            away.append(near - end)
            spread.append(d.sd + np.abs(slope))
            piece.append(np.where(np.abs(place) < REACH, left, -1))
    return np.array(away), np.array(spread), np.array(piece)


def _change(counts: Array) -> Array:
    """Whether places come or go, other than at the ends of the range of tau, (E, N - 1)."""
    first, inside, last = np.moveaxis(np.diff(counts, axis=-2), -1, 0)
    return (inside != 0) & (first == 0) & (last == 0)


def _counts(d: Line) -> Array:
    """For each end (E, N, 3): whether D is above it at the first tau, how often it passes it
    where it is smooth, and whether it is above at the last."""
    grid = _grid(d)
    values = d.at(np.arange(d.sd.size), grid)
    smooth = np.diff(grid, axis=1) > 2 * BESIDE
    turns = _turns(d)
    found = []
    for end in d.ends[..., None]:
        above = values > end
        passes = ((above[:, 1:] != above[:, :-1]) & smooth).sum(axis=1)
        # a turn beyond the end between points of the grid that are not
        passes += 2 * ((turns.value > end) != (turns.middle > end)).sum(axis=1)
        found.append(np.stack([above[:, 0], passes, above[:, -1]], axis=-1))
    return np.array(found, dtype=int)


def _grid(d: Line) -> Array:
    """Points of tau (N, G) with D between them smooth, but for the shortest cells, at kinks."""
    even = np.broadcast_to(EVEN, (d.sd.size, GRID))
    kinks = _kinks(d)
    beside = [np.clip(kinks + side, -REACH, REACH) for side in (-BESIDE, BESIDE)]
    return np.sort(np.concatenate([even, *beside], axis=1), axis=1)


def _turns(d: Line) -> Turns:
    """Extrema of D over tau, of parabolas through three neighbours without a kink."""
    step = EVEN[1] - EVEN[0]
    values = d.at(np.arange(d.sd.size), np.broadcast_to(EVEN, (d.sd.size, GRID)))
    left, middle, right = values[:, :-2], values[:, 1:-1], values[:, 2:]
    bend = (left - 2 * middle + right) / step**2
    slope = (right - left) / (2 * step)
    turning = (middle - left) * (right - middle) <= 0
    for kink in _kinks(d).T:
        turning &= np.abs(EVEN[1:-1] - kink[:, None]) > step
    with np.errstate(all="ignore"):
        away = np.where(turning & (bend != 0), -slope / bend, np.inf)
        value = middle - slope**2 / (2 * bend)
    inside = np.abs(away) <= step
    at, value, middle = (np.where(inside, x, np.inf) for x in (EVEN[1:-1] + away, value, middle))
    return Turns(at, value, middle, bend)


def _layers(d: Line) -> tuple[Array, Array]:
    """Positions and widths of the layers in tau, (N, M) each, as many as there are at most;
    infinite where there are fewer."""
    rows = np.arange(d.sd.size)
    grid = _grid(d)
    values = d.at(rows, grid)
    turns = _turns(d)
    found = []
    for end, least in zip(d.ends, d.least, strict=True):
        row, place, width = _zeros(d, end, grid, values)
        found.append((row, place, np.maximum(width, least[row])))
        row, column = np.nonzero(np.abs(turns.value - end[:, None]) <= NEAR * d.sd[:, None])
        width = np.sqrt(2 * d.sd[row] / np.abs(turns.bend[row, column]))
        found.append((row, turns.at[row, column], np.maximum(width, least[row])))
        found += [
            (row, place, np.maximum(width, least[row])) for row, place, width in _beside(d, end)
        ]
    row, at, width = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(row, kind="stable")
    row, at, width = row[order], at[order], width[order]
    place = np.arange(row.size) - np.searchsorted(row, row)
    shape = rows.size, int(place.max(initial=-1)) + 1
    table = np.full((2, *shape), np.inf)
    table[0, row, place], table[1, row, place] = at, width
    return table[0], table[1]


def _zeros(d: Line, end: Array, grid: Array, values: Array) -> tuple[Array, Array, Array]:
    """Rows, positions and widths of the sign changes of D - ``end``."""
    above = values > end[:, None]
    smooth = np.diff(grid, axis=1) > 2 * BESIDE
    row, cell = np.nonzero((above[:, 1:] != above[:, :-1]) & smooth)

    def along(tau: Array) -> Array:
        return d.at(row, tau) - end[row, None]

    def changes(tau: Array) -> Array:
        above = along(tau) > 0
        return above[:, 1:] != above[:, :-1]

    low, high = _closer(grid[row, cell], grid[row, cell + 1], changes)
    slope = np.diff(along(np.stack([low, high], axis=-1)))[:, 0] / (high - low)
    return row, low, d.sd[row] / np.maximum(np.abs(slope), 1e-300)


def _beside(d: Line, end: Array) -> Iterator[tuple[Array, Array, Array]]:
    """The same of either side of every kink from which D is not far from ``end``."""
    rows = np.arange(d.sd.size)
    for place, step in _sides(d):
        near, slope = _next_to(d, place, step)
        close = np.abs(near - end) <= NEAR * d.sd
        width = d.sd / np.maximum(np.abs(slope), 1e-300)
        yield rows[close], place[close], width[close]


def _sides(d: Line) -> Iterator[tuple[Array, float]]:
    """The places (N,) of kinks, and steps to either side."""
    for kink in _kinks(d).T:
        for step in (-BESIDE, BESIDE):
            yield np.clip(kink, -REACH, REACH), step


def _next_to(d: Line, place: Array, step: float) -> tuple[Array, Array]:
    """D and its slope (N,) a ``step`` from a ``place`` (N,)."""
    tau = place[:, None] + step * np.array([1.0, STRIDE])
    near, further = d.at(np.arange(d.sd.size), tau).T
    return near, (further - near) / (step * (STRIDE - 1))


def _closer(low: Array, high: Array, changes: Callable[[Array], Array]) -> tuple[Array, Array]:
    """The first of the parts between ``low`` and ``high`` (M,), again and again, over which there
    are ``changes`` (M, CUT), which is given the ends of the parts."""
    each = np.arange(low.size)
    for _ in range(ROUNDS):
        ends = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, CUT + 1)
        cell = np.argmax(changes(ends), axis=1)
        low, high = ends[each, cell], ends[each, cell + 1]
    return low, high


def _kinks(d: Line) -> Array:
    """Where the target has its kinks in tau, (N, k)."""
    kinks = d.model.labels.mean.kinks
    rest = remainder(d.model.geometry.gamma)
    if not kinks:
        return np.empty((d.sd.size, 0))
    return (np.asarray(kinks) - d.centre[0][:, None]) / rest[0, 0]
