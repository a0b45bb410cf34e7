"""Rules for averages over independent standard Gaussians: nodes, and weights that sum to 1.

Three families:

* trapezoidal rules on a finite interval with Gaussian weights: they converge geometrically for
  analytic integrands, also with poles near the real axis or a growing Fourier frequency, where
  Gauss-Hermite is slow (docs/theory.md 14.2);
* piecewise Gauss-Legendre rules, with panels split at given points: for kinks and jumps, and, with
  panels that shrink towards these points, for layers of any width;
* Gauss-Hermite rules, exact for polynomials.

``quadrature`` tries ever larger rules of a family until its answer settles.
"""

from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh_tridiagonal
from scipy.special import ndtri, roots_hermitenorm, roots_legendre

from .results import Array

HALF_WIDTH = 8.6  # the Gaussian weight outside +-8.6 is 8e-18


class Rule(NamedTuple):
    """Quadrature rule: nodes (..., n), and weights (..., n) that sum to 1 over the last axis.

    A function whose weights have another sum says so.
    """

    nodes: Array
    weights: Array


@lru_cache(maxsize=32)
def gauss_hermite(n: int) -> Rule:
    """Gauss-Hermite rule with n nodes, exact for polynomials up to degree 2n - 1.

    Examples
    --------
    >>> x, w = gauss_hermite(3)
    >>> float(np.round(w @ x**4, 12))
    3.0
    """
    hermite_nodes, hermite_weights = roots_hermitenorm(n)
    return Rule(hermite_nodes, hermite_weights / hermite_weights.sum())


@lru_cache(maxsize=32)
def trapezoid(n: int, half_width: float = HALF_WIDTH) -> Rule:
    """Trapezoidal rule with n nodes on [-half_width, half_width], with Gaussian weights."""
    return gaussian_rule(np.linspace(-half_width, half_width, n), np.ones(n))


def gauss_legendre(
    n: int, breaks: ArrayLike, half_width: float = HALF_WIDTH, panel: float = 2.5
) -> Rule:
    """Gauss-Legendre rule with Gaussian weights, n nodes on each panel between ``breaks``.

    The breaks (..., b) give a rule for each entry of the leading axes, such as kinks that move with
    a parameter.  Breaks outside [-half_width, half_width] are clipped to it, which leaves panels of
    width and weight zero.  The interval is also divided into equal parts no wider than ``panel``.
    """
    kinks = np.clip(np.sort(np.asarray(breaks, dtype=float), axis=-1), -half_width, half_width)
    even_panels = int(np.ceil(2 * half_width / panel))
    even_breaks = np.broadcast_to(
        np.linspace(-half_width, half_width, even_panels + 1), (*kinks.shape[:-1], even_panels + 1)
    )
    panel_edges = np.sort(np.concatenate([even_breaks, kinks], axis=-1), axis=-1)
    return gaussian_rule(*composite_legendre(n, panel_edges))


def rule_between_kinks(nodes: int, kinks: Sequence[float]) -> Rule:
    """Rule for a standard Gaussian: of Gauss and Hermite without ``kinks``, else of Gauss and
    Legendre on panels that end at these, at 0 and at +-4.3."""
    if not kinks:
        return gauss_hermite(nodes)
    gaussian_panels = gauss_legendre(nodes // 4, kinks, 8.6, 4.3)
    weighted_nodes = gaussian_panels.weights > 0
    return Rule(gaussian_panels.nodes[weighted_nodes], gaussian_panels.weights[weighted_nodes])


def gauss_rule_of(measure: Rule, n: int) -> Rule:
    """Gauss rule with n nodes for a discrete ``measure`` of many more, exact for polynomials up to
    degree 2n - 1.  It follows from Lanczos's recurrence of the orthonormal polynomials.

    Examples
    --------
    >>> x, w = gauss_rule_of(trapezoid(100), 3)
    >>> float(np.round(w @ x**4, 12))
    3.0
    """
    # values of the orthonormal polynomials times root weights; and their recurrence (Jacobi) matrix
    polynomials, jacobi_diagonal, jacobi_off_diagonal = [np.sqrt(measure.weights)], [], []
    for _ in range(n):
        polynomial = measure.nodes * polynomials[-1]
        jacobi_diagonal.append(polynomial @ polynomials[-1])
        for _ in range(2):  # twice, as rounding leaves a part of earlier vectors, which grows
            polynomial = polynomial - np.array(polynomials).T @ (np.array(polynomials) @ polynomial)
        jacobi_off_diagonal.append(np.linalg.norm(polynomial))
        polynomials.append(polynomial / jacobi_off_diagonal[-1])
    gauss_nodes, jacobi_vectors = eigh_tridiagonal(jacobi_diagonal, jacobi_off_diagonal[:-1])
    return Rule(gauss_nodes, jacobi_vectors[0] ** 2)


def composite_legendre(n: int, edges: Array) -> Rule:
    """Gauss-Legendre rule for a uniform weight, n nodes on each panel between increasing ``edges``
    (..., b).  The weights sum to the length of the interval."""
    legendre_nodes, w = _legendre_rule(n)
    half = np.diff(edges, axis=-1)[..., None] / 2
    panel_middle = (edges[..., 1:] + edges[..., :-1])[..., None] / 2
    shape = (*edges.shape[:-1], -1)
    return Rule((panel_middle + half * legendre_nodes).reshape(shape), (half * w).reshape(shape))


_legendre_rule = lru_cache(maxsize=64)(roots_legendre)  # on [-1, 1]: the weights sum to 2


def graded_breaks(
    points: Sequence[float], half_width: float = HALF_WIDTH, width: float = 1e-6
) -> Array:
    """Breaks of panels that shrink by factors of 4 towards each point, down to ``width``."""
    panel_count = int(np.ceil(np.log(2 * half_width / width) / np.log(4)))
    break_distance = 2 * half_width * 4.0 ** -np.arange(panel_count + 1)
    break_offsets = np.concatenate([-break_distance, [0.0], break_distance])
    graded_panel_breaks = np.add.outer(np.asarray(points, dtype=float), break_offsets).ravel()
    return np.unique(np.clip(graded_panel_breaks, -half_width, half_width))


def tensor_rule(*rules: Rule) -> Rule:
    """Tensor product of one-dimensional rules: nodes (n, dimension), weights (n,).

    The product of no rules has one node, without coordinates.
    """
    if not rules:
        return Rule(np.empty((1, 0)), np.ones(1))
    rule_grids = np.meshgrid(*(rule.nodes for rule in rules), indexing="ij")
    tensor_weights = reduce(np.multiply.outer, [rule.weights for rule in rules])
    return Rule(np.stack([grid.ravel() for grid in rule_grids], axis=-1), tensor_weights.ravel())


def drop_light_nodes(rule: Rule, share: float = 1e-6) -> Rule:
    """Drop the nodes (N, K) that hold least of sum w (1 + |z|^4), together a ``share`` of it, and
    scale the other weights to sum 1."""
    node_masses = rule.weights * (1 + (rule.nodes**2).sum(axis=1) ** 2)
    mass_order = np.argsort(node_masses)
    heavy_node = np.sort(mass_order[np.cumsum(node_masses[mass_order]) > share * node_masses.sum()])
    return Rule(rule.nodes[heavy_node], rule.weights[heavy_node] / rule.weights[heavy_node].sum())


@lru_cache(maxsize=16)
def trapezoid_tensor(n: int, dimension: int) -> Rule:
    """Tensor product of ``dimension`` trapezoidal rules of n nodes: nodes (n^dimension,
    dimension).

    The half width shrinks with n, so that few nodes lie where the weight is small.  It is at most
    11, where the weight 1e-27 suppresses growing functions.
    """
    small_half_width = 5.0 + 3.6 * float(np.log2(n / 12) / np.log2(64 / 12))
    trapezoid_half_width = min(half_range(n), 11.0) if n >= 64 else small_half_width
    return tensor_rule(*[trapezoid(n, trapezoid_half_width)] * dimension)


def half_range(n: int) -> float:
    """Half width of the interval for n trapezoidal nodes.

    It grows with n, so that the difference between two sizes reveals the part cut off.
    """
    return HALF_WIDTH + 1.4 * float(np.log2(max(n, 64) / 64))


def gaussian_density(x: Array) -> Array:
    """Density of N(0, 1) at ``x``."""
    return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))


def gaussian_rule(nodes: Array, weights: Array) -> Rule:
    """Rule (..., n) for the standard Gaussian from one for the weight 1: the weights are multiplied
    by exp(-nodes^2 / 2) and scaled to sum to 1."""
    weights = weights * np.exp(-(nodes**2) / 2)
    return Rule(nodes, weights / weights.sum(axis=-1, keepdims=True))


def normal_lattice(dimension: int, n: int, shift: float = 0.5) -> Rule:
    """Kronecker lattice of n points for the mean of a function of ``dimension`` standard Gaussians,
    which may jump along a curve: nodes (n, dimension).  The nodes have twice the variance, so that
    powers of them have small errors too; the weights have the sum 1 to some 1e-4.

    Examples
    --------
    >>> z, w = normal_lattice(2, 2**16)
    >>> bool(abs(w @ (z[:, 0] > np.sin(z[:, 1])) - 0.5) < 1e-3)
    True
    """
    # powers of the root of x^(dimension + 1) = x + 1, of which the golden ratio is the first
    polynomial = np.polynomial.Polynomial([-1, -1, *[0] * max(dimension - 1, 0), 1])
    irrational = polynomial.roots().real.max() ** -np.arange(1.0, dimension + 1)
    uniform = (shift + np.outer(np.arange(n) + 0.5, irrational)) % 1
    nodes = np.sqrt(2) * ndtri(np.clip(uniform, 1e-16, 1 - 1e-16))
    return Rule(nodes, (np.sqrt(2) * np.exp(-(nodes**2) / 4)).prod(axis=1) / n)
