"""The signal in the readout: m and the overlaps with special directions, for the score of any loss.
docs/theory.md 4

    E[mu_0^b s] = 0,    theta_b = alpha c_b V2_b theta_hat_b,    theta_hat_b = E[x mu_1^b s],

x being the input along the special directions: the spikes, where it is kappa at a node; a network's
row norms, d mu_0 / d c in the place of x mu_1; and zeta, one for each of the rest of the target's
directions, Gaussian at every node, whose theta is psi.  With the rows of a network alpha c V2 is a
matrix M on all of them (17.4).  At a finite dimension m has a cost, too:
m_b = alpha dimension share_b V2_b E[mu_0^b s].  The score depends on all these through what they
add to the output, with slope E[s' | kappa].  In the unknowns (m, phi),

    theta = root phi,    theta_hat = inverse_root phi,    root root^T = M,

these are the equations of a least-squares problem with a unit penalty on phi.  The score of ridge
regression is linear in the output: there one Newton step from anywhere is the solution.
"""

from typing import NamedTuple

import numpy as np

from solvers.linear import least_squares
from solvers.results import Array

from ..equivalence import Table
from .responses import Susceptibility


class Signal(NamedTuple):
    """m (P, G or G + 1), overlaps with the special directions (P, A, K + K') and their conjugates.
    Eq. (4.5)"""

    m: Array
    special: Array
    m_hat: Array
    special_hat: Array


def penalty_on_m(table: Table, alpha: Array, V2: Array) -> Array:
    """What E[mu_0 s] = penalty m has for m, as E[kappa mu_1 s] = theta / (alpha c V2) for theta,
    (P, G or G + 1): 0 of the intercept, and in the limit of infinite dimension."""
    penalty = np.zeros((len(alpha), len(table.offsets)), V2.dtype)
    kinds = table.classes
    penalty[:, : len(kinds)] = 1 / table.dimension / (alpha[:, None] * table.shares * V2[:, kinds])
    return penalty


def ridge_signal(
    table: Table, W: Array, alpha: Array, V2: Array, susceptibility: Susceptibility
) -> Signal:
    """The signal of ridge regression, where ``W @ f`` is E[f / (1 + V)].  Eqs. (4.5), (4.6)

    Where the mu_0 are zero or dependent, the least-norm solution is taken.
    """
    count, W = len(table.offsets), table.per_part(W)
    offsets, loadings = table.regressors[:count], table.regressors[count:]
    penalty = penalty_on_m(table, alpha, V2)
    root = susceptibility.root
    # Many mu_0 are nearly dependent: as a least-squares problem, which does not square their
    # singular values, it keeps half the digits more.
    penalties = np.concatenate([penalty, np.ones((len(W), len(loadings)), V2.dtype)], axis=1)
    weight = np.sqrt(W)[..., None]
    columns = np.broadcast_to(offsets.T, (len(W), *offsets.T.shape))
    columns = np.concatenate([columns, loadings.T @ root], axis=2)
    rows = np.sqrt(penalties)[:, :, None] * np.eye(penalties.shape[1])
    design = np.concatenate([weight * columns, rows], axis=1)
    target = np.concatenate([weight[..., 0] * table.target_parts, np.zeros_like(penalties)], axis=1)
    solution = least_squares(design, target)
    # once more, for what large m that nearly cancel have left by rounding
    solution += least_squares(design, target - (design @ solution[..., None])[..., 0])
    m, phi = solution[:, :count], solution[:, count:, None]
    score = W * (table.target_parts - m @ offsets - (root @ phi)[..., 0] @ loadings)
    by_definition = (score @ loadings.T)[..., None]  # theta_hat = E[x mu_1 (y - output) / (1 + V)]
    # phi = root^T theta_hat: the definition keeps more digits where the penalty outweighs the data
    weak = np.linalg.norm(design[:, : W.shape[1], count:], axis=1) < 1
    defined = root.transpose(0, 2, 1) @ by_definition
    phi = np.where(weak[..., None], defined, phi)
    special_hat = by_definition + susceptibility.inverse_root @ (phi - defined)
    shape = (len(W), len(table.mu1), -1)
    return Signal(m, (root @ phi).reshape(shape), penalty * m, special_hat.reshape(shape))
