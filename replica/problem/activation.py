"""Activation functions and their three Gaussian moments, on which the theory depends.

For a pre-activation s + sqrt(c) z with z ~ N(0, 1), Eq. (3.2) splits sigma into

    sigma(s + sqrt(c) z) = mean + first * z + remainder,

mean = E sigma = mu_0, first = E z sigma = sqrt(c) mu_1, and the variance of the
remainder, mu_2^2.  The variance is computed from the remainder itself, not as a difference from
E sigma^2, so it is accurate for nearly linear functions and saturated arguments, too.
Named activations have closed forms where these exist; any other function is integrated
numerically with its declared kinks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import factorial

from solvers.quadrature import QuadratureError, expectation
from solvers.resources import check_time
from solvers.results import Array, Scaled
from solvers.rules import Rule, gauss_hermite

from ..errors import InvalidArgument
from .checks import MAX_COMPUTED, assign, called, check_elementwise, number, real
from .kinks import SIDES, central_difference
from .moments import ConditionalMoments, Moments, relu_hermite_coefficients, relu_moments

Integrand = Callable[[Rule, Array], Scaled]  # (rule for z, x at its nodes) -> values, scales
MOMENT_TOLERANCE = 1e-12  # on a moment, relative to E sigma^2: a few digits above rounding
# Ends of quadrature panels, closer together near 0, where functions tend to vary quickly: from 1/2,
# below the scale of any named activation, to 256, where all are linear or constant.
PANEL_ENDS = np.concatenate([-(2.0 ** np.arange(8, -2, -1)), [0.0], 2.0 ** np.arange(-1, 9)])

# Named activations, filled in by the module ``named_activations``: import it before reading this.
ACTIVATIONS: dict[str, "Activation"] = {}


def _named_activation(name: str) -> "Activation":
    """The activation with this ``name``, to unpickle one in another process."""
    return ACTIVATIONS[name]


def _activation_scale(activation: Callable[[Array], Array], shifts: ArrayLike) -> float:
    """Scale of an activation or its slope, for errors: its largest value at +-1 and ``shifts``."""
    return float(np.abs(activation(np.append(shifts, [-1.0, 1.0]))).max())


@dataclass(frozen=True, repr=False)
class Activation:
    """A function R -> R that acts elementwise on numpy arrays.

    Parameters
    ----------
    function : callable, array -> array of the same shape
        Elementwise, finite, of numpy functions.
    derivative : callable, optional
        Derivative of ``function``; finite differences are used without it.
    kinks : sequence of float
        Points where the function or its derivative jumps.
    name : str
        Name for messages and figures.
    closed_form : callable (s, c) -> Moments, optional
        Exact moments; numerical integration is used without it.

    Raises
    ------
    InvalidArgument
        If the function does not return finite numbers of its argument's shape.

    Examples
    --------
    >>> import numpy as np
    >>> from replica import Activation
    >>> leaky = Activation(lambda x: np.where(x > 0, x, 0.1 * x), kinks=[0.0], name="leaky")
    >>> float(np.round(leaky.moments(0.0, 1.0).first, 12))
    0.55
    """

    dimension: ClassVar[int] = 1  # number of arguments, as a target

    function: Callable[[Array], Array]
    derivative: Callable[[Array], Array] | None = None
    kinks: tuple[float, ...] = ()
    name: str = "custom"
    closed_form: Callable[[Array, Array], Moments] | None = None

    @property
    def planes(self) -> tuple[tuple[tuple[float, ...], float], ...]:
        """Kinks as planes (v, t), v.z = t, as of a target of several directions."""
        return tuple(((1.0,), kink) for kink in self.kinks)

    def __post_init__(self) -> None:
        kink_range = -MAX_COMPUTED, MAX_COMPUTED, "a finite number, or several"
        activation_kinks = (number("kinks", kink, *kink_range) for kink in np.ma.ravel(self.kinks))
        assign(self, kinks=tuple(activation_kinks))
        if not (self.closed_form is None or callable(self.closed_form)):
            raise InvalidArgument("closed_form", self.closed_form, "a function, or left out")
        check_elementwise("function", self.name, self.function)
        if self.derivative is not None:
            check_elementwise("derivative", self.name, self.derivative)

    def __call__(self, x: ArrayLike) -> Array:
        """sigma(x), elementwise."""
        return called(self.name, self.function, x)

    def __reduce__(self) -> Any:
        """Pickle named activations by name, others as usual."""
        if ACTIVATIONS.get(self.name) is self:
            return _named_activation, (self.name,)
        return object.__reduce__(self)

    def __repr__(self) -> str:
        return f"Activation({self.name})"

    def slope(self, x: ArrayLike) -> Array:
        """sigma'(x), elementwise, away from the kinks."""
        if self.derivative is not None:
            return called(self.name, self.derivative, x)
        return central_difference(self, self.kinks, np.asarray(x, dtype=float))

    @property
    def slope_tolerance(self) -> float:
        """Relative tolerance for averages of sigma'; finite differences lose digits at kinks."""
        return 1e-9 if self.derivative is None else 1e-11

    def moments(self, s: ArrayLike, c: ArrayLike) -> Moments:
        """The three moments at shifts ``s`` and variance ``c`` (0 or more).  Eq. (3.2)

        Raises
        ------
        QuadratureError
            If the numerical integral does not settle.
        """
        s, c = np.asarray(s, dtype=float), np.asarray(c, dtype=float)
        if self.closed_form is not None:
            closed_moments = self.closed_form(*map(np.array, np.broadcast_arrays(s, c)))
            return Moments(*(real(self.name, closed_moment) for closed_moment in closed_moments))
        smallest_power = 1e-8 * _activation_scale(self, s) ** 2 + 1e-300

        def moments_of_sigma(rule: Rule, x: Array) -> Scaled:
            z, w = rule
            sigma_x = self(x)
            if not np.isfinite(sigma_x).all():
                raise InvalidArgument(self.name, "inf or nan", "finite on the whole line")
            mu_0, first = np.vecdot(sigma_x, w), np.vecdot(sigma_x, z * w)
            power = np.maximum(np.vecdot(sigma_x**2, w), smallest_power)
            sigma_x -= mu_0[:, None] + first[:, None] * z  # the remainder
            sigma_x *= sigma_x
            size = np.sqrt(power)
            return np.stack([mu_0, first, np.vecdot(sigma_x, w)]), np.stack([size, size, power])

        return Moments(*self._average(moments_of_sigma, s, c, MOMENT_TOLERANCE))

    @property
    def odd(self) -> bool:
        """True if sigma(-x) = -sigma(x), up to rounding, from 0 to 8 and on both sides of kinks."""
        test_x = np.arange(101) * 0.08
        # far above rounding, and too small to change an error of the theory
        odd_tolerance = 1e-9 * np.abs(self(test_x)).max() + 1e-300
        test_x = np.append(test_x, np.add.outer(self.kinks, SIDES))
        return bool(np.abs(self(test_x) + self(-test_x)).max() <= odd_tolerance)

    def conditional_moments(self, centre: Array, L: Array, weight: Array) -> ConditionalMoments:
        """Conditional moments of a target at ``centre`` (1, N) + L tau, where only the first entry
        of L (1, q) may differ from 0.  Eq. (3.3)"""
        sigma_mean, sigma_first, sigma_variance = self.moments(centre[0], float(L[0] @ L[0]))
        return ConditionalMoments(sigma_mean, sigma_first[None], sigma_first**2 + sigma_variance)

    def _average(self, compute: Integrand, s: Any, c: Any, tol: float) -> Array:
        """Averages over z at x = s + sqrt(c) z, (k, *shape of s and c).

        ``compute`` maps a rule and x (n, N) to values (k, n) and their scales, as for
        :func:`solvers.quadrature.expectation`.
        """
        s, c = np.broadcast_arrays(s, c)
        shifts_and_roots = np.stack([s, np.sqrt(c)]).reshape(2, -1, 1)
        # panels in x end at the kinks, and are about |x| wide
        panel_ends_x = np.concatenate([PANEL_ENDS, self.kinks])
        family = "gauss-legendre" if self.kinks else "trapezoid, gauss-legendre"

        def block(s: Array, scale: Array) -> Array:
            check_time()
            z_breaks = (panel_ends_x - s) / np.where(scale > 0, scale, 1.0)
            return expectation(
                lambda rule: compute(rule, s + scale * rule.nodes), z_breaks, rule=family, tol=tol
            ).value

        try:  # blocks of 512 fit in the cache
            average_blocks = [
                block(*pair) for pair in np.split(shifts_and_roots, range(512, s.size, 512), axis=1)
            ]
        except QuadratureError as error:
            remedy = ""
            if hasattr(self.function, "kinks"):  # an expression, which knows them
                other_form = "; another form may settle: of relu(x+0.5), relu with a bias of 0.5"
                remedy = other_form * bool(self.kinks)
            elif self.closed_form is None and self.name not in ACTIVATIONS:
                remedy = ", which can be declared: activation(f, kinks=[-1, 1]), or --kinks -1,1"
                if self.kinks:
                    remedy = (
                        ", all of which can be declared, in kinks; a function of infinite slope "
                    )
                    remedy += "must be smoothed: (x**2 + 0.01)**0.25"
            raise QuadratureError(f"activation {self.name}: {error}{remedy}") from None
        return np.concatenate(average_blocks, axis=1).reshape(-1, *s.shape)

    def slope_moments(self, shift: float = 0.0) -> tuple[float, float, float]:
        """Mean h_1 = E sigma', variance h_check of sigma' and h_2 = E sigma'' at z + shift.
        Eq. (2.1)

        Raises
        ------
        InvalidArgument
            If sigma jumps, or ``derivative`` is not the derivative of ``function``: E sigma' then
            differs from E z sigma, and a gradient step is not defined.
        QuadratureError
            If an integral does not settle.
        """
        h1 = float(self.moments(shift, 1.0).first)

        slope_mean, h2, _, _, rest_variance, *_ = self.slope_moments_at(np.array([shift]), 1.0)[
            :, 0
        ]
        if abs(slope_mean - h1) > 1e-7 * max(1.0, abs(h1)):
            allowed_student = (
                "continuous, as there is no gradient at a jump (an sRF of r, c and gamma takes "
                "it), and its derivative, if given, that of the function"
            )
            raise InvalidArgument("student", self.name, allowed_student)
        return h1, float(h2**2 + rest_variance), float(h2)

    def cumulants(self, s: ArrayLike, c: ArrayLike) -> tuple[Array, Array]:
        """Variance of features sigma(s + sqrt(c) z), and the fourth cumulant of their remainder,
        whose variance is mu_2^2: of the shape of ``s``, to some per cent."""
        rule = gauss_hermite(80)
        sigma_x = self(np.add.outer(s, np.zeros(1)) + np.multiply.outer(np.sqrt(c), rule.nodes))
        linear = np.stack([np.ones_like(rule.nodes), rule.nodes])
        mean_and_slope = (sigma_x * rule.weights) @ linear.T
        squares = (sigma_x - mean_and_slope @ linear) ** 2
        variance = squares @ rule.weights
        fourth = squares**2 @ rule.weights - 3 * variance**2
        return variance + mean_and_slope[..., 1] ** 2, fourth

    def kurtosis(self, s: ArrayLike, c: ArrayLike, shares: Array | None = None) -> float:
        """Mean fourth cumulant of features' remainders over the square of the features' mean
        variance, of neurons with ``shares`` (N,) and pre-activations of means ``s`` and variances
        ``c`` (N,)."""
        with np.errstate(all="ignore"):  # what overflows is rarely large
            variance, fourth = (np.average(x, weights=shares) for x in self.cumulants(s, c))
            ratio = float(fourth / max(variance**2, 1e-300))
        return ratio if np.isfinite(ratio) else np.inf

    def second_hermite(self, s: ArrayLike = 0.0, c: ArrayLike = 1.0) -> Array:
        """Second Hermite moment E (z^2 - 1) sigma(s + sqrt(c) z): h_2 of (2.1), and 2 c dmu_0/dc.

        Raises
        ------
        QuadratureError
            If the numerical integral does not settle.
        """
        return np.sqrt(2) * self.hermite_coefficients(2, s, c)[0]

    def hermite_coefficients(self, k_max: int, s: ArrayLike, c: ArrayLike) -> Array:
        """Hermite coefficients d_k = E He_k(z) sigma(s + sqrt(c) z) / sqrt(k!), k = 2 ... k_max, of
        (20.1): (k_max - 1, *shape of s).

        Raises
        ------
        QuadratureError
            If the numerical integral does not settle.

        Examples
        --------
        >>> cubic = Activation(lambda x: x**3)  # He_3 + 3 He_1
        >>> cubic.hermite_coefficients(3, 0.0, 1.0).round(9) + 0.0
        array([0.        , 2.44948974])
        """
        hermite_degrees = np.arange(2, k_max + 1)
        if self.closed_form is relu_moments:
            return relu_hermite_coefficients(hermite_degrees, s, c)
        sigma_scale = _activation_scale(self, s)

        def hermite_averages(rule: Rule, x: Array) -> Scaled:
            z, z_weights = rule
            sigma_x = self(x)
            sigma_size = np.sqrt(np.vecdot(sigma_x**2, z_weights).max())
            hermite_w0, hermite_w, hermite_values = z_weights, z * z_weights, []
            for k, root_k in zip(hermite_degrees, np.sqrt(factorial(hermite_degrees)), strict=True):
                hermite_w0, hermite_w = hermite_w, z * hermite_w - (k - 1) * hermite_w0
                hermite_values.append(np.vecdot(sigma_x, hermite_w) / root_k)
            return np.stack(hermite_values), max(sigma_size, sigma_scale, 1e-300)

        return self._average(hermite_averages, s, c, MOMENT_TOLERANCE)

    def slope_moments_at(self, s: Array, c: float) -> Array:
        """The ten moments (10, n) of sigma' at s + sqrt(c) z of Eq. (18.3), for ``s`` (n,).

        E sigma', E z sigma', E (z^2 - 1) sigma' and E (z^3 - 3 z) sigma'; then E z^j st^k with
        st = sigma' - E sigma' - z E z sigma', for (j, k) = (0, 2), (1, 2), (2, 2), (0, 3), (1, 3),
        (0, 4).

        Raises
        ------
        QuadratureError
            If the integrals do not settle.

        Examples
        --------
        >>> cubic = Activation(lambda x: x**3 - 3 * x)  # sigma' = 3 (s^2 - 1) + 6 s z + 3 z^2
        >>> cubic.slope_moments_at(np.array([0.5]), 1.0)[:3, 0].round(9).tolist()
        [0.75, 3.0, 6.0]
        """
        least_power = _activation_scale(self.slope, s) ** 2 + 1e-150  # whose square is not 0

        def slope_averages(rule: Rule, x: Array) -> Scaled:
            z, w = rule
            zw = z * w
            zzw = z * zw
            sigma_slope = self.slope(x)
            mean, first = np.vecdot(sigma_slope, w), np.vecdot(sigma_slope, zw)
            rest = sigma_slope - mean[:, None] - first[:, None] * z
            slope_power = max(float(np.vecdot(sigma_slope**2, w).max()), least_power)
            moments = [mean, first, np.vecdot(rest, zzw - w), np.vecdot(rest, z * zzw - 3 * zw)]
            rest2 = rest * rest  # products, as powers of arrays take ten times as long
            rest3 = rest2 * rest
            moments += [np.vecdot(rest2, z_weights) for z_weights in (w, zw, zzw)]
            moments += [np.vecdot(rest3, w), np.vecdot(rest3, zw), np.vecdot(rest2 * rest2, w)]
            slope_degrees = np.array([1, 1, 1, 1, 2, 2, 2, 3, 3, 4])[:, None]
            return np.stack(moments), slope_power ** (slope_degrees / 2)

        return self._average(slope_averages, s, c, self.slope_tolerance)
