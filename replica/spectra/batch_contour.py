"""The residual of a sample of the first batch beside the real line.  docs/theory.md 9, 16 and 17

In the spectrum of a network, the averages over the first batch have poles, too: a sample of which
the pencil's Q (18.9) is nearly singular makes an eigenvalue of the rows' covariance of its own.
The real rule condenses the residuals for positive arguments; its nodes would show one by one.
Above the real axis the poles in rho lie above the line, and the averages are taken below it:

* with label noise, on rho = u exp(-i phi): its density is entire;
* without, on a contour for the target's argument s, as for kappa, if it can be continued from each
  of the pieces between its kinks;
* of a target that is constant by pieces, on its values.

Noise too small for the first is integrated on a few values.  What is found must agree with the
real rule at positive arguments; where nothing does, that rule is taken as it is.
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
from ..steps import FirstSample, NetworkRows, first_sample
from .contour import beside, contour, sides

CONTOUR_NODES = 512  # of the contour for s


def beside_line(network: NetworkRows, rows: Rows) -> Rows:
    """The ``rows`` of groups of a ``network`` after a single step, with their batch on nodes beside
    the real line, where these give the same averages for positive arguments."""
    step, (one,), (all_groups,) = network.step, rows.batches, network.all_groups.batches
    first = first_sample(step, network.kinds)
    labels = step.labels_at(0)
    if labels.channel or labels.target.dimension != 1 or step.inputs is not None:
        return rows  # signs: there is nothing but the nodes of two labels
    group = int(np.argmax(np.abs(first.linear) if first.linear.any() else first.square))
    if first.linear.any():
        rho = all_groups.t12[group] / first.linear[group]
    elif first.square.any():
        rho = np.sqrt(all_groups.t11[group] / first.square[group])
    else:
        return rows
    linear, square = one.t12 @ rho / (rho @ rho), one.t11 @ rho**2 / (rho**2 @ rho**2)
    own = first._replace(linear=linear, square=square)
    rho, weights = _beside(labels, own, one.alpha, Rule(rho, one.weights))
    t11, t12 = square[:, None] * rho**2, linear[:, None] * rho
    turned = one._replace(pairs=weights[None, None], t11=t11, t12=t12)
    return replace(rows, batches=(turned,))


def _beside(labels: LabelLaw, first: FirstSample, alpha: float, real: Rule) -> Rule:
    """Nodes beside the line that give the averages of the ``real`` ones, or those."""
    scale = float((first.square / alpha + (first.linear / alpha) ** 2).max())
    target: Any = labels.target
    offset = first.offset[0]

    def mean(z: Array) -> Array:
        """The target less its offset, as it stands: also at complex z."""
        return np.asarray(target.function(np.array(z))) - offset

    shifted = replace(labels, target=Activation(mean, kinks=target.kinks))
    averages = partial(_averages, scale=scale, odd=bool(first.linear.any()))
    expected, size = averages(real)
    for candidate in _candidates(shifted, scale) if scale else ():
        with np.errstate(all="ignore"):
            error = np.abs(averages(candidate)[0] - expected)
        if (error <= 1e-10 * size).all():
            return candidate
    return real


def _averages(nodes: Rule, scale: float, *, odd: bool) -> tuple[Array, float]:
    """Averages over rho of the kind that the pencil takes, with ``odd`` ones or without, and what
    they are compared with."""
    rho, weights = nodes
    inverse = 1 / (1 + scale * np.array([0.0, 0.01, 0.1, 0.4, 1.0])[:, None] * rho**2)
    even = rho**2 * inverse
    values = np.append(even @ weights, (rho * inverse) @ weights if odd else [])
    return values, float(np.abs(even[0]) @ np.abs(weights))


def _candidates(labels: LabelLaw, scale: float) -> Iterator[Rule]:
    """Rules to be tried for 1 / (1 + x scale rho^2), rho being the label: on the rotated line where
    there is noise enough, and for the rest on a contour for s, or on the target's values."""
    target, parts = labels.target, labels.gaussians
    rotated = [_rotated(target, v, scale) if v else None for v, _ in parts]
    for plain in (_continued(target), _on_line(target, 0.25)):
        each = [one or _blurred(plain, v) for (v, _), one in zip(parts, rotated, strict=True)]
        shares = [share * one.weights for (_, share), one in zip(parts, each, strict=True)]
        yield Rule(np.concatenate([one.nodes for one in each]), np.concatenate(shares))


def _continued(target: Any) -> Rule:
    """Labels without noise, on a contour for s, which meets the line at the target's kinks; NaN if
    the target cannot be continued."""
    if target.kinks:
        s, weights = _by_pieces(target)
    else:
        rule = trapezoid(CONTOUR_NODES, half_range(CONTOUR_NODES))
        s, weights = contour(*sides(rule.nodes, target(rule.nodes) ** 2), CONTOUR_NODES, 1.0)
    try:
        return _values(target.function(s.copy()), weights)
    except (TypeError, ValueError):  # not made for complex numbers
        return Rule(np.full(s.shape, np.nan), weights)


def _by_pieces(target: Any) -> tuple[Array, Array]:
    """A contour for s and its weights, beside every piece of the line between two kinks."""
    end = half_range(CONTOUR_NODES)
    # 24 nodes a panel of length 1: the poles are 0.15 away
    rule = gauss_legendre(24, graded_breaks(target.kinks, end), end, 1.0)
    line, s, slope = rule.nodes, rule.nodes.astype(complex), np.ones(rule.nodes.size, complex)
    for ends in pairwise((-np.inf, *target.kinks, np.inf)):
        piece = (line > ends[0]) & (line < ends[1])
        side, turns = sides(line[piece], target(line[piece]) ** 2)
        if side:
            s[piece], slope[piece] = beside(line[piece], side, turns, 1.0, ends)
    weights = rule.weights * slope * np.exp((line**2 - s**2) / 2)
    return s, weights / weights.sum()


def _blurred(nodes: Rule, noise: float) -> Rule:
    """Labels with a Gaussian noise of that variance added, so little that a few values of it
    suffice."""
    if not noise:
        return nodes
    xi, w = gauss_hermite(6)
    rho = nodes.nodes[:, None] + np.sqrt(noise) * xi
    return Rule(rho.ravel(), (nodes.weights[:, None] * w).ravel())


def _on_line(target: Any, panel: float) -> Rule:
    """The values that the target has on a fine rule for s."""
    reach = half_range(1024)
    rule = gauss_legendre(24, graded_breaks(target.kinks, reach), reach, panel)
    return _values(target(rule.nodes), rule.weights)


def _values(labels: Array, weights: Array) -> Rule:
    """Labels with ``weights``, one node for all that are equal: where the target is constant."""
    values, which = np.unique(labels, return_inverse=True)
    shares = np.zeros(values.size, weights.dtype)
    np.add.at(shares, which, weights)
    return Rule(values, shares)


def _rotated(target: Any, noise: float, scale: float) -> Rule | None:
    """rho = u exp(-i phi), dense where 1 / (1 + scale rho^2) varies, weighed by its density; None
    where the noise is so small that this takes too many nodes."""
    mean, weights = _on_line(target, float(np.clip(np.sqrt(noise) / 2, 0.05, 2.5)))
    largest = float(np.abs(mean).max())
    # Where the noise is small, the largest modulus of what is a density on the line is e^4.5:
    # cancellation then costs two digits.
    phi = min(0.35, 3.0 * np.sqrt(noise) / max(largest, 1e-300))
    root = np.sqrt(max(scale, 1 / noise))
    # where |exp(-(y - m)^2 / (2 noise))| = exp(-45) = 3e-20, m the largest label
    side, rest = largest * np.cos(phi), largest**2 - 2 * noise * 45.0
    last = (side + np.sqrt(side**2 - np.cos(2 * phi) * rest)) / np.cos(2 * phi)
    end = np.arcsinh(root * last)
    # the poles are phi away, in u: what is left is rounding
    count = int(np.ceil(2 * end / (0.06 * phi)))
    # The averages are over all nodes at every z, and 2^22 values of the density take 64 MiB.
    if count > 4096 or count * mean.size > 2**22:
        return None
    u, turn = np.linspace(-end, end, count), np.exp(-1j * phi)
    rho = turn * np.sinh(u) / root
    cell = turn * np.cosh(u) / root * (u[1] - u[0])
    density = gaussian_density((rho[:, None] - mean) / np.sqrt(noise)) / np.sqrt(noise)
    return Rule(rho, (density @ weights) * cell)
