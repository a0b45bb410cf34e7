"""The readout of any convex loss, fitted to n samples of p features, with its optimality gap.

    a = argmin sum_mu l(y_mu, f_mu) + (lam / 2) |a|^2,  f = Z a + b,  Z = Phi / sqrt(p)   (1.2)

Losses with a continuous derivative are minimised by Newton's method, those with kinks (absolute,
quantile, hinge) through their dual.  Both end with a bound on how far the objective is from its
minimum.

a (p,) is the readout, b the intercept, Z' the transpose of Z.  Newton's method is semismooth where
the derivative has kinks (Huber, squared hinge).  The dual of a piecewise linear loss (absolute,
quantile, hinge) is a quadratic program in a box,

    max_u  D(u) = u.y - |Z' u|^2 / (2 lam),  u in a box,  a = Z' u / lam,

solved by a primal-dual interior-point method; the multiplier of sum u = 0 is the intercept.  Where
lam is so small that Z Z' / lam leaves it too few digits, the samples that it says are met exactly
give the readout itself, by linear algebra in which nothing is divided by lam.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, qr, solve, solve_triangular
from scipy.optimize import brentq

from replica.convex import Loss
from replica.errors import InvalidArgument
from solvers.results import Array, ConvergenceError

from .ridge import Blocks, Fits

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
        """True if the gap is at most ``tolerance`` of the objective, which may be 0."""
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
        """True if there are fewer samples than features: the n x n systems are the smaller ones."""
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
    y: Array, lam: float, loss: Loss, readout: tuple[Array, Array], output: tuple[Array, Array]
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


MAX_EXCHANGES = 30  # of samples that are met with others: each takes a decomposition


class Iterate(NamedTuple):
    """A point of the interior-point method, or a step of one.

    The dual variable u, its distances ``below`` and ``above`` from the lower and the upper end
    of its box, the multipliers z of these distances, (n,) each; and nu, that of sum u = 0.
    """

    u: Array
    below: Array
    above: Array
    z_below: Array
    z_above: Array
    nu: float


def interior_point(design: Design, y: Array, lam: float, loss: Loss, intercept: bool) -> Fitted:
    """The minimum of the objective over a, and over b with an ``intercept``, for labels y (n,).

    Mehrotra's predictor and corrector on the dual.  The gap is that between the objectives of
    a and of u, always in its box; with an intercept, |nu sum u| is added.
    """
    low, high = _box(y, loss)
    n = len(y)
    at = Iterate((low + high) / 2, (high - low) / 2, (high - low) / 2, np.ones(n), np.ones(n), 0.0)
    best = Fitted(np.zeros(design.Z.shape[1]), 0.0, np.nan, np.inf)
    for _ in range(MAX_STEPS):
        a = design.Z.T @ at.u / lam
        f = design.Z @ a
        best = min(best, _gap(y, lam, loss, at, a, f), key=lambda minimum: minimum.gap)
        if best.within(GAP / 10):
            break
        try:
            solve = design.dual(1 / (at.z_below / at.below + at.z_above / at.above), lam)
        except LinAlgError:  # no digits are left: the best point so far is what there is
            break
        slope = y - f - at.nu
        complement = at.z_below @ at.below + at.z_above @ at.above
        predictor = _direction(at, solve, slope, 0.0, None, intercept)
        predicted = _after_step(at, predictor, _longest(at, predictor))
        left = predicted.z_below @ predicted.below + predicted.z_above @ predicted.above
        centring = float(complement / (2 * n) * (left / complement) ** 3)
        step = _direction(at, solve, slope, centring, predictor, intercept)
        at = _after_step(at, step, 0.995 * _longest(at, step))
    if not best.within(GAP):
        exact = _exchanged(design, y, lam, loss, at, intercept)
        best = min(best, exact, key=lambda minimum: minimum.gap)
    return best


def _exchanged(
    design: Design, y: Array, lam: float, loss: Loss, at: Iterate, intercept: bool
) -> Fitted:
    """The minimum, from the samples that the iterate meets: where they turn out to be others, from
    those, and so on.

    Met samples E have y - f = 0 and any u in the box, others u at an end.  With x = (a, b),
    X = (Z, 1) and D = lam but for b, the conditions are X_E x = y_E and D x = X' u.  With
    X_E' = Q R and Q' the rest of a basis, x = Q R^-T y_E + Q' w, where Q'' D x = Q'' X_N' u_N
    gives w, and then u_E = R^-1 Q' (D x - X_N' u_N).
    """
    low, high = _box(y, loss)
    X = np.column_stack([design.Z, np.ones(len(y))]) if intercept else design.Z
    D = np.full(X.shape[1], lam)
    D[design.Z.shape[1] :] = 0.0
    free = np.minimum(at.below / at.z_below, at.above / at.z_above)  # large where a sample is met
    met = free > max([1.0, *np.sort(free)[: -X.shape[1]][-1:]])  # no more than there are unknowns
    u = np.where(at.below < at.above, low, high)
    best = Fitted(np.zeros(design.Z.shape[1]), 0.0, np.nan, np.inf)
    for _ in range(MAX_EXCHANGES):
        k = int(met.sum())
        if k > X.shape[1]:
            break
        basis, R = qr(X[met].T)
        first, rest, R = basis[:, :k], basis[:, k:], R[:k]
        pull = X[~met].T @ u[~met]
        try:
            x = first @ solve_triangular(R, y[met], trans="T")
            x = x + rest @ solve((rest.T * D) @ rest, rest.T @ (pull - D * x), assume_a="pos")
            u[met] = solve_triangular(R, first.T @ (D * x - pull))
        except (LinAlgError, ValueError):  # samples that are not independent
            break
        a, b = x[: design.Z.shape[1]], float(x[-1]) if intercept else 0.0
        f = design.Z @ a
        inside = np.clip(u, low, high)
        now = _gap(y, lam, loss, at._replace(u=inside, nu=b), a, f)
        best = min(best, now, key=lambda minimum: minimum.gap)
        left = y - f - b
        leave = met & (u != inside)
        enter = ~met & np.where(u == high, left < 0, left > 0)
        if best.within(GAP / 10) or not (leave.any() or enter.any()):
            break
        u, met = inside, (met & ~leave) | enter
    return best


def _direction(
    at: Iterate,
    solve: Callable[[Array], Array],
    slope: Array,
    centring: float,
    predictor: Iterate | None,
    intercept: bool,
) -> Iterate:
    """Newton's step towards complements z * distance of size ``centring``.

    ``solve`` is that of ``Design.dual`` and ``slope`` y - f - nu (n,); a ``predictor`` step
    corrects for its products of z and distance, which are of second order.
    """
    low = centring - at.z_below * at.below
    high = centring - at.z_above * at.above
    if predictor is not None:
        low = low - predictor.z_below * predictor.below
        high = high - predictor.z_above * predictor.above
    right = slope + at.z_below - at.z_above + low / at.below - high / at.above
    solved = solve(np.stack([right, np.ones_like(right)], axis=1))
    nu = 0.0
    if intercept:
        nu = float((solved[:, 0].sum() + at.u.sum()) / solved[:, 1].sum())
    u = solved[:, 0] - nu * solved[:, 1]
    z_below = (low - at.z_below * u) / at.below
    z_above = (high + at.z_above * u) / at.above
    return Iterate(u, u, -u, z_below, z_above, nu)


def _after_step(at: Iterate, step: Iterate, size: float) -> Iterate:
    """The point ``at`` + size ``step``."""
    pairs: Any = zip(at, step, strict=True)
    return Iterate(*(x + size * dx for x, dx in pairs))


def _longest(at: Iterate, step: Iterate) -> float:
    """The largest step of at most 1 that keeps distances and multipliers positive."""
    pairs = zip(at[1:5], step[1:5], strict=True)
    return float(min(1.0, *((-x[dx < 0] / dx[dx < 0]).min(initial=np.inf) for x, dx in pairs)))


def _gap(y: Array, lam: float, loss: Loss, at: Iterate, a: Array, f: Array) -> Fitted:
    """Primal objective at (a, nu) and its distance from the dual objective at u."""
    primal = objective(y, lam, loss, a, f + at.nu)
    dual = float(y @ at.u - lam / 2 * a @ a)
    unbalanced = abs(float(at.u.sum()) * at.nu)
    return Fitted(a, at.nu, primal, abs(primal - dual) + unbalanced)


def _box(y: Array, loss: Loss) -> tuple[Array, Array]:
    """Bounds of u = -dl/df (n,): the slopes of a piecewise linear loss."""
    assert loss.pieces is not None
    slopes = [b for _, b, _ in loss.pieces.coefficients]
    ends = np.array([min(slopes), max(slopes)])
    both = np.multiply.outer(np.ones(len(y)) if loss.kind == "residual" else -y, ends)
    return both.min(axis=1), both.max(axis=1)


# The part of a penalty that may be rounding: 10 % of the readout at worst.  Test errors of
# readouts were within 2e-5, relative, of those with 60 digits, in 5 000 random problems of up to 25
# samples with lam from 1e-14 to 10: far less than seeds differ by.
ROUNDED = 1e-2


def fit_convex_readout(
    blocks: Blocks, sizes: Array, lam: Array, loss: Loss, *, intercept: bool = False
) -> Fits:
    """The readout of a convex loss at every size and penalty.

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
    InvalidArgument
        If the derivative jumps, and the loss is none of those that ``interior_point`` solves.
    ConvergenceError
        If an objective cannot be shown to be within 1e-8 of its minimum and its rounding, or
        that says too little of the readout (lam of 1e-12 or less), with the Fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from replica import loss
    >>> from validation.fit import fit_convex_readout, predict
    >>> rng = np.random.default_rng(0)
    >>> Phi, y = rng.standard_normal((30, 20)), rng.standard_normal(30)
    >>> n, lam = np.array([30]), np.array([0.1])
    >>> fits = fit_convex_readout(lambda: [(Phi, y)], n, lam, loss("absolute"))
    >>> residual = y - predict(Phi, fits)[:, 0, 0]
    >>> int((np.abs(residual) < 1e-6).sum()) > 5  # many samples are met exactly
    True
    """
    kinked = loss.name.partition(":")[0] in ("absolute", "quantile", "hinge")
    if not kinked and loss.jumps:
        allowed = "one with a continuous derivative, or a named one, here"
        raise InvalidArgument("loss", loss.name, allowed)
    solver = interior_point if kinked else newton
    Phi, y = (np.concatenate(parts) for parts in zip(*blocks(), strict=True))
    Phi /= np.sqrt(Phi.shape[1])
    shape = len(sizes), len(lam)
    readouts, (intercepts, train) = np.empty((Phi.shape[1], *shape)), np.empty((2, *shape))
    for a, n in enumerate(sizes):
        design = Design(Phi[:n])
        for b, penalty in enumerate(lam):
            with np.errstate(all="ignore"):  # where no digits are left: the gap says so
                minimum = solver(design, y[:n], float(penalty), loss, intercept)
            # a gradient is known to more digits than a difference of two sums over the samples
            rounding = 4 * np.finfo(float).eps * float(np.abs(y[:n]).sum()) if kinked else 0.0
            if not _is_near_minimum(minimum, y[:n], float(penalty), rounding):
                raise ConvergenceError(
                    f"{loss.name} readout at lam = {penalty:g}: the objective is only known to be "
                    f"within {minimum.gap:.1e} of its minimum, where it is {minimum.objective:.1e}",
                    minimum,
                )
            readouts[:, a, b], intercepts[a, b] = minimum.readout, minimum.intercept
            residual = y[:n] - design.Z @ minimum.readout - minimum.intercept
            train[a, b] = (residual**2).mean()
    return Fits(readouts, intercepts, np.zeros(shape), train)


def _is_near_minimum(minimum: Fitted, y: Array, lam: float, rounding: float) -> bool:
    """True if the objective for labels y (n,) is near enough to its minimum: within 1e-8 of itself,
    but for the ``rounding`` of its gap.

    That exceeds the objective of readouts that meet all samples, lam/2 |a|^2, where lam is tiny: it
    may be a hundredth of it, or of what readouts as large as labels have.  As a gap is
    lam/2 |a - a*|^2 at least, the exact readout a* is then within 10 %.
    """
    a, tolerance = minimum.readout, GAP * minimum.objective
    penalty = lam / 2 * max(float(a @ a), float(y @ y) / len(y))
    return minimum.gap <= tolerance + rounding and rounding <= max(tolerance, ROUNDED * penalty)
