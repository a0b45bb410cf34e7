"""Student's t with Gaussian noise added: its density and partial moments, from tables.

In units of a, a^2 = sigma^2 + s^2, the sum of sigma times Student's t and of N(0, s^2) has a
density P(u) that depends on nu and on zeta = log(a^2 / sigma^2) alone.  As the t is a Gaussian
of random variance, P is a sum of Gaussians: it is tabulated once, at Chebyshev nodes of zeta
and in cells of u that double in size with every octave of 1 + u, each with a polynomial, and
so are the moments beyond u.  Past the last octave P is a power law.

Import it where it is needed, as numba takes half a second.  Kernels and their helpers are in
this one file: numba's cache does not see others.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numba import njit
from scipy.special import gammaln

from .results import Array

STEP = 0.3  # of log v: geometric convergence leaves 1e-14
NEGLIGIBLE = 40.0  # -log of what a variance adds to E r^2, over the most that one adds
BEYOND = 20.0  # log v over that of the last u^2: the rest is 1e-13 of the density there
ZETAS = 24  # nodes of a unit of zeta
WIDEST = 40  # zeta, from where sigma is nothing
CELLS = 4  # of an octave
DEGREE = 9  # of a cell's polynomials
REST = 50  # bits of a number within its cell,
FIRST = 1023 * CELLS  # those before, at 1,
IN_CELL, ONE = 2**REST - 1, 1023 << 52  # their mask, and 1 itself
LITTLE = 1e-13  # of E|u|, past the last octave
FEW = 12  # components that stand for all where P changes little: where their means differ by less
NARROW = 0.8  # than twice that many units, or further away from the middle of them
DISTANT = 4.0  # than that times half their range
TINY = 1e-300


@dataclass(frozen=True)
class Blurred:
    """The law of r = sigma t + N(0, s^2) for each of R rows, in units of ``scale``.

    Attributes
    ----------
    nu : float
    scale : array (R,)
        a.
    zeta : array (R,)
        log(a^2 / sigma^2), as far as that matters.
    """

    nu: float
    scale: Array
    zeta: Array

    def at(self, rows: Array) -> "Blurred":
        """Some of the rows."""
        return Blurred(self.nu, self.scale[rows], self.zeta[rows])

    def density(self, z: Array) -> Array:
        """P at z (R, T)."""
        return _density(z, self.densities, self.tail, self.nu)

    def integrals(self, z: Array) -> tuple[Array, Array, Array]:
        """E r^k 1(r < z) for k = 0, 1, 2 at z (R, T)."""
        found = _integrals(z, self.moments, self.second, self.tail, self.nu)
        return found[0], found[1], found[2]

    @cached_property
    def densities(self) -> Array:
        """Polynomials (R, 1, C, DEGREE + 1) of P in C cells."""
        return self._table(slice(0, 1))

    @cached_property
    def moments(self) -> Array:
        """Polynomials (R, 3, C, DEGREE + 1) of E r^k 1(r > u) for k = 0, 1, 2."""
        return self._table(slice(1, 4))

    @property
    def second(self) -> Array:
        """E r^2, (R, 1): the tables' own, as moments are differences from it."""
        at_zero = (-1.0) ** np.arange(DEGREE + 1)
        return np.asarray(2 * self.moments[:, 2, :1] @ at_zero)

    @property
    def tail(self) -> Array:
        """log of P(u) u^(nu + 1), far out, (R,)."""
        return _log_tail(self.nu) - self.zeta * self.nu / 2

    @property
    def last(self) -> float:
        """u where the tables end."""
        return float(2.0 ** octaves(self.nu) - 1)

    def beyond(self, u: Array) -> Array:
        """E r^2 1(r > u) at u (R, T) past ``last``."""
        logarithm = self.tail[:, None] + (2 - self.nu) * np.log(u)
        return np.asarray(np.exp(logarithm) / (self.nu - 2))

    def _table(self, functions: slice) -> Array:
        count = octaves(self.nu) * CELLS
        found = np.empty((self.zeta.size, len(range(4)[functions]), count, DEGREE + 1))
        panel = self.zeta.astype(int)
        for k in np.unique(panel):
            rows = panel == k
            basis = lagrange(ZETAS, 2 * (self.zeta[rows] - k) - 1)
            table = _panel(self.nu, int(k))[:, functions]
            found[rows] = (basis @ table.reshape(ZETAS, -1)).reshape(-1, *table.shape[1:])
        return found

    def blur(self, at: Array, length: Array, mean: Array, weights: Array) -> Array:
        """Weights (R, K, L) of nodes ``at`` (R, L), each for a ``length`` (R, L), in mixtures of
        such laws around ``mean`` (R, T) with K sets of ``weights`` (R, K, T), the first without
        sign."""
        seen = weights[:, 0] != 0
        low = mean.min(axis=1, where=seen, initial=np.inf)
        high = mean.max(axis=1, where=seen, initial=-np.inf)
        middle, half = (low + high) / 2, np.maximum((high - low) / 2, TINY)
        x = np.clip((mean - middle[:, None]) / half[:, None], -1, 1)
        few = middle[:, None] + half[:, None] * _chebyshev(FEW)[0]
        near = np.where(half < NARROW * self.scale, 0.0, DISTANT * half)
        return _blur(
            *(at, length, mean, weights, few, weights @ lagrange(FEW, x), middle, near, self.scale),
            *(self.densities, self.tail, self.nu),
        )


def blurred(nu: float, sigma: float, variance: Array) -> Blurred:
    """The law of sigma t + N(0, variance) for every ``variance`` (R,)."""
    scale = np.sqrt(sigma**2 + variance)
    return Blurred(nu, scale, np.minimum(2 * np.log(scale / sigma), WIDEST - 1e-9))


def size(nu: float) -> int:
    """Numbers in the tables of one row."""
    return 4 * octaves(nu) * CELLS * (DEGREE + 1)


def lagrange(count: int, x: Array) -> Array:
    """Values (..., count) at x (...), in [-1, 1], of the polynomials that are 1 at one of as many
    Chebyshev nodes and 0 at the others: the barycentric formula."""
    nodes, factors = _chebyshev(count)
    apart = x[..., None] - nodes
    apart[apart == 0] = 1e-300
    terms = factors / apart
    return np.asarray(terms / terms.sum(axis=-1, keepdims=True))


@lru_cache(maxsize=16)
def _chebyshev(count: int) -> tuple[Array, Array]:
    angle = np.pi * (np.arange(count) + 0.5) / count
    return np.cos(angle), np.sin(angle) * (-1.0) ** np.arange(count)


@lru_cache(maxsize=64)
def octaves(nu: float) -> int:
    """Octaves of 1 + u that tables have."""
    count = 4
    while _log_tail(nu) - (nu - 1) * count * np.log(2) > np.log(LITTLE):
        count += 1
    return count


@lru_cache(maxsize=64)
def _log_tail(nu: float) -> float:
    """log of C where the density of Student's t is C u^(-nu - 1), far out."""
    constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - np.log(np.pi * nu) / 2
    return float(constant + (nu + 1) / 2 * np.log(nu))


def mixture(nu: float, widest: float) -> tuple[Array, Array]:
    """Variances, up to exp(widest), and shares of the Gaussians that Student's t is a mixture of:
    v = exp(-x), where nu exp(x) is chi-square with nu degrees, by the trapezoidal rule in x."""
    width = np.sqrt(2 / nu)
    step = min(STEP, width / 2)
    low = min(widest, max(2 * NEGLIGIBLE / (nu - 2), 13 * width))
    x = step * np.arange(-np.ceil(low / step), np.ceil(13 * width / step) + 1)
    density = nu / 2 * (x - np.exp(x))
    likely = density + np.maximum(0, -x)
    kept = likely > likely.max() - NEGLIGIBLE
    shares = np.exp(density[kept] - density.max())
    return np.exp(-x[kept]), shares / shares.sum()


@lru_cache(maxsize=128)  # of 0.5 MB each
def _panel(nu: float, k: int) -> Array:
    """Coefficients (ZETAS, 4, C, DEGREE + 1) for zeta between k and k + 1."""
    count = octaves(nu)
    # 1 + u from 2^o (1 + c / CELLS) on
    edges = (2.0 ** np.arange(count)[:, None] * (1 + np.arange(CELLS) / CELLS)).ravel() - 1
    half = np.repeat(2.0 ** np.arange(count), CELLS) / CELLS / 2
    nodes, _ = _chebyshev(DEGREE)
    u = (edges + half)[:, None] + half[:, None] * nodes
    zeta = k + (1 + _chebyshev(ZETAS)[0]) / 2
    variances, shares = mixture(nu, 2 * count * np.log(2) + k + BEYOND)
    powers = np.linalg.inv(np.vander(nodes, increasing=True))
    found = np.zeros((ZETAS, 4, u.shape[0], DEGREE + 1))
    for row, ratio in enumerate(np.exp(-zeta)):
        v = 1 - ratio + ratio * variances
        P = np.exp(-(u[..., None] ** 2) / (2 * v)) @ (shares / np.sqrt(2 * np.pi * v))
        found[row, 0, :, :-1] = P @ powers.T
        tail = _log_tail(nu) - zeta[row] * nu / 2
        last = np.log(2.0**count - 1)
        for moment in range(3):
            inside = (P * u**moment) @ powers.T * half[:, None]
            integral = np.zeros((len(half), DEGREE + 1))
            integral[:, 1:] = inside / np.arange(1, DEGREE + 1)
            across = integral @ (1 - (-1.0) ** np.arange(DEGREE + 1))
            beyond = np.exp(tail + (moment - nu) * last) / (nu - moment)
            # E r^k beyond the end of the cell, and from there to u
            ends = beyond + np.append(np.cumsum(across[::-1])[::-1][1:], 0.0)
            integral[:, 0] = -integral.sum(axis=1)
            found[row, 1 + moment] = -integral
            found[row, 1 + moment, :, 0] += ends
    return found


@njit(cache=True, inline="always")
def _value(u: float, polynomials: Array) -> float:
    """One function at u >= 0, short of the last octave's end."""
    # 1 + u = 2^o (1 + c / CELLS + (1 + x) / (2 CELLS)): its bits are o + 1023, c, and x's
    bits = np.float64(1 + u).view(np.int64)
    c = polynomials[(bits >> REST) - FIRST]
    x = (np.int64((bits & IN_CELL) | ONE).view(np.float64) - 1) * (2 * CELLS) - 1
    x2 = x * x
    x4 = x2 * x2
    low = (c[0] + c[1] * x) + (c[2] + c[3] * x) * x2
    high = (c[4] + c[5] * x) + (c[6] + c[7] * x) * x2
    return low + high * x4 + (c[8] + c[9] * x) * (x4 * x4)


@njit(cache=True)
def _fill(density: Array, u: Array, polynomials: Array, tail: float, nu: float) -> None:
    """The density of one row at u >= 0."""
    last = 2.0 ** (polynomials.shape[0] // CELLS) - 1
    if u.size and u.max() < last:  # without a choice to make, half the time
        for j in range(u.size):
            density[j] = _value(u[j], polynomials)
        return
    for j in range(u.size):
        if u[j] < last:
            density[j] = _value(u[j], polynomials)
        else:
            density[j] = math.exp(tail - (nu + 1) * math.log(u[j]))


@njit(cache=True)
def _density(z: Array, coefficients: Array, tail: Array, nu: float) -> Array:
    found = np.empty(z.shape)
    for r in range(z.shape[0]):
        _fill(found[r], np.abs(z[r]), coefficients[r, 0], tail[r], nu)
    return found


@njit(cache=True)
def _integrals(z: Array, coefficients: Array, second: Array, tail: Array, nu: float) -> Array:
    last = 2.0 ** (coefficients.shape[2] // CELLS) - 1
    found = np.empty((3, *z.shape))
    for r in range(z.shape[0]):
        for t in range(z.shape[1]):
            u = abs(z[r, t])
            for k in range(3):
                if u < last:
                    beyond = _value(u, coefficients[r, k])
                else:
                    beyond = math.exp(tail[r] + (k - nu) * math.log(u)) / (nu - k)
                # the density is even
                if k == 1:
                    found[k, r, t] = -beyond
                elif z[r, t] < 0:
                    found[k, r, t] = beyond
                else:
                    found[k, r, t] = (1.0 if k == 0 else second[r, 0]) - beyond
    return found


@njit(cache=True)
def _blur(
    at: Array,
    length: Array,
    mean: Array,
    weights: Array,
    few: Array,
    few_weights: Array,
    middle: Array,
    near: Array,
    scale: Array,
    coefficients: Array,
    tail: Array,
    nu: float,
) -> Array:
    sets, nodes = weights.shape[1], at.shape[1]
    found = np.zeros((weights.shape[0], sets, nodes))
    place, u = np.empty(nodes, dtype=np.int64), np.empty(nodes)
    here, density, total = np.empty(nodes), np.empty(nodes), np.empty((sets, nodes))
    for r in range(at.shape[0]):
        unit = 1 / scale[r]
        for close in (True, False):
            x, w = (mean[r], weights[r]) if close else (few[r], few_weights[r])
            count = 0
            for j in range(nodes):
                if length[r, j] != 0 and (abs(at[r, j] - middle[r]) < near[r]) == close:
                    place[count], here[count] = j, at[r, j]
                    count += 1
            total[:, :count] = 0.0
            for t in range(x.size):
                if w[0, t] == 0:
                    continue
                for j in range(count):
                    u[j] = abs(here[j] - x[t]) * unit
                _fill(density, u[:count], coefficients[r, 0], tail[r], nu)
                for k in range(sets):
                    for j in range(count):
                        total[k, j] += w[k, t] * density[j]
            for j in range(count):
                for k in range(sets):
                    found[r, k, place[j]] = total[k, j] * length[r, place[j]] * unit
    return found
