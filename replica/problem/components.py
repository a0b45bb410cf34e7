"""Components of the law of inputs: spikes and zeta as affine maps of z and tau.
docs/theory.md 3, 19

The first D coordinates of an input follow a mixture of Gaussians, or N(0, I) like all others.  The
K spikes u and the K' directions zeta are orthonormal, and together span these coordinates:

    (x_1, ..., x_D) = Gamma kappa + L zeta,   Gamma_dk = e_d . u_k,   L L^T = 1 - Gamma Gamma^T,

and given the component, of standard normal z (K,) and tau (K',),

    (kappa, zeta) = mean + slope z + root tau,                                        (19.2)

with a ``root`` that is 0 on kappa: z determines kappa, and tau is independent of it.  N(0, I) has
one component, with z = kappa and tau = zeta.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.special import softmax

from solvers.linear import triangular_root
from solvers.results import Array
from solvers.rules import Rule

from .geometry import complement_root
from .mixtures import ClassLabels, GaussianMixture
from .moments import ConditionalMoments


class Places(NamedTuple):
    """Nodes of the inputs: standard normal z (K, N) of the spikes, and components (N,)."""

    z: Array
    component: NDArray[np.int64]

    def subset(self, place_index: Any) -> "Places":
        """The places at the indices ``place_index``."""
        return Places(self.z[:, place_index], self.component[place_index])

    def times(self, component_slope: Array, tau: Array) -> Array:
        """Products slope tau (T, N, ...), for slopes (J, T, q) and tau (q, N, ...)."""
        if len(component_slope) == 1:
            return np.tensordot(component_slope[0], tau, axes=1)
        return np.einsum("ntq,qn...->tn...", component_slope[self.component], tau)


@dataclass(frozen=True, eq=False)
class Components:
    """The J components of the law of inputs, on S = K + K' directions: the spikes, then zeta.

    Attributes
    ----------
    shares : (J,), some of which may be 0
    mean, slope, root : (J, S), (J, S, K), (J, S, K')
        Arrays of Eq. (19.2).  Columns of ``root`` are chosen such that the target depends on few
        coordinates of tau.
    basis : (D, S)
        The matrix [Gamma, L].
    arguments : (T, S)
        The target's arguments, as linear combinations of the S directions.
    """

    shares: Array
    mean: Array
    slope: Array
    root: Array
    basis: Array
    arguments: Array

    @classmethod
    def from_law(
        cls, law: GaussianMixture | None, cosines: Array, combinations: Array
    ) -> "Components":
        """Components of the ``law`` of the first D coordinates.

        ``cosines`` (D, K) is Gamma.  The target's arguments are ``combinations`` (T, n) of the
        first n coordinates.
        """
        spikes, L = cosines.shape[1], complement_root(cosines)
        basis = np.hstack([cosines, L])
        basis_size, target_rows = basis.shape[1], basis[: combinations.shape[1]]
        target_args, size = combinations @ target_rows, np.abs(combinations) @ np.abs(target_rows)
        target_args = np.where(np.abs(target_args) > 1e-12 * size, target_args, 0.0)  # or rounding
        law_shares, law_mean, factors = np.ones(1), np.zeros((1, basis_size)), [np.eye(basis_size)]
        if law is not None:
            law_shares, law_mean = law.fractions, law.means @ basis
            outside_coordinates = null_space(basis)  # parts of the spikes outside the D coordinates
            law_roots = [triangular_root(covariance, 0.0) for covariance in law.each_covariance]
            factors = [np.hstack([basis.T @ root, outside_coordinates]) for root in law_roots]
        if law is not None or len(combinations) < combinations.shape[1]:
            pairs = [_slope_and_root(factor, spikes, target_args[:, spikes:]) for factor in factors]
            component_slope, root = map(np.stack, zip(*pairs, strict=True))
        else:  # L is triangular: the target depends on few of tau
            component_slope, root = factors[0][None, :, :spikes], factors[0][None, :, spikes:]
        return cls(law_shares, law_mean, component_slope, root, basis, target_args)

    def in_components(self, z: Array) -> Places:
        """Places of z (K, N) in every component, one component after the other: (K, J N)."""
        J = len(self.shares)
        return Places(np.tile(z, J), np.repeat(np.arange(J), z.shape[1]))

    def places_of_kappa(self, kappa: Array) -> tuple[Places, Array]:
        """Places of kappa (K, N) in every component, and probabilities (J, N) of the components."""
        K, N = kappa.shape
        U, singular_values, V = np.linalg.svd(self.slope[:, :K])
        # a component of zero variance along a spike is probable at its mean only
        singular_values = np.maximum(singular_values, 1e-9)
        z = U.swapaxes(1, 2) @ (kappa - self.mean[:, :K, None]) / singular_values[..., None]
        z = V.swapaxes(1, 2) @ z  # (J, K, N)
        kappa_log_density = np.log(self.shares + 1e-300) - np.log(singular_values).sum(axis=1)
        kappa_component = np.repeat(np.arange(len(z)), N)
        kappa_places = Places(z.swapaxes(0, 1).reshape(K, kappa_component.size), kappa_component)
        return kappa_places, softmax(kappa_log_density[:, None] - (z**2).sum(axis=1) / 2, axis=0)

    def given_projection(
        self, direction: Array, t: Array, nodes: Array
    ) -> tuple[Places, Array, Array, Array]:
        """Inputs conditional on their projection t (N,) on a ``direction`` (D,).

        In a component t = a + b.z + c.tau, and given t

            z ~ N(b (t - a) / v, 1 - b b^T / v),  v = |b|^2 + |c|^2,
            E[tau | z, t] = c (t - a - b.z) / |c|^2,  Cov[tau | z, t] = 1 - c c^T / |c|^2.

        Returns
        -------
        Places
            Q ``nodes`` of z for every t, in each of J components: component by component, then node
            by node.
        (J Q N, K'), (J Q N,)
            The unit vector of c, and the mean of tau along it.
        (J, N)
            Probabilities of the components.
        """
        t_on_basis = direction @ self.basis
        t_deviation = t - (self.mean @ t_on_basis)[:, None]
        b, c = t_on_basis @ self.slope, t_on_basis @ self.root  # (J, K), (J, K')
        v = np.maximum((b**2).sum(axis=1) + (c**2).sum(axis=1), 1e-18)
        c = np.where(np.abs(c) > 1e-9 * np.sqrt(v)[:, None], c, 0.0)  # smaller is rounding
        tau_length = np.linalg.norm(c, axis=1)
        unit_tau = c / np.where(tau_length > 0, tau_length, 1.0)[:, None]
        # standard normal nodes, shrunk along b
        node_projection = (nodes @ b.T).T / np.maximum((b**2).sum(axis=1), 1e-18)[:, None]  # (J, Q)
        shrunk = node_projection * (1 - tau_length / np.sqrt(v))[:, None]
        z_centre = b[:, None] * (t_deviation / v[:, None])[..., None]  # (J, N, K)
        z = z_centre[:, None] + (nodes - shrunk[..., None] * b[:, None])[:, :, None]  # (J, Q, N, K)
        deviation_left = t_deviation[:, None] - np.einsum("jqnk,jk->jqn", z, b)
        tau_mean = deviation_left / np.where(tau_length > 0, tau_length, np.inf)[:, None, None]
        place_component = np.repeat(np.arange(len(z)), len(nodes) * len(t))
        t_log_density = np.log(self.shares + 1e-300) - np.log(v) / 2
        chance_of_j = softmax(t_log_density[:, None] - t_deviation**2 / (2 * v[:, None]), axis=0)
        projection_places = Places(z.reshape(-1, z.shape[-1]).T, place_component)
        return projection_places, unit_tau[place_component], tau_mean.ravel(), chance_of_j

    def weights_in_components(self, weights: Array) -> Array:
        """Weights (J N,) of ``in_components`` for quadrature weights (N,)."""
        return np.multiply.outer(self.shares, weights).ravel()

    def places_and_weights(self, rule: Rule) -> tuple[Places, Array]:
        """Places and weights of a rule for z, with nodes (N,) for one spike or (N, K)."""
        rule_z = rule.nodes.T if rule.nodes.ndim == 2 else rule.nodes[None]
        return self.in_components(rule_z), self.weights_in_components(rule.weights)

    def projection_means(self, places: Places) -> Array:
        """Means (S, N) of (kappa, zeta) at N places."""
        return _affine_in_z(self.mean, self.slope, places)

    @cached_property
    def argument_offsets(self) -> Array:
        """Means (J, T) of the target's arguments at z = 0."""
        return self.mean @ self.arguments.T

    @cached_property
    def z_slopes(self) -> Array:
        """Slopes (J, T, K) of the target's arguments in z."""
        return self.arguments @ self.slope

    @cached_property
    def tau_slopes(self) -> Array:
        """Slopes (J, T, q) of the target's arguments in tau; they depend on its first q <= T."""
        slopes = (self.arguments @ self.root)[..., : len(self.arguments)]
        slope_size = np.abs(slopes).max(initial=0.0)
        slopes = np.where(np.abs(slopes) > 1e-12 * slope_size, slopes, 0.0)  # smaller is rounding
        entering_tau = np.flatnonzero(slopes.any(axis=(0, 1)))
        return slopes[..., : entering_tau.max(initial=-1) + 1]

    def mean_arguments(self, places: Places) -> Array:
        """Means (T, N) of the target's arguments at N places."""
        return _affine_in_z(self.argument_offsets, self.z_slopes, places)

    def moments(self, mean: Any, places: Places) -> ConditionalMoments:
        """Conditional moments of E[y | x] = ``mean`` at N places, g of shape (K', N).  Eq. (3.3)"""
        N, tau_count = len(places.component), self.root.shape[2]
        if isinstance(mean, ClassLabels):
            return ConditionalMoments(mean(places.component), np.zeros((tau_count, N)), np.zeros(N))
        arguments = self.mean_arguments(places)
        # averages over z multiply errors here by the Gaussian weight, and by functions that may
        # grow: errors are weighed by the root of the Gaussian, 1e-11 from z^2 = 100 on
        node_weight = np.exp(-np.minimum((places.z**2).sum(axis=0), 100.0) / 4)
        component_moments = ConditionalMoments(np.empty(N), np.zeros((tau_count, N)), np.empty(N))
        for j, tau_slopes in enumerate(self.tau_slopes):
            in_j = places.component == j
            if not in_j.any():
                continue
            found = mean.conditional_moments(arguments[:, in_j], tau_slopes, node_weight[in_j])
            component_moments.h[in_j], component_moments.spread[in_j] = found.h, found.spread
            component_moments.g[: len(found.g), in_j] = found.g
        return component_moments

    def mean_label(self, mean: Any, places: Places, tau: Array) -> Array:
        """Mean labels E[y | x] = ``mean``, (N, m), at N places, with m values of tau (q, N, m)."""
        if isinstance(mean, ClassLabels):
            return np.broadcast_to(mean(places.component)[:, None], tau.shape[1:])
        argument_means = self.mean_arguments(places)[..., None]
        return np.asarray(mean(*(argument_means + places.times(self.tau_slopes, tau))))


def _affine_in_z(mean: Array, slope: Array, places: Places) -> Array:
    """The affine map mean + slope z, (S, N), for mean (J, S) and slope (J, S, K)."""
    return np.asarray(mean[places.component].T + places.times(slope, places.z))


def _slope_and_root(factor: Array, spikes: int, L: Array) -> tuple[Array, Array]:
    """Slope (S, K) in z and root (S, K') of a Gaussian vector ``factor`` g, g ~ N(0, 1).

    The first coordinates, as many as ``spikes``, are functions of z.  The fewest columns of
    ``root`` contribute to L root, L (T, K').  Factors are used instead of covariances, in which
    variances far below 1 would be lost.
    """
    spike_rows, zeta_rows = factor[:spikes], factor[spikes:]
    rounding_size = 1e-15 * float((factor**2).sum(axis=1).max())
    spike_root = triangular_root(
        spike_rows @ spike_rows.T, rounding_size
    )  # kappa_1 is a function of z_1
    spike_root = np.pad(spike_root, [(0, 0), (0, spikes - spike_root.shape[1])])
    z_of_g = np.linalg.pinv(spike_root) @ spike_rows  # of g
    zeta_regression = zeta_rows @ z_of_g.T
    projection_slope = np.concatenate([spike_root, zeta_regression])
    rotation, zeta_sizes, _ = np.linalg.svd(zeta_rows - zeta_regression @ z_of_g)
    zeta_sizes = np.pad(zeta_sizes, (0, len(rotation) - len(zeta_sizes)))
    zeta_root = (rotation * zeta_sizes) @ rotation.T
    argument_slopes = L @ zeta_root
    entering_root = triangular_root(argument_slopes @ argument_slopes.T, rounding_size)  # (T, q)
    rows = np.linalg.pinv(entering_root) @ argument_slopes
    tau_basis = np.concatenate([rows, null_space(rows).T]) if len(rows) else np.eye(len(zeta_root))
    zeta_root = zeta_root @ tau_basis.T
    return projection_slope, np.concatenate([np.zeros((spikes, len(zeta_root))), zeta_root])
