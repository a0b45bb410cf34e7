"""Moments of an activation and of a target, as arrays.  Eqs. (3.2)-(3.3)"""

from typing import NamedTuple

from solvers.results import Array


class Moments(NamedTuple):
    """Moments of an activation at s + sqrt(c) z, arrays of the shape of s.

    Mean E sigma, first moment E z sigma, and the variance of sigma - E sigma - z E z sigma.
    """

    mean: Array
    first: Array
    variance: Array


class ConditionalMoments(NamedTuple):
    """Moments of a target, or of E[y | x], conditional on z, at N places.  Eq. (3.3)

    h (N,), g (q, N) and spread = k - h^2 (N,).
    """

    h: Array
    g: Array
    spread: Array


class Averages(NamedTuple):
    """Averages of labels y and inputs x on which a first gradient step depends.
    Eqs. (2.1), (19.1)

    E y, E y^2, E x y (D,), E x (D,) and E x x^T (D, D), with x the D coordinates of the input on
    which labels may depend.
    """

    mean: float
    power: float
    first: Array
    inputs: Array
    second: Array
