"""What a sample of a giant step does to the rows of a kind of neurons.  docs/theory.md 18

Of the student these are moments of sigma' at every kappa (18.3); of the sample, functions of its
residual rho: its weights in P and B, in the spike and in delta (18.5), and what they add up to in
the fluctuation of the norms (18.6)-(18.7).
"""

from typing import NamedTuple

import numpy as np

from solvers.results import Array

from .one_step import output
from .residual_law import ResidualLaw
from .step import Step


class FirstSample(NamedTuple):
    """A sample of the first step: T of (18.9) has t12 = ``linear`` rho and t11 = ``square`` rho^2,
    rho being y - ``offset`` (1,); of A kinds of neurons, arrays (A,)."""

    offset: Array
    linear: Array
    square: Array


class Kinds(NamedTuple):
    """Kinds of neurons before the first step: first-step readout and bias of each, (A,)."""

    readout: Array
    bias: Array


class Student(NamedTuple):
    """Moments of the student.  Eq. (18.3)"""

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


class Sample(NamedTuple):
    """What samples of residual rho do to rows of A kinds, and numbers of the whole batch.
    Eqs. (18.5)-(18.8)

    Attributes
    ----------
    t11, t12, F, lam, L : (A, N, m)
    force : (A, N, m)
        rho mu_1, the sample's weight in the spike.
    g, v, c : (A,)
        Of the fluctuation of the norms, and the bulk variance after the step.
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


def first_sample(step: Step, kinds: Kinds) -> FirstSample:
    """What a sample of the first step of ``step`` adds to the pencil of ``kinds`` of neurons."""
    alpha, eta = step.schedule[0]
    of, rate = student(step, kinds.bias, 1.0), eta * kinds.readout
    return FirstSample(output(step, np.zeros(1), 1.0), rate * of.m2, rate**2 / alpha * of.s02)


def first_effects(step: Step, kinds: Kinds) -> tuple[Array, Array]:
    """All that (18.3)-(18.7) ask of the ``kinds`` of neurons in the first step: numbers that
    multiply an even number of delta (A, 6), and an odd one (A, 3)."""
    of, rate = student(step, kinds.bias, 1.0), step.schedule[0][1] * kinds.readout
    even = [rate * of.m2, rate * of.m4, rate**2 * of.s02]
    even += [rate**2 * of.s22, rate**3 * of.s13, rate**4 * of.s04]
    odd = (rate * of.m3, rate**2 * of.s12, rate**3 * of.s03)
    return np.column_stack(even), np.column_stack(odd)


def student(step: Step, shift: Array, c: float) -> Student:
    """Eq. (18.3)"""
    moments = step.student.slope_moments_at(shift, c)
    size = np.sqrt((moments[0] ** 2 + moments[1] ** 2 + moments[4]).max())
    # those of a symmetric sigma' vanish but for rounding
    rounding = 1e-14 * size ** np.array([1, 1, 1, 1, 2, 2, 2, 3, 3, 4])
    moments = np.where(np.abs(moments.T) > rounding, moments.T, 0.0).T
    powers = np.array([0, -1, -2, -3, 0, 1, 2, 0, 1, 0])  # of sqrt(c)
    return Student(*(moments.T * np.sqrt(c) ** powers).T)


def sample(
    of: Student, labels: ResidualLaw, c: float, alpha: float, eta: Array, kept: float
) -> Sample:
    """What the samples do to rows of bulk variance ``c``, of which weight decay leaves what is
    ``kept``, of the moments ``of`` (A, N, 1) and the rates ``eta`` (A, 1, 1).
    Eqs. (18.4)-(18.8)"""
    # such a step is one at the rate eta / kept, after which all rows become shorter: Eq. (19.6)
    eta = eta / kept
    rho, w, ea = labels.rho, labels.weights[0, 0], eta / alpha

    def E(f: Array) -> Array:
        return np.asarray((w * f).sum(axis=(-2, -1), keepdims=True))

    A = rho * of.m2
    k1, k2, k3, k4 = (E(A**j) / alpha ** (j - 1) for j in (1, 2, 3, 4))  # free cumulants
    M2, M3 = k2 + k1**2, k3 + 3 * k1 * k2 + k1**3
    M4 = k4 + 4 * k1 * k3 + 2 * k2**2 + 6 * k1**2 * k2 + k1**4
    pi1, pi2 = 1 + eta * k1, 1 + 2 * eta * k1 + eta**2 * M2
    pi4 = 1 + 4 * eta * k1 + 6 * eta**2 * M2 + 4 * eta**3 * M3 + eta**4 * M4
    q1 = pi1 + ea * A  # Eq. (18.4)
    Dp = 2 * pi1 * ea * A + (ea * A) ** 2
    vy = pi2 - pi1**2

    t12, t11 = eta * A, eta * ea * rho**2 * of.s02  # Eq. (18.5)
    lam = eta / 2 * rho * of.m3
    L = 2 * eta * c * rho * q1 * of.m3 + eta * ea * rho**2 * of.s12 / c
    F = eta * c**2 * rho * Dp * of.m3 + 2 * eta * ea * rho**2 * q1 * of.s12
    F = F + eta * ea**2 * rho**3 * of.s03

    curved = (of.s22 - c * of.s02) / c**2  # Eq. (18.6)
    g = pi2 + eta * c * E(rho * q1 * of.m4) + eta * ea / 2 * E(rho**2 * curved)
    v = 2 * c**2 * (pi4 - pi2**2) + 4 * eta * c**3 * E(rho * q1 * Dp * of.m4)  # Eq. (18.7)
    v += 2 * eta * ea * c**2 * E(rho**2 * Dp * curved)
    v += 4 * eta * ea * E(rho**2 * (q1**2 * (of.s22 - c**3 * of.m3**2) + c * vy * of.s02))
    v += 4 * eta * ea**2 * E(rho**3 * q1 * (of.s13 - c * of.m3 * of.s12))
    v += eta * ea**3 * E(rho**4 * (of.s04 - of.s02**2 - of.s12**2 / c))
    v += 2 * (eta * ea * E(rho**2 * of.s02)) ** 2

    squared = kept**2
    numbers = (x[..., 0, 0] for x in (squared * g, squared**2 * v, squared * (pi2 * c + E(t11))))
    rows = squared * t11, kept * t12, kept * squared * F, kept * lam, squared * L
    return Sample(*rows, rho * of.mu1, *numbers)
