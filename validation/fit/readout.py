"""The readout: ridge regression, with what else is trained.  Eq. (1.2)

A bias common to all neurons minimises the training objective that the ridge regression leaves,
at every size and penalty by itself.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from replica.convex import loss
from replica.observables import BIAS_SCAN
from solvers.results import Array
from solvers.scan_minimum import lowest_minimum

from ..draws import arrays
from .errors import mean_losses
from .ridge import Blocks, Fits, fit_ridge

STEP = 1e-4  # of a central difference: 1e-8 of the loss, beside 1e-12 of rounding over it
BOTTOM = 1e-6  # error of a trained bias, to which the objective is flat to 1e-12


def fit_readout(
    features: Callable[[float], Blocks],
    sizes: Array,
    lam: Array,
    *,
    intercept: bool,
    train_bias: bool,
) -> Fits:
    """The readout of the square loss at every size and penalty, with what else is trained.

    Parameters
    ----------
    features : callable, bias -> blocks
        ``blocks()`` yields the rows of Phi, with that bias added to all neurons, and the
        labels: at least ``max(sizes)`` of them.
    sizes : (A,) of int
    lam : (L,)
    intercept, train_bias : bool
        What is trained besides the readout.  Where no bias is best inside the range that the
        theory searches, readout, intercept and training error are NaN.

    Raises
    ------
    InvalidArgument
        If a penalty is too small for the system to be solved in double precision.
    """

    def at(bias: float, sizes: Array, lam: Array) -> Fits:
        """The ridge fits with one common bias."""
        fits = fit_ridge(features(bias), sizes, lam, intercept=intercept)
        return fits._replace(bias=np.full_like(fits.bias, bias))

    if not train_bias:
        return at(0.0, sizes, lam)

    def objective(fits: Fits, sizes: Array, lam: Array) -> Array:
        """sum (y - f)^2 / 2 + lam |a|^2 / 2 and its slope in the bias, (2, A, L).  It is
        stationary in the readout: its slope is that of the loss."""
        power = (arrays.to_host(fits.readouts) ** 2).sum(axis=0)
        before, after = (
            mean_losses(features, fits._replace(bias=fits.bias + shift), sizes, loss("square"))[0]
            for shift in (-STEP, STEP)
        )
        value = sizes[:, None] * fits.train / 2 + lam * power / 2
        return np.array([value, sizes[:, None] * (after - before) / (2 * STEP)])

    scan = np.array([objective(at(float(t), sizes, lam), sizes, lam) for t in BIAS_SCAN])

    def at_best(a: int, b: int) -> Fits:
        """The fit of one size and penalty at its best bias."""
        one = sizes[a : a + 1], lam[b : b + 1]
        fit = cache(lambda bias: at(bias, *one))
        bias = lowest_minimum(
            lambda t: objective(fit(t), *one).ravel(),
            BIAS_SCAN,
            *scan[:, :, a, b].T,
            xtol=BOTTOM,
        )
        found = fit(float(np.nan_to_num(bias)))
        if np.isnan(bias):
            found = Fits(*(part * np.nan for part in found))._replace(bias=found.bias)
        return found

    fits = [at_best(a, b) for a in range(len(sizes)) for b in range(len(lam))]
    readouts, *others = zip(*fits, strict=True)
    xp, shape = arrays.namespace(readouts[0]), (len(sizes), len(lam))
    joined = xp.reshape(xp.stack(readouts, axis=1), (-1, *shape))
    return Fits(joined, *(np.reshape(of, shape) for of in others))
