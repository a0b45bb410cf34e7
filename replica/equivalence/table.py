"""Table of the conditional Gaussian equivalence.  docs/theory.md 3, [C] Result 3.2.

Given the projection kappa of an input on the spikes, a feature is equivalent to

    mu_0(kappa) + mu_1(kappa) sqrt(c) w.x + mu_2(kappa) xi,                    (3.1)

and the target has moments h, g, k.  The rest of the theory uses only their values at quadrature
nodes kappa_j, with (beta, fractions, c, Delta).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from solvers.results import Array

from ..problem import Places


@dataclass(frozen=True)
class Table:
    """Moments of features and target at N nodes, for A kinds of neurons, K spikes and K'
    remaining target directions.

    Attributes
    ----------
    weights : (N,), summing to 1
    places : Places
        The nodes: standard normal coordinates z (K, N), and components of the inputs (N,).
    kappa : (K, N)
        Projections of the input on the spikes; equal to z for inputs N(0, I).
    mean, root : (K', N), (K', K', N)
        The other target directions of an input are mean + root tau with tau ~ N(0, 1); for inputs
        N(0, I) they are tau.
    offsets : (G, N) or (G + 1, N)
        Functions that the readout combines without a penalty: mu_0 of Eq. (3.2) and, where an
        output intercept is trained, the constant 1.
    mu1, mu2sq : (A, N)
        mu_1 and mu_2^2 of Eq. (3.2).
    loadings : (A, K, N), or (A, K + 1, N) for a network
        Derivative of a neuron's mean feature in its component along each spike, kappa_k mu_1, and
        in its squared norm, d mu_0 / d c.  Eq. (4.5)
    h : (N,)
        Conditional mean of the target.  Eq. (3.3)
    g : (K', N)
        E tau sigma_*.  Eq. (3.3)
    spread : (N,)
        k - h^2, the conditional variance of the target.
    fractions, c : (A,)
        Share of the neurons of each kind, and their bulk variance.
    beta, noise, dimension : float
        p/d, the variance of the label noise, and d.
    covariance : Rows or TabulatedRows, optional
        Row covariance of a network's bulk; None for an sRF, whose bulk is isotropic.
    classes, shares : (G,)
        Index of the kind of each of the model's G groups, and the group's share of its kind.
        Groups that differ in mu_0 alone respond alike and are of one kind, such as the opposite
        readouts of an odd activation.
    signs : (G, K + K'), or (G, K + 1 + K') for a network
        Signs of a group's overlaps with the special directions, relative to the first group of its
        kind: -1 on the norm, where the group is the mirror image of the first.
    """

    weights: Array
    places: Places
    kappa: Array
    mean: Array
    root: Array
    offsets: Array
    mu1: Array
    mu2sq: Array
    loadings: Array
    h: Array
    g: Array
    spread: Array
    fractions: Array
    c: Array
    beta: float
    noise: float
    dimension: float
    classes: Array
    shares: Array
    signs: Array
    covariance: Any = None

    # Products that every point (alpha, lam) needs, computed once.

    # A node is a stratum of inputs.  In it kappa is fixed, and the other special directions are
    # Gaussian, mean + root tau.  A linear function of them has 1 + K' parts at every node, stored
    # next to each other: its mean, and its slope in each tau.

    @cached_property
    def regressors(self) -> Array:
        """Derivatives of the output in m and in the overlaps of each kind with the special
        directions, theta, then psi: (G + A (K + K'), (1 + K') N).  Eqs. (4.5), (4.6)"""
        A, K, N = self.loadings.shape
        rest = len(self.g)
        slopes = np.zeros((A, K + rest, 1 + rest, N), self.loadings.dtype)
        slopes[:, :K, 0] = self.loadings
        slopes[:, K:, 0] = self.mu1[:, None] * self.mean
        slopes[:, K:, 1:] = self.mu1[:, None, None] * self.root
        offsets = np.pad(self.offsets, [(0, 0), (0, rest * N)])
        return np.concatenate([offsets, slopes.reshape(A * (K + rest), -1)])

    @cached_property
    def target_parts(self) -> Array:
        """Parts of the target that are linear in tau, h and g, ((1 + K') N,).  Eq. (3.3)"""
        return np.append(self.h, self.g)

    @cached_property
    def weighted_products(self) -> Array:
        """Products of any two of the regressors and the target, summed over the parts of a node,
        times the weights of the nodes, ((n + 1)^2, N) for n regressors."""
        parts = np.vstack([self.regressors, self.target_parts])
        parts = parts.reshape(len(parts), -1, self.weights.size)
        products = np.einsum("iln,jln->ijn", parts, parts) * self.weights
        return products.reshape(-1, self.weights.size)

    @cached_property
    def weighted_regressors(self) -> Array:
        """The regressors times the weights of the nodes."""
        return self.regressors * self.per_part(self.weights)

    @cached_property
    def weighted_powers(self) -> Array:
        """Squares of the regressors, summed over the parts of a node, and the second moment of the
        target, times the weights of the nodes, (n + 1, N)."""
        parts = self.regressors.reshape(len(self.regressors), -1, self.weights.size)
        return np.vstack([(parts**2).sum(axis=1), self.power]) * self.weights

    @cached_property
    def unexplained(self) -> Array:
        """Variance of the target at a node that is not linear in tau, (N,)."""
        return self.spread - (self.g**2).sum(axis=0)

    def per_part(self, weighted: Array) -> Array:
        """Weights at the nodes (P, N), repeated for each of their parts, (P, (1 + K') N)."""
        return np.tile(weighted, 1 + len(self.g))

    @cached_property
    def isotropic(self) -> bool:
        """Whether the other special directions are N(0, 1) at every node."""
        identity = np.eye(len(self.g))[..., None]
        return not self.mean.any() and bool((self.root == identity).all())

    @cached_property
    def response_products(self) -> Array:
        """Functions that (4.2) averages: mu_1^a mu_1^b (a <= b), then mu_2^2, (D, N)."""
        a, b = np.triu_indices(len(self.mu1))
        return np.concatenate([self.mu1[a] * self.mu1[b], self.mu2sq])

    @cached_property
    def response_coefficients(self) -> Array:
        """Coefficients B (D, N) in V(kappa) = V . B(kappa), for packed V.  They are the
        ``response_products``, doubled for two different groups, which V contains once.  Eq.
        (4.1)"""
        a, b = np.triu_indices(len(self.mu1))
        multiplicity = np.concatenate([np.where(a == b, 1.0, 2.0), np.ones(len(self.mu1))])
        return multiplicity[:, None] * self.response_products

    @cached_property
    def weighted_response_products(self) -> Array:
        """The ``response_products`` times the weights of the nodes."""
        return self.response_products * self.weights

    @cached_property
    def power(self) -> Array:
        """Second moment of the target, k = E_tau sigma_*^2, (N,).  Eq. (3.3)"""
        return self.h**2 + self.spread

    def select_nodes(self, nodes: Array | slice, weights: Array) -> "Table":
        """Table restricted to some of the nodes, with other ``weights`` there."""
        names = ("kappa", "mean", "root", "offsets", "mu1", "mu2sq", "loadings", "h", "g", "spread")
        moments = {name: getattr(self, name)[..., nodes] for name in names}
        return replace(self, weights=weights, places=self.places.subset(nodes), **moments)
