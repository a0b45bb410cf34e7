"""Averages that the theory asks of an activation and of a target, as arrays.  Eqs. (3.2)-(3.3)"""

from typing import NamedTuple

from solvers.results import Array


class Moments(NamedTuple):
    """E sigma, E z sigma and Var(sigma - E sigma - z E z sigma) at s + sqrt(c) z, arrays
    of the shape of s."""

    mean: Array
    first: Array
    variance: Array


class ConditionalMoments(NamedTuple):
    """h (N,), g (K', N) and spread = k - h^2 (N,) of a target, or of E[y | x], at N values of
    kappa.  Eq. (3.3)"""

    h: Array
    g: Array
    spread: Array


class Averages(NamedTuple):
    """E y, E y^2 and C_1 = E z y (T,) of a target y, or of a label: all that a first gradient step
    sees of them beside the student.  Eq. (2.1)"""

    mean: float
    power: float
    first: Array
