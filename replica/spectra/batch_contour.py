"""Complex quadrature nodes for the residual rho of a sample of the first batch.
docs/theory.md 9, 16 and 17

In the spectrum of a network, averages over the first batch have poles in rho.  A sample whose
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

from solvers.results import Array
from solvers.rules import (
    Rule,
    gauss_hermite,
    gauss_legendre,
    gaussian_density,
    graded_breaks,
    half_range,
    trapezoid,
)

from ..problem import Activation, LabelLaw
from ..saddle_point import Rows
from ..steps import FirstSampleWeights, NetworkRows, first_sample_weights
from .contour import contour, contour_points, sides_and_turns

CONTOUR_NODES = 512  # nodes of the contour for s


def with_complex_batch(network: NetworkRows, rows: Rows) -> Rows:
    """Rows of a ``network`` after one step, with the residuals of their batch on complex nodes.

    ``rows`` are returned unchanged where no complex rule agrees with the real one.
    """
    step, (batch,), (all_groups,) = network.step, rows.batches, network.all_groups.batches
    sample = first_sample_weights(step, network.kinds)
    labels = step.labels_at(0)
    if labels.channel or labels.target.dimension != 1 or step.inputs is not None:
        return rows  # random labels +-1 have two residuals, other laws keep their real nodes
    largest_group = int(np.argmax(np.abs(sample.linear) if sample.linear.any() else sample.square))
    if sample.linear.any():
        rho = all_groups.t12[largest_group] / sample.linear[largest_group]
    elif sample.square.any():
        rho = np.sqrt(all_groups.t11[largest_group] / sample.square[largest_group])
    else:
        return rows
    linear, square = batch.t12 @ rho / (rho @ rho), batch.t11 @ rho**2 / (rho**2 @ rho**2)
    normalised = sample._replace(linear=linear, square=square)
    rho, weights = _matching_rule(labels, normalised, batch.alpha, Rule(rho, batch.weights))
    t11, t12 = square[:, None] * rho**2, linear[:, None] * rho
    rotated_batch = batch._replace(pairs=weights[None, None], t11=t11, t12=t12)
    return replace(rows, batches=(rotated_batch,))


def _matching_rule(labels: LabelLaw, sample: FirstSampleWeights, alpha: float, real: Rule) -> Rule:
    """The first complex rule that reproduces the averages on the ``real`` nodes, or ``real``."""
    scale = float((sample.square / alpha + (sample.linear / alpha) ** 2).max())
    target: Any = labels.target
    offset = sample.offset[0]

    def mean(z: Array) -> Array:
        """The target less its offset, without checks, so that z may be complex."""
        return np.asarray(target.function(np.array(z))) - offset

    shifted = replace(labels, target=Activation(mean, kinks=target.kinks))
    averages = partial(_rational_averages, scale=scale, odd=bool(sample.linear.any()))
    expected, size = averages(real)
    for candidate in _candidate_rules(shifted, scale) if scale else ():
        with np.errstate(all="ignore"):
            error = np.abs(averages(candidate)[0] - expected)
        if (error <= 1e-10 * size).all():
            return candidate
    return real


def _rational_averages(nodes: Rule, scale: float, *, odd: bool) -> tuple[Array, float]:
    """Averages over rho of the pencil's rational functions, and the scale of their errors.

    Functions odd in rho are included if ``odd``.
    """
    rho, weights = nodes
    inverse = 1 / (1 + scale * np.array([0.0, 0.01, 0.1, 0.4, 1.0])[:, None] * rho**2)
    even = rho**2 * inverse
    values = np.append(even @ weights, (rho * inverse) @ weights if odd else [])
    return values, float(np.abs(even[0]) @ np.abs(weights))


def _candidate_rules(labels: LabelLaw, scale: float) -> Iterator[Rule]:
    """Candidate rules for averages of 1 / (1 + x scale rho^2), with rho the label.

    Each Gaussian of the label noise is integrated on the rotated line if it is wide enough, else
    through s: on a contour, or on the target's values.
    """
    target, gaussians = labels.target, labels.gaussians
    rotated = [_on_rotated_line(target, v, scale) if v else None for v, _ in gaussians]
    for noiseless in (_on_contour(target), _on_real_line(target, 0.25)):
        pairs = zip(gaussians, rotated, strict=True)
        rules = [rule or _with_small_noise(noiseless, v) for (v, _), rule in pairs]
        shares = [share * rule.weights for (_, share), rule in zip(gaussians, rules, strict=True)]
        yield Rule(np.concatenate([rule.nodes for rule in rules]), np.concatenate(shares))


def _on_contour(target: Any) -> Rule:
    """Noiseless labels on a contour for s that meets the real line at the target's kinks.

    Nodes are NaN if the target does not take complex arguments.
    """
    if target.kinks:
        s, weights = _contour_between_kinks(target)
    else:
        rule = trapezoid(CONTOUR_NODES, half_range(CONTOUR_NODES))
        s, weights = contour(
            *sides_and_turns(rule.nodes, target(rule.nodes) ** 2), CONTOUR_NODES, 1.0
        )
    try:
        return _merged_labels(target.function(s.copy()), weights)
    except (TypeError, ValueError):  # the target does not take complex numbers
        return Rule(np.full(s.shape, np.nan), weights)


def _contour_between_kinks(target: Any) -> tuple[Array, Array]:
    """Contour for s, and its weights, off the real line on every interval between two kinks."""
    end = half_range(CONTOUR_NODES)
    # 24 nodes a panel of length 1: the poles are 0.15 away
    rule = gauss_legendre(24, graded_breaks(target.kinks, end), end, 1.0)
    real_s, s, slope = rule.nodes, rule.nodes.astype(complex), np.ones(rule.nodes.size, complex)
    for ends in pairwise((-np.inf, *target.kinks, np.inf)):
        inside = (real_s > ends[0]) & (real_s < ends[1])
        side, turns = sides_and_turns(real_s[inside], target(real_s[inside]) ** 2)
        if side:
            s[inside], slope[inside] = contour_points(real_s[inside], side, turns, 1.0, ends)
    weights = rule.weights * slope * np.exp((real_s**2 - s**2) / 2)
    return s, weights / weights.sum()


def _with_small_noise(nodes: Rule, noise: float) -> Rule:
    """Labels plus Gaussian noise of a small variance ``noise``, by Gauss-Hermite quadrature."""
    if not noise:
        return nodes
    xi, noise_weights = gauss_hermite(6)
    rho = nodes.nodes[:, None] + np.sqrt(noise) * xi
    return Rule(rho.ravel(), (nodes.weights[:, None] * noise_weights).ravel())


def _on_real_line(target: Any, panel: float) -> Rule:
    """Values of the target on a fine real rule for s."""
    reach = half_range(1024)
    rule = gauss_legendre(24, graded_breaks(target.kinks, reach), reach, panel)
    return _merged_labels(target(rule.nodes), rule.weights)


def _merged_labels(labels: Array, weights: Array) -> Rule:
    """Rule of the labels with their ``weights``; equal labels, of a constant target, are merged."""
    values, index = np.unique(labels, return_inverse=True)
    merged = np.zeros(values.size, weights.dtype)
    np.add.at(merged, index, weights)
    return Rule(values, merged)


def _on_rotated_line(target: Any, noise: float, scale: float) -> Rule | None:
    """Rule on the rotated line rho = u exp(-i phi), dense where 1 / (1 + scale rho^2) varies.

    None where the variance ``noise`` is so small that it takes too many nodes.
    """
    mean, weights = _on_real_line(target, float(np.clip(np.sqrt(noise) / 2, 0.05, 2.5)))
    largest = float(np.abs(mean).max())
    # With small noise the continued density has modulus up to e^4.5: cancellation then costs two
    # digits.
    phi = min(0.35, 3.0 * np.sqrt(noise) / max(largest, 1e-300))
    root = np.sqrt(max(scale, 1 / noise))
    # last: where |exp(-(y - m)^2 / (2 noise))| = exp(-45) = 3e-20, m the largest label
    side, rest = largest * np.cos(phi), largest**2 - 2 * noise * 45.0
    farthest = (side + np.sqrt(side**2 - np.cos(2 * phi) * rest)) / np.cos(2 * phi)
    end = np.arcsinh(root * farthest)
    # the poles are at distance phi in u: the error is rounding
    count = int(np.ceil(2 * end / (0.06 * phi)))
    # Every z averages over all nodes, and 2^22 values of the density take 64 MiB.
    if count > 4096 or count * mean.size > 2**22:
        return None
    u, phase = np.linspace(-end, end, count), np.exp(-1j * phi)
    rho = phase * np.sinh(u) / root
    spacing = phase * np.cosh(u) / root * (u[1] - u[0])
    density = gaussian_density((rho[:, None] - mean) / np.sqrt(noise)) / np.sqrt(noise)
    return Rule(rho, (density @ weights) * spacing)
