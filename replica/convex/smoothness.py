"""Numerical analysis of a convex loss rho(t), by calling it.  docs/theory.md 6

It finds whether rho is piecewise quadratic, the length over which rho' bends, and the proximal map.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from solvers.chebyshev import coefficient_matrix
from solvers.piecewise import Pieces
from solvers.results import Array

Function = Callable[[Array], Array]

PROBE_ACCURACY = 1e-10  # relative accuracy of a fit by quadratic pieces
# On an interval of this length next to a bend, a polynomial of degree 8 fits the slope of a loss of
# width 1, such as tanh or the slope of sqrt(1 + t^2), to 2e-3 of its change.
BEND_STRETCH = 3.0


def quadratic_pieces(
    value: Function, derivative: Function, kinks: tuple[float, ...]
) -> Pieces | None:
    """Loss with ``kinks`` as a piecewise quadratic function, or None if it is not one."""
    reach = max(1e3, 1e-6 * max(map(abs, kinks)))
    ends = (kinks[0] - reach, *kinks, kinks[-1] + reach)
    # denser towards the ends of a piece, to detect a loss that is only nearly quadratic
    end_shares = 0.5 * 10.0 ** -np.arange(5.0, 0, -1)
    shares = np.concatenate([end_shares, [0.5], 1 - end_shares[::-1]])
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
    """Length over which rho' changes at its ``bends``: 1 for log cosh, and at most 1.

    It is the largest power of 1/2 for which a polynomial fits rho' on both sides of each bend, on
    an interval in proportion to the length.  Sides with one of the ``kinks``, where panels end
    anyway, are not tested.
    """
    nodes, between = chebpts1(9), np.linspace(-0.99, 0.99, 41)
    fit = coefficient_matrix(9).T @ chebvander(between, 8).T

    def fits(start: float, length: float) -> bool:
        t, test_points = (start + length * (1 + x) / 2 for x in (nodes, between))
        if any(t.min() < kink < t.max() for kink in kinks):
            return True
        with np.errstate(all="ignore"):
            node_slopes, slopes = derivative(t), derivative(test_points)
        allowed = 2e-3 * np.ptp(slopes) + PROBE_ACCURACY * np.abs(slopes).max()
        return bool(np.abs(node_slopes @ fit - slopes).max() <= allowed)

    width = 1.0
    for bend in bends:
        while width > 2.0**-20 and not all(  # narrower bends count as kinks
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
    """Proximal map: t with t + V rho'(t) within ``slack`` of t0, elementwise.

    It is found by Newton's method with bisection as a safeguard.  For t0 inside an interval of
    ``flats`` it is the kink.
    """
    at_start = derivative(t0)
    # rho' does not decrease, so the solution lies between t0 and t0 - V rho'(t0)
    low, high = np.minimum(t0, t0 - V * at_start), np.maximum(t0, t0 - V * at_start)
    for kink, first, last in flats:
        at_kink = (first <= t0) & (t0 <= last)
        low, high = np.where(at_kink, kink, low), np.where(at_kink, kink, high)
    t = np.clip(t0 - V * at_start / (1 + V * second(t0)), low, high)
    last, done = high - low, np.zeros(t.shape, dtype=bool)
    for _ in range(100):  # a few are enough
        excess = t - t0 + V * derivative(t)
        close_enough = np.abs(excess) < slack
        low, high = np.where(excess < 0, t, low), np.where(excess > 0, t, high)
        step = excess / (1 + V * second(t))
        # a step must stay in the bracket and shrink: Newton's method may cycle
        accepted = (t - step >= low) & (t - step <= high) & (np.abs(step) <= last / 2)
        updated = np.where(accepted, t - step, np.where(close_enough, t, (low + high) / 2))
        updated = np.where(done, t, updated)
        t, last = updated, np.abs(updated - t)
        done |= close_enough | (last <= 1e-15 * np.maximum(1.0, np.abs(t)))
        if done.all():
            break
    return np.asarray(t)
