"""Moments of every neuron's feature at every node of a component.

At the shift s, the mean of its pre-activation, and with the variance c of the rest of that,

    d_k = E He_k(z) sigma(s + sqrt(c) z) / sqrt(k!),   z ~ N(0, 1),                         (20.1)

for k = 0 ... k_max, and E sigma^2.  docs/theory.md 20
"""

from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from solvers.arrays import like, namespace, to_host
from solvers.chebyshev import to_coefficients
from solvers.resources import check_time
from solvers.results import Array

from ..problem import Activation

# Panels of t = s / sqrt(c), of this width or 1, and points of each; the largest t of a table.
PANEL, POINTS, FURTHEST = 8.0, 10, 1000.0
BLOCK = 2**17  # moments that are looked up at a time, for memory


class NodeMoments:
    """Moments at shifts ``s`` (N, p), an array of any library, and variances ``c`` (p,).

    They are one function of t = s / sqrt(c) and log c for all neurons, smooth on the scales 1 and
    pi / 2: polynomials on panels of t, whose coefficients are Chebyshev series in log c.  They are
    tabulated where that takes fewer integrals than there are moments.
    """

    def __init__(self, student: Activation, s: Any, c: Array, k_max: int) -> None:
        self.student, self.k_max = student, k_max
        xp, (N, p) = namespace(s), s.shape
        root = np.sqrt(c)
        with np.errstate(divide="ignore", invalid="ignore"):
            lowest, highest = (to_host(of(s, axis=0)) / root for of in (xp.min, xp.max))
            known = np.maximum(np.abs(lowest), np.abs(highest)) <= FURTHEST  # c is not 0
        if not known.any() or not self._tabulate(lowest[known], highest[known], c[known], N * p):
            known[:] = False
        self.tabulated, rest = np.flatnonzero(known), np.flatnonzero(~known)
        rest = rest[np.argsort(c[rest])]  # neurons that are alike in one integral
        self.others = np.empty((k_max + 2, N, rest.size))
        if rest.size:
            moments = hermite_moments(student, to_host(s)[:, rest].T, c[rest, None], k_max)
            self.others[:] = moments.swapaxes(1, 2)
        self.order = like(np.argsort(np.concatenate([self.tabulated, rest])), s)
        if self.tabulated.size:
            t = xp.take(s, like(self.tabulated, s), axis=1) / like(root[known], s)
            edges, flat = like(self.edges, s), xp.reshape(t, (-1,))
            panel = xp.searchsorted(edges[1:-1], flat, side="right")
            start, end = (xp.take(edges, panel + i, axis=0) for i in (0, 1))
            self.x = xp.reshape((flat - start) / (end - start), t.shape)
            self.row = xp.reshape(panel, t.shape) * t.shape[1] + like(np.arange(t.shape[1]), s)

    def _tabulate(self, lowest: Array, highest: Array, c: Array, uses: int) -> bool:
        """Make the series for t between ``lowest`` and ``highest`` (q,) of neurons with c (q,);
        whether they take fewer integrals than there are ``uses``."""
        logs = np.log(c)
        self.middle, self.half = (logs.max() + logs.min()) / 2, (logs.max() - logs.min()) / 2
        self.y = (logs - self.middle) / max(self.half, 1e-300)
        count = 2 + int(np.ceil(np.log(1e9) / np.arcsinh(np.pi / 2 / max(self.half, 1e-9))))
        panels = np.arange(lowest.min(), highest.max() + PANEL, PANEL)
        panels = np.append(panels, panels[-1] + PANEL)
        while 2 * count * panels.size * POINTS <= uses:
            if self._fill(panels, count):
                return True
            count *= 2  # of functions that oscillate, log c takes more terms
        return False

    def _fill(self, panels: Array, count: int) -> bool:
        """Make the series, of ``count`` terms in log c, on ``panels`` given by their ends, cut to
        panels of width 1 where polynomials do not suffice; whether the series have decayed."""
        check_time()
        sizes = np.abs(self._series(panels, count)).max(axis=1)  # (moments, panels, POINTS)
        largest = sizes.max(axis=(1, 2))
        # below a part of the largest but the mean it is rounding
        largest = np.maximum(largest, 1e-4 * largest[1:].max())
        rough = (sizes[..., -2:].max(axis=2) > 1e-8 * largest[:, None]).any(axis=0)
        cuts = panels[:-1][rough, None] + np.arange(PANEL)
        self.edges = np.unique(np.concatenate([panels, cuts.ravel()]))
        series = self._series(self.edges, count)
        x = chebpts1(POINTS)
        powers = np.linalg.inv(np.vander((x + 1) / 2)) @ chebvander(x, POINTS - 1)
        # (k_max + 2, POINTS, panels, count): powers of 0 ... 1 on a panel, the highest first
        self.series = np.einsum("kapx,yx->kypa", series, powers, optimize=True)
        last = np.abs(series[:, -2:]).max(axis=(1, 2, 3))
        return bool((last <= 1e-6 * largest).all())

    def _series(self, edges: Array, count: int) -> Array:
        """Chebyshev coefficients (k_max + 2, count, panels, POINTS) in log c and, on panels between
        successive ``edges``, in t."""
        x, y = chebpts1(POINTS), chebpts1(count)
        root = np.exp((self.middle + self.half * y) / 2)[:, None, None]
        t = edges[:-1, None] + np.outer(np.diff(edges), (x + 1) / 2)
        values = hermite_moments(self.student, t * root, root**2, self.k_max)
        in_t = values @ to_coefficients(POINTS).T
        return np.einsum("ab,kbpx->kapx", to_coefficients(count), in_t)

    def at(self, k: int) -> Any:
        """d_k, or E sigma^2 for k = k_max + 1, of every neuron at every node: (N, p)."""
        xp = namespace(self.order)
        if not self.tabulated.size:
            return xp.take(like(self.others[k], self.order), self.order, axis=1)
        terms = chebvander(self.y, self.series.shape[-1] - 1).T
        # (POINTS, panels * q)
        polynomials = like((self.series[k] @ terms).reshape(POINTS, -1), self.order)
        N, q = self.x.shape
        size, blocks = max(1, BLOCK // q), []
        for i in range(0, N, size):
            check_time()
            row, x = xp.reshape(self.row[i : i + size, :], (-1,)), self.x[i : i + size, :]
            value = xp.take(polynomials[0, :], row, axis=0)
            for m in range(1, POINTS):  # Horner's scheme
                value *= xp.reshape(x, (-1,))
                value += xp.take(polynomials[m, :], row, axis=0)
            blocks.append(xp.reshape(value, x.shape))
        found = xp.concat(blocks)
        if q < int(self.order.shape[0]):
            both = xp.concat([found, like(self.others[k], found)], axis=1)
            found = xp.take(both, self.order, axis=1)
        return found


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
