"""Hermite tensors of a target, conditional on known directions.  docs/theory.md 11, [D]

With U the known directions, the first rows of a basis, the target g(z) has the tensors

    T_k(z_U) = E[He_k(P z) g(z) | z_U],   P the projection on the complement of U,        (11.1)

and M_k = E T_k T_k^T, all indices but one contracted.  All are sums over one tensor rule along the
rows of the basis.  For inputs of another law than N(0, I) only M_1 is defined; see ``staircase``.
"""

from functools import partial, reduce
from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.polynomial import hermite_e

from solvers.quadrature import NODES_PER_AXIS, QuadratureError, trapezoid_tensors
from solvers.results import Array
from solvers.rules import Rule, gauss_hermite, trapezoid_tensor
from solvers.successive_refinement import settle

from ..errors import InvalidArgument
from ..problem import Components, GaussianMixture, LabelLaw, Target


class ConditionalTensors(NamedTuple):
    """Averages of a target g of r coordinates, conditional on its known directions.

    Attributes
    ----------
    basis : (r, r)
        Orthonormal rows, the known directions U first.
    moments : list of (m, m)
        M_k / k!, k = 1, 2, ..., on the m rows of ``basis`` after U.
    explained : float
        Share of the variance of g that functions of z_U explain.
    mean, variance : float
        Mean and variance of g.
    coefficients : (n, ..., n)
        E prod_i He_{m_i}(z_i) g at the indices m, if no direction is known.
    error : float
        Change of the averages from the next smaller rule, relative to the variance.
    """

    basis: Array
    moments: list[Array]
    explained: float
    mean: float
    variance: float
    coefficients: Array
    error: float = np.inf

    def tensor(self, k: int) -> Array:
        """The Hermite tensor C_k, if no direction is known."""
        return hermite_tensor(self.coefficients, len(self.basis), k)


def conditional_tensors(g: Target, basis: Array, known: int, degree: int) -> ConditionalTensors:
    """Tensors of ``g`` conditional on the first ``known`` rows of ``basis`` (r, r).

    Gauss-Hermite and trapezoidal rules are tried at growing sizes, as neither is accurate for all
    functions.  The averages that change least from one size to the next are returned.

    Raises
    ------
    InvalidArgument
        If g is constant.
    QuadratureError
        If the averages cannot be integrated to 1 % of the variance.
    """
    candidate_tensors: list[ConditionalTensors] = []
    coarser_tensors: dict[str, ConditionalTensors] = {}
    for node_count in NODES_PER_AXIS[g.dimension]:
        evenly_spaced = Rule(*map(np.ravel, trapezoid_tensor(node_count, 1)))
        for family, rule in (("hermite", gauss_hermite(node_count)), ("trapezoid", evenly_spaced)):
            tensors = _tensor_sums(g, rule, basis, known, degree)
            _refuse_constant(g, tensors.mean, tensors.variance)
            if family in coarser_tensors:
                tensors = tensors._replace(error=_largest_change(coarser_tensors[family], tensors))
                if tensors.error <= 1e-11:  # ten times the rounding of sums of so many terms
                    return tensors
                candidate_tensors.append(tensors)
            coarser_tensors[family] = tensors
    return _checked_error(min(candidate_tensors, key=lambda tensors: tensors.error), g, g.dimension)


def conditional_means(
    g: Target, basis: Array, known: int, inputs: GaussianMixture
) -> ConditionalTensors:
    """Tensors of degree 1 for inputs with a Gaussian mixture as their law.  Eq. (11.2)

    Raises
    ------
    InvalidArgument
        If g is constant on these inputs.
    QuadratureError
        If the averages cannot be integrated to 1 % of the variance, or over more than four
        directions at once.
    """
    g_law, direction_count = LabelLaw(g), len(basis)
    components, marginal = (
        Components.from_law(inputs, known, g_law.combinations)
        for known in (basis[:known].T, np.zeros((direction_count, 0)))
    )
    h, _, g_spread = marginal.moments(g_law.combined_mean, marginal.in_components(np.zeros((0, 1))))
    g_average = float(marginal.shares @ h)
    variance = float(marginal.shares @ (g_spread + (h - g_average) ** 2))
    _refuse_constant(g, g_average, variance, " on these inputs")
    C = np.zeros((2,) * direction_count)  # E g, E z_1 g, ... at the indices 0 ... 0, 10 ... 0, ...
    C[(0,) * direction_count] = g_average
    C[*np.eye(direction_count, dtype=int)] = g_law.averages(inputs).first
    make_tensors = partial(
        ConditionalTensors, components.basis.T, mean=g_average, variance=variance, coefficients=C
    )

    def tensors_by_rule(rule: Rule) -> ConditionalTensors:
        z_places, z_weights = components.places_and_weights(rule)
        # every node, in every component
        z_places, chance = components.places_of_kappa(components.projection_means(z_places)[:known])
        h, target_slopes, _ = components.moments(g_law.combined_mean, z_places)
        hidden_coordinates = components.projection_means(z_places)[known:]
        slopes = np.einsum("nak,kn->an", components.root[z_places.component, known:], target_slopes)
        conditional_mean, u, v = (
            np.einsum("...jn,jn->...n", x.reshape(*x.shape[:-1], *chance.shape), chance)
            for x in (h, hidden_coordinates, h * hidden_coordinates + slopes)
        )
        hermite_moment = (z_weights * v) @ v.T + (variance + g_average**2) * (z_weights * u) @ u.T
        explained_variance = float(z_weights @ (conditional_mean - g_average) ** 2) / variance
        return make_tensors(moments=[hermite_moment], explained=explained_variance)

    # class labels, of dimension 0, depend on the component, which may not be known from z
    if known == direction_count and g.dimension:
        return make_tensors(moments=[], explained=1.0, error=0.0)
    if not known:
        return tensors_by_rule(Rule(np.zeros((1, 0)), np.ones(1)))._replace(error=0.0)
    # number of target values of a rule that takes seconds
    max_nodes = 2**19 / len(marginal.shares) ** 2
    sizes = {k: [n for n in ns if n**k <= max_nodes] or ns[:2] for k, ns in NODES_PER_AXIS.items()}
    converged = settle(trapezoid_tensors(known, sizes), tensors_by_rule, _largest_change, 1e-7)
    return _checked_error(converged.value._replace(error=converged.change), g, known)


def _refuse_constant(g: Target, g_mean: float, g_variance: float, input_clause: str = "") -> None:
    """Refuse a target whose variance is zero, up to rounding, or infinite."""
    if not np.isfinite(g_mean * g_mean + g_variance):
        raise InvalidArgument("target", g.name, f"a function of finite variance{input_clause}")
    if g_variance <= 1e-24 * g_mean**2:
        raise InvalidArgument("target", g.name, f"a function that is not constant{input_clause}")


def _checked_error(tensors: ConditionalTensors, g: Target, directions: int) -> ConditionalTensors:
    """Return the tensors; raise QuadratureError if their error exceeds 1 % of the variance."""
    if not tensors.error <= 1e-2:
        raise QuadratureError(
            f"target {g.name}: averages over {directions} Gaussian directions are known to "
            f"{tensors.error:.1g} of its variance only"
        )
    return tensors


def _largest_change(coarse: ConditionalTensors, fine: ConditionalTensors) -> float:
    """Largest change of an average between two rules, relative to the variance."""
    moment_pairs = zip(coarse.moments, fine.moments, strict=True)
    changes = [np.abs(M_a - M_b).max(initial=0.0) / fine.variance for M_a, M_b in moment_pairs]
    changes += [abs(coarse.explained - fine.explained), abs(coarse.variance / fine.variance - 1)]
    return float(np.max(changes))


def _tensor_sums(
    g: Target, rule: Rule, basis: Array, known: int, degree: int
) -> ConditionalTensors:
    """Tensors of ``g`` by quadrature, with ``rule`` along each row of ``basis``."""
    r, n = g.dimension, rule.weights.size
    z_grid = np.stack(np.meshgrid(*[rule.nodes] * r, indexing="ij"))
    target_values = g(*np.tensordot(basis.T, z_grid, axes=1))
    weighted_hermite = hermite_e.hermevander(rule.nodes, degree).T * rule.weights
    g_hermite = target_values
    for _ in range(r - known):  # one axis at a time: nodes of y_i are summed to Hermite degrees
        g_hermite = np.tensordot(g_hermite, weighted_hermite, axes=(known, 1))
    z_weights = reduce(np.multiply.outer, [rule.weights] * known, np.array(1.0)).ravel()
    given_known = g_hermite.reshape((n**known, *[degree + 1] * (r - known)))
    all_weights = reduce(np.multiply.outer, [rule.weights] * r)
    target_mean = float((all_weights * target_values).sum())
    target_variance = float((all_weights * (target_values - target_mean) ** 2).sum())
    g_deviation = given_known.reshape(n**known, -1)[:, 0] - target_mean  # E[g | z_U] - E g
    explained = float(z_weights @ g_deviation**2) / (target_variance or 1.0)
    moments, unknown_count = [], r - known
    for k in range(1, degree + 1) if unknown_count else ():
        T = hermite_tensor(given_known, unknown_count, k).reshape(n**known, unknown_count, -1)
        moments.append(np.einsum("n,nai,nbi->ab", z_weights, T, T, optimize=True) / factorial(k))
    return ConditionalTensors(basis, moments, explained, target_mean, target_variance, g_hermite)


def hermite_tensor(coefficients: Array, directions: int, k: int) -> Array:
    """Hermite tensor C_k, (..., r, ..., r) with k axes of size r.

    The ``coefficients`` (..., degree + 1, ..., degree + 1), with r axes, are
    E prod_i He_{m_i}(z_i) g at the indices m.
    """
    axes = np.indices((directions,) * k, dtype=np.int8)
    return coefficients[..., *((axes == i).sum(axis=0, dtype=np.int8) for i in range(directions))]
