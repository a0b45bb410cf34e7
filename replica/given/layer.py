"""Strata of a given first layer, from its weights and biases.  Eq. (20.1)

Inputs of a component are x ~ N(m, Sigma).  Given kappa = U^T x along the special directions U,
those of the target and all along which rows are not small, pre-activations are Gaussian: with
z ~ N(0, I) the standardised kappa,

    W x + t = s(z) + g,   s = t + W m + R z,   R = Cov(W x, z),   Cov g = B = W Sigma W^T - R R^T.

A stratum is a component and a node z of a quadrature rule.  Features there are expanded in Hermite
polynomials of g_i / sqrt(c_i), c_i = B_ii, up to the degree k_max; the rest of each one's variance
is taken to be independent of the others.  docs/theory.md 20
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from scipy.linalg import qr, solve_triangular

from solvers.chebyshev import to_coefficients
from solvers.results import Array
from solvers.rules import Rule

from ..problem import Activation, triangular_root
from .strata import Degree, HermiteStrata

# Least part of a neuron's moments, of the largest, that is not a combination of others'.
SKELETON_TOLERANCE = 1e-5


class Component(NamedTuple):
    """A Gaussian component of the inputs: its share, its mean (d,), and its covariance (d, d), or
    None for the identity."""

    share: float
    mean: Array
    covariance: Array | None


class Conditioned(NamedTuple):
    """A component of the inputs, given z ~ N(0, I) of its r directions.

    Attributes
    ----------
    shift, loadings : (p,), (p, r)
        t + W m, and R.
    remaining : (p, p)
        B, the covariance of pre-activations given z.
    origin, axes : (K,), (K, r)
        kappa = origin + axes z, the axes triangular: the first directions have the first z.
    """

    shift: Array
    loadings: Array
    remaining: Array
    origin: Array
    axes: Array


def condition(
    weights: Array, biases: Array, directions: Array, component: Component
) -> Conditioned:
    """Pre-activations given the projections on ``directions`` (d, K), orthonormal.

    Directions along which the component does not vary have no z.
    """
    _, mean, covariance = component
    spread = directions if covariance is None else covariance @ directions
    axes = triangular_root(directions.T @ spread)  # z = axes^-1 (kappa - origin)
    loadings = weights @ spread @ np.linalg.pinv(axes).T
    covered = weights if covariance is None else weights @ covariance
    remaining = covered @ weights.T - loadings @ loadings.T
    shift = biases + weights @ mean
    return Conditioned(shift, loadings, remaining, directions.T @ mean, axes)


def layer_strata(
    given: Conditioned,
    student: Activation,
    rule: Rule,
    share: float = 1.0,
    k_max: int = 2,
    rank_tol: float = 1e-8,
) -> HermiteStrata:
    """The strata of one component, of that ``share``, at the nodes of a ``rule`` for z.  Eq. (20.1)

    Of every degree modes are left out that hold ``rank_tol`` of E sigma^2 together; and degrees of
    which no mode is left.

    Moments of the features are smooth in z and in the neuron.  Of few neurons they are computed at
    all nodes; those of the others are combinations of these, which are found at few nodes.
    """
    nodes, shares = rule
    c = np.maximum(np.diagonal(given.remaining), 0.0)
    reach = np.linalg.norm(given.loadings, axis=1) * np.linalg.norm(nodes, axis=1).max()
    table = MomentTable(student, given.shift, reach, c, k_max)

    def moments(at: Array | slice, of: Array | slice) -> Array:
        return table.at(given.shift[of] + nodes[at] @ given.loadings[of].T, of)

    chosen, modes = skeleton(lambda at: moments(at, slice(None)), shares)
    *degrees, power = moments(slice(None), chosen)
    basis, turned = np.linalg.qr(modes.T)
    scale = np.sqrt(np.where(c > 0, c, 1.0))
    correlation = given.remaining / np.outer(scale, scale)
    least = rank_tol * float((shares @ power @ modes).sum())
    expanded = []
    modulus = np.abs(correlation)
    others = modulus**0  # |rho|^k
    for each in degrees:
        along = each @ turned.T
        sizes, vectors = np.linalg.eigh((along.T * shares) @ along)
        # a mode counts by what entries beside the diagonal, which is exact, make of it
        beside = min(1.0, (others.sum() - np.trace(others)) / len(c))
        kept = vectors[:, np.cumsum(sizes) * beside > least]  # the others together hold less
        expanded.append(Degree(along @ kept, kept.T @ basis.T))
        others *= modulus
    while len(expanded) > 2 and not expanded[-1].modes.size:
        expanded.pop()
    return HermiteStrata(share * shares, expanded, correlation, Degree(power, modes))


class MomentTable:
    """The moments of every neuron as Chebyshev series in its shift, from ``centre`` - ``reach`` to
    ``centre`` + ``reach``, (p,) each: they are smooth on the scale sqrt(c)."""

    def __init__(
        self, student: Activation, centre: Array, reach: Array, c: Array, k_max: int
    ) -> None:
        self.student, self.centre, self.c, self.k_max = student, centre, c, k_max
        self.reach = np.maximum(reach, 1e-300)
        # exp(-c k^2 / 2) of a wave k that as many points see is 1e-10
        with np.errstate(divide="ignore"):
            points = 7 * self.reach / np.sqrt(c) + 16
        self.known = points <= 256
        self.counts = np.where(self.known, points, 1).astype(int)
        count = int(self.counts.max())
        s = centre + np.multiply.outer(chebpts1(count), self.reach)
        self.series = np.zeros((count, k_max + 2, len(c)))
        if self.known.any():  # none is where special directions leave nothing of the inputs
            values = hermite_moments(student, s[:, self.known], c[self.known], k_max)
            self.series[..., self.known] = np.tensordot(to_coefficients(count), values, ([1], [1]))

    def at(self, s: Array, of: Array | slice) -> Array:
        """Those of some of the neurons at shifts (n, q) of theirs: (k_max + 2, n, q)."""
        neurons = np.arange(self.c.size)[of]
        found = np.empty((self.k_max + 2, *s.shape))
        x = np.clip((s - self.centre[neurons]) / self.reach[neurons], -1, 1)
        for j, i in enumerate(neurons):
            if self.known[i]:
                basis = chebvander(x[:, j], self.counts[i] - 1)
                found[:, :, j] = (basis @ self.series[: self.counts[i], :, i]).T
            else:
                found[:, :, j] = hermite_moments(self.student, s[:, j], self.c[i], self.k_max)
        return found


def hermite_moments(student: Activation, s: Array, c: Array, k_max: int) -> Array:
    """d_k = E He_k(z) sigma(s + sqrt(c) z) / sqrt(k!) for k = 0 ... k_max, and E sigma^2:
    (k_max + 2, *shape of s)."""
    mean, first, variance = student.moments(s, c)
    found = [mean[None], first[None]]
    if k_max > 1:
        found.append(student.hermite_coefficients(k_max, s, c))
    return np.concatenate([*found, (variance + first**2 + mean**2)[None]])


def heavy(rule: Rule) -> Rule:
    """The nodes (N, K) that have any weight, also where moments grow as z^4: of those in the tails
    beyond, the lightest are left out, which hold 1e-6 of them together."""
    held = rule.weights * (1 + (rule.nodes**2).sum(axis=1) ** 2)
    order = np.argsort(held)
    kept = np.sort(order[np.cumsum(held[order]) > 1e-6 * held.sum()])
    return Rule(rule.nodes[kept], rule.weights[kept] / rule.weights[kept].sum())


def skeleton(moments: Callable[[Array], Array], shares: Array) -> tuple[Array, Array]:
    """Few neurons (r,) of whose moments, at any node, those of all are combinations: (r, p).

    ``moments`` maps some of the nodes to (k, n, p).  Nodes are drawn, half of them by their
    ``shares`` (N,), until they are far more than the neurons that are kept.
    """
    draw, count, N = np.random.default_rng(0), 128, shares.size
    while True:
        at = np.arange(N)
        if count < N:
            by_share = draw.choice(N, count // 2, replace=False, p=shares)
            at = np.unique(np.concatenate([by_share, draw.choice(N, count // 2, replace=False)]))
        values = moments(at)
        values = values / np.sqrt((values**2).mean(axis=(1, 2), keepdims=True) + 1e-300)
        R, order = qr(values.reshape(-1, values.shape[2]), mode="r", pivoting=True)
        sizes = np.abs(np.diagonal(R))
        rank = int(np.count_nonzero(sizes > SKELETON_TOLERANCE * sizes[0]))
        if count >= N or 2 * rank <= at.size:
            break
        count *= 2
    modes = np.empty((rank, values.shape[2]))
    modes[:, order] = np.concatenate(
        [np.eye(rank), solve_triangular(R[:rank, :rank], R[:rank, rank:])], axis=1
    )
    return order[:rank], modes
