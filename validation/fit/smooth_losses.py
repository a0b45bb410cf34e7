"""The readout of a loss with a continuous derivative, by Newton's method, and what this shares with
the method for other losses: the design, the objective and its minimum.

    P(a, b) = sum_mu l(y_mu, f_mu) + (lam / 2) |a|^2,  f = Z a + b,  Z = Phi / sqrt(p)   (1.2)

for a readout a (p,) and an intercept b; Z' is the transpose of Z.  The method is semismooth where
the derivative has kinks (Huber, squared hinge).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq

from replica.convex import Loss
from solvers.results import Array

GAP = 1e-8  # relative, of the objective: lam/2 times the squared distance of the readout is less
MAX_STEPS = 100  # of either method; the gap says whether they were enough
REFINEMENTS = 8  # steps where the objective is its minimum to rounding


@dataclass(frozen=True)
class Fitted:
    """A readout (p,) of a convex loss, and how near its objective is to the minimum: ``gap`` is a
    bound on the distance."""

    readout: Array
    intercept: float
    objective: float
    gap: float

    def within(self, tolerance: float) -> bool:
        """Whether the gap is at most ``tolerance`` of the objective, which may be 0."""
        return self.gap <= tolerance * self.objective


class Design:
    """The matrix Z (n, p) with solves of the weighted systems that both methods meet.

    They use the n x n matrix Z Z' where there are fewer samples than features, Z' diag Z
    otherwise.
    """

    def __init__(self, Z: Array) -> None:
        self.Z = Z

    @property
    def wide(self) -> bool:
        """Whether there are fewer samples than features: the n x n systems are the smaller ones."""
        return self.Z.shape[0] < self.Z.shape[1]

    @cached_property
    def gram(self) -> Array:
        """Z Z', (n, n)."""
        return self.Z @ self.Z.T

    def primal(self, weight: Array, lam: float, b: Array) -> Array:
        """(lam + Z' diag(weight) Z)^-1 b for b (p, k)."""
        root = np.sqrt(weight)
        if not self.wide:
            return _solve(self.Z.T @ (weight[:, None] * self.Z), lam, b)
        inner = _solve(root[:, None] * self.gram * root, lam, root[:, None] * (self.Z @ b))
        return (b - self.Z.T @ (root[:, None] * inner)) / lam

    def dual(self, weight: Array, lam: float) -> Callable[[Array], Array]:
        """b -> (Z Z' / lam + diag(1 / weight))^-1 b for b (n, k)."""
        root = np.sqrt(weight)[:, None]
        if self.wide:
            factor = _factor(root * self.gram * root.T, lam)
            return lambda b: lam * root * cho_solve(factor, root * b, check_finite=False)
        factor = _factor(self.Z.T @ (weight[:, None] * self.Z), lam)

        def solve(b: Array) -> Array:
            x = np.zeros_like(b)
            # Once, and twice more: the difference below cancels where weights are large.
            for _ in range(3):
                rest = b - (self.Z @ (self.Z.T @ x) / lam + x / weight[:, None])
                scaled = weight[:, None] * rest
                inner = cho_solve(factor, self.Z.T @ scaled, check_finite=False)
                x += scaled - weight[:, None] * (self.Z @ inner)
            return x

        return solve


def _solve(matrix: Array, shift: float, b: Array) -> Array:
    """(matrix + shift I)^-1 b for a symmetric matrix >= 0, which is overwritten."""
    return cho_solve(_factor(matrix, shift), b, check_finite=False)


def _factor(matrix: Array, shift: float) -> Any:
    """The Cholesky factor, for ``cho_solve``, of matrix + shift I; the matrix is overwritten."""
    matrix[np.diag_indices(len(matrix))] += shift
    return cho_factor(matrix, overwrite_a=True, check_finite=False)


def objective(y: Array, lam: float, loss: Loss, a: Array, f: Array) -> float:
    """P = sum l(y, f) + (lam / 2) |a|^2 at the readout a (p,) with the outputs f (n,)."""
    return float(loss(y, f).sum() + lam / 2 * a @ a)


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
