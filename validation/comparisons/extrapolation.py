"""Means at several dimensions, extrapolated to infinity.

Mean errors of a problem approach their limit like e(d) = e + s / d.  The limit is fitted by
weighted least squares.  Variances between seeds fall like 1/d, so a mean of S seeds weighs
S d; the error bar of e comes from the variances as they were found at each size, not from the
weights.  What is left of the bias is of order 1/d^2, and no part of the error bar: take sizes
at which the correction is below a tenth or so.  (The conditional Gaussian model of tanh/sin,
alpha0 = 20, eta = 3, beta = .5, is 14 % above the theory at d = 125, but 5 % at 250 and 2.3 %
at 500: a line through the first falls 2 % short.)
"""

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from solvers.results import Array


class Extrapolation(NamedTuple):
    """A line in 1/d through mean errors, arrays of one shape.

    Attributes
    ----------
    limit, stderr : array
        The error at d = infinity and its standard error.
    slope : array
        The finite-size correction times d.
    p_value : array
        Chance of means as far off the line as these, if there were only a term in 1/d; NaN for
        two sizes, which leave nothing to test.
    """

    limit: Array
    stderr: Array
    slope: Array
    p_value: Array


def extrapolate(sizes: Array, means: Array, stderrs: Array, seeds: Array) -> Extrapolation:
    """The line e + s / d through ``means`` (K, ...) at ``sizes`` (K,), by ``seeds`` (K,).

    Examples
    --------
    >>> import numpy as np
    >>> from validation.comparisons import extrapolate
    >>> d = np.array([100, 200, 400])
    >>> line = extrapolate(d, 2 + 30 / d, np.full(3, 0.1), np.array([4, 2, 1]))
    >>> float(line.limit.round(12)), float(line.slope.round(9))
    (2.0, 30.0)
    """
    weights = np.sqrt(seeds * sizes)
    design = np.stack([np.ones(len(sizes)), 1 / sizes], axis=1)
    # value = coefficients @ means, (2, K)
    coefficients = np.linalg.pinv(weights[:, None] * design) * weights
    limit, slope = np.tensordot(coefficients, means, axes=1)
    variance = np.tensordot(coefficients[0] ** 2, stderrs**2, axes=1)
    rest = means - limit - np.multiply.outer(1 / sizes, slope)
    with np.errstate(divide="ignore", invalid="ignore"):  # constant errors have stderr 0
        chi2 = (rest**2 / stderrs**2).sum(axis=0)
    freedom = len(sizes) - 2
    p_value = chdtrc(freedom, chi2) if freedom else np.full(limit.shape, np.nan)
    return Extrapolation(limit, np.sqrt(variance), slope, np.asarray(p_value))
