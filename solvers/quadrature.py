"""Expectations over independent standard Gaussians, with an error estimate.

A rule of one of the families of ``rules`` is made larger until two successive ones agree; if
none do, ``QuadratureError`` says so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .results import Array, Scaled
from .rules import Rule, gauss_hermite, gauss_legendre, interval, trapezoid, trapezoid_tensor
from .settle import scaled_change, settle

# Nodes a direction, for tensor rules in one to four dimensions: of tables, whose every node holds
# many numbers, and of averages, up to 2e6 nodes in all (16 MB an array).
TENSOR_SIZES: dict[int, tuple[int, ...]] = {
    1: (64, 128, 256, 512, 1024),
    2: (24, 36, 54, 80, 120, 180, 270),
    3: (16, 24, 36, 54, 80),
    4: (12, 18, 27, 36),
}
AVERAGE_SIZES = {
    1: (*TENSOR_SIZES[1], 2048, 4096),
    2: (*TENSOR_SIZES[2], 400, 600, 900, 1350),
    3: (*TENSOR_SIZES[3], 120),
    4: TENSOR_SIZES[4],
}
# Change of averages, relative to their scale, at which a finer tensor rule is taken, and the one
# at which the finest still is: what is promised of a user's function.
TENSOR_TOLERANCE, TENSOR_ENOUGH = 1e-10, 1e-8


class QuadratureError(ArithmeticError):
    """No rule met the requested tolerance."""


class Expectation(NamedTuple):
    """A Gaussian average, and the largest change of an entry at the last refinement, relative to
    its scale."""

    value: Array
    error: float


# Rules of growing size for breaks (..., b) between panels, which matter to Gauss-Legendre alone.
_FAMILIES: dict[str, Callable[[Array], Iterable[Rule]]] = {
    "trapezoid": lambda breaks: (trapezoid(n, interval(n)) for n in (64, 128, 256, 512, 1024)),
    # wider on every level, so that a function that grows shows in the difference between two
    "gauss-legendre": lambda breaks: (
        gauss_legendre(10 * 2**level, breaks, half_width)
        for level, half_width in enumerate((8.6, 10.0, 11.5, 13.0, 14.5, 16.0))
    ),
    "gauss-hermite": lambda breaks: map(gauss_hermite, (16, 32, 64, 128, 256, 512, 1024)),
}


def refine(
    compute: Callable[[Rule], Scaled], breaks: Array, *, rule: str, tol: float
) -> Expectation:
    """Evaluate ``compute`` over z ~ N(0, 1) on ever larger rules until its value settles.

    Parameters
    ----------
    compute : callable, rule -> (value (...), scale that broadcasts with it)
        The scale is what a change of the value is measured against.
    breaks : array (b,) or (..., b)
        Ends of panels for Gauss-Legendre rules, such as points where an integrand or a derivative
        jumps; one row per integrand where they move, for nodes (..., n).
    rule : str
        One family, or several in the order to try them, "a, b".
    tol : float
        Largest change, relative to the scale, at which the value is taken.

    Raises
    ------
    QuadratureError
        If no rule meets the tolerance.

    Examples
    --------
    >>> def relu(rule):
    ...     return np.maximum(rule.nodes, 0) @ rule.weights, 1.0
    >>> round(float(refine(relu, np.zeros(1), rule="gauss-legendre", tol=1e-12).value), 12)
    0.398942280401
    """
    changes = []
    for family in rule.split(", "):
        settled = settle(_FAMILIES[family](breaks), compute, scaled_change, tol)
        if settled.met:
            return Expectation(settled.value[0], settled.change)
        changes.append(f"{settled.change:.1e} with {family} rules")
    raise QuadratureError(
        f"the integral over z ~ N(0, 1) did not settle to {tol:g} (last change "
        f"{', '.join(changes)}): the function grows too quickly, or it has kinks or "
        "jumps, which can be declared: kinks=[-1, 1], or --kinks -1,1"
    )


def trapezoid_tensors(
    dimension: int, sizes: Mapping[int, Sequence[int]] = TENSOR_SIZES
) -> Iterator[Rule]:
    """Tensor products of trapezoidal rules in ``dimension`` directions, of growing size.

    Raises
    ------
    QuadratureError
        If the dimension is above 4.
    """
    if dimension not in sizes:
        raise QuadratureError(
            f"{dimension} Gaussian directions at once would take "
            f"{sizes[4][0]}^{dimension} or more nodes; up to 4 are integrated"
        )
    for n in sizes[dimension]:
        yield trapezoid_tensor(n, dimension)


def expectation_tensor(
    averages: Callable[[Any], Array], dimension: int, rules: Iterable[Any]
) -> Array:
    """Averages over z ~ N(0, 1) in ``dimension`` directions.

    ``averages`` maps a rule, of nodes (M, dimension), to an array; or what else stands for one
    among the ``rules`` of growing size.

    Raises
    ------
    QuadratureError
        If the largest rules do not agree to ``TENSOR_ENOUGH``.

    Examples
    --------
    >>> def average(rule):
    ...     return (rule.nodes ** [2, 4]).prod(axis=1) @ rule.weights
    >>> round(float(expectation_tensor(average, 2, trapezoid_tensors(2))), 10)
    3.0
    """

    def scaled(rule: Any) -> Scaled:
        value = averages(rule)
        return value, np.maximum(1.0, np.abs(value).max())

    settled = settle(rules, scaled, scaled_change, TENSOR_TOLERANCE)
    if not settled.change <= TENSOR_ENOUGH:
        raise QuadratureError(
            f"the integral over {dimension} Gaussian directions did not settle to "
            f"{TENSOR_ENOUGH:g} (last change {settled.change:.1e}): the function has kinks or "
            "varies too quickly"
        )
    return settled.value[0]
