"""What every giant step does to a row of the first layer.  docs/theory.md 16, 18

A step adds to all rows the same vector, and maps a row less that, v, and the fluctuation of its
squared norm, delta, linearly (18.1).  All it takes of the batch is the law of the residual
rho = y - mu_0(kappa) together with the projections of the input on the few directions that the
labels know: those of the target, and the spike S of the rows before the step.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from solvers.quadrature import QuadratureError
from solvers.results import Array
from solvers.rules import Rule, interval, trapezoid

from ..saddle_point import Batch
from .residual_law import RESIDUAL_LEVELS, Labels, Student, residuals
from .step import Step

# Of averages over a batch, relative to their size; and of a target of several directions.
TOLERANCE, TENSOR_TOLERANCE = 1e-10, 1e-8
# Rules for kappa, finer and finer.
KAPPA_RULES = [trapezoid(n, interval(n)) for n in (40, 56, 80, 112, 160, 240, 400, 800)]


class State(NamedTuple):
    """Rows before a step: S, in the coordinates of the special directions e_0, e_1, ...; and c."""

    spike: Array
    c: float


class FirstSample(NamedTuple):
    """A sample of the first step: T of (18.9) has t12 = ``linear`` rho and t11 = ``square`` rho^2,
    rho being y - ``offset``."""

    offset: float
    linear: float
    square: float


def row_steps(step: Step) -> tuple[tuple[Batch, ...], State]:
    """The batches of all steps of ``step``, the last one first, and the rows after them.

    Raises
    ------
    QuadratureError
        If averages over a batch do not settle.
    """
    K, T = step.target.dimension, len(step.schedule)
    values = step.readout.values
    readout = values[0] if len(values) == 1 else 0.0  # that of no step does not matter
    state = State(np.zeros(K + T), 1.0)
    batches: list[Batch] = []
    for t, (alpha, eta) in enumerate(step.schedule):
        batch, state = _settled(step, state, t, alpha, eta, readout)
        batches.insert(0, batch)
    return tuple(batches), state


def first_sample(step: Step) -> FirstSample:
    """What a sample of the first step of ``step`` adds to the pencil."""
    alpha, eta = step.schedule[0]
    readout = step.readout.values[0]
    of, rate = _student(step, np.zeros(1), 1.0, readout), eta * readout
    return FirstSample(of.mu0[0], rate * of.m2[0], rate**2 / alpha * of.s02[0])


def _settled(
    step: Step, state: State, t: int, alpha: float, eta: float, readout: float
) -> tuple[Batch, State]:
    """The batch of step ``t`` and the rows after it, on nodes fine enough."""

    K = step.target.dimension
    r = float(np.linalg.norm(state.spike))
    unit = state.spike / r if r else state.spike
    rate = eta * readout

    @lru_cache
    def on(of_kappa: int, level: int) -> tuple[Batch, State]:
        """On the nodes ``of_kappa``, with those of rho given kappa of ``level``."""
        rule = KAPPA_RULES[of_kappa] if r else Rule(np.zeros(1), np.ones(1))
        moments = _student(step, r * rule.nodes, state.c, readout)
        labels = residuals(step.step_labels, rule, unit, K, moments, rate / alpha, level)
        directions = np.eye(K, len(unit))
        if len(labels.weights) > K + 1:
            outside = np.where(np.arange(len(unit)) < K, 0.0, unit)
            directions = np.vstack([directions, outside / np.linalg.norm(outside)])
        return _after(moments, labels, state, directions, K + t, alpha, rate)

    tol = TOLERANCE if K == 1 else TENSOR_TOLERANCE
    level = _first_settled(lambda level: on(0, level), RESIDUAL_LEVELS, tol, t)
    best = _first_settled(lambda of_kappa: on(of_kappa, level), len(KAPPA_RULES), tol, t)
    return on(best, level)


def _first_settled(
    candidate: Callable[[int], tuple[Batch, State]], count: int, tol: float, t: int
) -> int:
    """The first of ``count`` candidates that the next one agrees with: what changes is its
    error."""
    change = np.inf
    for i in range(count - 1):
        (before, _), (now, size) = _probe(*candidate(i)), _probe(*candidate(i + 1))
        change = float((np.abs(now - before) / size).max())
        if change <= tol:
            return i
    raise QuadratureError(
        f"the averages over the batch of step {t + 1} did not settle to {tol:g} "
        f"(last change {change:.1e})"
    )


def _probe(batch: Batch, after: State) -> tuple[Array, Array]:
    """Averages over a batch of the kind that the pencil takes, and those of their moduli."""
    strength = (batch.t11 + batch.t12**2 / batch.alpha) / batch.alpha
    by = 1 / (1 + np.array([0.0, 0.01, 0.1, 1.0]) * strength[:, None])
    pairs = batch.pairs.reshape(len(strength), -1).T
    numbers = np.array([batch.g, batch.v, after.c, *after.spike])
    sizes = np.array([1.0, 1 + batch.v, after.c, *(1 + np.abs(after.spike))])
    values = np.concatenate([(pairs @ by).ravel(), numbers])
    return values, np.concatenate([(np.abs(pairs) @ by).ravel(), sizes]) + 1e-300


def _student(step: Step, shift: Array, c: float, readout: float) -> Student:
    """Eq. (18.3), mu_0 being multiplied by the ``readout``."""
    mu0 = readout * step.student.moments(shift, c).mean
    mu1, m2, m3, m4, s02, s12, s22, s03, s13, s04 = step.student.slope_moments_at(shift, c)
    root = np.sqrt(c)
    return Student(
        mu0, mu1, m2 / root, m3 / c, m4 / c**1.5, s02, root * s12, c * s22, s03, root * s13, s04
    )


def _after(
    of: Student, labels: Labels, state: State, directions: Array, own: int, alpha: float, eta: float
) -> tuple[Batch, State]:
    """The batch as the equations need it, and the rows after the step.  Eqs. (18.4)-(18.8)"""
    rho, c = labels.rho, state.c
    w = labels.weights[0, 0]
    of = Student(*(part[:, None] for part in of))
    ea = eta / alpha

    def E(f: Array) -> float:
        return float((w * f).sum())

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

    force = rho * of.mu1  # Eq. (18.8)
    along = (labels.weights[0, 1:] * force).sum(axis=(1, 2))
    noise = np.sqrt(E(force**2))
    spike = state.spike + eta * along @ directions
    spike[own] += eta * noise / np.sqrt(alpha)
    after = State(spike, pi2 * c + E(t11))

    phi = force / noise if noise else np.zeros_like(force)  # Eq. (18.10)
    functions = np.stack(np.broadcast_arrays(phi, F, lam, L))
    D = len(directions)
    pairs = np.empty((D + 4, D + 4, *w.shape))
    pairs[:D, :D] = labels.weights[1:, 1:]
    pairs[:D, D:] = labels.weights[1:, :1] * functions
    pairs[D:, :D] = pairs[:D, D:].swapaxes(0, 1)
    pairs[D:, D:] = w * functions[:, None] * functions
    flat = np.moveaxis(pairs.reshape(D + 4, D + 4, -1), -1, 0)
    return Batch(alpha, w.ravel(), t11.ravel(), t12.ravel(), flat, directions, own, g, v), after
