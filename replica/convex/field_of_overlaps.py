"""The local field of a new input, for given overlaps.  docs/theory.md 6

C(kappa) = mu_0 . m + sum_b mu_1^b kappa . theta_b,    P = sum_b mu_1^b psi_b,
S^2 = m_1^T Q_1 m_1 + m_2 . q_2,    V = m_1^T V_1 m_1 + m_2 . V_2.
"""

import numpy as np

from ..equivalence import Table
from ..saddle_point import Overlaps, Responses
from .local_field import THINNEST_FIELD, Field

UNMOVED = 1e-150  # V where features vanish: prox is the identity, and scores divide by V


def field_on(table: Table, responses: Responses, o: Overlaps) -> Field:
    """C, P, S^2 and V at every point and node of ``table``, whose ``responses`` are given.  Eqs.
    (4.5), (6.1), (4.7), (4.1)"""
    readout = np.concatenate([o.m, o.theta.reshape(len(o.m), -1)], axis=1)
    centre = readout @ table.regressors
    power = responses.pack(o.Q1, o.q2) @ responses.coefficients
    return Field(
        centre=centre,
        pull=np.einsum("pak,an->pnk", o.psi, table.mu1),
        power=np.maximum(power, THINNEST_FIELD**2 * centre**2 + 1e-300),
        response=np.maximum(responses.pack(o.V1, o.V2) @ responses.coefficients, UNMOVED),
    )
