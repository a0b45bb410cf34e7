"""Nodes for the residual of a sample, and what label noise adds to it.  docs/theory.md 16, 18

Averages of smooth functions of rho are carried from its values to few nodes, on which the noise is
a matrix.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from numpy.typing import NDArray

from solvers.chebyshev import coefficient_matrix
from solvers.results import Array
from solvers.rules import HALF_WIDTH, gaussian_density, trapezoid

from ..problem import LabelLaw

RHO_NODES = (16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40)  # on a panel, on finer levels
# Noise over the square of 1 / root, from which a rule for rho needs fewer nodes than one for the
# noise.
WIDE_NOISE = 0.5


class Nodes(NamedTuple):
    """Panels of ``length`` in arcsinh(root rho), from ``low`` on, each with ``points`` Chebyshev
    nodes that interpolate smooth functions of rho."""

    root: float
    low: float
    length: float
    panels: int
    points: int

    @property
    def rho(self) -> Array:
        """All nodes, (m,)."""
        place = np.arange(self.panels)[:, None] + (chebpts1(self.points) + 1) / 2
        return np.asarray(np.sinh(self.low + self.length * place.ravel()) / self.root)

    def empty(self, kinds: int, N: int) -> Array:
        """Room for weights on these nodes at N places."""
        return np.zeros((kinds, N * self.panels, self.points))

    def add(self, total: Array, owner: NDArray[np.int64], rho: Array, weights: Array) -> None:
        """Add to the ``total`` weights of places ``owner`` (n,) on these nodes those (l, n) at
        ``rho`` (n,).

        Panels keep the rounding of large values out of the small weights of the tails.
        """
        place = (np.arcsinh(self.root * rho) - self.low) / self.length
        panel = np.clip(place.astype(int), 0, self.panels - 1)
        key = owner * self.panels + panel
        order = np.argsort(key, kind="stable")
        basis = chebvander(2 * (place - panel)[order] - 1, self.points - 1)
        _accumulate(total, key[order], weights[:, order], basis)

    def carried(self, total: Array) -> Array:
        """The ``total`` weights (l, N, m) of the same averages of smooth functions."""
        on_nodes = total @ coefficient_matrix(self.points)
        return np.asarray(on_nodes.reshape(len(total), -1, self.panels * self.points))


def _accumulate(total: Array, key: NDArray[np.int64], weights: Array, basis: Array) -> None:
    """Add ``weights`` (l, n) times ``basis`` (n, p) to the ``total`` (l, M, p) at each ``key``
    (n,), in order."""
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(key)], strict=True):
        total[:, key[start]] += weights[:, start:end] @ basis[start:end]


class Block(NamedTuple):
    """Residuals rho (n,), but for the labels' noise, of places ``owner`` (n,), in order, with
    moments (l, n) as weights."""

    owner: NDArray[np.int64]
    rho: Array
    moments: Array


def on_few_nodes(
    labels: LabelLaw,
    offset: Array,
    ends: tuple[float, float] | None,
    blocks: Iterator[Block],
    kinds: int,
    root: float,
    level: int,
) -> tuple[Array, Array]:
    """Nodes rho (1, m), or (N, m), of N places with this ``offset`` (N,), and the weights there
    (``kinds``, N, m), of all ``blocks`` with the labels' noise: of residuals between ``ends``, or
    (None) of one at each place, without noise."""
    N, widest = len(offset), max(variance for variance, _ in labels.gaussians)
    if labels.channel:
        moments = np.zeros((kinds, N, 2))
        for owner, rho, weights in blocks:
            mean = rho + offset[owner]
            _accumulate(moments, owner, weights, np.stack([1 + mean, 1 - mean], axis=1) / 2)
        return np.stack([1 - offset, -1 - offset], axis=1), moments
    if ends is None:
        values, moments = np.zeros((N, 1)), np.zeros((kinds, N, 1))
        for owner, rho, weights in blocks:
            values[owner, 0], moments[:, owner, 0] = rho, weights
        return values, moments
    low, high = ends
    plain = _nodes(low, high, root, RHO_NODES[level])
    total = plain.empty(kinds, N)
    for block in blocks:
        plain.add(total, *block)
    carried = plain.carried(total)
    if not widest:
        return plain.rho[None], carried
    margin = HALF_WIDTH * np.sqrt(widest)
    nodes = _nodes(low - margin, high + margin, root, RHO_NODES[level])
    blur = sum(
        share * _blur(nodes, plain.rho, variance, root, level)
        for variance, share in labels.gaussians
    )
    return nodes.rho[None], carried @ blur


def _nodes(low: float, high: float, root: float, count: int) -> Nodes:
    """Nodes for functions of the scale 1 / root, between two values."""
    # more than one panel, as tails have tiny weights, which are lost in rounding on longer ones
    root = max(root, 5.0 / max(-low, high, 1e-300))
    low, high = float(np.arcsinh(root * low)), float(np.arcsinh(root * high))
    panels = max(1, int(np.ceil((high - low) / 1.5)))
    return Nodes(root, low, max((high - low) / panels, 1e-300), panels, count)


def _blur(nodes: Nodes, mean: Array, noise: float, root: float, level: int) -> Array:
    """Weights (M, m) on ``nodes`` of each of ``mean`` (M,) + Gaussian ``noise`` (a variance)."""
    deviation, blur = np.sqrt(noise), np.empty((len(mean), len(nodes.rho)))
    # functions vary on the scale 1 / root near 0 alone
    near = (np.abs(mean) < HALF_WIDTH * deviation) & (root * deviation > np.sqrt(WIDE_NOISE))
    for which, values in ((near, _by_density), (~near, _by_values)):
        if which.any():
            rho, weights = values(mean[which], deviation, root, level)
            total, owner = nodes.empty(1, len(rho)), np.repeat(np.arange(len(rho)), rho.shape[1])
            nodes.add(total, owner, rho.ravel(), weights.reshape(1, -1))
            blur[which] = nodes.carried(total)[0]
    return blur


def _by_values(mean: Array, deviation: float, root: float, level: int) -> tuple[Array, Array]:
    """Values and weights (M, n) of each of ``mean`` (M,) and a Gaussian of that ``deviation``: by
    values of the Gaussian."""
    scale = min(root * deviation, np.sqrt(WIDE_NOISE))
    xi, w = trapezoid(int((22 + 50 * scale) * (1 + level / 8)) if deviation else 1)
    rho = mean[:, None] + deviation * xi
    return rho, np.broadcast_to(w, rho.shape)


def _by_density(mean: Array, deviation: float, root: float, level: int) -> tuple[Array, Array]:
    """The same by its density, on values that are evenly spaced in arcsinh(root rho)."""
    margin = HALF_WIDTH * deviation
    low, high = np.arcsinh(root * np.array([mean.min() - margin, mean.max() + margin]))
    narrowest = deviation * root / np.sqrt(1 + (root * np.abs(mean).max()) ** 2)
    spacing = min(0.15, 0.6 * narrowest) * 0.85**level
    u, step = np.linspace(low, high, int(np.ceil((high - low) / spacing)) + 1, retstep=True)
    rho = np.sinh(u) / root
    density = gaussian_density((rho - mean[:, None]) / deviation)
    weights = density * np.cosh(u) * step / root / deviation
    return np.broadcast_to(rho, weights.shape), weights
