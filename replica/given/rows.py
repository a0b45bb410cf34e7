"""Every row of a sample of features its own stratum: no Gaussian features.  docs/theory.md 22

Of N rows phi_i with labels y_i the readout is trained on n, drawn without replacement, and tested
on the others.  Only its law, over which n they are, is Gaussian: a row j is drawn or not, which is
worth the variance z_j of what it asks of the readout, and reaches another row by

    R_ij = phi_i.G phi_j / (p (1 - H_i) (1 - H_j)).                                          (22.3)

At n = N the variances vanish, and outputs of ridge regression are its leave-one-out predictions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.resources import check_time
from solvers.results import Array

from .equations import Freedom, StrataEquations, Variances
from .strata import Strata

BLOCK = 2**17  # numbers of R at a time, so that they stay in the cache
PRODUCTS = 4e9  # of numbers that its fourth powers may take; more are estimated from some rows


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
        return np.asarray(((self.features @ matrix) * self.features).sum(axis=1)) / self.width

    def along(self, x: Any) -> tuple[Array, Array, Array]:
        mean = x @ self.features.T
        return mean, np.zeros_like(mean), np.zeros_like(mean)

    def mix_vectors(self, of_means: Array, of_labels: Array) -> Any:
        return of_means @ self.features

    def positive(self, x: Array) -> Array:
        """A row without a feature has no response and no output: 0, and no rounding."""
        return np.maximum(x, 1e-300)


class RowEquations(StrataEquations):
    """The saddle point of n rows of N, whose variances are those given the rows."""

    strata: RowStrata

    def variances(self, G: Any, slope: Array, V: Array) -> Variances:
        f, left, strata = self.drawn, self.left(slope, V), self.strata
        own = V / left  # R_ii
        once = f * (1 - f)
        g, reach = once * slope**2, None
        if self.labels.outputs > 1:  # R itself takes less time
            scaled = strata.features / left[:, None]
            reach = (scaled @ G @ scaled.T / strata.width) ** 2
            alone = reach**2 @ g - own**4 * g
        else:
            alone = self._fourth_powers(G, left, g, own)

        def varied(mean: Array, square: Array, part: Array) -> tuple[Any, Array, Array]:
            # Eq. (22.3): a row has nothing of itself
            z = f * square - (f * mean) ** 2 - (f * slope) ** 2 * part
            if reach is None:
                T = self.covariance(G, z[0] / (f * left**2))
                total = strata.trace(T) / left**2
            else:  # of several labels T is not asked for
                T, total = np.nan * G, z @ reach
            # Eq. (22.5), for n rows and not n on average
            asked = strata.mix_vectors(mean / left, mean) @ G
            u = strata.along(asked)[0] / (strata.width * left) - own * mean
            # Eq. (22.7): what a row makes of v_j is not in what row j makes of it
            new = strata.positive(total - own**2 * z - once * strata.shares * u**2 - alone * z)
            return T, new, new @ strata.shares

        return varied

    def freedom(self, G: Any, slope: Array, V: Array) -> Freedom:
        found = super().freedom(G, slope, V)
        return found._replace(second=np.nan, lost=found.first)

    def _fourth_powers(self, G: Any, left: Array, g: Array, own: Array) -> Array:
        """sum_j R_ij^4 g_j over all other rows j, (N,); of very many rows, from some at random."""
        features = self.strata.features
        N, p = features.shape
        step = int(np.ceil(N**2 * p / PRODUCTS))
        some = np.random.default_rng(0).permutation(N)[::step] if step > 1 else slice(None)
        others, size = features[some] / left[some, None], max(1, BLOCK * step // N)
        total = np.zeros(N)
        for start in range(0, N, size):
            check_time()
            block = slice(start, start + size)
            R = features[block] / (p * left[block, None]) @ G @ others.T
            R *= R
            R *= R
            total[block] = R @ g[some]
        total[some] -= own[some] ** 4 * g[some]
        return total * step
