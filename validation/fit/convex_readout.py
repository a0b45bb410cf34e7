"""The readout of any convex loss, fitted to n samples of p features, with its optimality gap.

    a = argmin sum_mu l(y_mu, f_mu) + (lam / 2) |a|^2,  f = Z a + b,  Z = Phi / sqrt(p)   (1.2)

Losses with a continuous derivative are minimised by Newton's method (semismooth where the
derivative has kinks: Huber, squared hinge).  Losses with kinks (absolute, quantile, hinge) are
solved through their dual, a quadratic program in a box,

    max_u  u.y - |Z' u|^2 / (2 lam) - (curvature / 2) |u|^2,  u in a box,  a = Z' u / lam,

by a primal-dual interior-point method; the multiplier of sum u = 0 is the intercept.  Both end
with a bound on how far the objective is from its minimum.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import brentq

from replica.convex import Loss
from replica.errors import InvalidArgument
from solvers.results import Array, ConvergenceError

from .ridge import Blocks, Fits

GAP = 1e-8  # of the objective
STEPS = 100
REFINEMENTS = 3


@dataclass(frozen=True)
class Minimum:
    """Readout (p,) and intercept, the objective, and a bound on its distance from the minimum,
    relative to itself."""

    readout: Array
    intercept: float
    objective: float
    gap: float


def fit(blocks: Blocks, sizes: Array, lam: Array, loss: Loss, *, intercept: bool = False) -> Fits:
    """The readout at every size and penalty.

    Parameters
    ----------
    blocks : callable
        ``blocks()`` yields the rows of Phi and the labels: at least ``max(sizes)`` of them,
        of which every size takes the first.
    sizes : (A,) of int
    lam : (L,)
    loss : Loss
    intercept : bool

    Raises
    ------
    ConvergenceError
        If an objective cannot be shown to be within 1e-8 of its minimum, with the Minimum.

    Examples
    --------
    >>> from replica.convex.losses import loss
    >>> from validation.fit.ridge import predict
    >>> rng = np.random.default_rng(0)
    >>> Phi, y = rng.standard_normal((30, 20)), rng.standard_normal(30)
    >>> found = fit(lambda: [(Phi, y)], np.array([30]), np.array([0.1]), loss("absolute"))
    >>> residual = y - predict(Phi, found)[:, 0, 0]
    >>> int((np.abs(residual) < 1e-6).sum()) > 5  # many samples are met exactly
    True
    """
    solver = interior_point if _kinked(loss) else newton
    Phi, y = (np.concatenate(parts) for parts in zip(*blocks(), strict=True))
    Phi /= np.sqrt(Phi.shape[1])
    shape = len(sizes), len(lam)
    readouts, (intercepts, train) = np.empty((Phi.shape[1], *shape)), np.empty((2, *shape))
    for a, n in enumerate(sizes):
        design = Design(Phi[:n])
        for b, penalty in enumerate(lam):
            found = solver(design, y[:n], float(penalty), loss, intercept)
            if not found.gap <= GAP:
                raise ConvergenceError(
                    f"{loss.name} readout at lam = {penalty:g}: the objective is only known to be "
                    f"within {found.gap:.1e} of its minimum, relative",
                    found,
                )
            readouts[:, a, b], intercepts[a, b] = found.readout, found.intercept
            train[a, b] = ((y[:n] - design.Z @ found.readout - found.intercept) ** 2).mean()
    return Fits(readouts, intercepts, np.zeros(shape), train)


class Design:
    """The matrix Z (n, p), its Gram matrix where that is the smaller, and shifted solves."""

    def __init__(self, Z: Array) -> None:
        self.Z = Z

    @property
    def wide(self) -> bool:
        """Whether there are fewer samples than features."""
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
            for _ in range(REFINEMENTS):  # the difference below cancels where weights are large
                rest = b - (self.Z @ (self.Z.T @ x) / lam + x / weight[:, None])
                scaled = weight[:, None] * rest
                inner = cho_solve(factor, self.Z.T @ scaled, check_finite=False)
                x += scaled - weight[:, None] * (self.Z @ inner)
            return x

        return solve


def _solve(matrix: Array, shift: float, b: Array) -> Array:
    return cho_solve(_factor(matrix, shift), b, check_finite=False)


def _factor(matrix: Array, shift: float) -> Any:
    matrix[np.diag_indices(len(matrix))] += shift
    return cho_factor(matrix, overwrite_a=True, check_finite=False)


def _objective(y: Array, lam: float, loss: Loss, a: Array, f: Array) -> float:
    return float(loss(y, f).sum() + lam / 2 * a @ a)


def newton(design: Design, y: Array, lam: float, loss: Loss, intercept: bool) -> Minimum:
    """Newton's method with a line search.

    The objective is lam-strongly convex in a: it is within |gradient|^2 / (2 lam) of its
    minimum.
    """
    n, p = design.Z.shape
    a, b, f = np.zeros(p), 0.0, np.zeros(n)
    sign = y if loss.kind == "margin" else -np.ones(n)
    value = _objective(y, lam, loss, a, f)
    for _ in range(STEPS):
        t = y * f if loss.kind == "margin" else y - f
        pull = sign * np.asarray(loss.derivative(t), dtype=float)
        gradient = design.Z.T @ pull + lam * a
        gap = float(gradient @ gradient) / (2 * lam)
        drift = float(pull.sum()) if intercept else 0.0
        if gap <= 1e-3 * GAP * value and abs(drift) <= 1e-9 * np.abs(pull).sum():
            break
        weight = loss.second(t)
        columns = np.stack([gradient, design.Z.T @ weight], axis=1)
        solved = design.primal(weight, lam, columns)
        step_b = 0.0
        if intercept:
            # the Schur complement of b, kept positive where no sample has curvature
            rest = weight.sum() - weight @ (design.Z @ solved[:, 1])
            step_b = -(drift - weight @ (design.Z @ solved[:, 0])) / max(rest, 1e-9 * n)
        step = -solved[:, 0] - step_b * solved[:, 1]
        size = _along(y, lam, loss, (a, step), (f, design.Z @ step + step_b))
        if size == 0:
            break
        a, b = a + size * step, b + size * step_b
        f = design.Z @ a + b
        value = _objective(y, lam, loss, a, f)
    return Minimum(a, float(b), value, gap / value)


def _along(
    y: Array,
    lam: float,
    loss: Loss,
    readout: tuple[Array, Array],
    output: tuple[Array, Array],
) -> float:
    """How far to go: a full step where the objective still falls at its end or is nearly flat,
    else to the minimum on the way, which the slope, growing, brackets."""
    (a, step), (f, change) = readout, output
    sign = y if loss.kind == "margin" else -np.ones(len(y))

    def slope(size: float) -> float:
        there = f + size * change
        t = y * there if loss.kind == "margin" else y - there
        pull = sign * np.asarray(loss.derivative(t), dtype=float)
        return float(pull @ change + lam * (a + size * step) @ step)

    start, end = slope(0.0), slope(1.0)
    if not start < 0:
        return 0.0
    if end <= 0.1 * abs(start):
        return 1.0
    return float(brentq(slope, 0.0, 1.0, xtol=1e-12, rtol=1e-9))


class Iterate(NamedTuple):
    """u and its distances from the ends of its box, their multipliers, and the intercept's."""

    u: Array
    below: Array
    above: Array
    z_below: Array
    z_above: Array
    nu: float


def interior_point(design: Design, y: Array, lam: float, loss: Loss, intercept: bool) -> Minimum:
    """The dual box program by Mehrotra's predictor and corrector.

    The gap is that between the objectives of a and of u, always in its box; with an intercept,
    what the sum of u may still change is added.
    """
    low, high = _box(y, loss)
    n = len(y)
    at = Iterate((low + high) / 2, (high - low) / 2, (high - low) / 2, np.ones(n), np.ones(n), 0.0)
    best = Minimum(np.zeros(design.Z.shape[1]), 0.0, np.inf, np.inf)
    for _ in range(STEPS):
        a = design.Z.T @ at.u / lam
        f = design.Z @ a
        best = min(best, _gap(y, lam, loss, at, a, f), key=lambda found: found.gap)
        if best.gap <= GAP / 10:
            break
        try:
            solve = design.dual(1 / (at.z_below / at.below + at.z_above / at.above), lam)
        except LinAlgError:  # no digits are left: the best point so far is what there is
            break
        slope = y - f - at.nu
        complement = at.z_below @ at.below + at.z_above @ at.above
        guess = _direction(at, solve, slope, 0.0, None, intercept)
        ahead = _moved(at, guess, _longest(at, guess))
        ratio = (ahead.z_below @ ahead.below + ahead.z_above @ ahead.above) / complement
        centring = float(complement / (2 * n) * ratio**3)
        step = _direction(at, solve, slope, centring, guess, intercept)
        at = _moved(at, step, 0.995 * _longest(at, step))
    return best


def _direction(
    at: Iterate,
    solve: Callable[[Array], Array],
    slope: Array,
    centring: float,
    guess: Iterate | None,
    intercept: bool,
) -> Iterate:
    """Newton's step to complements of size ``centring``, corrected by the products in ``guess``."""
    low = centring - at.z_below * at.below
    high = centring - at.z_above * at.above
    if guess is not None:
        low = low - guess.z_below * guess.below
        high = high - guess.z_above * guess.above
    right = slope + at.z_below - at.z_above + low / at.below - high / at.above
    solved = solve(np.stack([right, np.ones_like(right)], axis=1))
    nu = 0.0
    if intercept:
        nu = float((solved[:, 0].sum() + at.u.sum()) / solved[:, 1].sum())
    u = solved[:, 0] - nu * solved[:, 1]
    z_below = (low - at.z_below * u) / at.below
    z_above = (high + at.z_above * u) / at.above
    return Iterate(u, u, -u, z_below, z_above, nu)


def _moved(at: Iterate, step: Iterate, size: float) -> Iterate:
    pairs: Any = zip(at, step, strict=True)
    return Iterate(*(x + size * dx for x, dx in pairs))


def _longest(at: Iterate, step: Iterate) -> float:
    """The largest step of at most 1 that keeps distances and multipliers positive."""
    pairs = zip(at[1:5], step[1:5], strict=True)
    return float(min(1.0, *((-x[dx < 0] / dx[dx < 0]).min(initial=np.inf) for x, dx in pairs)))


def _gap(y: Array, lam: float, loss: Loss, at: Iterate, a: Array, f: Array) -> Minimum:
    """Primal objective at (a, nu) and its distance from the dual objective at u."""
    primal = _objective(y, lam, loss, a, f + at.nu)
    dual = float(y @ at.u - lam / 2 * a @ a)
    excess = abs(float(at.u.sum()) * at.nu)
    return Minimum(a, at.nu, primal, (abs(primal - dual) + excess) / primal)


def _kinked(loss: Loss) -> bool:
    """Whether the derivative jumps."""
    if loss.name.partition(":")[0] in ("absolute", "quantile", "hinge"):
        return True
    if loss.jumps:
        raise InvalidArgument(
            "loss", loss.name, "one with a continuous derivative, or a named one, here"
        )
    return False


def _box(y: Array, loss: Loss) -> tuple[Array, Array]:
    """Bounds of u = -dl/df (n,): the slopes of a piecewise linear loss."""
    assert loss.pieces is not None
    slopes = [b for _, b, _ in loss.pieces.coefficients]
    ends = np.array([min(slopes), max(slopes)])
    if loss.kind == "residual":
        return np.full(len(y), ends[0]), np.full(len(y), ends[1])
    both = -y[:, None] * ends
    return both.min(axis=1), both.max(axis=1)
