"""The law of a label of the first batch beside the real line.  docs/theory.md 9 and 15.

In the spectrum of a network, the averages over the first batch have poles, too: where
1 + (b/alpha0) x y^2 nearly vanishes, a sample of that label makes an eigenvalue of the rows'
covariance of its own.  The real rule condenses the labels for x >= 0; its nodes would show one
by one.  With Im x > 0 the poles in y^2 lie above the line, and the averages are taken below it:

* with label noise, on y = u exp(-i phi): the density of y is entire;
* without, on a contour for s, as for kappa, if the target can be continued;
* of a target that is constant by pieces, on its values.

Noise too small for the first is integrated on a few values.  What is found must agree with the
real rule at x >= 0; where nothing does, that rule is taken as it is.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from solvers.results import Array
from solvers.rules import Rule, gauss_hermite, gauss_legendre, graded, interval, trapezoid

from ..problem import Activation, LabelLaw, Target
from ..saddle_point import Batch, FirstBatch, resolvent
from ..steps import Step, first_batch, first_sample, mixed, on_labels, powers, probe
from .contour import contour, sides

AGREEMENT = 1e-10  # of nodes beside the line with the real rule, relative: else that is taken
# phi is that or, where the noise is small, such that exp(DENSITY_GROWTH^2 / 2) is the largest
# modulus of what is a density on the line: cancellation then costs two digits.
LARGEST_ANGLE, DENSITY_GROWTH = 0.35, 3.0
CONTOUR_NODES = 512  # of the contour for s
# of nodes in u, over phi, the distance of the poles: leaves nothing but rounding
NODE_SPACING = 0.06
MOST_NODES = 4096  # nodes of y: the averages are over all of them at every z
MOST_VALUES = 2**22  # values of the density, 64 MiB
NOISE_NODES = 6  # values of a noise that is too small for a rotated line
DENSITY_END = 45.0  # -log of the density's modulus at the last node: 1e-20
TARGET_PANEL = 0.25  # of s, for labels without noise


def beside_line(step: Step, batch: Batch) -> Batch:
    """The first ``batch`` of ``step`` on the nodes of ``batch_contour``, where these give the same
    averages at real q."""
    of, labels = first_sample(step), step.step_labels
    if labels.channel or not of.square:
        return batch
    mean = partial(_shifted, labels.target, of.offset)
    shifted = replace(labels, target=Activation(mean, kinks=labels.target.kinks))
    strength = of.square / batch.alpha + (of.linear / batch.alpha) ** 2
    y, (weights, _, _) = batch_contour(shifted, strength)
    turned = batch._replace(weights=weights, t11=of.square * y**2, t12=of.linear * y)
    x = np.array([0.0, 0.1, 1.0])[:, None, None]
    G = np.array([[0.0, 0.0], [0.0, -1.0]]) + x * np.array([[1.0, 0.3], [0.3, 0.0]])
    now, before = (resolvent(one, G / batch.alpha) @ one.weights for one in (turned, batch))
    agree = np.abs(now - before).max() <= 100 * AGREEMENT * (1 + np.abs(before).max())
    return turned if agree else batch


def _shifted(target: Target, offset: float, z: Array) -> Array:
    """``target`` less ``offset``, as it stands: also at complex z."""
    return np.asarray(target.function(z)) - offset


@lru_cache(maxsize=64)
def batch_contour(labels: LabelLaw, scale: float) -> FirstBatch:
    """Nodes for 1 / (1 + x t y^2), Im x >= 0, t being ``scale``: complex ones where they serve,
    else a fine real rule, or the nodes of ``first_batch``."""
    known = first_batch(labels, scale)
    expected, size = probe(known, scale)
    for candidate in _candidates(labels, scale):
        with np.errstate(all="ignore"):
            error = np.abs(probe(candidate, scale)[0] - expected)
        if (error <= AGREEMENT * size).all():
            return candidate
    return known


def _candidates(labels: LabelLaw, scale: float) -> Iterator[FirstBatch]:
    """Nodes to be tried: on the rotated line where there is noise enough, and for the rest on a
    contour for s, or on the target's values."""
    target, parts = labels.target, labels.gaussians
    if labels.channel:
        return  # all labels are of size 1: the real rule has nothing but that node
    shares = [share for _, share in parts]
    rotated = [_rotated(target, v, scale) if v else None for v, _ in parts]
    for plain in (_continued(target), FirstBatch(*_values(target, TARGET_PANEL))):
        pairs = zip(parts, rotated, strict=True)
        yield mixed([one or _blurred(plain, v) for (v, _), one in pairs], shares)


def _continued(target: Target) -> FirstBatch:
    """Labels without noise, on a contour for s; NaN if the target cannot be continued."""
    rule = trapezoid(CONTOUR_NODES, interval(CONTOUR_NODES))
    kappa, weights = contour(*sides(rule.nodes, target(rule.nodes) ** 2), CONTOUR_NODES, 1.0)
    try:
        y = np.asarray(target.function(kappa))
    except (TypeError, ValueError):  # not made for complex numbers
        y = np.full(kappa.shape, np.nan)
    return FirstBatch(y, powers(Rule(kappa, weights)))


def _blurred(batch: FirstBatch, noise: float) -> FirstBatch:
    """Labels with a Gaussian noise of that variance added, so little that a few values of it
    suffice."""
    if not noise:
        return batch
    xi, w = gauss_hermite(NOISE_NODES)
    y = batch.y[:, None] + np.sqrt(noise) * xi
    return FirstBatch(y.ravel(), (batch.weights[..., None] * w).reshape(3, -1))


def _values(target: Target, panel: float) -> tuple[Array, Array]:
    """The values that the target has on a fine rule for s, and their weights times 1, s, s^2."""
    rule = gauss_legendre(24, graded(target.kinks, interval(1024)), interval(1024), panel)
    values, which = np.unique(target(rule.nodes), return_inverse=True)
    return values, np.stack([np.bincount(which, row, values.size) for row in powers(rule)])


def _rotated(target: Target, noise: float, scale: float) -> FirstBatch | None:
    """y = u exp(-i phi), dense where 1 / (1 + scale y^2) varies, weighed by the density of y;
    None where the noise is so small that this takes too many nodes."""
    mean, weights = _values(target, float(np.clip(np.sqrt(noise) / 2, 0.05, 2.5)))
    largest = float(np.abs(mean).max())
    phi = min(LARGEST_ANGLE, DENSITY_GROWTH * np.sqrt(noise) / max(largest, 1e-300))
    root = np.sqrt(max(scale, 1 / noise))
    # where |exp(-(y - m)^2 / (2 noise))| = exp(-DENSITY_END), m the largest label
    side, rest = largest * np.cos(phi), largest**2 - 2 * noise * DENSITY_END
    last = (side + np.sqrt(side**2 - np.cos(2 * phi) * rest)) / np.cos(2 * phi)
    end = np.arcsinh(root * last)
    count = int(np.ceil(2 * end / (NODE_SPACING * phi)))  # the poles are phi away, in u
    if count > MOST_NODES or count * mean.size > MOST_VALUES:
        return None
    u = np.linspace(-end, end, count)
    return on_labels(mean, weights, noise, root, u, np.exp(-1j * phi))
