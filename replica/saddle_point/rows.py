"""The rows of one group of neurons: their effective covariances, tabulated.  docs/theory.md 16, 18

Of one group the equations need c_e(q), with p(q) = 1 / (1 + q c_e(q)), and C(q) on u, the row norms
and zeta (``pencil``, ``special``).  Both are those of the rows at q = 0, bounded, and smooth in
log q: some dozens of values stand for them.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.chebyshev import HalfLine, to_coefficients
from solvers.results import Array

from ..equivalence import RowSeries
from .pencil import Rows
from .special import Special

PANELS, POINTS = 11, 14  # of the tables, and Chebyshev points in each
NEAR, FAR = np.exp(10.0), np.exp(-12.0)  # the scales of q, over that of 1 / c


@dataclass(frozen=True, eq=False)
class TabulatedRows:
    """The rows of one group: their effective covariances as functions of q.

    Both are tabulated once.  Singularities in q are on the negative axis, so pi away from real
    log q.

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
    def _table(self) -> tuple[HalfLine, Array]:
        """c_e and C, 1 + n^2 functions on n directions; and the errors of the series in the middle
        of every panel, (panels,): relative for c_e, and for C, of which entries may vanish,
        relative to what its diagonal allows.  NaN where E Q is not found, each panel from the one
        before."""
        scales, n = (NEAR * self.c, FAR * self.c), len(self.rows.basis) + 1
        inside, middles = HalfLine.points(PANELS, POINTS, *scales)
        last, values = self.rows.start, []
        for q in np.column_stack([inside, middles]):  # at a time: all do not fit into the caches
            x = self.rows.averages(q[:, None, None], np.tile(last, (len(q), 1)))
            last = x[POINTS - 1]
            values.append(self._effective(x, q[:, None, None]))
        expected = np.array(values)
        table = HalfLine(to_coefficients(POINTS) @ expected[:, :POINTS], *scales)
        off, expected = np.abs(table.at(middles)[0] - expected[:, POINTS]), expected[:, POINTS]
        root = np.sqrt(np.abs(expected[:, 1 :: n + 1]))
        size = (root[:, :, None] * root[:, None]).reshape(PANELS, -1)
        special = off[:, 1:] / np.where(size > 0, size, np.inf)  # norms that do not fluctuate
        return table, np.maximum(off[:, 0] / expected[:, 0], special.max(axis=1))

    def _effective(self, x: Array, q: Array) -> Array:
        """c_e and C for averages x (P, nT) and q (P, 1, 1), (P, 1 + n^2): the other special
        directions, of which nothing is asked, are integrated out."""
        C = Special(self.rows, x, self.rows.trace(x, q)).C
        kept, lost = np.split(np.arange(C.shape[1]), [len(self.rows.basis) + 1])
        across = C[:, lost[:, None], kept]
        within = np.eye(len(lost)) / q + C[:, lost[:, None], lost]
        C = C[:, kept[:, None], kept] - across.swapaxes(1, 2) @ np.linalg.solve(within, across)
        return np.concatenate([self.rows.effective(x)[0][:, 0], C.reshape(len(q), -1)], axis=1)

    def error(self, q: Array) -> Array:
        """Of the tables about q (P,)."""
        table, errors = self._table
        return errors[table.panel(q)[0]]

    @cached_property
    def series(self) -> RowSeries | None:
        """The tables for one zeta; None of a target that leaves more directions."""
        table, n = self._table[0], len(self.rows.basis) + 1
        if n != 3:
            return None
        upper = [1 + i * n + j for i in range(n) for j in range(i, n)]
        chosen = np.moveaxis(table.series[..., [0, *upper]], 2, 0)
        return RowSeries(np.ascontiguousarray(chosen), table.near, table.far)

    def _tabulated(self, q: Array, columns: slice) -> tuple[Array, Array]:
        """Some of the tabulated functions at q (P,), and their derivatives in q, (P, columns)."""
        value, slope = self._table[0].at(q, columns)
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
