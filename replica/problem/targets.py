"""Targets of several directions: sigma_*(z_1, ..., z_T) of orthonormal projections of x.

Given the projections of an input on the spikes, the T arguments are their means plus L tau, with
tau ~ N(0, 1) in the q remaining directions (``components``): Eq. (3.3).
"""

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import null_space

from solvers.plane_panels import split_at_planes
from solvers.quadrature import (
    AVERAGE_SIZES,
    NODES_PER_AXIS,
    QuadratureError,
    expectation_tensor,
    trapezoid_tensors,
)
from solvers.resources import check_time
from solvers.results import Array
from solvers.rules import Rule, trapezoid_tensor

from ..errors import InvalidArgument
from .activation import Activation
from .checks import MAX_NUMBER, assign, called, check_elementwise, number
from .expressions import Expression, is_expression
from .mixtures import ClassLabels, GaussianMixture, class_labels
from .moments import ConditionalMoments
from .named_activations import activation, import_object

# Nodes per panel in one to three directions, with panels split at planes; four take too many nodes.
SPLIT_SIZES = {1: (18, 36, 72, 144), 2: (12, 18, 27, 40), 3: (8, 12, 18, 24)}


@dataclass(frozen=True)
class MultiIndex:
    """A target of ``dimension`` orthonormal directions.

    Parameters
    ----------
    function : callable (z_1, ..., z_T) -> array
        Elementwise in T arrays of one shape.
    dimension : int
        The number T of directions, 1 or more.
    name : str
        Name for messages and figures.
    planes : sequence of (v, t)
        Planes v.z = t of kinks and jumps, with v of ``dimension`` numbers.

    Raises
    ------
    InvalidArgument
        If the function does not return finite numbers of its arguments' shape, or ``planes`` are
        not planes.

    Examples
    --------
    >>> import numpy as np
    >>> from replica import MultiIndex
    >>> from replica.problem import LabelLaw
    >>> target = MultiIndex(lambda a, b: a + np.sin(a * b), dimension=2)
    >>> target(1.0, 0.0).item()
    1.0
    >>> target = MultiIndex(lambda a, b: np.abs(a - b), dimension=2, planes=[((1, -1), 0)])
    >>> round(LabelLaw(target).averages().mean, 12)  # 2 / sqrt(pi)
    1.128379167096
    """

    kinks: ClassVar[tuple[float, ...]] = ()  # as of a function of one direction

    function: Callable[..., Array]
    dimension: int
    name: str = "multi-index"
    planes: Any = ()

    def __post_init__(self) -> None:
        most_directions = max(NODES_PER_AXIS)
        try:
            assign(self, dimension=operator.index(self.dimension))
        except TypeError:
            assign(self, dimension=0)
        if not 1 <= self.dimension <= most_directions:
            raise InvalidArgument(
                "dimension", self.dimension, f"an integer from 1 to {most_directions}"
            )
        assign(self, planes=_checked_planes(self.planes, self.dimension))
        check_elementwise("target", self.name, self.function, self.dimension)

    def __repr__(self) -> str:
        return f"MultiIndex({self.name})"

    def __call__(self, *z: Array) -> Array:
        """sigma_*(z_1, ..., z_T), elementwise."""
        target_values = called(self.name, self.function, *z)
        if not np.isfinite(target_values).all():
            raise InvalidArgument(self.name, "inf or nan", "finite on the whole line")
        return target_values

    def conditional_moments(self, centre: Array, L: Array, weight: Array) -> ConditionalMoments:
        """Conditional moments at arguments ``centre`` (T, N) + L tau, L (T, q).  Eq. (3.3)

        Errors are relative to ``weight`` (N,), the root of the Gaussian weight of each place.
        """
        array_shapes = centre.shape, L.shape
        # cached: they take seconds, and models that differ in a bias or dimension share them
        return _cached_moments(self, array_shapes, centre.tobytes(), L.tobytes(), weight.tobytes())

    def _moments(self, centre: Array, L: Array, weight: Array) -> ConditionalMoments:
        """Conditional moments, without cache."""
        if len(weight) > 1 and (centre == centre[:, :1]).all():  # one place, taken once
            target_moments = self._moments(centre[:, :1], L, weight.max(keepdims=True))
            return ConditionalMoments(*(np.repeat(x, len(weight), axis=-1) for x in target_moments))
        entering = np.asarray(L.any(axis=0))
        if not entering.any():
            h = self(*centre)
            return ConditionalMoments(h, np.zeros((L.shape[1], h.size)), np.zeros_like(h))
        tau_columns, L = np.eye(len(entering))[:, entering], L[:, entering]

        def integrate(columns: slice) -> Array:
            block_centre = centre[:, columns]

            def averages_of(rule_at: RuleAt) -> Array:
                # 2^18 values of the function in a block: 2 MiB, which fit in the cache
                block_size = max(1, 2**18 // rule_at(block_centre[:, :1]).weights.shape[-1])
                tau_rows = []
                for start in range(0, block_centre.shape[1], block_size):
                    check_time()
                    centre_block = block_centre[:, start : start + block_size]
                    tau_rule = rule_at(centre_block)
                    target_arguments = centre_block[..., None] + np.moveaxis(
                        tau_rule.nodes @ L.T, -1, 0
                    ).reshape(len(L), -1, tau_rule.weights.shape[-1])
                    tau_rows.append(_moments_on_rule(self(*target_arguments), tau_rule))
                return np.concatenate(tau_rows, axis=1) * weight[columns]

            try:
                return expectation_tensor(averages_of, L.shape[1], self.rules(L)) / weight[columns]
            except QuadratureError as error:
                raise QuadratureError(
                    f"target {self.name}: {error} (declare where: replica.MultiIndex(function, "
                    f"dimension={self.dimension}, planes=[(v, t), ...]) for v.z = t; kinks along "
                    "curves have no theory)"
                ) from None

        # blocks of 64 places with one rule: larger ones need finer rules, smaller ones cost more
        moment_blocks = [integrate(slice(start, start + 64)) for start in range(0, len(weight), 64)]
        h, target_spread, *tau_moments = np.concatenate(moment_blocks, axis=1)
        return ConditionalMoments(h, tau_columns @ np.array(tau_moments), target_spread)

    def rules(self, L: Array) -> Iterator["RuleAt"]:
        """Rules of growing size for tau, as functions of the centre (T, N).

        With planes, the rule depends on their distances from the centre.
        """
        normals = np.array([v for v, _ in self.planes]).reshape(-1, len(L)) @ L
        crossing = np.linalg.norm(normals, axis=1) > 1e-9  # other planes are parallel to all of tau
        if not crossing.any() or L.shape[1] not in SPLIT_SIZES:
            for tau_rule in trapezoid_tensors(L.shape[1], AVERAGE_SIZES):
                yield partial(_constant_rule, tau_rule)
            return
        tau_parallel = null_space(
            normals[crossing]
        )  # parallel to all planes: the target is smooth there
        tau_across = null_space(tau_parallel.T) if tau_parallel.size else np.eye(len(tau_parallel))
        for n in SPLIT_SIZES[L.shape[1]]:

            def split_tau_rule(centre: Array, n: int = n) -> Rule:
                offsets = np.stack([t - v @ centre for v, t in self.planes], axis=-1)
                tau_rule = split_at_planes(n, normals[crossing] @ tau_across, offsets[:, crossing])
                if not tau_parallel.size:
                    return tau_rule
                nodes, parallel_weights = trapezoid_tensor(2 * n, tau_parallel.shape[1])
                nodes = (tau_rule.nodes @ tau_across.T)[..., None, :] + nodes @ tau_parallel.T
                shape = (*tau_rule.weights.shape[:-1], -1)
                parallel_weights = (tau_rule.weights[..., None] * parallel_weights).reshape(shape)
                return Rule(nodes.reshape(*shape, len(tau_parallel)), parallel_weights)

            yield split_tau_rule


def _constant_rule(rule: Rule, centre: Array) -> Rule:
    """The ``rule``, whatever the centre."""
    return rule


@lru_cache(maxsize=16)
def _cached_moments(
    target: MultiIndex, shapes: tuple[Any, Any], centre: bytes, L: bytes, weight: bytes
) -> ConditionalMoments:
    """Conditional moments of a target, cached by the contents of the arrays."""
    centres, slopes = map(np.reshape, map(np.frombuffer, (centre, L)), shapes)
    return target._moments(centres, slopes, np.frombuffer(weight))


RuleAt = Callable[[Array], Rule]  # centre (T, N) -> nodes (M, K') or (N, M, K')


def kinks_on_axes(planes: Iterable[tuple[Any, float]], dimension: int) -> list[list[float]]:
    """Kinks of a target along each of its coordinates: the ``planes`` (v, t) across an axis."""
    across = [(np.asarray(v), t) for v, t in planes if np.count_nonzero(v) == 1]
    return [[t / float(v[i]) for v, t in across if v[i]] for i in range(dimension)]


def _checked_planes(planes: Any, dimension: int) -> tuple[tuple[tuple[float, ...], float], ...]:
    """Checked planes (v, t) with v of length 1."""
    allowed_planes = f"pairs (v, t), with v of {dimension} numbers, not all 0"
    checked_planes = []
    try:
        for v, t in planes:
            plane_normal = np.array(v, dtype=float)
            length = float(np.linalg.norm(plane_normal))
            if plane_normal.shape != (dimension,) or not 0 < length < MAX_NUMBER:
                raise ValueError
            checked_planes.append((tuple((plane_normal / length).tolist()), float(t) / length))
    except (TypeError, ValueError):
        raise InvalidArgument("planes", planes, allowed_planes) from None
    return tuple(checked_planes)


def _moments_on_rule(target_values: Array, rule: Rule) -> Array:
    """Moments E y, Var y, E tau_k y, (2 + K', ...), of values (..., M) at the nodes of a rule."""
    weighted_target = target_values * rule.weights
    mean = weighted_target.sum(axis=-1)
    tau_moments = (weighted_target[..., None, :] @ rule.nodes)[..., 0, :]
    deviation = target_values - mean[..., None]
    deviation *= deviation
    return np.stack([mean, np.vecdot(deviation, rule.weights), *np.moveaxis(tau_moments, -1, 0)])


Target = Activation | MultiIndex | ClassLabels


def parse_target(
    spec: Any, inputs: Any, *, outputs: bool = False
) -> tuple[Target, GaussianMixture | None]:
    """The target specified by ``spec``, and the law of all coordinates on which it depends.

    "classes:..." specifies labels of the components of ``inputs``, of several ``outputs`` only if
    these are allowed.

    Raises
    ------
    InvalidArgument
    """
    if inputs is not None and not isinstance(inputs, GaussianMixture):
        allowed_inputs = "a GaussianMixture, such as GaussianMixture(means=[[1, 0], [-1, 0]])"
        raise InvalidArgument("inputs", inputs, allowed_inputs)
    if isinstance(spec, ClassLabels) or str(spec).strip().split(":")[0] == "classes":
        if inputs is None:
            allowed = "given with inputs, a GaussianMixture, whose components have these labels"
            raise InvalidArgument("target", getattr(spec, "name", spec), allowed)
        count = len(inputs.means)
        labels = class_labels(spec.strip(), count) if isinstance(spec, str) else spec
        if len(labels.values) != count:
            raise InvalidArgument("target", labels.name, f"a label for each of {count} components")
        if labels.outputs > 1 and not outputs:
            allowed = f"classes:y1,... with {count} numbers here (a FirstLayer has several outputs)"
            raise InvalidArgument("target", labels.name, allowed)
        return labels, inputs
    found_target = target(spec)
    if inputs is not None and inputs.dimension < found_target.dimension:
        inputs = inputs.within(found_target.dimension)
    return found_target, inputs


def target(target_spec: Any) -> Activation | MultiIndex:
    """The target specified by ``target_spec``: a MultiIndex, an expression in z1, z2, ..., or
    whatever specifies an activation."""
    if isinstance(target_spec, MultiIndex):
        return target_spec
    if isinstance(target_spec, str) and is_expression(target_spec):
        return _expression_target(target_spec.strip())
    if isinstance(target_spec, str) and ":" in target_spec:
        imported_target = import_object(target_spec, "target")
        if isinstance(imported_target, MultiIndex):
            return imported_target
    return activation(target_spec, "target")


@lru_cache(maxsize=256)
def _expression_target(target_text: str) -> Activation | MultiIndex:
    """The target of an expression, cached, so that equal problems share their tables."""
    function = Expression(target_text)
    if function.dimension == 1:
        return activation(target_text, "target")
    return MultiIndex(function, function.dimension, target_text, function.planes)


def multi_index(spec: Any, dimension: int | None = None) -> MultiIndex:
    """The target specified by ``spec`` as a function of r arrays.

    A plain or imported function has r = ``dimension`` arguments.

    Raises
    ------
    InvalidArgument
        If ``dimension`` differs from the dimension of a target that has one.
    """
    if dimension is not None:
        dimension = int(number("dimension", dimension, 1, 64, "a number of arguments"))
        if isinstance(spec, str) and ":" in spec:
            spec = import_object(spec, "target")
        if not isinstance(spec, (str, MultiIndex, Activation)):
            return MultiIndex(spec, dimension, getattr(spec, "__name__", "multi-index"))
    found = target(spec)
    if dimension not in (None, found.dimension):
        raise InvalidArgument("dimension", dimension, f"{found.dimension} for {found.name}")
    return found if isinstance(found, MultiIndex) else MultiIndex(found, 1, found.name)
