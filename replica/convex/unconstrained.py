"""Unconstrained coordinates of the overlaps, for iterations that extrapolate.

V1 and Q1 - psi psi' are positive definite.  Their coordinates are the logarithms of the diagonals
of their Cholesky factors, and the other entries relative to the diagonals.  V2 and q2 have
logarithms. m and the overlaps with special directions are measured by their contribution to the
prediction, relative to the labels' root mean square.  If offsets are nearly dependent, as with many
groups, large entries of m nearly cancel; the coordinates are then the independent combinations of
m.
"""

from functools import cached_property

import numpy as np

from solvers.results import Array

from ..equivalence import Table
from ..saddle_point import Overlaps


class Coordinates:
    """Coordinates (P, k) of order one of the overlaps of P points, for one table.

    Attributes
    ----------
    size : float
        Root mean square of the labels.
    unit : (A, K + K')
        Overlaps with special directions whose output has the root mean square ``size``.
    combine, resolve : (F, n), (n, F)
        Maps between the F entries of m and n independent combinations x: m = combine x, and
        x = resolve m.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        A, self.spikes = table.loadings.shape[:2]
        self.lower = np.tril_indices(A)
        self.size = float(np.sqrt(table.weights @ (table.power + table.noise))) or 1.0
        special = table.regressors[len(table.offsets) :]
        output_norms = np.sqrt(special**2 @ table.per_part(table.weights)).reshape(A, -1)
        self.unit = self.size / np.where(output_norms > 0, output_norms, self.size)
        # for dependent offsets m has the least norm, in units of their columns, as in ridge
        # regression
        columns = np.sqrt(table.weights)[:, None] * table.offsets.T
        column_norms = np.linalg.norm(columns, axis=0)
        column_norms = np.where(column_norms > 0, column_norms, 1.0)
        _, sigma, Vt = np.linalg.svd(columns / column_norms, full_matrices=False)
        # other combinations have such large m that their output is lost to rounding
        independent = sigma > 1e-10 * sigma[0]
        self.combine = Vt[independent].T / sigma[independent] / column_norms[:, None]
        self.resolve = Vt[independent] * sigma[independent, None] * column_norms
        # ends of the coordinates of V1, V2, m, theta and psi, Q1 - psi psi'; q2 is last
        pairs = self.lower[0].size
        self.ends = np.cumsum([pairs, A, self.combine.shape[1], self.unit.size, pairs])

    @cached_property
    def regressors(self) -> Array:
        """Regressors of the table, with an orthonormal basis of the offsets instead of these."""
        offsets, special = np.split(self.table.regressors, [len(self.table.offsets)])
        return np.concatenate([self.combine.T @ offsets, special])

    def pack(self, o: Overlaps) -> Array:
        """Coordinates (P, k) of overlaps."""
        parts = [
            self._factor_coordinates(o.V1),
            _log(o.V2),
            o.m @ self.resolve.T / self.size,
            (o.special / self.unit).reshape(len(o.m), -1),
            self._factor_coordinates(o.Q1 - o.psi @ o.psi.transpose(0, 2, 1)),
            _log(o.q2),
        ]
        return np.concatenate(parts, axis=1)

    def unpack(self, x: Array) -> Overlaps:
        """Overlaps with the coordinates x (P, k)."""
        V1, V2, m, special, spread, q2 = np.split(x, self.ends, axis=1)
        special = special.reshape(-1, *self.unit.shape) * self.unit
        theta, psi = np.split(special, [self.spikes], axis=2)
        return Overlaps(
            self._matrix_of(V1),
            _exp(V2),
            m @ self.combine.T * self.size,
            theta,
            psi,
            self._matrix_of(spread) + psi @ psi.transpose(0, 2, 1),
            _exp(q2),
        )

    def _factor_coordinates(self, matrix: Array) -> Array:
        """Coordinates (P, A (A + 1) / 2) of positive definite matrices (P, A, A).

        They are the lower triangles of the Cholesky factors: the logarithms of the diagonals, and
        the rows divided by them.
        """
        if matrix.shape[1] == 1:
            return _log(matrix[:, 0]) / 2
        factor = _cholesky(matrix)
        scale = np.diagonal(factor, axis1=1, axis2=2)[..., None]
        rows = np.tril(factor / scale, -1) + _log(scale) * np.eye(matrix.shape[1])
        return rows[:, *self.lower]

    def _matrix_of(self, x: Array) -> Array:
        """Matrices (P, A, A) with the coordinates x: the inverse of ``_factor_coordinates``."""
        A = len(self.unit)
        if A == 1:
            return _exp(x)[..., None] ** 2
        rows = np.zeros((len(x), A, A))
        rows[:, *self.lower] = x
        scale = _exp(np.diagonal(rows, axis1=1, axis2=2))[..., None]
        factor = scale * (np.tril(rows, -1) + np.eye(A))
        return factor @ factor.transpose(0, 2, 1)


def _log(x: Array) -> Array:
    """Logarithm of x, where numbers below 1e-300 count as 1e-300."""
    with np.errstate(invalid="ignore"):
        return np.log(np.maximum(x, 1e-300))


def _exp(x: Array) -> Array:
    """Exponential of x, bounded so that squares and products of a few values do not overflow."""
    return np.exp(np.clip(x, -300.0, 300.0))


def _cholesky(matrix: Array) -> Array:
    """Cholesky factors (P, A, A); NaN for matrices without one."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        if len(matrix) == 1:
            return np.full_like(matrix, np.nan)
        return np.concatenate([_cholesky(single[None]) for single in matrix])
