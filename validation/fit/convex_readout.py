"""The readout of any convex loss, fitted to n samples of p features, with its optimality gap.

    a = argmin sum_mu l(y_mu, f_mu) + (lam / 2) |a|^2,  f = Z a + b,  Z = Phi / sqrt(p)   (1.2)

Losses with a continuous derivative are minimised by Newton's method, those with kinks (absolute,
quantile, hinge) through their dual.  Both end with a bound on how far the objective is from its
minimum.
"""

import numpy as np

from replica.convex import Loss
from replica.errors import InvalidArgument
from solvers.results import Array, ConvergenceError

from .kinked_losses import interior_point
from .ridge import Blocks, Fits
from .smooth_losses import GAP, Design, Fitted, newton

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
            if not _known(minimum, y[:n], float(penalty), rounding):
                raise ConvergenceError(
                    f"{loss.name} readout at lam = {penalty:g}: the objective is only known to be "
                    f"within {minimum.gap:.1e} of its minimum, where it is {minimum.objective:.1e}",
                    minimum,
                )
            readouts[:, a, b], intercepts[a, b] = minimum.readout, minimum.intercept
            residual = y[:n] - design.Z @ minimum.readout - minimum.intercept
            train[a, b] = (residual**2).mean()
    return Fits(readouts, intercepts, np.zeros(shape), train)


def _known(minimum: Fitted, y: Array, lam: float, rounding: float) -> bool:
    """Whether the objective for labels y (n,) is near enough to its minimum: within 1e-8 of itself,
    but for the ``rounding`` of its gap.

    That exceeds the objective of readouts that meet all samples, lam/2 |a|^2, where lam is tiny: it
    may be a hundredth of it, or of what readouts as large as labels have.  As a gap is
    lam/2 |a - a*|^2 at least, the exact readout a* is then within 10 %.
    """
    a, tolerance = minimum.readout, GAP * minimum.objective
    penalty = lam / 2 * max(float(a @ a), float(y @ y) / len(y))
    return minimum.gap <= tolerance + rounding and rounding <= max(tolerance, ROUNDED * penalty)
