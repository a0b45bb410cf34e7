"""What the compiled core takes of a table of one group.  docs/theory.md 5"""

from typing import NamedTuple

from solvers.chebyshev import HalfLine
from solvers.results import Array


class Several(NamedTuple):
    """Any n special directions: spikes, the row norms of a network, and what zeta there are."""

    loadings: Array  # (n, L, N), on L parts of every node: a mean, and a slope in each zeta
    seen: Array  # (L, N), of the target
    unseen: Array  # (N,), its variance beside
    products: Array  # (..., N): of mu_0, loadings and target, each with itself and all after it
    rest: int  # how many zeta there are, the last of the n


class OneGroup(NamedTuple):
    """What ridge regression needs of the table of one group: arrays (N,), and numbers; of a
    network, also what its rows have tabulated."""

    weights: Array
    mu0: Array
    # of one spike, and one direction zeta of the target that is N(0, 1) everywhere: otherwise empty
    loading: Array  # kappa mu_1
    norm: Array  # d mu_0 / d c; zeros where the norms of the rows do not fluctuate
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
    # of a network c_e and, on u, the row norms and zeta, C (docs/theory.md 16, 18); else None
    rows: HalfLine | None
    usual: bool | None  # True, or None where there are several
    several: Several | None
