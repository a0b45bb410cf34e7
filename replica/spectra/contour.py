"""Expectations over kappa, and over a sample of the first batch, on contours in the complex plane.
docs/theory.md 4, 9, 16 and 17

At z = x + i0 the averages (4.2) have poles next to the real line wherever 1 + V(kappa) nearly
vanishes: samples whose features are so large, or so small, that each makes an isolated
eigenvalue.  No rule on the real line resolves them.  But the moments (3.2) of any sigma are entire
functions of kappa, since

    E sigma(s + i t + sqrt(c) z) = E sigma(s + sqrt(c) z) exp(i t z / sqrt(c) + t^2 / 2c),

and Im V > 0 there: the poles lie above the line where the features' conditional variance T
increases with kappa and below where it decreases.  A contour that runs on the other side of the
line, and crosses it at the extrema of T, meets none of the poles, and a trapezoidal rule on it
converges geometrically.

In the spectrum of a network, averages over the first batch have poles in the residual rho of
its samples.  A sample whose
matrix Q of the pencil (18.9) is nearly singular makes an isolated eigenvalue of the rows'
covariance.  On real nodes, which are few, every node would appear as such an eigenvalue.  For z
above the real axis the poles lie above the real line of rho, so rho is integrated below it:

* with label noise, whose density is entire, on the rotated line rho = u exp(-i phi);
* without noise, on a contour for the target's argument s, as for kappa, if the target can be
  continued analytically from every interval between two kinks;
* for a piecewise constant target, on its values.

Noise too small for the rotated line is averaged on a few Gauss-Hermite nodes.  A complex rule is
used only if it agrees with the real rule at positive arguments; otherwise the real rule is used.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import erf

from solvers.quadrature import expectation
from solvers.results import Array
from solvers.rules import (
    Rule,
    gauss_hermite,
    gauss_legendre,
    gaussian_density,
    graded_breaks,
    half_range,
)

from ..equivalence import Table, group_kinds
from ..problem import MOMENT_TOLERANCE, Activation, LabelLaw, Model, Moments
from ..saddle_point import TrainedRows
from ..steps import FirstSampleWeights, NetworkRows, first_sample_weights


def contour_table(model: Model, table: Table) -> Table | None:
    """The ``table`` of features with one spike, with kappa moved from the real line to a contour.

    A component of the inputs on which T is constant keeps its real nodes; None if all do.
    """
    conditional_variance = table.fractions @ (table.c[:, None] * table.mu1**2 + table.mu2sq)
    groups, inputs, places, nodes_of_components = model.geometry, model.components, table.places, []
    for j, (mean, slope) in enumerate(zip(inputs.mean[:, 0], inputs.slope[:, 0, 0], strict=True)):
        in_component = places.component == j
        contour_z, contour_weights = places.z[0, in_component], table.weights[in_component]
        contour_side, turns = sides_and_turns(contour_z, conditional_variance[in_component])
        if contour_side:
            steepest = slope * float((np.abs(groups.r[:, 0]) / np.sqrt(groups.c)).max())
            reach = half_range(contour_z.size)
            real_z = np.linspace(-reach, reach, contour_z.size)
            contour_z, contour_slope = contour_points(real_z, contour_side, turns, steepest)
            contour_weights = contour_slope * np.exp(-(contour_z**2) / 2)
            contour_weights *= inputs.shares[j] / contour_weights.sum()
        nodes_of_components.append((mean + slope * contour_z, contour_weights))
    contour_kappa, contour_weights = map(np.concatenate, zip(*nodes_of_components, strict=True))
    if not np.iscomplexobj(contour_kappa):
        return None
    firsts, _ = group_kinds(model)
    moments = [
        complex_moments(model.student, groups.r[g, 0] * contour_kappa + groups.bias[g], groups.c[g])
        for g in firsts
    ]
    return replace(
        table,
        weights=contour_weights,
        kappa=contour_kappa[None],
        mu1=np.array([moment.first for moment in moments]) / np.sqrt(groups.c[firsts])[:, None],
        mu2sq=np.array([moment.variance for moment in moments]),
    )


def contour_points(
    u: Array,
    side: int,
    turns: Array,
    steepest: float,
    ends: tuple[float, float] = (-np.inf, np.inf),
) -> tuple[Array, Array]:
    """Points of the contour over u (n,) on the real line, and their derivatives in u.

    Parameters
    ----------
    u : (n,)
    side : {-1, 1}
        Side of the line on which the contour starts: below or above.
    turns : (k,)
        Places at which it crosses the line.
    steepest : float
        Root of the largest a for which averages contain exp(-a kappa^2).
    ends : pair of float
        Where finite, places at which the contour meets the line.
    """
    # sign: +-1, changing smoothly at the turns, over less than the distance of two of them
    turn_gaps = np.diff([ends[0], *turns, ends[1]])
    turn_width = min(0.6, 0.4 * float(turn_gaps.min()))
    turn_distances = (u - turns[:, None]) / turn_width
    side_flips = side * (-1.0) ** np.arange(1, len(turns) + 1)
    side_of_line = side + side_flips @ (1 + erf(turn_distances))
    sign_slope = side_flips @ np.exp(-(turn_distances**2)) * (2 / (np.sqrt(np.pi) * turn_width))
    # The height of the contour grows with slope 1/4 up to |u| = 1.75 / steepest, and decays as
    # 1 / |u| far out.  T falls off like exp(-a kappa^2), a <= steepest^2: at height
    # pi / (a |kappa|) the next branch of its logarithm has a pole, too.  The contour stays below
    # half of that height.
    height_bend = (steepest / 1.75) ** 2
    height_modulus, damping = np.sqrt(1 + u**2), 1 / (1 + height_bend * u**2)
    height = 0.25 * height_modulus * damping
    growth = u / height_modulus**2 - 2 * height_bend * u * damping  # derivative of log height
    for contour_end in filter(np.isfinite, ends):
        height = height * np.abs(u - contour_end) / np.sqrt(1 + (u - contour_end) ** 2)
        growth = growth + 1 / ((u - contour_end) * (1 + (u - contour_end) ** 2))
    return u + 1j * side_of_line * height, 1 + 1j * height * (side_of_line * growth + sign_slope)


def sides_and_turns(kappa: Array, T: Array) -> tuple[int, Array]:
    """Side of the real line, +-1, of the contour's left end, and the places where it crosses.

    The contour runs above the line where T(kappa) falls, below where it rises.  The side is 0 if T
    is constant.
    """
    kappa, sorted_nodes = np.unique(kappa, return_index=True)
    T_increments = np.diff(T[sorted_nodes])
    # smaller changes are rounding, and |kappa| > 7 has probability 3e-12
    changing = np.flatnonzero((np.abs(T_increments) > 1e-12 * T.max()) & (np.abs(kappa[1:]) < 7))
    if not changing.size:
        return 0, np.empty(0)
    sides = -np.sign(T_increments[changing])
    reversals = np.flatnonzero(sides[1:] != sides[:-1])
    return int(sides[0]), (kappa[changing[reversals] + 1] + kappa[changing[reversals + 1]]) / 2


def complex_moments(student: Activation, s: Array, c: float) -> Moments:
    """The moments (3.2), continued analytically to complex shifts s (n,)."""
    root_c = np.sqrt(c)
    real_shift, imaginary_shift = s.real[:, None], s.imag[:, None] / root_c

    def compute(rule: Rule) -> tuple[Array, Array]:
        """Mean, first moment and variance (3, n) by one rule, and the scales of their errors."""
        complex_z = rule.nodes - 1j * imaginary_shift
        w = rule.weights * np.exp(1j * imaginary_shift * rule.nodes + imaginary_shift**2 / 2)
        student_values = student(real_shift + root_c * rule.nodes)
        mean = (student_values * w).sum(axis=-1)
        first_moment = (student_values * complex_z * w).sum(axis=-1)
        curved_part = student_values - mean[:, None] - first_moment[:, None] * complex_z
        variance = (curved_part**2 * w).sum(axis=-1)
        power = (student_values**2 * np.abs(w)).sum(axis=-1)
        power = np.maximum(power, 1e-8 * power.max())
        return np.stack([mean, first_moment, variance]), np.stack([np.sqrt(power)] * 2 + [power])

    kink_breaks = (np.asarray(student.kinks) - real_shift) / root_c
    rule = "gauss-legendre" if student.kinks else "trapezoid, gauss-legendre"
    moment_integral = expectation(compute, kink_breaks, rule=rule, tol=10 * MOMENT_TOLERANCE)
    return Moments(*moment_integral.value)


def on_real_nodes(model: Model) -> bool:
    """True of a network whose labels stay on real nodes, which make a peak each in its spectrum:
    after several steps, on a target of several directions, or on inputs of a given law."""
    step = model.step if model.rows is not None else None
    has_one_step = step is not None and not step.steps and step.inputs is None
    return step is not None and not (has_one_step and step.labels_at(0).target.dimension == 1)


def with_complex_batch(network: NetworkRows, rows: TrainedRows) -> TrainedRows:
    """Rows of a ``network`` after one step, with the residuals of their batch on complex nodes.

    ``rows`` are returned unchanged where no complex rule agrees with the real one.
    """
    batch_step, (batch,), (all_groups,) = network.step, rows.batches, network.all_groups.batches
    sample = first_sample_weights(batch_step, network.kinds)
    labels = batch_step.labels_at(0)
    if labels.channel:
        return rows  # random labels +-1 have two residuals
    largest_group = int(np.argmax(np.abs(sample.linear) if sample.linear.any() else sample.square))
    if sample.linear.any():
        rho = all_groups.t12[largest_group] / sample.linear[largest_group]
    elif sample.square.any():
        rho = np.sqrt(all_groups.t11[largest_group] / sample.square[largest_group])
    else:
        return rows
    linear_weight = batch.t12 @ rho / (rho @ rho)
    square_weight = batch.t11 @ rho**2 / (rho**2 @ rho**2)
    normalised_weights = sample._replace(linear=linear_weight, square=square_weight)
    rho, weights = _matching_rule(labels, normalised_weights, batch.alpha, Rule(rho, batch.weights))
    t11, t12 = square_weight[:, None] * rho**2, linear_weight[:, None] * rho
    rotated_batch = batch._replace(products=weights[None, None], t11=t11, t12=t12)
    return replace(rows, batches=(rotated_batch,))


def _matching_rule(labels: LabelLaw, sample: FirstSampleWeights, alpha: float, real: Rule) -> Rule:
    """The first complex rule that reproduces the averages on the ``real`` nodes, or ``real``."""
    pole_scale = float((sample.square / alpha + (sample.linear / alpha) ** 2).max())
    label_target: Any = labels.target
    target_offset = sample.offset[0]

    def mean_target(complex_z: Array) -> Array:
        """The target less its offset, without checks, so that z may be complex."""
        return np.asarray(label_target.function(np.array(complex_z))) - target_offset

    shifted_labels = replace(labels, target=Activation(mean_target, kinks=label_target.kinks))
    rule_averages = partial(_rational_averages, scale=pole_scale, odd=bool(sample.linear.any()))
    real_averages, average_size = rule_averages(real)
    for complex_rule in _candidate_rules(shifted_labels, pole_scale) if pole_scale else ():
        with np.errstate(all="ignore"):
            average_errors = np.abs(rule_averages(complex_rule)[0] - real_averages)
        if (average_errors <= 1e-10 * average_size).all():
            return complex_rule
    return real


def _rational_averages(averaged_rule: Rule, scale: float, *, odd: bool) -> tuple[Array, float]:
    """Averages over rho of the pencil's rational functions, and the scale of their errors.

    Functions odd in rho are included if ``odd``.
    """
    rho, weights = averaged_rule
    pole_terms = 1 / (1 + scale * np.array([0.0, 0.01, 0.1, 0.4, 1.0])[:, None] * rho**2)
    even_terms = rho**2 * pole_terms
    rational_values = np.append(even_terms @ weights, (rho * pole_terms) @ weights if odd else [])
    return rational_values, float(np.abs(even_terms[0]) @ np.abs(weights))


def _candidate_rules(labels: LabelLaw, scale: float) -> Iterator[Rule]:
    """Candidate rules for averages of 1 / (1 + x scale rho^2), with rho the label.

    Each Gaussian of the label noise is integrated on the rotated line if it is wide enough, else
    through s: on a contour, or on the target's values.
    """
    label_target, gaussians = labels.target, labels.gaussians
    rotated_rules = [_on_rotated_line(label_target, v, scale) if v else None for v, _ in gaussians]
    for noiseless_rule in (_on_contour(label_target), _on_real_line(label_target, 0.25)):
        noise_pairs = zip(gaussians, rotated_rules, strict=True)
        rules = [rule or _with_small_noise(noiseless_rule, v) for (v, _), rule in noise_pairs]
        shares = [share * rule.weights for (_, share), rule in zip(gaussians, rules, strict=True)]
        yield Rule(np.concatenate([rule.nodes for rule in rules]), np.concatenate(shares))


def _on_contour(target: Any) -> Rule:
    """Noiseless labels on a contour for s, off the real line on every interval between two of the
    target's kinks, where it meets the line.

    Nodes are NaN if the target does not take complex arguments.
    """
    farthest_s = half_range(512)
    # 24 nodes a panel of length 1: the poles are 0.15 away
    kink_rule = gauss_legendre(24, graded_breaks(target.kinks, farthest_s), farthest_s, 1.0)
    real_s, s = kink_rule.nodes, kink_rule.nodes.astype(complex)
    s_slope = np.ones(kink_rule.nodes.size, complex)
    for kink_pair in pairwise((-np.inf, *target.kinks, np.inf)):
        inside = (real_s > kink_pair[0]) & (real_s < kink_pair[1])
        side, turns = sides_and_turns(real_s[inside], target(real_s[inside]) ** 2)
        if side:
            s[inside], s_slope[inside] = contour_points(real_s[inside], side, turns, 1.0, kink_pair)
    contour_weights = kink_rule.weights * s_slope * np.exp((real_s**2 - s**2) / 2)
    contour_weights /= contour_weights.sum()
    try:
        return _merged_labels(target.function(s), contour_weights)
    except (TypeError, ValueError):  # the target does not take complex numbers
        return Rule(np.full(s.shape, np.nan), contour_weights)


def _with_small_noise(noiseless_rule: Rule, noise: float) -> Rule:
    """Labels plus Gaussian noise of a small variance ``noise``, by Gauss-Hermite quadrature."""
    if not noise:
        return noiseless_rule
    noise_nodes, noise_weights = gauss_hermite(6)
    noisy_rho = noiseless_rule.nodes[:, None] + np.sqrt(noise) * noise_nodes
    return Rule(noisy_rho.ravel(), (noiseless_rule.weights[:, None] * noise_weights).ravel())


def _on_real_line(target: Any, panel_width: float) -> Rule:
    """Values of the target on a fine real rule for s."""
    farthest_s = half_range(1024)
    real_rule = gauss_legendre(24, graded_breaks(target.kinks, farthest_s), farthest_s, panel_width)
    return _merged_labels(target(real_rule.nodes), real_rule.weights)


def _merged_labels(labels: Array, weights: Array) -> Rule:
    """Rule of the labels with their ``weights``; equal labels, of a constant target, are merged."""
    distinct_labels, label_index = np.unique(labels, return_inverse=True)
    merged_weights = np.zeros(distinct_labels.size, weights.dtype)
    np.add.at(merged_weights, label_index, weights)
    return Rule(distinct_labels, merged_weights)


def _on_rotated_line(target: Any, noise: float, scale: float) -> Rule | None:
    """Rule on the rotated line rho = u exp(-i phi), dense where 1 / (1 + scale rho^2) varies.

    None where the variance ``noise`` is so small that it takes too many nodes.
    """
    noiseless_labels, weights = _on_real_line(target, float(np.clip(np.sqrt(noise) / 2, 0.05, 2.5)))
    largest_label = float(np.abs(noiseless_labels).max())
    # With small noise the continued density has modulus up to e^4.5: cancellation then costs two
    # digits.
    phi = min(0.35, 3.0 * np.sqrt(noise) / max(largest_label, 1e-300))
    inverse_width = np.sqrt(max(scale, 1 / noise))
    # last: where |exp(-(y - m)^2 / (2 noise))| = exp(-45) = 3e-20, m the largest label
    density_side, level = largest_label * np.cos(phi), largest_label**2 - 2 * noise * 45.0
    farthest = (density_side + np.sqrt(density_side**2 - np.cos(2 * phi) * level)) / np.cos(2 * phi)
    farthest_u = np.arcsinh(inverse_width * farthest)
    # the poles are at distance phi in u: the error is rounding
    line_nodes = int(np.ceil(2 * farthest_u / (0.06 * phi)))
    # Every z averages over all nodes, and 2^22 values of the density take 64 MiB.
    if line_nodes > 4096 or line_nodes * noiseless_labels.size > 2**22:
        return None
    line_u, phase = np.linspace(-farthest_u, farthest_u, line_nodes), np.exp(-1j * phi)
    rho = phase * np.sinh(line_u) / inverse_width
    line_spacing = phase * np.cosh(line_u) / inverse_width * (line_u[1] - line_u[0])
    density = gaussian_density((rho[:, None] - noiseless_labels) / np.sqrt(noise)) / np.sqrt(noise)
    return Rule(rho, (density @ weights) * line_spacing)
