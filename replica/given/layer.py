"""Strata of a given first layer, from its weights and biases.  Eq. (20.1)

Inputs of a component are x ~ N(m, Sigma).  Given kappa = U^T x along the special directions U,
those of the target and all along which rows are not small, pre-activations are Gaussian: with
z ~ N(0, I) the standardised kappa,

    W x + t = s(z) + g,   s = t + W m + R z,   R = Cov(W x, z),   Cov g = B = W Sigma W^T - R R^T.

A stratum is a component and a node z of a quadrature rule.  Features there are expanded in Hermite
polynomials of g_i / sqrt(c_i), c_i = B_ii, up to the degree k_max; the rest of each one is taken to
be independent of the others.  docs/theory.md 20
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from solvers.results import Array
from solvers.rules import Rule

from ..problem import Activation, triangular_root
from .moments import MomentTable
from .strata import Degree, HermiteStrata

# Least part of a neuron's moments, of the largest, that is not a combination of others'.
SKELETON_TOLERANCE = 1e-5
BLOCK = 16  # nodes of which moments of all neurons are computed at a time, for memory
# Of a degree past the mean modes may be left out that are as many times larger: as measured, 30
# change errors less than those of the mean do, 100 as much.
LATER = 30
# Loadings over the width in which features vary, root mean square, from which on Hermite nodes are
# too far apart; and the largest that counts.
STEEP, STEEPEST = 4.0, 100.0


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

    def switches(self, student: Activation, count: int) -> tuple[Array, Array]:
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
    What is left out is taken to be independent of the other neurons, as degrees past k_max are.

    Moments of the features are smooth in z and in the neuron.  Of few neurons they are computed at
    all nodes; those of the others are combinations of these, which are found at few nodes.
    """
    (nodes, shares), c = rule, given.variances
    reach = np.linalg.norm(given.loadings, axis=1) * np.linalg.norm(nodes, axis=1).max()
    table = MomentTable(student, given.shift, reach, c, k_max, uses=len(nodes) * len(c))

    def moments(at: Array | slice, of: Array | slice) -> Array:
        return table.at(given.shift[of] + nodes[at] @ given.loadings[of].T, of)

    # a mode counts by what entries beside the diagonal, which hardly changes, make of it
    parts = _beside_diagonal(given.correlation, k_max)
    chosen, modes = skeleton(lambda at: moments(at, slice(None)), shares)
    *degrees, rest = moments(slice(None), chosen)
    rest = np.maximum(rest, 0.0)
    basis, turned = np.linalg.qr(modes.T)
    largest = np.linalg.svd(turned, compute_uv=False).max(initial=0.0) ** 2
    mean, first, beside = student.moments(given.shift, c + (given.loadings**2).sum(axis=1))
    least = rank_tol * float((mean**2 + first**2 + beside).sum())
    expanded = []
    for k, (each, part) in enumerate(zip(degrees, parts, strict=True)):
        left_out = least * LATER if k else least
        kept = np.empty((len(chosen), 0))
        if largest * (shares @ each**2).sum() * part > left_out:  # some mode may be kept
            sizes, vectors = np.linalg.eigh(turned @ ((each.T * shares) @ each) @ turned.T)
            kept = vectors[:, np.cumsum(sizes) * part > left_out]  # the others hold less together
        degree = Degree(each @ (turned.T @ kept), kept.T @ basis.T)
        rest += (each - degree.along @ degree.modes[:, chosen]) ** 2
        expanded.append(degree)
    while len(expanded) > 2 and not expanded[-1].modes.size:
        expanded.pop()
    return HermiteStrata(share * shares, expanded, given.correlation, Degree(rest, modes))


def _beside_diagonal(correlation: Array, k_max: int) -> Array:
    """Sums of |rho|^k beside the diagonal, over p, and 1 at most: (k_max + 1,)."""
    modulus = np.abs(correlation)
    np.fill_diagonal(modulus, 0.0)
    power, sums = np.ones_like(modulus), [1.0]
    for _ in range(k_max):
        power *= modulus
        sums.append(power.sum() / len(power))
    return np.minimum(sums, 1.0)


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
        chosen, modes = _independent(_products(moments, at))
        if count >= N or 2 * chosen.size <= at.size:
            return chosen, modes
        p = modes.shape[1]
        if 2 * chosen.size > p:
            return np.arange(p), np.eye(p)
        count *= 2


def _independent(gram: Array) -> tuple[Array, Array]:
    """Columns (r,) of which all those of a ``gram`` matrix (p, p) are combinations, (r, p)."""
    least = SKELETON_TOLERANCE**2 * np.diagonal(gram).max()
    root, order, rank, _ = dpstrf(gram.T, tol=least, overwrite_a=1)
    order -= 1  # LAPACK counts from 1
    modes = np.empty((rank, len(order)))
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
            sizes = np.sqrt(np.einsum("knp,knp->k", values, values))
            # below a millionth of the largest but the mean it is rounding
            scale = np.maximum(sizes, 1e-6 * sizes[1:].max() + 1e-300)[:, None, None]
        values /= scale
        rows = values.reshape(-1, values.shape[2])
        total = total + rows.T @ rows
    return total
