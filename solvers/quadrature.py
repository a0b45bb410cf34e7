"""Expectations over independent standard Gaussians, with an error estimate.

Quadrature rules of a family of ``rules`` grow until two successive ones agree.  If none do,
``QuadratureError`` is raised.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .results import Array, Scaled
from .rules import (
    Rule,
    gauss_hermite,
    gauss_legendre,
    half_range,
    trapezoid,
    trapezoid_tensor,
)
from .successive_refinement import scaled_change, settle

# Nodes per direction of tensor rules in one to four dimensions: for tables, which store many
# numbers a node, and for averages, with up to 2e6 nodes in all (16 MB an array).
NODES_PER_AXIS: dict[int, tuple[int, ...]] = {
    1: (64, 128, 256, 512, 1024),
    2: (24, 36, 54, 80, 120, 180, 270),
    3: (16, 24, 36, 54, 80),
    4: (12, 18, 27, 36),
}
AVERAGE_SIZES = {
    1: (*NODES_PER_AXIS[1], 2048, 4096),
    2: (*NODES_PER_AXIS[2], 400, 600, 900, 1350),
    3: (*NODES_PER_AXIS[3], 120),
    4: NODES_PER_AXIS[4],
}


class QuadratureError(ArithmeticError):
    """Error raised when no quadrature rule meets the requested tolerance."""


class Expectation(NamedTuple):
    """Gaussian average, and the largest change of an entry in the last refinement, relative to its
    scale."""

    value: Array
    error: float


# Rules of growing size; only Gauss-Legendre uses the breaks (..., b) between panels.
_FAMILIES: dict[str, Callable[[Array], Iterable[Rule]]] = {
    "trapezoid": lambda breaks: (trapezoid(n, half_range(n)) for n in (64, 128, 256, 512, 1024)),
    # wider on every level, so that the difference between two levels reveals a growing function
    "gauss-legendre": lambda breaks: (
        gauss_legendre(10 * 2**level, breaks, half_width)
        for level, half_width in enumerate((8.6, 10.0, 11.5, 13.0, 14.5, 16.0))
    ),
    "gauss-hermite": lambda breaks: map(gauss_hermite, (16, 32, 64, 128, 256, 512, 1024)),
}


def expectation(
    compute: Callable[[Rule], Scaled], breaks: Array, *, rule: str, tol: float
) -> Expectation:
    """Expectation over z ~ N(0, 1): ``compute`` on ever larger rules, until its value settles.

    Parameters
    ----------
    compute : callable, rule -> (value (...), scale that broadcasts with it)
        A change of the value is measured against the scale.
    breaks : array (b,) or (..., b)
        Ends of panels for Gauss-Legendre rules, such as points where an integrand or a derivative
        jumps.  Leading axes are integrands with breaks of their own, for nodes (..., n).
    rule : str
        Name of a family, or several names in the order to try them, "a, b".
    tol : float
        Largest change, relative to the scale, at which the value is accepted.

    Raises
    ------
    QuadratureError
        If no rule meets the tolerance.

    Examples
    --------
    >>> def relu(rule):
    ...     return np.maximum(rule.nodes, 0) @ rule.weights, 1.0
    >>> round(float(expectation(relu, np.zeros(1), rule="gauss-legendre", tol=1e-12).value), 12)
    0.398942280401
    """
    last_changes = []
    for rule_family in rule.split(", "):
        settled_rule = settle(_FAMILIES[rule_family](breaks), compute, scaled_change, tol)
        if settled_rule.converged:
            return Expectation(settled_rule.value[0], settled_rule.change)
        last_changes.append(f"{settled_rule.change:.1e} with {rule_family} rules")
    raise QuadratureError(
        f"the integral over z ~ N(0, 1) did not settle to {tol:g} (last change "
        f"{', '.join(last_changes)}): the function grows too quickly (at a smaller "
        "rate it may do), or varies too quickly, as at kinks or jumps"
    )


def trapezoid_tensors(
    dimension: int, sizes: Mapping[int, Sequence[int]] = NODES_PER_AXIS
) -> Iterator[Rule]:
    """Iterate over tensor trapezoidal rules of growing size in ``dimension`` directions.

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
    for nodes_per_axis in sizes[dimension]:
        yield trapezoid_tensor(nodes_per_axis, dimension)


def expectation_tensor(
    averages: Callable[[Any], Array], dimension: int, rules: Iterable[Any]
) -> Array:
    """Expectation over z ~ N(0, 1) in ``dimension`` directions.

    The callable ``averages`` maps an item of ``rules``, such as a ``Rule`` of nodes (M, dimension),
    to an array.  The items are tried in order, from coarse to fine.

    Raises
    ------
    QuadratureError
        If the largest rules do not agree to 1e-8.

    Examples
    --------
    >>> def average(rule):
    ...     return (rule.nodes ** [2, 4]).prod(axis=1) @ rule.weights
    >>> round(float(expectation_tensor(average, 2, trapezoid_tensors(2))), 10)
    3.0
    """
    # Largest change of averages, relative to their scale, that ends the refinement of tensor rules,
    # and the largest accepted of the finest rule: the accuracy promised for a user's function.
    tensor_tolerance, tensor_accepted = 1e-10, 1e-8

    def scaled(rule: Any) -> Scaled:
        tensor_average = averages(rule)
        return tensor_average, np.maximum(1.0, np.abs(tensor_average).max())

    settled = settle(rules, scaled, scaled_change, tensor_tolerance)
    if not settled.change <= tensor_accepted:
        raise QuadratureError(
            f"the integral over {dimension} Gaussian directions did not settle to "
            f"{tensor_accepted:g} (last change {settled.change:.1e}): the function has kinks or "
            "varies too quickly"
        )
    return settled.value[0]
