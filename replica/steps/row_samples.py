"""Weights of a sample of a giant step in the rows of a kind of neurons.  docs/theory.md 18

They are products of moments of sigma' at every kappa (18.3) and powers of the sample's residual
rho: the weights in P and B, in the spike and in delta (18.5).  Their averages give the fluctuation
of the norms (18.6)-(18.7).
"""

from typing import NamedTuple

import numpy as np

from solvers.results import Array

from .residual_law import ResidualLaw
from .several_steps import mean_output
from .step_fields import Step


class FirstSampleWeights(NamedTuple):
    """Weights of a sample of the first step in the matrix T of (18.9), for A kinds of neurons.

    t12 = ``linear`` rho and t11 = ``square`` rho^2, with rho = y - ``offset``; the shapes are (A,),
    (A,) and (1,).
    """

    offset: Array
    linear: Array
    square: Array


class Kinds(NamedTuple):
    """Kinds of neurons before the first step: first-step readout and bias of each, (A,)."""

    readout: Array
    bias: Array


class StudentMoments(NamedTuple):
    """Moments of the student's derivative.  Eq. (18.3)"""

    mu1: Array
    m2: Array
    m3: Array
    m4: Array
    s02: Array
    s12: Array
    s22: Array
    s03: Array
    s13: Array
    s04: Array


class SampleWeights(NamedTuple):
    """Weights of samples of residual rho in rows of A kinds, and averages over the batch.
    Eqs. (18.5)-(18.8)

    Attributes
    ----------
    t11, t12, F, lam, L : (A, N, m)
        Weights of (18.5).
    force : (A, N, m)
        rho mu_1, the weight in the spike.
    g, v : (A,)
        Gain and noise of the norm fluctuation, (18.6)-(18.7).
    c : (A,)
        Bulk variance after the step.
    """

    t11: Array
    t12: Array
    F: Array
    lam: Array
    L: Array
    force: Array
    g: Array
    v: Array
    c: Array


def first_sample_weights(step: Step, kinds: Kinds) -> FirstSampleWeights:
    """Weights of a sample of the first step in the pencil of ``kinds`` of neurons."""
    alpha, eta = step.schedule[0]
    slopes, rates = student_moments(step, kinds.bias, 1.0), eta * kinds.readout
    mean_label_offset = mean_output(step, np.zeros(1), 1.0)
    return FirstSampleWeights(mean_label_offset, rates * slopes.m2, rates**2 / alpha * slopes.s02)


def first_step_coefficients(step: Step, kinds: Kinds) -> tuple[Array, Array]:
    """Coefficients through which the first step depends on the kind of neurons, (18.3)-(18.7).

    Coefficients (A, 6) of terms of even order in delta, and (A, 3) of terms of odd order.
    """
    slopes, rates = student_moments(step, kinds.bias, 1.0), step.schedule[0][1] * kinds.readout
    even_rate_terms = [rates * slopes.m2, rates * slopes.m4, rates**2 * slopes.s02]
    even_rate_terms += [rates**2 * slopes.s22, rates**3 * slopes.s13, rates**4 * slopes.s04]
    odd_rate_terms = (rates * slopes.m3, rates**2 * slopes.s12, rates**3 * slopes.s03)
    return np.column_stack(even_rate_terms), np.column_stack(odd_rate_terms)


def student_moments(step: Step, shift: Array, c: float) -> StudentMoments:
    """Moments (18.3) of the student at ``shift`` + sqrt(c) z."""
    slope_moments = step.student.slope_moments_at(shift, c)
    moment_scale = np.sqrt((slope_moments[0] ** 2 + slope_moments[1] ** 2 + slope_moments[4]).max())
    # moments of a symmetric sigma' that vanish up to rounding are set to 0
    negligible_moment = 1e-14 * moment_scale ** np.array([1, 1, 1, 1, 2, 2, 2, 3, 3, 4])
    slope_moments = np.where(np.abs(slope_moments.T) > negligible_moment, slope_moments.T, 0.0).T
    powers_of_c = np.array([0, -1, -2, -3, 0, 1, 2, 0, 1, 0])  # of sqrt(c)
    return StudentMoments(*(slope_moments.T * np.sqrt(c) ** powers_of_c).T)


def sample_weights(
    m: StudentMoments, residual_law: ResidualLaw, c: float, alpha: float, eta: Array, decay: float
) -> SampleWeights:
    """Weights of samples in rows of bulk variance ``c``.  Eqs. (18.4)-(18.8)

    The student moments ``m`` have the shape (A, N, 1), rates ``eta`` (A, 1, 1).  Weight decay
    multiplies rows by ``decay``.
    """
    # weight decay: a step at the rate eta / factor, after which all rows shrink, (19.6)
    eta = eta / decay
    rho, residual_weights, ea = residual_law.rho, residual_law.weights[0, 0], eta / alpha

    def E(sample_values: Array) -> Array:
        return np.asarray((residual_weights * sample_values).sum(axis=(-2, -1), keepdims=True))

    A = rho * m.m2
    k1, k2, k3, k4 = (E(A**j) / alpha ** (j - 1) for j in (1, 2, 3, 4))  # free cumulants
    M2, M3 = k2 + k1**2, k3 + 3 * k1 * k2 + k1**3
    M4 = k4 + 4 * k1 * k3 + 2 * k2**2 + 6 * k1**2 * k2 + k1**4
    pi1, pi2 = 1 + eta * k1, 1 + 2 * eta * k1 + eta**2 * M2
    pi4 = 1 + 4 * eta * k1 + 6 * eta**2 * M2 + 4 * eta**3 * M3 + eta**4 * M4
    q1 = pi1 + ea * A  # Eq. (18.4)
    Dp = 2 * pi1 * ea * A + (ea * A) ** 2
    vy = pi2 - pi1**2

    t12, t11 = eta * A, eta * ea * rho**2 * m.s02  # Eq. (18.5)
    lam = eta / 2 * rho * m.m3
    L = 2 * eta * c * rho * q1 * m.m3 + eta * ea * rho**2 * m.s12 / c
    F = eta * c**2 * rho * Dp * m.m3 + 2 * eta * ea * rho**2 * q1 * m.s12
    F = F + eta * ea**2 * rho**3 * m.s03

    second_slope = (m.s22 - c * m.s02) / c**2  # Eq. (18.6)
    g = pi2 + eta * c * E(rho * q1 * m.m4) + eta * ea / 2 * E(rho**2 * second_slope)
    v = 2 * c**2 * (pi4 - pi2**2) + 4 * eta * c**3 * E(rho * q1 * Dp * m.m4)  # Eq. (18.7)
    v += 2 * eta * ea * c**2 * E(rho**2 * Dp * second_slope)
    v += 4 * eta * ea * E(rho**2 * (q1**2 * (m.s22 - c**3 * m.m3**2) + c * vy * m.s02))
    v += 4 * eta * ea**2 * E(rho**3 * q1 * (m.s13 - c * m.m3 * m.s12))
    v += eta * ea**3 * E(rho**4 * (m.s04 - m.s02**2 - m.s12**2 / c))
    v += 2 * (eta * ea * E(rho**2 * m.s02)) ** 2

    factor2 = decay**2
    g_v_c = (x[..., 0, 0] for x in (factor2 * g, factor2**2 * v, factor2 * (pi2 * c + E(t11))))
    decayed_weights = factor2 * t11, decay * t12, decay * factor2 * F, decay * lam, factor2 * L
    return SampleWeights(*decayed_weights, rho * m.mu1, *g_v_c)
