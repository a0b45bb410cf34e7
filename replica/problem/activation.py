"""Activation functions and what the theory needs of them: three Gaussian moments.

For a pre-activation s + sqrt(c) z with z ~ N(0, 1), Eq. (3.2) splits sigma into

    sigma(s + sqrt(c) z) = mean + first * z + remainder,

mean = E sigma = mu_0, first = E z sigma = sqrt(c) mu_1, and the variance of the
remainder, mu_2^2.  The variance is always computed as one (never as E sigma^2 minus the
rest), so it keeps its digits for nearly linear functions and saturated arguments.
Named activations have closed forms where these exist; any other function is integrated
numerically with its declared kinks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from solvers.quadrature import Expectation, QuadratureError, expectation, refine
from solvers.results import Array
from solvers.rules import Rule

from ..errors import InvalidArgument
from .checks import check_elementwise
from .moments import Averages, ConditionalMoments, Moments

MOMENT_TOLERANCE = 1e-12  # of a moment, relative to E sigma^2: some digits above rounding
# Likewise of the moments of sigma': with its own derivative, or with differences in its place,
# which lose digits at kinks.
SLOPE_TOLERANCE, DIFFERENCE_TOLERANCE = 1e-11, 1e-9
# Panels of quadrature end here, closer together near 0, where functions tend to vary quickly: from
# 1/2, less than the scale of any named activation, to 256, where all are straight or constant.
PANEL_ENDS = np.concatenate([-(2.0 ** np.arange(8, -2, -1)), [0.0], 2.0 ** np.arange(-1, 9)])

# The library's own activations by name.  ``named`` makes and enters them; take them from there.
_registry: dict[str, "Activation"] = {}


def _registered(name: str) -> "Activation":
    """The library's activation of that name, when one is read back in another process."""
    return _registry[name]


@dataclass(frozen=True, repr=False)
class Activation:
    """A function R -> R that acts elementwise on numpy arrays.

    Parameters
    ----------
    function : callable, array -> array of the same shape
    derivative : callable, optional
        Its derivative; differences of ``function`` are used when absent.
    kinks : sequence of float
        Points where the function or its derivative jumps.
    name : str
        Used in messages and labels.
    closed_form : callable (s, c) -> Moments, optional
        Exact moments; numerical integration when absent.

    Raises
    ------
    InvalidArgument
        If the function does not return finite numbers of its argument's shape.

    Examples
    --------
    >>> leaky = Activation(lambda x: np.where(x > 0, x, 0.1 * x), kinks=[0.0], name="leaky")
    >>> float(np.round(leaky.moments(0.0, 1.0).first, 12))
    0.55
    """

    dimension: ClassVar[int] = 1  # of its argument, as a target
    kinks_known: ClassVar[bool] = True  # none but those declared

    function: Callable[[Array], Array]
    derivative: Callable[[Array], Array] | None = None
    kinks: tuple[float, ...] = ()
    name: str = "custom"
    closed_form: Callable[[Array, Array], Moments] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinks", tuple(float(k) for k in np.ravel(self.kinks)))
        check_elementwise(self.function, self.name, "function")
        if self.derivative is not None:
            check_elementwise(self.derivative, self.name, "derivative")

    def __call__(self, x: ArrayLike) -> Array:
        """sigma(x), elementwise."""
        return np.asarray(self.function(np.asarray(x, dtype=float)), dtype=float)

    def __reduce__(self) -> Any:
        """Named activations cross process boundaries by name; others as pickle can."""
        if _registry.get(self.name) is self:
            return _registered, (self.name,)
        return object.__reduce__(self)

    def __repr__(self) -> str:
        return f"Activation({self.name})"

    def slope(self, x: ArrayLike) -> Array:
        """sigma'(x), elementwise, away from the kinks."""
        x = np.asarray(x, dtype=float)
        if self.derivative is not None:
            return np.asarray(self.derivative(x), dtype=float)
        return _difference(self, x)

    @property
    def slope_tolerance(self) -> float:
        """Relative tolerance to which averages of sigma' can be integrated."""
        return DIFFERENCE_TOLERANCE if self.derivative is None else SLOPE_TOLERANCE

    def moments(self, s: ArrayLike, c: ArrayLike) -> Moments:
        """The three moments at shifts ``s`` and variance ``c`` (0 or more).  Eq. (3.2)

        Raises
        ------
        QuadratureError
            If the numerical integral does not settle.
        """
        s, c = np.broadcast_arrays(np.asarray(s, dtype=float), np.asarray(c, dtype=float))
        if self.closed_form is not None:
            return self.closed_form(s, c)
        flat, scale = s.ravel(), np.sqrt(c.ravel())
        # In its tails a function is known relative to its size elsewhere: at +-1, or at the
        # largest of these shifts.
        typical = float((self(np.concatenate([flat, [-1.0, 1.0]])) ** 2).max())
        parts = [
            self._integrate(flat[block], scale[block], 1e-8 * typical)
            for block in _blocks(flat.size)
        ]
        return Moments(
            *(np.concatenate(part).reshape(s.shape) for part in zip(*parts, strict=True))
        )

    @property
    def odd(self) -> bool:
        """Whether sigma(-x) = -sigma(x), up to rounding."""
        x = np.linspace(0.0, 8.0, 101)
        there, back = self(x), self(-x)
        largest = max(np.abs(there).max(), np.abs(back).max())
        # far above rounding, far below what would change an error
        return bool(np.abs(there + back).max() <= 1e-9 * largest + 1e-300)

    def averages(self) -> Averages:
        """E sigma_*, E sigma_*^2 and E z sigma_* of a target.  Eq. (2.1)"""
        mean, first, variance = map(float, self.moments(0.0, 1.0))
        return Averages(mean, mean**2 + first**2 + variance, np.array([first]))

    def conditional_moments(self, gamma: Array, kappa: Array) -> ConditionalMoments:
        """h, g and spread of a target at kappa (K, N), for cosines ``gamma`` (1, K).  Eq. (3.3)"""
        rest = max(0.0, 1 - float(gamma[0] @ gamma[0]))
        mean, first, variance = self.moments((gamma @ kappa)[0], rest)
        return ConditionalMoments(mean, first[None], first**2 + variance)

    def _integrate(self, s: Array, scale: Array, least: float) -> Moments:
        """The moments at s (n,) by quadrature, to a tolerance relative to E sigma^2, or to
        ``least`` where that is more."""

        def compute(rule: Rule) -> tuple[Array, Array]:
            z, w = rule
            f = self(s[:, None] + scale[:, None] * z)
            if not np.isfinite(f).all():
                raise InvalidArgument(self.name, "inf or nan", "finite on the whole line")
            mean, first = _integral(f, w), _integral(f, z * w)
            power = np.maximum(_integral(f**2, w), least + 1e-300)
            f -= mean[:, None] + first[:, None] * z  # the remainder
            f *= f
            variance = _integral(f, w)
            size = np.sqrt(power)
            return np.stack([mean, first, variance]), np.stack([size, size, power])

        return Moments(*self._refine(compute, s, scale, MOMENT_TOLERANCE).value)

    def _refine(
        self, compute: Callable[[Rule], tuple[Array, Array]], s: Array, scale: Array, tol: float
    ) -> Expectation:
        """Averages over z of functions of sigma(s + scale z), by rules with nodes of their own for
        each s (n,); ``compute`` as for :func:`solvers.quadrature.refine`."""
        # in x = s + scale z the panels end at the kinks, and are about |x| wide
        points = np.concatenate([PANEL_ENDS, self.kinks])
        breaks = (points - s[:, None]) / np.where(scale > 0, scale, 1.0)[:, None]
        rule = "gauss-legendre" if self.kinks else "trapezoid, gauss-legendre"
        try:
            return refine(compute, breaks, rule=rule, tol=tol)
        except QuadratureError as error:
            raise QuadratureError(f"activation {self.name}: {error}") from None

    def slope_moments(self, shift: float = 0.0) -> tuple[float, float]:
        """(h_1, h_check) = (E sigma', E (sigma' - h_1)^2) at z + shift.  Eq. (2.1)

        Raises
        ------
        InvalidArgument
            If sigma jumps, or the derivative is not that of the function: then E sigma' is
            not E z sigma, and a gradient step is not defined.
        """
        kinks = np.asarray(self.kinks) - shift
        tol = self.slope_tolerance
        slope = expectation(lambda z: self.slope(z + shift), kinks=kinks, tol=tol)
        h1 = float(self.moments(shift, 1.0).first)
        if abs(slope.value - h1) > 1e-7 * max(1.0, abs(h1)):
            raise InvalidArgument(
                "student",
                self.name,
                "continuous, with its own derivative: E sigma' must be E z sigma",
            )
        spread = expectation(lambda z: (self.slope(z + shift) - h1) ** 2, kinks=kinks, tol=tol)
        return h1, float(spread.value)

    def second_hermite(self, s: ArrayLike = 0.0, c: ArrayLike = 1.0) -> Array:
        """E (z^2 - 1) sigma(s + sqrt(c) z), elementwise: h_2 of (2.1), and 2 c dmu_0/dc.

        Raises
        ------
        QuadratureError
            If the numerical integral does not settle.
        """
        s, c = np.broadcast_arrays(np.asarray(s, dtype=float), np.asarray(c, dtype=float))
        flat, scale = s.ravel(), np.sqrt(c.ravel())
        parts = []
        for block in _blocks(flat.size):
            shift, width = flat[block], scale[block]

            def compute(rule: Rule, shift: Array = shift, width: Array = width) -> Any:
                z, w = rule
                f = self(shift[:, None] + width[:, None] * z)
                size = np.sqrt((f**2 * w).sum(axis=-1).max())
                return (f * (z**2 - 1) * w).sum(axis=-1), size + 1e-300

            parts.append(self._refine(compute, shift, width, MOMENT_TOLERANCE).value)
        return np.concatenate(parts).reshape(s.shape)

    def slope_statistics(self, s: Array, c: float) -> tuple[Array, Array]:
        """E sigma'' and Var sigma' at s + sqrt(c) z, arrays of the shape of ``s`` (n,).  Eq. (10.1)

        By parts, E sigma'' = E (z^2 - 1) sigma / c, so that sigma and sigma' are enough.

        Raises
        ------
        QuadratureError
            If the integrals do not settle.

        Examples
        --------
        >>> cubic = Activation(lambda x: x**3 - 3 * x)
        >>> m2, v1 = cubic.slope_statistics(np.array([0.5]), 1.0)
        >>> m2.round(9).tolist(), v1.round(7).tolist()  # 6 s, 9 (4 s^2 + 2)
        ([3.0], [27.0])
        """
        root = np.sqrt(c)
        mu1 = self.moments(s, c).first / root
        parts = []
        for block in _blocks(s.size, 1024):

            def compute(rule: Rule, block: slice = block) -> tuple[Array, Array]:
                slope = self.slope(s[block, None] + root * rule.nodes)
                spread = ((slope - mu1[block, None]) ** 2 * rule.weights).sum(axis=-1)
                power = (slope**2 * rule.weights).sum(axis=-1)
                return spread, power + 1e-8 * power.max() + 1e-300

            scale = np.full(s[block].shape, root)
            parts.append(self._refine(compute, s[block], scale, self.slope_tolerance).value)
        return self.second_hermite(s, c) / c, np.concatenate(parts)


def _blocks(size: int, length: int = 512) -> list[slice]:
    """Slices of ``size`` shifts that are integrated together: few enough for the cache."""
    return [slice(i, i + length) for i in range(0, size, length)]


def _integral(f: Array, weights: Array) -> Array:
    """The n integrals of the rows of f (n, N), with weights (N,) or (n, N)."""
    return f @ weights if weights.ndim == 1 else np.einsum("ij,ij->i", f, weights)


def _difference(of: Activation, x: Array) -> Array:
    """The derivative at ``x`` by an eighth-order central difference with error about 1e-13.

    Its stencil may straddle a kink; quadrature nodes that close to one weigh ~1e-3 * step
    and the kinked integrals are asked for less accuracy (see ``slope_moments``).
    """
    step = 2e-2
    if of.kinks:
        distance = np.abs(x[..., None] - np.asarray(of.kinks)).min(axis=-1)
        step = np.clip(distance / 5, 1e-7, step)
    total = np.zeros_like(x)
    for k, weight in enumerate((4 / 5, -1 / 5, 4 / 105, -1 / 280), start=1):
        total += weight * (of(x + k * step) - of(x - k * step))
    return total / step
