"""Targets of several directions: sigma_*(z_1, ..., z_T) of orthonormal projections of x.

Given the projections of an input on the spikes, the T arguments are known up to L tau, with
tau ~ N(0, 1) in q directions that are left (``components``): Eq. (3.3).
"""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import null_space

from solvers.quadrature import (
    AVERAGE_SIZES,
    TENSOR_SIZES,
    QuadratureError,
    expectation_tensor,
    trapezoid_tensors,
)
from solvers.resources import check_time
from solvers.results import Array
from solvers.rules import Rule, trapezoid_tensor
from solvers.split import split_at_planes

from ..errors import InvalidArgument
from .activation import Activation
from .checks import FINITE, assign, called, check_elementwise, number
from .expressions import Expression, is_expression
from .mixtures import ClassLabels, GaussianMixture, class_labels
from .moments import ConditionalMoments
from .named import activation, imported

# Nodes a panel in one to three directions, with panels split at planes; of four they are too many.
SPLIT_SIZES = {1: (18, 36, 72, 144), 2: (12, 18, 27, 40), 3: (8, 12, 18, 24)}


@dataclass(frozen=True)
class MultiIndex:
    """A target of ``dimension`` orthonormal directions.

    Parameters
    ----------
    function : callable (z_1, ..., z_T) -> array
        Elementwise in T arrays of one shape.
    dimension : int
        T, 1 or more.
    name : str
        Used in messages and labels.
    planes : sequence of (v, t)
        Where it bends or jumps: v.z = t, with v of ``dimension`` numbers.

    Raises
    ------
    InvalidArgument
        If the function does not return finite numbers of its arguments' shape, or a plane is
        none.

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

    kinks: ClassVar[tuple[float, ...]] = ()  # points, of a function of one direction

    function: Callable[..., Array]
    dimension: int
    name: str = "multi-index"
    planes: Any = ()

    def __post_init__(self) -> None:
        largest = max(TENSOR_SIZES)
        try:
            assign(self, dimension=operator.index(self.dimension))
        except TypeError:
            assign(self, dimension=0)
        if not 1 <= self.dimension <= largest:
            raise InvalidArgument("dimension", self.dimension, f"an integer from 1 to {largest}")
        assign(self, planes=_checked(self.planes, self.dimension))
        check_elementwise("target", self.name, self.function, self.dimension)

    def __repr__(self) -> str:
        return f"MultiIndex({self.name})"

    def __call__(self, *z: Array) -> Array:
        """sigma_*(z_1, ..., z_T), elementwise."""
        values = called(self.name, self.function, *z)
        if not np.isfinite(values).all():
            raise InvalidArgument(self.name, "inf or nan", "finite on the whole line")
        return values

    def conditional_moments(self, centre: Array, L: Array, weight: Array) -> ConditionalMoments:
        """h (N,), g (q, N) and spread (N,) at arguments ``centre`` (T, N) + L tau, L (T, q), for
        averages over the N that ``weight`` (N,) squared bounds.  Eq. (3.3)"""
        shapes = centre.shape, L.shape
        # models that differ in a bias or their dimension ask for the same, which may take seconds
        return _known_moments(self, shapes, centre.tobytes(), L.tobytes(), weight.tobytes())

    def _moments(self, centre: Array, L: Array, weight: Array) -> ConditionalMoments:
        """The same, computed."""
        sizes, across = np.linalg.svd(L)[1:]
        entering = np.asarray(L.any(axis=0))
        rank = np.count_nonzero(sizes > 1e-12 * sizes.max(initial=1e-12))
        # parts of tau that the arguments depend on, (k, q), of its coordinates where these serve
        parts = across[:rank] if rank < entering.sum() else np.eye(len(entering))[entering]
        if not len(parts):
            h = self(*centre)
            return ConditionalMoments(h, np.zeros((L.shape[1], h.size)), np.zeros_like(h))
        L = L @ parts.T

        def integrated(columns: slice) -> Array:
            here = centre[:, columns]

            def averages(rule_at: RuleAt) -> Array:
                # 2^18 values of the function at once: 2 MiB, kept in the cache
                size = max(1, 2**18 // rule_at(here[:, :1]).weights.shape[-1])
                parts = []
                for start in range(0, here.shape[1], size):
                    check_time()
                    block = here[:, start : start + size]
                    rule = rule_at(block)
                    z = block[..., None] + np.moveaxis(rule.nodes @ L.T, -1, 0).reshape(
                        len(L), -1, rule.weights.shape[-1]
                    )
                    parts.append(_moments(self(*z), rule))
                return np.concatenate(parts, axis=1) * weight[columns]

            try:
                return expectation_tensor(averages, L.shape[1], self.rules(L)) / weight[columns]
            except QuadratureError as error:
                raise QuadratureError(
                    f"target {self.name}: {error} (declare where: replica.MultiIndex(function, "
                    f"dimension={self.dimension}, planes=[(v, t), ...]) for v.z = t)"
                ) from None

        # one rule for 64 places: more of them cost less each, fewer need no finer one
        found = [integrated(slice(start, start + 64)) for start in range(0, len(weight), 64)]
        h, spread, *first = np.concatenate(found, axis=1)
        return ConditionalMoments(h, parts.T @ np.array(first), spread)

    def rules(self, L: Array) -> Iterator["RuleAt"]:
        """Rules of growing size for tau at a centre (T, N): one for all centres, or one for each
        where planes pass it at different distances."""
        normals = np.array([v for v, _ in self.planes]).reshape(-1, len(L)) @ L
        seen = np.linalg.norm(normals, axis=1) > 1e-9  # the others are crossed by no tau
        if not seen.any() or L.shape[1] not in SPLIT_SIZES:
            for rule in trapezoid_tensors(L.shape[1], AVERAGE_SIZES):
                yield partial(_fixed, rule)
            return
        along = null_space(normals[seen])  # all planes: there it is smooth
        across = null_space(along.T) if along.size else np.eye(len(along))
        for n in SPLIT_SIZES[L.shape[1]]:

            def at(centre: Array, n: int = n) -> Rule:
                offsets = np.stack([t - v @ centre for v, t in self.planes], axis=-1)
                rule = split_at_planes(n, normals[seen] @ across, offsets[:, seen])
                if not along.size:
                    return rule
                nodes, weights = trapezoid_tensor(2 * n, along.shape[1])
                nodes = (rule.nodes @ across.T)[..., None, :] + nodes @ along.T
                shape = (*rule.weights.shape[:-1], -1)
                weights = (rule.weights[..., None] * weights).reshape(shape)
                return Rule(nodes.reshape(*shape, len(along)), weights)

            yield at


def _fixed(rule: Rule, centre: Array) -> Rule:
    """The same rule at any centre."""
    return rule


@lru_cache(maxsize=16)
def _known_moments(
    target: MultiIndex, shapes: tuple[Any, Any], centre: bytes, L: bytes, weight: bytes
) -> ConditionalMoments:
    """Conditional moments of a target, known by the content of what they depend on."""
    places, mixed = (
        np.frombuffer(x).reshape(of) for x, of in zip((centre, L), shapes, strict=True)
    )
    return target._moments(places, mixed, np.frombuffer(weight))


RuleAt = Callable[[Array], Rule]  # of a centre (T, N): nodes (M, K') or (N, M, K')


def _checked(planes: Any, dimension: int) -> tuple[tuple[tuple[float, ...], float], ...]:
    """The planes as (v, t) with v of length 1."""
    allowed = f"pairs (v, t), with v of {dimension} numbers, not all 0"
    checked = []
    try:
        for v, t in planes:
            normal = np.array(v, dtype=float)
            length = float(np.linalg.norm(normal))
            if normal.shape != (dimension,) or not 0 < length < FINITE:
                raise ValueError
            checked.append((tuple((normal / length).tolist()), float(t) / length))
    except (TypeError, ValueError):
        raise InvalidArgument("planes", planes, allowed) from None
    return tuple(checked)


def _moments(y: Array, rule: Rule) -> Array:
    """E y, Var y and E tau_k y of values (..., M) at the nodes of a rule, (2 + K', ...)."""
    weighted = y * rule.weights
    mean = weighted.sum(axis=-1)
    first = (weighted[..., None, :] @ rule.nodes)[..., 0, :]
    rest = y - mean[..., None]
    rest *= rest
    return np.stack([mean, np.vecdot(rest, rule.weights), *np.moveaxis(first, -1, 0)])


Target = Activation | MultiIndex | ClassLabels


def on_inputs(
    spec: Any, inputs: Any, *, outputs: bool = False
) -> tuple[Target, GaussianMixture | None]:
    """The target meant by ``spec``, or labels of the components of ``inputs``, of several
    ``outputs`` only if these are asked for; and that law of all coordinates that the target sees.

    Raises
    ------
    InvalidArgument
    """
    if inputs is not None and not isinstance(inputs, GaussianMixture):
        raise InvalidArgument("inputs", inputs, "a GaussianMixture")
    if isinstance(spec, ClassLabels) or str(spec).strip().split(":")[0] == "classes":
        if inputs is None:
            allowed = "given with inputs, a GaussianMixture, whose components have these labels"
            raise InvalidArgument("target", getattr(spec, "name", spec), allowed)
        count = len(inputs.means)
        of = class_labels(spec.strip(), count) if isinstance(spec, str) else spec
        if len(of.values) != count:
            raise InvalidArgument("target", of.name, f"a label for each of {count} components")
        if of.outputs > 1 and not outputs:
            allowed = f"classes:y1,... with {count} numbers here (a FirstLayer has several outputs)"
            raise InvalidArgument("target", of.name, allowed)
        return of, inputs
    single = target(spec)
    if inputs is not None and inputs.dimension < single.dimension:
        inputs = inputs.within(single.dimension)
    return single, inputs


def target(spec: Any) -> Activation | MultiIndex:
    """The target meant by ``spec``: a MultiIndex as it is, text that mentions z1, z2, ... as an
    expression in them, anything else as an activation."""
    if isinstance(spec, MultiIndex):
        return spec
    if isinstance(spec, str) and is_expression(spec):
        return _expressed(spec.strip())
    if isinstance(spec, str) and ":" in spec:
        named = imported(spec, "target")
        if isinstance(named, MultiIndex):
            return named
    return activation(spec, "target")


@lru_cache(maxsize=256)
def _expressed(text: str) -> Activation | MultiIndex:
    """One target for each text, so that equal problems share their tables."""
    function = Expression(text)
    if function.dimension == 1:
        return activation(text, "target")
    return MultiIndex(function, function.dimension, text, function.planes)


def multi_index(spec: Any, dimension: int | None = None) -> MultiIndex:
    """The target meant by ``spec`` as a function of r arrays; a plain function, or one that
    is imported, has ``dimension`` of them.

    Raises
    ------
    InvalidArgument
        If ``dimension`` is not that of a target which has its own.
    """
    if dimension is not None:
        dimension = int(number("dimension", dimension, 1, 64, "a number of arguments"))
        if isinstance(spec, str) and ":" in spec:
            spec = imported(spec, "target")
        if not isinstance(spec, (str, MultiIndex, Activation)):
            return MultiIndex(spec, dimension, getattr(spec, "__name__", "multi-index"))
    of = target(spec)
    if dimension not in (None, of.dimension):
        raise InvalidArgument("dimension", dimension, f"{of.dimension} for {of.name}")
    return of if isinstance(of, MultiIndex) else MultiIndex(of, 1, of.name)
