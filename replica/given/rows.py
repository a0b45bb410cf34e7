"""Strata that are the rows of a sample of features, without Gaussian features.  docs/theory.md 22

Of N rows phi_i with labels y_i the readout is trained on n, drawn without replacement, and tested
on the others.  Only its law, over which n they are, is Gaussian: a row j is drawn or not, which is
worth the variance z_j of what it asks of the readout, and reaches another row by

    R_ij = phi_i.G phi_j / (p (1 - H_i) (1 - H_j)).                                          (22.3)

At n = N the variances vanish, and outputs of ridge regression are its leave-one-out predictions.
"""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.linalg.blas import dtrmm

from solvers.resources import check_time
from solvers.results import Array

from .equations import StrataEquations, Variances, Varied
from .strata import Strata

RESOLVENT_BLOCK = 2**17  # numbers of R at a time, so that they stay in the cache
FEW = 4  # rows, over features, of which R itself takes less time than its products
MANY = 1000  # rows, of which each is a small part of a variance
PRODUCTS = 2.5e9  # of numbers that its fourth powers may take; more are estimated from some rows


@dataclass(frozen=True)
class RowStrata(Strata):
    """The rows.

    Attributes
    ----------
    shares : (N,)
        1 / N.
    features : (N, p)
    """

    shares: Array
    features: Array

    @property
    def width(self) -> int:
        return int(self.features.shape[1])

    def mix(self, weights: Array) -> Any:
        if (weights < 0).any():
            return (self.features.T * weights) @ self.features
        root = self.features * np.sqrt(weights)[:, None]
        return root.T @ root  # symmetric, of which half is computed

    def trace(self, matrix: Any) -> Array:
        half = matrix - np.diag(np.diagonal(matrix) / 2)  # of which the upper triangle is read
        products = dtrmm(2.0, half, self.features.T).T
        return np.asarray(np.vecdot(products, self.features)) / self.width

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        mean = x @ self.features.T
        return mean, np.zeros_like(mean), np.zeros_like(mean)

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        return of_means @ self.features

    def positive(self, x: Array) -> Array:
        """Variances or responses x, bounded above 0 for rows whose features all vanish: their exact
        value is 0, without rounding."""
        return np.maximum(x, 1e-300)


class RowEquations(StrataEquations):
    """The saddle point of n rows of N, whose variances are those given the rows."""

    strata: RowStrata

    def variances(self, G: Any, slope: Array, V: Array) -> Variances:
        f, left, strata = self.drawn, self.left(slope, V), self.strata
        own = V / left  # R_ii
        once = f * (1 - f)
        g, reach, N = once * slope**2, None, len(V)
        if self.labels.outputs > 1 or min(FEW * strata.width, 5000) >= N:  # 400 MB
            scaled = strata.features / left[:, None]
            reach = scaled @ (G / strata.width) @ scaled.T  # R
            reach *= reach
            alone = np.einsum("ij,ij,j->i", reach, reach, g) - own**4 * g
        else:
            alone = self._fourth_powers(G, left, g, own)

        def varied(mean: Array, square: Array, part: Array) -> Varied:
            def averaged(x: Array) -> Array:
                return x.reshape(len(square), -1, N).mean(axis=1)

            # Eq. (22.3): a row has nothing of itself
            z = f * square - averaged((f * mean) ** 2) - (f * slope) ** 2 * part
            covariance = cache(partial(self.covariance, G, z[0] / (f * left**2)))
            total = strata.trace(covariance()) / left**2 if reach is None else z @ reach
            # Eq. (22.5), for n rows and not n on average
            asked = strata.mix_vectors(mean / left, mean) @ G
            u = averaged((strata.along(asked)[0] / (strata.width * left) - own * mean) ** 2)
            # Eq. (22.7): what a row makes of v_j is not in what row j makes of it
            rest = total - own**2 * z - once * strata.shares * u - alone * (z - g * part)
            new = strata.positive(rest / (1 + alone * g))
            # of several labels it is not asked for
            T = covariance if self.labels.outputs == 1 else partial(np.multiply, np.nan, G)
            return T, new, new @ strata.shares

        return varied

    def _second(self, first: float, second: float, *at: Any) -> tuple[float, float]:
        return np.nan, first

    def _fourth_powers(self, G: Any, left: Array, g: Array, own: Array) -> Array:
        """Sums over all other rows j of R_ij^4 g_j, (N,); of very many rows they are estimated from
        a random part of the j."""
        features: Any = self.strata.features / left[:, None]
        along, (N, p) = features @ (G / self.strata.width), features.shape
        if N > MANY:  # single precision is enough for a correction
            features, along, g = (x.astype(np.float32) for x in (features, along, g))
        step = int(np.ceil(N**2 * p / PRODUCTS))
        some = np.random.default_rng(0).permutation(N)[::step] if step > 1 else slice(None)
        others, size = features[some], max(1, RESOLVENT_BLOCK * step // N)
        total = np.zeros(N)
        for start in range(0, N, size):
            check_time()
            block = slice(start, start + size)
            R = along[block] @ others.T
            R *= R
            R *= R
            total[block] = R @ g[some]
        total[some] -= own[some] ** 4 * g[some]
        return total * step
