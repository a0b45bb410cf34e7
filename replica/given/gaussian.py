"""Strata in which features are Gaussian, from their moments.  docs/theory.md 20"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.arrays import like, namespace, to_host
from solvers.results import Array

from .strata import Strata, Stratified, StratumLabels, labels_of


@dataclass(frozen=True)
class MomentStrata(Strata):
    """Few strata, whose moments are given.

    Attributes
    ----------
    shares : (N,)
    means, covariances : (N, p), (N, p, p)
    label_covariances : (N, p)
    """

    shares: Array
    means: Any
    covariances: Any
    label_covariances: Any

    @property
    def width(self) -> int:
        return int(self.means.shape[1])

    def mix(self, weights: Array) -> Any:
        xp, w = namespace(self.means), like(weights, self.means)
        return xp.tensordot(w, self.covariances, axes=1) + (self.means.T * w) @ self.means

    def trace(self, matrix: Any) -> Array:
        xp = namespace(matrix)
        means = xp.sum((self.means @ matrix) * self.means, axis=1)
        return to_host(xp.tensordot(self.covariances, matrix, axes=2) + means) / self.width

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        variance = (self.covariances @ x) @ x
        return to_host(self.means @ x), to_host(self.label_covariances @ x), to_host(variance)

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        of_means, of_labels = like(of_means, self.means), like(of_labels, self.means)
        return of_means @ self.means + of_labels @ self.label_covariances


def gaussian_strata(
    shares: Array,
    means: Array,
    joint: Array,
    *,
    binary: bool,
    intercept: bool,
    rows: int | None = None,
) -> Stratified:
    """Strata of the ``shares`` (N,), with ``means`` (N, p + 1) and ``joint`` covariances of the p
    features and, last, the label: of so many ``rows``, or exact.

    With an ``intercept``, which takes up a shift of each, features are centred, and a constant is
    added.
    """
    h, spread = means[:, -1], joint[:, -1, -1]
    mu, S, e = means[:, :-1].copy(), joint[:, :-1, :-1].copy(), joint[:, -1, :-1].copy()
    if intercept:
        mu = np.pad(mu - shares @ mu, ((0, 0), (0, 1)), constant_values=1.0)
        S, e = np.pad(S, ((0, 0), (0, 1), (0, 1))), np.pad(e, ((0, 0), (0, 1)))
    moments = StratumLabels(shares, h, spread, 0.0)
    labels = labels_of(h, [(0.0, 1.0)], binary=binary)
    return Stratified(
        MomentStrata(shares, mu, S, e), moments, labels, rows=rows, intercept=intercept
    )
