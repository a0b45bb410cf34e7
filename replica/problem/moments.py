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
    """h (N,), g (q, N) and spread = k - h^2 (N,) of a target, or of E[y | x], at N places.
    Eq. (3.3)"""

    h: Array
    g: Array
    spread: Array


class Averages(NamedTuple):
    """E y, E y^2 and E x y (D,) of a label, E x (D,) and E x x^T (D, D), x being the coordinates of
    the input that labels may know: all that a first gradient step sees beside the student.
    Eqs. (2.1), (19.1)"""

    mean: float
    power: float
    first: Array
    inputs: Array
    second: Array
