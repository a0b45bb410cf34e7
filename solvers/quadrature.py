"""Expectations over independent standard Gaussians, with an error estimate.

A rule is a set of nodes and of weights that sum to 1.  Three families:

* trapezoidal on a finite interval with Gaussian weights: geometric convergence for
  analytic integrands, also those with poles near the real axis or a growing Fourier
  frequency, where Gauss-Hermite is slow (docs/theory.md 14.2);
* piecewise Gauss-Legendre, its panels split at given points: for kinks and jumps, and
  with panels shrinking towards those points for layers of any width;
* Gauss-Hermite, exact for polynomials and there by name.

``expectation`` doubles a rule until two successive ones agree, and says so if none do.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import roots_hermitenorm, roots_legendre

from .results import Array

MOST = 400  # panels that close in on layers
HALF_WIDTH = 8.6  # the Gaussian weight outside +-8.6 is 8e-18


class Rule(NamedTuple):
    """Nodes (..., n) and weights (..., n), the weights summing to 1 over the last axis unless
    said."""

    nodes: Array
    weights: Array


class QuadratureError(ArithmeticError):
    """No rule within the allowed size met the requested tolerance."""


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
    nodes = np.linspace(-half_width, half_width, n)
    return _gaussian(nodes, np.ones(n))


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
    return _gaussian(*composite(n, edges))


def composite(n: int, edges: Array) -> Rule:
    """Gauss-Legendre with n nodes on each panel between successive ``edges`` (..., b), increasing,
    for a uniform weight: the weights sum to the length."""
    x, w = _legendre(n)
    half = np.diff(edges, axis=-1)[..., None] / 2
    middle = (edges[..., 1:] + edges[..., :-1])[..., None] / 2
    shape = (*edges.shape[:-1], -1)
    return Rule((middle + half * x).reshape(shape), (half * w).reshape(shape))


@lru_cache(maxsize=64)
def _legendre(n: int) -> Rule:
    return Rule(*roots_legendre(n))


def graded(points: Sequence[float], half_width: float = HALF_WIDTH, width: float = 1e-6) -> Array:
    """Breaks that close in on each point by factors of 4, down to ``width``."""
    count = int(np.ceil(np.log(2 * half_width / width) / np.log(4)))
    distance = 2 * half_width * 4.0 ** -np.arange(count + 1)
    offsets = np.concatenate([-distance, [0.0], distance])
    breaks = np.add.outer(np.asarray(points, dtype=float), offsets).ravel()
    return np.unique(np.clip(breaks, -half_width, half_width))


def closing_in(
    at: Array,
    width: Array,
    half_width: float,
    kinks: Array | None = None,
    *,
    closing: float = 0.5,
    longest: float = 2.5,
) -> Array:
    """Breaks (N, b) between panels for each of N integrands with layers ``at`` (N, M), infinite
    where there are fewer, that are ``width`` wide.

    A panel is up to ``longest``, to 3/2 of the width of a layer in it, or takes the part
    ``closing`` of the way to one, and ends at ``kinks`` (N, k).

    Examples
    --------
    >>> closing_in(np.array([[0.0]]), np.array([[1.0]]), 4.0).round(2).tolist()
    [[-2.0, -0.5, 1.0, 2.5]]
    """
    x = np.full(len(at), -half_width)
    ends: list[Array] = []
    while (x < half_width).any() and len(ends) < MOST:
        away = x[:, None] - at
        room = np.where(away < 0, -closing * away, closing / (1 - closing) * away)
        x = x + np.maximum(1.5 * width, room).min(axis=1, initial=longest)
        if kinks is not None:
            before = ends[-1] if ends else np.full(len(at), -half_width)
            ahead = np.where(kinks > before[:, None], kinks, np.inf)
            x = np.minimum(x, ahead.min(axis=1, initial=np.inf))
        x = np.minimum(x, half_width)
        ends.append(x)
    return np.stack(ends[:-1], axis=-1)


def tensor(*rules: Rule) -> Rule:
    """Tensor product of one-dimensional rules: nodes (n, dimension), weights (n,)."""
    grids = np.meshgrid(*(rule.nodes for rule in rules), indexing="ij")
    weights = rules[0].weights
    for rule in rules[1:]:
        weights = np.multiply.outer(weights, rule.weights)
    return Rule(np.stack([grid.ravel() for grid in grids], axis=-1), weights.ravel())


def _gaussian(nodes: Array, weights: Array) -> Rule:
    weights = weights * np.exp(-(nodes**2) / 2)
    return Rule(nodes, weights / weights.sum(axis=-1, keepdims=True))


def interval(n: int) -> float:
    """Half width used with n trapezoidal nodes: wider as n grows, so that the part cut off
    shows in the difference between two sizes."""
    return HALF_WIDTH + 1.4 * float(np.log2(max(n, 64) / 64))


@dataclass(frozen=True)
class Expectation:
    """E f(z): ``value``, the change at the last doubling ``error`` (relative to the scale
    of the value), the family of the ``rule`` and its number of ``nodes``."""

    value: Array
    error: float
    rule: str
    nodes: int


def expectation(
    function: Callable[[Array], ArrayLike],
    *,
    tol: float = 1e-12,
    kinks: ArrayLike = (),
    rule: str = "auto",
    max_nodes: int = 4096,
) -> Expectation:
    """E f(z) over z ~ N(0, 1), refined until two successive rules agree.

    Parameters
    ----------
    function : callable, array of nodes (..., n) -> array (..., n)
        May return a stack of integrands along leading axes.
    tol : float
        Bound on the change at the last doubling, relative to max(1, E|f|).
    kinks : array (b,) or (..., b)
        Points where f or a derivative jumps.  One row of kinks per integrand when the
        kinks move; then f is called with nodes of shape (..., n).
    rule : {"auto", "trapezoid", "gauss-legendre", "gauss-hermite"}
        "auto" takes the trapezoidal rule and, where it does not settle or where there are
        kinks, Gauss-Legendre.
    max_nodes : int
        Largest rule tried (nodes a panel for Gauss-Legendre count in full).

    Raises
    ------
    QuadratureError
        If no rule up to ``max_nodes`` meets the tolerance.
    ValueError
        If ``rule`` is unknown.

    Examples
    --------
    >>> result = expectation(np.tanh)
    >>> abs(float(result.value)) < 1e-15, result.rule
    (True, 'trapezoid')
    """
    breaks = np.asarray(kinks, dtype=float)
    if rule == "auto":
        rule = "gauss-legendre" if breaks.size else "trapezoid, gauss-legendre"
    elif rule not in _FAMILIES:
        raise ValueError(f"rule must be one of auto, {', '.join(_FAMILIES)}; got {rule!r}")

    def weighted_sum(rule: Rule) -> tuple[Array, Array]:
        values = np.asarray(function(rule.nodes))
        size = (np.abs(values) * rule.weights).sum(axis=-1)
        return (values * rule.weights).sum(axis=-1), np.maximum(1.0, size.max())

    return refine(weighted_sum, breaks, rule=rule, tol=tol, max_nodes=max_nodes)


def refine(
    compute: Callable[[Rule], tuple[Array, Array]],
    breaks: Array,
    *,
    rule: str,
    tol: float,
    max_nodes: int = 4096,
) -> Expectation:
    """Evaluate ``compute`` on ever larger rules until its value settles.

    ``compute`` maps a rule to a value and to the scale its change is measured against.
    ``rule`` names one family, or several in the order to try them, "a, b"; the other
    arguments are those of :func:`expectation`.

    Raises
    ------
    QuadratureError
        If no rule up to ``max_nodes`` meets the tolerance.
    """
    changes = []
    for family in rule.split(", "):
        previous, change = None, np.inf
        for candidate in _FAMILIES[family](breaks):
            size = candidate.nodes.shape[-1]
            if size > max_nodes:
                break
            value, scale = compute(candidate)
            if previous is not None:
                with np.errstate(invalid="ignore"):
                    change = float((np.abs(value - previous) / scale).max())
                if change <= tol:
                    return Expectation(value, change, family, size)
            previous = value
        changes.append(f"{change:.1e} with {family} rules")
    raise QuadratureError(
        f"the integral over z ~ N(0, 1) did not settle to {tol:g} within {max_nodes} nodes "
        f"(last change {', '.join(changes)}); if the function has kinks or jumps, declare them "
        f"(kinks=...)"
    )


def _trapezoids(breaks: Array) -> Iterator[Rule]:
    for n in (64, 128, 256, 512, 1024):
        yield trapezoid(n, interval(n))


def _gauss_legendres(breaks: Array) -> Iterator[Rule]:
    for n, half_width in ((10, 8.6), (20, 10.0), (40, 11.5), (80, 13.0), (160, 13.0)):
        yield gauss_legendre(n, breaks, half_width)


def _gauss_hermites(breaks: Array) -> Iterator[Rule]:
    for n in (16, 32, 64, 128, 256, 512, 1024):
        yield gauss_hermite(n)


_FAMILIES: dict[str, Callable[[Array], Iterator[Rule]]] = {
    "trapezoid": _trapezoids,
    "gauss-legendre": _gauss_legendres,
    "gauss-hermite": _gauss_hermites,
}


# Nodes a direction, for tensor rules in one to four dimensions.
TENSOR_SIZES: dict[int, tuple[int, ...]] = {
    1: (64, 128, 256, 512, 1024),
    2: (24, 36, 54, 80, 120, 180),
    3: (16, 24, 36, 54, 80),
    4: (12, 18, 27, 36),
}


def trapezoid_tensor(n: int, dimension: int) -> Rule:
    """Tensor product of ``dimension`` trapezoidal rules of n nodes: nodes (n^dimension,
    dimension).  The interval shrinks with n, to spend few nodes where the weight is small."""
    return tensor(*[trapezoid(n, reach(n))] * dimension)


def reach(n: int) -> float:
    """Half width used with n trapezoidal nodes, few where several directions multiply them."""
    return interval(n) if n >= 64 else 5.0 + 3.6 * float(np.log2(n / 12) / np.log2(64 / 12))


def trapezoid_tensors(dimension: int) -> Iterator[Rule]:
    """Tensor products of growing size.

    Raises
    ------
    QuadratureError
        If the dimension is above 4.
    """
    if dimension not in TENSOR_SIZES:
        raise QuadratureError(
            f"{dimension} Gaussian directions at once would take "
            f"{TENSOR_SIZES[4][0]}^{dimension} or more nodes; up to 4 are integrated"
        )
    for n in TENSOR_SIZES[dimension]:
        yield trapezoid_tensor(n, dimension)


def expectation_tensor(
    function: Callable[[Array], Array], dimension: int, *, tol: float
) -> tuple[Array, Rule]:
    """E f(z) over z ~ N(0, 1) in ``dimension`` directions, and the rule that settled it.

    ``function`` maps nodes (dimension, M) to an array (..., M).

    Raises
    ------
    QuadratureError
        If the dimension is above 4, or no rule meets the tolerance.

    Examples
    --------
    >>> value, _ = expectation_tensor(lambda z: z[0] ** 2 * z[1] ** 4, 2, tol=1e-10)
    >>> round(float(value), 10)
    3.0
    """
    previous, change = None, np.inf
    for rule in trapezoid_tensors(dimension):
        values = function(rule.nodes.T)
        value = values @ rule.weights
        if previous is not None:
            scale = max(1.0, float((np.abs(values) @ rule.weights).max()))
            change = float(np.abs(value - previous).max()) / scale
            if change <= tol:
                return value, rule
        previous = value
    raise QuadratureError(
        f"the integral over {dimension} Gaussian directions did not settle to {tol:g} "
        f"(last change {change:.1e})"
    )
