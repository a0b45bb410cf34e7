"""Targets of several directions: sigma_*(z_1, ..., z_T) of orthonormal projections of x.

Given the projections kappa of an input on K spikes, the T arguments of the target are

    z = Gamma kappa + L tau,   Gamma_tk = w_t . u_k,   L L^T = 1 - Gamma Gamma^T,

with tau ~ N(0, 1) in the K' directions that are left: Eq. (3.3).
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from solvers.quadrature import TENSOR_SIZES, QuadratureError, expectation_tensor
from solvers.results import Array
from solvers.rules import Rule

from ..errors import InvalidArgument
from .activation import Activation
from .checks import check_elementwise, real
from .expressions import Expression, is_expression
from .geometry import remainder
from .moments import Averages, ConditionalMoments
from .named import activation, imported

# Square of kappa from where on moments need not be known better: the weight there is 1e-22.
FAR = 100.0
SHARING = 64  # kappa for which one rule is chosen: more cost less each, fewer need no finer one
LARGEST_ARRAY = 2**18  # values of the function at once: 2 MiB, kept in the cache


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

    Raises
    ------
    InvalidArgument
        If the function does not return finite numbers of its arguments' shape.

    Examples
    --------
    >>> target = MultiIndex(lambda a, b: a + np.sin(a * b), dimension=2)
    >>> target.averages().first.round(12).tolist()
    [1.0, 0.0]
    """

    kinks: ClassVar[tuple[float, ...]] = ()  # none that a rule could be split at ...
    kinks_known: ClassVar[bool] = False  # ... but there may be some

    function: Callable[..., Array]
    dimension: int
    name: str = "multi-index"

    def __post_init__(self) -> None:
        largest = max(TENSOR_SIZES)
        try:
            object.__setattr__(self, "dimension", operator.index(self.dimension))
        except TypeError:
            object.__setattr__(self, "dimension", 0)
        if not 1 <= self.dimension <= largest:
            raise InvalidArgument("dimension", self.dimension, f"an integer from 1 to {largest}")
        check_elementwise("target", self.name, self.function, self.dimension)

    def __repr__(self) -> str:
        return f"MultiIndex({self.name})"

    def __call__(self, *z: Array) -> Array:
        """sigma_*(z_1, ..., z_T), elementwise."""
        return real(self.name, self.function(*z))

    def averages(self) -> Averages:
        """E sigma_*, E sigma_*^2 and E z sigma_*.  Eq. (2.1)"""

        def averages(rule: Rule) -> Array:
            return _moments(self(*rule.nodes.T), rule)

        mean, spread, *first = self._settled(averages, self.dimension)
        return Averages(float(mean), float(mean**2 + spread), np.array(first))

    def conditional_moments(self, gamma: Array, kappa: Array) -> ConditionalMoments:
        """h, g and spread at kappa (K, N), for cosines ``gamma`` (T, K).  Eq. (3.3)"""
        centre, L = gamma @ kappa, remainder(gamma)
        if not L.any():
            h = self(*centre)
            return ConditionalMoments(h, np.zeros((1, h.size)), np.zeros_like(h))
        # averages over kappa weigh what is known there by its Gaussian weight; by its root here,
        # as they multiply it by what may grow
        weight = np.exp(-np.minimum((kappa**2).sum(axis=0), FAR) / 4)

        def integrated(columns: slice) -> Array:
            here = centre[:, columns, None]

            def averages(rule: Rule) -> Array:
                tau, size = (L @ rule.nodes.T)[:, None], max(1, LARGEST_ARRAY // len(rule.nodes))
                blocks = [here[:, i : i + size] for i in range(0, here.shape[1], size)]
                parts = [_moments(self(*(block + tau)), rule) for block in blocks]
                return np.concatenate(parts, axis=1) * weight[columns]

            return self._settled(averages, L.shape[1]) / weight[columns]

        starts = range(0, len(weight), SHARING)
        parts = [integrated(slice(start, start + SHARING)) for start in starts]
        h, spread, *g = np.concatenate(parts, axis=1)
        return ConditionalMoments(h, np.array(g), spread)

    def _settled(self, averages: Callable[[Rule], Array], dimension: int) -> Array:
        """Averages by the tensor rule in ``dimension`` directions that is fine enough.

        Raises
        ------
        QuadratureError
            With the target's name.
        """
        try:
            return expectation_tensor(averages, dimension)
        except QuadratureError as error:
            raise QuadratureError(f"target {self.name}: {error}") from None


def _moments(y: Array, rule: Rule) -> Array:
    """E y, Var y and E tau_k y of values (..., M) at the nodes of a rule, (2 + K', ...)."""
    linear = y @ (rule.weights * np.vstack([np.ones_like(rule.weights), rule.nodes.T])).T
    rest = y - linear[..., :1]
    rest *= rest
    return np.stack([linear[..., 0], rest @ rule.weights, *np.moveaxis(linear[..., 1:], -1, 0)])


Target = Activation | MultiIndex


def target(spec: Any) -> Target:
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
def _expressed(text: str) -> MultiIndex:
    """One target for each text, so that equal problems share their tables."""
    function = Expression(text)
    return MultiIndex(function, function.dimension, text)


def multi_index(spec: Any, dimension: int | None = None) -> MultiIndex:
    """The target meant by ``spec`` as a function of r arrays; a plain function, or one given as
    ``module:function``, has ``dimension`` of them.

    Raises
    ------
    InvalidArgument
        If ``dimension`` is not that of a target which has its own.
    """
    if dimension is not None:
        if isinstance(spec, str) and ":" in spec:
            spec = imported(spec, "target")
        if not isinstance(spec, (str, MultiIndex, Activation)):
            return MultiIndex(spec, dimension, getattr(spec, "__name__", "multi-index"))
    of = target(spec)
    if dimension not in (None, of.dimension):
        raise InvalidArgument("dimension", dimension, f"{of.dimension} for {of.name}")
    return of if isinstance(of, MultiIndex) else MultiIndex(of, 1, of.name)
