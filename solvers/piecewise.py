"""Piecewise quadratic convex functions: exact proximal maps, and exact Gaussian averages of them.

The proximal map of f takes t0 to the minimiser t of (t - t0)^2 / (2V) + f(t).  If f is piecewise
quadratic, the map is piecewise linear in t0, and so is the score g = (t - t0) / V.  Averages of g,
g', g^2, t, t^2 and f(t) over t0 = mean + sd z are then sums of truncated moments of z, for a normal
z or any other ``Distribution``.  Kinks of f or g need no quadrature.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import ndtr

from .results import Array
from .rules import composite_legendre, gaussian_density

NORMAL_CUT = 30.0  # normal mass beyond: 1e-197; further out the density would underflow


class Distribution(Protocol):
    """Law of z = (t0 - mean) / sd, of any total mass, with known truncated moments."""

    @property
    def total(self) -> tuple[Array, Array, Array]:
        """E 1, E z and E z^2, of shapes that broadcast with the shape of t0."""

    def partial_moments(self, z: Array) -> tuple[Array, Array, Array]:
        """Integrals from -inf to each z of the density times 1, z and z^2."""

    def density(self, z: Array) -> Array:
        """Density at each z."""


class Normal(Distribution):
    """Standard normal law of z."""

    total = np.ones(()), np.zeros(()), np.ones(())

    def partial_moments(self, z: Array) -> tuple[Array, Array, Array]:
        z = np.clip(z, -NORMAL_CUT, NORMAL_CUT)
        mass, density = ndtr(z), self.density(z)
        return mass, -density, mass - z * density

    def density(self, z: Array) -> Array:
        """Normal density exp(-z^2 / 2) / sqrt(2 pi) at each z."""
        return gaussian_density(np.clip(z, -NORMAL_CUT, NORMAL_CUT))


NORMAL = Normal()


class Pieces(NamedTuple):
    """Continuous convex function f(t) = a + b t + q t^2 / 2 on each interval between the knots.

    Attributes
    ----------
    knots : tuple of float, increasing
    coefficients : tuple of (a, b, q)
        One triple for each interval, so one more than there are knots.
    """

    knots: tuple[float, ...]
    coefficients: tuple[tuple[float, float, float], ...]

    def coefficients_at(self, t: Array) -> tuple[Array, Array, Array]:
        """Coefficients a, b, q of the piece that contains each t."""
        index = np.searchsorted(np.asarray(self.knots), t)
        a, b, q = np.asarray(self.coefficients, dtype=float).T
        return a[index], b[index], q[index]

    def value(self, t: Array) -> Array:
        """Value f(t)."""
        a, b, q = self.coefficients_at(t)
        return np.asarray(a + t * (b + q * t / 2))

    def derivative(self, t: Array) -> Array:
        """Derivative f'(t); at a kink, the left derivative."""
        _, b, q = self.coefficients_at(t)
        return np.asarray(b + q * t)

    def prox(self, t0: Array, V: Array) -> Array:
        """Proximal map: the minimiser t of (t - t0)^2 / (2V) + f(t), for t0 and V of one shape."""
        t = np.empty(t0.shape)
        for segment in segments(self, V):
            inside = (t0 >= segment.low) & (t0 <= segment.high)
            t = np.where(inside, segment.t[0] + segment.t[1] * t0, t)
        return t


class Segment(NamedTuple):
    """Interval of t0 on which the proximal map and the score are linear.

    Attributes
    ----------
    low, high : arrays of the shape of V
        Ends of the interval.
    t, g : pairs of arrays of that shape
        The proximal map is t[0] + t[1] t0, and the score is g[0] + g[1] t0.
    piece : (a, b, q)
        Coefficients of f(t) on the interval.
    jump : (float, float), optional
        Left and right derivative of f at the kink where t stays, if it does.
    """

    low: Array
    high: Array
    t: tuple[Array, Array]
    g: tuple[Array, Array]
    piece: tuple[float, float, float]
    jump: tuple[float, float] | None = None


def segments(pieces: Pieces, V: Array) -> Iterator[Segment]:
    """Intervals on which the proximal map is linear: one for each piece and each kink."""
    zero, low = np.zeros_like(V), np.full_like(V, -np.inf)
    for i, (a, b, q) in enumerate(pieces.coefficients):
        shrinkage = 1 / (1 + V * q)
        lines = (-V * b * shrinkage, shrinkage), (-b * shrinkage, -q * shrinkage)
        if i == len(pieces.knots):
            yield Segment(low, np.full_like(V, np.inf), *lines, (a, b, q))
            return
        knot = pieces.knots[i]
        _, b_next, q_next = pieces.coefficients[i + 1]
        left_slope, right_slope = b + q * knot, b_next + q_next * knot
        high = knot + V * left_slope
        yield Segment(low, high, *lines, (a, b, q))
        low = knot + V * right_slope
        if right_slope > left_slope:
            rate = 1 / np.maximum(V, 1e-300)
            lines_at_knot = (knot + zero, zero), (knot * rate, -rate)
            yield Segment(high, low, *lines_at_knot, (a, b, q), (left_slope, right_slope))


def average_score(
    pieces: Pieces, mean: Array, sd: Array, V: Array, law: Distribution = NORMAL
) -> Array:
    """Averages E g, E g' and E g^2 over t0 = mean + sd z, where z has the ``law``.

    Examples
    --------
    >>> square = Pieces((), ((0.0, 0.0, 1.0),))
    >>> [float(x) for x in average_score(square, np.array(1.0), np.array(2.0), np.array(1.0))]
    [-0.5, -0.5, 1.25]
    """
    total = np.zeros((3, *np.broadcast_shapes(mean.shape, sd.shape, V.shape)))
    for segment, masses in _segment_moments(pieces, mean, sd, V, law):
        _, b, q = segment.piece
        if segment.jump is None and q == 0:  # the score is constant
            total[0] -= b * masses[0]
            total[2] += b**2 * masses[0]
            continue
        with np.errstate(all="ignore"):  # V = 0 at a kink divides by 0; its segment is narrow
            mean_score, mean_square = _linear_moments(segment.g, masses, mean, sd)
            terms = [mean_score, segment.g[1] * masses[0], mean_square]
        if segment.jump is not None:
            width = V * (segment.jump[1] - segment.jump[0]) / 2 / sd
            narrow = width < 0.05  # there the moments cancel, and four nodes have an error of 1e-14
            if narrow.any():
                by_nodes = _score_by_nodes(segment, width, mean, sd, V, law)
                terms = [np.where(narrow, *pair) for pair in zip(by_nodes, terms, strict=True)]
        for i, term in enumerate(terms):
            total[i] += term
    return total


def _linear_moments(
    line: tuple[Array, Array], masses: tuple[Array, ...], mean: Array, sd: Array
) -> tuple[Array, Array]:
    """Moments E x and E x^2 of x = line[0] + line[1] (mean + sd z), from E 1, E z and E z^2."""
    I0, I1, I2 = masses
    centre, rate = line[0] + line[1] * mean, line[1] * sd
    mean_x = centre * I0 + rate * I1
    return mean_x, centre * (mean_x + rate * I1) + rate**2 * I2


def _score_by_nodes(
    segment: Segment, width: Array, mean: Array, sd: Array, V: Array, law: Distribution
) -> list[Array]:
    """Averages of g, g' and g^2 over the segment of a kink, by Gauss-Legendre nodes.

    The segment has the half ``width`` in standard deviations.  If that is small, the rule is exact
    to rounding for any V, as the score is linear.
    """
    assert segment.jump is not None
    left, right = segment.jump
    half = (right - left) / 2
    offset = (mean - (segment.low + segment.high) / 2) / sd
    rule = composite_legendre(4, np.array([-1.0, 1.0]))
    u, w = (x.reshape(-1, *np.ones(offset.ndim, dtype=int)) for x in rule)
    density = law.density(width * u - offset) * (w * half / sd)  # over V
    score = -(left + right) / 2 - half * u
    return [
        (score * density).sum(axis=0) * V,
        -density.sum(axis=0),
        (score**2 * density).sum(axis=0) * V,
    ]


def average_proximal(
    pieces: Pieces, mean: Array, sd: Array, V: Array, law: Distribution = NORMAL
) -> Array:
    """Averages E t, E t^2 and E f(t) over t0 = mean + sd z, where V = 0 means t = t0.

    Examples
    --------
    >>> absolute = Pieces((0.0,), ((0.0, -1.0, 0.0), (0.0, 1.0, 0.0)))
    >>> average = average_proximal(absolute, np.array(0.0), np.array(1.0), np.array(0.0))
    >>> round(float(average[2]), 12)  # sqrt(2 / pi)
    0.797884560803
    """
    total = np.zeros((3, *np.broadcast_shapes(mean.shape, sd.shape, V.shape)))
    for segment, masses in _segment_moments(pieces, mean, sd, V, law):
        a, b, q = segment.piece
        mean_t, square = _linear_moments(segment.t, masses, mean, sd)
        for i, term in enumerate((mean_t, square, a * masses[0] + b * mean_t + q / 2 * square)):
            total[i] += term
    return total


def _segment_moments(
    pieces: Pieces, mean: Array, sd: Array, V: Array, law: Distribution
) -> Iterator[tuple[Segment, tuple[Array, ...]]]:
    """Segments, each with E 1, E z and E z^2 restricted to t0 = mean + sd z in the segment."""
    all_segments = list(segments(pieces, V))
    lower: tuple[Array, ...] = (np.zeros(()),) * 3
    at_ends = [law.total]
    if inner_ends := [(segment.high - mean) / sd for segment in all_segments[:-1]]:
        at_ends = [*zip(*law.partial_moments(np.stack(inner_ends)), strict=True), law.total]
    for segment, upper in zip(all_segments, at_ends, strict=True):
        yield segment, tuple(b - a for a, b in zip(lower, upper, strict=True))
        lower = upper
