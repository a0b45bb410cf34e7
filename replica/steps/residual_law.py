"""The law of the residual of a sample, rho = y - mu_0(kappa), on few nodes.  docs/theory.md 16, 18

At every kappa, rho is integrated over the rest tau of the target's arguments and over the noise, on
rules that close in on its zeros where averages vary quickly there, and is then carried to nodes of
its own, with the moments of the input along the directions that the labels know.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from solvers.quadrature import QuadratureError
from solvers.results import Array
from solvers.rules import HALF_WIDTH, Rule, gauss_legendre, interval, trapezoid, trapezoid_tensor

from ..problem import LabelLaw, remainder

SHORTEST = 1e-7  # part of u beside the target's directions: less is rounding
# On finer levels: nodes of tau, of each panel of tau where the target has kinks, of each of
# several directions; and nodes of rho on a panel that these are carried to.
TAU_NODES = (64, 96, 144, 216, 324, 486, 729)
PANEL_NODES = (10, 14, 20, 28, 40, 56, 80)
TENSOR_NODES = (28, 40, 60, 90, 140, 220, 340)
MOST_VALUES = 2**22  # of the target, or of a density, at once
RHO_NODES = (24, 28, 32, 36, 40, 48, 56)
RESIDUAL_LEVELS = len(RHO_NODES)
PANEL_LENGTH = 3.0  # of rho, in arcsinh(root rho)
# root times the largest rho, at least: more than one panel, as tails have tiny weights
TAILS = 5.0
# Of tau: a panel is so many deviations of the noise long, where its density is taken.
TAU_PANEL, SHORTEST_PANEL, LONGEST_PANEL = 10.0, 0.25, 2.5
# Noise over the square of 1 / root, from which a rule for rho needs fewer nodes than one for the
# noise.
WIDE_NOISE = 0.5


class Labels(NamedTuple):
    """The law of rho given kappa: nodes rho (N, m) for the N of kappa, with the weights
    (D + 1, D + 1, N, m) of E x_a x_b f(rho), x = (1, projections)."""

    rho: Array
    weights: Array


def residuals(
    labels: LabelLaw, rule: Rule, unit: Array, K: int, offset: Array, root: float, level: int
) -> Labels:
    """The law of rho = y - ``offset`` (N,) at the N kappa of ``rule``: there the target's K
    arguments are z = gamma kappa + L tau, and the part of u = ``unit`` beside the target's
    directions sees (kappa - gamma . z) / length.

    Averages vary with rho on a scale 1 / root: the pencil has 1 / (1 + x root^2 rho^2), x <= 1.
    """
    gamma = unit[:K, None]
    L, length = remainder(gamma), np.linalg.norm(unit[K:])
    kappa, offset = rule.nodes, offset[:, None]
    wide = [root**2 * variance > WIDE_NOISE for variance, _ in labels.gaussians]

    def arguments(tau: Array) -> Array:
        return gamma[:, :, None] * kappa[:, None] + np.tensordot(L, tau, axes=1)

    def distance(tau: Array) -> Array:
        return labels.mean(*arguments(tau[None])) - offset

    tau, weights = np.zeros((1, len(kappa), 1)), np.ones((len(kappa), 1))
    if L.any():
        steep = not labels.channel and not all(wide) and root**2 * labels.averages().power > 1.0
        scale = 0.05 / (1 + root * np.sqrt(labels.averages().power)) if steep else 0.0
        narrow = min(
            (v for (v, _), far in zip(labels.gaussians, wide, strict=True) if far), default=1
        )
        panel = float(np.clip(TAU_PANEL * np.sqrt(narrow), SHORTEST_PANEL, LONGEST_PANEL))
        tau, weights = _beside(labels, gamma, L, kappa, distance, scale, panel, level)
    z = arguments(tau)
    x = [np.ones(z.shape[1:]), *z]
    if length > SHORTEST:  # L has a column of that length
        x.append(length * kappa[:, None] - np.tensordot(gamma[:, 0] @ L / length, tau, axes=1))
    first, second = np.triu_indices(len(x))
    moments = np.stack(x)[first] * np.stack(x)[second] * (weights * rule.weights[:, None])
    mean = labels.mean(*z)
    if labels.channel:
        rho = np.concatenate([1 - offset + 0 * mean, -1 - offset + 0 * mean], axis=1)
        moments = np.concatenate([moments * (1 + mean), moments * (1 - mean)], axis=2) / 2
    else:
        parts = [
            _blurred(mean - offset, share * moments, variance, root, level, wide=far)
            for (variance, share), far in zip(labels.gaussians, wide, strict=True)
        ]
        rho, moments = (np.concatenate(each, axis=-1) for each in zip(*parts, strict=True))
    rho, moments = _condensed(rho, moments, root, RHO_NODES[level])
    matrix = np.empty((len(x), len(x), *rho.shape))
    matrix[first, second] = matrix[second, first] = moments
    return Labels(rho, matrix)


def _beside(
    labels: LabelLaw,
    gamma: Array,
    L: Array,
    kappa: Array,
    distance: Callable[[Array], Array],
    scale: float,
    panel: float,
    level: int,
) -> tuple[Array, Array]:
    """Nodes tau (K', N, m) and weights (N, m) given kappa (N,): on panels that end at the target's
    kinks, and close in to ``scale``, if it is not 0, on the zeros of ``distance`` (N, m), rho as a
    function of tau (N, m).  Nodes of one direction are as close as on panels of length
    ``panel``."""
    N, directions = len(kappa), L.shape[1]
    if directions > 1:
        if N * TENSOR_NODES[level] ** directions > MOST_VALUES:
            raise QuadratureError(f"target {labels.target.name}: it varies too quickly")
        nodes, weights = trapezoid_tensor(TENSOR_NODES[level], directions)
        nodes = np.broadcast_to(nodes.T[:, None], (directions, N, len(weights)))
        return nodes, np.broadcast_to(weights, nodes.shape[1:])
    breaks = np.empty((N, 0))
    if len(L) == 1:
        breaks = (np.array(labels.mean.kinks) - gamma[0] * kappa[:, None]) / L[0, 0]
    if scale:
        steps = 4.0 ** np.arange(1, np.log(scale) / np.log(4.0), -1)
        offsets = np.concatenate([steps, -steps])
        near = np.concatenate([breaks, _zeros(distance, N)], axis=1)
        breaks = np.concatenate([near, (near[..., None] + offsets).reshape(N, -1)], axis=1)
    n = TAU_NODES[level] * int(np.ceil(LONGEST_PANEL / panel))
    panels = (
        gauss_legendre(PANEL_NODES[level], breaks, panel=panel)
        if breaks.size
        else trapezoid(n, interval(n))
    )
    nodes, weights = (np.broadcast_to(part, (N, part.shape[-1])) for part in panels)
    return nodes[None], weights


def _zeros(distance: Callable[[Array], Array], N: int) -> Array:
    """Where each of N functions of tau changes sign, (N, most); filled with a place out of
    reach."""
    grid = np.linspace(-HALF_WIDTH, HALF_WIDTH, 345) + 1e-4  # symmetric functions vanish at 0
    sign = distance(np.broadcast_to(grid, (N, len(grid)))) > 0
    change = sign[:, 1:] != sign[:, :-1]
    order = np.argsort(~change, axis=1, kind="stable")[:, : max(change.sum(axis=1).max(), 1)]
    there = np.take_along_axis(change, order, axis=1)
    low, high, at_low = grid[order], grid[order + 1], np.take_along_axis(sign, order, axis=1)
    for _ in range(40):
        middle = (low + high) / 2
        same = (distance(middle) > 0) == at_low
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.where(there, low, 2 * HALF_WIDTH)


def _blurred(
    mean: Array, weights: Array, noise: float, root: float, level: int, *, wide: bool
) -> tuple[Array, Array]:
    """The law of mean + Gaussian ``noise`` (a variance), ``mean`` (N, m) having the ``weights``
    (l, N, m): by values of the noise, or, if it is ``wide``, by its density on values
    that are evenly spaced in arcsinh(root rho)."""
    N = len(mean)
    if not noise:
        return mean, weights
    deviation = np.sqrt(noise)
    if not wide:
        xi, w = trapezoid(int((22 + 50 * root * deviation) * (1 + level / 8)))
        rho = (mean[..., None] + deviation * xi).reshape(N, -1)
        return rho, (weights[..., None] * w).reshape(*weights.shape[:2], -1)
    low, high = (
        np.arcsinh(root * (f(axis=1, keepdims=True) + sign * HALF_WIDTH * deviation))
        for f, sign in ((mean.min, -1), (mean.max, 1))
    )
    narrowest = deviation * root / np.sqrt(1 + (root * np.abs(mean).max()) ** 2)
    spacing = min(0.15, 0.6 * narrowest) * 0.85**level
    u = low + (high - low) * np.linspace(0, 1, int(np.ceil((high - low).max() / spacing)) + 1)
    rho = np.sinh(u) / root
    carried = np.empty((N, len(weights), u.shape[1]))
    at_once = max(1, MOST_VALUES // mean.shape[1])
    for i in range(N):  # one by one: the matrices stay in the cache
        for k in range(0, u.shape[1], at_once):
            part = slice(k, k + at_once)
            density = np.exp(-((mean[i][:, None] - rho[i, part]) ** 2) / (2 * noise))
            carried[i, :, part] = weights[:, i] @ density
    carried *= ((u[:, 1:2] - u[:, :1]) * np.cosh(u) / root / np.sqrt(2 * np.pi * noise))[:, None]
    return rho, carried.transpose(1, 0, 2)


def _condensed(rho: Array, weights: Array, root: float, count: int) -> tuple[Array, Array]:
    """The same averages of smooth functions of rho (N, m), given kappa, with ``weights`` (l, N, m),
    on fewer nodes: on panels in arcsinh(root rho), ``count`` Chebyshev nodes interpolate each.
    Panels keep the rounding of large values out of the small weights of the tails."""
    N, m = rho.shape
    root = max(root, TAILS / max(float(np.abs(rho).max()), 1e-300))
    u = np.arcsinh(root * rho)
    low, high = u.min(axis=1, keepdims=True), u.max(axis=1, keepdims=True)
    panels = max(1, int(np.ceil((high - low).max() / PANEL_LENGTH)))
    if m <= 2 * panels * count:  # not worth it
        return rho, weights
    length = np.maximum((high - low) / panels, 1e-300)
    place = (u - low) / length
    index = np.minimum(place.astype(int), panels - 1)
    points = chebpts1(count)
    fit = np.linalg.inv(chebvander(points, count - 1))
    carried = np.empty((N, len(weights), panels, count))
    for i in range(N):  # one by one: the matrices stay in the cache
        basis = chebvander(2 * (place[i] - index[i]) - 1, count - 1)
        for k in range(panels):
            here = index[i] == k
            carried[i, :, k] = weights[:, i, here] @ basis[here]
    at_nodes = (carried @ fit).reshape(N, len(weights), -1)
    u = low + length * (np.arange(panels)[:, None] + (points + 1) / 2).ravel()
    return np.sinh(u) / root, at_nodes.transpose(1, 0, 2)
