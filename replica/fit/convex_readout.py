"""Readout of any convex loss, fitted to a design Phi by Newton's method, with its optimality gap.

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
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from solvers.results import Array, ConvergenceError

from ..convex import Loss
from ..errors import InvalidArgument
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


def solve_weighted(Z: Array, weight: Array, lam: float, b: Array) -> Array:
    """(lam + Z' diag(weight) Z)^-1 b for b (p, k), by the smaller of two systems: of the features,
    or of the samples that have a weight."""
    used = weight > 0
    scaled_Z = np.sqrt(weight[used])[:, None] * Z[used]
    if len(scaled_Z) >= scaled_Z.shape[1]:
        factor = _shifted_cholesky(scaled_Z.T @ scaled_Z, lam)
        return np.asarray(cho_solve(factor, b, check_finite=False))
    factor, x = _shifted_cholesky(scaled_Z @ scaled_Z.T, lam), np.zeros_like(b)
    for _ in range(2):  # the difference cancels where weights are large: once more for the rest
        rest = b - lam * x - scaled_Z.T @ (scaled_Z @ x)
        x += (rest - scaled_Z.T @ cho_solve(factor, scaled_Z @ rest, check_finite=False)) / lam
    return x


def _shifted_cholesky(shifted_matrix: Array, lam: float) -> Any:
    """The Cholesky factor, for ``cho_solve``, of matrix + shift I; the matrix is overwritten."""
    shifted_matrix[np.diag_indices(len(shifted_matrix))] += lam
    return cho_factor(shifted_matrix, overwrite_a=True, check_finite=False)


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
        slopes_of_pieces = [slope for _, slope, _ in loss.pieces.coefficients]
        label_sign = y if loss.kind == "margin" else -np.ones(len(y))
        slope_range = np.multiply.outer([min(slopes_of_pieces), max(slopes_of_pieces)], label_sign)
        self.low, self.high = slope_range.min(axis=0), slope_range.max(axis=0)

    def slopes(self, f: Array) -> Array:
        return np.clip(self.multipliers + self.stiffness * (f - self.y), self.low, self.high)

    def curvatures(self, f: Array) -> Array:
        kink_slopes = self.slopes(f)
        return np.where((kink_slopes > self.low) & (kink_slopes < self.high), self.stiffness, 0.0)

    def excess(self, f: Array) -> float:
        return float((self.loss(self.y, f) - self.slopes(f) * (f - self.y)).sum())

    def stiffer(self, f: Array) -> "SmoothedLoss":
        # larger factors take more steps of Newton's
        return SmoothedLoss(self.y, self.loss, self.slopes(f), 2.0 * self.stiffness)


def minimise_objective(Z: Array, y: Array, lam: float, loss: Loss, intercept: bool) -> Fitted:
    """The minimum of the objective over a, and over b with an ``intercept``, for labels y (n,).

    Raises
    ------
    InvalidArgument
        If the derivative of the loss jumps, and it is none of those of two slopes.
    """
    n, p = Z.shape
    size_of_labels = float(np.sqrt((y**2).mean())) or 1.0
    now, gap_goal = SmoothLoss(y, loss), 1e-3 * RELATIVE_GAP
    if has_two_slopes(loss):
        now, gap_goal = SmoothedLoss(y, loss, np.zeros(n), 0.3 / size_of_labels), 0.1 * RELATIVE_GAP
    elif loss.jumps:
        allowed_loss = "one with a continuous derivative, or a named one, here"
        raise InvalidArgument("loss", loss.name, allowed_loss)
    a, b, f = np.zeros(p), 0.0, np.zeros(n)
    best_readout, refinements = Fitted(a, b, np.nan, np.inf, 0.0), 0
    for _ in range(200):  # the gap says whether they were enough
        loss_slopes = now.slopes(f)
        gradient = Z.T @ loss_slopes + lam * a
        slope_b = float(loss_slopes.sum()) if intercept else 0.0
        objective = float(loss(y, f).sum() + lam / 2 * a @ a)
        smoothing_gap = now.excess(f)
        # the size stands for the distance from an intercept that is near 0
        gradient_gap = gradient @ gradient / (2 * lam) + (abs(b) + size_of_labels) * abs(slope_b)
        if gradient_gap + smoothing_gap < best_readout.gap:
            scale = max(objective, lam / 2 * size_of_labels**2)
            best_readout = Fitted(a, b, objective, float(gradient_gap + smoothing_gap), scale)
        if best_readout.gap <= gap_goal * best_readout.scale:
            break
        if gradient_gap <= smoothing_gap:
            now = now.stiffer(f)
            continue
        curvature = now.curvatures(f)
        newton_sides = np.stack([gradient, Z.T @ curvature], axis=1)
        try:
            newton_steps = solve_weighted(Z, curvature, lam, newton_sides)
        except LinAlgError:  # no digits are left: the best point so far is what there is
            break
        step_b = 0.0
        if intercept:
            # the Schur complement of b, kept positive where no sample has curvature
            schur = curvature.sum() - curvature @ (Z @ newton_steps[:, 1])
            step_b = -(slope_b - curvature @ (Z @ newton_steps[:, 0])) / max(schur, 1e-9 * n)
        readout_step = -newton_steps[:, 0] - step_b * newton_steps[:, 1]
        step_size = _newton_part(now, lam, (a, readout_step), (f, Z @ readout_step + step_b))
        if step_size == 0:  # the objective cannot tell any more, but the gradient can
            step_size, refinements = 1.0, refinements + 1
            if refinements > 8:  # the objective is its minimum to rounding
                break
        a, b = a + step_size * readout_step, float(b + step_size * step_b)
        f = Z @ a + b
    return best_readout


def has_two_slopes(loss: Loss) -> bool:
    """True of the losses that are linear on either side of a kink at f = y."""
    return loss.name.partition(":")[0] in ("absolute", "quantile", "hinge")


def _newton_part(
    smoothed: SmoothLoss, lam: float, readout: tuple[Array, Array], output: tuple[Array, Array]
) -> float:
    """The part of Newton's step to take, from 0 to 1, for (a, its step) and (f, its change).

    The whole step where the objective still falls at its end or is nearly flat; else up to the
    minimum on the way, which is bracketed, as the slope grows along the step.
    """
    from scipy.optimize import brentq

    (a, step), (f, f_step) = readout, output

    def slope_along_step(part: float) -> float:
        """Derivative of the objective in the size of the step."""
        return float(smoothed.slopes(f + part * f_step) @ f_step + lam * (a + part * step) @ step)

    slope_at_start, slope_at_end = slope_along_step(0.0), slope_along_step(1.0)
    if not slope_at_start < 0:
        return 0.0
    if slope_at_end <= 0.1 * abs(slope_at_start):
        return 1.0
    return float(brentq(slope_along_step, 0.0, 1.0, xtol=1e-12, rtol=1e-3))


def _gap_allowed(scale: float, y: Array, loss: Loss) -> float:
    """Gap that is allowed at an objective of this ``scale``: 1e-8 of it, or what the rounding of
    outputs leaves where they meet labels y (n,)."""
    loss_rounding = 4 * np.finfo(float).eps * float(np.abs(y).sum())
    # The part of the objective that may be rounding: 10 % of the readout at worst.
    if has_two_slopes(loss) and loss_rounding <= 1e-2 * scale:
        return max(RELATIVE_GAP * scale, loss_rounding)
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
    >>> from replica.fit import fit_convex_readout, predict
    >>> rng = np.random.default_rng(0)
    >>> Phi, y = rng.standard_normal((30, 20)), rng.standard_normal(30)
    >>> n, lam = np.array([30]), np.array([0.1])
    >>> fits = fit_convex_readout(lambda: [(Phi, y)], n, lam, loss("absolute"))
    >>> residual = y - predict(Phi, fits)[:, 0, 0]
    >>> int((np.abs(residual) < 1e-6).sum()) > 5  # many samples are met exactly
    True
    """
    Phi, y = (np.concatenate(block_parts) for block_parts in zip(*blocks(), strict=True))
    Phi /= np.sqrt(Phi.shape[1])
    fit_shape = len(sizes), len(lam)
    readouts, (intercepts, train) = np.empty((Phi.shape[1], *fit_shape)), np.empty((2, *fit_shape))
    for size_index, n in enumerate(sizes):
        for b, penalty in enumerate(lam):
            with np.errstate(all="ignore"):  # where no digits are left: the gap says so
                fitted = minimise_objective(Phi[:n], y[:n], float(penalty), loss, intercept)
            if not fitted.gap <= _gap_allowed(fitted.scale, y[:n], loss):
                raise ConvergenceError(
                    f"{loss.name} readout at lam = {penalty:g}: the objective is only known to be "
                    f"within {fitted.gap:.1e} of its minimum, where it is {fitted.objective:.1e}",
                    fitted,
                )
            readouts[:, size_index, b], intercepts[size_index, b] = fitted.readout, fitted.intercept
            readout_residual = y[:n] - Phi[:n] @ fitted.readout - fitted.intercept
            train[size_index, b] = (readout_residual**2).mean()
    return Fits(readouts, intercepts, np.zeros(fit_shape), train)
