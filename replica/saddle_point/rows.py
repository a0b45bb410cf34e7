"""The rows of one group of neurons: their effective covariances, tabulated.  docs/theory.md 16, 18

Of one group the equations need c_e(q), with p(q) = 1 / (1 + q c_e(q)), and C(q) on u, the row norms
and zeta (``pencil``, ``special``).  Both are those of the rows at q = 0, bounded, and smooth in
log q: some dozens of values stand for them.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.chebyshev import HalfLine, coefficient_matrix
from solvers.results import Array

from .pencil import Rows
from .special import Special

POINTS = 14  # Chebyshev points in each panel of the tables


@dataclass(frozen=True, eq=False)
class TabulatedRows:
    """The rows of one group: their effective covariances as functions of q, tabulated once.

    Singularities in q are on the negative axis, so pi away from real log q.

    Attributes
    ----------
    rows : Rows
    """

    rows: Rows

    @cached_property
    def c(self) -> float:
        """tr C / d, the bulk variance."""
        return float(self.rows.c[0])

    @cached_property
    def upper(self) -> tuple[Array, Array]:
        """Which entries of C are tabulated, row by row: on and above the diagonal."""
        return np.triu_indices(len(self.rows.basis) + 1)

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """The tables are logarithmic between the inverses of these q."""
        return np.exp(10.0) * self.c, np.exp(-12.0) * self.c

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        """q at the Chebyshev points of all panels (panels, points), and in their middles."""
        return HalfLine.panel_points(11, POINTS, *self._ends)

    @cached_property
    def _values(self) -> Array:
        """c_e and C there, (k, panels, points + 1); NaN where E Q is not found, each panel from
        the one before."""
        last, values = self.rows.start, []
        for q in np.column_stack(self._places):  # a panel: all do not fit into the caches
            x = self.rows.averages(q[:, None, None], np.tile(last, (len(q), 1)))
            last = x[POINTS - 1]
            values.append(self._tabulated(x, q[:, None, None]))
        return np.stack(values, axis=1)

    def _tabulated(self, x: Array, q: Array) -> Array:
        """c_e and C, (k, P), for averages x (P, nT) and q (P, 1, 1).  The other special directions,
        of which nothing is asked, are integrated out."""
        C = Special(self.rows, x, self.rows.trace(x, q)).C
        kept, lost = np.split(np.arange(C.shape[1]), [len(self.rows.basis) + 1])
        across = C[:, lost[:, None], kept]
        within = np.eye(len(lost)) / q + C[:, lost[:, None], lost]
        C = C[:, kept[:, None], kept] - across.swapaxes(1, 2) @ np.linalg.solve(within, across)
        return np.stack([self.rows.effective(x)[0][:, 0, 0], *C[:, *self.upper].T])

    @cached_property
    def table(self) -> HalfLine:
        """c_e and C, k functions."""
        series = self._values[..., :POINTS] @ coefficient_matrix(POINTS).T
        return HalfLine(series, *self._ends)

    @cached_property
    def _errors(self) -> Array:
        """Of the table in the middle of every panel, (panels,): relative for c_e, and for C, of
        which entries may vanish, relative to what its diagonal allows."""
        expected, (i, j) = self._values[..., POINTS], self.upper
        root = np.sqrt(np.abs(expected[1:][i == j]))
        size = np.concatenate([expected[:1], root[i] * root[j]])
        off = np.abs(self.table.evaluate(self._places[1])[0] - expected)
        # of norms that do not fluctuate, both are 0
        return np.asarray((off / np.where(size > 0, size, np.inf)).max(axis=0))

    def error(self, q: Array) -> Array:
        """Of the table about q (P,)."""
        return self._errors[self.table.locate(q)[0]]

    def effective(self, q: Array) -> tuple[Array, Array]:
        """c_e (P,) at q, and its derivative."""
        value, slope = self.table.evaluate(q, np.s_[:1])
        return value[0], slope[0]

    def special(self, q: Array) -> tuple[Array, Array]:
        """C on the n directions u, delta and zeta, (P, n, n), at q, and its derivative."""
        (i, j), found = self.upper, self.table.evaluate(q, np.s_[1:])
        C = np.empty((2, len(q), i[-1] + 1, i[-1] + 1))
        C[..., i, j] = C[..., j, i] = np.stack(found).swapaxes(1, 2)
        return C[0], C[1]
