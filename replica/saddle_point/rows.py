"""The rows of one group of neurons: their effective covariances, tabulated.  docs/theory.md 16, 18

Of one group the equations need c_e(q), with p(q) = 1 / (1 + q c_e(q)), and C(q) on u, the row norms
and zeta (``pencil``, ``special``).  Both are those of the rows at q = 0, bounded, and smooth in
log q: some dozens of values stand for them.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial.chebyshev import chebder, chebpts1, chebvander

from solvers.results import Array

from ..equivalence import RowSeries
from .pencil import Rows
from .special import Special

# Of the table: panels in s, Chebyshev points in each, and the scales A, B of q over those of 1/c.
PANEL, PANELS, POINTS = 2.0, 11, 14
DERIVATIVE = chebder(np.eye(POINTS))  # of a series, as a matrix on its coefficients
A, B = np.exp(10.0), np.exp(-12.0)  # A / B = exp(PANEL * PANELS)


@dataclass(frozen=True, eq=False)
class TabulatedRows:
    """The rows of one group: their effective covariances as functions of q.

    Both are tabulated once, in s = log((1 + A q) / (1 + B q)): linear in q near 0, logarithmic
    between, linear in 1/q far out.  Singularities in q are on the negative axis, so pi away from
    the real s.

    Attributes
    ----------
    rows : Rows
    tangent : tuple of (complex, TabulatedRows)
        What is added to the tabulated functions, with these factors: a complex step.
    """

    rows: Rows
    tangent: tuple[tuple[complex, "TabulatedRows"], ...] = ()

    @cached_property
    def c(self) -> float:
        """tr C / d, the bulk variance."""
        return float(self.rows.c[0])

    @cached_property
    def _places(self) -> Array:
        """q at the Chebyshev points of all panels and, last, in their middles, (panels, points)."""
        inside = (np.append(chebpts1(POINTS), 0.0) + 1) / 2
        e = np.exp(PANEL * (np.arange(PANELS)[:, None] + inside))
        return np.asarray((e - 1) / (A - B * e) / self.c)

    @cached_property
    def _values(self) -> Array:
        """c_e and C at these places, (panels, points, 1 + n^2) on n directions; NaN where E Q is
        not found, each panel from the one before."""
        last, values = self.rows.start, []
        for q in self._places:  # a panel at a time: all together do not fit into the caches
            K = q[:, None, None]
            x = self.rows.averages(K, np.tile(last, (len(q), 1)))
            last = x[POINTS - 1]
            C = Special(self.rows, x, self.rows.trace(x, K)).C
            # the other special directions, of which nothing is asked, are integrated out
            kept, lost = np.split(np.arange(C.shape[1]), [len(self.rows.basis) + 1])
            across = C[:, lost[:, None], kept]
            within = np.eye(len(lost)) / K + C[:, lost[:, None], lost]
            C = C[:, kept[:, None], kept] - across.swapaxes(1, 2) @ np.linalg.solve(within, across)
            c = self.rows.effective(x)[0][:, 0]
            values.append(np.concatenate([c, C.reshape(len(q), -1)], axis=1))
        return np.array(values)

    @cached_property
    def _coefficients(self) -> Array:
        """Chebyshev coefficients of c_e and of C, (panels, points, 1 + n^2)."""
        fit = np.linalg.inv(chebvander(chebpts1(POINTS), POINTS - 1))
        return np.asarray(fit @ self._values[:, :POINTS])

    @cached_property
    def _errors(self) -> Array:
        """Of the tables in the middle of every panel, (panels,): relative for c_e, and for C, of
        which entries may vanish, relative to what its diagonal allows."""
        expected = self._values[:, POINTS]
        off = np.abs(self._tabulated(self._places[:, POINTS], np.s_[:])[0] - expected)
        root = np.sqrt(np.abs(expected[:, 1 :: len(self.rows.basis) + 2]))
        size = (root[:, :, None] * root[:, None]).reshape(PANELS, -1)
        special = off[:, 1:] / np.where(size > 0, size, np.inf)  # norms that do not fluctuate
        return np.asarray(np.maximum(off[:, 0] / expected[:, 0], special.max(axis=1)))

    def error(self, q: Array) -> Array:
        """Of the tables about q (P,)."""
        s = np.log1p(A * self.c * q) - np.log1p(B * self.c * q)
        panel = np.where(np.isfinite(s), s / PANEL, 0.0).astype(int)
        return self._errors[np.clip(panel, 0, PANELS - 1)]

    @cached_property
    def series(self) -> RowSeries | None:
        """The tables for one zeta; None of a target that leaves more directions."""
        n = len(self.rows.basis) + 1
        if n != 3:
            return None
        upper = [1 + i * n + j for i in range(n) for j in range(i, n)]
        chosen = self._coefficients[..., [0, *upper]]
        return RowSeries(np.ascontiguousarray(np.moveaxis(chosen, 2, 0)), A * self.c, B * self.c)

    def _tabulated(self, q: Array, columns: slice) -> tuple[Array, Array]:
        """Some of the tabulated functions at q (P,), and their derivatives in q, (P, columns)."""
        Aq, Bq = A * self.c * q, B * self.c * q
        s = np.log1p(Aq) - np.log1p(Bq)
        ds = (A - B) * self.c / ((1 + Aq) * (1 + Bq))
        panel = np.clip((s.real / PANEL).astype(int), 0, PANELS - 1)
        x = 2 * (s / PANEL - panel) - 1
        c = self._coefficients[panel, :, columns]
        T = chebvander(x, POINTS - 1)[:, None]
        value = (T @ c)[:, 0]
        slope = (T[..., :-1] @ DERIVATIVE @ c)[:, 0] * (2 / PANEL * ds)[:, None]
        for factor, other in self.tangent:
            further = other._tabulated(q, columns)
            value, slope = value + factor * further[0], slope + factor * further[1]
        return value, slope

    def effective(self, q: Array) -> tuple[Array, Array]:
        """c_e (P,) at q, and its derivative."""
        value, slope = self._tabulated(q, np.s_[:1])
        return value[:, 0], slope[:, 0]

    def special(self, q: Array) -> tuple[Array, Array]:
        """C on (u, delta, zeta), (P, n + 1, n + 1), at q, and its derivative."""
        n = len(self.rows.basis) + 1
        value, slope = self._tabulated(q, np.s_[1:])
        return value.reshape(-1, n, n), slope.reshape(-1, n, n)
