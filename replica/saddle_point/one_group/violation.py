"""Violation of the equations by the numbers of a point, whatever way they were computed.

Eqs. (4.1)-(4.11)"""

from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from ...equivalence import OneGroup, SpecialDirections
from .compilation import compiled, summed
from .one_spike import multiply_block, signal_averages, special_of_spike
from .readout import error_averages, of_signal
from .records import Pair, Point, Signal
from .responses import (
    averages,
    bulk_at,
    from_conjugates,
    larger_modulus,
    log_residual,
    second_moments,
    solve_pair,
)
from .several import gram_of_several, regressor_residual, row_times, special_of_several

# Errors are sums that may cancel, and theta, chi and psi may vanish.  A change of an error is
# relative to at least this share of the error without a readout, a change of an overlap to at least
# this share of an overlap that makes the output as large as the target.
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
    """Largest relative change of an unknown by its own equation on the table ``t``, with all others
    as in ``p``.  Eqs. (4.1)-(4.11)"""
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
    # errors without a readout, which set the scale of errors
    test_scale, train_scale = errors_without_readout(t, V1, V2)
    scale = alpha * V2_again
    worst = violation_of_signal(t, one_spike, several, E.Ra, V1, V2, scale, C, s)
    for change in (
        relative(V1_again - V1, V1),
        relative(V2_again - V2, V2),
        larger_modulus(solve_pair(slopes, error)),  # Newton's step, where (5.3) hardly moves V
        relative(V1_hat - p.V1_hat, p.V1_hat),
        relative(V2_hat - p.V2_hat, p.V2_hat),
        relative(X1 - p.X1, p.X1),
        relative(X2 - p.X2, p.X2),
        relative(Q1 + Q1_signal + psi2 - p.Q1, p.Q1),
        relative(q2 - p.q2, p.q2),
        relative(test - p.test, max(abs(p.test), SMALLEST_ERROR * test_scale)),
        relative(train - p.train, max(abs(p.train), SMALLEST_ERROR * train_scale)),
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
    """Largest relative change of the signal by its own equations.  Eqs. (4.5), (4.13), (16.10)

    Conjugates are relative to the size of the target, overlaps to their part of the output.
    ``of_zeta`` is E[mu_1^2 R], and ``scale`` is alpha V2.
    """
    residual: Any
    new_overlap: Any
    size: Any
    if one_spike is not None:
        F = signal_averages(t, t.rows, V1, V2, 0.0, 0.0)
        (theta, chi, psi), new_overlap, m = s.special, multiply_block(C, s.special_hat), s.m
        residual = (
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
        residual, new_overlap, size = np.zeros(n + 1), np.zeros(n), np.zeros(n + 1)
        for i in range(n + 1):
            residual[i], size[i] = regressor_residual(G, s.m, s.special, i), sqrt(G[i, i])
        for i in range(n):
            new_overlap[i] = row_times(C, i, s.special_hat)
    worst = relative(residual[0] - s.m_hat, size[0] * target)
    for k in range(len(new_overlap)):
        overlap, unit = s.special[k], size[k + 1]
        # an overlap that adds nothing to the output has size 0
        floor = max(unit * abs(overlap), SMALLEST_OVERLAP * target)
        for change in (
            relative(residual[k + 1] - s.special_hat[k], unit * target),
            relative(unit * (scale * new_overlap[k] - overlap), floor),
        ):
            if not change <= worst:
                worst = change if isfinite(change) else inf
    return worst


@summed
def errors_without_readout(t: OneGroup, V1: float, V2: float) -> Pair:
    """Averages E[e] and E[R^2 e] of ``error_averages`` without any overlap."""
    T = T0 = 0.0
    for n in range(len(t.weights)):
        error = t.weights[n] * (t.h[n] * t.h[n] + t.spread[n] + t.noise)
        T += error
        T0 += error / (1 + V1 * t.a[n] + V2 * t.b[n]) ** 2
    return T, T0


@compiled
def relative(change: float, reference: float) -> float:
    """Relative change |change| / |reference|; |change| itself if the reference is 0."""
    return abs(change) / (abs(reference) if reference != 0 else 1.0)
