"""Ridge regression of one group of neurons, compiled: each point from end to end.
docs/theory.md 4, 5, 16

(V1, V2) solve (4.1)-(4.4) by two steps of (4.2) -> (5.3), then by Newton's method on the two
equations without cancellation that ``isotropic`` states,

    lambda V2     = (1 - alpha/beta) + (alpha/beta) E[1 / (1 + V)]               (i)
    V1 / (c_e V2) = (1 - alpha) + alpha E[(1 + mu_2^2 V2) / (1 + V)]             (ii)

in the logarithms of V2 and of W1 = V2 / (q + 1/c), with q = beta V2 V1_hat.  All else is explicit,
(4.5)-(4.11); averages E are sums over the nodes of a table.

Isotropic rows, those of an sRF, have c_e = c, and W1 is V1.  Those of a network have c_e(q), and
C_e(q) on u, the row norms (delta) and zeta; both come with the table (``rows``), and
V1 = V2 / (q + 1/c_e(q)).  Their readout has one loading more, chi on d mu_0 / d c.

One spike and one direction zeta of the target, which is N(0, 1) whatever kappa is, are the usual
case, and written out.  Of ``several``, or of inputs that are not isotropic, the same equations are
those of vectors and matrices (19.3).

To check an answer, not how it is found, ``violation`` is enough: every unknown by its own equation,
from the averages below it.

``solve`` is what others call, with all that it calls here, since numba's cache does not see changes
of other files.  A few points take Python itself less time than numba takes to be imported: the
functions are compiled once they have more to do than ``WORTHWHILE``, or never where there is no
numba.
"""

from collections import namedtuple
from collections.abc import Callable
from contextlib import suppress
from math import exp, inf, isfinite, log, log1p, sqrt
from pickle import UnpicklingError
from typing import Any, TypeVar

import numpy as np

from solvers.chebyshev import HalfLine
from solvers.results import Array, Status

from ..equivalence import OneGroup, Several

RESPONSE_TOLERANCE = 1e-13  # of the responses, relative: some hundred times rounding
# Errors are sums that may cancel, and theta, chi and psi may vanish.  An error is compared with no
# less than this part of what it is without a readout, and an overlap with no less than this part of
# what would make the output as large as the target.
SMALLEST_ERROR, SMALLEST_OVERLAP = 1e-4, 1e-4

CONVERGED, NO_PROGRESS, NOT_FINITE, ITERATION_LIMIT = range(4)
STATUSES = np.array(
    [Status.CONVERGED, Status.NO_PROGRESS, Status.NOT_FINITE, Status.ITERATION_LIMIT]
)

# Points times nodes that Python does itself, 70 microseconds each, and of several directions numpy,
# 1.5: in all as long as numba takes to be imported and to load what it has compiled before.
WORTHWHILE, WORTHWHILE_OF_SEVERAL = 2**13, 2**19

Function = TypeVar("Function", bound=Callable[..., Any])
options: dict[str, dict[str, Any]] = {}  # of numba, for the functions it has not yet compiled
work, work_of_several = [0], [0]  # points times nodes so far


# What is asked of an argument that is None is not compiled: where ``rows`` make a difference, or
# which of ``usual`` and ``several`` is None, they are arguments beside the table that has them.
def compiled(function: Function) -> Function:
    options[function.__name__] = {}
    return function


def summed(function: Function) -> Function:
    """Of sums whose terms may be added in any order, which is three times faster."""
    options[function.__name__] = {"fastmath": {"reassoc", "contract"}}
    return function


Pair = tuple[float, float]
Triple = tuple[float, float, float]
Matrix = tuple[float, float, float, float]  # two by two, row by row


# E[R {1, a, b}] and E[R^2 {a, b, ab}], with R = 1 / (1 + V), a = mu_1^2, b = mu_2^2
Averages = namedtuple("Averages", "R Ra Rb RRa RRb RRab")
# E[R {mu_0^2, mu_0 l, l^2, mu_0 h, l h, mu_1 g, k}], with what mu_0 leaves of the loading as l, and
# E[R l' {mu_0, l, l', h}], with what it leaves of a network's second one as l'
Signals = namedtuple("Signals", "g00 g01 g11 h0 h1 p_hat power g02 g12 g22 h2")
# V1, c_e, and derivatives of log V1 and of log p in log W1, with p = V1 / (c_e V2)
Bulk = namedtuple("Bulk", "V1 c slope p_slope")
# a symmetric matrix on u, delta and zeta
Block = namedtuple("Block", "uu ud uz dd dz zz")
# (4.5), and overlaps with all special directions, (theta, chi, psi) or an array, with conjugates
Signal = namedtuple("Signal", "m m_hat special special_hat")
# overlaps, conjugates and errors at one point, and what its equations were solved for
Point = namedtuple("Point", "V1 V2 Q1 q2 V1_hat V2_hat X1 X2 test train W1 signal")


def worthwhile(points: int) -> bool:
    """Whether so many points times nodes of several directions are for this module: numpy is
    faster, until there has been as much to do as makes up for compiling."""
    work_of_several[0] += points
    if work_of_several[0] <= WORTHWHILE_OF_SEVERAL:
        return False
    return compile_all() or hasattr(solve, "py_func")


def solved(fine: OneGroup, coarse: OneGroup, alpha: Array, lam: Array, checked: bool) -> Array:
    """What ``solve`` finds, by Python or, from then on, compiled; of points that Python cannot do
    (it raises where a compiled division by 0 is infinite) without numba, NaN and its status."""
    try:
        if options:
            work[0] += alpha.size * len(fine.weights)
            if work[0] > WORTHWHILE:
                compile_all()
        with np.errstate(all="ignore"):  # numpy warns where the functions are not compiled
            return solve(fine, coarse, alpha, lam, checked)
    except OSError:
        pass  # numba could not keep on the disk what it has compiled: it has it in memory
    except (AttributeError, ImportError, EOFError, UnpicklingError):
        forget_what_is_kept()
    except (ArithmeticError, ValueError):
        if not compile_all():
            if alpha.size == 1:
                unknown = np.full((22, 1), np.nan)
                unknown[13] = NOT_FINITE
                return unknown
            each = [slice(i, i + 1) for i in range(alpha.size)]
            parts = [solved(fine, coarse, alpha[i], lam[i], checked) for i in each]
            return np.concatenate(parts, axis=1)
    return solve(fine, coarse, alpha, lam, checked)


def compile_all() -> bool:
    """Put compiled functions in the place of those here, if that has not been done and there is
    numba: whether it was."""
    if not options:
        return False
    todo = dict(options)
    options.clear()
    try:
        from numba import njit
    except Exception:  # missing, or it refuses a variable of its own
        return False
    for name, own in todo.items():
        globals()[name] = njit(error_model="numpy", **own)(globals()[name])  # 1 / 0 is infinite
    with suppress(KeyError, RuntimeError):  # nowhere to keep it: compiled in every process anew
        globals()["solve"].enable_caching()
    return True


def forget_what_is_kept() -> None:
    """Compile ``solve`` anew: what numba has kept of it was kept by another version of this
    library, and cannot be read where a class in it is gone."""
    from numba import njit

    kept: Any = globals()["solve"]
    try:
        kept._cache.flush()
    except OSError:
        globals()["solve"] = njit(error_model="numpy")(kept.py_func)


@compiled
def solve(fine: OneGroup, coarse: OneGroup, alpha: Array, lam: Array, checked: bool) -> Array:
    """The points (alpha[i], lam[i]) on the table ``fine``, (16 + 2n, P) with n special directions:
    the first numbers of ``Point``; the largest relative violation of any equation on ``fine`` and
    on ``coarse``, both NaN unless checked; evaluations and status; and the parts of ``Signal``."""
    n = directions(fine.several)
    out = np.empty((16 + 2 * n, alpha.size))
    for i in range(alpha.size):
        W1, V2, iterations, status = responses(fine, alpha[i], lam[i])
        point = readout(fine, fine.usual, fine.several, alpha[i], lam[i], W1, V2)
        residual = error = np.nan
        if checked:
            residual = violation(fine, fine.usual, fine.several, alpha[i], lam[i], point)
            error = violation(coarse, coarse.usual, coarse.several, alpha[i], lam[i], point)
        for k, number in enumerate(point[:10]):
            out[k, i] = number
        out[10, i], out[11, i], out[12, i], out[13, i] = residual, error, iterations, status
        out[14, i], out[15, i] = point.signal.m, point.signal.m_hat
        for k in range(n):
            out[16 + k, i] = point.signal.special[k]
            out[16 + n + k, i] = point.signal.special_hat[k]
    return out


@compiled
def directions(several: Several | None) -> int:
    """How many special directions there are: the spike, the norms and zeta, unless several."""
    return 3 if several is None else len(several.loadings)


@compiled
def responses(t: OneGroup, alpha: float, lam: float) -> tuple[float, float, int, int]:
    """W1, V2, evaluations and status.  Eqs. (4.1)-(4.4), (16.6)"""
    sweeps, limit = 2, 100  # of the map, from (1, 1) into the right decades; and evaluations
    V1, V2, c, ratio = 1.0, 1.0, t.c, alpha / t.beta
    for _ in range(sweeps):
        E = averages(t, V1, V2)  # Eqs. (4.1), (4.2)
        c, _ = effective(t, t.rows, alpha * E.Ra * V2)
        V2, V1, _, _, _ = resolvent(t, c, lam + ratio * E.Rb, ratio * E.Ra)  # Eq. (5.3)
    W1 = V2 / (V2 / V1 + (1 / t.c - 1 / c))
    step1, step2, distance, residual = 0.0, 0.0, inf, inf
    slopes = (1.0, 0.0, 0.0, 1.0)  # of the residuals, at (W1, V2)
    for count in range(sweeps + 1, limit + 1):  # Newton's method needs about four
        T1, T2 = W1 * exp(step1), V2 * exp(step2)
        bulk = bulk_at(t, t.rows, T1, T2)
        error, there, _ = log_residual(t, averages(t, bulk.V1, T2), alpha, lam, bulk, T2)
        # A step is good if the rest of the way, by the old slopes, has become shorter: unlike a
        # test on the residual, this does not depend on how the equations are scaled.
        if distance == inf or size(solve_pair(slopes, error)) < distance:
            W1, V2, slopes, residual = T1, T2, there, size(error)
            back1, back2 = solve_pair(slopes, error)
            length = distance = size((back1, back2))
            # by a factor of 20 at most; a cached kernel would keep a constant of another file
            shortened = 3.0 / max(length, 3.0)
            step1, step2 = -shortened * back1, -shortened * back2
        else:
            step1, step2 = step1 / 2, step2 / 2
            length = size((step1, step2))
        if not isfinite(length):
            return W1, V2, count, NOT_FINITE
        if length <= RESPONSE_TOLERANCE or residual <= 1e-15:  # nothing but rounding
            # far from any root, a step becomes this short by halving alone
            return W1, V2, count, CONVERGED if residual < 1e-10 else NO_PROGRESS
    return W1, V2, limit, ITERATION_LIMIT


@compiled
def readout(
    t: OneGroup,
    usual: bool | None,
    several: Several | None,
    alpha: float,
    lam: float,
    W1: float,
    V2: float,
) -> Point:
    """All that follows from V1 and V2.  Eqs. (4.2), (4.5)-(4.11)"""
    ratio, bulk = alpha / t.beta, bulk_at(t, t.rows, W1, V2)
    V1 = bulk.V1
    E = averages(t, V1, V2)
    V1_hat, V2_hat = ratio * E.Ra, ratio * E.Rb  # Eq. (4.2)
    q = t.beta * V2 * V1_hat
    if usual is not None:
        C, slope = special_of_spike(t, t.rows, q)
        s = signal_of_spike(t, alpha * V2, V1, V2, q, C)
    if several is not None:
        C, slope = special_of_several(t, t.rows, len(several.loadings), q)
        s = signal_of_several(t, several, alpha * V2, V1, V2, C)
    X2_signal, Q1_signal, psi2 = of_signal(t, usual, several, alpha, V2, q, C, slope, s)
    # Eq. (4.7) is linear in (Q1, q2): its other terms first
    T, T0, Ta, Tb, RRaa, RRbb = error_averages(t, t.rows, usual, several, V1, V2, s)
    Ta += Q1_signal * RRaa
    Tb += Q1_signal * E.RRab
    X1, X2 = ratio * Ta, ratio * Tb + X2_signal  # Eq. (4.8) without Q
    # (4.7)-(4.10) as one linear system: minus the derivative of (i), (ii) under V_hat + s X
    _, slopes, (side1, side2) = log_residual(t, E, alpha, lam, bulk, V2)
    d1, d2 = solve_pair(slopes, ((X1 * V1 + X2 * V2) / side1, t.beta * X1 * V1 / side2))
    d1 = bulk.slope * d1 + (1 - bulk.slope) * d2  # of log V1
    X1 += ratio * (V1 * d1 * RRaa + V2 * d2 * E.RRab)  # Eq. (4.8)
    X2 += ratio * (V1 * d1 * E.RRab + V2 * d2 * RRbb)  # Eq. (4.8)
    # (4.9) once more as it stands: a q2 much smaller than V2 is lost in the joint system
    Q1, q2 = second_moments(t, V2, V1_hat, lam + V2_hat, X1, X2)
    Q1 += Q1_signal
    test = T + Q1 * t.mean_a + q2 * t.mean_b - t.noise  # Eq. (4.11)
    train = T0 + Q1 * E.RRa + q2 * E.RRb  # Eq. (4.11)
    return Point(V1, V2, Q1 + psi2, q2, V1_hat, V2_hat, X1, X2, test, train, W1, s)


@compiled
def signal_of_spike(t: OneGroup, scale: float, V1: float, V2: float, q: float, C: Block) -> Signal:
    """m and the overlaps as a least-squares problem with a unit penalty on phi: those of loadings
    after m, so in what mu_0 leaves of these.  ``scale`` is alpha V2, and

        theta = root phi + (what p_hat causes),    chi = tilt root phi + norm_root phi' + (same),

    where isotropic rows have no chi, and p_hat causes nothing.  Eqs. (4.5), (16.9)-(16.10)"""
    penalty = 1 / (t.dimension * scale)  # on m, at a finite dimension
    E = signal_averages(t, t.rows, V1, V2, 0.0, 0.0)
    pivot = E.g00 + penalty if E.g00 > 0 else inf  # no mu_0, no m
    share, norm_share = E.g01 / pivot, E.g02 / pivot
    left = signal_averages(t, t.rows, V1, V2, share, norm_share)
    # zeta, with a unit penalty on what V1_hat sees of it, first: M' of (16.10) is what is left
    zeta = 1 / (1 + q * C.zz)
    uu, dd = C.uu - q * zeta * C.uz**2, C.dd - q * zeta * C.dz**2
    tilt = (C.ud - q * zeta * C.uz * C.dz) / uu
    rest = dd - tilt**2 * uu
    # where the norms do not move beside u, rest is rounding
    root, norm_root = sqrt(scale * uu), sqrt(scale * rest) if rest > 1e-13 * dd else 0.0
    _, _, gram11, _, h1, p_hat, _, _, gram12, gram22, h2 = left
    gram22 += penalty * norm_share**2
    gram12 += penalty * share * norm_share + tilt * gram22
    gram11 += penalty * share**2 + tilt * (2 * gram12 - tilt * gram22)
    theta, chi = scale * zeta * C.uz * p_hat, scale * zeta * C.dz * p_hat
    apart = chi - tilt * theta
    h1 += tilt * h2 - gram11 * theta - gram12 * apart
    h2 -= gram12 * theta + gram22 * apart
    mixed = root * norm_root * gram12
    matrix = 1 + root**2 * gram11, mixed, mixed, 1 + norm_root**2 * gram22
    phi, norm_phi = solve_pair(matrix, (root * h1, norm_root * h2))
    theta += root * phi  # Eq. (4.5)
    chi += tilt * root * phi + norm_root * norm_phi
    chi_hat = norm_phi / norm_root if norm_root > 0 else h2 - gram12 * root * phi
    m = E.h0 / pivot - share * theta - norm_share * chi  # Eq. (4.5)
    theta_hat = phi / root - tilt * chi_hat
    psi_hat = zeta * (p_hat - q * (C.uz * theta_hat + C.dz * chi_hat))
    special_hat = theta_hat, chi_hat, psi_hat
    psi = scale * times(C, special_hat)[2]
    return Signal(m, penalty * m, (theta, chi, psi), special_hat)


@compiled
def signal_of_several(
    t: OneGroup, several: Several, scale: float, V1: float, V2: float, C: Array
) -> Signal:
    """The same of any special directions, all at once: theta = root phi with root root^T = alpha V2
    C, by Cholesky; ``scale`` is alpha V2.  Eqs. (4.5), (19.3)"""
    n, G, root = len(C), gram_of_several(t, several, V1, V2), cholesky(C, scale)
    matrix = turned(G, root)  # of (m, phi), and the target beside
    penalty = 1 / (t.dimension * scale)  # on m, at a finite dimension
    matrix[0, 0] += penalty
    for i in range(1, n + 1):
        matrix[i, i] += 1
    factor, phi, special_hat = cholesky(matrix, 1.0), np.zeros(n + 1), np.zeros(n)
    solve_transposed(factor, factor[n + 1], phi)  # the last row solves for the target already
    m, phi, special = phi[0], phi[1:], np.zeros(n)
    for i in range(n):
        special[i] = row_times(root, i, phi)
    for i in range(n):
        special_hat[i] = along(G, m, special, i + 1)
    # root^T theta_hat = phi keeps more digits where the data outweigh the penalty
    solve_transposed(root, phi, special_hat)
    return Signal(m, penalty * m, special, special_hat)


@compiled
def turned(G: Array, root: Array) -> Array:
    """T^T G T, T having 1 of mu_0 and the target, and ``root``, which is lower, between."""
    n, half, whole = len(root), G.copy(), np.empty_like(G)
    for i in range(n + 2):
        for j in range(n):
            half[i, j + 1] = 0.0
            for k in range(j, n):
                half[i, j + 1] += G[i, k + 1] * root[k, j]
    for j in range(n + 2):
        whole[0, j], whole[n + 1, j] = half[0, j], half[n + 1, j]
        for i in range(n):
            whole[i + 1, j] = 0.0
            for k in range(i, n):
                whole[i + 1, j] += root[k, i] * half[k + 1, j]
    return whole


@compiled
def along(G: Array, m: float, special: Array, i: int) -> float:
    """E[R F (target - output)] of the regressor i, mu_0 first.  Eqs. (4.5), (19.3)"""
    left = G[i, -1] - m * G[i, 0]
    for k in range(len(special)):
        left -= G[i, k + 1] * special[k]
    return left


@compiled
def cholesky(matrix: Array, scale: float) -> Array:
    """L with L L^T = scale matrix, without the directions that do not move beside those before."""
    L = np.zeros_like(matrix)
    for i in range(len(L)):
        for j in range(i + 1):
            rest = scale * matrix[i, j]
            for k in range(j):
                rest -= L[i, k] * L[j, k]
            if i == j and not rest <= 1e-13 * scale * matrix[i, i]:
                L[i, i] = sqrt(rest)
            elif i != j and L[j, j] > 0:
                L[i, j] = rest / L[j, j]
    return L


@compiled
def solve_transposed(L: Array, y: Array, x: Array) -> None:
    """x with L^T x = y in the place of ``x``, which is left where L does not tell."""
    for i in range(len(x) - 1, -1, -1):
        if L[i, i] != 0:
            x[i] = y[i]
            for k in range(i + 1, len(x)):
                x[i] -= L[k, i] * x[k]
            x[i] /= L[i, i]


@compiled
def of_signal(
    t: OneGroup,
    usual: bool | None,
    several: Several | None,
    alpha: float,
    V2: float,
    q: float,
    C: Any,
    slope: Any,
    s: Signal,
) -> Triple:
    """What the signal adds to X2, the last term of (4.8), and to Q1, that of (15.8) and, a term of
    its own where psi has a loading, psi^2.  At a finite dimension m_hat acts as theta_hat does."""
    hats, scale, psi2, of_loading = s.special_hat, alpha**2 / t.beta, 0.0, 0.0
    if usual is not None:
        psi2, falls, held = s.special[2] ** 2, -form(slope, hats), form(C, hats)
    if several is not None:
        for k in range(len(hats) - several.rest, len(hats)):
            of_loading += s.special[k] ** 2
        falls, held = -form_of_several(slope, hats), form_of_several(C, hats)
    X2 = scale * (held - q * falls)  # Eqs. (4.8), (15.8)
    if s.m_hat != 0:
        X2 += scale * t.dimension * s.m_hat**2
    return X2, psi2 + (alpha * V2) ** 2 * falls, of_loading


@compiled
def violation(
    t: OneGroup, usual: bool | None, several: Several | None, alpha: float, lam: float, p: Point
) -> float:
    """Largest relative change of any unknown by its own equation on the table ``t``, the rest as
    in ``p``.  Eqs. (4.1)-(4.11)"""
    ratio, V1, V2 = alpha / t.beta, p.V1, p.V2
    E = averages(t, V1, V2)
    V1_hat, V2_hat = ratio * E.Ra, ratio * E.Rb  # Eq. (4.2)
    V1_again, V2_again = from_conjugates(t, V2, V1_hat, lam + V2_hat)
    error, slopes, _ = log_residual(t, E, alpha, lam, bulk_at(t, t.rows, p.W1, V2), V2)
    q = t.beta * V2_again * V1_hat
    if usual is not None:
        C, slope = special_of_spike(t, t.rows, q)
    if several is not None:
        C, slope = special_of_several(t, t.rows, len(several.loadings), q)
    s = p.signal
    T, T0, Ta, Tb, RRaa, RRbb = error_averages(t, t.rows, usual, several, V1, V2, s)
    X2_signal, Q1_signal, psi2 = of_signal(t, usual, several, alpha, V2_again, q, C, slope, s)
    Q1_of_rest = p.Q1 - psi2
    Ta += Q1_of_rest * RRaa + p.q2 * E.RRab  # Eq. (4.7)
    Tb += Q1_of_rest * E.RRab + p.q2 * RRbb  # Eq. (4.7)
    X1, X2 = ratio * Ta, ratio * Tb + X2_signal  # Eq. (4.8)
    Q1, q2 = second_moments(t, V2, V1_hat, lam + V2_hat, X1, X2)  # Eq. (4.9)
    test = T + Q1_of_rest * t.mean_a + p.q2 * t.mean_b - t.noise  # Eq. (4.11)
    train = T0 + Q1_of_rest * E.RRa + p.q2 * E.RRb  # Eq. (4.11)
    # the errors of no readout: what errors, sums that may cancel, are compared with
    whole, whole_train = no_readout(t, V1, V2)
    scale = alpha * V2_again
    worst = violation_of_signal(t, usual, several, E.Ra, V1, V2, scale, C, s)
    for change in (
        relative(V1_again - V1, V1),
        relative(V2_again - V2, V2),
        size(solve_pair(slopes, error)),  # Newton's step, where (5.3) hardly moves V
        relative(V1_hat - p.V1_hat, p.V1_hat),
        relative(V2_hat - p.V2_hat, p.V2_hat),
        relative(X1 - p.X1, p.X1),
        relative(X2 - p.X2, p.X2),
        relative(Q1 + Q1_signal + psi2 - p.Q1, p.Q1),
        relative(q2 - p.q2, p.q2),
        relative(test - p.test, max(abs(p.test), SMALLEST_ERROR * whole)),
        relative(train - p.train, max(abs(p.train), SMALLEST_ERROR * whole_train)),
    ):
        if not change <= worst:
            worst = change if isfinite(change) else inf
    return worst


@compiled
def violation_of_signal(
    t: OneGroup,
    usual: bool | None,
    several: Several | None,
    of_zeta: float,
    V1: float,
    V2: float,
    scale: float,
    C: Any,
    s: Signal,
) -> float:
    """The same of the signal: of conjugates beside the target's size, of overlaps by what they add
    to the output.  ``of_zeta`` is E[mu_1^2 R], ``scale`` alpha V2.

    Eqs. (4.5), (4.13), (16.10)"""
    left: Any
    again: Any
    size: Any
    if usual is not None:
        F = signal_averages(t, t.rows, V1, V2, 0.0, 0.0)
        (theta, chi, psi), again, m = s.special, times(C, s.special_hat), s.m
        left = (
            F.h0 - F.g00 * m - F.g01 * theta - F.g02 * chi,
            F.h1 - F.g01 * m - F.g11 * theta - F.g12 * chi,
            F.h2 - F.g02 * m - F.g12 * theta - F.g22 * chi,  # Eq. (16.10)
            F.p_hat - of_zeta * psi,
        )
        size = sqrt(F.g00), sqrt(F.g11), sqrt(F.g22), sqrt(of_zeta)
        target = sqrt(F.power)
    if several is not None:
        G = gram_of_several(t, several, V1, V2)
        n, target = len(C), sqrt(G[-1, -1])
        left, again, size = np.zeros(n + 1), np.zeros(n), np.zeros(n + 1)
        for i in range(n + 1):
            left[i], size[i] = along(G, s.m, s.special, i), sqrt(G[i, i])
        for i in range(n):
            again[i] = row_times(C, i, s.special_hat)
    worst = relative(left[0] - s.m_hat, size[0] * target)
    for k in range(len(again)):
        now, own = s.special[k], size[k + 1]
        # what adds nothing to the output has no size
        floor = max(own * abs(now), SMALLEST_OVERLAP * target)
        for change in (
            relative(left[k + 1] - s.special_hat[k], own * target),
            relative(own * (scale * again[k] - now), floor),
        ):
            if not change <= worst:
                worst = change if isfinite(change) else inf
    return worst


@summed
def averages(t: OneGroup, V1: float, V2: float) -> Averages:
    """Eqs. (4.1), (4.2)"""
    R0 = Ra = Rb = RRa = RRb = RRab = 0.0
    for n in range(len(t.weights)):
        a, b = t.a[n], t.b[n]
        R = 1 / (1 + V1 * a + V2 * b)  # Eq. (4.1)
        wR = t.weights[n] * R
        wRR = wR * R
        R0 += wR
        Ra += wR * a
        Rb += wR * b
        RRa += wRR * a
        RRb += wRR * b
        RRab += wRR * a * b
    return Averages(R0, Ra, Rb, RRa, RRb, RRab)


@summed
def signal_averages(
    t: OneGroup, rows: HalfLine | None, V1: float, V2: float, share: float, norm_share: float
) -> Signals:
    """With l = kappa mu_1 - share mu_0 and l' = d mu_0 / d c - norm_share mu_0; zeros where that is
    no loading.  Eqs. (4.5), (4.6), (16.10)"""
    g00 = g01 = g11 = h0 = h1 = p_hat = power = g02 = g12 = g22 = h2 = 0.0
    for n in range(len(t.weights)):
        wR = t.weights[n] / (1 + V1 * t.a[n] + V2 * t.b[n])
        mu0, h = t.mu0[n], t.h[n]
        loading = t.loading[n] - share * mu0
        g00 += wR * mu0 * mu0
        g01 += wR * mu0 * loading
        g11 += wR * loading * loading
        h0 += wR * mu0 * h
        h1 += wR * loading * h
        p_hat += wR * t.mu1g[n]
        power += wR * (h * h + t.spread[n])
        if rows is not None:
            norm = t.norm[n] - norm_share * mu0
            g02 += wR * norm * mu0
            g12 += wR * norm * loading
            g22 += wR * norm * norm
            h2 += wR * norm * h
    return Signals(g00, g01, g11, h0, h1, p_hat, power, g02, g12, g22, h2)


@summed
def gram_of_several(t: OneGroup, several: Several, V1: float, V2: float) -> Array:
    """E[R F F^T] of F = (mu_0, loadings, target), (n + 2, n + 2).  Eqs. (4.5), (19.3)"""
    N, size, row = len(t.weights), len(several.loadings) + 2, 0
    wR, G = np.empty(N), np.empty((size, size))
    for n in range(N):
        wR[n] = t.weights[n] / (1 + V1 * t.a[n] + V2 * t.b[n])
    for i in range(size):
        for j in range(i, size):
            total = 0.0
            for n in range(N):
                total += wR[n] * several.products[row, n]
            G[i, j] = G[j, i] = total
            row += 1
    return G


@summed
def no_readout(t: OneGroup, V1: float, V2: float) -> Pair:
    """E[e] and E[R^2 e] of ``error_averages`` without any overlap."""
    T = T0 = 0.0
    for n in range(len(t.weights)):
        error = t.weights[n] * (t.h[n] * t.h[n] + t.spread[n] + t.noise)
        T += error
        T0 += error / (1 + V1 * t.a[n] + V2 * t.b[n]) ** 2
    return T, T0


@summed
def error_averages(
    t: OneGroup,
    rows: HalfLine | None,
    usual: bool | None,
    several: Several | None,
    V1: float,
    V2: float,
    s: Signal,
) -> tuple[float, float, float, float, float, float]:
    """E[e], E[R^2 e {1, a, b}], E[R^2 {a^2, b^2}], e being (4.7) without its terms in Q1, q2."""
    T = T0 = Ta = Tb = RRaa = RRbb = 0.0
    if several is not None:
        errors = errors_of_several(t, several, s.m, s.special)
    if usual is not None:
        theta, chi, psi = s.special
    for n in range(len(t.weights)):
        w, a, b = t.weights[n], t.a[n], t.b[n]
        if several is not None:
            error = errors[n]
        if usual is not None:
            gap = s.m * t.mu0[n] + theta * t.loading[n] - t.h[n]
            if rows is not None:
                gap += chi * t.norm[n]
            error = gap * gap - 2 * psi * t.mu1g[n] + t.spread[n] + t.noise  # Eq. (4.7)
        R = 1 / (1 + V1 * a + V2 * b)  # Eq. (4.1)
        wRR = w * R * R
        T += w * error
        T0 += wRR * error
        Ta += wRR * error * a
        Tb += wRR * error * b
        RRaa += wRR * a * a
        RRbb += wRR * b * b
    return T, T0, Ta, Tb, RRaa, RRbb


@summed
def errors_of_several(t: OneGroup, several: Several, m: float, special: Array) -> Array:
    """(4.7) without its terms in Q1, q2 at every node: the square of what the output lacks of the
    target's mean, and of its slope in every part of zeta that is random there.  Eq. (19.3)"""
    n, parts, N = several.loadings.shape
    errors, gap = np.empty(N), np.empty(N)
    for i in range(N):
        errors[i] = several.unseen[i] + t.noise
    for part in range(parts):
        for i in range(N):
            gap[i] = (m * t.mu0[i] if part == 0 else 0.0) - several.seen[part, i]
        for k in range(n - several.rest if part > 0 else 0, n):
            for i in range(N):
                gap[i] += special[k] * several.loadings[k, part, i]
        for i in range(N):
            errors[i] += gap[i] * gap[i]
    return errors


@compiled
def resolvent(
    t: OneGroup, c: float, level: float, slope: float
) -> tuple[float, float, float, float, float]:
    """<1/S>, <D/S>, <1/S^2>, <D/S^2>, <D^2/S^2> for S = level + slope D and rows of variance c, as
    in ``solvers.marchenko_pastur``: sums and products of positive terms.  Eqs. (5.1), (5.2)"""
    beta, q = t.beta, c * slope
    b = level + (1 - beta) * q
    root = sqrt(level + q * (1 - sqrt(beta)) ** 2) * sqrt(level + q * (1 + sqrt(beta)) ** 2)
    inverse = 2 / (b + root) if b >= 0 else (root - b) / (2 * beta * q * level)
    shrunk = 1 + beta * q * inverse
    weighted = c * inverse / shrunk
    balance = level + q / shrunk**2  # derivative of level M + q M / shrunk = 1 in M = <1/S>
    inverse2, mixed = inverse / balance, weighted / shrunk / balance
    return inverse, weighted, inverse2, mixed, beta * weighted**2 + c / shrunk**2 * mixed


@compiled
def from_conjugates(t: OneGroup, V2: float, V1_hat: float, level: float) -> Pair:
    """(V1, V2) from the conjugates: with the c_e that V2 implies, then Newton's step in it.
    Eqs. (5.3), (16.6)"""
    c, slope = effective(t, t.rows, t.beta * V2 * V1_hat)
    inverse, weighted, _, mixed, _ = resolvent(t, c, level, V1_hat)
    follows = t.beta * V1_hat * slope * mixed / c
    change = (inverse - V2) / (1 + V1_hat * follows)
    return weighted + level * follows * change, V2 + change


@compiled
def second_moments(
    t: OneGroup, V2: float, V1_hat: float, level: float, X1: float, X2: float
) -> Pair:
    """-dV[X] at fixed conjugates, through c_e, too.  Eqs. (5.3), (15.8)"""
    c, slope = effective(t, t.rows, t.beta * V2 * V1_hat)
    _, _, inverse2, mixed, weighted2 = resolvent(t, c, level, V1_hat)
    dq = t.beta * inverse2 * (level * X1 - V1_hat * X2)
    by_c = mixed * slope * dq / (c + slope * t.beta * V1_hat**2 * mixed)
    return weighted2 * X1 + mixed * X2 - level * by_c, mixed * X1 + inverse2 * X2 + V1_hat * by_c


@compiled
def bulk_at(t: OneGroup, rows: HalfLine | None, W1: float, V2: float) -> Bulk:
    """V1, and what (i) and (ii) need of the rows.  Eq. (16.6)"""
    q = V2 / W1 - 1 / t.c
    if rows is None or q <= 0:  # below 0, where Newton may try, as if rows were isotropic
        return Bulk(W1, t.c, 1.0, 1.0)
    c, slope = effective(t, t.rows, q)
    falls = q + 1 / t.c  # -dq / d log W1
    p = 1 / (1 + q * c)
    p_slope = falls * (c + q * slope) * p
    return Bulk(V2 * c * p, c, p_slope - falls * slope / c, p_slope)


@compiled
def effective(t: OneGroup, rows: HalfLine | None, q: float) -> Pair:
    """c_e and its derivative at q."""
    if rows is None:
        return t.c, 0.0
    panel, x, dx = place(rows, q)
    value, slope = series(rows.series[0, panel], x)
    return value, slope * dx


@compiled
def special_of_spike(t: OneGroup, rows: HalfLine | None, q: float) -> tuple[Any, Any]:
    """C_e and its derivative at q on u, delta and zeta, ``Block`` each."""
    if rows is None:
        return Block(t.c, 0.0, 0.0, 0.0, 0.0, t.c), Block(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    panel, x, dx = place(rows, q)
    c = rows.series[:, panel]
    uu, ud, uz = series(c[1], x), series(c[2], x), series(c[3], x)
    dd, dz, zz = series(c[4], x), series(c[5], x), series(c[6], x)
    value = Block(uu[0], ud[0], uz[0], dd[0], dz[0], zz[0])
    return value, Block(dx * uu[1], dx * ud[1], dx * uz[1], dx * dd[1], dx * dz[1], dx * zz[1])


@compiled
def special_of_several(t: OneGroup, rows: HalfLine | None, n: int, q: float) -> tuple[Array, Array]:
    """The same of n directions, (n, n)."""
    C, slope, row = np.zeros((n, n)), np.zeros((n, n)), 1
    if rows is None:
        for i in range(n):
            C[i, i] = t.c
        return C, slope
    panel, x, dx = place(rows, q)
    for i in range(n):
        for j in range(i, n):
            value, change = series(rows.series[row, panel], x)
            C[i, j] = C[j, i] = value
            slope[i, j] = slope[j, i] = change * dx
            row += 1
    return C, slope


@compiled
def place(rows: HalfLine, q: float) -> tuple[int, float, float]:
    """Where q is in the tables of ``rows``: the panel, x in [-1, 1] in it, and dx/dq."""
    near, far, panels = 1 + rows.near * q, 1 + rows.far * q, rows.series.shape[1]
    unit = panels / log(rows.near / rows.far)  # panels in log(near / far)
    s = unit * log1p((rows.near - rows.far) * q / far)
    panel = min(int(s), panels - 1) if isfinite(s) else 0
    return panel, 2 * (s - panel) - 1, 2 * unit * (rows.near - rows.far) / (near * far)


@compiled
def series(coefficients: Array, x: float) -> Pair:
    """A Chebyshev series and its derivative, by Clenshaw's recursion."""
    b1 = b2 = d1 = d2 = 0.0
    for k in range(coefficients.size - 1, 0, -1):
        d1, d2 = 2 * (b1 + x * d1) - d2, d1
        b1, b2 = coefficients[k] + 2 * x * b1 - b2, b1
    return coefficients[0] + x * b1 - b2, b1 + x * d1 - d2


@compiled
def times(C: Block, nu: Triple) -> Triple:
    """C nu."""
    u, d, z = nu
    return (
        C.uu * u + C.ud * d + C.uz * z,
        C.ud * u + C.dd * d + C.dz * z,
        C.uz * u + C.dz * d + C.zz * z,
    )


@compiled
def form(C: Block, nu: Triple) -> float:
    """nu^T C nu."""
    u, d, z = times(C, nu)
    return nu[0] * u + nu[1] * d + nu[2] * z


@compiled
def row_times(C: Array, i: int, nu: Array) -> float:
    """(C nu)_i of several directions."""
    total = 0.0
    for k in range(len(nu)):
        total += C[i, k] * nu[k]
    return total


@compiled
def form_of_several(C: Array, nu: Array) -> float:
    """nu^T C nu of several directions."""
    total = 0.0
    for i in range(len(nu)):
        total += nu[i] * row_times(C, i, nu)
    return total


@compiled
def log_residual(
    t: OneGroup, E: Averages, alpha: float, lam: float, bulk: Bulk, V2: float
) -> tuple[Pair, Matrix, Pair]:
    """log left - log right of (i) and (ii), the derivatives in log W1 and log V2, and the right
    sides; a negative constant is moved to the other side, so that all sides are positive."""
    V1, ratio, p = bulk.V1, alpha / t.beta, bulk.V1 / (bulk.c * V2)
    left1, right1 = lam * V2 + max(ratio - 1, 0.0), max(1 - ratio, 0.0) + ratio * E.R
    left2, right2 = p + max(alpha - 1, 0.0), max(1 - alpha, 0.0) + alpha * (E.R + V2 * E.Rb)
    # in log V1 and log V2, without p
    by1, by2 = ratio * V1 * E.RRa / right1, lam * V2 / left1 + ratio * V2 * E.RRb / right1
    p_by1, p_by2 = alpha * V1 * (E.RRa + V2 * E.RRab) / right2, alpha * V1 * V2 * E.RRab / right2
    fall = bulk.p_slope * p / left2
    slopes = (
        bulk.slope * by1,
        by2 + (1 - bulk.slope) * by1,
        fall + bulk.slope * p_by1,
        -fall - p_by2 + (1 - bulk.slope) * p_by1,
    )
    return (log(left1 / right1), log(left2 / right2)), slopes, (right1, right2)


@compiled
def solve_pair(matrix: Matrix, right: Pair) -> Pair:
    """The solution of two linear equations, by Cramer's rule."""
    (a, b, c, d), (u, v) = matrix, right
    return (d * u - b * v) / (a * d - b * c), (a * v - c * u) / (a * d - b * c)


@compiled
def size(pair: Pair) -> float:
    """The larger modulus, or NaN."""
    first, second = abs(pair[0]), abs(pair[1])
    return second if second > first else first + 0 * second


@compiled
def relative(change: float, reference: float) -> float:
    """|change| over |reference|, or itself where that is 0."""
    return abs(change) / (abs(reference) if reference != 0 else 1.0)
