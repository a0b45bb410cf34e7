"""Hermite tensors of a target given what is known of its argument.  docs/theory.md 11, [D]

With U the directions known, the first rows of a basis, the target g(z) has the tensors

    T_k(z_U) = E[He_k(P z) g(z) | z_U],   P the projection on the complement of U,        (11.1)

and M_k = E T_k T_k^T, all indices but one contracted.  All are sums over one tensor rule along the
rows of the basis.  Where inputs have another law, there is M_1 alone, as ``staircase`` has it.
"""

from functools import reduce
from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.polynomial import hermite_e

from solvers.quadrature import TENSOR_SIZES, QuadratureError, trapezoid_tensors
from solvers.results import Array
from solvers.rules import Rule, gauss_hermite, trapezoid_tensor
from solvers.settle import largest_change, settle

from ..errors import InvalidArgument
from ..problem import Components, GaussianMixture, LabelLaw, MultiIndex, Target

TOLERANCE = 1e-11  # of averages: not far above the rounding of sums of so many terms


class ConditionalTensors(NamedTuple):
    """Averages of a target g of inputs of r coordinates, some directions of them known.

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
                if tensors.error <= TOLERANCE:
                    return tensors
                found.append(tensors)
            previous[family] = tensors
    return _known_enough(min(found, key=lambda tensors: tensors.error), g, g.dimension)


def conditional_means(
    g: Target, basis: Array, known: int, inputs: GaussianMixture
) -> ConditionalTensors:
    """The same of inputs whose law is a mixture, to the degree 1.  Eq. (11.2)

    Raises
    ------
    InvalidArgument
        If g is constant, or more than four directions are known.
    QuadratureError
        If the averages cannot be integrated to 1 % of the variance.
    """
    law, parts = LabelLaw(g), Components.of(inputs, basis[:known].T, g.dimension)
    whole, r = law.averages(inputs), len(basis)
    variance = whole.power - whole.mean**2
    if not variance > 1e-12 * whole.power:
        raise InvalidArgument("target", g.name, "a function that is not constant")

    def averages(rule: Rule) -> Array:
        """M_1, and after it the share of the variance that is explained."""
        at, weights = parts.on(rule)
        at, chance = parts.given(parts.special(at)[:known])  # each node in every component
        h, g_rest, _ = parts.moments(g, at)
        rest = parts.special(at)[known:]
        slopes = np.einsum("nak,kn->an", parts.root[at.component, known:], g_rest)
        mean, u, v = (
            np.einsum("...jn,jn->...n", x.reshape(*x.shape[:-1], *chance.shape), chance)
            for x in (h, rest, h * rest + slopes)
        )
        M = (weights * v) @ v.T + whole.power * (weights * u) @ u.T
        return np.append(M, weights @ (mean - whole.mean) ** 2 / variance)

    at_zero = [Rule(np.zeros((1, 0)), np.ones(1))] * 2  # where nothing is known
    found = settle(trapezoid_tensors(known) if known else at_zero, averages, largest_change, 1e-7)
    *M, explained = found.value
    coefficients = np.zeros((2,) * r)
    coefficients.flat[0] = whole.mean
    coefficients[tuple(np.eye(r, dtype=int))] = whole.first
    best = ConditionalTensors(
        parts.basis.T,
        [np.reshape(M, parts.root.shape[2:] * 2)],
        explained,
        whole.mean,
        variance,
        coefficients,
        found.change,
    )
    return _known_enough(best, g, known)


def _known_enough(found: ConditionalTensors, g: Target, directions: int) -> ConditionalTensors:
    """The tensors, or an error where they are not known to 1 % of the variance."""
    if not found.error <= 1e-2:
        raise QuadratureError(
            f"target {g.name}: averages over {directions} Gaussian directions are known to "
            f"{found.error:.1g} of its variance only"
        )
    return found


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
