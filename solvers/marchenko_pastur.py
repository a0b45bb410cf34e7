"""The Marchenko-Pastur law: the spectrum of W W^T for p unit rows in dimension d.

W is p x d with rows uniform on the sphere, beta = p / d; the law has mean 1, edges
(1 +- sqrt(beta))^2 and an atom 1 - 1/beta at 0 when beta > 1 (docs/theory.md 5).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .results import Array


def edges(beta: float) -> tuple[float, float]:
    """Ends of the continuous part, (1 - sqrt(beta))^2 and (1 + sqrt(beta))^2."""
    root = np.sqrt(beta)
    return float((1 - root) ** 2), float((1 + root) ** 2)


def atom(beta: float) -> float:
    """Mass at 0: max(0, 1 - 1/beta)."""
    return max(0.0, 1 - 1 / beta)


def density(x: ArrayLike, beta: float) -> Array:
    """Density of the continuous part, of total mass 1 - atom(beta); 0 outside the edges.

    Examples
    --------
    >>> float(np.round(density(1.0, 1.0), 12))
    0.275664447711
    """
    x = np.asarray(x, dtype=float)
    low, high = edges(beta)
    inside = (x > low) & (x < high) & (x > 0)
    safe = np.where(inside, x, 1.0)
    root = np.sqrt(np.where(inside, (high - x) * (x - low), 0.0))
    return np.asarray(root / (2 * np.pi * beta * safe))


def stieltjes(z: ArrayLike, beta: float) -> Array:
    """m(z) = E 1/(x - z) for z < 0 or off the real axis, atom included.  Eq. (5.1)

    The root of beta z m^2 - (1 - beta - z) m + 1 = 0 with Im m of the sign of Im z, taken
    in whichever of its two forms does not cancel.

    Examples
    --------
    >>> float(np.round(stieltjes(-1.0, 1.0), 12))
    0.61803398875
    """
    z = np.asarray(z)
    b = 1 - beta - z
    root = _root(z, beta)
    return np.asarray(np.where(b.real >= 0, 2 / _nonzero(b + root), (b - root) / (2 * beta * z)))


def stieltjes_derivative(z: ArrayLike, beta: float) -> Array:
    """m'(z) = E 1/(x - z)^2 = (m + beta m^2) / sqrt((1 - beta - z)^2 - 4 beta z).  Eq. (5.1)"""
    z = np.asarray(z)
    m = stieltjes(z, beta)
    return np.asarray((m + beta * m**2) / _root(z, beta))


def _root(z: Array, beta: float) -> Array:
    """sqrt((x_- - z)(x_+ - z)) on the branch ~ -z at infinity, which makes m ~ -1/z."""
    low, high = edges(beta)
    return np.asarray(np.sqrt(low - z) * np.sqrt(high - z))


def _nonzero(x: Array) -> Array:
    """x, or 1 where it is exactly 0 (that branch is then not the one chosen)."""
    return np.where(x == 0, 1.0, x)


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
    >>> averages = resolvent_averages(1.0, 1.0, 1.0, 1.0)
    >>> bool(np.isclose(averages.inverse, stieltjes(-1.0, 1.0)))
    True
    """
    L, v, c = np.asarray(constant), np.asarray(slope), np.asarray(c)
    q = c * v
    b = L + (1 - beta) * q
    # (b^2 + 4 beta q L) = (L + q x_-)(L + q x_+): no difference of large numbers.
    low, high = edges(beta)
    root = np.sqrt(L + q * low) * np.sqrt(L + q * high)
    flat = np.where(q == 0, 1.0, 2 * beta * q * L)
    M = np.where(b >= 0, 2 / _nonzero(b + root), (root - b) / flat)
    t = 1 + beta * q * M
    weighted = c * M / t
    derivative = L + q / t**2  # d/dM of L M + v c M / t = 1
    inverse2 = M / derivative
    mixed = weighted / t / derivative
    weighted2 = beta * weighted**2 + c / t**2 * mixed
    return ResolventAverages(M, weighted, inverse2, mixed, weighted2)
