"""Hermite tensors of a target given what is known of its argument.  docs/theory.md 11, [D]

With U the directions known, the first rows of a basis, the target g(z) has the tensors

    T_k(z_U) = E[He_k(P z) g(z) | z_U],   P the projection on the complement of U,        (11.1)

and M_k = E T_k T_k^T, all indices but one contracted.  All are sums over one tensor rule along the
rows of the basis.
"""

from functools import reduce
from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.polynomial import hermite_e

from solvers.quadrature import TENSOR_SIZES, QuadratureError
from solvers.results import Array
from solvers.rules import Rule, gauss_hermite, trapezoid_tensor

from ..errors import InvalidArgument
from ..problem import MultiIndex


class ConditionalTensors(NamedTuple):
    """Averages of a target g of r directions, the first of them known.

    Attributes
    ----------
    basis : (r, r)
        Orthonormal rows, the known directions U first.
    moments : list of (m, m)
        M_k / k! on the m other rows of ``basis``, k = 1, 2, ...
    explained : float
        Share of the variance of g that functions of z_U explain.
    mean, variance : float
        Of g.
    coefficients : (n, ..., n, degree + 1, ..., degree + 1)
        E[prod_i He_{m_i}(y_i) g | z_U] at the nodes of z_U, along the rows of ``basis``.
    error : float
        Change of the averages from a smaller rule, relative to the variance.
    """

    basis: Array
    moments: list[Array]
    explained: float
    mean: float
    variance: float
    coefficients: Array
    error: float


def conditional_tensors(g: MultiIndex, basis: Array, known: int, degree: int) -> ConditionalTensors:
    """The tensors of ``g`` given its projections on the first ``known`` rows of ``basis`` (r, r).

    Two families of rules are tried at growing sizes, as neither serves all functions, and the
    averages that change least from one size to the next are taken.

    Raises
    ------
    InvalidArgument
        If g is constant.
    QuadratureError
        If the averages cannot be integrated to 1 % of the variance.
    """
    found: list[ConditionalTensors] = []
    previous: dict[str, ConditionalTensors] = {}
    for n in TENSOR_SIZES[g.dimension]:
        even = Rule(*map(np.ravel, trapezoid_tensor(n, 1)))
        for family, rule in (("hermite", gauss_hermite(n)), ("trapezoid", even)):
            tensors = _on_rule(g, rule, basis, known, degree)
            if not np.isfinite(tensors.mean * tensors.mean + tensors.variance):
                raise InvalidArgument("target", g.name, "of a finite variance")
            if tensors.variance <= 1e-24 * tensors.mean**2:  # by rounding alone
                raise InvalidArgument("target", g.name, "a function that is not constant")
            if family in previous:
                tensors = tensors._replace(error=_change(previous[family], tensors))
                if tensors.error <= 1e-11:  # not far above the rounding of sums of so many terms
                    return tensors
                found.append(tensors)
            previous[family] = tensors
    best = min(found, key=lambda tensors: tensors.error)
    if not best.error <= 1e-2:
        raise QuadratureError(
            f"target {g.name}: averages over {g.dimension} Gaussian directions are known to "
            f"{best.error:.1g} of its variance only"
        )
    return best


def _change(coarse: ConditionalTensors, fine: ConditionalTensors) -> float:
    """Largest change of an average, relative to the variance."""
    pairs = zip(coarse.moments, fine.moments, strict=True)
    changes = [np.abs(a - b).max(initial=0.0) / fine.variance for a, b in pairs]
    changes += [abs(coarse.explained - fine.explained), abs(coarse.variance / fine.variance - 1)]
    return float(np.max(changes))


def _on_rule(
    g: MultiIndex, rule: Rule, basis: Array, known: int, degree: int
) -> ConditionalTensors:
    """The tensors by the tensor product of ``rule`` along the rows of ``basis``."""
    r, n = g.dimension, rule.weights.size
    y = np.stack(np.meshgrid(*[rule.nodes] * r, indexing="ij"))
    values = g(*np.tensordot(basis.T, y, axes=1))
    hermite = hermite_e.hermevander(rule.nodes, degree).T * rule.weights
    coefficients = values
    for _ in range(r - known):  # axis after axis: nodes of y_i become degrees 0, 1, ... in it
        coefficients = np.tensordot(coefficients, hermite, axes=(known, 1))
    weights = reduce(np.multiply.outer, [rule.weights] * known, np.array(1.0)).ravel()
    at = coefficients.reshape((n**known, *[degree + 1] * (r - known)))
    every = reduce(np.multiply.outer, [rule.weights] * r)
    mean = float((every * values).sum())
    variance = float((every * (values - mean) ** 2).sum())
    given = at.reshape(n**known, -1)[:, 0] - mean  # E[g | z_U] - E g
    explained = float(weights @ given**2) / (variance or 1.0)
    moments, free = [], r - known
    for k in range(1, degree + 1) if free else ():
        T = hermite_tensor(at, free, k).reshape(n**known, free, -1)
        moments.append(np.einsum("n,nai,nbi->ab", weights, T, T, optimize=True) / factorial(k))
    return ConditionalTensors(basis, moments, explained, mean, variance, coefficients, np.inf)


def hermite_tensor(coefficients: Array, r: int, k: int) -> Array:
    """C_k, (..., r, ..., r) with k axes, from the ``coefficients`` E prod_i He_{m_i}(z_i) g at the
    indices m of an array (..., degree + 1, ..., degree + 1) with r axes."""
    axes = np.indices((r,) * k, dtype=np.int8)
    return coefficients[..., *((axes == i).sum(axis=0, dtype=np.int8) for i in range(r))]
