"""Inputs of a component given the special directions, and the nodes at which they are cut.

Inputs are x ~ N(m, Sigma).  Given kappa = U^T x along the special directions U, those of the target
and all along which rows are not small, pre-activations are Gaussian: with z ~ N(0, I) the
standardised kappa,

    W x + t = s(z) + g,   s = t + W m + R z,   R = Cov(W x, z),   Cov g = B = W Sigma W^T - R R^T.

docs/theory.md 20
"""

from typing import Any, NamedTuple

import numpy as np

from solvers.arrays import diagonal_view, like, namespace, to_host
from solvers.linear import leading_eigenvectors
from solvers.plane_panels import split_at_planes
from solvers.results import Array
from solvers.rules import Rule, drop_light_nodes, gauss_hermite, tensor_rule

from ..problem import Activation, triangular_root

# Loadings over the width in which features vary, root mean square, from which on Hermite nodes are
# too far apart; and the largest that counts.
STEEP, STEEPEST = 4.0, 100.0


class Level(NamedTuple):
    """Fineness of the strata that inputs are cut into.

    Attributes
    ----------
    nodes : tuple of int
        Along every direction of z, of which there are 1, 2, ..., and the last of them for more.
    panel : int
        The same on each panel of a direction along which the target has kinks.
    k_max : int
        Hermite degree of the features.
    tol : float
        Part of the variance of features that modes may be left out of.
    """

    nodes: tuple[int, ...]
    panel: int
    k_max: int
    tol: float


STRATA_LEVELS = (
    Level((32, 20, 14, 8, 6), 8, 4, 1e-3),
    Level((64, 32, 22, 10, 7), 11, 6, 1e-4),
    Level((128, 48, 28, 12, 8), 14, 8, 1e-6),
    Level((192, 64, 36, 13, 9), 18, 10, 1e-8),  # for the kinks of a loss in three directions
)


class Conditioned(NamedTuple):
    """A component of the inputs, given z ~ N(0, I) of its r directions.

    Attributes
    ----------
    share : float
        Of the inputs.
    shift, loadings : (p,), (p, r)
        t + W m, and R.
    variances, correlation : (p,), (p, p)
        c, and rho beside its diagonal, of the covariance B of pre-activations given z.
    origin, axes : (K,), (K, r)
        kappa = origin + axes z, the axes triangular: the first directions have the first z.
    """

    share: float
    shift: Array
    loadings: Array
    variances: Array
    correlation: Any
    origin: Array
    axes: Array

    def nodes(
        self,
        student: Activation,
        planes: tuple[Array, Array],
        level: Level,
        last: int | None = None,
    ) -> Rule:
        """Quadrature rule for the standardised projections z.

        Panels are split where the target has kinks, on the ``planes`` normals . kappa = offsets,
        (m, K) and (m,), and shrink towards where features change fast after a giant step.  If
        together these planes span more than two directions, only the target's are split at; if
        those still do, none.  Nodes of negligible weight are dropped.  ``last``: use that many
        Hermite nodes along the last direction.
        """
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
        across = tensor_rule()
        if span:
            seen = normals @ turn[:span].T
            slanted = (np.abs(seen[:, -1]) > 1e-9) & (np.abs(seen[:, -1]) < 0.3)
            across = split_at_planes(level.panel, seen, offsets, not steep or slanted.any())
        along = gauss_hermite(level.nodes[min(free, len(level.nodes)) - 1])
        rest = [along] * (free - span) + ([] if last is None else [gauss_hermite(last)])
        beside = tensor_rule(*rest)
        nodes = np.repeat(across.nodes, beside.weights.size, axis=0)
        nodes = np.concatenate([nodes, np.tile(beside.nodes, (across.weights.size, 1))], axis=1)
        nodes[:, :free] = nodes[:, :free] @ turn
        return drop_light_nodes(Rule(nodes, np.outer(across.weights, beside.weights).ravel()))

    def _switches(self, student: Activation, count: int) -> tuple[Array, Array]:
        """Planes towards which panels shrink: normals . z = offsets, (m, count) and (m,), in the
        first ``count`` coordinates of z.

        After a giant step features change on a small interval of one direction, where most
        pre-activations are 0.  No planes are returned if no features change so fast.
        """
        loadings = self.loadings[:, :count]
        # what is smooth varies on a scale of 1, or what is left of pre-activations smooths it
        widths = self.variances + (0.0 if student.kinks else 1.0)
        widths = np.sqrt(widths + (loadings**2).sum(axis=1) / STEEPEST**2 + 1e-300)
        steepness = loadings / widths[:, None]
        _, sizes, axes = np.linalg.svd(steepness, full_matrices=False)
        largest = sizes.max(initial=0.0) / np.sqrt(len(steepness))
        if largest < STEEP:
            return np.empty((0, count)), np.empty(0)
        along = np.abs(steepness @ axes[0])
        steep = along >= along.mean()
        centre = np.median(-self.shift[steep] / (loadings[steep] @ axes[0]))
        distances = 4.0 ** np.arange(np.ceil(np.log(3 * largest) / np.log(4))) / largest
        offsets = centre + np.concatenate([-distances, [0.0], distances])
        return np.tile(axes[0], (offsets.size, 1)), offsets


def condition(
    weights: Any,
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
    axes, along, covered = _remainder(weights, directions, covariance)
    xp, loadings = namespace(weights), to_host(weights @ along)
    B = covered @ (covered if covariance is None else weights).T
    c = to_host(xp.linalg.diagonal(B)) + 0.0
    c[c < 1e-10 * (loadings**2).sum(axis=1)] = 0.0  # of neurons that z determines
    scale = like(np.where(c > 0, np.sqrt(np.maximum(c, 0.0)), np.inf), B)
    B /= scale
    B /= scale[:, None]
    diagonal_view(B)[:] = 0.0
    shift = biases + to_host(weights @ like(mean, weights))
    return Conditioned(share, shift, loadings, np.maximum(c, 0), B, directions.T @ mean, axes)


def leading_directions(
    weights: Any, known: Array, covariance: Array | None, count: int
) -> tuple[Array, Array, float]:
    """Directions that move pre-activations most, given the projections on ``known`` ones (d, T).

    Returns their shares of the pre-activations' variance, the largest first, the directions, (d, k)
    with k at least ``count`` where there are so many, and the largest share that a direction has of
    random rows.
    """
    _, along, covered = _remainder(weights, known, covariance)
    p, d = weights.shape
    draw = np.random.default_rng(0).standard_normal((max(p, d), min(p, d, count + 11)))
    sizes, axes = leading_eigenvectors(lambda x: covered @ (weights.T @ x), like(draw[:p], weights))
    whole = float(namespace(weights).sum(covered * weights))
    directions = to_host(weights.T @ axes)
    directions = np.linalg.qr(directions - known @ (known.T @ directions))[0]
    random = 1 / d
    if covariance is not None:
        rest = covariance - to_host(along) @ to_host(along).T
        largest = leading_eigenvectors(lambda x: rest @ x, draw[:d])[0][0]
        random = largest / max(np.trace(rest), 1e-300)
    # random rows have independent entries
    return sizes / max(whole, 1e-300), directions, (np.sqrt(random) + 1 / np.sqrt(p)) ** 2


def _remainder(weights: Any, directions: Array, covariance: Array | None) -> tuple[Array, Any, Any]:
    """Root of the covariance of the projections kappa on ``directions`` (K, r), Cov(x, z) (d, r),
    and ``weights`` times the covariance of inputs given z, W Cov(x | z) (p, d)."""
    spread = directions if covariance is None else covariance @ directions
    axes = triangular_root(directions.T @ spread)  # z = axes^-1 (kappa - origin)
    along = like(spread @ np.linalg.pinv(axes).T, weights)
    covered = weights if covariance is None else weights @ like(covariance, weights)
    return axes, along, covered - (weights @ along) @ along.T


def _rank(normals: Array) -> int:
    """Number of independent directions among planes' ``normals`` (m, r), of length about 1."""
    return int(np.linalg.matrix_rank(normals, tol=1e-6))
