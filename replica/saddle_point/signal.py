"""Signal in the readout: m and the overlaps with special directions, for the score of any loss.
docs/theory.md 4

    E[mu_0^b s] = 0,    theta_b = alpha c_b V2_b theta_hat_b,    theta_hat_b = E[x mu_1^b s],

where x is the input along a special direction.  Along a spike it is kappa.  Along the other target
directions zeta it is Gaussian at every node, and theta is called psi.  For a network's row norms,
d mu_0 / d c replaces x mu_1, and alpha c V2 is a matrix M on all special directions (17.4).  At a
finite dimension m has a penalty, m_b = alpha dimension share_b V2_b E[mu_0^b s].  The score depends
on all these through the output, with slope E[s' | kappa].  In the unknowns (m, phi),

    theta = root phi,    theta_hat = inverse_root phi,    root root^T = M,

these are the equations of a least-squares problem with a unit penalty on phi.  The score of ridge
regression is linear in the output: there one Newton step from anywhere is the solution.
"""

from typing import NamedTuple

import numpy as np

from solvers.linear import least_squares, solve_rows
from solvers.results import Array

from ..equivalence import Table
from .responses import Susceptibility


class Signal(NamedTuple):
    """Means m (P, G or G + 1), overlaps with special directions (P, A, K + K'), and conjugates.
    Eq. (4.5)"""

    m: Array
    special: Array
    m_hat: Array
    special_hat: Array


def penalty_on_m(table: Table, alpha: Array, V2: Array) -> Array:
    """Penalty on m in E[mu_0 s] = penalty m, (P, G or G + 1).

    It is the counterpart of 1 / (alpha c V2) in E[kappa mu_1 s] = theta / (alpha c V2).  It is 0
    for the intercept, and in the limit of infinite dimension.
    """
    penalty = np.zeros((len(alpha), len(table.offsets)), V2.dtype)
    kinds = table.classes
    penalty[:, : len(kinds)] = 1 / table.dimension / (alpha[:, None] * table.shares * V2[:, kinds])
    return penalty


def ridge_signal(
    table: Table, R: Array, alpha: Array, V2: Array, susceptibility: Susceptibility
) -> Signal:
    """Signal of ridge regression, for R = 1 / (1 + V) at the nodes, (P, N).  Eqs. (4.5), (4.6)

    If the mu_0 are zero or dependent, it is the least-norm solution.
    """
    penalty, P = penalty_on_m(table, alpha, V2), len(R)
    if len(table.offsets) > 1:
        m, special_hat = _least_squares(table, R, penalty, susceptibility)
    else:  # normal equations in m and theta_hat, of few unknowns and no dependent offsets
        n = len(table.regressors)
        gram = (R @ table.weighted_products.T).reshape(P, n + 1, n + 1)  # the target is last
        matrix = gram[:, :n, :n].copy()
        matrix[:, :, 1:] = matrix[:, :, 1:] @ susceptibility.matrix
        diagonal = np.einsum("pii->pi", matrix)
        diagonal[:, 1:] += 1
        diagonal[:, :1] += penalty
        diagonal[:, 0] += diagonal[:, 0] == 0  # m is 0 where mu_0 is
        solution = solve_rows(matrix, gram[:, :n, n])
        m, special_hat = solution[:, :1], solution[:, 1:]
    special_hat = special_hat.reshape(P, len(table.mu1), -1)
    return Signal(m, susceptibility.overlaps(special_hat), penalty * m, special_hat)


def _least_squares(
    table: Table, R: Array, penalty: Array, susceptibility: Susceptibility
) -> tuple[Array, Array]:
    """The m (P, n_0) and the conjugates (P, n) for any number of offsets, theta = root phi."""
    count, W = len(table.offsets), table.per_part(R * table.weights)
    offsets, loadings = table.regressors[:count], table.regressors[count:]
    root, inverse_root = susceptibility.roots()
    # Many mu_0 are nearly dependent.  Least squares does not square their singular values, unlike
    # the normal equations, which would lose half the digits.
    penalties = np.concatenate([penalty, np.ones((len(W), len(loadings)))], axis=1)
    root_W = np.sqrt(W)[..., None]
    columns = np.broadcast_to(offsets.T, (len(W), *offsets.T.shape))
    columns = np.concatenate([columns, loadings.T @ root], axis=2)
    penalty_rows = np.sqrt(penalties)[:, :, None] * np.eye(penalties.shape[1])
    design = np.concatenate([root_W * columns, penalty_rows], axis=1)
    target = np.concatenate([root_W[..., 0] * table.target_parts, np.zeros_like(penalties)], axis=1)
    solution = least_squares(design, target)
    # a step of refinement removes the rounding of large m that nearly cancel
    solution += least_squares(design, target - (design @ solution[..., None])[..., 0])
    m, phi = solution[:, :count], solution[:, count:, None]
    score = W * (table.target_parts - m @ offsets - (root @ phi)[..., 0] @ loadings)
    defined_hat = (score @ loadings.T)[..., None]  # theta_hat = E[x mu_1 (y - output) / (1 + V)]
    # phi = root^T theta_hat by definition is more accurate where the penalty outweighs the data
    penalty_dominates = np.linalg.norm(design[:, : W.shape[1], count:], axis=1) < 1
    defined_phi = root.transpose(0, 2, 1) @ defined_hat
    phi = np.where(penalty_dominates[..., None], defined_phi, phi)
    return m, (defined_hat + inverse_root @ (phi - defined_phi))[..., 0]
