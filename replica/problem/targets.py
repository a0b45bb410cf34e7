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

from ..errors import InvalidArgument
from .activation import Activation
from .expressions import Expression, is_expression
from .geometry import remainder
from .moments import Averages, ConditionalMoments
from .named import activation, imported

# Relative tolerance of averages over several directions, whose sums are long and round the more.
TENSOR_TOLERANCE = 1e-11


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
    >>> target.first_hermite().round(12).tolist()
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
        z = np.linspace(-2, 2, 6 * self.dimension).reshape(self.dimension, 2, 3)
        try:
            with np.errstate(all="ignore"):
                y = np.asarray(self.function(*z), dtype=float)
        except Exception as error:  # whatever a user's function raises
            raise InvalidArgument(
                "target",
                f"{self.name} ({type(error).__name__}: {error})",
                f"applicable to {self.dimension} arrays",
            ) from error
        if y.shape != (2, 3) or not np.isfinite(y).all():
            raise InvalidArgument(
                "target", self.name, "elementwise and finite, with numpy functions of its arguments"
            )

    def __repr__(self) -> str:
        return f"MultiIndex({self.name})"

    def __call__(self, *z: Array) -> Array:
        """sigma_*(z_1, ..., z_T), elementwise."""
        return np.asarray(self.function(*z), dtype=float)

    def first_hermite(self) -> Array:
        """C_1 = E z sigma_*, (T,)."""
        value, _ = expectation_tensor(lambda z: z * self(*z), self.dimension, tol=TENSOR_TOLERANCE)
        return value

    def mean_and_power(self) -> tuple[float, float]:
        """E sigma_* and E sigma_*^2."""
        value, _ = expectation_tensor(
            lambda z: np.stack([self(*z), self(*z) ** 2]), self.dimension, tol=TENSOR_TOLERANCE
        )
        return float(value[0]), float(value[1])

    def averages(self) -> Averages:
        """E sigma_*, E sigma_*^2 and E z sigma_*.  Eq. (2.1)"""
        return Averages(*self.mean_and_power(), self.first_hermite())

    def conditional_moments(self, gamma: Array, kappa: Array) -> ConditionalMoments:
        """h, g and spread at kappa (K, N), for cosines ``gamma`` (T, K).  Eq. (3.3)"""
        centre, L = gamma @ kappa, remainder(gamma)
        # blocks of at most 2^21 values of the function on the largest rule: 16 MiB each
        size = max(1, 2**21 // TENSOR_SIZES[L.shape[1]][-1] ** L.shape[1])
        starts = range(0, centre.shape[1], size)
        blocks = [self._integrate(centre[:, i : i + size], L) for i in starts]
        return ConditionalMoments(
            *(np.concatenate(parts, axis=-1) for parts in zip(*blocks, strict=True))
        )

    def _integrate(self, centre: Array, L: Array) -> ConditionalMoments:
        """The moments over tau of the function of centre + L tau, at the N columns of ``centre``
        (T, N), by tensor quadrature."""

        def values(tau: Array) -> Array:
            return self(*(centre[:, :, None] + (L @ tau)[:, None, :]))

        def integrand(tau: Array) -> Array:
            y = values(tau)
            return np.stack([y, y**2, *(y * t for t in tau)])

        if not L.any():
            h = self(*centre)
            return ConditionalMoments(h, np.zeros((1, h.size)), np.zeros_like(h))
        try:
            value, rule = expectation_tensor(integrand, L.shape[1], tol=TENSOR_TOLERANCE)
        except QuadratureError as error:
            raise QuadratureError(f"target {self.name}: {error}") from None
        h = value[0]
        spread = ((values(rule.nodes.T) - h[:, None]) ** 2) @ rule.weights
        return ConditionalMoments(h, value[2:], spread)


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
