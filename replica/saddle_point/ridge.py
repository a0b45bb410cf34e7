"""Ridge regression on the features: the saddle point and its errors.  docs/theory.md 4.

The responses (V1, V2) solve (4.1)-(4.4), which a ``Responses`` does; everything else is
linear algebra, written here for any number of groups A, spikes K and remaining target
directions K'.  Arrays run over P points (alpha, lambda), then nodes N; W_j below is the
quadrature weight times 1/(1 + V), so that W @ f is E[f / (1 + V)] at every point.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.linear import solve_rows
from solvers.results import Array, largest

from ..equivalence import Table
from .correlated import Correlated
from .correlated_groups import CorrelatedGroups
from .groups import Groups
from .isotropic import Isotropic
from .overlaps import Conjugates, Errors, Overlaps
from .responses import Responses, SignalSources
from .row_covariance import RowCovariance
from .signal import normal_equations, rest_of_target, ridge_signal

TOLERANCE = 1e-13  # of the responses, relative


class Points(NamedTuple):
    """Solutions at P points, with the solver's account of (4.1)-(4.4)."""

    overlaps: Overlaps
    conjugates: Conjugates
    errors: Errors
    residual: Array
    iterations: NDArray[np.int64]
    status: NDArray[np.object_]


def solve_points(
    table: Table, alpha: Array, lam: Array, start: Overlaps | None = None, tol: float = TOLERANCE
) -> Points:
    """Overlaps and errors at the points (alpha, lam), arrays of shape (P,).

    ``start`` holds guesses, such as the overlaps on another table.  Rows that did not
    converge hold whatever the solver left; callers mask them.
    """
    responses = responses_of(table)
    guess = None if start is None else responses.pack(start.V1, start.V2)
    result = responses.solve(alpha, lam, tol, guess)
    trained = given_response(responses, result.value, alpha, lam)
    return Points(*trained, result.residual, result.iterations, result.status)


def given_response(
    responses: Responses, V: Array, alpha: Array, lam: Array
) -> tuple[Overlaps, Conjugates, Errors]:
    """Everything that follows from V, packed (P, D), by linear algebra.  Eqs. (4.5)-(4.11)

    Analytic in all it is given: complex V, alpha, lam and table for derivatives by complex
    steps, ``gradient``.
    """
    table = responses.table
    V1, V2 = responses.unpack(V)
    shape = len(table.mu1), len(table.g)
    R = responses.shrinkage(V)
    V_hat = responses.averages(R, alpha)
    W = R * table.weights
    p_hat = (W @ table.slope_target.T).reshape(-1, *shape)
    susceptibility = responses.susceptibility(V, V_hat, alpha)
    m, theta, m_hat, theta_hat = ridge_signal(table, W, alpha, V2, susceptibility, p_hat)
    psi = rest_of_target(susceptibility, theta_hat, p_hat)  # Eq. (4.6)
    signal = responses.signal_sources(V, V_hat, alpha, theta_hat, p_hat)

    W *= R
    spare = responses.workspace(V)
    error0 = conditional_error(table, m, theta, psi, out=R, spare=spare)
    if signal.Q1.any():
        error0 += responses.pack(signal.Q1, np.zeros_like(V2)) @ responses.moments
    weighted = np.multiply(W, error0)
    X = sources(table, weighted, alpha, m_hat, signal)
    Q = responses.second_moments(V, alpha, lam, responses.pack(*X))
    np.matmul(Q, responses.moments, out=weighted)
    weighted += error0
    weighted *= W
    X1, X2 = sources(table, weighted, alpha, m_hat, signal)
    if np.isrealobj(V):
        # (4.9) once more as it stands: a q2 much smaller than V2 is lost in the joint system.
        Q = responses.second_moments_at(V_hat, lam, responses.pack(X1, X2))
    error = np.matmul(Q, responses.moments, out=weighted)
    error += error0  # Eq. (4.7)
    Q1, q2 = responses.unpack(Q)

    overlaps = Overlaps(V1, V2, m, theta, psi, Q1 + signal.Q1, q2)
    hats = Conjugates(*responses.unpack(V_hat), m_hat, theta_hat, p_hat, X1, X2)
    # Eq. (4.11)
    errors = Errors(error @ table.weights - table.noise, np.einsum("pn,pn->p", W, error))
    return overlaps, hats, errors


def responses_of(table: Table) -> Responses:
    """The resolvent of the table's neurons: closed form for one group, general for more."""
    if table.covariance is not None:
        alone = isinstance(table.covariance, RowCovariance)
        return Correlated(table) if alone else CorrelatedGroups(table)
    return Isotropic(table) if len(table.mu1) == 1 else Groups(table)


def conditional_error(
    table: Table, m: Array, theta: Array, psi: Array, *, out: Array, spare: Array
) -> Array:
    """epsilon(kappa), (P, N), without its terms in Q1 and q2, in ``out``.  Eq. (4.7)

    ``spare`` is overwritten: at this size, fresh memory costs more than the arithmetic.
    """
    P = len(m)
    minus = np.full((P, 1), -1.0)
    square = np.concatenate([m, theta.reshape(P, -1), minus], axis=1)  # C - h
    error = np.matmul(square, np.vstack([table.regressors, table.h]), out=out)
    error *= error
    rest = np.concatenate([-2 * psi.reshape(P, -1), -minus], axis=1)
    rows = np.vstack([table.slope_target, table.spread + table.noise])
    error += np.matmul(rest, rows, out=spare)
    return error


def sources(
    table: Table, weighted: Array, alpha: Array, m_hat: Array, signal: SignalSources
) -> tuple[Array, Array]:
    """X1 (P, A, A) and X2 (P, A) from ``weighted`` = weights epsilon / (1 + V)^2.  Eq. (4.8)

    At a finite dimension m_hat acts as theta_hat does; groups of one kind then share it.
    """
    A = len(table.mu1)
    ratio = alpha / table.beta
    X1 = ratio[:, None, None] * (weighted @ table.slope_pairs).reshape(-1, A, A)
    X2 = ratio[:, None] * (weighted @ table.mu2sq.T)
    X1 += signal.X1
    X2 += signal.X2
    if np.isfinite(table.dimension):
        X2 += (alpha * ratio)[:, None] * table.dimension * m_hat[:, table.members] ** 2
    return X1, X2


def for_groups(table: Table, points: Points) -> Points:
    """The solution for the model's G groups from that for the table's A kinds of neurons.

    Members of a kind share its V2, theta and psi; of V1 = c V2 - (coupling), the coupling is
    shared and the first term is each member's own, and likewise of Q1.  Conjugates are those
    of the kind.
    """
    kinds, s, o, hats = table.classes, table.shares, points.overlaps, points.conjugates
    if len(kinds) == len(table.c):
        return points

    def pairs(first: Array) -> Array:
        return first[:, kinds][:, :, kinds]

    def split(first: Array, second: Array) -> Array:
        own = table.c[:, None] * np.eye(len(table.c)) * second[:, :, None]
        alone = (table.c[kinds] * s * second[:, kinds])[:, :, None] * np.eye(len(s))
        return alone - pairs(own - first) * s[:, None] * s

    overlaps = Overlaps(
        split(o.V1, o.V2),
        s * o.V2[:, kinds],
        o.m,
        s[:, None] * o.theta[:, kinds],
        s[:, None] * o.psi[:, kinds],
        split(o.Q1, o.q2),
        s * o.q2[:, kinds],
    )
    conjugates = Conjugates(
        pairs(hats.V1),
        hats.V2[:, kinds],
        hats.m,
        hats.theta[:, kinds],
        hats.p[:, kinds],
        pairs(hats.X1),
        hats.X2[:, kinds],
    )
    return points._replace(overlaps=overlaps, conjugates=conjugates)


def mismatch(table: Table, alpha: Array, lam: Array, points: Points) -> Array:
    """How far ``points`` are from solving the original equations on ``table``, (P,).

    Every unknown is recomputed from its own equation (4.2)-(4.11), the rest being as in
    ``points``, and compared relatively.  On the table the points were solved with, this is
    the residual; on a coarser one, it estimates that table's quadrature error.
    """
    responses = responses_of(table)
    o, hats = points.overlaps, points.conjugates
    V = responses.pack(o.V1, o.V2)
    shape = len(table.mu1), len(table.g)
    R = responses.shrinkage(V)
    W = R * table.weights
    V_hat = responses.averages(R, alpha)
    # Eq. (4.5): one stationarity condition for each regressor, against the size of its terms.
    gram, moment = normal_equations(table, W)
    readout = np.concatenate([o.m, o.theta.reshape(len(V), -1)], axis=1)
    pull = moment - (gram @ readout[..., None])[..., 0]
    pull -= np.concatenate([hats.m, hats.theta.reshape(len(V), -1)], axis=1)
    target = (W @ table.power)[:, None]
    size = np.sqrt(np.diagonal(gram, axis1=1, axis2=2) * target)
    p_hat = (W @ table.slope_target.T).reshape(-1, *shape)
    p_size = np.sqrt((W @ (table.mu1**2).T) * target)[..., None]
    signal = responses.signal_sources(V, V_hat, alpha, hats.theta, hats.p)
    Q = responses.pack(o.Q1, o.q2)
    W *= R
    spare = responses.workspace(V)
    error = conditional_error(table, o.m, o.theta, o.psi, out=R, spare=spare)
    error += np.matmul(Q, responses.moments, out=spare)
    # Errors are sums that may cancel: compared with a part of the target's power.
    power = table.power + table.noise
    floor = 1e-4 * np.stack([np.full(len(V), table.weights @ power), W @ power], axis=1)
    W *= error
    X = sources(table, W, alpha, hats.m, signal)
    Q_again = responses.second_moments_at(V_hat, lam, responses.pack(*X))
    Q_again += responses.pack(signal.Q1, np.zeros_like(o.q2))
    errors = np.stack([error @ table.weights - table.noise, W.sum(axis=1)], axis=1)
    balance, slope = responses.log_residual(V, alpha, lam)
    parts = [
        relative(responses.overlaps(V_hat, lam), V, responses.size(V)),
        # near a threshold that map hardly moves V: Newton's step is the distance left
        np.abs(solve_rows(slope, balance)),
        relative(pull, 0, size),
        relative(p_hat, hats.p, p_size),
        relative(Q_again, Q, responses.size(Q)),
        relative(errors, np.stack(points.errors, axis=1), floor),
    ]
    return np.max([largest(part.reshape(len(V), -1)) for part in parts], axis=0)


def relative(value: Array, reference: Array | float, floor: Array | float = 0.0) -> Array:
    """|value - reference| over |reference|, or over ``floor`` where that is larger; 0/0 is 0."""
    scale = np.maximum(np.abs(reference), floor)
    return np.asarray(np.abs(value - reference) / np.where(scale > 0, scale, 1.0))
