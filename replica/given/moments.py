"""The moments of a neuron's feature, given the special directions.

At the shift s, the mean of its pre-activation, and with the variance c of what is left of that,

    d_k = E He_k(z) sigma(s + sqrt(c) z) / sqrt(k!),   z ~ N(0, 1),                         (20.1)

and E sigma^2 has beside the squares of d_0 ... d_(k_max) a rest.  docs/theory.md 20
"""

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from solvers.chebyshev import to_coefficients
from solvers.results import Array

from ..problem import Activation

# Panels of t = s / sqrt(c), of this width or 1, and points of each; the largest t of a table.
PANEL, POINTS, FURTHEST = 8.0, 10, 1000.0


class MomentTable:
    """The moments of every neuron at shifts s of at most ``reach`` from its ``centre``, (p,) each;
    tabulated where that takes fewer integrals than the number of ``uses``.

    They are one function of t = s / sqrt(c) and log c for all neurons, smooth on the scales 1 and
    pi / 2: polynomials on panels of t, whose coefficients are Chebyshev series in log c.
    """

    def __init__(
        self, student: Activation, centre: Array, reach: Array, c: Array, k_max: int, uses: int
    ) -> None:
        self.student, self.c, self.k_max = student, c, k_max
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = (centre + np.multiply.outer([-1, 1], reach)) / np.sqrt(c)
            logs = np.log(c)
        # none where special directions leave nothing of inputs
        self.known = np.abs(ends).max(axis=0) <= FURTHEST
        ends, logs = ends[:, self.known], logs[self.known]
        if not logs.size:
            return
        self.middle, self.half = (logs.max() + logs.min()) / 2, (logs.max() - logs.min()) / 2
        ratio = np.pi / 2 / max(self.half, 1e-9)
        count = 2 + int(np.ceil(np.log(1e9) / np.arcsinh(ratio)))
        panels = ends.min() + PANEL * np.arange(int(np.ptp(ends) / PANEL) + 2)
        # of what oscillates, log c takes more
        while (few := 2 * count * panels.size * POINTS <= uses) and not self._fill(panels, count):
            count *= 2
        self.known &= few

    def _fill(self, panels: Array, count: int) -> bool:
        """Make the series, of ``count`` terms in log c, on ``panels`` given by their ends, cut to
        those of width 1 where polynomials do not suffice; whether the series have decayed."""
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
        widths = np.diff(self.edges) ** -np.arange(POINTS)[::-1, None]
        # (count, POINTS, panels, k_max + 2)
        self.series = np.einsum("kapx,yx->aypk", series, powers, optimize=True) * widths[..., None]
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

    def at(self, s: Array, of: Array | slice) -> Array:
        """Those of some of the neurons at shifts (n, q) of theirs: (k_max + 2, n, q)."""
        from scipy.interpolate import PPoly

        neurons = np.arange(self.c.size)[of]
        found = np.empty((self.k_max + 2, *s.shape))
        known = np.flatnonzero(self.known[neurons])
        most = max(len(s), self.edges.size * POINTS) if known.size else 1
        size = max(1, 10**5 // (most * len(found)))
        for i in range(0, known.size, size):  # neurons at a time, for memory
            j = known[i : i + size]
            c, first, last = self.c[neurons[j]], self.edges[0], self.edges[-1]
            y = (np.log(c) - self.middle) / max(self.half, 1e-300)
            own = np.tensordot(chebvander(y, len(self.series) - 1), self.series, axes=1)
            # a neuron's panels are next to those of the one before it
            beside = (last - first) * np.arange(j.size)[:, None]
            ends = np.append((self.edges[:-1] + beside).ravel(), last + beside[-1])
            pieces = PPoly(own.swapaxes(0, 1).reshape(POINTS, -1, len(found)), ends)
            t = np.clip(s[:, j].T / np.sqrt(c)[:, None], first, last - 1e-9)
            found[:, :, j] = pieces(t + beside).transpose(2, 1, 0)
        rest = np.flatnonzero(~self.known[neurons])
        if rest.size:
            rest = rest[np.argsort(self.c[neurons[rest]])]  # those alike in one integral
            c = self.c[neurons[rest], None]
            values = hermite_moments(self.student, s[:, rest].T, c, self.k_max)
            found[:, :, rest] = values.swapaxes(1, 2)
        return found


def hermite_moments(student: Activation, s: Array, c: Array, k_max: int) -> Array:
    """d_k = E He_k(z) sigma(s + sqrt(c) z) / sqrt(k!) for k = 0 ... k_max, and what is left of
    E sigma^2 beside their squares: (k_max + 2, *shape of s)."""
    mean, first, rest = student.moments(s, c)
    found = [mean[None], first[None]]
    if k_max > 1:
        found.append(student.hermite_coefficients(k_max, s, c))
        rest = rest - (found[-1] ** 2).sum(axis=0)
    return np.concatenate([*found, rest[None]])
