"""The readout of any convex loss, fitted to n samples of p features, with its optimality gap.

    a = argmin sum_mu l(y_mu, f_mu) + (lam / 2) |a|^2,  f = Z a + b,  Z = Phi / sqrt(p)   (1.2)

a (p,) is the readout, b the intercept, Z' the transpose of Z, m (n,) the slopes dl/df.  Losses with
a continuous derivative are minimised by Newton's method, semismooth where the derivative has kinks
(Huber, squared hinge).  Those of two slopes (absolute, quantile, hinge) by the method of
multipliers: Newton's method on the loss that is smoothed around its kink, with slopes

    m = clip(multiplier + stiffness (f - y), lower slope, upper slope),

which then become the multipliers, and again, ever stiffer.  As every m is a point of the dual,

    gap = sum [l(y, f) - m (f - y)] + |Z' m + lam a|^2 / (2 lam) + |b sum m|

is how far the objective may be from its minimum, in sums of terms that are 0 or more (for smooth
losses the first sum is 0): small penalties leave it its digits.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import brentq

from replica.convex import Loss
from replica.errors import InvalidArgument
from solvers.results import Array, ConvergenceError

from .readout import Blocks, Fits

RELATIVE_GAP = (
    1e-8  # relative, of the objective: lam/2 times the squared distance of the readout is less
)


@dataclass(frozen=True)
class Fitted:
    """A readout (p,) of a convex loss, and how near its objective is to the minimum: ``gap`` is a
    bound on the distance.

    The ``scale`` to compare it with is the objective, or the penalty of a readout as large as the
    labels where the objective is 0.
    """

    readout: Array
    intercept: float
    objective: float
    gap: float
    scale: float


class Design:
    """The matrix Z (n, p), and solves of its weighted systems."""

    def __init__(self, Z: Array) -> None:
        self.Z = Z

    @cached_property
    def gram(self) -> Array:
        """Z Z', (n, n)."""
        return self.Z @ self.Z.T

    def solve(self, weight: Array, lam: float, b: Array) -> Array:
        """(lam + Z' diag(weight) Z)^-1 b for b (p, k), by the smaller of two systems: of the
        features, or of the samples that have a weight."""
        used = weight > 0
        root = np.sqrt(weight[used])[:, None]
        scaled = root * self.Z[used]
        if len(scaled) >= scaled.shape[1]:
            factor = _factor(scaled.T @ scaled, lam)
            return cho_solve(factor, b, check_finite=False)
        wide = len(self.Z) < scaled.shape[1]
        gram = root * self.gram[np.ix_(used, used)] * root.T if wide else scaled @ scaled.T
        factor, x = _factor(gram, lam), np.zeros_like(b)
        for _ in range(2):  # the difference cancels where weights are large: once more for the rest
            rest = b - lam * x - scaled.T @ (scaled @ x)
            x += (rest - scaled.T @ cho_solve(factor, scaled @ rest, check_finite=False)) / lam
        return x


def _factor(matrix: Array, shift: float) -> Any:
    """The Cholesky factor, for ``cho_solve``, of matrix + shift I; the matrix is overwritten."""
    matrix[np.diag_indices(len(matrix))] += shift
    return cho_factor(matrix, overwrite_a=True, check_finite=False)


class SmoothLoss:
    """Slopes and curvatures of a loss with a continuous derivative, at outputs f (n,) for labels
    y."""

    def __init__(self, y: Array, loss: Loss) -> None:
        self.y, self.loss = y, loss

    def slopes(self, f: Array) -> Array:
        """dl/df, (n,)."""
        if self.loss.kind == "margin":
            return np.asarray(self.y * self.loss.derivative(self.y * f), dtype=float)
        return -np.asarray(self.loss.derivative(self.y - f), dtype=float)

    def curvatures(self, f: Array) -> Array:
        """d^2 l/df^2, (n,)."""
        return self.loss.second(self.y * f if self.loss.kind == "margin" else self.y - f)

    def excess(self, f: Array) -> float:
        """Part of the gap that the smoothing leaves."""
        return 0.0

    def stiffer(self, f: Array) -> "SmoothLoss":
        """The next of a sequence of losses, of which this is the only one."""
        return self


class SmoothedLoss(SmoothLoss):
    """A loss of two slopes, with multipliers (n,), smoothed around its kink at f = y."""

    def __init__(self, y: Array, loss: Loss, multipliers: Array, stiffness: float) -> None:
        super().__init__(y, loss)
        self.multipliers, self.stiffness = multipliers, stiffness
        assert loss.pieces is not None
        each = [slope for _, slope, _ in loss.pieces.coefficients]
        sign = y if loss.kind == "margin" else -np.ones(len(y))
        both = np.multiply.outer([min(each), max(each)], sign)
        self.low, self.high = both.min(axis=0), both.max(axis=0)

    def slopes(self, f: Array) -> Array:
        return np.clip(self.multipliers + self.stiffness * (f - self.y), self.low, self.high)

    def curvatures(self, f: Array) -> Array:
        slopes = self.slopes(f)
        return np.where((slopes > self.low) & (slopes < self.high), self.stiffness, 0.0)

    def excess(self, f: Array) -> float:
        return float((self.loss(self.y, f) - self.slopes(f) * (f - self.y)).sum())

    def stiffer(self, f: Array) -> "SmoothedLoss":
        # larger factors take more steps of Newton's
        return SmoothedLoss(self.y, self.loss, self.slopes(f), 2.0 * self.stiffness)


def minimum(design: Design, y: Array, lam: float, loss: Loss, intercept: bool) -> Fitted:
    """The minimum of the objective over a, and over b with an ``intercept``, for labels y (n,).

    Raises
    ------
    InvalidArgument
        If the derivative of the loss jumps, and it is none of those of two slopes.
    """
    n, p = design.Z.shape
    size_of_labels = float(np.sqrt((y**2).mean())) or 1.0
    now, goal = SmoothLoss(y, loss), 1e-3 * RELATIVE_GAP
    if has_two_slopes(loss):
        now, goal = SmoothedLoss(y, loss, np.zeros(n), 0.3 / size_of_labels), 0.1 * RELATIVE_GAP
    elif loss.jumps:
        allowed = "one with a continuous derivative, or a named one, here"
        raise InvalidArgument("loss", loss.name, allowed)
    a, b, f = np.zeros(p), 0.0, np.zeros(n)
    best, refined = Fitted(a, b, np.nan, np.inf, 0.0), 0
    for _ in range(200):  # the gap says whether they were enough
        slopes = now.slopes(f)
        gradient = design.Z.T @ slopes + lam * a
        gradient_b = float(slopes.sum()) if intercept else 0.0
        value = float(loss(y, f).sum() + lam / 2 * a @ a)
        excess = now.excess(f)
        # the size stands for the distance from an intercept that is near 0
        left = gradient @ gradient / (2 * lam) + (abs(b) + size_of_labels) * abs(gradient_b)
        if left + excess < best.gap:
            scale = max(value, lam / 2 * size_of_labels**2)
            best = Fitted(a, b, value, float(left + excess), scale)
        if best.gap <= goal * best.scale:
            break
        if left <= excess:
            now = now.stiffer(f)
            continue
        weight = now.curvatures(f)
        columns = np.stack([gradient, design.Z.T @ weight], axis=1)
        try:
            solved = design.solve(weight, lam, columns)
        except LinAlgError:  # no digits are left: the best point so far is what there is
            break
        step_b = 0.0
        if intercept:
            # the Schur complement of b, kept positive where no sample has curvature
            rest = weight.sum() - weight @ (design.Z @ solved[:, 1])
            step_b = -(gradient_b - weight @ (design.Z @ solved[:, 0])) / max(rest, 1e-9 * n)
        step = -solved[:, 0] - step_b * solved[:, 1]
        size = _step_size(now, lam, (a, step), (f, design.Z @ step + step_b))
        if size == 0:  # the objective cannot tell any more, but the gradient can
            size, refined = 1.0, refined + 1
            if refined > 8:  # the objective is its minimum to rounding
                break
        a, b = a + size * step, float(b + size * step_b)
        f = design.Z @ a + b
    return best


def has_two_slopes(loss: Loss) -> bool:
    """True of the losses that are linear on either side of a kink at f = y."""
    return loss.name.partition(":")[0] in ("absolute", "quantile", "hinge")


def _step_size(
    now: SmoothLoss, lam: float, readout: tuple[Array, Array], output: tuple[Array, Array]
) -> float:
    """The part of Newton's step to take, from 0 to 1, for (a, its step) and (f, its change).

    The whole step where the objective still falls at its end or is nearly flat; else up to the
    minimum on the way, which is bracketed, as the slope grows along the step.
    """
    (a, step), (f, change) = readout, output

    def along(size: float) -> float:
        """Derivative of the objective in the size of the step."""
        return float(now.slopes(f + size * change) @ change + lam * (a + size * step) @ step)

    start, end = along(0.0), along(1.0)
    if not start < 0:
        return 0.0
    if end <= 0.1 * abs(start):
        return 1.0
    return float(brentq(along, 0.0, 1.0, xtol=1e-12, rtol=1e-3))


def _tolerance(scale: float, y: Array, loss: Loss) -> float:
    """Gap that is allowed at an objective of this ``scale``: 1e-8 of it, or what the rounding of
    outputs leaves where they meet labels y (n,)."""
    rounding = 4 * np.finfo(float).eps * float(np.abs(y).sum())
    # The part of the objective that may be rounding: 10 % of the readout at worst.
    if has_two_slopes(loss) and rounding <= 1e-2 * scale:
        return max(RELATIVE_GAP * scale, rounding)
    return RELATIVE_GAP * scale


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
        If the derivative jumps, and the loss is none of two slopes.
    ConvergenceError
        If an objective cannot be shown to be within 1e-8 of its minimum or its rounding, as where
        lam is 1e-13 or less, with the Fitted.

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
    Phi, y = (np.concatenate(parts) for parts in zip(*blocks(), strict=True))
    Phi /= np.sqrt(Phi.shape[1])
    shape = len(sizes), len(lam)
    readouts, (intercepts, train) = np.empty((Phi.shape[1], *shape)), np.empty((2, *shape))
    for a, n in enumerate(sizes):
        design = Design(Phi[:n])
        for b, penalty in enumerate(lam):
            with np.errstate(all="ignore"):  # where no digits are left: the gap says so
                found = minimum(design, y[:n], float(penalty), loss, intercept)
            if not found.gap <= _tolerance(found.scale, y[:n], loss):
                raise ConvergenceError(
                    f"{loss.name} readout at lam = {penalty:g}: the objective is only known to be "
                    f"within {found.gap:.1e} of its minimum, where it is {found.objective:.1e}",
                    found,
                )
            readouts[:, a, b], intercepts[a, b] = found.readout, found.intercept
            residual = y[:n] - design.Z @ found.readout - found.intercept
            train[a, b] = (residual**2).mean()
    return Fits(readouts, intercepts, np.zeros(shape), train)
