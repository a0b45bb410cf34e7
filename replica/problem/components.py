"""Inputs along the spikes and the directions beside them, given the component of their law.
docs/theory.md 3, 19

The first D coordinates of an input have a law of their own, a mixture of Gaussians, or N(0, I) as
all the others.  With the K spikes u and the K' directions zeta that these coordinates have beside
them, orthonormal,

    (x_1, ..., x_D) = Gamma kappa + L zeta,   Gamma_dk = e_d . u_k,   L L^T = 1 - Gamma Gamma^T,

and given the component, of standard normal z (K,) and tau (K',),

    (kappa, zeta) = mean + slope z + root tau,                                        (19.2)

with a ``root`` that is 0 on kappa: given z, kappa is known and tau is what is not.  Of N(0, I)
there is one component, z is kappa and tau is zeta.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.special import softmax

from solvers.results import Array
from solvers.rules import Rule

from .geometry import remainder, triangular_root
from .mixtures import ClassLabels, GaussianMixture
from .moments import ConditionalMoments


class Places(NamedTuple):
    """Standard normal coordinates along the spikes z (K, N), and components of the inputs (N,)."""

    z: Array
    component: NDArray[np.int64]

    def at(self, which: Any) -> "Places":
        """Some of them."""
        return Places(self.z[:, which], self.component[which])

    def times(self, slope: Array, tau: Array) -> Array:
        """slope tau (T, N, ...) for the slopes (J, T, q) of the components and tau (q, N, ...)."""
        if len(slope) == 1:
            return np.tensordot(slope[0], tau, axes=1)
        return np.einsum("ntq,qn...->tn...", slope[self.component], tau)


@dataclass(frozen=True, eq=False)
class Components:
    """The J components of the law of inputs, on S = K + K' directions: the spikes, then zeta.

    Attributes
    ----------
    shares : (J,), some of which may be 0
    mean, slope, root : (J, S), (J, S, K), (J, S, K')
        Eq. (19.2), with columns of ``root`` such that few of tau enter the target.
    basis : (D, S)
        Gamma and L side by side.
    arguments : (T, S)
        What the target takes, linear combinations of its coordinates, along them.
    """

    shares: Array
    mean: Array
    slope: Array
    root: Array
    basis: Array
    arguments: Array

    @classmethod
    def of(cls, law: GaussianMixture | None, cosines: Array, combinations: Array) -> "Components":
        """Those of a ``law`` of the first D coordinates, whose ``cosines`` (D, K) with the spikes
        are Gamma; the target takes ``combinations`` (T, n) of the first n of these."""
        spikes, L = cosines.shape[1], remainder(cosines)
        basis = np.hstack([cosines, L])
        S, first = basis.shape[1], basis[: combinations.shape[1]]
        arguments, size = combinations @ first, np.abs(combinations) @ np.abs(first)
        arguments = np.where(np.abs(arguments) > 1e-12 * size, arguments, 0.0)  # less is rounding
        shares, mean, factors = np.ones(1), np.zeros((1, S)), [np.eye(S)]
        if law is not None:
            shares, mean = law.fractions, law.means @ basis
            beyond = null_space(basis)  # of spikes beside all D coordinates
            roots = [triangular_root(C, 0.0) for C in law.each_covariance]
            factors = [np.hstack([basis.T @ root, beyond]) for root in roots]
        if law is not None or len(combinations) < combinations.shape[1]:
            parts = [_conditioned(M, spikes, arguments[:, spikes:]) for M in factors]
            slope, root = map(np.stack, zip(*parts, strict=True))
        else:  # of few coordinates, L is triangular
            slope, root = factors[0][None, :, :spikes], factors[0][None, :, spikes:]
        return cls(shares, mean, slope, root, basis, arguments)

    def places(self, z: Array) -> Places:
        """z (K, N) in every component, one component after the other: (K, J N)."""
        J = len(self.shares)
        return Places(np.tile(z, J), np.repeat(np.arange(J), z.shape[1]))

    def given(self, kappa: Array) -> tuple[Places, Array]:
        """kappa (K, N) in every component as ``places`` has it, and the chances (J, N) of each."""
        K, N = kappa.shape
        U, size, V = np.linalg.svd(self.slope[:, :K])
        # a component without extent along a spike is likely where it is, and nowhere else
        size = np.maximum(size, 1e-9)
        z = U.swapaxes(1, 2) @ (kappa - self.mean[:, :K, None]) / size[..., None]
        z = V.swapaxes(1, 2) @ z  # (J, K, N)
        likely = np.log(self.shares + 1e-300) - np.log(size).sum(axis=1)
        where = np.repeat(np.arange(len(z)), N)
        at = Places(z.swapaxes(0, 1).reshape(K, where.size), where)
        return at, softmax(likely[:, None] - (z**2).sum(axis=1) / 2, axis=0)

    def along(self, direction: Array, t: Array, nodes: Array) -> tuple[Places, Array, Array, Array]:
        """What is known of inputs whose first coordinates have the projection t (N,) on a
        ``direction`` (D,).  In a component that is t = a + b.z + c.tau, and given it

            z ~ N(b (t - a) / v, 1 - b b^T / v),  v = |b|^2 + |c|^2,
            E[tau | z, t] = c (t - a - b.z) / |c|^2,  Cov[tau | z, t] = 1 - c c^T / |c|^2:

        the places of Q ``nodes`` of z in each of J components, one component after the other,
        then one node; the direction of c there (J Q N, K') and the mean of tau along it (J Q N,);
        and the chances of the components (J, N).
        """
        onto = direction @ self.basis
        away = t - (self.mean @ onto)[:, None]
        b, c = onto @ self.slope, onto @ self.root  # (J, K), (J, K')
        v = np.maximum((b**2).sum(axis=1) + (c**2).sum(axis=1), 1e-18)
        c = np.where(np.abs(c) > 1e-9 * np.sqrt(v)[:, None], c, 0.0)  # less is rounding
        length = np.linalg.norm(c, axis=1)
        unit = c / np.where(length > 0, length, 1.0)[:, None]
        # standard normal nodes, shrunk along b
        part = (nodes @ b.T).T / np.maximum((b**2).sum(axis=1), 1e-18)[:, None]  # (J, Q)
        shrunk = part * (1 - length / np.sqrt(v))[:, None]
        centre = b[:, None] * (away / v[:, None])[..., None]  # (J, N, K)
        z = centre[:, None] + (nodes - shrunk[..., None] * b[:, None])[:, :, None]  # (J, Q, N, K)
        left = away[:, None] - np.einsum("jqnk,jk->jqn", z, b)
        depth = left / np.where(length > 0, length, np.inf)[:, None, None]
        where = np.repeat(np.arange(len(z)), len(nodes) * len(t))
        size = np.log(self.shares + 1e-300) - np.log(v) / 2
        chance = softmax(size[:, None] - away**2 / (2 * v[:, None]), axis=0)
        return Places(z.reshape(-1, z.shape[-1]).T, where), unit[where], depth.ravel(), chance

    def weights(self, weights: Array) -> Array:
        """Those (J N,) of ``places`` for quadrature weights (N,)."""
        return np.multiply.outer(self.shares, weights).ravel()

    def on(self, rule: Rule) -> tuple[Places, Array]:
        """The places and weights of a rule for z, nodes (N,) of one spike or (N, K) of K."""
        z = rule.nodes.T if rule.nodes.ndim == 2 else rule.nodes[None]
        return self.places(z), self.weights(rule.weights)

    def special(self, at: Places) -> Array:
        """Means of (kappa, zeta) at N places, (S, N)."""
        return _affine(self.mean, self.slope, at)

    @cached_property
    def offset(self) -> Array:
        """Means of the target's arguments, (J, T)."""
        return self.mean @ self.arguments.T

    @cached_property
    def gamma(self) -> Array:
        """Slopes of the target's arguments in z, (J, T, K)."""
        return self.arguments @ self.slope

    @cached_property
    def rest(self) -> Array:
        """Slopes of the target's arguments in those of tau that enter them, the first q <= T of
        all, (J, T, q)."""
        slopes = (self.arguments @ self.root)[..., : len(self.arguments)]
        size = np.abs(slopes).max(initial=0.0)
        slopes = np.where(np.abs(slopes) > 1e-12 * size, slopes, 0.0)  # less is rounding
        entering = np.flatnonzero(slopes.any(axis=(0, 1)))
        return slopes[..., : entering.max(initial=-1) + 1]

    def centre(self, at: Places) -> Array:
        """Means of the target's arguments at N places, (T, N)."""
        return _affine(self.offset, self.gamma, at)

    def moments(self, mean: Any, at: Places) -> ConditionalMoments:
        """h (N,), g (K', N) and spread (N,) of E[y | x] = ``mean`` at N places.  Eq. (3.3)"""
        N, latent = len(at.component), self.root.shape[2]
        if isinstance(mean, ClassLabels):
            return ConditionalMoments(mean(at.component), np.zeros((latent, N)), np.zeros(N))
        centre = self.centre(at)
        # averages over z weigh what is known there by its Gaussian weight; by its root here, as
        # they multiply it by what may grow; from z^2 = 100 on it is 1e-22
        weight = np.exp(-np.minimum((at.z**2).sum(axis=0), 100.0) / 4)
        found = ConditionalMoments(np.empty(N), np.zeros((latent, N)), np.empty(N))
        for j, rest in enumerate(self.rest):
            own = at.component == j
            if not own.any():
                continue
            part = mean.conditional_moments(centre[:, own], rest, weight[own])
            found.h[own], found.spread[own] = part.h, part.spread
            found.g[: len(part.g), own] = part.g
        return found

    def mean_label(self, mean: Any, at: Places, tau: Array) -> Array:
        """E[y | x] = ``mean``, (N, m), at N places and, at each, m values of tau (q, N, m)."""
        if isinstance(mean, ClassLabels):
            return np.broadcast_to(mean(at.component)[:, None], tau.shape[1:])
        return np.asarray(mean(*(self.centre(at)[..., None] + at.times(self.rest, tau))))


def _affine(mean: Array, slope: Array, at: Places) -> Array:
    """mean + slope z (S, N) of their components, for (J, S) and (J, S, K)."""
    return np.asarray(mean[at.component].T + at.times(slope, at.z))


def _conditioned(factor: Array, spikes: int, L: Array) -> tuple[Array, Array]:
    """Slope (S, K) in z and root (S, K') of a Gaussian ``factor`` g (S,), g ~ N(0, 1), of which the
    ``spikes`` first coordinates are known: with as few as can be of the columns of ``root`` in
    L root, L (T, K').  By factors, as of a covariance what is small beside 1 is lost."""
    first, second = factor[:spikes], factor[spikes:]
    noise = 1e-15 * float((factor**2).sum(axis=1).max())
    known = triangular_root(first @ first.T, noise)  # kappa_1 is a function of z_1
    known = np.pad(known, [(0, 0), (0, spikes - known.shape[1])])
    z = np.linalg.pinv(known) @ first  # of g
    beside = second @ z.T
    slope = np.concatenate([known, beside])
    turn, sizes, _ = np.linalg.svd(second - beside @ z)
    sizes = np.pad(sizes, (0, len(turn) - len(sizes)))
    root = (turn * sizes) @ turn.T
    seen = L @ root
    entering = triangular_root(seen @ seen.T, noise)  # (T, q)
    turn = np.linalg.pinv(entering) @ seen
    turn = np.concatenate([turn, null_space(turn).T]) if len(turn) else np.eye(len(root))
    root = root @ turn.T
    return slope, np.concatenate([np.zeros((spikes, len(root))), root])
