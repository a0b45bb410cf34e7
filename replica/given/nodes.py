"""Pre-activations of a component of the inputs given special directions, and nodes for these.

Inputs are x ~ N(m, Sigma).  Given kappa = U^T x along the special directions U, those of the target
and all along which rows are not small, pre-activations are Gaussian: with z ~ N(0, I) the
standardised kappa,

    W x + t = s(z) + g,   s = t + W m + R z,   R = Cov(W x, z),   Cov g = B = W Sigma W^T - R R^T.

docs/theory.md 20
"""

from typing import Any, NamedTuple

import numpy as np

from solvers.arrays import diagonal_view, like, namespace, to_host
from solvers.linear import leading_eigenvectors, triangular_root
from solvers.plane_panels import split_at_planes
from solvers.results import Array
from solvers.rules import Rule, drop_light_nodes, gauss_hermite, tensor_rule

from ..problem import Activation


class Level(NamedTuple):
    """Fineness of the strata that inputs are cut into.

    Attributes
    ----------
    nodes : tuple of int
        Along every direction of z, of which there are 1, 2, ..., and the last of them for more.
    panel : int
        Number on each panel of a direction along which the target has kinks.
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
    component_share : float
        Share of the inputs that are of this component.
    shift, loadings : (p,), (p, r)
        t + W m, and R.
    variances, correlation : (p,), (p, p)
        c, and rho beside its diagonal, of the covariance B of pre-activations given z.
    origin, axes : (K,), (K, r)
        kappa = origin + axes z, the axes triangular: the first directions have the first z.
    """

    component_share: float
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
        count = self.axes.shape[1] - (last is not None)
        # as the axes are triangular, the last direction is none of the target's
        normals, offsets = (planes[0] @ self.axes)[:, :count], planes[1] - planes[0] @ self.origin
        crossed_planes = np.abs(normals).max(axis=1, initial=0.0) > 1e-9
        kinks = normals[crossed_planes], offsets[crossed_planes]
        student_planes = self._switch_planes(student, count)
        every = [np.concatenate(pair) for pair in zip(kinks, student_planes, strict=True)]
        none = np.empty((0, count)), np.empty(0)
        normals, offsets = next(pair for pair in (every, kinks, none) if _plane_rank(pair[0]) <= 2)
        plane_rank = _plane_rank(normals)
        plane_axes = np.linalg.svd(normals)[2]  # its first rows span the normals
        steep = len(normals) > len(kinks[0])
        if steep and plane_rank == 2:  # across the steep direction features take few nodes
            switch_x, b = plane_axes[:2] @ normals[-1]
            plane_axes[:2] = np.array([[switch_x, b], [-b, switch_x]]) @ plane_axes[:2]
        panels = tensor_rule()
        if plane_rank:
            seen = normals @ plane_axes[:plane_rank].T
            slanted_planes = (np.abs(seen[:, -1]) > 1e-9) & (np.abs(seen[:, -1]) < 0.3)
            panels = split_at_planes(level.panel, seen, offsets, not steep or slanted_planes.any())
        hermite = gauss_hermite(level.nodes[min(count, len(level.nodes)) - 1])
        smooth = [hermite] * (count - plane_rank) + ([] if last is None else [gauss_hermite(last)])
        beside = tensor_rule(*smooth)
        z_nodes = np.repeat(panels.nodes, beside.weights.size, axis=0)
        z_nodes = np.concatenate([z_nodes, np.tile(beside.nodes, (panels.weights.size, 1))], axis=1)
        z_nodes[:, :count] = z_nodes[:, :count] @ plane_axes
        return drop_light_nodes(Rule(z_nodes, np.outer(panels.weights, beside.weights).ravel()))

    def _switch_planes(self, student: Activation, count: int) -> tuple[Array, Array]:
        """Planes towards which panels shrink: normals . z = offsets, (m, count) and (m,), in the
        first ``count`` coordinates of z.

        After a giant step features change on a small interval of one direction, where most
        pre-activations are 0.  No planes are returned if no features change so fast.
        """
        R = self.loadings[:, :count]
        # Smooth features vary on a scale of 1; others on the scale of the remaining variance of the
        # pre-activations, and on no less than a hundredth of their loadings.
        neuron_widths = self.variances + (0.0 if student.kinks else 1.0)
        neuron_widths = np.sqrt(neuron_widths + (R**2).sum(axis=1) / 100.0**2 + 1e-300)
        feature_slopes = R / neuron_widths[:, None]
        _, slope_sizes, axes = np.linalg.svd(feature_slopes, full_matrices=False)
        largest_slope = slope_sizes.max(initial=0.0) / np.sqrt(len(feature_slopes))
        if largest_slope < 4:  # Hermite nodes are close enough
            return np.empty((0, count)), np.empty(0)
        slope_on_axis = np.abs(feature_slopes @ axes[0])
        steep_neurons = slope_on_axis >= slope_on_axis.mean()
        switch_centre = np.median(-self.shift[steep_neurons] / (R[steep_neurons] @ axes[0]))
        distances = 4.0 ** np.arange(np.ceil(np.log(3 * largest_slope) / np.log(4))) / largest_slope
        plane_offsets = switch_centre + np.concatenate([-distances, [0.0], distances])
        return np.tile(axes[0], (plane_offsets.size, 1)), plane_offsets


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
    axes, inputs_on_z, weights_cov = _remainder(weights, directions, covariance)
    xp, loadings = namespace(weights), to_host(weights @ inputs_on_z)
    B = weights_cov @ (weights_cov if covariance is None else weights).T
    c = to_host(xp.linalg.diagonal(B)) + 0.0
    c[c < 1e-10 * (loadings**2).sum(axis=1)] = 0.0  # of neurons that z determines
    neuron_deviations = like(np.where(c > 0, np.sqrt(np.maximum(c, 0.0)), np.inf), B)
    B /= neuron_deviations
    B /= neuron_deviations[:, None]
    diagonal_view(B)[:] = 0.0
    mean_shift = biases + to_host(weights @ like(mean, weights))
    return Conditioned(share, mean_shift, loadings, np.maximum(c, 0), B, directions.T @ mean, axes)


def leading_directions(
    weights: Any, known_axes: Array, covariance: Array | None, count: int
) -> tuple[Array, Array, float]:
    """Directions that move pre-activations most, given the projections on ``known_axes`` (d, T).

    Returns their shares of the pre-activations' variance, the largest first, the directions, (d, k)
    with k at least ``count`` where there are so many, and the largest share that a direction has of
    random rows.
    """
    _, inputs_on_z, covered = _remainder(weights, known_axes, covariance)
    p, d = weights.shape
    draw = np.random.default_rng(0).standard_normal((max(p, d), min(p, d, count + 11)))
    sizes, axes = leading_eigenvectors(lambda x: covered @ (weights.T @ x), like(draw[:p], weights))
    total_variance = float(namespace(weights).sum(covered * weights))
    directions = to_host(weights.T @ axes)
    directions = np.linalg.qr(directions - known_axes @ (known_axes.T @ directions))[0]
    random = 1 / d
    if covariance is not None:
        input_covariance = covariance - to_host(inputs_on_z) @ to_host(inputs_on_z).T
        largest_share = leading_eigenvectors(lambda x: input_covariance @ x, draw[:d])[0][0]
        random = largest_share / max(np.trace(input_covariance), 1e-300)
    # random rows have independent entries
    return sizes / max(total_variance, 1e-300), directions, (np.sqrt(random) + 1 / np.sqrt(p)) ** 2


def _remainder(weights: Any, directions: Array, covariance: Array | None) -> tuple[Array, Any, Any]:
    """Root of the covariance of the projections kappa on ``directions`` (K, r), Cov(x, z) (d, r),
    and ``weights`` times the covariance of inputs given z, W Cov(x | z) (p, d)."""
    covariance_on_axes = directions if covariance is None else covariance @ directions
    axes = triangular_root(directions.T @ covariance_on_axes)  # z = axes^-1 (kappa - origin)
    inputs_on_z = like(covariance_on_axes @ np.linalg.pinv(axes).T, weights)
    weights_cov = weights if covariance is None else weights @ like(covariance, weights)
    return axes, inputs_on_z, weights_cov - (weights @ inputs_on_z) @ inputs_on_z.T


def _plane_rank(normals: Array) -> int:
    """Number of independent directions among planes' ``normals`` (m, r), of length about 1."""
    return int(np.linalg.matrix_rank(normals, tol=1e-6))
