"""The signal in the readout: m and theta, for the score of any loss.  Eq. (4.5)

    E[mu_0^b s] = 0,    theta_b = alpha c_b V2_b theta_hat_b,    theta_hat_b = E[kappa mu_1^b s],

and theta has a part that p_hat causes where a network's rows couple it to psi (15.7).  At a finite
dimension m has a cost, too: m_b = alpha dimension share_b V2_b E[mu_0^b s].  The score depends on m
and theta through the mean output C(kappa) alone, with slope E[s' | kappa].  In the unknowns
(m, phi),

    theta = root phi + cross p_hat,    theta_hat = inverse_root phi,

with the matrices of ``Susceptibility``, these are the equations of a least-squares problem with a
unit penalty on phi.  The score of ridge regression, (h - C) / (1 + V), is linear in C: there one
Newton step from anywhere is the solution.
"""

from typing import NamedTuple

import numpy as np

from solvers.linear import least_squares
from solvers.results import Array

from ..equivalence import Table
from .responses import Susceptibility


class Signal(NamedTuple):
    """m (P, G or G + 1), theta (P, A, K) and their conjugates.  Eq. (4.5)"""

    m: Array
    theta: Array
    m_hat: Array
    theta_hat: Array


def penalty_on_m(table: Table, alpha: Array, V2: Array) -> Array:
    """What E[mu_0 s] = penalty m has for m, as E[kappa mu_1 s] = theta / (alpha c V2) for theta,
    (P, G or G + 1): 0 of the intercept, and in the limit of infinite dimension."""
    penalty = np.zeros((len(alpha), len(table.offsets)), V2.dtype)
    kinds = table.classes
    penalty[:, : len(kinds)] = 1 / table.dimension / (alpha[:, None] * table.shares * V2[:, kinds])
    return penalty


def newton_system(
    gram: Array, moment: Array, root: Array, penalty: Array, before: Array
) -> tuple[Array, Array]:
    """Matrix (P, n, n) and right side (P, n) of Newton's step in (m, phi) on Eq. (4.5).

    Parameters
    ----------
    gram : (P, n, n)
        -E[F F^T s'] of the regressors F of C: those of m, then those of theta.
    moment : (P, n)
        E[F s] at the point to step from.
    root : (P, k, k)
        Of :class:`Susceptibility`.
    penalty : (P, n - k, n - k)
        Matrix of the quadratic penalty on m.
    before : (P, n)
        (m, phi) to step from.
    """
    P, k = root.shape[:2]
    free = gram.shape[1] - k
    turn = np.zeros((P, free + k, free + k), root.dtype)
    turn[:, range(free), range(free)] = 1.0
    turn[:, free:, free:] = root
    turned = turn.transpose(0, 2, 1)
    matrix = turned @ gram @ turn
    matrix[:, :free, :free] += penalty
    matrix[:, range(free, free + k), range(free, free + k)] += 1.0
    right = (turned @ moment[..., None])[..., 0]
    right[:, :free] -= (penalty @ before[:, :free, None])[..., 0]
    right[:, free:] -= before[:, free:]
    return matrix, right


def ridge_signal(
    table: Table, W: Array, alpha: Array, V2: Array, susceptibility: Susceptibility, p_hat: Array
) -> Signal:
    """The signal of ridge regression, where ``W @ f`` is E[f / (1 + V)].  Eq. (4.5)

    Where the mu_0 are zero or dependent, the least-norm solution is taken.
    """
    A, K = table.loadings.shape[:2]
    count, loadings = len(table.offsets), table.regressors[len(table.offsets) :]
    offset = theta_from_p_hat(susceptibility, p_hat)  # theta = root phi + offset
    penalty = penalty_on_m(table, alpha, V2)
    root = susceptibility.root
    # Many mu_0 are nearly dependent: as a least-squares problem, which does not square their
    # singular values, it keeps half the digits more.
    penalties = np.concatenate([penalty, np.ones((len(W), A * K), V2.dtype)], axis=1)
    weight = np.sqrt(W)[..., None]
    offsets = np.broadcast_to(table.offsets.T, (len(W), *table.offsets.T.shape))
    columns = np.concatenate([offsets, loadings.T @ root], axis=2)
    rows = np.sqrt(penalties)[:, :, None] * np.eye(penalties.shape[1])
    design = np.concatenate([weight * columns, rows], axis=1)
    target = weight[..., 0] * (table.h - offset @ loadings)
    target = np.concatenate([target, np.zeros_like(penalties)], axis=1)
    solution = least_squares(design, target)
    # once more, for what large m that nearly cancel have left by rounding
    solution += least_squares(design, target - (design @ solution[..., None])[..., 0])
    m, phi = solution[:, :count], solution[:, count:, None]
    theta = (root @ phi)[..., 0] + offset
    score = W * (table.h - m @ table.offsets - theta @ loadings)  # weights (h - C) / (1 + V)
    by_definition = (score @ loadings.T)[..., None]  # theta_hat = E[kappa mu_1 (h - C) / (1 + V)]
    # phi = root^T theta_hat: the definition keeps more digits where the penalty outweighs the data
    weak = np.linalg.norm(design[:, : W.shape[1], count:], axis=1) < 1
    defined = root.transpose(0, 2, 1) @ by_definition
    phi = np.where(weak[..., None], defined, phi)
    theta = (root @ phi)[..., 0] + offset
    theta_hat = by_definition + susceptibility.inverse_root @ (phi - defined)
    shape = (-1, A, K)
    return Signal(m, theta.reshape(shape), penalty * m, theta_hat.reshape(shape))


def theta_from_p_hat(susceptibility: Susceptibility, p_hat: Array) -> Array:
    """The part of theta that p_hat (P, A, K') causes, flat, (P, A K): 0 unless a network's rows
    couple the spike and the rest of the target.  Eq. (15.7)"""
    return np.asarray((susceptibility.cross @ p_hat.reshape(len(p_hat), -1, 1))[..., 0])


def theta_from_conjugates(susceptibility: Susceptibility, theta_hat: Array, p_hat: Array) -> Array:
    """theta (P, A, K) from theta_hat (P, A, K) and p_hat (P, A, K').  Eqs. (4.5), (15.7)"""
    root, flat = susceptibility.root, theta_hat.reshape(len(theta_hat), -1, 1)
    own = (root @ (root.transpose(0, 2, 1) @ flat))[..., 0]
    return np.asarray(own + theta_from_p_hat(susceptibility, p_hat)).reshape(theta_hat.shape)


def psi_from_conjugates(susceptibility: Susceptibility, theta_hat: Array, p_hat: Array) -> Array:
    """psi (P, A, K') from theta_hat (P, A, K) and p_hat (P, A, K').  Eqs. (4.6), (15.7)"""
    flat = p_hat.reshape(len(p_hat), -1, 1)
    psi = susceptibility.rest @ flat
    psi += susceptibility.cross.transpose(0, 2, 1) @ theta_hat.reshape(len(p_hat), -1, 1)
    return psi.reshape(p_hat.shape)
