"""Inputs of a component given the special directions, and the nodes at which they are cut.

Inputs are x ~ N(m, Sigma).  Given kappa = U^T x along the special directions U, those of the target
and all along which rows are not small, pre-activations are Gaussian: with z ~ N(0, I) the
standardised kappa,

    W x + t = s(z) + g,   s = t + W m + R z,   R = Cov(W x, z),   Cov g = B = W Sigma W^T - R R^T.

docs/theory.md 20
"""

from typing import NamedTuple

import numpy as np

from solvers.results import Array
from solvers.rules import Rule, gauss_hermite, tensor
from solvers.split import split_at_planes

from ..problem import Activation, triangular_root

# Loadings over the width in which features vary, root mean square, from which on Hermite nodes are
# too far apart; and the largest that counts.
STEEP, STEEPEST = 4.0, 100.0


class Level(NamedTuple):
    """How finely inputs are cut into strata.

    Attributes
    ----------
    nodes : tuple of int
        Along every direction of z, of which there are 1, 2, ..., and the last of them for more.
    panel : int
        The same on each panel of a direction along which the target has kinks.
    k_max : int
        Hermite degree of the features.
    rank_tol : float
        Part of E sigma^2 that modes of the mean may leave out.
    """

    nodes: tuple[int, ...]
    panel: int
    k_max: int
    rank_tol: float


LEVELS = (
    Level((32, 20, 14, 8, 6), 8, 4, 3e-7),
    Level((64, 32, 22, 10, 7), 11, 6, 1e-7),
    Level((128, 48, 28, 12, 8), 14, 8, 1e-8),
    Level((192, 64, 36, 13, 9), 18, 10, 1e-8),  # for the kinks of a loss in three directions
)
COARSE = Level((16, 12, 8, 6, 5), 6, 3, 1e-6)  # enough to compare two sets of directions


class Conditioned(NamedTuple):
    """A component of the inputs, given z ~ N(0, I) of its r directions.

    Attributes
    ----------
    share : float
        Of the inputs.
    shift, loadings : (p,), (p, r)
        t + W m, and R.
    variances, correlation : (p,), (p, p)
        c and rho, those of B, the covariance of pre-activations given z.
    origin, axes : (K,), (K, r)
        kappa = origin + axes z, the axes triangular: the first directions have the first z.
    """

    share: float
    shift: Array
    loadings: Array
    variances: Array
    correlation: Array
    origin: Array
    axes: Array

    def nodes(
        self,
        student: Activation,
        planes: tuple[Array, Array],
        level: Level,
        last: int | None = None,
    ) -> Rule:
        """Nodes for z that have any weight, on either side of ``planes`` normals kappa = offsets,
        (m, K) and (m,), of the target's kinks, and closer to each other where features of a giant
        step vary; where the normals of these have more than two directions, of the target's, or of
        none.  With ``last`` nodes along the last of the special directions if said."""
        free = self.axes.shape[1] - (last is not None)
        # as the axes are triangular, the last direction is none of the target's
        normals, offsets = (planes[0] @ self.axes)[:, :free], planes[1] - planes[0] @ self.origin
        crossed = np.abs(normals).max(axis=1, initial=0.0) > 1e-9
        own = normals[crossed], offsets[crossed]
        switches = self._switches(student, free)
        every = [np.concatenate(pair) for pair in zip(own, switches, strict=True)]
        none = np.empty((0, free)), np.empty(0)
        normals, offsets = next(pair for pair in (every, own, none) if _rank(pair[0]) <= 2)
        span = _rank(normals)
        turn = np.linalg.svd(normals)[2]  # its first rows span the normals
        steep = len(normals) > len(own[0])
        if steep and span == 2:  # across the steep direction features take few nodes
            a, b = turn[:2] @ normals[-1]
            turn[:2] = np.array([[a, b], [-b, a]]) @ turn[:2]
        across = tensor()
        if span:
            seen = normals @ turn[:span].T
            slanted = (np.abs(seen[:, -1]) > 1e-9) & (np.abs(seen[:, -1]) < 0.3)
            across = split_at_planes(level.panel, seen, offsets, not steep or slanted.any())
        along = gauss_hermite(level.nodes[min(free, len(level.nodes)) - 1])
        beside = tensor(*[along] * (free - span), *([] if last is None else [gauss_hermite(last)]))
        nodes = np.repeat(across.nodes, beside.weights.size, axis=0)
        nodes = np.concatenate([nodes, np.tile(beside.nodes, (across.weights.size, 1))], axis=1)
        nodes[:, :free] = nodes[:, :free] @ turn
        return heavy(Rule(nodes, np.outer(across.weights, beside.weights).ravel()))

    def _switches(self, student: Activation, count: int) -> tuple[Array, Array]:
        """Planes normals z = offsets, (m, count) and (m,), towards which panels shrink, in the
        first ``count`` of z: features after a giant step vary on a small part of one direction,
        where most pre-activations are 0.  None where no features vary so fast."""
        loadings = self.loadings[:, :count]
        # what is smooth varies on a scale of 1, or what is left of pre-activations smooths it
        widths = self.variances + (0.0 if student.kinks else 1.0)
        widths = np.sqrt(widths + (loadings**2).sum(axis=1) / STEEPEST**2 + 1e-300)
        steepness = loadings / widths[:, None]
        _, sizes, axes = np.linalg.svd(steepness, full_matrices=False)
        largest = sizes.max(initial=0.0) / np.sqrt(len(steepness))
        if largest < STEEP:
            return np.empty((0, count)), np.empty(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            places = -self.shift / (loadings @ axes[0])
        order = np.argsort(places)
        held = np.cumsum(np.abs(steepness @ axes[0])[order])
        centre = places[order[np.searchsorted(held, held[-1] / 2)]]
        distances = 4.0 ** np.arange(np.ceil(np.log(3 * largest) / np.log(4))) / largest
        offsets = centre + np.concatenate([-distances, [0.0], distances])
        return np.tile(axes[0], (offsets.size, 1)), offsets


def condition(
    weights: Array,
    biases: Array,
    directions: Array,
    share: float,
    mean: Array,
    covariance: Array | None,
) -> Conditioned:
    """Pre-activations given the projections on ``directions`` (d, K), orthonormal, for a component
    of that ``share``, mean (d,) and covariance (d, d), or None for the identity.

    Directions along which the component does not vary have no z.
    """
    spread = directions if covariance is None else covariance @ directions
    axes = triangular_root(directions.T @ spread)  # z = axes^-1 (kappa - origin)
    loadings = weights @ spread @ np.linalg.pinv(axes).T
    covered = weights if covariance is None else weights @ covariance
    B = covered @ weights.T
    B -= loadings @ loadings.T
    c = np.maximum(np.diagonal(B), 0.0)
    scale = np.sqrt(np.where(c > 0, c, 1.0))
    B /= scale
    B /= scale[:, None]
    return Conditioned(share, biases + weights @ mean, loadings, c, B, directions.T @ mean, axes)


def heavy(rule: Rule) -> Rule:
    """The nodes (N, K) that have any weight, also where moments grow as z^4: of those in the tails
    beyond, the lightest are left out, which hold 1e-6 of them together."""
    held = rule.weights * (1 + (rule.nodes**2).sum(axis=1) ** 2)
    order = np.argsort(held)
    kept = np.sort(order[np.cumsum(held[order]) > 1e-6 * held.sum()])
    return Rule(rule.nodes[kept], rule.weights[kept] / rule.weights[kept].sum())


def _rank(normals: Array) -> int:
    """That of planes' normals, of length 1 or so."""
    return int(np.linalg.matrix_rank(normals, tol=1e-6))
