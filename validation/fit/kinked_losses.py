"""The readout of a piecewise linear loss (absolute, quantile, hinge), through its dual.

The dual is a quadratic program in a box,

    max_u  D(u) = u.y - |Z' u|^2 / (2 lam),  u in a box,  a = Z' u / lam,

solved by a primal-dual interior-point method; the multiplier of sum u = 0 is the intercept.  Where
lam is so small that Z Z' / lam leaves it too few digits, the samples that it says are met exactly
give the readout itself, by linear algebra in which nothing is divided by lam.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, qr, solve, solve_triangular

from replica.convex import Loss
from solvers.results import Array

from .smooth_losses import GAP, MAX_STEPS, Design, Fitted, objective

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
        predicted = _moved(at, predictor, _longest(at, predictor))
        left = predicted.z_below @ predicted.below + predicted.z_above @ predicted.above
        centring = float(complement / (2 * n) * (left / complement) ** 3)
        step = _direction(at, solve, slope, centring, predictor, intercept)
        at = _moved(at, step, 0.995 * _longest(at, step))
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


def _moved(at: Iterate, step: Iterate, size: float) -> Iterate:
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
