"""What is found out about a convex loss rho(t) by calling it.  docs/theory.md 6

Whether it is piecewise quadratic, over which length its derivative bends, and its proximal map; of
the logistic loss, by a Newton iteration that needs no safeguard.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy.special import expit

from solvers.piecewise import Pieces
from solvers.results import Array

Function = Callable[[Array], Array]

PROBED = 1e3  # distance from the outermost kinks up to which a loss is compared with its pieces
# Where in a piece, as shares of it: denser towards its ends, where a loss that only seems quadratic
# would show.
PROBES = np.concatenate(
    [0.5 * 10.0 ** -np.arange(5.0, 0, -1), [0.5], 1 - 0.5 * 10.0 ** -np.arange(1.0, 6)]
)
PROBE_ACCURACY = 1e-10  # relative, to which values and slopes agree with those of a quadratic
# A polynomial of degree FIT_ORDER - 1 on a stretch of t of length BEND_STRETCH beside a bend fits
# the slope of a loss of width 1, such as tanh or that of sqrt(1 + t^2), to FIT_ERROR of its change.
BEND_STRETCH, FIT_ORDER, FIT_ERROR = 3.0, 9, 2e-3
NARROWEST_BEND = 2.0**-20  # width, below which a bend is taken for a kink
PROXIMAL_STEPS = 100  # at most, of the Newton iterations, which take a few


class Differentiable(Protocol):
    """A convex function with what its proximal map needs: ``replica.Loss`` is one."""

    @property
    def derivative(self) -> Function:
        """rho'(t), elementwise."""

    def second(self, t: Array) -> Array:
        """rho''(t), elementwise, away from the kinks."""

    def flats(self, V: Array) -> list[tuple[float, Array, Array]]:
        """Each kink with the ends of the interval of t0 that the proximal map takes to it."""


def quadratic_pieces(
    value: Function, derivative: Function, kinks: tuple[float, ...]
) -> Pieces | None:
    """A loss with ``kinks`` as a piecewise quadratic function, or None if it is not one."""
    ends = (kinks[0] - PROBED, *kinks, kinks[-1] + PROBED)
    coefficients = []
    for low, high in pairwise(ends):
        t = low + (high - low) * PROBES
        slopes = np.asarray(derivative(t), dtype=float)
        values = np.asarray(value(t), dtype=float)
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
    largest power of 1/2 for which polynomials fit it on either side of each."""
    width = 1.0
    for bend in bends:
        while width > NARROWEST_BEND and not _polynomials_fit(derivative, bend, width, kinks):
            width /= 2
    return width


def _polynomials_fit(
    derivative: Function, bend: float, width: float, kinks: tuple[float, ...]
) -> bool:
    """Whether a polynomial fits rho' on a stretch to either side of the ``bend``, in proportion to
    the ``width``; sides with one of the ``kinks``, where panels end anyway, are not asked."""
    nodes = np.cos(np.pi * (np.arange(FIT_ORDER) + 0.5) / FIT_ORDER)
    between = np.linspace(-0.99, 0.99, 41)
    for side in (-1.0, 1.0):
        t, there = (bend + side * BEND_STRETCH * width * (1 + x) / 2 for x in (nodes, between))
        if any(t.min() < kink < t.max() for kink in kinks):
            continue
        with np.errstate(all="ignore"):
            known, slopes = (np.asarray(derivative(x), float) for x in (t, there))
        fit = np.vander(between, FIT_ORDER) @ np.linalg.solve(np.vander(nodes, FIT_ORDER), known)
        allowed = FIT_ERROR * np.ptp(slopes) + PROBE_ACCURACY * np.abs(slopes).max()
        if np.abs(fit - slopes).max() > allowed:
            return False
    return True


def proximal_by_newton(loss: Differentiable, t0: Array, V: Array, slack: Array | float) -> Array:
    """t with t + V rho'(t) = t0, elementwise, or within ``slack`` of it: by Newton's method, or
    bisection where that does not close in."""
    at_start = np.asarray(loss.derivative(t0), dtype=float)
    # rho' grows, so the solution lies between t0 and t0 - V rho'(t0)
    low, high = np.minimum(t0, t0 - V * at_start), np.maximum(t0, t0 - V * at_start)
    for kink, first, last in loss.flats(V):
        stays = (first <= t0) & (t0 <= last)
        low, high = np.where(stays, kink, low), np.where(stays, kink, high)
    t = np.clip(t0 - V * at_start / (1 + V * loss.second(t0)), low, high)
    last, done = high - low, np.zeros(t.shape, dtype=bool)
    for _ in range(PROXIMAL_STEPS):
        excess = t - t0 + V * np.asarray(loss.derivative(t), dtype=float)
        near = np.abs(excess) < slack
        low, high = np.where(excess < 0, t, low), np.where(excess > 0, t, high)
        step = excess / (1 + V * loss.second(t))
        # inside the bracket, and shrinking: Newton's method may run in a circle
        good = (t - step >= low) & (t - step <= high) & (np.abs(step) <= last / 2)
        after = np.where(good, t - step, np.where(near, t, (low + high) / 2))
        after = np.where(done, t, after)
        t, last = after, np.abs(after - t)
        done |= near | (last <= 1e-15 * np.maximum(1.0, np.abs(t)))
        if done.all():
            break
    return np.asarray(t)


def logistic_proximal(t0: Array, V: Array) -> Array:
    """t with t - V expit(-t) = t0, elementwise: Newton on a function that is convex or concave on
    either side of its inflection at 0, from the side where it cannot overshoot."""
    # At t = 0 the left side is -V / 2: beyond it start where t is, before it below.
    t = np.where(t0 >= -V / 2, np.maximum(t0, 0.0), np.minimum(t0 + V, 0.0))
    for _ in range(PROXIMAL_STEPS):
        tail = expit(-t)
        step = (t - t0 - V * tail) / (1 + V * tail * (1 - tail))
        t = t - step
        if np.abs(step).max(initial=0.0) <= 1e-13 * max(1.0, np.abs(t).max(initial=0.0)):
            break
    return np.asarray(t)


def logistic_curvature(t: Array) -> Array:
    """rho''(t) = expit(t) expit(-t), without overflow."""
    tail = expit(-np.abs(t))
    return np.asarray(tail * (1 - tail))
