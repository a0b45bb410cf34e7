"""The local field omega, the output for a new input: its law given kappa, and given tau as well.

Given kappa and tau it is N(C + P.tau, S^2 - |P|^2), where C and S^2 are its mean and variance given
kappa alone.  docs/theory.md 6
"""

from typing import NamedTuple

import numpy as np

from solvers.results import Array

# Least standard deviation of omega, of its mean: densities thinner than that are lost to rounding.
THINNEST_FIELD = 1e-9


class Scores(NamedTuple):
    """E s, -E s', E s^2, (P, N) each, and E tau s (P, N, K'), given kappa.  Eq. (6.1)"""

    mean: Array
    slope: Array
    square: Array
    along: Array


class Field(NamedTuple):
    """The law of omega at every point and kappa, and what training on a sample there changes.

    Attributes
    ----------
    centre : (P, N)
        C, its mean.  Eq. (4.5)
    pull : (P, N, K')
        P, its slope in tau.  Eq. (6.1)
    power : (P, N)
        S^2, its variance given kappa alone.  Eq. (4.7)
    response : (P, N)
        V.  Eq. (4.1)
    """

    centre: Array
    pull: Array
    power: Array
    response: Array


def given_tau(tau: Array, field: Field) -> tuple[Array, Array]:
    """Mean (P, N, T) and standard deviation (P, N, 1) of omega given kappa and tau (N, T, K')."""
    centre = field.centre[..., None] + np.einsum("pnk,ntk->pnt", field.pull, tau)
    return centre, np.sqrt(remaining(field))[..., None]


def remaining(field: Field) -> Array:
    """S^2 - |P|^2 (P, N), the variance given kappa and tau: at least what rounding leaves of it."""
    rest = field.power - (field.pull**2).sum(axis=-1)
    return np.asarray(np.maximum(rest, 1e-14 * field.power + 1e-300))
