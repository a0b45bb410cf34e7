"""Ridge regression of one group of neurons and one spike, compiled: each point from end to end.
docs/theory.md 4, 5

(V1, V2) solve (4.1)-(4.4) by two steps of (4.2) -> (5.3), then by Newton's method on the two
equations without cancellation that ``isotropic`` states,

    lambda V2   = (1 - alpha/beta) + (alpha/beta) E[1 / (1 + V)]                 (i)
    V1 / (c V2) = (1 - alpha) + alpha E[(1 + mu_2^2 V2) / (1 + V)]               (ii)

in the logarithms of V1 and V2.  All else is explicit, (4.5)-(4.11); averages E are sums over the
nodes of a table.  ``solve`` is what others call, importing it where they need it, as numba takes
half a second; all that it calls is here, since numba's cache does not see changes of other files.
"""

from collections import namedtuple
from math import exp, inf, isfinite, log, sqrt

import numpy as np
from numba import njit

from solvers.results import Array

from ..equivalence import OneGroup

TOLERANCE = 1e-13  # of log V1 and log V2: some hundred times rounding
ROUNDING = 1e-15  # residuals of (i), (ii) this small are nothing but rounding
SOLVED = 1e-10  # largest residual at which a short step is that of a solution
LONGEST = 3.0  # step in a logarithm: a factor of 20
SWEEPS = 2  # steps of the map before Newton's: they bring (1, 1) into the right decades
LIMIT = 100  # evaluations: from there Newton needs about four
SMALLEST_ERROR = 1e-4  # of the target's power: with no less an error is compared

CONVERGED, NO_PROGRESS, NOT_FINITE, ITERATION_LIMIT = range(4)

compiled = njit(error_model="numpy")  # 1 / 0 is infinite, as in numpy
# the same for sums whose terms may be added in any order, which is three times faster
summed = njit(error_model="numpy", fastmath={"reassoc", "contract"})

Pair = tuple[float, float]
Matrix = tuple[float, float, float, float]  # two by two, row by row


# E[R {1, a, b}] and E[R^2 {a, b, ab}], with R = 1 / (1 + V), a = mu_1^2, b = mu_2^2
Averages = namedtuple("Averages", "R Ra Rb RRa RRb RRab")
# overlaps, conjugates and errors at one point
Point = namedtuple(
    "Point", "V1 V2 m theta psi Q1 q2 V1_hat V2_hat m_hat theta_hat p_hat X1 X2 test train"
)


@njit(cache=True, error_model="numpy")  # with all that it calls
def solve(fine: OneGroup, coarse: OneGroup, alpha: Array, lam: Array, checked: bool) -> Array:
    """The points (alpha[i], lam[i]) on the table ``fine``, (P, 20): the numbers of a Point, the
    largest relative violation of any equation on ``fine`` (the residual) and on ``coarse`` (the
    quadrature error), both NaN unless ``checked``, evaluations and status."""
    out = np.empty((alpha.size, 20))
    for i in range(alpha.size):
        V1, V2, iterations, status = responses(fine, alpha[i], lam[i])
        point = readout(fine, alpha[i], lam[i], V1, V2)
        residual = violation(fine, alpha[i], lam[i], point) if checked else np.nan
        error = violation(coarse, alpha[i], lam[i], point) if checked else np.nan
        for k, number in enumerate(point):
            out[i, k] = number
        out[i, 16], out[i, 17], out[i, 18], out[i, 19] = residual, error, iterations, status
    return out


@compiled
def responses(t: OneGroup, alpha: float, lam: float) -> tuple[float, float, int, int]:
    """V1, V2, evaluations and status.  Eqs. (4.1)-(4.4)"""
    V1, V2, ratio = 1.0, 1.0, alpha / t.beta
    for _ in range(SWEEPS):
        E = averages(t, V1, V2)  # Eqs. (4.1), (4.2)
        V2, V1, _, _, _ = resolvent(t, lam + ratio * E.Rb, ratio * E.Ra)  # Eq. (5.3)
    step1, step2, distance, residual = 0.0, 0.0, inf, inf
    slopes = (1.0, 0.0, 0.0, 1.0)  # of the residuals, at V
    for count in range(SWEEPS + 1, LIMIT + 1):
        T1, T2 = V1 * exp(step1), V2 * exp(step2)
        error, there, _ = log_residual(t, averages(t, T1, T2), alpha, lam, T1, T2)
        # A step is good if the rest of the way, by the old slopes, has become shorter: unlike a
        # test on the residual, this does not depend on how the equations are scaled.
        if distance == inf or size(solve_pair(slopes, error)) < distance:
            V1, V2, slopes, residual = T1, T2, there, size(error)
            back1, back2 = solve_pair(slopes, error)
            length = distance = size((back1, back2))
            shortened = LONGEST / max(length, LONGEST)
            step1, step2 = -shortened * back1, -shortened * back2
        else:
            step1, step2 = step1 / 2, step2 / 2
            length = size((step1, step2))
        if not isfinite(length):
            return V1, V2, count, NOT_FINITE
        if length <= TOLERANCE or residual <= ROUNDING:
            return V1, V2, count, CONVERGED if residual < SOLVED else NO_PROGRESS
    return V1, V2, LIMIT, ITERATION_LIMIT


@compiled
def readout(t: OneGroup, alpha: float, lam: float, V1: float, V2: float) -> Point:
    """All that follows from V1 and V2.  Eqs. (4.2), (4.5)-(4.11)"""
    ratio = alpha / t.beta
    E = averages(t, V1, V2)
    V1_hat, V2_hat = ratio * E.Ra, ratio * E.Rb  # Eq. (4.2)
    # (4.5) as a least-squares problem with a unit penalty on phi = theta / root, the loading
    # without the part of it that mu_0 fits
    gram00, gram01, _, h0, _, p_hat, _ = signal_averages(t, V1, V2, 0.0)
    penalty = 1 / (t.dimension * alpha * V2)  # on m, at a finite dimension
    pivot = gram00 + penalty if gram00 > 0 else inf  # no mu_0, no m
    share = gram01 / pivot
    _, _, gram11, _, h1, _, _ = signal_averages(t, V1, V2, share)
    root = sqrt(alpha * t.c * V2)
    phi = root * h1 / (1 + root**2 * (gram11 + penalty * share**2))
    theta, theta_hat = root * phi, phi / root  # Eq. (4.5)
    m = h0 / pivot - share * theta  # Eq. (4.5)
    m_hat = penalty * m
    psi = alpha * V1 * p_hat  # Eq. (4.6)
    # Eq. (4.7) is linear in (Q1, q2): its other terms first
    T, T0, Ta, Tb, RRaa, RRbb = error_averages(t, V1, V2, m, theta, psi)
    X1, X2 = sources(t, alpha, Ta, Tb, m_hat, theta_hat, p_hat)  # Eq. (4.8) without Q
    # (4.7)-(4.10) as one linear system: minus the derivative of (i), (ii) under V_hat + s X
    _, slopes, (side1, side2) = log_residual(t, E, alpha, lam, V1, V2)
    d1, d2 = solve_pair(slopes, ((X1 * V1 + X2 * V2) / side1, t.beta * X1 * V1 / side2))
    X1 += ratio * (V1 * d1 * RRaa + V2 * d2 * E.RRab)  # Eq. (4.8)
    X2 += ratio * (V1 * d1 * E.RRab + V2 * d2 * RRbb)  # Eq. (4.8)
    # (4.9) once more as it stands: a q2 much smaller than V2 is lost in the joint system
    _, _, inverse2, mixed, weighted2 = resolvent(t, lam + V2_hat, V1_hat)
    Q1 = weighted2 * X1 + mixed * X2  # Eq. (5.3)
    q2 = mixed * X1 + inverse2 * X2  # Eq. (5.3)
    test = T + Q1 * t.mean_a + q2 * t.mean_b - t.noise  # Eq. (4.11)
    train = T0 + Q1 * E.RRa + q2 * E.RRb  # Eq. (4.11)
    conjugates = V1_hat, V2_hat, m_hat, theta_hat, p_hat, X1, X2
    return Point(V1, V2, m, theta, psi, Q1, q2, *conjugates, test, train)


@compiled
def violation(t: OneGroup, alpha: float, lam: float, p: Point) -> float:
    """Largest relative change of any unknown by its own equation on the table ``t``, the rest as
    in ``p``.  Eqs. (4.1)-(4.11)"""
    ratio, V1, V2 = alpha / t.beta, p.V1, p.V2
    E = averages(t, V1, V2)
    V1_hat, V2_hat = ratio * E.Ra, ratio * E.Rb  # Eq. (4.2)
    inverse, weighted, inverse2, mixed, weighted2 = resolvent(t, lam + V2_hat, V1_hat)
    error, slopes, _ = log_residual(t, E, alpha, lam, V1, V2)
    gram00, gram01, gram11, h0, h1, p_hat, power = signal_averages(t, V1, V2, 0.0)
    along_m = h0 - gram00 * p.m - gram01 * p.theta - p.m_hat  # Eq. (4.5)
    along_theta = h1 - gram01 * p.m - gram11 * p.theta - p.theta_hat  # Eq. (4.5)
    T, T0, Ta, Tb, RRaa, RRbb = error_averages(t, V1, V2, p.m, p.theta, p.psi)
    Ta += p.Q1 * RRaa + p.q2 * E.RRab  # Eq. (4.7)
    Tb += p.Q1 * E.RRab + p.q2 * RRbb  # Eq. (4.7)
    X1, X2 = sources(t, alpha, Ta, Tb, p.m_hat, p.theta_hat, p.p_hat)  # Eq. (4.8)
    test = T + p.Q1 * t.mean_a + p.q2 * t.mean_b - t.noise  # Eq. (4.11)
    train = T0 + p.Q1 * E.RRa + p.q2 * E.RRb  # Eq. (4.11)
    # the errors of no readout: what errors, sums that may cancel, are compared with
    whole, whole_train, _, _, _, _ = error_averages(t, V1, V2, 0.0, 0.0, 0.0)
    worst = 0.0
    for change in (
        relative(weighted - V1, V1),  # Eq. (5.3)
        relative(inverse - V2, V2),  # Eq. (5.3)
        size(solve_pair(slopes, error)),  # Newton's step, where (5.3) hardly moves V
        relative(along_m, sqrt(gram00 * power)),
        relative(along_theta, sqrt(gram11 * power)),
        relative(p_hat - p.p_hat, max(abs(p.p_hat), sqrt(E.Ra * power))),  # Eq. (4.6)
        relative(weighted2 * X1 + mixed * X2 - p.Q1, p.Q1),  # Eq. (5.3)
        relative(mixed * X1 + inverse2 * X2 - p.q2, p.q2),  # Eq. (5.3)
        relative(test - p.test, max(abs(p.test), SMALLEST_ERROR * whole)),
        relative(train - p.train, max(abs(p.train), SMALLEST_ERROR * whole_train)),
    ):
        if not change <= worst:
            worst = change if isfinite(change) else inf
    return worst


@summed
def averages(t: OneGroup, V1: float, V2: float) -> Averages:
    """Eqs. (4.1), (4.2)"""
    R0 = Ra = Rb = RRa = RRb = RRab = 0.0
    for n in range(t.weights.size):
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
    t: OneGroup, V1: float, V2: float, share: float
) -> tuple[float, float, float, float, float, float, float]:
    """E[R {mu_0^2, mu_0 l, l^2, mu_0 h, l h, mu_1 g, k}], with l = kappa mu_1 - share mu_0.
    Eqs. (4.5), (4.6)"""
    gram00 = gram01 = gram11 = h0 = h1 = p_hat = power = 0.0
    for n in range(t.weights.size):
        wR = t.weights[n] / (1 + V1 * t.a[n] + V2 * t.b[n])
        mu0, h = t.mu0[n], t.h[n]
        loading = t.loading[n] - share * mu0
        gram00 += wR * mu0 * mu0
        gram01 += wR * mu0 * loading
        gram11 += wR * loading * loading
        h0 += wR * mu0 * h
        h1 += wR * loading * h
        p_hat += wR * t.mu1g[n]
        power += wR * (h * h + t.spread[n])
    return gram00, gram01, gram11, h0, h1, p_hat, power


@summed
def error_averages(
    t: OneGroup, V1: float, V2: float, m: float, theta: float, psi: float
) -> tuple[float, float, float, float, float, float]:
    """E[e], E[R^2 e {1, a, b}], E[R^2 {a^2, b^2}], e being (4.7) without its terms in Q1, q2."""
    T = T0 = Ta = Tb = RRaa = RRbb = 0.0
    for n in range(t.weights.size):
        w, a, b = t.weights[n], t.a[n], t.b[n]
        gap = m * t.mu0[n] + theta * t.loading[n] - t.h[n]
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


@compiled
def resolvent(t: OneGroup, level: float, slope: float) -> tuple[float, float, float, float, float]:
    """<1/S>, <D/S>, <1/S^2>, <D/S^2>, <D^2/S^2> for S = level + slope D, as in
    ``solvers.marchenko_pastur``: sums and products of positive terms.  Eqs. (5.1), (5.2)"""
    c, beta, q = t.c, t.beta, t.c * slope
    b = level + (1 - beta) * q
    root = sqrt(level + q * (1 - sqrt(beta)) ** 2) * sqrt(level + q * (1 + sqrt(beta)) ** 2)
    inverse = 2 / (b + root) if b >= 0 else (root - b) / (2 * beta * q * level)
    shrunk = 1 + beta * q * inverse
    weighted = c * inverse / shrunk
    balance = level + q / shrunk**2  # derivative of level M + q M / shrunk = 1 in M = <1/S>
    inverse2, mixed = inverse / balance, weighted / shrunk / balance
    return inverse, weighted, inverse2, mixed, beta * weighted**2 + c / shrunk**2 * mixed


@compiled
def log_residual(
    t: OneGroup, E: Averages, alpha: float, lam: float, V1: float, V2: float
) -> tuple[Pair, Matrix, Pair]:
    """log left - log right of (i) and (ii), the derivatives in log V1 and log V2, and the right
    sides; a negative constant is moved to the other side, so that all sides are positive."""
    ratio, rest = alpha / t.beta, V1 / (t.c * V2)
    left1, right1 = lam * V2 + max(ratio - 1, 0.0), max(1 - ratio, 0.0) + ratio * E.R
    left2, right2 = rest + max(alpha - 1, 0.0), max(1 - alpha, 0.0) + alpha * (E.R + V2 * E.Rb)
    slopes = (
        ratio * V1 * E.RRa / right1,
        lam * V2 / left1 + ratio * V2 * E.RRb / right1,
        rest / left2 + alpha * V1 * (E.RRa + V2 * E.RRab) / right2,
        -rest / left2 - alpha * V1 * V2 * E.RRab / right2,
    )
    return (log(left1 / right1), log(left2 / right2)), slopes, (right1, right2)


@compiled
def sources(
    t: OneGroup, alpha: float, Ta: float, Tb: float, m_hat: float, theta_hat: float, p_hat: float
) -> Pair:
    """X1 and X2 from E[{mu_1^2, mu_2^2} epsilon / (1 + V)^2]; at a finite dimension m_hat acts as
    theta_hat does.  Eq. (4.8)"""
    ratio = alpha / t.beta
    finite = t.dimension * m_hat**2 if m_hat != 0 else 0.0
    X1 = ratio * Ta + alpha * ratio * p_hat**2  # Eq. (4.8)
    return X1, ratio * Tb + alpha * ratio * (t.c * theta_hat**2 + finite)  # Eq. (4.8)


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
