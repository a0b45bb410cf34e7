"""The labels in every stratum: their moments, and their law.  docs/theory.md 20"""

from typing import NamedTuple

import numpy as np

from solvers.results import Array

from ..convex import ConditionalLabels


class StratumLabels(NamedTuple):
    """Moments of the labels in N strata.

    Attributes
    ----------
    weights : (N,)
        The strata's shares omega, of sum 1.
    h, spread : (N,)
        Mean and variance of E[y | x].
    noise : float
        Variance Delta of what is added to that.
    """

    weights: Array
    h: Array
    spread: Array
    noise: float

    @property
    def g(self) -> Array:
        """Ones (1, N): a field's ``pull`` is its covariance with the label here."""
        return np.ones((1, self.h.size))


def labels_of(mean: Array, variances: Array, shares: Array, *, binary: bool) -> ConditionalLabels:
    """The law of labels with the ``mean`` (N,) in every stratum: that of ``convex`` with no
    direction tau left."""
    nodes = np.zeros((mean.size, 1, 1)), np.ones((mean.size, 1))
    return ConditionalLabels(*nodes, mean[:, None], variances, shares, binary=binary, order=10)
