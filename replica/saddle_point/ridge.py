"""Ridge regression: the signal m and overlaps, errors, and the residual of all equations.
docs/theory.md 4

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

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from solvers.linear import least_squares
from solvers.results import Array

from ..equivalence import Table
from .correlated import CorrelatedGroup, CorrelatedGroups
from .evaluation import Points
from .groups import Groups
from .isotropic import Isotropic
from .overlaps import Conjugates, MeanSquaredErrors, Overlaps
from .responses import RESPONSE_TOLERANCE, Responses, Susceptibility, identity
from .row_covariances import TabulatedRows

# Errors are sums that may cancel, and theta, chi and psi may vanish.  A change of an error is
# relative to at least this share of the error without a readout, a change of an overlap to at least
# this share of an overlap that makes the output as large as the target.
SMALLEST_ERROR, SMALLEST_OVERLAP = 1e-4, 1e-4
# Calls after which a process loads the compiled core.  Importing numba and loading the cached core
# takes 1.4 s, which it saves in 200 calls for a point each, or for 60 000 points at once.
CALLS_BEFORE_CORE, POINTS_PER_CALL = 200, 300
calls_of_one_group = [0.0]  # so far, and their points over POINTS_PER_CALL


class Signal(NamedTuple):
    """Means m (P, G or G + 1), overlaps with special directions (P, A, K + K'), and conjugates.
    Eq. (4.5)"""

    m: Array
    special: Array
    m_hat: Array
    special_hat: Array


def ridge_signal(table: Table, R: Array, susceptibility: Susceptibility) -> Signal:
    """Signal of ridge regression, for R = 1 / (1 + V) at the nodes, (P, N).  Eqs. (4.5), (4.6)

    If the mu_0 are zero or dependent, it is the least-norm solution.
    """
    M, m_penalty, _ = susceptibility
    if len(table.offsets) > 1:
        m, special_hat = _least_squares(table, R, susceptibility)
    else:  # normal equations in m and theta_hat, of few unknowns and no dependent offsets
        n = len(table.regressors)
        ridge_gram = (R @ table.weighted_products.T).reshape(-1, n + 1, n + 1)  # the target is last
        ridge_matrix = ridge_gram[:, :n, :n]
        ridge_matrix[:, :, 1:] = ridge_matrix[:, :, 1:] @ M
        ridge_matrix[:, 1:, 1:] += identity(n - 1)
        offset_corner = ridge_matrix[:, :1, 0]
        offset_corner += m_penalty
        offset_corner += offset_corner == 0  # m is 0 where mu_0 is
        try:
            ridge_solution = np.linalg.solve(ridge_matrix, ridge_gram[:, :n, n:])
        except np.linalg.LinAlgError:  # some matrix is singular
            ridge_solution = np.linalg.pinv(ridge_matrix) @ ridge_gram[:, :n, n:]
        m, special_hat = ridge_solution[:, 0], ridge_solution[:, 1:]
    special_shape = len(R), len(table.mu1), -1
    special_overlaps = (M @ special_hat).reshape(special_shape)  # theta = M theta_hat
    return Signal(m, special_overlaps, m_penalty * m, special_hat.reshape(special_shape))


def _least_squares(table: Table, R: Array, susceptibility: Susceptibility) -> tuple[Array, Array]:
    """The m (P, n_0) and the conjugates (P, n, 1) for any number of offsets, theta = root phi."""
    offset_count, W = len(table.offsets), table.per_part(R * table.weights)
    offset_parts, loading_parts = table.regressors[:offset_count], table.regressors[offset_count:]
    root, inverse_root = susceptibility.roots()
    # Many mu_0 are nearly dependent.  Least squares does not square their singular values, unlike
    # the normal equations, which would lose half the digits.
    unit_penalties = np.ones((len(W), len(loading_parts)))
    penalties = np.concatenate([susceptibility.penalty, unit_penalties], axis=1)
    root_W = np.sqrt(W)[..., None]
    design_columns = np.broadcast_to(offset_parts.T, (len(W), *offset_parts.T.shape))
    design_columns = np.concatenate([design_columns, loading_parts.T @ root], axis=2)
    penalty_rows = np.sqrt(penalties)[:, :, None] * np.eye(penalties.shape[1])
    design = np.concatenate([root_W * design_columns, penalty_rows], axis=1)
    target = np.concatenate([root_W[..., 0] * table.target_parts, np.zeros_like(penalties)], axis=1)
    ridge_solution = least_squares(design, target)
    # a step of refinement removes the rounding of large m that nearly cancel
    ridge_solution += least_squares(design, target - (design @ ridge_solution[..., None])[..., 0])
    m, phi = ridge_solution[:, :offset_count], ridge_solution[:, offset_count:, None]
    part_score = W * (table.target_parts - m @ offset_parts - (root @ phi)[..., 0] @ loading_parts)
    defined_hat = (part_score @ loading_parts.T)[..., None]  # E[x mu_1 (y - output) / (1 + V)]
    # phi = root^T theta_hat by definition is more accurate where the penalty outweighs the data
    penalty_dominates = np.linalg.norm(design[:, : W.shape[1], offset_count:], axis=1) < 1
    defined_phi = root.transpose(0, 2, 1) @ defined_hat
    phi = np.where(penalty_dominates[..., None], defined_phi, phi)
    return m, defined_hat + inverse_root @ (phi - defined_phi)


def solve_points(
    table: Table,
    alpha: Array,
    lam: Array,
    start: tuple[Array, Array] | None = None,
    coarse: Table | None = None,
) -> Points:
    """Solutions of ridge regression at the points (alpha, lam), arrays (P,).

    ``start`` are guesses of V1 and V2, from another table.  Points that did not converge hold the
    solver's last values; callers mask them.  With a ``coarse`` table the points are checked: their
    quadrature error is the residual there, or the error of a network's tabulated rows if that is
    larger.
    """
    if len(table.mu1) == 1 and calls_of_one_group[0] <= CALLS_BEFORE_CORE:
        calls_of_one_group[0] += 1 + len(alpha) / POINTS_PER_CALL
        responses_of.cache_clear()
    responses = responses_of(table)
    response_guess = None if start is None else responses.pack(*start)
    with np.errstate(all="ignore"):  # points that are not finite are flagged
        ridge_responses = responses.solve(alpha, lam, RESPONSE_TOLERANCE, response_guess)
        ridge_readout = trained_readout(responses, ridge_responses.value, alpha, lam)
        account = np.full(len(alpha), np.inf), ridge_responses.iterations, ridge_responses.status
        ridge_points = Points(*ridge_readout, ridge_responses.residual, *account)
        if coarse is None:
            return ridge_points
        on_fine, coarse_error = residual([table, coarse], alpha, lam, ridge_points)
    if isinstance(table.covariance, TabulatedRows):
        q = table.beta * ridge_points.overlaps.V2[:, 0] * ridge_points.conjugates.V1[:, 0, 0]
        coarse_error = np.maximum(coarse_error, table.covariance.error(q))
    return ridge_points._replace(residual=on_fine, quadrature_error=coarse_error)


def trained_readout(
    responses: Responses, V: Array, alpha: Array, lam: Array
) -> tuple[Overlaps, Conjugates, MeanSquaredErrors]:
    """Overlaps, conjugates and errors that follow from V, packed (P, D).  Eqs. (4.5)-(4.11)"""
    table, shrinkage = responses.table, 1 / (1 + responses.at_nodes(V))  # Eq. (4.1)
    V_hat = responses.conjugates_from(shrinkage, alpha)  # Eq. (4.2)
    susceptibility = responses.susceptibility(V, V_hat, alpha)
    signal = ridge_signal(table, shrinkage, susceptibility)  # Eqs. (4.5), (4.6)
    signal_hats = signal.m_hat, signal.special_hat
    signal_sources = responses.signal_sources(V, susceptibility, alpha, *signal_hats)

    # Eq. (4.7) without the part of the variance that is linear in (Q1, q2) of (4.9)
    error0, RR = conditional_error(table, signal.m, signal.special)[1], shrinkage * shrinkage
    if susceptibility.response is not None:
        error0 += responses.at_nodes(signal_sources.Q)
    # (4.7)-(4.10) as one linear system: the sources of error0 give Q
    X = responses.conjugates_from(RR * error0, alpha) + signal_sources.X  # Eq. (4.8)
    Q = responses.second_moments(V, alpha, lam, X)  # Eq. (4.10)
    error = error0 + responses.at_nodes(Q)  # Eq. (4.7)
    X = responses.conjugates_from(RR * error, alpha) + signal_sources.X  # Eq. (4.8)
    # (4.9) once more by itself: a q2 much smaller than V2 is lost in the joint system.
    Q = responses.second_moments_at(V_hat, lam, X, V)
    error0 += responses.at_nodes(Q)  # Eq. (4.7)
    test, train = error0 @ table.weights - table.noise, (RR * error0) @ table.weights  # Eq. (4.11)
    overlaps_and_conjugates = unpacked(responses, V, V_hat, signal, X, Q + signal_sources.Q)
    return *overlaps_and_conjugates, MeanSquaredErrors(test, train)


def conditional_error(table: Table, m: Array, special: Array) -> tuple[Array, Array]:
    """Linear output less the target's parts, (P, 1 + K', N), and the conditional error (P, N) of
    Eq. (4.7), with psi psi^T for Q1 and 0 for q2."""
    linear_output = np.concatenate([m, special.reshape(len(m), -1)], axis=1) @ table.regressors
    linear_output -= table.target_parts
    output_gap = linear_output.reshape(len(m), -1, table.weights.size)
    return output_gap, np.einsum("pln,pln->pn", output_gap, output_gap) + table.unexplained


def unpacked(
    responses: Responses, V: Array, V_hat: Array, signal: Signal, X: Array, Q: Array
) -> tuple[Overlaps, Conjugates]:
    """Overlaps and conjugates from their packed arrays (P, D), and from the ``signal``.  Q lacks
    psi psi^T."""
    theta_count = responses.table.loadings.shape[1]
    theta, psi = signal.special[..., :theta_count], signal.special[..., theta_count:]
    (V1, V2), (Q1, q2) = responses.unpack(V), responses.unpack(Q)
    Q1 = Q1 + psi @ psi.swapaxes(1, 2)
    signal_hats = signal.m_hat, signal.special_hat
    conjugates = Conjugates(*responses.unpack(V_hat), *signal_hats, *responses.unpack(X))
    return Overlaps(V1, V2, signal.m, theta, psi, Q1, q2), conjugates


def residual(tables: Sequence[Table], alpha: Array, lam: Array, points: Points) -> Array:
    """Largest relative violation of the original equations by ``points`` on T ``tables`` of a
    model, (T, P).

    Every unknown is recomputed from its own equation of (4.1)-(4.11), with all others as in
    ``points``, and compared relatively.  On the table on which the points were solved this is the
    residual; on a coarser one it estimates the quadrature error of that table.  A conjugate of the
    signal is compared with a term of the target's size, an overlap with no less than
    SMALLEST_OVERLAP times an overlap whose output has the target's size.
    """
    o, hats, T, P = points.overlaps, points.conjugates, len(tables), len(alpha)
    responses_each = [responses_of(table) for table in tables]
    responses, pack, m_count = responses_each[0], responses_each[0].pack, o.m.shape[1]
    special, special_hat = np.concatenate([o.theta, o.psi], axis=2), hats.special.reshape(P, -1)
    V, V_hat, X = pack(o.V1, o.V2), pack(hats.V1, hats.V2), pack(hats.X1, hats.X2)
    Q, Q_whole = pack(o.Q1 - o.psi @ o.psi.swapaxes(1, 2), o.q2), pack(o.Q1, o.q2)
    errors, overlaps = np.array(points.errors).T, special.reshape(P, -1)
    given_values = np.concatenate([-hats.m, -special_hat, overlaps, errors, V_hat, X, Q], axis=1)
    # that of a conjugate of the signal does not count: it is 0 but for rounding where mu_0 is
    ridge_sizes = [np.zeros((P, m_count + special_hat.shape[1])), np.abs(overlaps), np.abs(errors)]
    ridge_sizes += [responses.magnitude(x) for x in (V_hat, X, Q_whole)]

    table_averages = []  # over the nodes of every table
    for table_responses in responses_each:
        R, w = 1 / (1 + table_responses.at_nodes(V)), table_responses.table.weights  # Eq. (4.1)
        output_gap, sample_error = conditional_error(table_responses.table, o.m, special)
        output_gap *= (w * R)[:, None]  # minus E[s | kappa] and its slope in tau, weighted
        sample_error += table_responses.at_nodes(Q)  # Eq. (4.7)
        RR = R * R
        train_error = RR * sample_error
        recomputed = [
            output_gap.reshape(P, -1) @ table_responses.table.regressors.T,  # Eqs. (4.5), (4.6)
            sample_error @ w[:, None] - table_responses.table.noise,  # Eq. (4.11)
            train_error @ w[:, None],
            table_responses.conjugates_from(R, alpha),  # Eq. (4.2)
            table_responses.conjugates_from(train_error, alpha),  # Eq. (4.8)
            R @ table_responses.table.weighted_powers.T,
            RR @ table_responses.table.label_power[:, None],
        ]
        # for V: near a threshold one pass of (4.3)-(4.4) hardly moves it, unlike Newton's step
        table_averages.append([*recomputed, table_responses.newton_distance(V, alpha, lam)])
    stacked_averages = map(np.concatenate, zip(*table_averages, strict=True))
    signal, test, train, V_hat, X, squares, idle_train, distance = stacked_averages
    repeated = (np.concatenate([x] * T) for x in (alpha, lam, V, hats.m, hats.special, np.abs(o.m)))
    alpha, lam, V, m_hat, special_hat, m_size = repeated
    susceptibility = responses.susceptibility(V, V_hat, alpha)
    signal_sources = responses.signal_sources(V, susceptibility, alpha, m_hat, special_hat)
    X = X + signal_sources.X  # Eq. (4.8)
    Q = responses.second_moments_at(V_hat, lam, X, V) + signal_sources.Q  # Eq. (4.9)
    # overlaps follow from the given conjugates: recomputed ones have large rounding errors
    special = (susceptibility.matrix @ special_hat.reshape(T * P, -1, 1))[..., 0]  # Eq. (4.5)

    regressor_norms, target_norm = np.sqrt(squares[:, :-1]), np.sqrt(squares[:, -1:])
    # terms m mu_0 cancel where mu_0 are nearly dependent: the floor is their rounding over 1e-10
    offset_terms = 1e-6 * np.vecdot(m_size, regressor_norms[:, :m_count])[:, None]
    size_floors = [
        regressor_norms * np.maximum(target_norm, offset_terms),
        SMALLEST_OVERLAP * target_norm / regressor_norms[:, m_count:],  # inf if a loading is 0
        np.full((T * P, 1), SMALLEST_ERROR * tables[0].label_power.sum()),
        SMALLEST_ERROR * idle_train,
        np.zeros((T * P, 3 * V.shape[1])),
    ]
    recomputed = [signal, special, test, train, V_hat, X, Q]
    value, floor = (np.concatenate(x, axis=1).reshape(T, P, -1) for x in (recomputed, size_floors))
    ridge_size = np.maximum(np.concatenate(ridge_sizes, axis=1), floor)
    relative_violation = np.abs(value - given_values) / np.where(ridge_size > 0, ridge_size, 1.0)
    return np.maximum(relative_violation.max(axis=2), np.abs(distance).max(axis=1).reshape(T, P))


@lru_cache(maxsize=16)
def responses_of(table: Table) -> Responses:
    """The ``Responses`` of a table's neurons: in closed form for one group, general for more."""
    if table.covariance is None and len(table.mu1) > 1:
        return Groups(table)
    if table.covariance is not None and not isinstance(table.covariance, TabulatedRows):
        return CorrelatedGroups(table)
    core = compiled_core() if calls_of_one_group[0] > CALLS_BEFORE_CORE else None
    if table.covariance is None:
        return core.CompiledIsotropic(table) if core else Isotropic(table)
    return core.CompiledCorrelated(table) if core else CorrelatedGroup(table)


@cache
def compiled_core() -> Any:
    """The module ``compiled_responses``; None where nothing is compiled."""
    try:
        from . import compiled_responses
    except Exception:  # numba is missing, or refuses one of its environment variables
        return None
    return compiled_responses if hasattr(compiled_responses.solve_task, "py_func") else None


def overlaps_of_groups(table: Table, o: Overlaps) -> Overlaps:
    """Overlaps of the model's G groups, from the overlaps of the table's A kinds of neurons.

    Up to signs, the groups of a kind divide its V2, theta and psi by their shares.  In
    V1 = c V2 - (coupling) they divide the coupling, and the first term is the group's own; likewise
    in Q1.
    """
    kinds, shares = table.kinds, table.shares
    if len(kinds) == len(table.c):
        return o

    def divide_kinds(first_moment: Array, second: Array) -> Array:
        """V1 or Q1 of groups (P, G, G) from the V1 or Q1 of kinds (P, A, A), and their V2 or q2 (P,
        A)."""
        kind_coupling = table.c[:, None] * np.eye(len(table.c)) * second[:, :, None] - first_moment
        own_terms = (table.c[kinds] * shares * second[:, kinds])[:, :, None] * np.eye(len(shares))
        return own_terms - kind_coupling[:, kinds][:, :, kinds] * shares[:, None] * shares

    theta_signs, psi_signs = np.split(table.signs, [table.loadings.shape[1]], axis=1)
    return Overlaps(
        divide_kinds(o.V1, o.V2),
        shares * o.V2[:, kinds],
        o.m,
        theta_signs * shares[:, None] * o.theta[:, kinds],
        psi_signs * shares[:, None] * o.psi[:, kinds],
        divide_kinds(o.Q1, o.q2),
        shares * o.q2[:, kinds],
    )


def conjugates_of_groups(table: Table, conjugates: Conjugates) -> Conjugates:
    """Conjugates of the model's G groups: the conjugates of their kinds, up to signs."""
    kinds, (V1, V2, m, group_special, X1, X2) = table.kinds, conjugates
    by_group_pairs = np.s_[:, kinds[:, None], kinds]
    group_special = table.signs * group_special[:, kinds]
    return Conjugates(
        V1[by_group_pairs], V2[:, kinds], m, group_special, X1[by_group_pairs], X2[:, kinds]
    )
