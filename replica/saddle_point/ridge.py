"""Ridge regression on the features: the saddle point and its errors.  THEORY 4.

The responses (V1, V2) solve (4.1)-(4.4), which a ``Bulk`` does; everything else is
linear algebra, written here for any number of groups A, spikes K and remaining target
directions K'.  Arrays run over P points (alpha, lambda), then nodes N; W_j below is the
quadrature weight times 1/(1 + V), so that W @ f is E[f / (1 + V)] at every point.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.newton import solve_rows
from solvers.results import Array, largest

from ..equivalence.table import Table
from .correlated import Correlated
from .correlated_groups import CorrelatedGroups
from .groups import Groups
from .isotropic import Isotropic
from .overlaps import Conjugates, Errors, Overlaps
from .responses import Bulk, Forces, Yield
from .row_covariance import RowCovariance

TOLERANCE = 1e-13


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
    bulk = bulk_of(table)
    guess = None if start is None else bulk.pack(start.V1, start.V2)
    result = bulk.solve(alpha, lam, tol, guess)
    trained = given_response(bulk, result.value, alpha, lam)
    return Points(*trained, result.residual, result.iterations, result.status)


def given_response(
    bulk: Bulk, V: Array, alpha: Array, lam: Array
) -> tuple[Overlaps, Conjugates, Errors]:
    """Everything that follows from V, packed (P, D), by linear algebra.  Eqs. (4.5)-(4.11)

    Analytic in all it is given: complex V, alpha, lam and table for derivatives by complex
    steps, ``gradient``.
    """
    table = bulk.table
    V1, V2 = bulk.unpack(V)
    shape = len(table.mu1), len(table.g)
    R = bulk.resistance(V)
    V_hat = bulk.averages(R, alpha)
    W = R * table.weights
    p_hat = (W @ table.slope_target.T).reshape(-1, *shape)
    yields = bulk.yields(V, V_hat, alpha)
    m, theta, m_hat, theta_hat = spikes(table, W, alpha, V2, yields, p_hat)
    psi = rest(yields, theta_hat, p_hat)  # Eq. (4.6)
    forces = bulk.forces(V, V_hat, alpha, theta_hat, p_hat)

    W *= R
    spare = bulk.workspace(V)
    error0 = conditional_error(table, m, theta, psi, out=R, spare=spare)
    if forces.Q1.any():
        error0 += bulk.pack(forces.Q1, np.zeros_like(V2)) @ bulk.moments
    weighted = np.multiply(W, error0)
    X = sources(table, weighted, alpha, m_hat, forces)
    Q = bulk.respond(V, alpha, lam, bulk.pack(*X))
    np.matmul(Q, bulk.moments, out=weighted)
    weighted += error0
    weighted *= W
    X1, X2 = sources(table, weighted, alpha, m_hat, forces)
    if np.isrealobj(V):
        # (4.9) once more as it stands: a q2 much smaller than V2 is lost in the joint system.
        Q = bulk.response(V_hat, lam, bulk.pack(X1, X2))
    error = np.matmul(Q, bulk.moments, out=weighted)
    error += error0  # Eq. (4.7)
    Q1, q2 = bulk.unpack(Q)

    overlaps = Overlaps(V1, V2, m, theta, psi, Q1 + forces.Q1, q2)
    hats = Conjugates(*bulk.unpack(V_hat), m_hat, theta_hat, p_hat, X1, X2)
    # Eq. (4.11)
    errors = Errors(error @ table.weights - table.noise, np.einsum("pn,pn->p", W, error))
    return overlaps, hats, errors


def bulk_of(table: Table) -> Bulk:
    """The resolvent of the table's neurons: closed form for one group, general for more."""
    if table.covariance is not None:
        alone = isinstance(table.covariance, RowCovariance)
        return Correlated(table) if alone else CorrelatedGroups(table)
    return Isotropic(table) if len(table.mu1) == 1 else Groups(table)


def spikes(
    table: Table, W: Array, alpha: Array, V2: Array, yields: Yield, p_hat: Array
) -> tuple[Array, Array, Array, Array]:
    """m (P, G or G + 1), theta (P, A, K) and their conjugates: the normal equations of h on C.
    Eq. (4.5)

    theta yields to theta_hat, and m likewise, with the dimension in the place of c: it is free
    in the limit.  In the unknowns (m, phi), theta = root phi + cross p_hat, the equations are
    those of a least-squares problem with a unit penalty on phi.  Where the mu_0 are zero or
    dependent, the least-norm solution is taken.
    """
    A, K = table.loadings.shape[:2]
    free, loadings = len(table.offsets), table.regressors[len(table.offsets) :]
    given = (yields.cross @ p_hat.reshape(len(W), -1, 1))[..., 0]
    held = np.ones((len(W), free + A * K), V2.dtype)
    held[:, :free] = 0
    groups = len(table.classes)
    price = 1 / table.dimension
    held[:, :groups] = price / (alpha[:, None] * table.shares * V2[:, table.classes])
    if free == 1:
        gram, moment = normal_equations(table, W)
        moment -= (gram[:, :, free:] @ given[..., None])[..., 0]
        turned = yields.root.transpose(0, 2, 1)
        gram[:, :, free:] = gram[:, :, free:] @ yields.root
        gram[:, free:] = turned @ gram[:, free:]
        moment[:, free:] = (turned @ moment[:, free:, None])[..., 0]
        size = range(gram.shape[1])
        gram[:, size, size] += held
        solution = least_norm(gram, moment)
    else:
        # Many mu_0 are nearly dependent: without squaring, half the digits more.
        root = np.sqrt(W)[..., None]
        penalty = np.sqrt(held)[:, :, None] * np.eye(held.shape[1])
        offsets = np.broadcast_to(table.offsets.T, (len(W), *table.offsets.T.shape))
        columns = np.concatenate([offsets, loadings.T @ yields.root], axis=2)
        design = np.concatenate([root * columns, penalty], axis=1)
        target = root[..., 0] * (table.h - given @ loadings)
        target = np.concatenate([target, np.zeros_like(held)], axis=1)
        solution = least_squares(design, target)
    m, phi = solution[:, :free], solution[:, free:, None]
    theta = (yields.root @ phi)[..., 0] + given
    theta_hat = (yields.back @ phi)[..., 0]
    if yields.missing is not None:  # what moves nothing is still what it is by definition
        gap = W * (table.h - m @ table.offsets - theta @ loadings)
        theta_hat = theta_hat + (yields.missing @ (gap @ loadings.T)[..., None])[..., 0]
    if free > 1:  # where the mu_0 fit almost everything, the definition keeps more digits
        gap = W * (table.h - m @ table.offsets - theta @ loadings)
        theta_hat = gap @ loadings.T
        theta = (yields.root @ (yields.root.transpose(0, 2, 1) @ theta_hat[..., None]))[..., 0]
        theta += given
    shape = (-1, A, K)
    return m, theta.reshape(shape), held[:, :free] * m, theta_hat.reshape(shape)


def rest(yields: Yield, theta_hat: Array, p_hat: Array) -> Array:
    """psi (P, A, K').  Eq. (4.6)"""
    flat = p_hat.reshape(len(p_hat), -1, 1)
    psi = yields.own @ flat
    psi += yields.cross.transpose(0, 2, 1) @ theta_hat.reshape(len(p_hat), -1, 1)
    return psi.reshape(p_hat.shape)


def normal_equations(table: Table, W: Array) -> tuple[Array, Array]:
    """E[F F' / (1 + V)] (P, n, n) and E[F h / (1 + V)] (P, n) of the n regressors F."""
    size = len(table.regressors)
    gram = (W @ table.regressor_pairs).reshape(-1, size, size)
    return gram, W @ (table.regressors * table.h).T


def least_norm(gram: Array, moment: Array) -> Array:
    """Least-norm solutions of positive semidefinite systems (P, n, n), scaled to unit diagonal."""
    scale = np.sqrt(np.diagonal(gram, axis1=1, axis2=2).real)
    scale = np.where(scale > 0, scale, 1.0)
    scaled = gram / (scale[:, :, None] * scale[:, None, :])
    target = (moment / scale)[..., None]
    inverse = np.linalg.pinv(scaled.real, rcond=1e-15, hermitian=True)
    solution = inverse @ target.real
    # One refinement: the residual to rounding, and the whole of a complex step.
    solution = solution + inverse @ (target - scaled @ solution)
    return np.asarray(solution[..., 0] / scale)


def least_squares(design: Array, target: Array) -> Array:
    """Least-norm minimisers (P, n) of |target - design x|, from (P, N, n) and (P, N).

    Columns count as dependent where what is left of one, relative to its own size, is below
    1e-10.
    """
    scale = np.linalg.norm(design.real, axis=1)
    scale = np.where(scale > 0, scale, 1.0)
    scaled = design / scale[:, None]
    U, sigma, Vt = np.linalg.svd(scaled.real, full_matrices=False)
    kept = np.where(sigma > 1e-10 * sigma[:, :1], sigma, np.inf)
    along = (target.real[:, None] @ U)[:, 0] / kept
    solution = (along[:, None] @ Vt)[:, 0]
    if np.iscomplexobj(scaled):  # a complex step: its change of the normal equations
        gap = target - (scaled @ solution[..., None])[..., 0]
        change = (gap[:, None] @ scaled)[:, 0].imag
        along = (Vt @ change[..., None])[..., 0] / kept**2
        solution = solution + 1j * (along[:, None] @ Vt)[:, 0]
    return np.asarray(solution / scale)


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
    table: Table, weighted: Array, alpha: Array, m_hat: Array, forces: Forces
) -> tuple[Array, Array]:
    """X1 (P, A, A) and X2 (P, A) from ``weighted`` = weights epsilon / (1 + V)^2.  Eq. (4.8)

    At a finite dimension m_hat acts as theta_hat does; groups of one kind then share it.
    """
    A = len(table.mu1)
    ratio = alpha / table.beta
    X1 = ratio[:, None, None] * (weighted @ table.slope_pairs).reshape(-1, A, A)
    X2 = ratio[:, None] * (weighted @ table.mu2sq.T)
    X1 += forces.X1
    X2 += forces.X2
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
    bulk = bulk_of(table)
    o, hats = points.overlaps, points.conjugates
    V = bulk.pack(o.V1, o.V2)
    shape = len(table.mu1), len(table.g)
    R = bulk.resistance(V)
    W = R * table.weights
    V_hat = bulk.averages(R, alpha)
    # Eq. (4.5): one stationarity condition for each regressor, against the size of its terms.
    gram, moment = normal_equations(table, W)
    readout = np.concatenate([o.m, o.theta.reshape(len(V), -1)], axis=1)
    pull = moment - (gram @ readout[..., None])[..., 0]
    pull -= np.concatenate([hats.m, hats.theta.reshape(len(V), -1)], axis=1)
    target = (W @ table.power)[:, None]
    size = np.sqrt(np.diagonal(gram, axis1=1, axis2=2) * target)
    p_hat = (W @ table.slope_target.T).reshape(-1, *shape)
    p_size = np.sqrt((W @ (table.mu1**2).T) * target)[..., None]
    forces = bulk.forces(V, V_hat, alpha, hats.theta, hats.p)
    Q = bulk.pack(o.Q1, o.q2)
    W *= R
    spare = bulk.workspace(V)
    error = conditional_error(table, o.m, o.theta, o.psi, out=R, spare=spare)
    error += np.matmul(Q, bulk.moments, out=spare)
    # Errors are sums that may cancel: compared with a part of the target's power.
    power = table.power + table.noise
    floor = 1e-4 * np.stack([np.full(len(V), table.weights @ power), W @ power], axis=1)
    W *= error
    X = sources(table, W, alpha, hats.m, forces)
    Q_again = bulk.response(V_hat, lam, bulk.pack(*X))
    Q_again += bulk.pack(forces.Q1, np.zeros_like(o.q2))
    errors = np.stack([error @ table.weights - table.noise, W.sum(axis=1)], axis=1)
    balance, slope = bulk.balance(V, alpha, lam)
    parts = [
        relative(bulk.overlaps(V_hat, lam), V, bulk.size(V)),
        # near a threshold that map hardly moves V: Newton's step is the distance left
        np.abs(solve_rows(slope, balance)),
        relative(pull, 0, size),
        relative(p_hat, hats.p, p_size),
        relative(Q_again, Q, bulk.size(Q)),
        relative(errors, np.stack(points.errors, axis=1), floor),
    ]
    return np.max([largest(part.reshape(len(V), -1)) for part in parts], axis=0)


def relative(value: Array, reference: Array | float, floor: Array | float = 0.0) -> Array:
    """|value - reference| over |reference|, or over ``floor`` where that is larger; 0/0 is 0."""
    scale = np.maximum(np.abs(reference), floor)
    return np.asarray(np.abs(value - reference) / np.where(scale > 0, scale, 1.0))
