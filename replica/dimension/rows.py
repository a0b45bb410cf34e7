"""Rows of a network on the coordinates of the inputs, and on a direction of the batch's noise.
docs/theory.md 23"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.linalg import null_space

from solvers.results import Array

from ..problem import Model
from ..saddle_point import DELTA, TabulatedRows

SMALL_PRODUCT = 1e-6  # q c, where c_e has its slope at 0
# values of q over the inverse of the largest covariance, and the polynomial through C(q) there
FIT_POINTS, FIT_STEP, FIT_DEGREE = 10, 1e-3, 5


@dataclass(frozen=True, eq=False)
class LoadedRows(TabulatedRows):
    """Rows of one group on n coordinates kappa of the inputs, and on a direction b of the bulk.

    Special directions are in the order kappa_1, delta, kappa_2, ..., kappa_n, b.

    Attributes
    ----------
    coordinates : (n, n)
        The coordinates kappa in the basis (u, zeta): those on which labels and inputs depend, and
        the part of u outside them.
    second : (n, n)
        Second moments E kappa kappa^T of the inputs.
    """

    coordinates: Array
    second: Array

    def _on_coordinates(self, q: Array) -> tuple[Array, Array]:
        """Tabulated C(q) on kappa and delta, (P, n + 1, n + 1), and its derivative."""
        n = len(self.coordinates)
        turn, others = np.zeros((n + 1, n + 1)), np.delete(np.arange(n + 1), DELTA)
        turn[np.ix_(others, others)], turn[DELTA, DELTA] = self.coordinates, 1.0
        C, slope = super().special_covariance(q)
        return turn @ C @ turn.T, turn @ slope @ turn.T

    @cached_property
    def _at_zero(self) -> tuple[Array, Array, Array]:
        """C_FF, C_F_ C_F_^T and C_F_ C__ C_F_^T, with _ for the directions of the bulk.
        Eq. (23.1)"""
        largest = np.linalg.eigvalsh(self._on_coordinates(np.zeros(1))[0][0])[-1]
        q = FIT_STEP / largest * np.arange(FIT_POINTS)
        C = self._on_coordinates(q)[0]
        powers = np.vander(q / q[-1], FIT_DEGREE + 1, increasing=True)
        fit = np.linalg.lstsq(powers, C.reshape(len(q), -1), rcond=None)[0]
        value, slope, half_curvature = fit[:3].reshape(3, *C.shape[1:])
        return value, -slope / q[-1], half_curvature / q[-1] ** 2

    @cached_property
    def _noise_direction(self) -> tuple[Array, float]:
        """Covariances C_Fb (n + 1,) and C_bb of the direction b, in which the bulk varies with the
        rows' largest coordinate.  Eq. (23.2)

        It is the first vector of Lanczos' method.  Where the bulk does not vary with the
        coordinates, b is any direction of the bulk.
        """
        C, through_bulk, twice = self._at_zero
        others = np.delete(np.arange(len(C)), DELTA)
        within = C[np.ix_(others, others)]
        # a left eigenvector of C E[kappa kappa^T]: t.v is a row's coordinate of largest effect
        values, vectors = np.linalg.eig(self.second @ within)
        t = np.zeros(len(C))
        t[others] = vectors[:, np.argmax(values.real)].real
        squared_norm = t @ through_bulk @ t
        if squared_norm < 1e-8 * np.linalg.norm(within) ** 2:
            return np.zeros(len(C)), self.c
        return through_bulk @ t / np.sqrt(squared_norm), float(t @ twice @ t / squared_norm)

    @cached_property
    def loading_covariance(self) -> Array:
        """d times the covariance of a row's loadings on (kappa, b), (n + 1, n + 1)."""
        across, own = self._noise_direction
        C = np.block([[self._at_zero[0], across[:, None]], [across, np.full((1, 1), own)]])
        return np.delete(np.delete(C, DELTA, 0), DELTA, 1)

    @cached_property
    def noise_ratio(self) -> float:
        """Variance of rows along the noise direction over the largest along the coordinates, each
        times that of the inputs."""
        C = self.loading_covariance
        return float(C[-1, -1] / np.linalg.eigvals(self.second @ C[:-1, :-1]).real.max())

    @cached_property
    def share_of_directions(self) -> float:
        """D / d, where D = 1 / E rho^2 is the number of directions that the bulk of the rows makes
        use of.  docs/network.md, "How large d must be" """
        slope = self.c_e(np.array([SMALL_PRODUCT / self.c]))[1][0]
        return float(self.c**2 / (self.c**2 - slope))

    @cached_property
    def mean_row(self) -> float:
        """Squared length of the rows' mean over that of independent rows.  Eq. (23.8)"""
        return self.rows.mean_row / self.c

    def special_covariance(self, q: Array) -> tuple[Array, Array]:
        """Covariance C on the n + 2 directions, (P, n + 2, n + 2), at q, and its derivative: b is
        no longer among the directions that C(q) integrates out.  Eq. (23.3)"""
        (across, own), n = self._noise_direction, len(self.coordinates)
        outer, resolved = np.outer(across, across), (1 / (1 + q * own))[:, None, None]
        C, slope = np.zeros((2, len(q), n + 2, n + 2))
        inner = self._on_coordinates(q)
        C[:, :-1, :-1] = inner[0] + q[:, None, None] * resolved * outer
        slope[:, :-1, :-1] = inner[1] + resolved**2 * outer
        C[:, :-1, -1] = C[:, -1, :-1] = across
        C[:, -1, -1] = own
        return C, slope


@lru_cache(maxsize=16)
def loaded_rows(model: Model) -> LoadedRows:
    """Loaded rows of a network of one kind of neurons, at any dimension."""
    rows: Any = model.rows
    basis, averages = model.components.basis, model.components
    coordinates = np.vstack([basis, null_space(basis).T])
    roots = np.concatenate([averages.slope, averages.root], axis=2)  # of (u, zeta)
    moments = roots @ roots.swapaxes(1, 2) + averages.mean[:, :, None] * averages.mean[:, None]
    second = np.tensordot(averages.shares, moments, axes=1)
    return LoadedRows(rows.tabulated.rows, coordinates, coordinates @ second @ coordinates.T)
