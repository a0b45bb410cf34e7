"""Piecewise quadratic convex functions: proximal maps and their Gaussian averages, exactly.

The proximal map of f at t0, the minimiser t of (t - t0)^2 / (2V) + f(t), is piecewise linear
in t0 if f is piecewise quadratic, and so is the score g = (t - t0) / V.  Averages of g, g',
g^2, t, t^2 and f(t) over t0 = mean + sd z, with z normal or of a ``Distribution`` of its own, are
then sums of truncated moments: a kink of f, or of g, costs no quadrature.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import ndtr

from .results import Array
from .rules import composite, gaussian_density

NORMAL_CUT = 30.0  # beyond it a normal law holds 1e-197: its density would be denormal numbers


class Distribution(Protocol):
    """A law of z = (t0 - mean) / sd, of any mass, of which averages over pieces can be made."""

    @property
    def total(self) -> tuple[Array, Array, Array]:
        """E 1, E z and E z^2, of shapes that broadcast with that of t0."""

    def integrals(self, z: Array) -> tuple[Array, Array, Array]:
        """Integrals from -inf to each z of the density times 1, z and z^2."""

    def density(self, z: Array) -> Array:
        """The density at each z."""


class Normal(Distribution):
    """The standard normal law of z."""

    total = np.ones(()), np.zeros(()), np.ones(())

    def integrals(self, z: Array) -> tuple[Array, Array, Array]:
        z = np.clip(z, -NORMAL_CUT, NORMAL_CUT)
        mass, density = ndtr(z), self.density(z)
        return mass, -density, mass - z * density

    def density(self, z: Array) -> Array:
        """The density exp(-z^2 / 2) / sqrt(2 pi) at each z."""
        return gaussian_density(np.clip(z, -NORMAL_CUT, NORMAL_CUT))


NORMAL = Normal()


class Pieces(NamedTuple):
    """A continuous convex f(t): a + b t + q t^2 / 2 on each interval between the knots.

    Attributes
    ----------
    knots : tuple of float, increasing
    coefficients : tuple of (a, b, q)
        One more than there are knots.
    """

    knots: tuple[float, ...]
    coefficients: tuple[tuple[float, float, float], ...]

    def piece(self, t: Array) -> tuple[Array, Array, Array]:
        """a, b, q of the piece that each t lies in."""
        index = np.searchsorted(np.asarray(self.knots), t)
        a, b, q = np.asarray(self.coefficients, dtype=float).T
        return a[index], b[index], q[index]

    def value(self, t: Array) -> Array:
        """f(t)."""
        a, b, q = self.piece(t)
        return np.asarray(a + t * (b + q * t / 2))

    def derivative(self, t: Array) -> Array:
        """f'(t); at a kink, the one from the left."""
        _, b, q = self.piece(t)
        return np.asarray(b + q * t)

    def prox(self, t0: Array, V: Array) -> Array:
        """The minimiser t of (t - t0)^2 / (2V) + f(t), for t0 and V of one shape."""
        t = np.empty(t0.shape)
        for segment in segments(self, V):
            here = (t0 >= segment.low) & (t0 <= segment.high)
            t = np.where(here, segment.t[0] + segment.t[1] * t0, t)
        return t


class Segment(NamedTuple):
    """An interval of t0 on which the proximal map and the score are linear.

    Attributes
    ----------
    low, high : arrays of the shape of V
        Its ends.
    t, g : pairs of arrays of that shape
        The map is t[0] + t[1] t0, the score g[0] + g[1] t0.
    piece : (a, b, q)
        f(t) there.
    jump : (float, float), optional
        Where t stays at a kink of f: f' to the left and to the right of it.
    """

    low: Array
    high: Array
    t: tuple[Array, Array]
    g: tuple[Array, Array]
    piece: tuple[float, float, float]
    jump: tuple[float, float] | None = None


def segments(pieces: Pieces, V: Array) -> Iterator[Segment]:
    """The intervals of the proximal map: one for each piece and for each kink."""
    zero, low = np.zeros_like(V), np.full_like(V, -np.inf)
    for i, (a, b, q) in enumerate(pieces.coefficients):
        shrink = 1 / (1 + V * q)
        inside = (-V * b * shrink, shrink), (-b * shrink, -q * shrink)
        if i == len(pieces.knots):
            yield Segment(low, np.full_like(V, np.inf), *inside, (a, b, q))
            return
        knot = pieces.knots[i]
        _, b_next, q_next = pieces.coefficients[i + 1]
        before, after = b + q * knot, b_next + q_next * knot
        high = knot + V * before
        yield Segment(low, high, *inside, (a, b, q))
        low = knot + V * after
        if after > before:
            rate = 1 / np.maximum(V, 1e-300)
            at_knot = (knot + zero, zero), (knot * rate, -rate)
            yield Segment(high, low, *at_knot, (a, b, q), (before, after))


def average_score(
    pieces: Pieces, mean: Array, sd: Array, V: Array, law: Distribution = NORMAL
) -> Array:
    """E g, E g' and E g^2 over t0 = mean + sd z, arrays that broadcast, where z has the ``law``.

    Examples
    --------
    >>> square = Pieces((), ((0.0, 0.0, 1.0),))
    >>> [float(x) for x in average_score(square, np.array(1.0), np.array(2.0), np.array(1.0))]
    [-0.5, -0.5, 1.25]
    """
    total = np.zeros((3, *np.broadcast_shapes(mean.shape, sd.shape, V.shape)))
    for segment, masses in _masses(pieces, mean, sd, V, law):
        _, b, q = segment.piece
        if segment.jump is None and q == 0:  # the score is constant
            total[0] -= b * masses[0]
            total[2] += b**2 * masses[0]
            continue
        with np.errstate(all="ignore"):  # V = 0 at a kink, whose segment is narrow then
            first, square = _moments(segment.g, masses, mean, sd)
            parts = [first, segment.g[1] * masses[0], square]
        if segment.jump is not None:
            width = V * (segment.jump[1] - segment.jump[0]) / 2 / sd
            narrow = width < 0.05  # where the moments cancel, and four nodes err by 1e-14
            if narrow.any():
                by_nodes = _score_by_nodes(segment, width, mean, sd, V, law)
                parts = [np.where(narrow, *both) for both in zip(by_nodes, parts, strict=True)]
        for i, part in enumerate(parts):
            total[i] += part
    return total


def _moments(
    line: tuple[Array, Array], masses: tuple[Array, ...], mean: Array, sd: Array
) -> tuple[Array, Array]:
    """E x and E x^2 of x = line[0] + line[1] (mean + sd z), from E 1, E z and E z^2."""
    I0, I1, I2 = masses
    centre, rate = line[0] + line[1] * mean, line[1] * sd
    first = centre * I0 + rate * I1
    return first, centre * (first + rate * I1) + rate**2 * I2


def _score_by_nodes(
    segment: Segment, width: Array, mean: Array, sd: Array, V: Array, law: Distribution
) -> list[Array]:
    """Averages of g, g' and g^2 over the segment of a kink, of half ``width`` in standard
    deviations.  Gauss-Legendre is exact to rounding if that is small, as the score is linear,
    whatever V."""
    assert segment.jump is not None
    left, right = segment.jump
    half = (right - left) / 2
    away = (mean - (segment.low + segment.high) / 2) / sd
    rule = composite(4, np.array([-1.0, 1.0]))
    u, w = (x.reshape(-1, *np.ones(away.ndim, dtype=int)) for x in rule)
    density = law.density(width * u - away) * (w * half / sd)  # over V
    score = -(left + right) / 2 - half * u
    return [
        (score * density).sum(axis=0) * V,
        -density.sum(axis=0),
        (score**2 * density).sum(axis=0) * V,
    ]


def average_proximal(
    pieces: Pieces, mean: Array, sd: Array, V: Array, law: Distribution = NORMAL
) -> Array:
    """E t, E t^2 and E f(t) over t0 = mean + sd z; V = 0 is t = t0 itself.

    Examples
    --------
    >>> absolute = Pieces((0.0,), ((0.0, -1.0, 0.0), (0.0, 1.0, 0.0)))
    >>> average = average_proximal(absolute, np.array(0.0), np.array(1.0), np.array(0.0))
    >>> round(float(average[2]), 12)  # sqrt(2 / pi)
    0.797884560803
    """
    total = np.zeros((3, *np.broadcast_shapes(mean.shape, sd.shape, V.shape)))
    for segment, masses in _masses(pieces, mean, sd, V, law):
        a, b, q = segment.piece
        first, second = _moments(segment.t, masses, mean, sd)
        for i, part in enumerate((first, second, a * masses[0] + b * first + q / 2 * second)):
            total[i] += part
    return total


def _masses(
    pieces: Pieces, mean: Array, sd: Array, V: Array, law: Distribution
) -> Iterator[tuple[Segment, tuple[Array, ...]]]:
    """Each segment with E 1, E z and E z^2 restricted to where t0 = mean + sd z is in it."""
    each = list(segments(pieces, V))
    start: tuple[Array, ...] = (np.zeros(()),) * 3
    ends = [law.total]
    if inner := [(segment.high - mean) / sd for segment in each[:-1]]:
        ends = [*zip(*law.integrals(np.stack(inner)), strict=True), law.total]
    for segment, end in zip(each, ends, strict=True):
        yield segment, tuple(b - a for a, b in zip(start, end, strict=True))
        start = end
