"""The map of a first-layer row by every giant step.  docs/theory.md 16, 18

A step adds the same vector to all rows.  The rest v of a row and the fluctuation delta of its
squared norm are mapped linearly (18.1).  The map depends on the batch through the joint law of the
residual rho = y - mu_0(kappa) and of the input's projections on a few directions: the target's, and
the spike S of the rows before the step.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from solvers.adaptive import Panels, halve_panels, panels_between
from solvers.quadrature import QuadratureError
from solvers.resources import (
    TIME_LIMIT,
    GivenUp,
    check_time,
    deadline,
    one_thread,
    time_left,
)
from solvers.results import Array
from solvers.rules import Rule, half_range, trapezoid
from solvers.settle import scaled_change, settle

from ..equivalence import Batch
from .residual_law import ResidualLaw, known_inputs, law_of_residuals
from .residual_nodes import RHO_NODES
from .row_samples import Kinds, SampleWeights, StudentMoments, sample_weights, student_moments
from .several_steps import mean_output
from .step import Step

BATCH_TIME = 3 / 4  # part of a call's time limit that the batches of a model may take
SLOWER, SOON = (10, 100), 1 / 10  # factors of smaller rates that are tried, and the part for each
SMALL_WEIGHT = 1e-6  # smaller weights of a sample, in a row of length 1, need fewer digits
# Rules for kappa, finer and finer; if none of them converges, adaptive panels are used.
KAPPA_RULES = [trapezoid(n, half_range(n)) for n in (40, 56, 80, 112, 160, 224)]
# The same range on few nodes: what a residual needs varies slowly with kappa.
LEVEL_RULE = trapezoid(14, half_range(40))


class State(NamedTuple):
    """Rows before a step.

    Attributes
    ----------
    spike : (n,)
        Spike S in the special directions e_0, e_1, ...
    c : (A,)
        Bulk variances of A kinds.
    mean_row : float
        p times the squared length of the mean of the rows less the spike, of a single kind.
    """

    spike: Array
    c: Array
    mean_row: float = 1.0


@one_thread()  # the matrices are small: more threads slow each other down
def row_steps(step: Step, kinds: Kinds) -> tuple[tuple[Batch, ...], State]:
    """Batches of all steps of ``step``, the last one first, and the rows after them.

    Batches hold the weights for ``kinds`` of neurons.  Several kinds are supported for a single
    step; their spikes are parallel, and the direction is returned.

    Raises
    ------
    QuadratureError
        If averages over a batch do not settle, or take too long; it names rates at which they do,
        if some are soon found.
    """
    limit = time_left() if np.isfinite(time_left()) else TIME_LIMIT
    try:
        return _row_steps(step, kinds, BATCH_TIME * limit)
    except QuadratureError as error:
        slower = _slower_steps(step, kinds, SOON * limit)
        raise QuadratureError(f"{error}{slower}; the sRF (--theory srf) needs none") from None


def _slower_steps(step: Step, kinds: Kinds, longest: float) -> str:
    """Hint for an error message: smaller learning rates at which averages over the batches settle
    within ``longest`` seconds, or nothing if they do not."""
    for factor in SLOWER:
        pairs = [(alpha0, eta / factor) for alpha0, eta in step.schedule]
        changed: Any = {"steps": pairs} if len(pairs) > 1 else {"eta": pairs[0][1]}
        with suppress(QuadratureError):
            _row_steps(replace(step, **changed), kinds, longest)
            return f" (they do at eta = {', '.join(f'{eta:.3g}' for _, eta in pairs)})"
    return ""


def _row_steps(step: Step, kinds: Kinds, longest: float) -> tuple[tuple[Batch, ...], State]:
    """Result of :func:`row_steps`; QuadratureError where it takes more than ``longest`` seconds."""
    state = State(np.zeros(step.known_dimension + len(step.schedule)), np.ones(1))
    batches: list[Batch] = []
    try:
        with deadline(longest):
            for t in range(len(step.schedule)):
                batch, state = _refined_batch(step, kinds, state, t)
                batches.insert(0, batch)
    except GivenUp:
        check_time()  # raises GivenUp if the deadline is the caller's
        raise QuadratureError(
            f"the averages over the batch of step {t + 1} do not settle within {longest:.2g} s, a "
            "part of time_limit"
        ) from None
    return tuple(batches), state


def _refined_batch(step: Step, kinds: Kinds, state: State, t: int) -> tuple[Batch, State]:
    """The batch of step ``t`` and the rows after it, on nodes refined until averages converge."""
    (alpha, eta), K, decay_factor = step.schedule[t], step.known_dimension, step.decay_factor(t)
    r, c = float(np.linalg.norm(state.spike)), state.c[0]  # c is equal for all kinds
    unit = state.spike / r if r else state.spike
    inputs, label_law = known_inputs(step, t, unit), step.labels_at(t)
    rate = eta * kinds.readout[:, None, None]
    rules = [LEVEL_RULE, *KAPPA_RULES] if r else [Rule(np.zeros(1), np.ones(1))]

    def shifts_on(rule: Rule) -> Array:
        """Mean preactivation without bias on nodes of kappa, (N,)."""
        components = inputs.components
        return r * components.projection_means(components.places_and_weights(rule)[0])[0]

    def neurons_on(rule: Rule) -> tuple[StudentMoments, Array]:
        """Student moments on nodes of kappa, (A, N, 1), and the network's output there."""
        shift = shifts_on(rule)
        moments = student_moments(step, np.add.outer(kinds.bias, shift), c)
        moments = StudentMoments(*(moment[..., None] for moment in moments))
        return moments, mean_output(step, shift, c)

    def root_strength(moments: StudentMoments) -> Array:
        """Root of a sample's strength (``_pencil_probes``) over its residual, (A, N, 1)."""
        return np.abs(rate) / alpha * np.sqrt(moments.s02 + moments.m2**2)

    def weights_and_labels(
        rule: Rule, level: int, moments: StudentMoments, offset: Array, chosen: tuple[int, ...]
    ) -> tuple[SampleWeights, ResidualLaw]:
        """Sample weights of the ``chosen`` kinds, and the residual law on nodes of ``level``."""
        root = float(root_strength(moments).max())
        law = law_of_residuals(label_law, inputs, rule, offset, root, level)
        selected = StudentMoments(*(moment[[*chosen]] for moment in moments))
        return sample_weights(selected, law, c, alpha, rate[[*chosen]], decay_factor), law

    neurons_by_rule = cache(lambda i: neurons_on(rules[i]))

    @cache
    def batch_on_nodes(i: int, level: int, chosen: tuple[int, ...]) -> tuple[Batch, State]:
        weights, law = weights_and_labels(rules[i], level, *neurons_by_rule(i), chosen)
        if len(chosen) > 1:
            return _batch_and_state(step, t, state, law, weights._replace(force=law.rho), 1.0)
        return _batch_and_state(step, t, state, law, weights, float(rate[chosen[0], 0, 0]))

    def with_mean_row(i: int, batch: Batch, after: State) -> tuple[Batch, State]:
        """Batch and state of step i, with the mean row of a single kind."""
        if len(rate) > 1:
            return batch, after
        neurons, shift = neurons_by_rule(i), kinds.bias[0] + shifts_on(rules[i])
        law = weights_and_labels(rules[i], level, *neurons, (0,))[1]
        mean_row = _mean_row_after(step, t, state, shift, neurons[0], law, float(kinds.readout[0]))
        return batch, after._replace(mean_row=mean_row)

    # the kind with the largest change determines the number of nodes
    fastest = (int(root_strength(neurons_by_rule(0)[0])[:, 0].argmax()),)
    all_kinds = tuple(range(len(rate)))
    level = _first_settled(lambda level: batch_on_nodes(0, level, fastest), len(RHO_NODES), K, t)
    if len(rules) == 1:
        return with_mean_row(0, *batch_on_nodes(0, level, all_kinds))
    try:
        finest = 1 + _first_settled(
            lambda i: batch_on_nodes(i + 1, level, fastest), len(KAPPA_RULES), K, t
        )
    except QuadratureError:
        finest = len(rules)

        def contributions(rule: Rule) -> Array:
            samples = weights_and_labels(rule, level, *neurons_on(rule), fastest)
            terms = _contributions(*samples, alpha)
            return terms.reshape(len(terms), -1, len(rule.weights)).sum(axis=1)  # over components

        rules.append(_adapted_rule(contributions, rules[-1], t))
    return with_mean_row(finest, *batch_on_nodes(finest, level, all_kinds))


def _mean_row_after(
    step: Step,
    t: int,
    state: State,
    shift: Array,
    moments: StudentMoments,
    law: ResidualLaw,
    readout: float,
) -> float:
    """p times the squared length of the mean row after step ``t``, less the spike.  Eq. (23.8)

    Beside its own residual every sample has the fluctuation of the output, which is linear in the
    mean row, with other terms of the variance mu_2^2.
    """
    (alpha, eta), c, h = step.schedule[t], state.c[0], 1e-3
    below, square, above = (step.student.moments(shift + k * h, c).variance for k in (-1, 0, 1))
    mu2sq, slope = square[:, None], ((above - below) / (2 * h))[:, None]
    mu1, m2, s02 = moments.mu1[0], moments.m2[0], moments.s02[0]
    rho, w, rate = law.rho, law.weights[0, 0], eta * readout
    gain = rho * m2 - readout * mu1**2
    noise = state.mean_row * gain**2 + rho**2 * s02
    noise = noise - readout * rho * mu1 * slope + (readout * mu1) ** 2 * mu2sq
    drift = step.decay_factor(t) + rate * float((w * gain).sum())
    return drift**2 * state.mean_row + rate**2 / alpha * float((w * noise).sum())


def _adapted_rule(contributions: Callable[[Rule], Array], guess: Rule, t: int) -> Rule:
    """Nodes of kappa on panels adapted to the ``contributions`` (k, N) of nodes to averages.

    The rule ``guess`` gives the sums of the contributions roughly, as the scale of errors.
    """
    size = np.abs(contributions(guess)).sum(axis=1)[:, None] + SMALL_WEIGHT**2

    def values(panels: Panels) -> Array:
        nodes = panels.nodes
        relative = contributions(Rule(nodes.ravel(), np.ones(nodes.size))) / size
        return np.asarray(relative.reshape(-1, *nodes.shape))

    # Gauss's and Kronrod's rules agree to tol; Kronrod's error is much smaller
    tol, max_panels = 1e-7, 400
    initial = panels_between(np.linspace(-9.2, 9.2, 7)[None])
    adapted = halve_panels(values, initial, tol, max_panels, batch_size=32)
    if adapted is None:
        raise _not_settled(t, tol, f"on {max_panels} panels")
    return Rule(*(part[0] for part in adapted[0].rule()))


def _contributions(sample: SampleWeights, residual_law: ResidualLaw, alpha: float) -> Array:
    """Contributions (k, N) of every node of kappa to the averages by which a rule is refined:
    squares of the projections and of the sample weights, times the ``_pencil_probes``."""
    w = residual_law.weights[0, 0]
    squares = [w * f**2 for f in (sample.force, sample.F, sample.lam, sample.L)]
    weights = np.concatenate([np.einsum("iinm->inm", residual_law.weights), *squares])
    probes = _pencil_probes(sample.t11[0], sample.t12[0], alpha)
    return np.einsum("inm,nmx->ixn", weights, probes).reshape(-1, len(w))


def _pencil_probes(t11: Array, t12: Array, alpha: float) -> Array:
    """Four probes 1 / (1 + x s), x = 0, 0.01, 0.1, 1, of the pencil's dependence on a sample's
    strength s = (t11 + t12^2/alpha)/alpha, on a last axis: averages that settle with them settle
    in the pencil."""
    sample_strength = (t11 + t12**2 / alpha) / alpha
    return np.asarray(1 / (1 + np.array([0.0, 0.01, 0.1, 1.0]) * sample_strength[..., None]))


def _first_settled(
    batch_at: Callable[[int], tuple[Batch, State]], count: int, K: int, t: int
) -> int:
    """Index of the first of ``count`` rules, coarse to fine, on which averages over the batch of
    step ``t`` agree with those on the next rule.

    ``batch_at`` returns the batch, and the rows after it, on a rule.  ``K`` is the number of the
    target's directions.
    """
    tol = 1e-10 if K == 1 else 1e-8
    settled = settle(range(count), lambda i: _test_averages(*batch_at(i)), scaled_change, tol)
    if not settled.converged:
        raise _not_settled(t, tol, f"(last change {settled.change:.1e})")
    return settled.candidate - 1


def _not_settled(t: int, tol: float, how: str) -> QuadratureError:
    """Error for averages over the batch of step ``t`` that were refined in vain."""
    batch = f"the averages over the batch of step {t + 1}"
    return QuadratureError(f"{batch} did not settle to {tol:g} {how}")


def _test_averages(batch: Batch, after: State) -> tuple[Array, Array]:
    """Averages over a batch that settle where those in the pencil do, and their scales: products of
    sample weights with the ``_pencil_probes``, then g, v, c and the spike after the step."""
    pencil_probes = _pencil_probes(batch.t11[0], batch.t12[0], batch.alpha)
    functions = np.concatenate([batch.F, batch.lam, batch.L])
    mixed = batch.pairs[1:, :1] * functions
    squares = batch.weights * functions[:, None] * functions
    upper = np.concatenate([batch.pairs[1:, 1:], mixed], axis=1)
    pairs = np.concatenate([upper, np.concatenate([mixed.swapaxes(0, 1), squares], axis=1)])
    values = pairs @ pencil_probes
    root = np.sqrt(np.einsum("iim,mx->ix", np.abs(pairs), pencil_probes))
    root = np.maximum(root, SMALL_WEIGHT)
    sizes = root[:, None] * root  # scales of products that may vanish
    (g,), (v,) = batch.g, batch.v
    numbers = np.array([g, v, *after.c, *after.spike])
    largest = np.array([1 + abs(g), 1 + v, *after.c, *(1 + np.abs(after.spike))])
    return np.append(values, numbers), np.append(sizes, largest)


def _batch_and_state(
    step: Step, t: int, state: State, residual_law: ResidualLaw, sample: SampleWeights, rate: float
) -> tuple[Batch, State]:
    """Turn the samples of step ``t`` into the ``Batch`` of weights that the saddle-point equations
    read, leaving out nodes of negligible weight, and move the rows.

    The spike decays, grows by ``rate`` times the batch's mean force along the known directions, and
    by its noise along the axis of this step.  ``rate`` multiplies the weights ``sample.force``, and
    is 1 for several kinds.
    """
    (alpha, _), K, factor = step.schedule[t], step.known_dimension, step.decay_factor(t)
    directions = np.eye(K, len(state.spike))  # the directions known to labels
    if len(residual_law.weights) > K + 1:
        outside = np.where(np.arange(len(state.spike)) < K, 0.0, state.spike)
        directions = np.vstack([directions, outside / np.linalg.norm(outside)])
    noise_axis, w, force = K + t, residual_law.weights[0, 0], sample.force
    gain = (residual_law.weights[0, 1:] * force).sum(axis=(1, 2))  # Eq. (18.8)
    noise = np.sqrt(float((w * force**2).sum()))
    spike = factor * state.spike + rate * gain @ directions
    spike[noise_axis] += rate * noise / np.sqrt(alpha)

    phi = force / noise if noise else np.zeros_like(force)  # Eq. (18.10)
    t11, t12, F, lam, L = np.broadcast_arrays(*sample[:5])
    D = len(directions)
    pairs = np.empty((D + 2, D + 2, *w.shape))
    pairs[:-1, :-1] = residual_law.weights
    pairs[-1, :-1] = pairs[:-1, -1] = residual_law.weights[0] * phi
    pairs[-1, -1] = w * phi**2
    squares = np.abs(np.einsum("iinm->inm", pairs[1:, 1:]))
    squares = np.concatenate([squares, *(np.abs(w) * f**2 for f in (F, lam, L))])
    squares = squares[..., None] * _pencil_probes(t11[0], t12[0], alpha)[..., [0, -1]]
    # nodes with negligible weight in every average are dropped
    counted = (squares > 1e-15 * squares.sum(axis=(1, 2), keepdims=True)).any(axis=(0, 3))
    counted |= not counted.any()  # samples without inputs or norms still act on the trace
    t11, t12, F, lam, L = (weight[:, counted] for weight in (t11, t12, F, lam, L))
    axes = np.vstack([directions, np.eye(len(spike))[noise_axis]])
    batch = Batch(
        alpha, pairs[:, :, counted], t11, t12, F, lam, L, sample.g, sample.v, axes, factor
    )
    return batch, State(spike, sample.c)
