"""Ridge regression on the features: the saddle point and its errors.  docs/theory.md 4

The responses (V1, V2) solve (4.1)-(4.4), which a ``Responses`` does.  Everything else is linear
algebra, written here in the order of section 4 for any number of groups A, spikes K and directions
K' of the target away from them.  Arrays run over P points (alpha, lambda), then over the N nodes of
kappa.  A table of one group, the usual case, is left to the compiled ``one_group``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array

from ..equivalence import Table
from . import one_group
from .correlated import CorrelatedGroup, CorrelatedGroups
from .groups import Groups
from .isotropic import Isotropic
from .one_group import RESPONSE_TOLERANCE, STATUSES
from .overlaps import Conjugates, Errors, Overlaps
from .responses import Responses
from .rows import TabulatedRows
from .signal import ridge_signal
from .sweep import sources, unpacked


class Points(NamedTuple):
    """Solutions at P points, and what the solver of (4.1)-(4.4) says of each.

    Attributes
    ----------
    overlaps, conjugates, errors : Overlaps, Conjugates, Errors
    residual : (P,)
        Of (4.1)-(4.4); of all equations, where the points were checked.
    iterations, status : (P,)
        Of the solver; objects of ``Status``.
    """

    overlaps: Overlaps
    conjugates: Conjugates
    errors: Errors
    residual: Array
    iterations: NDArray[np.int64]
    status: NDArray[np.object_]


def solve_points(table: Table, alpha: Array, lam: Array) -> Points:
    """Overlaps and errors at the points (alpha, lam), arrays of shape (P,).

    Rows that did not converge hold whatever the solver left; callers mask them.
    """
    if (found := compiled_points(table, None, alpha, lam)) is not None:
        return found[0]
    return general_points(table, alpha, lam)


def general_points(table: Table, alpha: Array, lam: Array, start: Overlaps | None = None) -> Points:
    """The same by the code for any table, from guesses, such as the overlaps on another table."""
    responses = responses_of(table)
    guess = None if start is None else responses.pack(start.V1, start.V2)
    result = responses.solve(alpha, lam, RESPONSE_TOLERANCE, guess)
    readout = trained_readout(responses, result.value, alpha, lam)
    return Points(*readout, result.residual, result.iterations, result.status)


def compiled_points(
    fine: Table, coarse: Table | None, alpha: Array, lam: Array
) -> tuple[Points, Array] | None:
    """The points on the table ``fine`` of one group, and their quadrature error (P,): their
    residual on ``coarse``.  Without that table, neither is known of the points.  None if they are
    not for the compiled core."""
    first, second = fine.one_group, (coarse or fine).one_group
    if first is None or second is None:
        return None
    if first.several is not None and not one_group.worthwhile(alpha.size * len(fine.weights)):
        return None
    # of one type and layout: others would be compiled anew
    alpha, lam = (np.ascontiguousarray(x, dtype=float) for x in (alpha, lam))
    found = one_group.solved(first, second, alpha, lam, coarse is not None)
    V, Q, V_hat, X = zip(found[:8:2, :, None, None], found[1:8:2, :, None], strict=True)
    test, train, residual, error, iterations, status = found[8:14]
    m, m_hat = found[14:16, :, None]
    special, special_hat = np.split(found[16:].T[:, None], 2, axis=2)
    count, rest = fine.loadings.shape[1], len(fine.g)
    # of a network, row norms that do not move are left out
    kept = [*range(count), *range(special.shape[2] - rest, special.shape[2])]
    theta, psi = np.split(special[..., kept], [count], axis=2)
    overlaps = Overlaps(*V, m, theta, psi, *Q)
    conjugates = Conjugates(*V_hat, m_hat, special_hat[..., kept], *X)
    account = residual, iterations.astype(np.int64), STATUSES[status.astype(np.int64)]
    return Points(overlaps, conjugates, Errors(test, train), *account), error


def trained_readout(
    responses: Responses, V: Array, alpha: Array, lam: Array
) -> tuple[Overlaps, Conjugates, Errors]:
    """Overlaps, conjugates and errors that follow from V, packed (P, D).  Eqs. (4.5)-(4.11)"""
    table = responses.table
    V2, R = responses.unpack(V)[1], responses.shrinkage(V)
    V_hat = responses.conjugates_from(R, alpha)  # Eq. (4.2)
    susceptibility = responses.susceptibility(V, V_hat, alpha)
    signal = ridge_signal(table, R * table.weights, alpha, V2, susceptibility)  # Eqs. (4.5), (4.6)
    own = responses.signal_sources(V, susceptibility, alpha, signal.special_hat)

    # Eq. (4.7) without the part of the variance that is linear in (Q1, q2) of (4.9)
    error0 = conditional_error(table, signal.m, signal.special)
    if own.Q1.any():
        error0 += responses.at_nodes(responses.pack(own.Q1, np.zeros_like(V2)))
    # (4.7)-(4.10) as one linear system: the sources of error0 give Q
    square = R**2
    X = sources(responses, square * error0, alpha, signal.m_hat, own.X2)  # Eq. (4.8)
    Q = responses.second_moments(V, alpha, lam, responses.pack(*X))  # Eq. (4.10)
    error = error0 + responses.at_nodes(Q)  # Eq. (4.7)
    X = sources(responses, square * error, alpha, signal.m_hat, own.X2)  # Eq. (4.8)
    # (4.9) once more as it stands: a q2 much smaller than V2 is lost in the joint system.
    Q = responses.second_moments_at(V_hat, lam, responses.pack(*X), V)
    error = error0 + responses.at_nodes(Q)  # Eq. (4.7)
    test = error @ table.weights - table.noise  # Eq. (4.11)
    train = (square * error) @ table.weights  # Eq. (4.11)
    return *unpacked(responses, V, V_hat, signal, own, X, Q), Errors(test, train)


def responses_of(table: Table) -> Responses:
    """The responses of the table's neurons: in closed form for one group, general for more."""
    if table.covariance is not None:
        tabulated = isinstance(table.covariance, TabulatedRows)
        return CorrelatedGroup(table) if tabulated else CorrelatedGroups(table)
    return Isotropic(table) if len(table.mu1) == 1 else Groups(table)


def conditional_error(table: Table, m: Array, special: Array) -> Array:
    """epsilon(kappa) of Eq. (4.7), (P, N), with psi psi^T for Q1 and 0 for q2."""
    output = np.concatenate([m, special.reshape(len(m), -1)], axis=1) @ table.regressors
    error = ((output - table.target_parts) ** 2).reshape(len(m), -1, table.weights.size).sum(axis=1)
    return np.asarray(error + table.unexplained + table.noise)


def for_groups(table: Table, points: Points) -> Points:
    """The solution for the model's G groups from that for the table's A kinds of neurons.

    Members of a kind share its V2, theta and psi, and have its conjugates, up to their signs; of
    V1 = c V2 - (coupling), the coupling is shared and the first term is each member's own, and
    likewise of Q1.
    """
    kinds, shares = table.classes, table.shares
    overlaps, conjugates = points.overlaps, points.conjugates
    if len(kinds) == len(table.c):
        return points

    def spread(first: Array) -> Array:
        """(P, A, A) as (P, G, G), every group with the rows and columns of its kind."""
        return first[:, kinds][:, :, kinds]

    def split(first: Array, second: Array) -> Array:
        """V1 or Q1 (P, G, G) from that of the kinds (P, A, A) and V2 or q2 (P, A)."""
        own = table.c[:, None] * np.eye(len(table.c)) * second[:, :, None]
        alone = (table.c[kinds] * shares * second[:, kinds])[:, :, None] * np.eye(len(shares))
        return alone - spread(own - first) * shares[:, None] * shares

    theta_signs, psi_signs = np.split(table.signs, [table.loadings.shape[1]], axis=1)
    of_groups = Overlaps(
        split(overlaps.V1, overlaps.V2),
        shares * overlaps.V2[:, kinds],
        overlaps.m,
        theta_signs * shares[:, None] * overlaps.theta[:, kinds],
        psi_signs * shares[:, None] * overlaps.psi[:, kinds],
        split(overlaps.Q1, overlaps.q2),
        shares * overlaps.q2[:, kinds],
    )
    their_conjugates = Conjugates(
        spread(conjugates.V1),
        conjugates.V2[:, kinds],
        conjugates.m,
        table.signs * conjugates.special[:, kinds],
        spread(conjugates.X1),
        conjugates.X2[:, kinds],
    )
    return points._replace(overlaps=of_groups, conjugates=their_conjugates)
