"""Unconstrained coordinates of the overlaps, for iterations that extrapolate.

V1 and Q1 - psi psi' are positive definite: of their Cholesky factors the diagonal is taken in
logarithms and the rest relative to it; V2 and q2 in logarithms; m, theta and psi in units of
what they add to the prediction, relative to the labels' root mean square.  Offsets that are
nearly dependent (many groups) have large m that nearly cancel: only what they add up to counts.
"""

from functools import cached_property

import numpy as np

from solvers.results import Array

from ..equivalence import Table
from ..saddle_point import Overlaps

DEPENDENT = 1e-10  # of the largest singular value: combinations of offsets smaller than that are 0


class Coordinates:
    """Overlaps of P points as numbers (P, k) of order one."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.A, self.K = table.loadings.shape[:2]
        self.rest = len(table.g)
        self.lower = np.tril_indices(self.A)
        self.size = float(np.sqrt(table.weights @ (table.power + table.noise))) or 1.0
        slope = np.sqrt((table.mu1**2) @ table.weights)
        self.slope_unit = self.size / np.where(slope > 0, slope, self.size)
        root = np.sqrt(table.weights)
        _, sigma, Vt = np.linalg.svd(root[:, None] * table.offsets.T, full_matrices=False)
        kept = sigma > DEPENDENT * sigma[0]
        self.combine = Vt[kept].T / sigma[kept]  # m = combine @ x
        self.resolve = Vt[kept] * sigma[kept, None]  # x = resolve @ m

    @cached_property
    def regressors(self) -> Array:
        """An orthonormal basis of the offsets, then the loadings: (F + A K, N)."""
        loadings = self.table.regressors[len(self.table.offsets) :]
        return np.concatenate([self.combine.T @ self.table.offsets, loadings])

    @cached_property
    def pairs(self) -> Array:
        """Products of two of them, (N, (F + A K)^2)."""
        found = np.einsum("in,jn->nij", self.regressors, self.regressors)
        return found.reshape(self.table.weights.size, -1)

    def slopes_from(self, other: "Coordinates", slopes: Array) -> Array | None:
        """Slopes (k, k) in the coordinates of another table of the model, in these; None if they
        are of another number.  The combinations of offsets have no sign of their own, and where
        singular values are close, no directions."""
        turn = self.resolve @ other.combine
        if turn.shape[0] != turn.shape[1]:
            return None
        whole, first = np.eye(len(slopes)), len(self.lower[0]) + self.A
        whole[first : first + len(turn), first : first + len(turn)] = turn
        return np.asarray(whole @ slopes @ np.linalg.pinv(whole))

    def pack(self, o: Overlaps) -> Array:
        """(P, k) from overlaps."""
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
        """Overlaps from (P, k)."""
        pairs, A = len(self.lower[0]), self.A
        sizes = [pairs, A, self.combine.shape[1], A * self.K, A * self.rest, pairs, A]
        V1, V2, m, theta, psi, Q1, q2 = np.split(x, np.cumsum(sizes)[:-1], axis=1)
        psi = psi.reshape(-1, A, self.rest) * self.slope_unit[:, None]
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
        if self.A == 1:
            return _log(matrix[:, 0]) / 2
        diagonal = range(self.A)
        factor = _cholesky(matrix)
        scale = factor[:, diagonal, diagonal].copy()
        factor /= scale[:, :, None]
        factor[:, diagonal, diagonal] = _log(scale)
        return factor[:, *self.lower]

    def _product(self, x: Array) -> Array:
        factor = np.zeros((len(x), self.A, self.A))
        factor[:, *self.lower] = x
        diagonal = range(self.A)
        scale = _exp(factor[:, diagonal, diagonal])
        factor[:, diagonal, diagonal] = 1.0
        factor *= scale[:, :, None]
        return factor @ factor.transpose(0, 2, 1)


def _log(x: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.log(np.maximum(x, 1e-300))


def _exp(x: Array) -> Array:
    return np.exp(np.clip(x, -300.0, 300.0))


def _cholesky(matrix: Array) -> Array:
    """Cholesky factors (P, A, A); NaN for a matrix that has none."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        if len(matrix) == 1:
            return np.full_like(matrix, np.nan)
        return np.concatenate([_cholesky(matrix[i : i + 1]) for i in range(len(matrix))])
