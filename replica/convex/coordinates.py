"""Unconstrained coordinates of the overlaps, for iterations that extrapolate.

V1 and Q1 - psi psi' are positive definite: of their Cholesky factors the diagonal is taken in
logarithms and the rest relative to it; V2 and q2 in logarithms; m, theta and psi in units of
what they add to the prediction, relative to the labels' root mean square.  Offsets that are
nearly dependent (many groups) have large m that nearly cancel: only what they add up to counts.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from solvers.results import Array

from ..equivalence import Table
from ..saddle_point import Overlaps

# Combinations of the offsets whose singular value is smaller than that, relative to the largest,
# count as 0: their m would be so large that what it adds to the output is lost to rounding.
DEPENDENT_OFFSETS = 1e-10


class Coordinates:
    """Overlaps of P points as numbers (P, k) of order one, for one table.

    Attributes
    ----------
    size : float
        The labels' root mean square.
    slope_unit : (A,)
        theta and psi of each group that add ``size`` to the output.
    combine, resolve : (F, n), (n, F)
        Between m and the n independent combinations x of its F entries: m = combine x, and
        x = resolve m.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.A, self.K = table.loadings.shape[:2]
        self.directions = len(table.g)
        self.lower = np.tril_indices(self.A)
        self.size = float(np.sqrt(table.weights @ (table.power + table.noise))) or 1.0
        slope = np.sqrt((table.mu1**2) @ table.weights)
        self.slope_unit = self.size / np.where(slope > 0, slope, self.size)
        root = np.sqrt(table.weights)
        _, sigma, Vt = np.linalg.svd(root[:, None] * table.offsets.T, full_matrices=False)
        independent = sigma > DEPENDENT_OFFSETS * sigma[0]
        self.combine = Vt[independent].T / sigma[independent]
        self.resolve = Vt[independent] * sigma[independent, None]

    @cached_property
    def regressors(self) -> Array:
        """An orthonormal basis of the offsets, then the loadings: (n + A K, N)."""
        loadings = self.table.regressors[len(self.table.offsets) :]
        return np.concatenate([self.combine.T @ self.table.offsets, loadings])

    @cached_property
    def pairs(self) -> Array:
        """Products of two ``regressors``, (N, (n + A K)^2)."""
        products = np.einsum("in,jn->nij", self.regressors, self.regressors)
        return products.reshape(self.table.weights.size, -1)

    def slopes_from(self, other: "Coordinates", slopes: Array) -> Array | None:
        """Derivatives (k, k) by the coordinates of another table of the model, by these; None if
        those are more or fewer.  The combinations of offsets have no sign of their own, and where
        singular values are close no directions, so that they have to be turned."""
        turn = self.resolve @ other.combine
        if turn.shape[0] != turn.shape[1]:
            return None
        whole, first = np.eye(len(slopes)), len(self.lower[0]) + self.A
        whole[first : first + len(turn), first : first + len(turn)] = turn
        return np.asarray(whole @ slopes @ np.linalg.pinv(whole))

    def pack(self, o: Overlaps) -> Array:
        """Coordinates (P, k) of overlaps."""
        P = len(o.V2)
        spread = o.Q1 - o.psi @ o.psi.transpose(0, 2, 1)
        parts = [
            self._factor(o.V1),
            _log(o.V2),
            o.m @ self.resolve.T / self.size,
            (o.theta / self.slope_unit[:, None]).reshape(P, -1),
            (o.psi / self.slope_unit[:, None]).reshape(P, -1),
            self._factor(spread),
            _log(o.q2),
        ]
        return np.concatenate(parts, axis=1)

    def unpack(self, x: Array) -> Overlaps:
        """The overlaps whose coordinates are x (P, k)."""
        pairs, A = len(self.lower[0]), self.A
        sizes = [pairs, A, self.combine.shape[1], A * self.K, A * self.directions, pairs, A]
        V1, V2, m, theta, psi, Q1, q2 = np.split(x, np.cumsum(sizes)[:-1], axis=1)
        psi = psi.reshape(-1, A, self.directions) * self.slope_unit[:, None]
        return Overlaps(
            self._product(V1),
            _exp(V2),
            m @ self.combine.T * self.size,
            theta.reshape(-1, A, self.K) * self.slope_unit[:, None],
            psi,
            self._product(Q1) + psi @ psi.transpose(0, 2, 1),
            _exp(q2),
        )

    def _factor(self, matrix: Array) -> Array:
        """Positive definite matrices (P, A, A) as the lower triangles of their Cholesky factors,
        flat, (P, A (A + 1) / 2): the logarithms of the diagonals, and the rows over them."""
        if self.A == 1:
            return _log(matrix[:, 0]) / 2
        diagonal = range(self.A)
        factor = _cholesky(matrix)
        scale = factor[:, diagonal, diagonal].copy()
        factor /= scale[:, :, None]
        factor[:, diagonal, diagonal] = _log(scale)
        return factor[:, *self.lower]

    def _product(self, x: Array) -> Array:
        """The matrices (P, A, A) that ``_factor`` made x of."""
        factor = np.zeros((len(x), self.A, self.A))
        factor[:, *self.lower] = x
        diagonal = range(self.A)
        scale = _exp(factor[:, diagonal, diagonal])
        factor[:, diagonal, diagonal] = 1.0
        factor *= scale[:, :, None]
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
        return np.concatenate([_cholesky(matrix[i : i + 1]) for i in range(len(matrix))])


class Slopes(NamedTuple):
    """Derivatives (k, k) of the equations x - T(x) near one point, in the coordinates of a table.

    T is one pass of the equations.
    """

    matrix: Array
    coordinates: Coordinates
