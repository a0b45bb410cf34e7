"""Ridge regression on the features: its saddle point and its errors.  docs/theory.md 4

A ``Responses`` solves (4.1)-(4.4) for (V1, V2).  Everything else is linear algebra, written here in
the order of section 4 for any number of groups A, spikes K and other target directions K'.  The
first axis of arrays is P points (alpha, lambda), the next the N nodes of kappa.  For one group, the
usual case, the ``Responses`` are compiled once a process has made some 200 calls.

The signal in the readout is m and the overlaps with special directions.  For the score s of any
loss

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
from numpy.typing import NDArray

from solvers.linear import least_squares, solve_rows
from solvers.results import Array

from ..equivalence import Table
from . import compiled
from .compiled import RESPONSE_TOLERANCE, CompiledCorrelated, CompiledIsotropic
from .correlated import CorrelatedGroup, CorrelatedGroups
from .groups import Groups
from .isotropic import Isotropic
from .overlaps import Conjugates, MeanSquaredErrors, Overlaps
from .responses import Responses, SignalSources, Susceptibility
from .rows import TabulatedRows


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


class Points(NamedTuple):
    """Solutions at P points, with the residual, the iterations and the status of each.

    Attributes
    ----------
    overlaps, conjugates, errors : Overlaps, Conjugates, Errors
    residual : (P,)
        Residual of (4.1)-(4.4); of all equations, if the points were checked.
    iterations, status : (P,)
        Iterations of the solver of (4.1)-(4.4), and its ``Status``.
    """

    overlaps: Overlaps
    conjugates: Conjugates
    errors: MeanSquaredErrors
    residual: Array
    iterations: NDArray[np.int64]
    status: NDArray[np.object_]


def solve_points(table: Table, alpha: Array, lam: Array, start: Overlaps | None = None) -> Points:
    """Solutions of ridge regression at the points (alpha, lam), arrays (P,).

    ``start`` are guesses, as overlaps on another table.  Points that did not converge hold the
    solver's last values; callers mask them.
    """
    if len(table.mu1) == 1:
        compiled.solved[0] += 1 + len(alpha) / compiled.POINTS_PER_CALL
    responses = responses_of(table)
    guess = None if start is None else responses.pack(start.V1, start.V2)
    with np.errstate(all="ignore"):  # points that are not finite are flagged
        result = responses.solve(alpha, lam, RESPONSE_TOLERANCE, guess)
        readout = trained_readout(responses, result.value, alpha, lam)
    return Points(*readout, result.residual, result.iterations, result.status)


def trained_readout(
    responses: Responses, V: Array, alpha: Array, lam: Array
) -> tuple[Overlaps, Conjugates, MeanSquaredErrors]:
    """Overlaps, conjugates and errors that follow from V, packed (P, D).  Eqs. (4.5)-(4.11)"""
    table = responses.table
    V2, R = responses.unpack(V)[1], responses.shrinkage(V)
    V_hat = responses.conjugates_from(R, alpha)  # Eq. (4.2)
    susceptibility = responses.susceptibility(V, V_hat, alpha)
    signal = ridge_signal(table, R, alpha, V2, susceptibility)  # Eqs. (4.5), (4.6)
    signal_sources = responses.signal_sources(V, susceptibility, alpha, signal.special_hat)

    # Eq. (4.7) without the part of the variance that is linear in (Q1, q2) of (4.9)
    error0 = conditional_error(table, signal.m, signal.special)
    if signal_sources.Q1.any():
        error0 += responses.at_nodes(responses.pack(signal_sources.Q1, np.zeros_like(V2)))
    # (4.7)-(4.10) as one linear system: the sources of error0 give Q
    R2 = R * R
    X = sources(responses, R2 * error0, alpha, signal.m_hat, signal_sources.X2)  # Eq. (4.8)
    Q = responses.second_moments(V, alpha, lam, responses.pack(*X))  # Eq. (4.10)
    error = error0 + responses.at_nodes(Q)  # Eq. (4.7)
    X = sources(responses, R2 * error, alpha, signal.m_hat, signal_sources.X2)  # Eq. (4.8)
    # (4.9) once more by itself: a q2 much smaller than V2 is lost in the joint system.
    Q = responses.second_moments_at(V_hat, lam, responses.pack(*X), V)
    error = error0 + responses.at_nodes(Q)  # Eq. (4.7)
    test = error @ table.weights - table.noise  # Eq. (4.11)
    train = (R2 * error) @ table.weights  # Eq. (4.11)
    return *unpacked(responses, V, V_hat, signal, signal_sources, X, Q), MeanSquaredErrors(
        test, train
    )


def unpacked(
    responses: Responses,
    V: Array,
    V_hat: Array,
    signal: Signal,
    signal_sources: SignalSources,
    X: tuple[Array, Array],
    Q: Array,
) -> tuple[Overlaps, Conjugates]:
    """Overlaps and conjugates from their packed arrays, with the contributions of the ``signal`` to
    Q1.  Eq. (4.9)"""
    spikes = responses.table.loadings.shape[1]
    theta, psi = signal.special[..., :spikes], signal.special[..., spikes:]
    Q1, q2 = responses.unpack(Q)
    Q1 = Q1 + signal_sources.Q1 + psi @ psi.swapaxes(1, 2)
    overlaps = Overlaps(*responses.unpack(V), signal.m, theta, psi, Q1, q2)
    return overlaps, Conjugates(*responses.unpack(V_hat), signal.m_hat, signal.special_hat, *X)


def sources(
    responses: Responses, square: Array, alpha: Array, m_hat: Array, X2_of_signal: Array
) -> tuple[Array, Array]:
    """X1 (P, A, A) and X2 (P, A) from ``square``, E[s^2 | kappa] (P, N), and the contribution of
    the signal to X2.  Eqs. (4.8), (6.3)

    At a finite dimension m_hat acts as theta_hat does (docs/readout.md), of the groups of a kind by
    their shares.
    """
    table, (X1, X2) = responses.table, responses.unpack(responses.conjugates_from(square, alpha))
    X2 = X2 + X2_of_signal
    if np.isfinite(table.dimension):
        shares = table.shares[:, None] * (table.classes[:, None] == np.arange(X2.shape[1]))
        squares = m_hat[:, : len(shares)] ** 2 @ shares
        X2 += (alpha**2 / table.beta)[:, None] * table.dimension * squares
    return X1, X2


def responses_of(table: Table) -> Responses:
    """The ``Responses`` of a table's neurons: in closed form for one group, general for more."""
    enough = compiled.solved[0] > compiled.CALLS_BEFORE_CORE
    core = enough and len(table.mu1) == 1 and compiled.kernel() is not None
    if table.covariance is None and len(table.mu1) > 1:
        return Groups(table)
    if table.covariance is None:
        return CompiledIsotropic(table) if core else Isotropic(table)
    if not isinstance(table.covariance, TabulatedRows):
        return CorrelatedGroups(table)
    return CompiledCorrelated(table) if core else CorrelatedGroup(table)


def conditional_error(table: Table, m: Array, special: Array) -> Array:
    """Conditional error epsilon(kappa) of Eq. (4.7), (P, N), with psi psi^T for Q1 and 0 for q2."""
    output = np.concatenate([m, special.reshape(len(m), -1)], axis=1) @ table.regressors
    gap = (output - table.target_parts).reshape(len(m), -1, table.weights.size)
    return np.asarray(np.einsum("pln,pln->pn", gap, gap) + (table.unexplained + table.noise))


def expand_kinds(table: Table, points: Points) -> Points:
    """Solution for the model's G groups, from the solution for the table's A kinds of neurons.

    Up to signs, the groups of a kind divide its V2, theta and psi by their shares, and have its
    conjugates.  In V1 = c V2 - (coupling) they divide the coupling, and the first term is the
    group's own; likewise in Q1.
    """
    kinds, shares = table.classes, table.shares
    overlaps, conjugates = points.overlaps, points.conjugates
    if len(kinds) == len(table.c):
        return points

    def repeat(first: Array) -> Array:
        """Matrices of groups (P, G, G) from matrices of kinds (P, A, A)."""
        return first[:, kinds][:, :, kinds]

    def divide(first: Array, second: Array) -> Array:
        """V1 or Q1 of groups (P, G, G) from the V1 or Q1 of kinds (P, A, A), and their V2 or q2 (P,
        A)."""
        diagonal = table.c[:, None] * np.eye(len(table.c)) * second[:, :, None]
        own_terms = (table.c[kinds] * shares * second[:, kinds])[:, :, None] * np.eye(len(shares))
        return own_terms - repeat(diagonal - first) * shares[:, None] * shares

    theta_signs, psi_signs = np.split(table.signs, [table.loadings.shape[1]], axis=1)
    group_overlaps = Overlaps(
        divide(overlaps.V1, overlaps.V2),
        shares * overlaps.V2[:, kinds],
        overlaps.m,
        theta_signs * shares[:, None] * overlaps.theta[:, kinds],
        psi_signs * shares[:, None] * overlaps.psi[:, kinds],
        divide(overlaps.Q1, overlaps.q2),
        shares * overlaps.q2[:, kinds],
    )
    group_conjugates = Conjugates(
        repeat(conjugates.V1),
        conjugates.V2[:, kinds],
        conjugates.m,
        table.signs * conjugates.special[:, kinds],
        repeat(conjugates.X1),
        conjugates.X2[:, kinds],
    )
    return points._replace(overlaps=group_overlaps, conjugates=group_conjugates)
