"""Responses of one group, compiled by numba: Newton's method, Marchenko-Pastur averages, series.
docs/theory.md 4, 5, 16

(V1, V2) solve (4.1)-(4.4), (16.6) by two steps of (4.2) -> (5.3), then by Newton's method on the
two equations without cancellation that ``isotropic`` states,

    lambda V2     = (1 - alpha/beta) + (alpha/beta) E[1 / (1 + V)]               (i)
    V1 / (c_e V2) = (1 - alpha) + alpha E[(1 + mu_2^2 V2) / (1 + V)]             (ii)

in the logarithms of V2 and of W1 = V2 / (q + 1/c), with q = beta V2 V1_hat.  Averages E are sums
over the nodes of a table.

Isotropic rows, as of an sRF, have c_e = c, and W1 is V1.  Rows of a network have c_e(q), tabulated
in the table (``row_covariances``), and V1 = V2 / (q + 1/c_e(q)).

The signal, the second moments and the errors (4.5)-(4.11) follow without iteration, in ``ridge``.
"""

from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from hashlib import sha256
from io import BytesIO
from math import exp, inf, isfinite, log, log1p, sqrt
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import njit

from solvers.chebyshev import HalfLine
from solvers.results import Array, Result, Status

from .correlated import CorrelatedGroup
from .isotropic import Isotropic
from .responses import RESPONSE_TOLERANCE, Responses

Function = TypeVar("Function", bound=Callable[..., Any])
compiled: Callable[[Function], Function] = njit(error_model="numpy")  # 1 / 0 is infinite
# sums may be reordered, which is three times faster
summed: Callable[[Function], Function] = njit(error_model="numpy", fastmath={"reassoc", "contract"})

CONVERGED, NO_PROGRESS, NOT_FINITE, ITERATION_LIMIT = range(4)
STATUSES = np.array(
    [Status.CONVERGED, Status.NO_PROGRESS, Status.NOT_FINITE, Status.ITERATION_LIMIT]
)
SOLVE, SECOND_MOMENTS, NEWTON = range(3)

# arrays of one type and layout, as numba would compile others anew
as_numba = partial(np.ascontiguousarray, dtype=float)

Pair = tuple[float, float]
Matrix = tuple[float, float, float, float]  # two by two, row by row

# E[R {1, a, b}] and E[R^2 {a, b, ab}], with R = 1 / (1 + V), a = mu_1^2, b = mu_2^2
Averages = namedtuple("Averages", "R Ra Rb RRa RRb RRab")
# V1, c_e, and derivatives of log V1 and of log p in log W1, with p = V1 / (c_e V2)
Bulk = namedtuple("Bulk", "V1 c slope p_slope")


class OneGroup(NamedTuple):
    """Moments of one group of neurons: arrays (N,) and numbers."""

    weights: Array
    a: Array  # mu_1^2
    b: Array  # mu_2^2
    c: float
    beta: float
    rows: HalfLine | None  # for a network c_e, and C on special directions (docs/theory.md 16, 18)


# numba removes branches on an argument that is None, but not on a field that is None: ``rows`` is
# therefore an argument in addition to the table that has it.
@compiled
def solve_task(
    t: OneGroup, task: int, alpha: Array, lam: Array, V: Array, V_hat: Array, X: Array
) -> Array:
    """Results (P, 5) of one of three tasks at points with alpha, lam (P,) and V, V_hat, X (P, 2).

    SOLVE: V1, V2, residual, evaluations and status.
    SECOND_MOMENTS: (Q1, q2) from V_hat and X, at V.  Eqs. (5.3), (15.8)
    NEWTON: Newton's step from any V, in log V1 and log V2; and, by the same linear system, (Q1, q2)
    from sources X that do not contain Q, with V_hat of (4.2).  Eqs. (4.7)-(4.10)
    """
    out = np.zeros((len(alpha), 5))
    for p in range(len(alpha)):
        V1, V2, X1, X2 = V[p, 0], V[p, 1], X[p, 0], X[p, 1]
        if task == SOLVE:
            out[p, 0], out[p, 1], out[p, 2], out[p, 3], out[p, 4] = responses(t, alpha[p], lam[p])
        elif task == SECOND_MOMENTS:  # -dV[X] at fixed conjugates, with the derivative of c_e
            V1_hat, level = V_hat[p, 0], lam[p] + V_hat[p, 1]
            c, slope, resolvent_averages = resolvent(t, t.rows, t.beta * V2 * V1_hat, level, V1_hat)
            _, _, inverse2, mixed, weighted2 = resolvent_averages
            dq = t.beta * inverse2 * (level * X1 - V1_hat * X2)
            by_variance = mixed * slope * dq / (c + slope * t.beta * V1_hat**2 * mixed)
            out[p, 0] = weighted2 * X1 + mixed * X2 - level * by_variance
            out[p, 1] = mixed * X1 + inverse2 * X2 + V1_hat * by_variance
        else:
            W1 = V1
            if t.rows is not None:  # of the q of (4.2)
                W1 = V2 / (alpha[p] * averages(t, V1, V2).Ra * V2 + 1 / t.c)
            error, inverse, sides, bulk = log_residual(t, t.rows, alpha[p], lam[p], W1, V2)
            # Q is minus the derivative of (i), (ii) under V_hat + s X
            source = (X1 * bulk.V1 + X2 * V2) / sides[0], t.beta * X1 * bulk.V1 / sides[1]
            (k11, k12, k21, k22), W1_share, V2_share = inverse, bulk.slope, 1 - bulk.slope
            step1, step2 = k11 * error[0] + k12 * error[1], k21 * error[0] + k22 * error[1]
            dW1, dV2 = k11 * source[0] + k12 * source[1], k21 * source[0] + k22 * source[1]
            out[p, 0] = log(V1 / bulk.V1) + W1_share * step1 + V2_share * step2
            out[p, 1] = step2
            out[p, 2] = bulk.V1 * (W1_share * dW1 + V2_share * dV2)
            out[p, 3] = V2 * dV2
    return out


@compiled
def responses(group: OneGroup, alpha: float, lam: float) -> tuple[float, float, float, int, int]:
    """Solve (4.1)-(4.4), (16.6) for V1 and V2; returns them with the residual of (i) and (ii), the
    evaluations and the status."""
    sweeps, most_evaluations = 2, 100  # of the map from (1, 1), to the right magnitude; evaluations
    V1, V2, c, ratio = 1.0, 1.0, group.c, alpha / group.beta
    for _ in range(sweeps):
        E = averages(group, V1, V2)  # Eqs. (4.1), (4.2)
        q, level = alpha * E.Ra * V2, lam + ratio * E.Rb
        c, _, (V2, V1, _, _, _) = resolvent(group, group.rows, q, level, ratio * E.Ra)  # Eq. (5.3)
    W1 = V2 / (V2 / V1 + (1 / group.c - 1 / c))
    step1, step2, distance, residual = 0.0, 0.0, inf, inf
    k11, k12, k21, k22 = 1.0, 0.0, 0.0, 1.0  # inverse of the Jacobian, at (W1, V2)
    for evaluation in range(sweeps + 1, most_evaluations + 1):  # Newton's method needs about four
        T1, T2 = W1 * exp(step1), V2 * exp(step2)
        (i, ii), inverse, _, bulk = log_residual(group, group.rows, alpha, lam, T1, T2)
        # A step is accepted if the remaining step, by the old Jacobian, is shorter.  Unlike a test
        # on the residual, this does not depend on how the equations are scaled.
        if distance == inf or abs(k11 * i + k12 * ii) + abs(k21 * i + k22 * ii) < distance:
            W1, V1, V2, residual = T1, bulk.V1, T2, abs(i) + abs(ii)
            k11, k12, k21, k22 = inverse
            step1, step2 = -(k11 * i + k12 * ii), -(k21 * i + k22 * ii)
            step_length = distance = abs(step1) + abs(step2)
            shortened = 3.0 / max(step_length, 3.0)  # V changes by a factor of 20 at most
            step1, step2 = shortened * step1, shortened * step2
        else:
            step1, step2 = step1 / 2, step2 / 2
            step_length = abs(step1) + abs(step2)
        if not isfinite(step_length):
            return V1, V2, residual, evaluation, NOT_FINITE
        if step_length <= RESPONSE_TOLERANCE or residual <= 1e-15:  # nothing but rounding
            # far from any root, a step becomes this short by halving alone
            return V1, V2, residual, evaluation, CONVERGED if residual < 1e-10 else NO_PROGRESS
    return V1, V2, residual, most_evaluations, ITERATION_LIMIT


@summed
def averages(group: OneGroup, V1: float, V2: float) -> Averages:
    """Averages over the nodes, ``Averages``.  Eqs. (4.1), (4.2)"""
    R0 = Ra = Rb = RRa = RRb = RRab = 0.0
    for node in range(len(group.weights)):
        a, b = group.a[node], group.b[node]
        R = 1 / (1 + V1 * a + V2 * b)  # Eq. (4.1)
        wR = group.weights[node] * R
        wRR = wR * R
        R0 += wR
        Ra += wR * a
        Rb += wR * b
        RRa += wRR * a
        RRb += wRR * b
        RRab += wRR * a * b
    return Averages(R0, Ra, Rb, RRa, RRb, RRab)


@compiled
def log_residual(
    group: OneGroup, rows: HalfLine | None, alpha: float, lam: float, W1: float, V2: float
) -> tuple[Pair, Matrix, Pair, Bulk]:
    """Residuals log left - log right of (i) and (ii), inverse of their Jacobian in log W1 and
    log V2, right sides, and V1 with its derivatives.  A negative constant is moved to the other
    side, so that all sides are positive."""
    q = V2 / W1 - 1 / group.c
    if rows is None or q <= 0:  # q < 0 at a trial point: as for isotropic rows
        bulk = Bulk(W1, group.c, 1.0, 1.0)
    else:  # Eq. (16.6)
        c, variance_slope = effective_variance(rows, q)
        q_fall = q + 1 / group.c  # -dq / d log W1
        p = 1 / (1 + q * c)
        p_slope = q_fall * (c + q * variance_slope) * p
        bulk = Bulk(V2 * c * p, c, p_slope - q_fall * variance_slope / c, p_slope)
    V1, slope, E = bulk.V1, bulk.slope, averages(group, bulk.V1, V2)
    ratio, p = alpha / group.beta, V1 / (bulk.c * V2)
    left1, right1 = lam * V2 + max(ratio - 1, 0.0), max(1 - ratio, 0.0) + ratio * E.R
    left2, right2 = p + max(alpha - 1, 0.0), max(1 - alpha, 0.0) + alpha * (E.R + V2 * E.Rb)
    # in log V1 and log V2, without p
    by1, by2 = ratio * V1 * E.RRa / right1, lam * V2 / left1 + ratio * V2 * E.RRb / right1
    p_by1, p_by2 = alpha * V1 * (E.RRa + V2 * E.RRab) / right2, alpha * V1 * V2 * E.RRab / right2
    p_fall = bulk.p_slope * p / left2
    j11, j12 = slope * by1, by2 + (1 - slope) * by1
    j21, j22 = p_fall + slope * p_by1, -p_fall - p_by2 + (1 - slope) * p_by1
    determinant = j11 * j22 - j12 * j21
    inverse = j22 / determinant, -j12 / determinant, -j21 / determinant, j11 / determinant
    return (log(left1 / right1), log(left2 / right2)), inverse, (right1, right2), bulk


@compiled
def resolvent(
    group: OneGroup, rows: HalfLine | None, at: float, level: float, slope: float
) -> tuple[float, float, tuple[float, float, float, float, float]]:
    """Variance of rows and its derivative ``at`` q, and averages <1/S>, <D/S>, <1/S^2>, <D/S^2>,
    <D^2/S^2> for S = level + slope D, as in ``solvers.marchenko_pastur``: sums and products of
    positive terms.  Eqs. (5.1), (5.2)"""
    row_variance, variance_slope = (group.c, 0.0) if rows is None else effective_variance(rows, at)
    beta, q = group.beta, row_variance * slope
    b = level + (1 - beta) * q
    bulk_root = sqrt(level + q * (1 - sqrt(beta)) ** 2) * sqrt(level + q * (1 + sqrt(beta)) ** 2)
    inverse = 2 / (b + bulk_root) if b >= 0 else (bulk_root - b) / (2 * beta * q * level)
    shrunk = 1 + beta * q * inverse
    weighted = row_variance * inverse / shrunk
    bulk_balance = level + q / shrunk**2  # derivative of level M + q M / shrunk = 1 in M = <1/S>
    inverse2, mixed = inverse / bulk_balance, weighted / shrunk / bulk_balance
    weighted2 = beta * weighted**2 + row_variance / shrunk**2 * mixed
    return row_variance, variance_slope, (inverse, weighted, inverse2, mixed, weighted2)


@compiled
def effective_variance(rows: HalfLine, q: float) -> Pair:
    """Variance c_e and its derivative at q."""
    panel, x, dx = locate(rows, q)
    row_variance, variance_slope = chebyshev_series(rows.series[0, panel], x)
    return row_variance, variance_slope * dx


@compiled
def locate(rows: HalfLine, q: float) -> tuple[int, float, float]:
    """Panel of q in the tables of ``rows``, coordinate x in [-1, 1] there, and dx/dq."""
    near, far, panels = 1 + rows.near * q, 1 + rows.far * q, rows.series.shape[1]
    unit = panels / log(rows.near / rows.far)  # panels in log(near / far)
    log_place = unit * log1p((rows.near - rows.far) * q / far)
    panel = min(int(log_place), panels - 1) if isfinite(log_place) else 0
    return panel, 2 * (log_place - panel) - 1, 2 * unit * (rows.near - rows.far) / (near * far)


@compiled
def chebyshev_series(coefficients: Array, x: float) -> Pair:
    """Value and derivative of a Chebyshev series, by Clenshaw's recursion."""
    clenshaw = clenshaw_before = clenshaw_slope = d2 = 0.0
    for k in range(coefficients.size - 1, 0, -1):
        clenshaw_slope, d2 = 2 * (clenshaw + x * clenshaw_slope) - d2, clenshaw_slope
        clenshaw, clenshaw_before = coefficients[k] + 2 * x * clenshaw - clenshaw_before, clenshaw
    return coefficients[0] + x * clenshaw - clenshaw_before, clenshaw + x * clenshaw_slope - d2


def cache_on_disk(dispatcher: Any) -> None:
    """Cache a compiled function on disk, each file with a digest at its end.

    Loading a damaged file would end the process.  Such a file is not loaded, but compiled anew and
    replaced.  Unpickling ignores the digest.
    """
    dispatcher.enable_caching()
    cache_file = dispatcher._cache._cache_file
    numba_write = cache_file._open_for_write
    numba_index, numba_load = cache_file._load_index, cache_file._load_data

    def is_intact(cache_path: str) -> bool:
        cache_content = Path(cache_path).read_bytes() if Path(cache_path).exists() else b""
        return sha256(cache_content[:-32]).digest() == cache_content[-32:]

    @contextmanager
    def open_for_write(cache_path: str) -> Iterator[BytesIO]:
        cache_content = BytesIO()
        yield cache_content
        with numba_write(cache_path) as cache_stream:
            cache_stream.write(cache_content.getvalue() + sha256(cache_content.getvalue()).digest())

    def load_data(cache_name: str) -> Any:
        if not is_intact(cache_file._data_path(cache_name)):
            raise OSError  # numba treats the file as missing
        return numba_load(cache_name)

    cache_file._open_for_write, cache_file._load_data = open_for_write, load_data
    cache_file._load_index = lambda: numba_index() if is_intact(cache_file._index_path) else {}


# without a cache directory or without sources it is compiled in every process
with suppress(AttributeError, OSError, RuntimeError):
    cache_on_disk(solve_task)


class _Compiled(Responses):
    """Responses of one group at real arguments: packed vectors are pairs (V1, V2)."""

    @cached_property
    def task(self) -> Callable[..., Array]:
        """The compiled ``solve_task`` of the table, whatever the state of its cache on disk."""
        (a, b), t, rows = self.table.response_products, self.table, self.table.covariance
        one_group = OneGroup(t.weights, a, b, float(t.c[0]), float(t.beta), rows and rows.table)
        try:  # at no point
            solve_task(one_group, SOLVE, *[np.zeros(shape) for shape in (0, 0, *[(0, 2)] * 3)])
        except OSError:
            pass  # numba could not write its cache: the function is in memory
        except Exception:  # a damaged cache: reading it may raise anything
            solve_task._cache.flush()  # type: ignore[attr-defined]
        return partial(solve_task, one_group)

    def solve(self, alpha: Array, lam: Array, tol: float, start: Array | None = None) -> Result:
        """Solve (4.1)-(4.4) for V at every point, from no guess, to RESPONSE_TOLERANCE."""
        V = np.ones((len(alpha), 2))
        compiled_results = self.task(SOLVE, *map(as_numba, (alpha, lam, V, V, V)))
        residual, iterations, status_codes = compiled_results[:, 2:].T
        statuses = STATUSES[status_codes.astype(np.int64)]
        return Result(compiled_results[:, :2], residual, iterations.astype(np.int64), statuses)

    def second_moments_at(self, V_hat: Array, lam: Array, X: Array, guess: Array) -> Array:
        """Second moments (Q1, q2) of the readout at fixed conjugates.  Eqs. (5.3), (15.8)"""
        return self.task(SECOND_MOMENTS, *map(as_numba, (lam, lam, guess, V_hat, X)))[:, :2]

    def second_moments(self, V: Array, alpha: Array, lam: Array, X: Array) -> Array:
        """Second moments (Q1, q2) of the readout for sources that do not contain Q.  Eq. (4.10)"""
        return self.task(NEWTON, *map(as_numba, (alpha, lam, V, V, X)))[:, 2:4]

    def newton_distance(self, V: Array, alpha: Array, lam: Array) -> Array:
        """Newton's step from V (P, 2) relative to V."""
        return self.task(NEWTON, *map(as_numba, (alpha, lam, V, V, V)))[:, :2]


class CompiledIsotropic(_Compiled, Isotropic):
    """Compiled responses of isotropic rows."""


class CompiledCorrelated(_Compiled, CorrelatedGroup):
    """Compiled responses of a network's tabulated rows."""
