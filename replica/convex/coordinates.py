"""Unconstrained coordinates of the overlaps, for iterations that extrapolate.

V1 and Q1 - psi psi' are positive definite: of their Cholesky factors the diagonal is taken in
logarithms and the rest relative to it; V2 and q2 in logarithms; m and the overlaps with special
directions in units of what they add to the prediction, relative to the labels' root mean square.
Offsets that are nearly dependent (many groups) have large m that nearly cancel: only what they add
up to counts.
"""

from functools import cached_property

import numpy as np

from solvers.results import Array

from ..equivalence import Table
from ..saddle_point import Overlaps


class Coordinates:
    """Overlaps of P points as numbers (P, k) of order one, for one table.

    Attributes
    ----------
    size : float
        The labels' root mean square.
    unit : (A, K + K')
        Overlaps with special directions that add ``size`` to the output.
    combine, resolve : (F, n), (n, F)
        Between m and the n independent combinations x of its F entries: m = combine x, and
        x = resolve m.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        A, self.spikes = table.loadings.shape[:2]
        self.lower = np.tril_indices(A)
        self.size = float(np.sqrt(table.weights @ (table.power + table.noise))) or 1.0
        special = table.regressors[len(table.offsets) :]
        adds = np.sqrt(special**2 @ table.per_part(table.weights)).reshape(A, -1)
        self.unit = self.size / np.where(adds > 0, adds, self.size)
        # of dependent offsets, m is ridge regression's: of least norm, in units of their columns
        columns = np.sqrt(table.weights)[:, None] * table.offsets.T
        unit = np.linalg.norm(columns, axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        _, sigma, Vt = np.linalg.svd(columns / unit, full_matrices=False)
        # others have m so large that what they add to the output is lost to rounding
        independent = sigma > 1e-10 * sigma[0]
        self.combine = Vt[independent].T / sigma[independent] / unit[:, None]
        self.resolve = Vt[independent] * sigma[independent, None] * unit
        # of the coordinates: V1, V2, m, theta and psi, Q1 - psi psi'; then q2
        pairs = self.lower[0].size
        self.ends = np.cumsum([pairs, A, self.combine.shape[1], self.unit.size, pairs])

    @cached_property
    def regressors(self) -> Array:
        """The table's, with an orthonormal basis of the offsets in their place."""
        offsets, special = np.split(self.table.regressors, [len(self.table.offsets)])
        return np.concatenate([self.combine.T @ offsets, special])

    def pack(self, o: Overlaps) -> Array:
        """Coordinates (P, k) of overlaps."""
        parts = [
            self._factor(o.V1),
            _log(o.V2),
            o.m @ self.resolve.T / self.size,
            (o.special / self.unit).reshape(len(o.m), -1),
            self._factor(o.Q1 - o.psi @ o.psi.transpose(0, 2, 1)),
            _log(o.q2),
        ]
        return np.concatenate(parts, axis=1)

    def unpack(self, x: Array) -> Overlaps:
        """The overlaps whose coordinates are x (P, k)."""
        V1, V2, m, special, spread, q2 = np.split(x, self.ends, axis=1)
        special = special.reshape(-1, *self.unit.shape) * self.unit
        theta, psi = np.split(special, [self.spikes], axis=2)
        return Overlaps(
            self._product(V1),
            _exp(V2),
            m @ self.combine.T * self.size,
            theta,
            psi,
            self._product(spread) + psi @ psi.transpose(0, 2, 1),
            _exp(q2),
        )

    def _factor(self, matrix: Array) -> Array:
        """Positive definite matrices (P, A, A) as the lower triangles of their Cholesky factors,
        flat, (P, A (A + 1) / 2): the logarithms of the diagonals, and the rows over them."""
        if matrix.shape[1] == 1:
            return _log(matrix[:, 0]) / 2
        factor = _cholesky(matrix)
        scale = np.diagonal(factor, axis1=1, axis2=2)[..., None]
        rows = np.tril(factor / scale, -1) + _log(scale) * np.eye(matrix.shape[1])
        return rows[:, *self.lower]

    def _product(self, x: Array) -> Array:
        """The matrices (P, A, A) that ``_factor`` made x of."""
        A = len(self.unit)
        if A == 1:
            return _exp(x)[..., None] ** 2
        rows = np.zeros((len(x), A, A))
        rows[:, *self.lower] = x
        scale = _exp(np.diagonal(rows, axis1=1, axis2=2))[..., None]
        factor = scale * (np.tril(rows, -1) + np.eye(A))
        return factor @ factor.transpose(0, 2, 1)


def _log(x: Array) -> Array:
    """log x, of a number that is not positive that of the smallest one."""
    with np.errstate(invalid="ignore"):
        return np.log(np.maximum(x, 1e-300))


def _exp(x: Array) -> Array:
    """exp x, within what squares and products of a few such numbers can hold."""
    return np.exp(np.clip(x, -300.0, 300.0))


def _cholesky(matrix: Array) -> Array:
    """Cholesky factors (P, A, A); NaN for a matrix that has none."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        if len(matrix) == 1:
            return np.full_like(matrix, np.nan)
        return np.concatenate([_cholesky(one[None]) for one in matrix])
