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
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from solvers.chebyshev import to_coefficients
from solvers.results import Array
from solvers.rules import Rule

from ..problem import Activation, triangular_root
from .strata import Degree, HermiteStrata

# Least part of a neuron's moments, of the largest, that is not a combination of others'.
SKELETON_TOLERANCE = 1e-5
BLOCK = 64  # neurons, or nodes, of which moments are computed at a time, for memory
# Of a degree past the mean modes may be left out that are as many times larger: as measured, 30
# change errors less than those of the mean do, 100 as much.
LATER = 30


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
    variances, correlation : (p,), (p, p)
        c and rho, those of B, the covariance of pre-activations given z.
    origin, axes : (K,), (K, r)
        kappa = origin + axes z, the axes triangular: the first directions have the first z.
    """

    shift: Array
    loadings: Array
    variances: Array
    correlation: Array
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
    B = covered @ weights.T
    B -= loadings @ loadings.T
    c = np.maximum(np.diagonal(B), 0.0)
    scale = np.sqrt(np.where(c > 0, c, 1.0))
    B /= scale
    B /= scale[:, None]
    return Conditioned(biases + weights @ mean, loadings, c, B, directions.T @ mean, axes)


def layer_strata(
    given: Conditioned,
    student: Activation,
    rule: Rule,
    share: float = 1.0,
    k_max: int = 2,
    rank_tol: float = 1e-8,
) -> HermiteStrata:
    """The strata of one component, of that ``share``, at the nodes of a ``rule`` for z.  Eq. (20.1)

    Of the mean, modes are left out that hold ``rank_tol`` of E sigma^2 together; of other degrees,
    whose modes neurons do not share, ``LATER`` times as much; and degrees of which no mode is left.

    Moments of the features are smooth in z and in the neuron.  Of few neurons they are computed at
    all nodes; those of the others are combinations of these, which are found at few nodes.
    """
    (nodes, shares), c = rule, given.variances
    reach = np.linalg.norm(given.loadings, axis=1) * np.linalg.norm(nodes, axis=1).max()
    table = MomentTable(student, given.shift, reach, c, k_max)

    def moments(at: Array | slice, of: Array | slice) -> Array:
        return table.at(given.shift[of] + nodes[at] @ given.loadings[of].T, of)

    chosen, modes = skeleton(lambda at: moments(at, slice(None)), shares)
    *degrees, power = moments(slice(None), chosen)
    power = power.copy()  # not to keep the others with it
    basis, turned = np.linalg.qr(modes.T)
    least = rank_tol * float((shares @ power @ modes).sum())
    expanded = []
    modulus = np.abs(given.correlation)
    others = np.ones_like(modulus)  # |rho|^k
    for k, each in enumerate(degrees):
        along = each @ turned.T
        sizes, vectors = np.linalg.eigh((along.T * shares) @ along)
        # a mode counts by what entries beside the diagonal, which is exact, make of it
        beside = min(1.0, (others.sum() - np.trace(others)) / len(c))
        left_out = least * LATER if k else least
        kept = vectors[:, np.cumsum(sizes) * beside > left_out]  # the others together hold less
        expanded.append(Degree(along @ kept, kept.T @ basis.T))
        others *= modulus
    while len(expanded) > 2 and not expanded[-1].modes.size:
        expanded.pop()
    return HermiteStrata(share * shares, expanded, given.correlation, Degree(power, modes))


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
        count = int(points.max(initial=1, where=self.known))
        self.series = np.zeros((len(c), k_max + 2, count))
        known = np.flatnonzero(self.known)  # none where special directions leave nothing of inputs
        for i in range(0, known.size, BLOCK):
            of = known[i : i + BLOCK]
            s = centre[of] + np.multiply.outer(chebpts1(count), self.reach[of])
            values = hermite_moments(student, s, c[of], k_max)
            self.series[of] = np.moveaxis(values, 2, 0) @ to_coefficients(count).T

    def at(self, s: Array, of: Array | slice) -> Array:
        """Those of some of the neurons at shifts (n, q) of theirs: (k_max + 2, n, q)."""
        neurons = np.arange(self.c.size)[of]
        found = np.empty((self.k_max + 2, *s.shape))
        x = np.clip((s - self.centre[neurons]) / self.reach[neurons], -1, 1).T
        known, count = np.flatnonzero(self.known[neurons]), self.series.shape[2]
        size = max(1, 10**5 // (count * len(s)))  # neurons at a time, for memory
        for i in range(0, known.size, size):
            j = known[i : i + size]
            basis = np.moveaxis(chebvander(x[j], count - 1), 2, 1)  # (neurons, count, n)
            found[:, :, j] = np.moveaxis(self.series[neurons[j]] @ basis, 0, 2)
        rest = np.flatnonzero(~self.known[neurons])
        if rest.size:
            rest = rest[np.argsort(self.c[neurons[rest]])]  # those alike in one integral
            c = self.c[neurons[rest], None]
            values = hermite_moments(self.student, s[:, rest].T, c, self.k_max)
            found[:, :, rest] = values.swapaxes(1, 2)
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
        gram = _products(moments, at)
        least = SKELETON_TOLERANCE**2 * np.diagonal(gram).max()
        root, order, rank, _ = dpstrf(gram, tol=least)
        if count >= N or 2 * rank <= at.size:
            break
        count *= 2
    modes, order = np.empty((rank, len(order))), order - 1  # LAPACK counts from 1
    modes[:, order[:rank]] = np.eye(rank)
    modes[:, order[rank:]] = solve_triangular(root[:rank, :rank], root[:rank, rank:])
    return order[:rank], modes


def _products(moments: Callable[[Array], Array], at: Array) -> Array:
    """Sums (p, p), over the nodes ``at``, of products of the ``moments`` of two neurons, each of
    the k on a scale of its own; of some nodes at a time, for memory."""
    total, scale, parts = np.zeros(()), None, -(-at.size // BLOCK)
    for i in range(parts):
        values = moments(at[i::parts])
        if scale is None:
            scale = 1 / np.sqrt(np.einsum("knp,knp->k", values, values) + 1e-300)[:, None, None]
        values *= scale
        rows = values.reshape(-1, values.shape[2])
        total = total + rows.T @ rows
    return total
