"""Rules for averages over independent standard Gaussians: nodes, and weights that sum to 1.

Three families:

* trapezoidal on a finite interval with Gaussian weights: geometric convergence for
  analytic integrands, also those with poles near the real axis or a growing Fourier
  frequency, where Gauss-Hermite is slow (docs/theory.md 14.2);
* piecewise Gauss-Legendre, its panels split at given points: for kinks and jumps, and
  with panels shrinking towards those points for layers of any width;
* Gauss-Hermite, exact for polynomials and there by name.

``quadrature`` tries ever larger ones of a family until its answer settles.
"""

from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh_tridiagonal
from scipy.special import roots_hermitenorm, roots_legendre

from .results import Array

HALF_WIDTH = 8.6  # the Gaussian weight outside +-8.6 is 8e-18


class Rule(NamedTuple):
    """Nodes (..., n) and weights (..., n) that sum to 1 over the last axis, unless a function
    says otherwise."""

    nodes: Array
    weights: Array


@lru_cache(maxsize=32)
def gauss_hermite(n: int) -> Rule:
    """Gauss-Hermite rule with n nodes: exact for polynomials up to degree 2n - 1.

    Examples
    --------
    >>> x, w = gauss_hermite(3)
    >>> float(np.round(w @ x**4, 12))
    3.0
    """
    nodes, weights = roots_hermitenorm(n)
    return Rule(nodes, weights / weights.sum())


@lru_cache(maxsize=32)
def trapezoid(n: int, half_width: float = HALF_WIDTH) -> Rule:
    """Trapezoidal rule with n nodes on [-half_width, half_width] and Gaussian weights."""
    return gaussian_weights(np.linspace(-half_width, half_width, n), np.ones(n))


def gauss_legendre(
    n: int, breaks: ArrayLike, half_width: float = HALF_WIDTH, panel: float = 2.5
) -> Rule:
    """Gauss-Legendre with n nodes on each panel between successive ``breaks``.

    ``breaks`` has shape (..., b): a leading axis gives one rule per entry (kinks that
    move with a parameter).  Breaks outside the interval are clipped to it, which leaves
    panels of width zero and weight zero.  The interval is also cut into equal parts no wider
    than ``panel``.
    """
    given = np.clip(np.sort(np.asarray(breaks, dtype=float), axis=-1), -half_width, half_width)
    parts = int(np.ceil(2 * half_width / panel))
    even = np.broadcast_to(
        np.linspace(-half_width, half_width, parts + 1), (*given.shape[:-1], parts + 1)
    )
    edges = np.sort(np.concatenate([even, given], axis=-1), axis=-1)
    return gaussian_weights(*composite(n, edges))


def gauss_of(measure: Rule, n: int) -> Rule:
    """The Gauss rule of n nodes of a discrete ``measure`` of many more: exact for polynomials up to
    degree 2n - 1.  By Lanczos's recurrence of its orthonormal polynomials.

    Examples
    --------
    >>> x, w = gauss_of(trapezoid(100), 3)
    >>> float(np.round(w @ x**4, 12))
    3.0
    """
    basis, diagonal, beside = [np.sqrt(measure.weights)], [], []
    for _ in range(n):
        following = measure.nodes * basis[-1]
        diagonal.append(following @ basis[-1])
        for _ in range(2):  # what rounding leaves of those before grows
            following = following - np.array(basis).T @ (np.array(basis) @ following)
        beside.append(np.linalg.norm(following))
        basis.append(following / beside[-1])
    nodes, vectors = eigh_tridiagonal(diagonal, beside[:-1])
    return Rule(nodes, vectors[0] ** 2)


def composite(n: int, edges: Array) -> Rule:
    """Gauss-Legendre with n nodes on each panel between successive ``edges`` (..., b), increasing,
    for a uniform weight: the weights sum to the length."""
    x, w = _legendre(n)
    half = np.diff(edges, axis=-1)[..., None] / 2
    middle = (edges[..., 1:] + edges[..., :-1])[..., None] / 2
    shape = (*edges.shape[:-1], -1)
    return Rule((middle + half * x).reshape(shape), (half * w).reshape(shape))


_legendre = lru_cache(maxsize=64)(roots_legendre)  # on [-1, 1]: the weights sum to 2


def graded(points: Sequence[float], half_width: float = HALF_WIDTH, width: float = 1e-6) -> Array:
    """Breaks between panels that shrink by factors of 4 towards each point, down to ``width``."""
    count = int(np.ceil(np.log(2 * half_width / width) / np.log(4)))
    distance = 2 * half_width * 4.0 ** -np.arange(count + 1)
    offsets = np.concatenate([-distance, [0.0], distance])
    breaks = np.add.outer(np.asarray(points, dtype=float), offsets).ravel()
    return np.unique(np.clip(breaks, -half_width, half_width))


def tensor(*rules: Rule) -> Rule:
    """Tensor product of one-dimensional rules: nodes (n, dimension), weights (n,); of none of them
    the one node that has no coordinate."""
    if not rules:
        return Rule(np.empty((1, 0)), np.ones(1))
    grids = np.meshgrid(*(rule.nodes for rule in rules), indexing="ij")
    weights = reduce(np.multiply.outer, [rule.weights for rule in rules])
    return Rule(np.stack([grid.ravel() for grid in grids], axis=-1), weights.ravel())


@lru_cache(maxsize=16)
def trapezoid_tensor(n: int, dimension: int) -> Rule:
    """Tensor product of ``dimension`` trapezoidal rules of n nodes: nodes (n^dimension,
    dimension).  The interval shrinks with n, to spend few nodes where the weight is small, and
    is 11 at most: the weight there, 1e-27, makes up for functions that have grown."""
    few = 5.0 + 3.6 * float(np.log2(n / 12) / np.log2(64 / 12))
    half_width = min(interval(n), 11.0) if n >= 64 else few
    return tensor(*[trapezoid(n, half_width)] * dimension)


def interval(n: int) -> float:
    """Half width used with n trapezoidal nodes: wider as n grows, so that the part cut off
    shows in the difference between two sizes."""
    return HALF_WIDTH + 1.4 * float(np.log2(max(n, 64) / 64))


def gaussian_density(x: Array) -> Array:
    """The density of N(0, 1) at ``x``."""
    return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))


def gaussian_weights(nodes: Array, weights: Array) -> Rule:
    """The rule (..., n) for the weight 1 turned into one for the standard Gaussian: weights times
    exp(-nodes^2 / 2), scaled to sum to 1."""
    weights = weights * np.exp(-(nodes**2) / 2)
    return Rule(nodes, weights / weights.sum(axis=-1, keepdims=True))
