"""Student's t as a mixture of Gaussians, which everything Gaussian takes in closed form.

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

    The rule's error on the sum of the shares, abs(Gamma(nu/2 + 2 pi i / step)) / Gamma(nu/2), says
    which step to take.  The last Gaussian has the share and the variance of all that are left out,
    so that E t^2 is exact; they are less than 1e-8 of E abs(t).

    Examples
    --------
    >>> for nu in (6.0, 3.0, 2.2):
    ...     variances, shares = mixture(nu)
    ...     print(len(shares), round(float(shares @ variances), 9))
    28 1.5
    51 3.0
    76 11.0
    """
    least = np.log(1e-8)  # of averages over t: losses are known to 1e-6
    half = min(nu, 1e9) / 2  # from there on t is a Gaussian
    steps = np.linspace(1.5, 0.2, 1301) / np.sqrt(half)
    error = (loggamma(half + 2j * np.pi / steps) - loggamma(half)).real
    step = steps[np.argmax(error <= least)]  # the largest that is small enough
    x = step * np.arange(-50, 150)
    likely = -half * (x + np.expm1(-x))
    kept = np.maximum(likely, likely + x / 2) > least
    variances, shares = np.exp(x[kept]), np.exp(likely[kept])
    # beyond the last, shares and shares times variances fall geometrically
    share, power = (1 - np.exp(-step * (half - k)) for k in (0, 1))
    shares[-1] /= share
    variances[-1] *= share / power
    shares /= shares.sum()
    return variances * (nu / (nu - 2) / (shares @ variances)), shares


def missing_moment(nu: float, k: float) -> float:
    """E abs(t)^k, k > 2, less that of the mixture, which leaves the farthest tail out; infinite for
    k >= nu.

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
    # E u^(k/2), and E abs(z)^k
    power = np.exp(loggamma((nu - k) / 2) - loggamma(nu / 2) + k / 2 * np.log(nu / 2))
    normal = 2 ** (k / 2) * gamma((k + 1) / 2) / np.sqrt(np.pi)
    return float(normal * (power - shares @ variances ** (k / 2)))
