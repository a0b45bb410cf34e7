"""Few nodes of rho, by Chebyshev interpolation in arcsinh(root rho), and label noise as a matrix.
docs/theory.md 16, 18

Averages of smooth functions of rho over many values are replaced by averages over few nodes, by
interpolation.  Label noise acts on the weights of the nodes as a matrix.
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

RHO_NODES = (16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40)  # nodes on a panel, by level
# Noise variance times root^2 above which a rule for rho needs fewer nodes than a rule for the
# noise.
WIDE_NOISE = 0.5


class RhoNodes(NamedTuple):
    """Chebyshev nodes on panels in u = arcsinh(root rho), to interpolate smooth functions of rho.

    The panels start at u = ``low``; each has the same ``length`` and number of ``points``.
    """

    root: float
    low: float
    length: float
    panels: int
    points: int

    @property
    def rho(self) -> Array:
        """Nodes of all panels, (m,)."""
        rho_panel_place = np.arange(self.panels)[:, None] + (chebpts1(self.points) + 1) / 2
        return np.asarray(np.sinh(self.low + self.length * rho_panel_place.ravel()) / self.root)

    def zero_moments(self, weight_count: int, place_count: int) -> Array:
        """Zero Chebyshev moments of weights at N places."""
        return np.zeros((weight_count, place_count * self.panels, self.points))

    def add_to(self, total: Array, owner: NDArray[np.int64], rho: Array, weights: Array) -> None:
        """Add weights (l, n) at ``rho`` (n,) to the Chebyshev moments ``total`` at ``owner``.

        With several panels, rounding of large weights does not reach the small ones of the tails.
        """
        u_place = (np.arcsinh(self.root * rho) - self.low) / self.length
        rho_panel = np.clip(u_place.astype(int), 0, self.panels - 1)
        place_and_panel = owner * self.panels + rho_panel
        by_panel = np.argsort(place_and_panel, kind="stable")
        chebyshev_basis = chebvander(2 * (u_place - rho_panel)[by_panel] - 1, self.points - 1)
        _add_moments(total, place_and_panel[by_panel], weights[:, by_panel], chebyshev_basis)

    def weights_on_nodes(self, chebyshev_moments: Array) -> Array:
        """Weights (l, N, m) on the nodes with these Chebyshev moments."""
        on_nodes = chebyshev_moments @ coefficient_matrix(self.points)
        return np.asarray(on_nodes.reshape(len(chebyshev_moments), -1, self.panels * self.points))


def _add_moments(moment_sums: Array, key: NDArray[np.int64], weights: Array, basis: Array) -> None:
    """Add ``weights`` (l, n) times ``basis`` (n, p) to the rows of ``moment_sums`` (l, M, p) that
    the sorted ``key`` (n,) names, all samples of one row at once."""
    row_starts = np.flatnonzero(np.diff(key, prepend=-1))
    for row_start, row_end in zip(row_starts, [*row_starts[1:], len(key)], strict=True):
        moment_sums[:, key[row_start]] += weights[:, row_start:row_end] @ basis[row_start:row_end]


class Block(NamedTuple):
    """Residuals rho (n,) without label noise, of places ``owner`` (n,), which are sorted.

    The moments (l, n) are their weights.
    """

    owner: NDArray[np.int64]
    rho: Array
    moments: Array


def on_few_nodes(
    labels: LabelLaw,
    label_offset: Array,
    rho_ends: tuple[float, float] | None,
    rho_blocks: Iterator[Block],
    kinds: int,
    root: float,
    level: int,
) -> tuple[Array, Array]:
    """Few nodes rho, (1, m) or (N, m), and weights (``kinds``, N, m) for all ``rho_blocks``.

    Label noise is added to the residuals, which lie between ``rho_ends``.  If these are None, every
    one of the N places has a single residual, and there is no noise.
    """
    place_count, widest_noise = len(label_offset), max(variance for variance, _ in labels.gaussians)
    if labels.channel:
        rho_moments = np.zeros((kinds, place_count, 2))
        for owner, rho, weights in rho_blocks:
            mean = rho + label_offset[owner]
            _add_moments(rho_moments, owner, weights, np.stack([1 + mean, 1 - mean], axis=1) / 2)
        return np.stack([1 - label_offset, -1 - label_offset], axis=1), rho_moments
    if rho_ends is None:
        single_rho, rho_moments = np.zeros((place_count, 1)), np.zeros((kinds, place_count, 1))
        for owner, rho, weights in rho_blocks:
            single_rho[owner, 0], rho_moments[:, owner, 0] = rho, weights
        return single_rho, rho_moments
    lowest_rho, highest_rho = rho_ends
    noiseless_nodes = _nodes_between(lowest_rho, highest_rho, root, RHO_NODES[level])
    chebyshev_moments = noiseless_nodes.zero_moments(kinds, place_count)
    for rho_block in rho_blocks:
        noiseless_nodes.add_to(chebyshev_moments, *rho_block)
    noiseless_weights = noiseless_nodes.weights_on_nodes(chebyshev_moments)
    if not widest_noise:
        return noiseless_nodes.rho[None], noiseless_weights
    noise_margin = HALF_WIDTH * np.sqrt(widest_noise)
    noisy_nodes = _nodes_between(
        lowest_rho - noise_margin, highest_rho + noise_margin, root, RHO_NODES[level]
    )
    noise_matrix = sum(
        noise_share * _noise_matrix(noisy_nodes, noiseless_nodes.rho, variance, root, level)
        for variance, noise_share in labels.gaussians
    )
    return noisy_nodes.rho[None], noiseless_weights @ noise_matrix


def _nodes_between(u_low: float, u_high: float, rho_root: float, count: int) -> RhoNodes:
    """Nodes between two values of rho, for functions that vary on the scale 1 / root."""
    # several panels: on a long one, rounding would hide the tiny weights of the tails
    rho_root = max(rho_root, 5.0 / max(-u_low, u_high, 1e-300))
    u_low, u_high = float(np.arcsinh(rho_root * u_low)), float(np.arcsinh(rho_root * u_high))
    rho_panels = max(1, int(np.ceil((u_high - u_low) / 1.5)))
    return RhoNodes(rho_root, u_low, max((u_high - u_low) / rho_panels, 1e-300), rho_panels, count)


def _noise_matrix(nodes: RhoNodes, mean: Array, noise: float, root: float, level: int) -> Array:
    """Matrix (M, m) that adds label noise: row i has the weights on ``nodes`` of a Gaussian of mean
    ``mean``[i] and variance ``noise``."""
    noise_sd, noise_matrix = np.sqrt(noise), np.empty((len(mean), len(nodes.rho)))
    # functions vary on the scale 1 / root near 0 only
    by_density = (np.abs(mean) < HALF_WIDTH * noise_sd) & (root * noise_sd > np.sqrt(WIDE_NOISE))
    for rows_of_rule, make_rule in ((by_density, _rule_in_rho), (~by_density, _rule_in_noise)):
        if rows_of_rule.any():
            noisy_rho, noise_weights = make_rule(mean[rows_of_rule], noise_sd, root, level)
            chebyshev_moments = nodes.zero_moments(1, len(noisy_rho))
            owner = np.repeat(np.arange(len(noisy_rho)), noisy_rho.shape[1])
            nodes.add_to(chebyshev_moments, owner, noisy_rho.ravel(), noise_weights.reshape(1, -1))
            noise_matrix[rows_of_rule] = nodes.weights_on_nodes(chebyshev_moments)[0]
    return noise_matrix


def _rule_in_noise(mean: Array, noise_sd: float, root: float, level: int) -> tuple[Array, Array]:
    """Trapezoidal rule (M, n) in the noise, for Gaussians of a ``noise_sd`` around ``mean``
    (M,)."""
    noise_scale = min(root * noise_sd, np.sqrt(WIDE_NOISE))
    xi, noise_weights = trapezoid(int((22 + 50 * noise_scale) * (1 + level / 8)) if noise_sd else 1)
    noisy_rho = mean[:, None] + noise_sd * xi
    return noisy_rho, np.broadcast_to(noise_weights, noisy_rho.shape)


def _rule_in_rho(mean: Array, noise_sd: float, root: float, level: int) -> tuple[Array, Array]:
    """Trapezoidal rule (M, n) in arcsinh(root rho), for the same Gaussians, by their density."""
    noise_margin = HALF_WIDTH * noise_sd
    low, high = np.arcsinh(root * np.array([mean.min() - noise_margin, mean.max() + noise_margin]))
    narrowest_u = noise_sd * root / np.sqrt(1 + (root * np.abs(mean).max()) ** 2)
    u_spacing = min(0.15, 0.6 * narrowest_u) * 0.85**level
    u, u_step = np.linspace(low, high, int(np.ceil((high - low) / u_spacing)) + 1, retstep=True)
    noisy_rho = np.sinh(u) / root
    noise_density = gaussian_density((noisy_rho - mean[:, None]) / noise_sd)
    rho_weights = noise_density * np.cosh(u) * u_step / root / noise_sd
    return np.broadcast_to(noisy_rho, rho_weights.shape), rho_weights
