"""Averages over the Marchenko-Pastur law: the spectrum of W W^T for p unit rows in dimension d.

W is p x d with rows uniform on the sphere, beta = p / d; the law has mean 1, edges
(1 +- sqrt(beta))^2 and an atom 1 - 1/beta at 0 when beta > 1 (docs/theory.md 5).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .results import Array


class ResolventAverages(NamedTuple):
    """Averages over the bulk D ~ c MP(beta), with S = L + v D.  Eq. (5.2)"""

    inverse: Array  # <1/S>
    weighted: Array  # <D/S>
    inverse2: Array  # <1/S^2>
    mixed: Array  # <D/S^2>
    weighted2: Array  # <D^2/S^2>


def resolvent_averages(
    constant: ArrayLike, slope: ArrayLike, c: ArrayLike, beta: float
) -> ResolventAverages:
    """<1/S>, <D/S>, <1/S^2>, <D/S^2>, <D^2/S^2> for S = constant + slope * D, D ~ c MP(beta).

    Every expression is a sum or product of positive terms: from M = <1/S>, the root of
    beta q L M^2 + (L + (1 - beta) q) M = 1 with q = c slope, the rest follow by
    <D/S> = c M / (1 + t), t = beta q M, and by implicit differentiation.

    Parameters
    ----------
    constant, slope : positive arrays of one shape (slope may be 0)
    c : float or array
        Bulk variance.
    beta : float

    Examples
    --------
    >>> float(np.round(resolvent_averages(1.0, 1.0, 1.0, 1.0).inverse, 12))  # a golden ratio
    0.61803398875
    """
    L, v, c = np.asarray(constant), np.asarray(slope), np.asarray(c)
    q = c * v
    mp_middle = L + (1 - beta) * q
    # (b^2 + 4 beta q L) = (L + q x_-)(L + q x_+): no difference of large numbers.
    mp_root = np.sqrt(L + q * (1 - np.sqrt(beta)) ** 2) * np.sqrt(L + q * (1 + np.sqrt(beta)) ** 2)
    quadratic_term = np.where(q == 0, 1.0, 2 * beta * q * L)
    M = np.where(
        mp_middle >= 0,
        2 / np.where(mp_middle + mp_root == 0, 1.0, mp_middle + mp_root),
        (mp_root - mp_middle) / quadratic_term,
    )
    t = 1 + beta * q * M
    weighted = c * M / t
    bulk_slope_in_M = L + q / t**2  # d/dM of L M + v c M / t = 1
    inverse2 = M / bulk_slope_in_M
    mixed = weighted / t / bulk_slope_in_M
    weighted2 = beta * weighted**2 + c / t**2 * mixed
    return ResolventAverages(M, weighted, inverse2, mixed, weighted2)
