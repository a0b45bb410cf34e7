"""The local field omega of a new input: its law given kappa, and given tau as well.

Given kappa and tau the prediction, omega, is N(C + P.tau, S^2 - |P|^2) with

    C(kappa) = mu_0.m + sum_b mu_1^b kappa.theta_b,  P = sum_b mu_1^b psi_b,
    S^2 = m_1' Q_1 m_1 + m_2.q_2.
"""

from typing import NamedTuple

import numpy as np

from solvers.results import Array

from ..equivalence import Table
from ..saddle_point import Overlaps, Responses
from .label_tables import Component

UNMOVED = 1e-150  # V where features vanish: prox is the identity, and scores divide by V
THINNEST = 1e-9  # standard deviation, of the mean: thinner ones are lost to rounding


class Scores(NamedTuple):
    """E s, -E s', E s^2, (P, N) each, and E tau s (P, N, K'), given kappa.  Eq. (6.1)"""

    mean: Array
    slope: Array
    square: Array
    along: Array


class Field(NamedTuple):
    """C (P, N), P (P, N, K'), S^2 (P, N) and V (P, N) at every point and kappa."""

    centre: Array
    pull: Array
    power: Array
    response: Array


def field_on(table: Table, responses: Responses, o: Overlaps) -> Field:
    """C, P, S^2 and V at every point and node of ``table``, whose neurons ``bulk`` describes."""
    readout = np.concatenate([o.m, o.theta.reshape(len(o.m), -1)], axis=1)
    centre = readout @ table.regressors
    power = responses.pack(o.Q1, o.q2) @ responses.coefficients
    return Field(
        centre=centre,
        pull=np.einsum("pak,an->pnk", o.psi, table.mu1),
        power=np.maximum(power, THINNEST**2 * centre**2 + 1e-300),
        response=np.maximum(responses.pack(o.V1, o.V2) @ responses.coefficients, UNMOVED),
    )


def given_tau(given: Component, field: Field) -> tuple[Array, Array]:
    """Mean (P, N, T) and standard deviation (P, N, 1) of omega given kappa and tau."""
    centre = field.centre[..., None] + np.einsum("pnk,ntk->pnt", field.pull, given.tau)
    return centre, np.sqrt(remaining(field))[..., None]


def remaining(field: Field) -> Array:
    """S^2 - |P|^2, at least what rounding leaves of it."""
    rest = field.power - (field.pull**2).sum(axis=-1)
    return np.asarray(np.maximum(rest, 1e-14 * field.power + 1e-300))
