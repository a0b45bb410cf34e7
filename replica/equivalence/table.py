"""The conditional Gaussian equivalence as a finite table.  docs/theory.md 3, [C] Result 3.2.

Given the projection kappa of an input on the spikes, a feature is equivalent to

    mu_0(kappa) + mu_1(kappa) sqrt(c) w.x + mu_2(kappa) xi,                    (3.1)

and the target has moments h, g, k.  Their values at quadrature nodes kappa_j, with
(beta, fractions, c, Delta), are all that the rest of the theory uses.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from solvers.results import Array

from ..problem import Places
from .one_group import OneGroup, Several


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
        Projections of the input on the spikes: of N(0, I), z.
    mean, root : (K', N), (K', K', N)
        Of the other directions of the target, mean + root tau with tau ~ N(0, 1): of N(0, I), tau.
    offsets : (G, N) or (G + 1, N)
        mu_0 of Eq. (3.2) and, where an output intercept is trained, the constant 1: what the
        readout combines without a penalty.
    mu1, mu2sq : (A, N)
        mu_1 and mu_2^2 of Eq. (3.2).
    loadings : (A, K, N), or (A, K + 1, N) for a network
        Change of a neuron's mean feature with its component along each spike, kappa_k mu_1,
        and with its squared norm, d mu_0 / d c.  Eq. (4.5)
    h : (N,)
        Conditional mean of the target.  Eq. (3.3)
    g : (K', N)
        E tau sigma_*.
    spread : (N,)
        k - h^2, the conditional variance of the target.
    fractions, c : (A,)
        Share of the neurons of each kind, and their bulk variance.
    beta, noise, dimension : float
        p/d, the variance of what labels add to the target, and d.
    covariance : Rows or TabulatedRows, optional
        Of the network's own bulk; that of an sRF is isotropic.
    classes, shares : (G,)
        For each of the model's G groups, its place among the A here and its share of that one.
        Groups that differ in mu_0 alone respond alike and are one: the opposite readouts of an
        odd activation.
    signs : (G, K + K'), or (G, K + 1 + K') for a network
        Of each group's overlaps with the special directions beside those of the first of its
        kind: -1 on the norm, where it is the mirror image of that one.
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

    # Products that every point (alpha, lam) needs, formed once.

    # A node is a stratum of inputs.  In it kappa is known along the spikes, and the special
    # directions beside them are Gaussian, mean + root tau.  What is linear in them has 1 + K' parts
    # at every node, side by side: its mean, and its slope in each tau.

    @cached_property
    def regressors(self) -> Array:
        """What m, and the overlaps of each kind with the special directions, theta, then psi, have
        in the output: (G + A (K + K'), (1 + K') N).  Eqs. (4.5), (4.6)"""
        A, K, N = self.loadings.shape
        rest = len(self.g)
        parts = np.zeros((A, K + rest, 1 + rest, N), self.loadings.dtype)
        parts[:, :K, 0] = self.loadings
        parts[:, K:, 0] = self.mu1[:, None] * self.mean
        parts[:, K:, 1:] = self.mu1[:, None, None] * self.root
        offsets = np.pad(self.offsets, [(0, 0), (0, rest * N)])
        return np.concatenate([offsets, parts.reshape(A * (K + rest), -1)])

    @cached_property
    def seen(self) -> Array:
        """What the target has in them, ((1 + K') N,): h and g.  Eq. (3.3)"""
        return np.append(self.h, self.g)

    @cached_property
    def unseen(self) -> Array:
        """The target's variance given the node that is not linear in tau, (N,)."""
        return self.spread - (self.g**2).sum(axis=0)

    def on_parts(self, weighted: Array) -> Array:
        """Weights at the nodes (P, N) as weights of all parts there, (P, (1 + K') N)."""
        return np.tile(weighted, 1 + len(self.g))

    @cached_property
    def isotropic(self) -> bool:
        """Whether the directions beside the spikes are N(0, 1) at every node."""
        identity = np.eye(len(self.g))[..., None]
        return not self.mean.any() and bool((self.root == identity).all())

    @cached_property
    def one_group(self) -> OneGroup | None:
        """This table as that of one group; None where there are more, or an intercept."""
        rows = getattr(self.covariance, "table", None)
        if len(self.offsets) > 1 or (rows is None) != (self.covariance is None):
            return None
        (mu1,), (b,), loadings = self.mu1, self.mu2sq, self.loadings[0]
        norms = len(loadings) - 1 if rows else 0  # of a network that have any
        special, usual, several = (np.empty(0),) * 3, None, None
        if len(loadings) - norms == len(self.g) == 1 and self.isotropic:
            norm = loadings[1] if norms else np.zeros_like(mu1)
            special, usual = (loadings[0], norm, mu1 * self.g[0]), True
        else:
            several = self._several(rows is not None and not norms)
        means = float(self.weights @ mu1**2), float(self.weights @ b), float(self.c[0])
        numbers = *means, float(self.beta), float(self.noise), float(self.dimension)
        columns = self.weights, self.offsets[0], *special, mu1**2, b, self.h, self.spread
        return OneGroup(*columns, *numbers, rows, usual, several)

    def _several(self, no_norms: bool) -> Several:
        """The special directions of one group; of a network, the norms are one even where they do
        not move."""
        parts = self.regressors.reshape(len(self.regressors), 1 + len(self.g), -1)
        if no_norms:
            parts = np.insert(parts, 2, 0.0, axis=0)
        seen = self.seen.reshape(parts.shape[1:])
        i, j = np.triu_indices(len(parts) + 1)
        both = np.concatenate([parts, seen[None]])
        products = (both[i] * both[j]).sum(axis=1)
        products[-1] += self.unseen
        return Several(parts[1:].copy(), seen, self.unseen, products, len(self.g))

    @cached_property
    def power(self) -> Array:
        """k = E_tau sigma_*^2, (N,).  Eq. (3.3)"""
        return self.h**2 + self.spread

    def at(self, which: Array | slice, weights: Array) -> "Table":
        """The moments at some of the nodes, with other ``weights`` there."""
        parts = ("kappa", "mean", "root", "offsets", "mu1", "mu2sq", "loadings", "h", "g", "spread")
        chosen = {name: getattr(self, name)[..., which] for name in parts}
        return replace(self, weights=weights, places=self.places.subset(which), **chosen)
