"""Overlaps, conjugates and errors of one group, at its responses.  Eqs. (4.2), (4.5)-(4.11)"""

from typing import Any

from solvers.chebyshev import HalfLine

from ...equivalence import OneGroup, SpecialDirections
from .compilation import compiled, summed
from .one_spike import block_form, signal_of_spike, special_of_spike
from .records import Point, Signal, Triple
from .responses import averages, bulk_at, log_residual, second_moments, solve_pair
from .several import errors_of_several, form_of_several, signal_of_several, special_of_several


@compiled
def readout(
    t: OneGroup,
    one_spike: bool | None,
    several: SpecialDirections | None,
    alpha: float,
    lam: float,
    W1: float,
    V2: float,
) -> Point:
    """Overlaps, conjugates and errors that follow from V1 and V2.  Eqs. (4.2), (4.5)-(4.11)"""
    ratio, bulk = alpha / t.beta, bulk_at(t, t.rows, W1, V2)
    V1 = bulk.V1
    E = averages(t, V1, V2)
    V1_hat, V2_hat = ratio * E.Ra, ratio * E.Rb  # Eq. (4.2)
    q = t.beta * V2 * V1_hat
    if one_spike is not None:
        C, slope = special_of_spike(t, t.rows, q)
        s = signal_of_spike(t, alpha * V2, V1, V2, q, C)
    if several is not None:
        C, slope = special_of_several(t, t.rows, len(several.loadings), q)
        s = signal_of_several(t, several, alpha * V2, V1, V2, C)
    X2_signal, Q1_signal, psi2 = of_signal(t, one_spike, several, alpha, V2, q, C, slope, s)
    # Eq. (4.7) is linear in (Q1, q2): its other terms first
    T, T0, Ta, Tb, RRaa, RRbb = error_averages(t, t.rows, one_spike, several, V1, V2, s)
    Ta += Q1_signal * RRaa
    Tb += Q1_signal * E.RRab
    X1, X2 = ratio * Ta, ratio * Tb + X2_signal  # Eq. (4.8) without Q
    # (4.7)-(4.10) as one linear system: minus the derivative of (i), (ii) under V_hat + s X
    _, slopes, (side1, side2) = log_residual(t, E, alpha, lam, bulk, V2)
    d1, d2 = solve_pair(slopes, ((X1 * V1 + X2 * V2) / side1, t.beta * X1 * V1 / side2))
    d1 = bulk.slope * d1 + (1 - bulk.slope) * d2  # of log V1
    X1 += ratio * (V1 * d1 * RRaa + V2 * d2 * E.RRab)  # Eq. (4.8)
    X2 += ratio * (V1 * d1 * E.RRab + V2 * d2 * RRbb)  # Eq. (4.8)
    # (4.9) once more by itself: a q2 much smaller than V2 is lost in the joint system
    Q1, q2 = second_moments(t, V2, V1_hat, lam + V2_hat, X1, X2)
    Q1 += Q1_signal
    test = T + Q1 * t.mean_a + q2 * t.mean_b - t.noise  # Eq. (4.11)
    train = T0 + Q1 * E.RRa + q2 * E.RRb  # Eq. (4.11)
    return Point(V1, V2, Q1 + psi2, q2, V1_hat, V2_hat, X1, X2, test, train, W1, s)


@compiled
def of_signal(
    t: OneGroup,
    one_spike: bool | None,
    several: SpecialDirections | None,
    alpha: float,
    V2: float,
    q: float,
    C: Any,
    slope: Any,
    s: Signal,
) -> Triple:
    """Contributions of the signal to X2, the last term of (4.8), and to Q1, the term of (15.8) and,
    separately where psi has a loading, psi^2.  At a finite dimension m_hat acts as theta_hat
    does."""
    hats, scale, psi2, psi2_loading = s.special_hat, alpha**2 / t.beta, 0.0, 0.0
    if one_spike is not None:
        psi2, minus_dC, C_form = s.special[2] ** 2, -block_form(slope, hats), block_form(C, hats)
    if several is not None:
        for k in range(len(hats) - several.zetas, len(hats)):
            psi2_loading += s.special[k] ** 2
        minus_dC, C_form = -form_of_several(slope, hats), form_of_several(C, hats)
    X2 = scale * (C_form - q * minus_dC)  # Eqs. (4.8), (15.8)
    if s.m_hat != 0:
        X2 += scale * t.dimension * s.m_hat**2
    return X2, psi2 + (alpha * V2) ** 2 * minus_dC, psi2_loading


@summed
def error_averages(
    t: OneGroup,
    rows: HalfLine | None,
    one_spike: bool | None,
    several: SpecialDirections | None,
    V1: float,
    V2: float,
    s: Signal,
) -> tuple[float, float, float, float, float, float]:
    """Averages E[e], E[R^2 e {1, a, b}], E[R^2 {a^2, b^2}] for e, (4.7) without its terms in Q1,
    q2."""
    T = T0 = Ta = Tb = RRaa = RRbb = 0.0
    if several is not None:
        errors = errors_of_several(t, several, s.m, s.special)
    if one_spike is not None:
        theta, chi, psi = s.special
    for n in range(len(t.weights)):
        w, a, b = t.weights[n], t.a[n], t.b[n]
        if several is not None:
            error = errors[n]
        if one_spike is not None:
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
