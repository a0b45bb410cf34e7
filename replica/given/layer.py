"""Strata of a given first layer, from its weights and biases.  Eq. (20.1)

A stratum is a component of the inputs and a node z of a quadrature rule, given which
pre-activations are s(z) + g, Gaussian of the covariance B (``nodes``).  Features there are expanded
in Hermite polynomials of g_i / sqrt(c_i), c_i = B_ii, up to the degree k_max; the rest of each one
is taken to be independent of the others.  docs/theory.md 20
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from solvers.results import Array
from solvers.rules import Rule

from ..problem import Activation
from .moments import MomentTable
from .nodes import Conditioned, Level
from .strata import Degree, HermiteStrata

# Least part of a neuron's moments, of the largest, that is not a combination of others'.
SKELETON_TOLERANCE = 1e-5
BLOCK = 16  # nodes of which moments of all neurons are computed at a time, for memory
# Of a degree past the mean modes may be left out that are as many times larger: as measured, 30
# change errors less than those of the mean do, 100 as much.
LATER = 30


def layer_strata(
    given: Conditioned, student: Activation, rule: Rule, level: Level
) -> HermiteStrata:
    """The strata of one component at the nodes of a ``rule`` for z.  Eq. (20.1)

    Of the mean, modes are left out that hold ``rank_tol`` of E sigma^2 together; of other degrees,
    whose modes neurons do not share, ``LATER`` times as much; and degrees of which no mode is left.
    What is left out is taken to be independent of the other neurons, as degrees past ``k_max`` are.

    Moments of the features are smooth in z and in the neuron.  Of few neurons they are computed at
    all nodes; those of the others are combinations of these, which are found at few nodes.
    """
    (nodes, shares), c = rule, given.variances
    reach = np.linalg.norm(given.loadings, axis=1) * np.linalg.norm(nodes, axis=1).max()
    table = MomentTable(student, given.shift, reach, c, level.k_max, uses=len(nodes) * len(c))

    def moments(at: Array | slice, of: Array | slice) -> Array:
        return table.at(given.shift[of] + nodes[at] @ given.loadings[of].T, of)

    # a mode counts by what entries beside the diagonal, which hardly changes, make of it
    parts = _beside_diagonal(given.correlation, level.k_max)
    chosen, modes = skeleton(lambda at: moments(at, slice(None)), shares)
    *degrees, rest = moments(slice(None), chosen)
    rest = np.maximum(rest, 0.0)
    basis, turned = np.linalg.qr(modes.T)
    largest = np.linalg.svd(turned, compute_uv=False).max(initial=0.0) ** 2
    mean, first, beside = student.moments(given.shift, c + (given.loadings**2).sum(axis=1))
    least = level.rank_tol * float((mean**2 + first**2 + beside).sum())
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
    return HermiteStrata(given.share * shares, expanded, given.correlation, Degree(rest, modes))


def _beside_diagonal(correlation: Array, k_max: int) -> Array:
    """Sums of |rho|^k beside the diagonal, over p, and 1 at most: (k_max + 1,)."""
    modulus = np.abs(correlation)
    np.fill_diagonal(modulus, 0.0)
    power, sums = np.ones_like(modulus), [1.0]
    for _ in range(k_max):
        power *= modulus
        sums.append(power.sum() / len(power))
    return np.minimum(sums, 1.0)


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
