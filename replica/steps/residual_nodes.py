"""Nodes for the residual of a sample, and what label noise adds to it.  docs/theory.md 16, 18

Averages of smooth functions of rho are carried from its values to few nodes, on which the noise is
a matrix.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from solvers.chebyshev import to_coefficients
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

    def carry(self, rho: Array, weights: Array) -> Array:
        """Weights (l, N, m) on these nodes of the same averages of smooth functions as those with
        ``weights`` (l, N, n) at ``rho`` (N, n).

        Panels keep the rounding of large values out of the small weights of the tails.
        """
        (N, n), kinds = rho.shape, len(weights)
        place = (np.arcsinh(self.root * rho) - self.low) / self.length
        panel = np.clip(place.astype(int), 0, self.panels - 1)
        total = np.zeros((N, kinds, self.panels, self.points))
        block = 2**14  # values at once: with their polynomials they take a few MB
        some, few = max(1, block // n), min(n, block)
        for k, j in product(range(0, N, some), range(0, n, few)):
            at = slice(k, k + some), slice(j, j + few)
            basis = chebvander(2 * (place[at] - panel[at]) - 1, self.points - 1)
            own = weights[:, *at].swapaxes(0, 1)
            for p in range(self.panels):
                total[at[0], :, p] += (own * (panel[at] == p)[:, None]) @ basis
        total = total @ to_coefficients(self.points)
        return np.asarray(total.swapaxes(0, 1).reshape(kinds, N, -1))


def with_noise(
    labels: LabelLaw, mean: Array, moments: Array, root: float, level: int
) -> tuple[Array, Array]:
    """Nodes rho (1, m), or (N, 1), and the weights there (l, N, m), of values ``mean`` (N, n) with
    ``moments`` (l, N, n) as weights and the labels' noise."""
    widest = max(variance for variance, _ in labels.gaussians)
    if mean.shape[1] == 1 and not widest:
        return mean, moments
    plain = _nodes(mean, 0.0, root, RHO_NODES[level])
    carried = plain.carry(mean, moments)
    if not widest:
        return plain.rho[None], carried
    nodes = _nodes(mean, HALF_WIDTH * np.sqrt(widest), root, RHO_NODES[level])
    blur = sum(
        share * _blur(nodes, plain.rho, variance, root, level)
        for variance, share in labels.gaussians
    )
    return nodes.rho[None], carried @ blur


def _nodes(values: Array, margin: float, root: float, count: int) -> Nodes:
    """Nodes for functions of the scale 1 / root, from ``margin`` below all values to as much
    above."""
    low, high = float(values.min()) - margin, float(values.max()) + margin
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
            blur[which] = nodes.carry(rho, weights[None])[0]
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
