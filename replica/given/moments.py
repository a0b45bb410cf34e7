"""Moments of every neuron's feature at every node of a component.

At the shift s, the mean of its pre-activation, and with the variance c of the rest of that,

    d_k = E He_k(z) sigma(s + sqrt(c) z) / sqrt(k!),   z ~ N(0, 1),                         (20.1)

for k = 0 ... k_max, and E sigma^2.  docs/theory.md 20
"""

from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from solvers.arrays import like, namespace, to_host
from solvers.chebyshev import coefficient_matrix
from solvers.resources import check_time
from solvers.results import Array

from ..problem import Activation

# Panels of t = s / sqrt(c), of this width, and points of each; the largest t of a table.
PANEL, POINTS, FURTHEST = 2.0, 13, 1000.0
MOMENT_BLOCK = 2**17  # moments that are looked up at a time, for memory


class NodeMoments:
    """Moments at shifts ``s`` (N, p), an array of any library, and variances ``c`` (p,).

    They are one function of t = s / sqrt(c) and log c for all neurons, smooth on the scales 1 and
    pi / 2: polynomials on panels of t, whose coefficients are Chebyshev series in log c.
    ``tabulated`` (p,) are neurons of which that is known, where it takes fewer integrals than there
    are moments.
    """

    def __init__(self, student: Activation, s: Any, c: Array, k_max: int) -> None:
        self.s, xp, (N, p) = s, namespace(s), s.shape
        root = np.sqrt(np.where(c > 0, c, np.inf))
        t = s / like(root, s)
        lowest, highest = (to_host(of(t, axis=0)) for of in (xp.min, xp.max))
        self.tabulated = (c > 0) & (np.maximum(-lowest, highest) <= FURTHEST)
        if self.tabulated.any():
            inside = np.where(self.tabulated, c, c[self.tabulated][0])
            start = lowest[self.tabulated].min()
            starts = np.arange(start, highest[self.tabulated].max() + 1e-9, PANEL)
            if not self._fill(student, starts, np.log(inside), k_max, N * p):
                self.tabulated[:] = False
        rest = np.flatnonzero(~self.tabulated)
        rest = rest[np.argsort(c[rest])]  # neurons that are alike in one integral
        self.others = np.zeros((k_max + 2, N, p if rest.size else 0))
        for some in np.array_split(rest, -(-rest.size * N // MOMENT_BLOCK)) if rest.size else []:
            check_time()
            moments = hermite_moments(student, to_host(s)[:, some].T, c[some, None], k_max)
            self.others[:, :, some] = moments.swapaxes(1, 2)
        if rest.size < p:
            t = xp.where(like(self.tabulated, s), (t - start) / PANEL, 0.0 * t)
            panel = xp.floor(t)
            self.x, self.row = t - panel, xp.astype(panel, xp.int64) * p + like(np.arange(p), s)

    def _fill(self, student: Activation, starts: Array, logs: Array, k_max: int, uses: int) -> bool:
        """Tabulate moments as Chebyshev series in log c, at ``logs`` (p,), on panels of s / sqrt(c)
        that begin at ``starts``.  False, without a table, if the series need so many terms that
        this takes more integrals than there are ``uses`` of it."""
        middle, half = (logs.max() + logs.min()) / 2, (logs.max() - logs.min()) / 2
        count = 2 + int(np.ceil(np.log(1e9) / np.arcsinh(np.pi / 2 / max(half, 1e-9))))
        x = chebpts1(POINTS)
        t = starts[:, None] + PANEL * (x + 1) / 2
        # powers of 0 ... 1 on a panel, the highest first
        powers = np.linalg.inv(np.vander((x + 1) / 2))
        while 2 * count * t.size <= uses:
            check_time()
            root = np.exp((middle + half * chebpts1(count)) / 2)[:, None, None]
            values = hermite_moments(student, t * root, root**2, k_max)
            series = np.einsum("ab,kbpx->kapx", coefficient_matrix(count), values)
            sizes = np.abs(series).max(axis=(2, 3))
            largest = sizes.max(axis=1)
            # below a part of the largest but the mean it is rounding
            largest = np.maximum(largest, 1e-4 * largest[1:].max())
            if (sizes[:, -2:].max(axis=1) <= 1e-6 * largest).all():
                # (k_max + 2, POINTS, panels, count)
                self.series = np.einsum("kapx,yx->kypa", series, powers, optimize=True)
                self.terms = chebvander((logs - middle) / max(half, 1e-300), count - 1).T
                return True
            count *= 2  # of functions that oscillate, log c takes more terms
        return False

    def at(self, k: int) -> Any:
        """d_k, or E sigma^2 for k = k_max + 1, of every neuron at every node: (N, p)."""
        if not self.tabulated.any():
            return like(self.others[k], self.s)
        xp, (N, p), blocks = namespace(self.x), self.x.shape, []
        # (POINTS, panels * p)
        polynomials = like((self.series[k] @ self.terms).reshape(POINTS, -1), self.x)
        for i in range(0, N, max(1, MOMENT_BLOCK // p)):
            check_time()
            part = slice(i, i + max(1, MOMENT_BLOCK // p))
            row, x = (xp.reshape(each[part, :], (-1,)) for each in (self.row, self.x))
            value = xp.take(polynomials[0, :], row, axis=0)
            for m in range(1, POINTS):  # Horner's scheme
                value *= x
                value += xp.take(polynomials[m, :], row, axis=0)
            blocks.append(xp.reshape(value, (-1, p)))
        found = xp.concat(blocks)
        if self.tabulated.all():
            return found
        return xp.where(like(self.tabulated, found), found, like(self.others[k], found))


def hermite_moments(student: Activation, s: Array, c: Array, k_max: int) -> Array:
    """d_k = E He_k(z) sigma(s + sqrt(c) z) / sqrt(k!) for k = 0 ... k_max, and E sigma^2:
    (k_max + 2, *shape of s)."""
    s, c = np.broadcast_arrays(s, c)
    found, random = np.zeros((k_max + 2, *s.shape)), c > 0
    found[0] = student(s)
    found[-1] = found[0] ** 2
    if random.any():
        at = s[random], c[random]
        mean, first, variance = student.moments(*at)
        found[:2, random] = mean, first
        found[-1, random] = mean**2 + first**2 + variance
        if k_max > 1:
            found[2:-1, random] = student.hermite_coefficients(k_max, *at)
    return found
