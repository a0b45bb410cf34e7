"""The law of the labels given kappa, on quadrature nodes: arrays that averages are taken with.

Given kappa, tau ~ N(0, 1) in the K' directions of the target that are left, and y follows the law
of the labels given (kappa, tau).  N values of kappa, T nodes of tau.  ``label_tables`` makes them.
"""

from typing import NamedTuple

from solvers.results import Array

from ..problem import LabelNoise


class Steps(NamedTuple):
    """A piecewise constant E[y | z] as a function of tau: ``values`` (b + 1,) between its jumps
    at ``edges`` (N, b)."""

    edges: Array
    values: Array


class Labels(NamedTuple):
    """The law of the labels given each of N kappa.

    Attributes
    ----------
    tau, weights, mean : arrays (N, T, K'), (N, T), (N, T)
        Nodes, weights that sum to 1, and E[y | z].  Labels +-1 are 1 with probability
        (1 + mean) / 2.
    variances, shares : arrays (M,)
        Of the Gaussians that are mixed around the mean of real labels.
    binary : bool
        Whether labels are +-1.
    order : int
        Nodes a panel along a proximal map, for losses that need it.
    noise : LabelNoise, optional
        What the Gaussians are a mixture for.
    steps : Steps, optional
        Of E[y | z], where it is piecewise constant and one direction tau is left.
    """

    tau: Array
    weights: Array
    mean: Array
    variances: Array
    shares: Array
    binary: bool
    order: int
    noise: LabelNoise | None = None
    steps: Steps | None = None

    def at(self, rows: slice) -> "Labels":
        """Given those kappa alone."""
        steps = self.steps
        return self._replace(
            tau=self.tau[rows],
            weights=self.weights[rows],
            mean=self.mean[rows],
            steps=steps and Steps(steps.edges[rows], steps.values),
        )
