"""The readout: ridge regression, with what else is trained.  Eq. (1.2)

A bias common to all neurons minimises the training objective that the ridge regression leaves,
at every size and penalty by itself.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from replica.observables import LARGEST_BIAS
from solvers.results import Array

from ..draws import arrays
from .ridge import Blocks, Fits, fit_ridge

# the common biases that the theory tries first
BIAS_SCAN = np.linspace(-LARGEST_BIAS, LARGEST_BIAS, 33)


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
        What is trained besides the readout.

    Raises
    ------
    InvalidArgument
        If a penalty is too small for the system to be solved in double precision.
    """

    def at(bias: float, sizes: Array, lam: Array) -> Fits:
        """The ridge fits with one common bias."""
        return fit_ridge(features(bias), sizes, lam, intercept=intercept)._replace(
            bias=np.full((len(sizes), len(lam)), bias)
        )

    if not train_bias:
        return at(0.0, sizes, lam)

    def objective(fits: Fits, sizes: Array, lam: Array) -> Array:
        """sum (y - f)^2 + lam |a|^2, (A, L)."""
        power = (arrays.to_host(fits.readouts) ** 2).sum(axis=0)
        return sizes[:, None] * fits.train + lam * power

    scan = np.array([objective(at(bias, sizes, lam), sizes, lam) for bias in BIAS_SCAN])
    start = BIAS_SCAN[scan.argmin(axis=0)]
    step = BIAS_SCAN[1] - BIAS_SCAN[0]
    fits = []
    for (a, b), near in np.ndenumerate(start):
        one = sizes[a : a + 1], lam[b : b + 1]
        bottom = minimize_scalar(
            lambda bias, one=one: objective(at(bias, *one), *one).item(),
            bounds=(near - step, near + step),
            method="bounded",
        )
        fits.append(at(float(bottom.x), *one))
    xp, shape = arrays.namespace(fits[0].readouts), start.shape
    readouts = xp.reshape(xp.stack([f.readouts for f in fits], axis=1), (-1, *shape))
    intercepts, bias, train = (
        np.reshape([getattr(f, name) for f in fits], shape)
        for name in ("intercepts", "bias", "train")
    )
    return Fits(readouts, intercepts, bias, train)
