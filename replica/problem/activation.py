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
from .moments import Moments

MOMENT_TOLERANCE = 1e-12
MOMENT_NODES = 4096
BLOCK = 512  # shifts integrated together, to stay in the cache
# where a user's function may vary quickly: panels of quadrature that double away from 0
LAYERS = np.concatenate([-(2.0 ** np.arange(8, -2, -1)), [0.0], 2.0 ** np.arange(-1, 9)])


ACTIVATIONS: dict[str, "Activation"] = {}  # by name; ``named`` enters what the library has


def _registered(name: str) -> "Activation":
    """The named activation, in whatever process."""
    return ACTIVATIONS[name]


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

    function: Callable[[Array], Array]
    derivative: Callable[[Array], Array] | None = None
    kinks: tuple[float, ...] = ()
    name: str = "custom"
    closed_form: Callable[[Array, Array], Moments] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinks", tuple(float(k) for k in np.ravel(self.kinks)))
        _check_elementwise(self.function, self.name, "function")
        if self.derivative is not None:
            _check_elementwise(self.derivative, self.name, "derivative")

    def __call__(self, x: ArrayLike) -> Array:
        """sigma(x), elementwise."""
        return np.asarray(self.function(np.asarray(x, dtype=float)), dtype=float)

    def __reduce__(self) -> Any:
        """Named activations cross process boundaries by name; others as pickle can."""
        if ACTIVATIONS.get(self.name) is self:
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
            self._integrate(flat[i : i + BLOCK], scale[i : i + BLOCK], 1e-8 * typical)
            for i in range(0, flat.size, BLOCK)
        ]
        return Moments(
            *(np.concatenate(part).reshape(s.shape) for part in zip(*parts, strict=True))
        )

    def _integrate(self, s: Array, scale: Array, least: float) -> Moments:
        """The moments at s (n,) by quadrature, relative to a power of ``least`` or more."""

        def compute(rule: Rule) -> tuple[Array, Array]:
            z, w = rule
            f = self(s[:, None] + scale[:, None] * z)
            if not np.isfinite(f).all():
                raise InvalidArgument(self.name, "inf or nan", "finite on the whole line")
            mean, first = _integral(f, w), _integral(f, z * w)
            power = np.maximum(_integral(f**2, w), least + 1e-300)
            f -= mean[:, None] + first[:, None] * z  # what is left of it
            f *= f
            variance = _integral(f, w)
            size = np.sqrt(power)
            return np.stack([mean, first, variance]), np.stack([size, size, power])

        return Moments(*self._refine(compute, s, scale).value)

    def _refine(
        self, compute: Callable[[Rule], tuple[Array, Array]], s: Array, scale: Array
    ) -> Expectation:
        """``refine`` for functions of sigma(s + scale z), a rule for each s (n,)."""
        # Panels in x = s + sqrt(c) z: at the kinks, and of width ~ |x| as functions vary.
        points = np.concatenate([LAYERS, self.kinks])
        breaks = (points - s[:, None]) / np.where(scale > 0, scale, 1.0)[:, None]
        rule = "gauss-legendre" if self.kinks else "trapezoid, gauss-legendre"
        try:
            return refine(compute, breaks, rule=rule, tol=MOMENT_TOLERANCE, max_nodes=MOMENT_NODES)
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
        tol = 1e-11 if self.derivative is not None else 1e-9
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
        found = []
        for i in range(0, flat.size, BLOCK):
            shift, width = flat[i : i + BLOCK], scale[i : i + BLOCK]

            def compute(rule: Rule, shift: Array = shift, width: Array = width) -> Any:
                z, w = rule
                f = self(shift[:, None] + width[:, None] * z)
                size = np.sqrt((f**2 * w).sum(axis=-1).max())
                return (f * (z**2 - 1) * w).sum(axis=-1), size + 1e-300

            found.append(self._refine(compute, shift, width).value)
        return np.concatenate(found).reshape(s.shape)


def _integral(f: Array, weights: Array) -> Array:
    """Of f (n, N) with weights (N,) or (n, N)."""
    return f @ weights if weights.ndim == 1 else np.einsum("ij,ij->i", f, weights)


def _check_elementwise(function: Callable[[Array], Array], name: str, part: str) -> None:
    """Refuse at once what would fail, or silently broadcast, inside an integral."""
    x = np.linspace(-3.1, 2.9, 12).reshape(3, 4)
    advice = f"write it with numpy functions, as in {part}=np.tanh"
    try:
        with np.errstate(all="ignore"):
            y = np.asarray(function(x), dtype=float)
    except Exception as error:  # whatever a user's function raises
        raise InvalidArgument(
            f"{part} of {name}",
            f"{type(error).__name__}: {error}",
            f"applicable to arrays; {advice}",
        ) from error
    if y.shape != x.shape:
        raise InvalidArgument(
            f"{part} of {name}",
            f"shape {y.shape} for an input of shape {x.shape}",
            f"elementwise, returning its argument's shape; {advice}",
        )
    if not np.isfinite(y).all():
        raise InvalidArgument(
            f"{part} of {name}", "inf or nan", "finite on the whole line (try np.where or np.clip)"
        )


def _difference(function: Callable[[Array], Array], x: Array) -> Array:
    """Derivative by an eighth-order central difference with error about 1e-13.

    Its stencil may straddle a kink; quadrature nodes that close to one weigh ~1e-3 * step
    and the kinked integrals are asked for less accuracy (see ``slope_moments``).
    """
    step = 2e-2
    if isinstance(function, Activation) and function.kinks:
        distance = np.abs(x[..., None] - np.asarray(function.kinks)).min(axis=-1)
        step = np.clip(distance / 5, 1e-7, step)
    total = np.zeros_like(x)
    for k, weight in enumerate((4 / 5, -1 / 5, 4 / 105, -1 / 280), start=1):
        total += weight * (function(x + k * step) - function(x - k * step))
    return total / step
