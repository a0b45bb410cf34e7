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

from ..saddle_point import Batch, GroupBatch
from .one_step import GROUPS
from .residual_law import RESIDUAL_LEVELS, Labels, residuals
from .step import Step

# Of averages over a batch, relative to their size; and of a target of several directions.
TOLERANCE, TENSOR_TOLERANCE = 1e-11, 1e-8
ROUNDING = 1e-14  # of moments of sigma', relative to its size: those of a symmetric one vanish
# Rules for kappa, finer and finer.
KAPPA_RULES = [trapezoid(n, interval(n)) for n in (40, 56, 80, 112, 160, 240, 400, 800)]


class State(NamedTuple):
    """Rows before a step: S, in the coordinates of the special directions e_0, e_1, ...; and c."""

    spike: Array
    c: float


class FirstSample(NamedTuple):
    """A sample of the first step: T of (18.9) has t12 = ``linear`` rho and t11 = ``square`` rho^2,
    rho being y - ``offset``; of A kinds of neurons, arrays (A,)."""

    offset: float
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
    """What samples of residual rho do to rows of one kind, of the shape of rho, and numbers of the
    whole batch.  Eqs. (18.5)-(18.8)

    Attributes
    ----------
    t11, t12, F, lam, L : array
    force : array
        rho mu_1, the sample's weight in the spike.
    g, v, c : float
        Of the fluctuation of the norms, and the bulk variance after the step.
    """

    t11: Array
    t12: Array
    F: Array
    lam: Array
    L: Array
    force: Array
    g: float
    v: float
    c: float


def row_steps(step: Step) -> tuple[tuple[Batch, ...], State]:
    """The batches of all steps of ``step``, the last one first, and the rows after them; of one
    kind of neurons.

    Raises
    ------
    QuadratureError
        If averages over a batch do not settle.
    """
    K, T = step.target.dimension, len(step.schedule)
    state = State(np.zeros(K + T), 1.0)
    batches: list[Batch] = []
    for t, (alpha, eta) in enumerate(step.schedule):
        batch, state = _settled(step, state, t, alpha, eta)
        batches.insert(0, batch)
    return tuple(batches), state


def group_step(step: Step, kinds: Kinds) -> GroupBatch:
    """The batch of a single ``step`` as several ``kinds`` of neurons see it.

    Raises
    ------
    QuadratureError
        If averages over the batch do not settle.
    """
    ((alpha, eta),) = step.schedule
    K = step.target.dimension
    first = first_sample(step, kinds)
    of = _student(step, kinds.bias, 1.0)
    root = float(np.sqrt((first.square / alpha + (first.linear / alpha) ** 2).max()))
    offset, none = np.array([first.offset]), np.zeros(K + 1)
    one = Rule(np.zeros(1), np.ones(1))

    def on(level: int) -> tuple[Labels, list[Sample]]:
        labels = residuals(step.step_labels, one, none, K, offset, root, level)
        moments = (Student(*(part[b : b + 1, None] for part in of)) for b in range(len(of.mu1)))
        rates = eta * kinds.readout
        return labels, [
            _sample(each, labels, 1.0, alpha, rate)
            for each, rate in zip(moments, rates, strict=True)
        ]

    def probe(level: int) -> tuple[Array, Array]:
        labels, samples = on(level)
        state = State(none, 1.0)
        probes = [
            _probe(*_after(each, labels, state, np.eye(K, K + 1), K, alpha, 1.0))
            for each in samples
        ]
        return np.concatenate([p[0] for p in probes]), np.concatenate([p[1] for p in probes])

    level = _first_settled(probe, RESIDUAL_LEVELS, TOLERANCE if K == 1 else TENSOR_TOLERANCE, 0)
    labels, samples = on(level)
    weights = np.moveaxis(labels.weights[:, :, 0], -1, 0)
    F, lam, L = (
        np.stack([np.broadcast_to(getattr(each, name), labels.rho.shape)[0] for each in samples])
        for name in ("F", "lam", "L")
    )
    g, v = (np.array([getattr(each, name) for each in samples]) for name in ("g", "v"))
    return GroupBatch(
        alpha, labels.rho[0], weights[:, 0, 0], first.square, first.linear, weights, F, lam, L, g, v
    )


def first_sample(step: Step, kinds: Kinds) -> FirstSample:
    """What a sample of the first step of ``step`` adds to the pencil of ``kinds`` of neurons."""
    alpha, eta = step.schedule[0]
    of, rate = _student(step, kinds.bias, 1.0), eta * kinds.readout
    return FirstSample(_output(step, np.zeros(1), 1.0)[0], rate * of.m2, rate**2 / alpha * of.s02)


def first_effects(step: Step, kinds: Kinds) -> tuple[Array, Array]:
    """All that (18.3)-(18.7) ask of the ``kinds`` of neurons in the first step: numbers that
    multiply an even number of delta (A, 6), and an odd one (A, 3)."""
    of, rate = _student(step, kinds.bias, 1.0), step.schedule[0][1] * kinds.readout
    even = [rate * of.m2, rate * of.m4, rate**2 * of.s02]
    even += [rate**2 * of.s22, rate**3 * of.s13, rate**4 * of.s04]
    odd = (rate * of.m3, rate**2 * of.s12, rate**3 * of.s03)
    return np.column_stack(even), np.column_stack(odd)


def one_kind(step: Step) -> Kinds:
    """The kind of the neurons of ``step``, where there is one; the readout of no step is none."""
    values = step.readout.values
    return Kinds(np.array(values if len(values) == 1 else (0.0,)), np.array(step.bias.values[:1]))


def _settled(step: Step, state: State, t: int, alpha: float, eta: float) -> tuple[Batch, State]:
    """The batch of step ``t`` and the rows after it, on nodes fine enough."""

    K, kind = step.target.dimension, one_kind(step)
    r = float(np.linalg.norm(state.spike))
    unit = state.spike / r if r else state.spike
    rate = eta * kind.readout[0]

    @lru_cache
    def on(of_kappa: int, level: int) -> tuple[Batch, State]:
        """On the nodes ``of_kappa``, with those of rho given kappa of ``level``."""
        rule = KAPPA_RULES[of_kappa] if r else Rule(np.zeros(1), np.ones(1))
        of = _student(step, r * rule.nodes + kind.bias, state.c)
        root = abs(rate) / alpha * float(np.sqrt((of.s02 + of.m2**2).max()))
        offset = _output(step, r * rule.nodes, state.c)
        labels = residuals(step.step_labels, rule, unit, K, offset, root, level)
        directions = np.eye(K, len(unit))
        if len(labels.weights) > K + 1:
            outside = np.where(np.arange(len(unit)) < K, 0.0, unit)
            directions = np.vstack([directions, outside / np.linalg.norm(outside)])
        sample = _sample(Student(*(part[:, None] for part in of)), labels, state.c, alpha, rate)
        return _after(sample, labels, state, directions, K + t, alpha, rate)

    tol = TOLERANCE if K == 1 else TENSOR_TOLERANCE
    level = _first_settled(lambda level: _probe(*on(0, level)), RESIDUAL_LEVELS, tol, t)
    best = _first_settled(lambda of_kappa: _probe(*on(of_kappa, level)), len(KAPPA_RULES), tol, t)
    return on(best, level)


def _first_settled(
    probe: Callable[[int], tuple[Array, Array]], count: int, tol: float, t: int
) -> int:
    """The first of ``count`` candidates that the next one agrees with: what changes of the
    averages that ``probe`` gives, with their sizes, is its error."""
    change, (now, size) = np.inf, probe(0)
    for i in range(count - 1):
        before, (now, size) = now, probe(i + 1)
        change = float((np.abs(now - before) / size).max())
        if change <= tol:
            return i
    raise QuadratureError(
        f"the averages over the batch of step {t + 1} did not settle to {tol:g} "
        f"(last change {change:.1e})"
    )


def _probe(batch: Batch, after: State) -> tuple[Array, Array]:
    """Averages over a batch of the kind that the pencil takes, and their sizes."""
    strength = (batch.t11 + batch.t12**2 / batch.alpha) / batch.alpha
    by = 1 / (1 + np.array([0.0, 0.01, 0.1, 1.0]) * strength[:, None])
    values = np.einsum("mij,mx->ijx", batch.pairs, by)
    power = np.einsum("mii,mx->ix", np.abs(batch.pairs), by)
    sizes = np.sqrt(power[:, None] * power)  # of a product, which may vanish
    numbers = np.array([batch.g, batch.v, after.c, *after.spike])
    largest = np.array([1.0, 1 + batch.v, after.c, *(1 + np.abs(after.spike))])
    return np.append(values, numbers), np.append(sizes, largest) + 1e-300


def _output(step: Step, shift: Array, c: float) -> Array:
    """The mean output of the network at ``shift`` of all neurons, but for their biases."""
    values, shares = step.readout.discretise(GROUPS[-1])
    biases = zip(step.bias.values, step.bias.fractions, strict=True)
    mean = sum(share * step.student.moments(shift + bias, c).mean for bias, share in biases)
    return np.asarray(values @ shares * mean)


def _student(step: Step, shift: Array, c: float) -> Student:
    """Eq. (18.3)"""
    moments = step.student.slope_moments_at(shift, c)
    size = np.sqrt((moments[0] ** 2 + moments[1] ** 2 + moments[4]).max())
    rounding = ROUNDING * size ** np.array([1, 1, 1, 1, 2, 2, 2, 3, 3, 4])[:, None]
    mu1, m2, m3, m4, s02, s12, s22, s03, s13, s04 = np.where(
        np.abs(moments) > rounding, moments, 0.0
    )
    root = np.sqrt(c)
    return Student(
        mu1, m2 / root, m3 / c, m4 / c**1.5, s02, root * s12, c * s22, s03, root * s13, s04
    )


def _sample(of: Student, labels: Labels, c: float, alpha: float, eta: float) -> Sample:
    """What the samples do to rows of bulk variance ``c``.  Eqs. (18.4)-(18.8)"""
    rho, w, ea = labels.rho, labels.weights[0, 0], eta / alpha

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

    return Sample(t11, t12, F, lam, L, rho * of.mu1, g, v, pi2 * c + E(t11))


def _after(
    sample: Sample,
    labels: Labels,
    state: State,
    directions: Array,
    own: int,
    alpha: float,
    eta: float,
) -> tuple[Batch, State]:
    """The batch as the equations need it, and the rows after the step."""
    w, force = labels.weights[0, 0], sample.force
    along = (labels.weights[0, 1:] * force).sum(axis=(1, 2))  # Eq. (18.8)
    noise = np.sqrt(float((w * force**2).sum()))
    spike = state.spike + eta * along @ directions
    spike[own] += eta * noise / np.sqrt(alpha)

    phi = force / noise if noise else np.zeros_like(force)  # Eq. (18.10)
    functions = np.stack(np.broadcast_arrays(phi, sample.F, sample.lam, sample.L))
    D = len(directions)
    pairs = np.empty((D + 4, D + 4, *w.shape))
    pairs[:D, :D] = labels.weights[1:, 1:]
    pairs[:D, D:] = labels.weights[1:, :1] * functions
    pairs[D:, :D] = pairs[:D, D:].swapaxes(0, 1)
    pairs[D:, D:] = w * functions[:, None] * functions
    flat = np.moveaxis(pairs.reshape(D + 4, D + 4, -1), -1, 0)
    t11, t12 = sample.t11.ravel(), sample.t12.ravel()
    batch = Batch(alpha, w.ravel(), t11, t12, flat, directions, own, sample.g, sample.v)
    return batch, State(spike, sample.c)
