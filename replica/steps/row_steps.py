"""The Batch of every giant step, on refined nodes of kappa, and the state of the rows after it.
docs/theory.md 16, 18

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

from solvers.adaptive_panels import Panels, halve_panels, panels_between
from solvers.quadrature import QuadratureError
from solvers.resources import TIME_LIMIT, GivenUp, check_time, deadline, one_thread, time_left
from solvers.results import Array
from solvers.rules import Rule, half_range, trapezoid
from solvers.successive_refinement import scaled_change, settle

from ..equivalence import Batch
from .residual_interpolation import RHO_NODES
from .residual_law import ResidualLaw, known_inputs, law_of_residuals
from .row_samples import Kinds, SampleWeights, StudentMoments, sample_weights, student_moments
from .several_steps import mean_output
from .step_fields import Step

BATCH_TIME = 3 / 4  # part of a call's time limit that the batches of a model may take
SMALL_WEIGHT = 1e-6  # smaller weights of a sample, in a row of length 1, need fewer digits
# Rules for kappa, finer and finer; if none of them converges, adaptive panels are used.
KAPPA_RULES = [trapezoid(n, half_range(n)) for n in (40, 56, 80, 112, 160, 224)]
# Few nodes on the range of KAPPA_RULES: nodes of the residual vary slowly with kappa.
LEVEL_RULE = trapezoid(14, half_range(40))


class RowState(NamedTuple):
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
def row_steps(step: Step, kinds: Kinds) -> tuple[tuple[Batch, ...], RowState]:
    """Batches of all steps of ``step``, the last one first, and the rows after them.

    Batches hold the weights for ``kinds`` of neurons.  Several kinds are supported for a single
    step; their spikes are parallel, and the direction is returned.

    Raises
    ------
    QuadratureError
        If averages over a batch do not settle, or take too long; it names rates at which they do,
        if some are soon found.
    """
    seconds_left = time_left() if np.isfinite(time_left()) else TIME_LIMIT
    try:
        return _row_steps(step, kinds, BATCH_TIME * seconds_left)
    except QuadratureError as error:
        slower_hint = _slower_steps(step, kinds, seconds_left / 10)  # a tenth of it for each rate
        more_time = ", and time_limit=600 gives them more" * ("time_limit" in str(error))
        other_ways = f"{slower_hint}; the sRF (--theory srf) needs none{more_time}"
        raise QuadratureError(f"{error}{other_ways}") from None


def _slower_steps(step: Step, kinds: Kinds, longest_seconds: float) -> str:
    """Hint for an error message: smaller learning rates at which averages over the batches settle
    within ``longest_seconds`` seconds, or nothing if they do not."""
    for rate_factor in (10, 100):
        slower = [(alpha0, eta / rate_factor) for alpha0, eta in step.schedule]
        slower_fields: Any = {"steps": slower} if len(slower) > 1 else {"eta": slower[0][1]}
        with suppress(QuadratureError):
            _row_steps(replace(step, **slower_fields), kinds, longest_seconds)
            return f" (they do at eta = {', '.join(f'{eta:.3g}' for _, eta in slower)})"
    return ""


def _row_steps(step: Step, kinds: Kinds, longest: float) -> tuple[tuple[Batch, ...], RowState]:
    """Result of :func:`row_steps`; QuadratureError where it takes more than ``longest`` seconds."""
    row_state = RowState(np.zeros(step.known_dimension + len(step.schedule)), np.ones(1))
    row_batches: list[Batch] = []
    try:
        with deadline(longest):
            for t in range(len(step.schedule)):
                row_batch, row_state = _refined_batch(step, kinds, row_state, t)
                row_batches.insert(0, row_batch)
    except GivenUp:
        check_time()  # raises GivenUp if the deadline is the caller's
        raise QuadratureError(
            f"the averages over the batch of step {t + 1} do not settle within {longest:.2g} s, a "
            "part of time_limit"
        ) from None
    return tuple(row_batches), row_state


def _refined_batch(step: Step, kinds: Kinds, state: RowState, t: int) -> tuple[Batch, RowState]:
    """The batch of step ``t`` and the rows after it, on nodes refined until averages converge."""
    (alpha, eta), K, decay_factor = step.schedule[t], step.known_dimension, step.decay_factor(t)
    spike_length, c = float(np.linalg.norm(state.spike)), state.c[0]  # c is equal for all kinds
    spike_direction = state.spike / spike_length if spike_length else state.spike
    known_batch_inputs, label_law = known_inputs(step, t, spike_direction), step.labels_at(t)
    learning_rate = eta * kinds.readout[:, None, None]
    kappa_rules = [LEVEL_RULE, *KAPPA_RULES] if spike_length else [Rule(np.zeros(1), np.ones(1))]

    def shifts_on(rule: Rule) -> Array:
        """Mean preactivation without bias on nodes of kappa, (N,)."""
        components = known_batch_inputs.components
        return spike_length * components.projection_means(components.places_and_weights(rule)[0])[0]

    def neurons_on(rule: Rule) -> tuple[StudentMoments, Array]:
        """Student moments on nodes of kappa, (A, N, 1), and the network's output there."""
        shifts = shifts_on(rule)
        slopes = student_moments(step, np.add.outer(kinds.bias, shifts), c)
        slopes = StudentMoments(*(slope_moment[..., None] for slope_moment in slopes))
        return slopes, mean_output(step, shifts, c)

    def root_strength(slopes: StudentMoments) -> Array:
        """Root of a sample's strength (``_strength_functions``) over its residual, (A, N, 1)."""
        return np.abs(learning_rate) / alpha * np.sqrt(slopes.s02 + slopes.m2**2)

    def weights_and_labels(
        rule: Rule, level: int, slopes: StudentMoments, offset: Array, chosen: tuple[int, ...]
    ) -> tuple[SampleWeights, ResidualLaw]:
        """Sample weights of the ``chosen`` kinds, and the residual law on nodes of ``level``."""
        strength_root = float(root_strength(slopes).max())
        law = law_of_residuals(label_law, known_batch_inputs, rule, offset, strength_root, level)
        selected = StudentMoments(*(slope_moment[[*chosen]] for slope_moment in slopes))
        return sample_weights(selected, law, c, alpha, learning_rate[[*chosen]], decay_factor), law

    neurons_by_rule = cache(lambda i: neurons_on(kappa_rules[i]))

    @cache
    def batch_on_nodes(i: int, level: int, chosen: tuple[int, ...]) -> tuple[Batch, RowState]:
        weights, law = weights_and_labels(kappa_rules[i], level, *neurons_by_rule(i), chosen)
        if len(chosen) > 1:
            return _batch_and_state(step, t, state, law, weights._replace(force=law.rho), 1.0)
        return _batch_and_state(step, t, state, law, weights, float(learning_rate[chosen[0], 0, 0]))

    def with_mean_row(i: int, batch: Batch, row_state_after: RowState) -> tuple[Batch, RowState]:
        """Batch and state of step i, with the mean row of a single kind."""
        if len(learning_rate) > 1:
            return batch, row_state_after
        neurons, shifts = neurons_by_rule(i), kinds.bias[0] + shifts_on(kappa_rules[i])
        law = weights_and_labels(kappa_rules[i], level, *neurons, (0,))[1]
        mean_row = _mean_row_after(step, t, state, shifts, neurons[0], law, float(kinds.readout[0]))
        return batch, row_state_after._replace(mean_row=mean_row)

    # the kind with the largest change determines the number of nodes
    fast_kind = (int(root_strength(neurons_by_rule(0)[0])[:, 0].argmax()),)
    all_kinds = tuple(range(len(learning_rate)))
    level = _first_settled(lambda level: batch_on_nodes(0, level, fast_kind), len(RHO_NODES), K, t)
    if len(kappa_rules) == 1:
        return with_mean_row(0, *batch_on_nodes(0, level, all_kinds))
    try:
        finest_rule = 1 + _first_settled(
            lambda i: batch_on_nodes(i + 1, level, fast_kind), len(KAPPA_RULES), K, t
        )
    except QuadratureError:
        finest_rule = len(kappa_rules)

        def contributions(rule: Rule) -> Array:
            batch_samples = weights_and_labels(rule, level, *neurons_on(rule), fast_kind)
            terms = _contributions(*batch_samples, alpha)
            return terms.reshape(len(terms), -1, len(rule.weights)).sum(axis=1)  # over components

        kappa_rules.append(_adapted_rule(contributions, kappa_rules[-1], t))
    return with_mean_row(finest_rule, *batch_on_nodes(finest_rule, level, all_kinds))


def _mean_row_after(
    step: Step,
    t: int,
    state: RowState,
    shift: Array,
    student_slopes: StudentMoments,
    residual_law: ResidualLaw,
    readout: float,
) -> float:
    """p times the squared length of the mean row after step ``t``, less the spike.  Eq. (23.8)

    Beside its own residual every sample has the fluctuation of the output, which is linear in the
    mean row, with other terms of the variance mu_2^2.
    """
    (alpha, eta), c, h = step.schedule[t], state.c[0], 1e-3
    below, mu2_here, above = (step.student.moments(shift + k * h, c).variance for k in (-1, 0, 1))
    mu2sq, variance_slope = mu2_here[:, None], ((above - below) / (2 * h))[:, None]
    mu1, m2, s02 = student_slopes.mu1[0], student_slopes.m2[0], student_slopes.s02[0]
    rho, rho_weights, rate = residual_law.rho, residual_law.weights[0, 0], eta * readout
    residual_gain = rho * m2 - readout * mu1**2
    row_noise = state.mean_row * residual_gain**2 + rho**2 * s02
    row_noise = row_noise - readout * rho * mu1 * variance_slope + (readout * mu1) ** 2 * mu2sq
    row_drift = step.decay_factor(t) + rate * float((rho_weights * residual_gain).sum())
    return row_drift**2 * state.mean_row + rate**2 / alpha * float((rho_weights * row_noise).sum())


def _adapted_rule(contributions: Callable[[Rule], Array], guessed_rule: Rule, t: int) -> Rule:
    """Nodes of kappa on panels adapted to the ``contributions`` (k, N) of nodes to averages.

    The rule ``guessed_rule`` gives the sums of the contributions roughly, as the scale of errors.
    """
    contribution_size = np.abs(contributions(guessed_rule)).sum(axis=1)[:, None] + SMALL_WEIGHT**2

    def kappa_values(panels: Panels) -> Array:
        nodes = panels.nodes
        kappa_terms = contributions(Rule(nodes.ravel(), np.ones(nodes.size))) / contribution_size
        return np.asarray(kappa_terms.reshape(-1, *nodes.shape))

    # Gauss's and Kronrod's rules agree to tol; Kronrod's error is much smaller
    kappa_tol, max_panels = 1e-7, 400
    kappa_panels = panels_between(np.linspace(-9.2, 9.2, 7)[None])
    adapted_panels = halve_panels(kappa_values, kappa_panels, kappa_tol, max_panels, batch_size=32)
    if adapted_panels is None:
        raise _not_settled(t, kappa_tol, f"on {max_panels} panels")
    return Rule(*(rule_part[0] for rule_part in adapted_panels[0].rule()))


def _contributions(sample: SampleWeights, residual_law: ResidualLaw, alpha: float) -> Array:
    """Contributions (k, N) of every node of kappa to the averages by which a rule is refined:
    squares of the projections and of the sample weights, times the ``_strength_functions``."""
    rho_weights = residual_law.weights[0, 0]
    weight_squares = [rho_weights * f**2 for f in (sample.force, sample.F, sample.lam, sample.L)]
    kappa_weights = np.concatenate([np.einsum("iinm->inm", residual_law.weights), *weight_squares])
    test_functions = _strength_functions(sample.t11[0], sample.t12[0], alpha)
    return np.einsum("inm,nmx->ixn", kappa_weights, test_functions).reshape(-1, len(rho_weights))


def _strength_functions(t11: Array, t12: Array, alpha: float) -> Array:
    """Four test functions 1 / (1 + x s), x = 0, 0.01, 0.1, 1, of a sample's strength
    s = (t11 + t12^2/alpha)/alpha, on a last axis.  The pencil depends on s through such functions:
    where averages with these four have converged, the pencil has."""
    sample_strength = (t11 + t12**2 / alpha) / alpha
    return np.asarray(1 / (1 + np.array([0.0, 0.01, 0.1, 1.0]) * sample_strength[..., None]))


def _first_settled(
    batch_at: Callable[[int], tuple[Batch, RowState]], count: int, known_dimension: int, t: int
) -> int:
    """Index of the first of ``count`` rules, coarse to fine, on which averages over the batch of
    step ``t`` agree with those on the next rule.

    ``batch_at`` returns the batch, and the rows after it, on a rule.  ``known_dimension`` is the
    number of the target's directions.
    """
    tol = 1e-10 if known_dimension == 1 else 1e-8
    settled_rule = settle(range(count), lambda i: _test_averages(*batch_at(i)), scaled_change, tol)
    if not settled_rule.converged:
        raise _not_settled(t, tol, f"(last change {settled_rule.change:.1e})")
    return settled_rule.candidate - 1


def _not_settled(t: int, tol: float, settling_text: str) -> QuadratureError:
    """Error for averages over the batch of step ``t`` that were refined in vain."""
    batch_averages = f"the averages over the batch of step {t + 1}"
    return QuadratureError(f"{batch_averages} did not settle to {tol:g} {settling_text}")


def _test_averages(batch: Batch, after: RowState) -> tuple[Array, Array]:
    """Averages over a batch that settle where those in the pencil do, and their scales: products of
    sample weights with the ``_strength_functions``, then g, v, c and the spike after the step."""
    test_functions = _strength_functions(batch.t11[0], batch.t12[0], batch.alpha)
    weight_functions = np.concatenate([batch.F, batch.lam, batch.L])
    mixed = batch.products[1:, :1] * weight_functions
    squares = batch.weights * weight_functions[:, None] * weight_functions
    upper = np.concatenate([batch.products[1:, 1:], mixed], axis=1)
    product_pairs = np.concatenate([upper, np.concatenate([mixed.swapaxes(0, 1), squares], axis=1)])
    test_averages = product_pairs @ test_functions
    product_root = np.sqrt(np.einsum("iim,mx->ix", np.abs(product_pairs), test_functions))
    product_root = np.maximum(product_root, SMALL_WEIGHT)
    product_sizes = product_root[:, None] * product_root  # scales of products that may vanish
    (g,), (v,) = batch.g, batch.v
    step_numbers = np.array([g, v, *after.c, *after.spike])
    state_sizes = np.array([1 + abs(g), 1 + v, *after.c, *(1 + np.abs(after.spike))])
    return np.append(test_averages, step_numbers), np.append(product_sizes, state_sizes)


def _batch_and_state(
    step: Step,
    t: int,
    row_state: RowState,
    residual_law: ResidualLaw,
    sample: SampleWeights,
    force_rate: float,
) -> tuple[Batch, RowState]:
    """Turn the samples of step ``t`` into the ``Batch`` of weights that the saddle-point equations
    read, and move the rows.

    The spike decays, grows by ``force_rate`` times the batch's mean force along the known
    directions, and by its noise along the axis of this step.  ``force_rate`` multiplies the weights
    ``sample.force``, and is 1 for several kinds.
    """
    (alpha, _), K, decay = step.schedule[t], step.known_dimension, step.decay_factor(t)
    known_directions = np.eye(K, len(row_state.spike))  # the directions known to labels
    if len(residual_law.weights) > K + 1:
        u_outside = np.where(np.arange(len(row_state.spike)) < K, 0.0, row_state.spike)
        known_directions = np.vstack([known_directions, u_outside / np.linalg.norm(u_outside)])
    noise_axis, rho_weights, sample_force = K + t, residual_law.weights[0, 0], sample.force
    mean_force = (residual_law.weights[0, 1:] * sample_force).sum(axis=(1, 2))  # Eq. (18.8)
    force_noise = np.sqrt(float((rho_weights * sample_force**2).sum()))
    row_spike = decay * row_state.spike + force_rate * mean_force @ known_directions
    row_spike[noise_axis] += force_rate * force_noise / np.sqrt(alpha)

    phi = sample_force / force_noise if force_noise else np.zeros_like(sample_force)  # Eq. (18.10)
    known_count = len(known_directions)
    weight_pairs = np.empty((known_count + 2, known_count + 2, *rho_weights.shape))
    weight_pairs[:-1, :-1] = residual_law.weights
    weight_pairs[-1, :-1] = weight_pairs[:-1, -1] = residual_law.weights[0] * phi
    weight_pairs[-1, -1] = rho_weights * phi**2
    products = weight_pairs.reshape(*weight_pairs.shape[:2], -1)
    t11, t12, F, lam, L = (x.reshape(len(x), -1) for x in np.broadcast_arrays(*sample[:5]))
    axes = np.vstack([known_directions, np.eye(len(row_spike))[noise_axis]])
    row_batch = Batch(alpha, products, t11, t12, F, lam, L, sample.g, sample.v, axes, decay)
    return row_batch, RowState(row_spike, sample.c)
