"""The law of the labels given kappa, on quadrature nodes: arrays that averages are taken with.

Given kappa, tau ~ N(0, 1) in the K' directions of the target that are left, and y follows the law
of the labels given (kappa, tau).  N values of kappa, T nodes of tau.  ``label_tables`` makes them.
"""

from typing import NamedTuple

from solvers.results import Array


class Steps(NamedTuple):
    """A piecewise constant E[y | z] as a function of tau: ``values`` (b + 1,) between its jumps
    at ``edges`` (N, b)."""

    edges: Array
    values: Array


class Series(NamedTuple):
    """E[y | z] as a series in He_k(tau) / sqrt(k!): coefficients (N, K), and the norm of what is
    left, times the weight of kappa, (N,)."""

    coefficients: Array
    rest: Array


class Component(NamedTuple):
    """Labels to which a Gaussian is added, at N nodes of kappa and T of tau.

    tau (N, T, K'), weights (N, T), which sum to 1, E[y | z] (N, T), the Gaussian's variance, and
    the share of such labels.
    """

    tau: Array
    weights: Array
    mean: Array
    variance: float
    share: float


class Labels(NamedTuple):
    """The law of the labels given each of N kappa.

    Attributes
    ----------
    components : tuple of Component
        Of which real labels are a mixture.  Labels +-1 have one, without variance: they are 1
        with probability (1 + mean) / 2.
    binary : bool
        Whether labels are +-1.
    order : int
        Nodes a panel along a proximal map, for losses that need it.
    student : (nu, sigma), optional
        Of sigma times Student's t, added to real labels beside the Gaussians.
    square : array (N,)
        kappa^2, which tells how much of tau is likely together with it.
    steps : Steps, optional
        Of E[y | z], where it is piecewise constant and one direction tau is left.
    series : Series, optional
        Of E[y | z], where labels are +-1, it has no steps and one direction tau is left.
    """

    components: tuple[Component, ...]
    binary: bool
    order: int
    square: Array
    student: tuple[float, float] | None = None
    steps: Steps | None = None
    series: Series | None = None

    def at(self, rows: slice) -> "Labels":
        """Given those kappa alone."""
        steps, series = self.steps, self.series
        return self._replace(
            components=tuple(
                each._replace(tau=each.tau[rows], weights=each.weights[rows], mean=each.mean[rows])
                for each in self.components
            ),
            square=self.square[rows],
            steps=steps and Steps(steps.edges[rows], steps.values),
            series=series and Series(*(x[rows] for x in series)),
        )

    @property
    def width(self) -> int:
        """The largest number of nodes of a component, for every kappa."""
        return max(each.weights.shape[1] for each in self.components)

    @property
    def size(self) -> int:
        """Nodes of (kappa, tau) of all components, and twice that for labels +-1."""
        nodes = sum(each.weights.size for each in self.components)
        return nodes * (2 if self.binary else 1)
