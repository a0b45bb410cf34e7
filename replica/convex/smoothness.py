"""What is found out about a convex loss rho(t) by calling it.  docs/theory.md 6

Whether it is piecewise quadratic, over which length its derivative bends, and its proximal map.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from solvers.chebyshev import coefficient_matrix
from solvers.piecewise import Pieces
from solvers.results import Array

Function = Callable[[Array], Array]

PROBE_ACCURACY = 1e-10  # relative, to which values and slopes agree with those of a quadratic
# On a stretch of t of this length beside a bend a polynomial of degree 8 fits the slope of a loss
# of width 1, such as tanh or that of sqrt(1 + t^2), to 2e-3 of its change.
BEND_STRETCH = 3.0


def quadratic_pieces(
    value: Function, derivative: Function, kinks: tuple[float, ...]
) -> Pieces | None:
    """A loss with ``kinks`` as a piecewise quadratic function, or None if it is not one."""
    reach = max(1e3, 1e-6 * max(map(abs, kinks)))
    ends = (kinks[0] - reach, *kinks, kinks[-1] + reach)
    # denser towards the ends of a piece, where a loss that only seems quadratic would show
    near = 0.5 * 10.0 ** -np.arange(5.0, 0, -1)
    shares = np.concatenate([near, [0.5], 1 - near[::-1]])
    coefficients = []
    for low, high in pairwise(ends):
        t = low + (high - low) * shares
        slopes, values = derivative(t), value(t)
        q = float((slopes[-1] - slopes[0]) / (t[-1] - t[0]))
        q = q if abs(q) * (high - low) > PROBE_ACCURACY * np.abs(slopes).max() else 0.0
        b = float(slopes[0] - q * t[0])
        a = float(values[0] - t[0] * (b + q * t[0] / 2))
        tol = PROBE_ACCURACY
        fits = np.allclose(b + q * t, slopes, tol, tol)
        if not (fits and np.allclose(a + t * (b + q * t / 2), values, tol, tol)):
            return None
        coefficients.append((a, b, q))
    return Pieces(kinks, tuple(coefficients))


def bend_width(derivative: Function, bends: tuple[float, ...], kinks: tuple[float, ...]) -> float:
    """The length over which rho' changes at its ``bends``, 1 for that of log cosh, or more: the
    largest power of 1/2 for which a polynomial fits it on either side of each, on a stretch in
    proportion to that length.  Sides with one of the ``kinks``, where panels end anyway, are not
    asked."""
    nodes, between = chebpts1(9), np.linspace(-0.99, 0.99, 41)
    fit = coefficient_matrix(9).T @ chebvander(between, 8).T

    def fits(end: float, stretch: float) -> bool:
        t, there = (end + stretch * (1 + x) / 2 for x in (nodes, between))
        if any(t.min() < kink < t.max() for kink in kinks):
            return True
        with np.errstate(all="ignore"):
            known, slopes = derivative(t), derivative(there)
        allowed = 2e-3 * np.ptp(slopes) + PROBE_ACCURACY * np.abs(slopes).max()
        return bool(np.abs(known @ fit - slopes).max() <= allowed)

    width = 1.0
    for bend in bends:
        while width > 2.0**-20 and not all(  # narrower ones count as kinks
            fits(bend, side * BEND_STRETCH * width) for side in (-1, 1)
        ):
            width /= 2
    return width


def proximal_by_newton(
    derivative: Function,
    second: Function,
    flats: list[tuple[float, Array, Array]],
    t0: Array,
    V: Array,
    slack: Array | float,
) -> Array:
    """t with t + V rho'(t) = t0, elementwise, or within ``slack`` of it: by Newton's method, or
    bisection where that does not close in; of ``flats`` t0, between their ends, it is the kink."""
    at_start = derivative(t0)
    # rho' grows, so the solution lies between t0 and t0 - V rho'(t0)
    low, high = np.minimum(t0, t0 - V * at_start), np.maximum(t0, t0 - V * at_start)
    for kink, first, last in flats:
        stays = (first <= t0) & (t0 <= last)
        low, high = np.where(stays, kink, low), np.where(stays, kink, high)
    t = np.clip(t0 - V * at_start / (1 + V * second(t0)), low, high)
    last, done = high - low, np.zeros(t.shape, dtype=bool)
    for _ in range(100):  # it takes a few
        excess = t - t0 + V * derivative(t)
        near = np.abs(excess) < slack
        low, high = np.where(excess < 0, t, low), np.where(excess > 0, t, high)
        step = excess / (1 + V * second(t))
        # inside the bracket, and shrinking: Newton's method may run in a circle
        good = (t - step >= low) & (t - step <= high) & (np.abs(step) <= last / 2)
        after = np.where(good, t - step, np.where(near, t, (low + high) / 2))
        after = np.where(done, t, after)
        t, last = after, np.abs(after - t)
        done |= near | (last <= 1e-15 * np.maximum(1.0, np.abs(t)))
        if done.all():
            break
    return np.asarray(t)
