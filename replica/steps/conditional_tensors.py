"""Hermite tensors of a target given what is known of its argument.  docs/theory.md 11, [D]

With U the directions known, the first rows of a basis, the target g(z) has the tensors

    T_k(z_U) = E[He_k(P z) g(z) | z_U],   P the projection on the complement of U,        (11.1)

and M_k = E T_k T_k^T, all indices but one contracted.  All are sums over one tensor rule along the
rows of the basis.  Where inputs have another law, there is M_1 alone, as ``staircase`` has it.
"""

from functools import partial, reduce
from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.polynomial import hermite_e

from solvers.quadrature import TENSOR_SIZES, QuadratureError, trapezoid_tensors
from solvers.results import Array
from solvers.rules import Rule, gauss_hermite, trapezoid_tensor
from solvers.settle import settle

from ..errors import InvalidArgument
from ..problem import Components, GaussianMixture, LabelLaw, Target


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
    coefficients : (n, ..., n)
        E prod_i He_{m_i}(z_i) g at the indices m, where nothing is known.
    error : float
        Change of the averages from a smaller rule, relative to the variance.
    """

    basis: Array
    moments: list[Array]
    explained: float
    mean: float
    variance: float
    coefficients: Array
    error: float = np.inf

    def tensor(self, k: int) -> Array:
        """C_k, where nothing is known."""
        return hermite_tensor(self.coefficients, len(self.basis), k)


def conditional_tensors(g: Target, basis: Array, known: int, degree: int) -> ConditionalTensors:
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
            _refuse_constant(g, tensors.mean, tensors.variance)
            if family in previous:
                tensors = tensors._replace(error=_change(previous[family], tensors))
                if tensors.error <= 1e-11:  # not far above the rounding of sums of so many terms
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
        If g is constant on these inputs.
    QuadratureError
        If the averages cannot be integrated to 1 % of the variance, or over more than four
        directions at once.
    """
    law, r = LabelLaw(g), len(basis)
    parts, alone = (
        Components.of(inputs, known, law.combinations)
        for known in (basis[:known].T, np.zeros((r, 0)))
    )
    h, _, spread = alone.moments(law.combined_mean, alone.places(np.zeros((0, 1))))
    mean = float(alone.shares @ h)
    variance = float(alone.shares @ (spread + (h - mean) ** 2))
    _refuse_constant(g, mean, variance, " on these inputs")
    C = np.zeros((2,) * r)  # E g, E z_1 g, ... at the indices 0 ... 0, 10 ... 0, ...
    C[*np.zeros((r, 1), dtype=int)], C[*np.eye(r, dtype=int)] = (
        mean,
        law.averages(inputs).first,
    )
    found = partial(ConditionalTensors, parts.basis.T, mean=mean, variance=variance, coefficients=C)

    def on(rule: Rule) -> ConditionalTensors:
        at, weights = parts.on(rule)
        at, chance = parts.given(parts.special(at)[:known])  # each node in every component
        h, g_rest, _ = parts.moments(law.combined_mean, at)
        rest = parts.special(at)[known:]
        slopes = np.einsum("nak,kn->an", parts.root[at.component, known:], g_rest)
        seen, u, v = (
            np.einsum("...jn,jn->...n", x.reshape(*x.shape[:-1], *chance.shape), chance)
            for x in (h, rest, h * rest + slopes)
        )
        M = (weights * v) @ v.T + (variance + mean**2) * (weights * u) @ u.T
        return found(moments=[M], explained=float(weights @ (seen - mean) ** 2) / variance)

    if known == r and g.dimension:  # the component that a class is of may not be known yet
        return found(moments=[], explained=1.0, error=0.0)
    if not known:
        return on(Rule(np.zeros((1, 0)), np.ones(1)))._replace(error=0.0)
    # values of the target at once, in seconds
    most = 2**19 / len(alone.shares) ** 2
    sizes = {k: [n for n in each if n**k <= most] or each[:2] for k, each in TENSOR_SIZES.items()}
    settled = settle(trapezoid_tensors(known, sizes), on, _change, 1e-7)
    return _known_enough(settled.value._replace(error=settled.change), g, known)


def _refuse_constant(g: Target, mean: float, variance: float, where: str = "") -> None:
    """Refuse a target without a variance, but for rounding, or with an infinite one."""
    if not np.isfinite(mean * mean + variance):
        raise InvalidArgument("target", g.name, f"of a finite variance{where}")
    if variance <= 1e-24 * mean**2:
        raise InvalidArgument("target", g.name, f"a function that is not constant{where}")


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


def _on_rule(g: Target, rule: Rule, basis: Array, known: int, degree: int) -> ConditionalTensors:
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
    return ConditionalTensors(basis, moments, explained, mean, variance, coefficients)


def hermite_tensor(coefficients: Array, r: int, k: int) -> Array:
    """C_k, (..., r, ..., r) with k axes, from the ``coefficients`` E prod_i He_{m_i}(z_i) g at the
    indices m of an array (..., degree + 1, ..., degree + 1) with r axes."""
    axes = np.indices((r,) * k, dtype=np.int8)
    return coefficients[..., *((axes == i).sum(axis=0, dtype=np.int8) for i in range(r))]
