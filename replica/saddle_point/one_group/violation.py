"""How far the numbers of a point are from their equations: an answer is checked by this alone, not
by how it was found.  Eqs. (4.1)-(4.11)"""

from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from ...equivalence import OneGroup, SpecialDirections
from .compilation import compiled, summed
from .one_spike import signal_averages, special_of_spike, times
from .readout import error_averages, of_signal
from .records import Pair, Point, Signal
from .responses import (
    averages,
    bulk_at,
    from_conjugates,
    log_residual,
    second_moments,
    size,
    solve_pair,
)
from .several import along, gram_of_several, row_times, special_of_several

# Errors are sums that may cancel, and theta, chi and psi may vanish.  An error is compared with no
# less than this part of what it is without a readout, and an overlap with no less than this part of
# what would make the output as large as the target.
SMALLEST_ERROR, SMALLEST_OVERLAP = 1e-4, 1e-4


@compiled
def violation(
    t: OneGroup,
    one_spike: bool | None,
    several: SpecialDirections | None,
    alpha: float,
    lam: float,
    p: Point,
) -> float:
    """Largest relative change of any unknown by its own equation on the table ``t``, the rest as
    in ``p``.  Eqs. (4.1)-(4.11)"""
    ratio, V1, V2 = alpha / t.beta, p.V1, p.V2
    E = averages(t, V1, V2)
    V1_hat, V2_hat = ratio * E.Ra, ratio * E.Rb  # Eq. (4.2)
    V1_again, V2_again = from_conjugates(t, V2, V1_hat, lam + V2_hat)
    error, slopes, _ = log_residual(t, E, alpha, lam, bulk_at(t, t.rows, p.W1, V2), V2)
    q = t.beta * V2_again * V1_hat
    if one_spike is not None:
        C, slope = special_of_spike(t, t.rows, q)
    if several is not None:
        C, slope = special_of_several(t, t.rows, len(several.loadings), q)
    s = p.signal
    T, T0, Ta, Tb, RRaa, RRbb = error_averages(t, t.rows, one_spike, several, V1, V2, s)
    X2_signal, Q1_signal, psi2 = of_signal(t, one_spike, several, alpha, V2_again, q, C, slope, s)
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
    worst = violation_of_signal(t, one_spike, several, E.Ra, V1, V2, scale, C, s)
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
    one_spike: bool | None,
    several: SpecialDirections | None,
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
    if one_spike is not None:
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
def no_readout(t: OneGroup, V1: float, V2: float) -> Pair:
    """E[e] and E[R^2 e] of ``error_averages`` without any overlap."""
    T = T0 = 0.0
    for n in range(len(t.weights)):
        error = t.weights[n] * (t.h[n] * t.h[n] + t.spread[n] + t.noise)
        T += error
        T0 += error / (1 + V1 * t.a[n] + V2 * t.b[n]) ** 2
    return T, T0


@compiled
def relative(change: float, reference: float) -> float:
    """|change| over |reference|, or itself where that is 0."""
    return abs(change) / (abs(reference) if reference != 0 else 1.0)
