"""Hermite tensors of a target, conditional on known directions.  docs/theory.md 11, [D]

With U the known directions, the first rows of a basis, the target g(z) has the tensors

    T_k(z_U) = E[He_k(P z) g(z) | z_U],   P the projection on the complement of U,        (11.1)

and M_k = E T_k T_k^T, all indices but one contracted.  All are sums over one rule, nested along the
rows of the basis, whose panels end where g has kinks or jumps.  For inputs of another law than
N(0, I) only M_1 is defined; see ``staircase``.
"""

from collections.abc import Iterator
from functools import partial, reduce
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import hermite_e

from solvers.plane_panels import nested_rule
from solvers.quadrature import NODES_PER_AXIS, QuadratureError, trapezoid_tensors
from solvers.results import Array
from solvers.rules import Rule, gauss_hermite, trapezoid_tensor
from solvers.successive_refinement import settle

from ..errors import InvalidArgument
from ..problem import SPLIT_SIZES, Components, GaussianMixture, LabelLaw, Target


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

    Rules are tried at growing sizes: with panels split at the kinks and jumps of g that are known,
    else Gauss-Hermite and trapezoidal, as neither is accurate for all functions.  The averages that
    change least from one size to the next are returned.

    Raises
    ------
    InvalidArgument
        If g is constant.
    QuadratureError
        If the averages cannot be integrated to 1 % of the variance.
    """
    candidate_tensors: list[ConditionalTensors] = []
    coarser_tensors: dict[str, ConditionalTensors] = {}
    for family, nodes, weights in _nested_rules(g, basis):
        tensors = _tensor_sums(g, nodes, weights, basis, known, degree)
        _refuse_constant(g, tensors.mean, tensors.variance)
        if family in coarser_tensors:
            tensors = tensors._replace(error=_largest_change(coarser_tensors[family], tensors))
            if tensors.error <= 1e-11:  # ten times the rounding of sums of so many terms
                return tensors
            candidate_tensors.append(tensors)
        coarser_tensors[family] = tensors
    return _checked_error(min(candidate_tensors, key=lambda tensors: tensors.error), g, g.dimension)


def _nested_rules(g: Target, basis: Array) -> Iterator[tuple[str, list[Array], Array]]:
    """Families of rules of growing size for a target ``g`` along the rows of ``basis`` (r, r).

    Of each rule the nodes of coordinate i (n_1 or 1, ..., n_i, 1, ..., 1), for all r coordinates,
    and the weights (n_1, ..., n_r)."""
    r = g.dimension
    if g.planes and r in SPLIT_SIZES:
        kink_normals, kink_offsets = map(np.array, zip(*g.planes, strict=True))
        for node_count in SPLIT_SIZES[r]:
            split_rule = nested_rule(node_count, kink_normals @ basis.T, kink_offsets)
            node_indices: list[Any] = [(..., *[slice(1)] * (r - 1 - i), i) for i in range(r)]
            yield "split", [split_rule.nodes[first] for first in node_indices], split_rule.weights
    for node_count in NODES_PER_AXIS[r]:
        trapezoid_rule = Rule(*map(np.ravel, trapezoid_tensor(node_count, 1)))
        for family, rule in (("hermite", gauss_hermite(node_count)), ("trapezoid", trapezoid_rule)):
            yield (
                family,
                [*np.ix_(*[rule.nodes] * r)],
                reduce(np.multiply.outer, [rule.weights] * r),
            )


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
    g: Target, nodes: list[Array], weights: Array, basis: Array, known: int, degree: int
) -> ConditionalTensors:
    """Tensors of ``g`` by quadrature on nodes and weights of ``_nested_rules``."""
    r = g.dimension
    target_values = g(*np.tensordot(basis.T, np.stack(np.broadcast_arrays(*nodes)), axes=1))
    z_weights = weights.sum(axis=tuple(range(known, r))).ravel()
    g_hermite = weights * target_values
    for i in reversed(range(known, r)):  # inner ones first: nodes of z_i are summed to degrees
        hermite = hermite_e.hermevander(nodes[i].reshape(nodes[i].shape[: i + 1]), degree)
        inner_sums = hermite.swapaxes(-1, -2) @ g_hermite.reshape(*g_hermite.shape[: i + 1], -1)
        g_hermite = inner_sums.reshape(*g_hermite.shape[:i], degree + 1, *g_hermite.shape[i + 1 :])
    given_known = g_hermite.reshape(z_weights.size, *[degree + 1] * (r - known))
    with np.errstate(divide="ignore", invalid="ignore"):  # panels between equal kinks weigh 0
        given_known = np.nan_to_num((given_known.T / z_weights).T)
    target_mean = float((weights * target_values).sum())
    target_variance = float((weights * (target_values - target_mean) ** 2).sum())
    g_deviation = given_known.reshape(z_weights.size, -1)[:, 0] - target_mean  # E[g | z_U] - E g
    explained = float(z_weights @ g_deviation**2) / (target_variance or 1.0)
    moments, unknown_count = [], r - known
    for k in range(1, degree + 1) if unknown_count else ():
        T = hermite_tensor(given_known, unknown_count, k).reshape(len(z_weights), unknown_count, -1)
        moments.append(np.einsum("n,nai,nbi->ab", z_weights, T, T, optimize=True) / factorial(k))
    return ConditionalTensors(basis, moments, explained, target_mean, target_variance, g_hermite)


def hermite_tensor(coefficients: Array, directions: int, k: int) -> Array:
    """Hermite tensor C_k, (..., r, ..., r) with k axes of size r.

    The ``coefficients`` (..., degree + 1, ..., degree + 1), with r axes, are
    E prod_i He_{m_i}(z_i) g at the indices m.
    """
    axes = np.indices((directions,) * k, dtype=np.int8)
    return coefficients[..., *((axes == i).sum(axis=0, dtype=np.int8) for i in range(directions))]
