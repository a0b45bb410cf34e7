"""What the compiled core takes of a table: one group, one spike.  docs/theory.md 5"""

from typing import NamedTuple

from solvers.chebyshev import HalfLine
from solvers.results import Array


class OneGroup(NamedTuple):
    """What ridge regression needs of the table of one group, one spike and one more direction of
    the target: arrays (N,), and numbers; of a network, also what its rows have tabulated."""

    weights: Array
    mu0: Array
    loading: Array  # kappa mu_1
    norm: Array  # d mu_0 / d c; zeros where the norms of the rows do not fluctuate
    a: Array  # mu_1^2
    b: Array  # mu_2^2
    h: Array
    mu1g: Array
    spread: Array
    mean_a: float
    mean_b: float
    c: float
    beta: float
    noise: float
    dimension: float
    # of a network c_e and, on u, the row norms and zeta, C (docs/theory.md 16, 18); else None
    rows: HalfLine | None
