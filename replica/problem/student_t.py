"""Student's t as a finite mixture of Gaussians, so that averages have closed forms.

    t = sqrt(u) z,  z ~ N(0, 1),  u = nu / chi^2_nu,  x = log u of density exp(-(nu/2)(x + e^-x)),

by the trapezoidal rule in x, whose error decreases geometrically in 1 / step.
"""

from functools import lru_cache

import numpy as np
from scipy.special import gamma, loggamma

from solvers.results import Array


@lru_cache(maxsize=64)
def mixture(nu: float) -> tuple[Array, Array]:
    """Variances and shares of the Gaussians.

    The step is the largest for which the error of the sum of the shares,
    abs(Gamma(nu/2 + 2 pi i / step)) / Gamma(nu/2), is below the tolerance.  The last Gaussian has
    the share and the variance of the truncated tail, less than 1e-8 of E abs(t), so that E t^2 is
    exact.

    Examples
    --------
    >>> for nu in (6.0, 3.0, 2.2):
    ...     variances, shares = mixture(nu)
    ...     print(len(shares), round(float(shares @ variances), 9))
    28 1.5
    51 3.0
    76 11.0
    """
    log_tolerance = np.log(1e-8)  # tolerance on averages over t: losses are solved to 1e-6
    half = min(nu, 1e9) / 2  # beyond 1e9 t is a Gaussian
    steps = np.linspace(1.5, 0.2, 1301) / np.sqrt(half)
    log_error = (loggamma(half + 2j * np.pi / steps) - loggamma(half)).real
    step = steps[np.argmax(log_error <= log_tolerance)]  # the largest that meets the tolerance
    x = step * np.arange(-50, 150)
    log_density = -half * (x + np.expm1(-x))
    included = np.maximum(log_density, log_density + x / 2) > log_tolerance
    variances, shares = np.exp(x[included]), np.exp(log_density[included])
    # shares, and shares times variances, of the tail decrease geometrically
    tail_share, tail_power = (1 - np.exp(-step * (half - k)) for k in (0, 1))
    shares[-1] /= tail_share
    variances[-1] *= tail_share / tail_power
    shares /= shares.sum()
    return variances * (nu / (nu - 2) / (shares @ variances)), shares


def missing_moment(nu: float, k: float) -> float:
    """Error of E abs(t)^k, k > 2, of the mixture, whose tail is truncated: exact less mixture.

    Infinite for k >= nu.

    Examples
    --------
    >>> missing_moment(4.0, 4.0)
    inf
    >>> variances, shares = mixture(6.0)
    >>> round(float(3 * shares @ variances**2 + missing_moment(6.0, 4.0)), 9)
    13.5
    """
    if k >= nu:
        return np.inf
    variances, shares = mixture(nu)
    # power: E u^(k/2), normal: E abs(z)^k
    power = np.exp(loggamma((nu - k) / 2) - loggamma(nu / 2) + k / 2 * np.log(nu / 2))
    normal = 2 ** (k / 2) * gamma((k + 1) / 2) / np.sqrt(np.pi)
    return float(normal * (power - shares @ variances ** (k / 2)))
