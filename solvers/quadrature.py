"""Expectations over independent standard Gaussians, with an error estimate.

A rule of one of the families of ``rules`` is made larger until two successive ones agree; if
none do, ``QuadratureError`` says so.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, takewhile

import numpy as np
from numpy.typing import ArrayLike

from .results import Array
from .rules import Rule, gauss_hermite, gauss_legendre, interval, trapezoid, trapezoid_tensor
from .settle import settle

Scaled = tuple[Array, Array]  # a value, and the scale that its change is measured against

# Nodes a direction, for tensor rules in one to four dimensions.
TENSOR_SIZES: dict[int, tuple[int, ...]] = {
    1: (64, 128, 256, 512, 1024),
    2: (24, 36, 54, 80, 120, 180),
    3: (16, 24, 36, 54, 80),
    4: (12, 18, 27, 36),
}


class QuadratureError(ArithmeticError):
    """No rule within the allowed size met the requested tolerance."""


@dataclass(frozen=True)
class Expectation:
    """A Gaussian average E f(z) and how well it is known.

    Attributes
    ----------
    value : array
    error : float
        The largest change of an entry at the last refinement, relative to its scale.
    rule : str
        The family of the rule that was used last.
    nodes : int
        Its size.
    """

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

    def weighted_sum(rule: Rule) -> Scaled:
        values = np.asarray(function(rule.nodes))
        size = (np.abs(values) * rule.weights).sum(axis=-1)
        return (values * rule.weights).sum(axis=-1), np.maximum(1.0, size.max())

    return refine(weighted_sum, breaks, rule=rule, tol=tol, max_nodes=max_nodes)


def refine(
    compute: Callable[[Rule], Scaled],
    breaks: Array,
    *,
    rule: str,
    tol: float,
    max_nodes: int = 4096,
) -> Expectation:
    """Evaluate ``compute`` on ever larger rules until its value settles.

    Parameters
    ----------
    compute : callable, rule -> (value (...), scale that broadcasts with it)
        The scale is what a change of the value is measured against.
    breaks : array (b,) or (..., b)
        Ends of panels for Gauss-Legendre rules, such as kinks.
    rule : str
        One family, or several in the order to try them, "a, b".
    tol, max_nodes
        As in :func:`expectation`.

    Raises
    ------
    QuadratureError
        If no rule up to ``max_nodes`` meets the tolerance.
    """
    changes = []
    for family in rule.split(", "):
        allowed = takewhile(lambda r: r.nodes.shape[-1] <= max_nodes, _FAMILIES[family](breaks))
        smallest = next(allowed, None)
        if smallest is None:
            changes.append(f"inf with {family} rules")
            continue
        settled = settle(chain([smallest], allowed), compute, _relative_change, tol)
        if settled.met:
            size = settled.candidate.nodes.shape[-1]
            return Expectation(settled.value[0], settled.change, family, size)
        changes.append(f"{settled.change:.1e} with {family} rules")
    raise QuadratureError(
        f"the integral over z ~ N(0, 1) did not settle to {tol:g} within {max_nodes} nodes "
        f"(last change {', '.join(changes)}); if the function has kinks or jumps, declare them "
        f"(kinks=...)"
    )


def _relative_change(before: Scaled, now: Scaled) -> float:
    """Largest change of an entry of the value, relative to the scale it has now."""
    value, scale = now
    with np.errstate(invalid="ignore"):
        return float((np.abs(value - before[0]) / scale).max())


def _trapezoids(breaks: Array) -> Iterator[Rule]:
    """Trapezoidal rules of growing size; ``breaks`` do not matter to them."""
    for n in (64, 128, 256, 512, 1024):
        yield trapezoid(n, interval(n))


def _gauss_legendres(breaks: Array) -> Iterator[Rule]:
    """Gauss-Legendre rules with ``breaks`` (..., b) between their panels, nodes (..., n), of more
    and more nodes a panel on a wider and wider interval."""
    for n, half_width in ((10, 8.6), (20, 10.0), (40, 11.5), (80, 13.0), (160, 13.0)):
        yield gauss_legendre(n, breaks, half_width)


def _gauss_hermites(breaks: Array) -> Iterator[Rule]:
    """Gauss-Hermite rules of growing size; ``breaks`` do not matter to them."""
    for n in (16, 32, 64, 128, 256, 512, 1024):
        yield gauss_hermite(n)


_FAMILIES: dict[str, Callable[[Array], Iterator[Rule]]] = {
    "trapezoid": _trapezoids,
    "gauss-legendre": _gauss_legendres,
    "gauss-hermite": _gauss_hermites,
}


def trapezoid_tensors(dimension: int) -> Iterator[Rule]:
    """Tensor products of trapezoidal rules in ``dimension`` directions, of growing size.

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

    def weighted_sum(rule: Rule) -> Scaled:
        values = function(rule.nodes.T)
        scale = max(1.0, float((np.abs(values) @ rule.weights).max()))
        return values @ rule.weights, np.asarray(scale)

    settled = settle(trapezoid_tensors(dimension), weighted_sum, _relative_change, tol)
    if not settled.met:
        raise QuadratureError(
            f"the integral over {dimension} Gaussian directions did not settle to {tol:g} "
            f"(last change {settled.change:.1e})"
        )
    return settled.value[0], settled.candidate
