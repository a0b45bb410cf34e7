"""Records of the compiled core, at one point (alpha, lambda), and the table that it takes."""

from collections import namedtuple
from typing import NamedTuple

from solvers.chebyshev import HalfLine
from solvers.results import Array

Pair = tuple[float, float]
Matrix = tuple[float, float, float, float]  # two by two, row by row

# E[R {1, a, b}] and E[R^2 {a, b, ab}], with R = 1 / (1 + V), a = mu_1^2, b = mu_2^2
Averages = namedtuple("Averages", "R Ra Rb RRa RRb RRab")
# V1, c_e, and derivatives of log V1 and of log p in log W1, with p = V1 / (c_e V2)
Bulk = namedtuple("Bulk", "V1 c slope p_slope")


class OneGroup(NamedTuple):
    """Moments of one group of neurons: arrays (N,) and numbers."""

    weights: Array
    a: Array  # mu_1^2
    b: Array  # mu_2^2
    c: float
    beta: float
    rows: HalfLine | None  # for a network c_e, and C on special directions (docs/theory.md 16, 18)
