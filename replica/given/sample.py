"""Moments of given features: a network of any depth, real data.  docs/theory.md 20

Strata are classes, or whatever tells inputs apart so that features are nearly Gaussian in each.
The sample stands for the population: shares, means, covariances and labels are its empirical
moments.
"""

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from .strata import MomentStrata, StratumLabels

# Samples of a stratum over features: with fewer the small eigenvalues of an empirical covariance
# are far below those of the population.
FEWEST = 3.0


def sample_strata(
    features: Array, labels: Array, strata: Array
) -> tuple[MomentStrata, StratumLabels]:
    """The moments of features (N, p) with labels (N,) in the ``strata`` (N,) that their ids tell.

    Raises
    ------
    InvalidArgument
        If a stratum has too few samples for its covariance.

    Examples
    --------
    >>> features = np.array([[0.0], [1.0], [2.0], [4.0], [4.0], [7.0]])
    >>> found, y = sample_strata(features, np.array([1, 1, 1, -1, -1, -1.0]), np.arange(6) // 3)
    >>> found.means.ravel().tolist(), found.covariances.round(3).ravel().tolist(), y.h.tolist()
    ([1.0, 5.0], [0.667, 2.0], [1.0, -1.0])
    """
    (total, p), (ids, counts) = features.shape, np.unique(strata, return_counts=True)
    fewest = int(np.argmin(counts))
    if counts[fewest] < FEWEST * p:
        raise InvalidArgument(
            "features",
            f"{counts[fewest]} in stratum {ids[fewest]}",
            f"at least {int(FEWEST * p)} samples in every stratum, {FEWEST:g} for each of the {p} "
            "features (take fewer strata, or fewer features)",
        )
    means, covariances, along = np.empty((len(ids), p)), np.empty((len(ids), p, p)), []
    h, spread = np.empty((2, len(ids)))
    for i, one in enumerate(ids):
        Phi, y = features[strata == one], labels[strata == one]
        means[i], h[i], spread[i] = Phi.mean(axis=0), y.mean(), y.var()
        Z = Phi - means[i]
        covariances[i] = Z.T @ Z / len(Z)
        along.append((y - h[i]) @ Z / len(Z))
    shares = counts / total
    moments = MomentStrata(shares, means, covariances, np.array(along))
    return moments, StratumLabels(shares, h, spread, 0.0)
