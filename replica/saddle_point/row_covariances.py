"""Tables of the effective covariances of a network's rows, for one group.  docs/theory.md 16, 18

For one group the equations need c_e(q), with p(q) = 1 / (1 + q c_e(q)), and C(q) on u, the row
norms and zeta (``linear_pencil``, ``special_directions``).  Both are bounded and smooth in log q,
so that some dozens of values represent them.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.chebyshev import HalfLine, coefficient_matrix
from solvers.resources import CACHE_NUMBERS, check_time
from solvers.results import Array

from .linear_pencil import TrainedRows
from .special_directions import Special

CHEBYSHEV_POINTS = 14  # Chebyshev points in each panel of the tables


@dataclass(frozen=True, eq=False)
class TabulatedRows:
    """Rows of one group, with effective covariances as Chebyshev series in q, computed once.

    Singularities in q are on the negative axis, at a distance pi from real log q.

    Attributes
    ----------
    rows : TrainedRows
    """

    rows: TrainedRows

    @cached_property
    def c(self) -> float:
        """Bulk variance tr C / d."""
        return float(self.rows.c[0])

    @cached_property
    def upper(self) -> tuple[Array, Array]:
        """Indices of the tabulated entries of C, on and above the diagonal, row by row."""
        return np.triu_indices(len(self.rows.basis) + 1)

    @cached_property
    def _near_and_far(self) -> tuple[float, float]:
        """Parameters near and far of the ``HalfLine``: the tables are logarithmic in q from
        1 / near to 1 / far."""
        return np.exp(10.0) * self.c, np.exp(-12.0) * self.c

    @cached_property
    def _nodes(self) -> tuple[Array, Array]:
        """Values of q at the Chebyshev points of panels, (panels, points), and at their middles."""
        return HalfLine.panel_points(11, CHEBYSHEV_POINTS, *self._near_and_far)

    @cached_property
    def _node_values(self) -> Array:
        """Values of c_e and C at these q, (k, panels, points + 1); NaN where E Q is not found.

        The solution of a panel is the guess for the next.
        """
        x_before, x_panels, q_panels = self.rows.start, [], np.column_stack(self._nodes)
        for q in q_panels:
            x_panels.append(self.rows.averages(q[:, None, None], np.tile(x_before, (len(q), 1))))
            x_before = x_panels[-1][CHEBYSHEV_POINTS - 1]
        q, averages_at_q = q_panels.reshape(-1, 1, 1), np.concatenate(x_panels)
        sample_count = max(batch.weights.size for batch in self.rows.batches)
        block_count = -(-q.size * sample_count // CACHE_NUMBERS)
        row_values = list[Array]()
        for block_points in np.array_split(np.arange(q.size), min(block_count, q.size)):
            check_time()
            row_values.append(self._covariances(averages_at_q[block_points], q[block_points]))
        return np.concatenate(row_values, axis=1).reshape(-1, *q_panels.shape)

    def _covariances(self, x: Array, q: Array) -> Array:
        """Values of c_e and C, (k, P), for averages x (P, nT) and q (P, 1, 1).

        Special directions other than u, delta and zeta are integrated out.
        """
        C = Special(self.rows, x, self.rows.trace(x, q)).C
        kept, integrated = np.split(np.arange(C.shape[1]), [len(self.rows.basis) + 1])
        across = C[:, integrated[:, None], kept]
        within = np.eye(len(integrated)) / q + C[:, integrated[:, None], integrated]
        C = C[:, kept[:, None], kept] - across.swapaxes(1, 2) @ np.linalg.solve(within, across)
        return np.stack([self.rows.effective_covariance(x)[0][:, 0, 0], *C[:, *self.upper].T])

    @cached_property
    def table(self) -> HalfLine:
        """Chebyshev series of c_e and C, k functions."""
        series = self._node_values[..., :CHEBYSHEV_POINTS] @ coefficient_matrix(CHEBYSHEV_POINTS).T
        return HalfLine(series, *self._near_and_far)

    @cached_property
    def _panel_errors(self) -> Array:
        """Largest error of the series in the middle of every panel, (panels,).

        It is relative for c_e.  Entries of C may vanish: their error is relative to the geometric
        mean of the diagonal entries.
        """
        expected_covariance, (i, j) = self._node_values[..., CHEBYSHEV_POINTS], self.upper
        root_diagonal = np.sqrt(np.abs(expected_covariance[1:][i == j]))
        C_size = np.concatenate([expected_covariance[:1], root_diagonal[i] * root_diagonal[j]])
        covariance_error = np.abs(self.table.evaluate(self._nodes[1])[0] - expected_covariance)
        # if norms do not fluctuate, both the error and the size are 0
        return np.asarray((covariance_error / np.where(C_size > 0, C_size, np.inf)).max(axis=0))

    def error(self, q: Array) -> Array:
        """Relative error of the tables, the largest function's, in the panel that holds each q
        (P,)."""
        return self._panel_errors[self.table.locate(q)[0]]

    def c_e(self, q: Array) -> tuple[Array, Array]:
        """Effective variance c_e (P,) at q, and its derivative."""
        row_variance, variance_slope = self.table.evaluate(q, np.s_[:1])
        return row_variance[0], variance_slope[0]

    def special_covariance(self, q: Array) -> tuple[Array, Array]:
        """Covariance C on the n directions u, delta and zeta, (P, n, n), at q, and its
        derivative."""
        (row, column), tabulated_C = self.upper, self.table.evaluate(q, np.s_[1:])
        C = np.empty((2, len(q), row[-1] + 1, row[-1] + 1))
        C[..., row, column] = C[..., column, row] = np.stack(tabulated_C).swapaxes(1, 2)
        return C[0], C[1]
