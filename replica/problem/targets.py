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
from .moments import ConditionalMoments
from .named import activation, imported

TOLERANCE = 1e-11
BLOCK = 2**21  # target values held at once


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

    kinks: ClassVar[tuple[float, ...]] = ()  # none that a rule could be split at

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
        value, _ = expectation_tensor(lambda z: z * self(*z), self.dimension, tol=TOLERANCE)
        return value

    def mean_and_power(self) -> tuple[float, float]:
        """E sigma_* and E sigma_*^2."""
        value, _ = expectation_tensor(
            lambda z: np.stack([self(*z), self(*z) ** 2]), self.dimension, tol=TOLERANCE
        )
        return float(value[0]), float(value[1])


Target = Activation | MultiIndex


def target(spec: Any) -> Target:
    """The target meant by ``spec``: a MultiIndex as it is, text that mentions z1, z2, ... as an
    expression in them, anything else as an activation."""
    if isinstance(spec, MultiIndex):
        return spec
    if isinstance(spec, str) and is_expression(spec):
        return _expressed(spec.strip())
    if isinstance(spec, str) and ":" in spec:
        found = imported(spec, "target")
        if isinstance(found, MultiIndex):
            return found
    return activation(spec, "target")


@lru_cache(maxsize=256)
def _expressed(text: str) -> MultiIndex:
    """One target for each text, so that equal problems share their tables."""
    function = Expression(text)
    return MultiIndex(function, function.dimension, text)


def conditional_moments(of: Target, alignment: Array, kappa: Array) -> ConditionalMoments:
    """h, g and spread of the target at kappa (K, N), for Gamma = ``alignment`` (T, K)."""
    centre = alignment @ kappa
    if isinstance(of, Activation):
        rest = max(0.0, 1 - float(alignment[0] @ alignment[0]))
        found = of.moments(centre[0], rest)
        return ConditionalMoments(found.mean, found.first[None], found.first**2 + found.variance)
    L = remainder(alignment)
    size = max(1, BLOCK // TENSOR_SIZES[L.shape[1]][-1] ** L.shape[1])
    blocks = [_integrate(of, centre[:, i : i + size], L) for i in range(0, centre.shape[1], size)]
    return ConditionalMoments(
        *(np.concatenate(parts, axis=-1) for parts in zip(*blocks, strict=True))
    )


def _integrate(of: MultiIndex, centre: Array, L: Array) -> ConditionalMoments:
    """The moments at ``centre`` (T, N) by tensor quadrature over tau."""

    def integrand(tau: Array) -> Array:
        y = of(*(centre[:, :, None] + (L @ tau)[:, None, :]))
        return np.stack([y, y**2, *(y * t for t in tau)])

    if not L.any():
        h = of(*centre)
        return ConditionalMoments(h, np.zeros((1, h.size)), np.zeros_like(h))
    try:
        value, rule = expectation_tensor(integrand, L.shape[1], tol=TOLERANCE)
    except QuadratureError as error:
        raise QuadratureError(f"target {of.name}: {error}") from None
    h = value[0]
    y = of(*(centre[:, :, None] + (L @ rule.nodes.T)[:, None, :]))
    return ConditionalMoments(h, value[2:], ((y - h[:, None]) ** 2) @ rule.weights)
