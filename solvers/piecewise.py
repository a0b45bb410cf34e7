"""Piecewise quadratic convex functions: exact proximal maps, and exact Gaussian averages of them.

The proximal map of f takes t0 to the minimiser t of (t - t0)^2 / (2V) + f(t).  If f is piecewise
quadratic, the map is piecewise linear in t0, and so is the score g = (t - t0) / V.  Averages of g,
g', g^2, t, t^2 and f(t) over t0 = mean + sd z are then sums of truncated moments of z, for a normal
z, weighted, where labels have steps, with the probability of a range of another normal variable
(``StepLaw``).
Kinks of f or g need no quadrature.
"""

from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtr, owens_t

from .results import Array
from .rules import gaussian_density

SMALLEST_ARGUMENT = 1e-100  # of numbers whose ratios are arguments of Owen's function
# Gauss-Legendre rule on [-1, 1] for a kink's narrow interval
NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)
# Quantities to average over t0: g, g' and g^2, or t, t^2 and f(t).
Averaged = Literal["score", "residual"]


class StepLaw(NamedTuple):
    """Law of a normal z, weighted with P(tau), a step function of tau correlated with it.

    (z, tau) ~ N(0, [[1, r], [r, 1]]), and the density of z is phi(z) E[P | z].  Arrays broadcast
    with z.

    Attributes
    ----------
    first : array
        P before the first step.
    rises, edges : arrays (J, ...)
        Change of P at each step, and values of tau there, none of them 0.
    r, rest : arrays
        The correlation of z and tau, and sqrt(1 - r^2).
    """

    first: Array
    rises: Array
    edges: Array
    r: Array
    rest: Array

    def density(self, z: Array) -> Array:
        """Density at each z."""
        step_chance = self.first
        for rise, edge in zip(self.rises, self.edges, strict=True):
            step_chance = step_chance + rise * ndtr((self.r * z - edge) / self.rest)
        return np.asarray(gaussian_density(z) * step_chance)

    def moments_below(self, z: Array) -> list[list[Array]]:
        """Integrals of the density times 1, z and z^2, from -inf to each z (n, ...) and, last, to
        infinity: three lists of n + 1 arrays."""
        normal_cut = 30.0  # normal mass beyond: 1e-197; further out the density would underflow
        edge_jumps = self.rises * gaussian_density(self.edges)
        total_mass = self.first + (self.rises * ndtr(-self.edges)).sum(axis=0)
        second_moment = total_mass + self.r**2 * (edge_jumps * self.edges).sum(axis=0)
        total_moments = total_mass, self.r * edge_jumps.sum(axis=0), second_moment
        z = np.clip(z, -normal_cut, normal_cut) + SMALLEST_ARGUMENT  # not 0
        normal_below, density = ndtr(z), gaussian_density(z)
        mass_below, first_moment_below = self.first * normal_below, -self.first * density
        z2_below = mass_below + z * first_moment_below
        for rise, edge in zip(self.rises, self.edges, strict=True):
            tau_in_sd = (self.r * z - edge) / self.rest  # tau given z, in standard deviations
            z_in_sd = (z - self.r * edge) / self.rest  # z given tau at the edge
            joint = (normal_below - ndtr(edge)) / 2 + 0.5 * (z * edge < 0)  # P(z' < z, tau > edge)
            joint += owens_t(edge, z_in_sd / edge) - owens_t(z, tau_in_sd / z)
            density_at_z = density * ndtr(tau_in_sd)
            at_edge = self.r * gaussian_density(edge)
            edge_below = at_edge * ndtr(z_in_sd)
            edge_term = self.r * edge * edge_below - self.rest * at_edge * gaussian_density(z_in_sd)
            mass_below = mass_below + rise * joint
            first_moment_below = first_moment_below + rise * (edge_below - density_at_z)
            z2_below = z2_below + rise * (joint - z * density_at_z + edge_term)
        moment_parts = zip(total_moments, (mass_below, first_moment_below, z2_below), strict=True)
        if not len(self.rises):
            return [[*x, end] for end, x in moment_parts]
        # exact values far out, as a large response would multiply the rounding
        far_below, high = z <= -normal_cut, z >= normal_cut
        return [[*np.where(high, end, np.where(far_below, 0.0, x)), end] for end, x in moment_parts]


NORMAL = StepLaw(np.ones(()), np.empty(0), np.empty(0), np.zeros(()), np.ones(()))


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
        piece_index = np.searchsorted(np.asarray(self.knots), t)
        a, b, q = np.asarray(self.coefficients, dtype=float).T
        return a[piece_index], b[piece_index], q[piece_index]

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
        prox_t = np.empty(t0.shape)
        for segment in segments(self, V):
            inside_segment = (t0 >= segment.low) & (t0 <= segment.high)
            prox_t = np.where(inside_segment, segment.t[0] + segment.t[1] * t0, prox_t)
        return prox_t


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


def segments(pieces: Pieces, V: Array) -> list[Segment]:
    """Intervals on which the proximal map is linear: one for each piece and each kink where it
    stays."""
    zero_slope, low, linear = np.zeros_like(V), np.full_like(V, -np.inf), []
    for piece_index, (a, b, q) in enumerate(pieces.coefficients):
        shrinkage = 1 / (1 + V * q)
        prox_and_score = (-V * b * shrinkage, shrinkage), (-b * shrinkage, -q * shrinkage)
        if piece_index == len(pieces.knots):
            linear.append(Segment(low, np.full_like(V, np.inf), *prox_and_score, (a, b, q)))
            break
        knot = pieces.knots[piece_index]
        _, next_b, next_q = pieces.coefficients[piece_index + 1]
        left_slope, right_slope = b + q * knot, next_b + next_q * knot
        high = knot + V * left_slope
        linear.append(Segment(low, high, *prox_and_score, (a, b, q)))
        low = knot + V * right_slope
        if right_slope > left_slope:
            score_rate = 1 / np.maximum(V, 1e-300)
            lines_at_knot = (knot + zero_slope, zero_slope), (knot * score_rate, -score_rate)
            linear.append(Segment(high, low, *lines_at_knot, (a, b, q), (left_slope, right_slope)))
    return linear


def gaussian_averages(
    quantity: Averaged, pieces: Pieces, mean: Array, sd: Array, V: Array, law: StepLaw = NORMAL
) -> Array:
    """Averages over t0 = mean + sd z, where z has the ``law``: E g, E g' and E g^2 of the score, or
    E t, E t^2 and E f(t) of the residual, where V = 0 means t = t0.

    Examples
    --------
    >>> square, at = Pieces((), ((0.0, 0.0, 1.0),)), map(np.array, (1.0, 2.0, 1.0))
    >>> gaussian_averages("score", square, *at).tolist()
    [-0.5, -0.5, 1.25]
    >>> absolute = Pieces((0.0,), ((0.0, -1.0, 0.0), (0.0, 1.0, 0.0)))
    >>> average = gaussian_averages("residual", absolute, *map(np.array, (0.0, 1.0, 0.0)))
    >>> round(float(average[2]), 12)  # sqrt(2 / pi)
    0.797884560803
    """
    shape = np.broadcast_shapes(mean.shape, sd.shape, V.shape)
    intervals = segments(pieces, V)
    piecewise_averages, is_score = np.zeros((3, *shape)), quantity == "score"
    ends = np.array([(segment.high - mean) / sd for segment in intervals[:-1]]).reshape(-1, *shape)
    moments_low = [np.zeros(())] * 3
    for segment, *moments_high in zip(intervals, *law.moments_below(ends), strict=True):
        I0, I1, I2 = (high - low for low, high in zip(moments_low, moments_high, strict=True))
        moments_low, (a, b, q) = moments_high, segment.piece
        if is_score and segment.jump is None and q == 0:  # the score is constant
            piecewise_averages[0] -= b * I0
            piecewise_averages[2] += b**2 * I0
            continue
        segment_constant, segment_slope = segment.g if is_score else segment.t
        with np.errstate(all="ignore"):  # V = 0 at a kink divides by 0; its segment is narrow
            segment_mean, z_slope = segment_constant + segment_slope * mean, segment_slope * sd
            first_moment = segment_mean * I0 + z_slope * I1
            power = segment_mean * (first_moment + z_slope * I1) + z_slope**2 * I2
            terms: tuple[Array, ...] = first_moment, segment_slope * I0, power
            if not is_score:
                terms = first_moment, power, a * I0 + b * first_moment + q / 2 * power
            elif segment.jump is not None:
                left_slope, right_slope = segment.jump
                half_slope_jump = (right_slope - left_slope) / 2
                width = V * half_slope_jump / sd
                narrow = width < 0.05  # there moments cancel, and four nodes have an error of 1e-14
                if narrow.any():
                    offset = (mean - (segment.low + segment.high) / 2) / sd
                    u, w = (x.reshape(-1, *np.ones(offset.ndim, int)) for x in (NODES, WEIGHTS))
                    density = law.density(width * u - offset) * (w * half_slope_jump / sd)  # over V
                    kink_score = -(left_slope + right_slope) / 2 - half_slope_jump * u
                    mass, g, kink_second = ((kink_score**k * density).sum(axis=0) for k in range(3))
                    kink_terms = g * V, -mass, kink_second * V
                    terms = tuple(np.where(narrow, *x) for x in zip(kink_terms, terms, strict=True))
        for i, segment_term in enumerate(terms):
            piecewise_averages[i] += segment_term
    return piecewise_averages
