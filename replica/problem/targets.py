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

from solvers.quadrature import AVERAGE_SIZES, TENSOR_SIZES, QuadratureError, expectation_tensor
from solvers.results import Array
from solvers.rules import Rule

from ..errors import InvalidArgument
from .activation import Activation
from .checks import check_elementwise
from .expressions import Expression, is_expression
from .geometry import remainder
from .moments import Averages, ConditionalMoments
from .named import activation, imported

# Square of kappa from where on moments need not be known better: the weight there is 1e-22.
FAR = 100.0


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
        return np.asarray(self.function(*z), dtype=float)

    def averages(self) -> Averages:
        """E sigma_*, E sigma_*^2 and E z sigma_*.  Eq. (2.1)"""

        def averages(rule: Rule) -> Array:
            return _moments(self(*rule.nodes.T), rule)

        mean, power, *first = self._settled(averages, self.dimension)[0]
        return Averages(float(mean), float(power), np.array(first))

    def conditional_moments(self, gamma: Array, kappa: Array) -> ConditionalMoments:
        """h, g and spread at kappa (K, N), for cosines ``gamma`` (T, K).  Eq. (3.3)"""
        centre, L = gamma @ kappa, remainder(gamma)
        # averages over kappa weigh what is known there by its Gaussian weight; by its root here,
        # as they multiply it by what may grow
        weight = np.exp(-np.minimum((kappa**2).sum(axis=0), FAR) / 4)
        # blocks of at most 2^21 values of the function on the largest rule: 16 MiB each
        size = max(1, 2**21 // AVERAGE_SIZES[L.shape[1]][-1] ** L.shape[1])
        blocks = [slice(i, i + size) for i in range(0, centre.shape[1], size)]
        parts = [self._integrate(centre[:, block], L, weight[block]) for block in blocks]
        return ConditionalMoments(
            *(np.concatenate(each, axis=-1) for each in zip(*parts, strict=True))
        )

    def _integrate(self, centre: Array, L: Array, weight: Array) -> ConditionalMoments:
        """The moments over tau of the function of centre + L tau, at the N columns of ``centre``
        (T, N), by tensor quadrature to an accuracy over ``weight`` (N,)."""

        def values(tau: Array) -> Array:
            return self(*(centre[:, :, None] + (L @ tau)[:, None, :]))

        def averages(rule: Rule) -> Array:
            return _moments(values(rule.nodes.T), rule) * weight

        if not L.any():
            h = self(*centre)
            return ConditionalMoments(h, np.zeros((1, h.size)), np.zeros_like(h))
        value, rule = self._settled(averages, L.shape[1])
        value /= weight
        h = value[0]
        spread = ((values(rule.nodes.T) - h[:, None]) ** 2) @ rule.weights
        return ConditionalMoments(h, value[2:], spread)

    def _settled(self, averages: Callable[[Rule], Array], dimension: int) -> tuple[Array, Rule]:
        """Averages by the tensor rule in ``dimension`` directions that is fine enough, and this.

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
    """E y, E y^2 and E tau_k y of values (..., M) at the nodes of a rule, (2 + K', ...)."""
    w = rule.weights
    return np.stack([y @ w, (y * y) @ w, *(y @ (w * t) for t in rule.nodes.T)])


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
