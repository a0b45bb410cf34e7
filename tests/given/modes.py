"""Independent features of the variances 1 / k, by their moments and drawn."""

import numpy as np

from replica import FeatureMoments

EXACT = {"quadrature_tol": 1e-9}  # the equations are then solved to 1e-10
MODES = np.arange(1.0, 61) ** -1.0  # variances of features whose scales are k^-1/2
SAMPLES, LAM, NOISE, LEARNED = 100, 0.01, 0.1, 4


def of_modes(**options):
    """Independent features of the variances MODES, whose label is the fifth in units of its
    scale, with noise."""
    along = np.zeros(60)
    along[LEARNED] = MODES[LEARNED] ** 0.5
    given = {"covariances": np.diag(MODES), "label_covariances": along}
    return FeatureMoments(**given | {"label_variances": 1 + NOISE} | options)


def rows_of(moments, count, seed=0):
    """Features and labels that are drawn from the moments, by numpy."""
    rng = np.random.default_rng(seed)
    stratum = rng.choice(len(moments.fractions), count, p=moments.fractions)
    joint = np.empty((count, moments.width + 1))
    for i, mean in enumerate(np.column_stack([moments.means, moments.label_means])):
        own, e = stratum == i, moments.label_covariances[i][:, None]
        covariance = np.block([[moments.covariances[i], e], [e.T, moments.label_variances[i]]])
        joint[own] = rng.multivariate_normal(mean, covariance, int(own.sum()), method="eigh")
    return joint[:, :-1], joint[:, -1]
