"""Arguments of the compiled core: the table of one group of neurons.  docs/theory.md 5"""

from typing import NamedTuple

from solvers.chebyshev import HalfLine
from solvers.results import Array


class SpecialDirections(NamedTuple):
    """Special directions in any number n: spikes, the row norms of a network, and all zeta."""

    loadings: Array  # (n, L, N), L parts at a node: the mean, and the slope in each zeta
    target: Array  # (L, N), the same parts of the target
    unexplained: Array  # (N,), variance of the target that is not linear in zeta
    products: Array  # (..., N), of two of mu_0, loadings and target, by triu_indices
    zetas: int  # number of directions zeta, which are the last of the n


class OneGroup(NamedTuple):
    """Table of one group for ridge regression: arrays (N,) and numbers.  For a network it includes
    the tabulated covariances of its rows."""

    weights: Array
    mu0: Array
    # for one spike and one direction zeta that is N(0, 1) at every node; empty otherwise
    loading: Array  # kappa mu_1
    norm: Array  # d mu_0 / d c; zeros if the norms of the rows do not fluctuate
    mu1g: Array
    a: Array  # mu_1^2
    b: Array  # mu_2^2
    h: Array
    spread: Array
    mean_a: float
    mean_b: float
    c: float
    beta: float
    noise: float
    dimension: float
    # for a network c_e, and C on u, the row norms and zeta (docs/theory.md 16, 18); None otherwise
    rows: HalfLine | None
    one_spike: bool | None  # True for one spike and one zeta N(0, 1), None otherwise
    several: SpecialDirections | None  # for all other cases
