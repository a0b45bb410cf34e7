"""The readout of a loss with a continuous derivative, by Newton's method.

Semismooth where the derivative has kinks (Huber, squared hinge).
"""

import numpy as np
from scipy.optimize import brentq

from replica.convex import Loss
from solvers.results import Array

from .design import GAP, MAX_STEPS, Design, Fitted, objective

REFINEMENTS = 8  # steps where the objective is its minimum to rounding


def newton(design: Design, y: Array, lam: float, loss: Loss, intercept: bool) -> Fitted:
    """The minimum of the objective over a, and over b with an ``intercept``, for labels y (n,).

    Newton's method with a line search.  The objective is lam-strongly convex in a: it is within
    |gradient|^2 / (2 lam) of its minimum.
    """
    n, p = design.Z.shape
    a, b, f = np.zeros(p), 0.0, np.zeros(n)
    value = objective(y, lam, loss, a, f)
    best, refined = Fitted(a, b, value, np.inf), 0
    for _ in range(MAX_STEPS):
        t, slope = _slope(y, loss, f)
        gradient = design.Z.T @ slope + lam * a
        gap = float(gradient @ gradient) / (2 * lam)
        gradient_b = float(slope.sum()) if intercept else 0.0
        balanced = abs(gradient_b) <= 1e-9 * np.abs(slope).sum()
        if balanced and gap < best.gap:
            best = Fitted(a, float(b), value, gap)
        if gap <= 1e-3 * GAP * value and balanced:
            break
        weight = loss.second(t)
        columns = np.stack([gradient, design.Z.T @ weight], axis=1)
        solved = design.primal(weight, lam, columns)
        step_b = 0.0
        if intercept:
            # the Schur complement of b, kept positive where no sample has curvature
            rest = weight.sum() - weight @ (design.Z @ solved[:, 1])
            step_b = -(gradient_b - weight @ (design.Z @ solved[:, 0])) / max(rest, 1e-9 * n)
        step = -solved[:, 0] - step_b * solved[:, 1]
        size = _step_size(y, lam, loss, (a, step), (f, design.Z @ step + step_b))
        if size == 0:  # the objective cannot tell any more, but the gradient can
            size, refined = 1.0, refined + 1
            if refined > REFINEMENTS:
                break
        a, b = a + size * step, b + size * step_b
        f = design.Z @ a + b
        value = objective(y, lam, loss, a, f)
    return best


def _slope(y: Array, loss: Loss, f: Array) -> tuple[Array, Array]:
    """The loss's argument (y f or y - f) and dl/df, (n,) each, at the outputs f."""
    t, sign = (y * f, y) if loss.kind == "margin" else (y - f, -1.0)
    return t, sign * np.asarray(loss.derivative(t), dtype=float)


def _step_size(
    y: Array,
    lam: float,
    loss: Loss,
    readout: tuple[Array, Array],
    output: tuple[Array, Array],
) -> float:
    """The part of Newton's step to take, from 0 to 1, for (a, its step) and (f, its change).

    The whole step where the objective still falls at its end or is nearly flat; else up to the
    minimum on the way, which is bracketed, as the slope grows along the step.
    """
    (a, step), (f, change) = readout, output

    def along(size: float) -> float:
        """Derivative of the objective in the size of the step."""
        _, slope = _slope(y, loss, f + size * change)
        return float(slope @ change + lam * (a + size * step) @ step)

    start, end = along(0.0), along(1.0)
    if not start < 0:
        return 0.0
    if end <= 0.1 * abs(start):
        return 1.0
    return float(brentq(along, 0.0, 1.0, xtol=1e-12, rtol=1e-9))
