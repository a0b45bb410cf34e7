"""Convex losses of the readout, a user's and named ones, and their proximal maps.  docs/theory.md 6

A loss is a convex function rho of one number t,

    residual:  l(y, f) = rho(y - f),      margin:  l(y, f) = rho(y f), labels y = +-1,

The equations need its proximal map t = argmin (t - t0)^2 / (2V) + rho(t) and its score g(t0) = (t -
t0) / V = -rho'(t).  The score equals s of Eq. (6.1) up to the sign o = ds/dg, which is -1 for a
residual and y for a margin.  Piecewise quadratic losses have both in closed form, and their
Gaussian averages, too.  For other losses the proximal map is computed by Newton's method, unless
the loss defines it.  Calls of rho and rho' tell whether rho is piecewise quadratic, and the length
over which rho' bends.
"""

import copyreg
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from scipy.special import expit

from solvers.chebyshev import coefficient_matrix
from solvers.piecewise import Pieces
from solvers.results import Array

from ..errors import InvalidArgument, hint
from ..problem import (
    MAX_NUMBER,
    called,
    check_order,
    import_object,
    is_import_path,
    number,
    plain_array,
)

Function = Callable[[Array], Array]

PROBE_ACCURACY = 1e-10  # relative accuracy of a fit by quadratic pieces
# On an interval of this length next to a bend, a polynomial of degree 8 fits the slope of a loss of
# width 1, such as tanh or the slope of sqrt(1 + t^2), to 2e-3 of its change.
BEND_STRETCH = 3.0


def quadratic_pieces(
    value: Function, derivative: Function, kinks: tuple[float, ...]
) -> Pieces | None:
    """Loss with ``kinks`` as a piecewise quadratic function, or None if it is not one."""
    rho_reach = max(1e3, 1e-6 * max(map(abs, kinks)))
    piece_ends = (kinks[0] - rho_reach, *kinks, kinks[-1] + rho_reach)
    # denser towards the ends of a piece, to detect a loss that is only nearly quadratic
    end_shares = 0.5 * 10.0 ** -np.arange(5.0, 0, -1)
    probe_shares = np.concatenate([end_shares, [0.5], 1 - end_shares[::-1]])
    piece_coefficients = []
    for piece_low, piece_high in pairwise(piece_ends):
        probe_t = piece_low + (piece_high - piece_low) * probe_shares
        slopes, rho_values = derivative(probe_t), value(probe_t)
        q = float((slopes[-1] - slopes[0]) / (probe_t[-1] - probe_t[0]))
        q = q if abs(q) * (piece_high - piece_low) > PROBE_ACCURACY * np.abs(slopes).max() else 0.0
        b = float(slopes[0] - q * probe_t[0])
        a = float(rho_values[0] - probe_t[0] * (b + q * probe_t[0] / 2))
        tol = PROBE_ACCURACY
        fits = np.allclose(b + q * probe_t, slopes, tol, tol)
        if not (fits and np.allclose(a + probe_t * (b + q * probe_t / 2), rho_values, tol, tol)):
            return None
        piece_coefficients.append((a, b, q))
    return Pieces(kinks, tuple(piece_coefficients))


def bend_width(derivative: Function, bends: tuple[float, ...], kinks: tuple[float, ...]) -> float:
    """Length over which rho' changes at its ``bends``: 1 for log cosh, and at most 1.

    It is the largest power of 1/2 for which a polynomial fits rho' on both sides of each bend, on
    an interval in proportion to the length.  Sides with one of the ``kinks``, where panels end
    anyway, are not tested.
    """
    fit_nodes, test_nodes = chebpts1(9), np.linspace(-0.99, 0.99, 41)
    fit_matrix = coefficient_matrix(9).T @ chebvander(test_nodes, 8).T

    def polynomial_fits(start: float, length: float) -> bool:
        fit_t, test_points = (start + length * (1 + x) / 2 for x in (fit_nodes, test_nodes))
        if any(fit_t.min() < kink < fit_t.max() for kink in kinks):
            return True
        rho_fit_slopes, rho_slopes = derivative(fit_t), derivative(test_points)
        fit_error = 2e-3 * np.ptp(rho_slopes) + PROBE_ACCURACY * np.abs(rho_slopes).max()
        return bool(np.abs(rho_fit_slopes @ fit_matrix - rho_slopes).max() <= fit_error)

    rho_width = 1.0
    for bend in bends:
        while rho_width > 2.0**-20 and not all(  # narrower bends count as kinks
            polynomial_fits(bend, bend_side * BEND_STRETCH * rho_width) for bend_side in (-1, 1)
        ):
            rho_width /= 2
    return rho_width


def proximal_by_newton(
    derivative: Function,
    second: Function,
    flats: list[tuple[float, Array, Array]],
    t0: Array,
    V: Array,
    slack: Array | float,
) -> Array:
    """Proximal map: t with t + V rho'(t) within ``slack`` of t0, elementwise.

    It is found by Newton's method with bisection as a safeguard.  For t0 inside an interval of
    ``flats`` it is the kink.
    """
    slope_at_t0 = derivative(t0)
    # rho' does not decrease, so the solution lies between t0 and t0 - V rho'(t0)
    prox_low, t_high = np.minimum(t0, t0 - V * slope_at_t0), np.maximum(t0, t0 - V * slope_at_t0)
    for kink, flat_start, flat_end in flats:
        at_kink = (flat_start <= t0) & (t0 <= flat_end)
        prox_low, t_high = np.where(at_kink, kink, prox_low), np.where(at_kink, kink, t_high)
    t = np.clip(t0 - V * slope_at_t0 / (1 + V * second(t0)), prox_low, t_high)
    last_step, prox_converged = t_high - prox_low, np.zeros(t.shape, dtype=bool)
    for _ in range(100):  # a few are enough
        residual = t - t0 + V * derivative(t)
        close_enough = np.abs(residual) < slack
        prox_low, t_high = np.where(residual < 0, t, prox_low), np.where(residual > 0, t, t_high)
        step = residual / (1 + V * second(t))
        # a step must stay in the bracket and shrink: Newton's method may cycle
        accepted = (t - step >= prox_low) & (t - step <= t_high) & (np.abs(step) <= last_step / 2)
        next_t = np.where(accepted, t - step, np.where(close_enough, t, (prox_low + t_high) / 2))
        next_t = np.where(prox_converged, t, next_t)
        t, last_step = next_t, np.abs(next_t - t)
        prox_converged |= close_enough | (last_step <= 1e-15 * np.maximum(1.0, np.abs(t)))
        if prox_converged.all():
            break
    return np.asarray(t)


SQUARE_PIECES = Pieces((), ((0.0, 0.0, 1.0),))  # t^2 / 2; prox t0 / (1 + V)


@dataclass(frozen=True)
class _LossFunction:
    """Function of a loss, called through ``called``."""

    function: Callable[..., Array]
    name: str = field(compare=False)

    def __call__(self, *arrays: Array) -> Array:
        return called(self.name, self.function, *arrays)


@dataclass(frozen=True, repr=False)
class Loss:
    """Convex loss rho(y - f), or rho(y f) for labels y = +-1.  docs/theory.md 6

    Parameters
    ----------
    value : callable, array t -> rho(t)
        Convex, elementwise.
    derivative : callable, t -> rho'(t)
        Non-decreasing, elementwise.
    prox : callable (t0, V) -> t, optional
        Proximal map argmin_t (t - t0)^2 / (2V) + rho(t), elementwise in arrays of one shape, with
        any number of axes; computed by Newton's method when absent.
    kind : {"residual", "margin"}
        Whether t is the residual y - f or the margin y f.
    curvature : callable, t -> rho''(t), optional
        Differences of ``derivative`` when absent.
    kinks : sequence of float
        Points where rho' or rho'' jumps.
    bends : sequence of float
        Points where a smooth rho' changes most, near which the quadrature needs more nodes.  The
        length over which it changes is found automatically.  By default 0 is a bend if rho' changes
        over less than 1 there.
    name : str
        Name in messages and files.
    pieces : solvers.piecewise.Pieces, optional
        rho as a piecewise quadratic function, for which all averages are exact.  It is found
        automatically for a piecewise quadratic rho with kinks.

    Raises
    ------
    InvalidArgument
        If the functions are not elementwise and finite, the derivative decreases or is not that of
        the value, rho' or rho'' jumps at 0 without a kink there, or the kind is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from replica import Loss
    >>> smooth = Loss(lambda t: np.log(np.cosh(t)), np.tanh, name="log-cosh")
    >>> t = smooth.proximal(np.array([2.0]), np.array([1.0]))
    >>> bool(np.allclose(t + np.tanh(t), 2.0))
    True
    """

    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    prox: Callable[[Array, Array], Array] | None = field(default=None, compare=False)
    kind: str = "residual"
    curvature: Callable[[Array], Array] | None = field(default=None, compare=False)
    kinks: tuple[float, ...] = field(default=(), compare=False)
    bends: tuple[float, ...] = field(default=(), compare=False)
    name: str = field(default="custom", compare=False)
    pieces: Pieces | None = field(default=None, compare=False)

    @np.errstate(all="ignore")  # what is not finite is refused
    def __post_init__(self) -> None:
        if self.kind not in ("residual", "margin"):
            raise InvalidArgument("kind", self.kind, "residual or margin")
        for points_name in ("kinks", "bends"):
            rho_points = np.ravel(plain_array(points_name, getattr(self, points_name)))
            object.__setattr__(self, points_name, tuple(sorted(rho_points.tolist())))
        for part in ("value", "derivative", "prox", "curvature"):
            rho_function = getattr(self, part)
            if rho_function is not None and not isinstance(rho_function, _LossFunction):
                object.__setattr__(self, part, _LossFunction(rho_function, f"loss {self.name}"))
        t = np.linspace(-6.3, 6.1, 24).reshape(4, 6)
        probes = []
        for part in ("value", "derivative"):
            probes.append(getattr(self, part)(t))
            if not (np.abs(probes[-1]) <= MAX_NUMBER).all():  # NaN too
                allowed_rho = f"elementwise and finite, up to {MAX_NUMBER:g} (numpy functions)"
                raise InvalidArgument("loss", f"{self.name} ({part})", allowed_rho)
            check_order("loss", f"{self.name} ({part})", getattr(self, part), t[None], probes[-1])
        rho_values, slopes = map(np.ravel, probes)
        if (np.diff(slopes) < -1e-9 * np.abs(slopes).max()).any():
            raise InvalidArgument("loss", self.name, "convex: its derivative must not decrease")
        # a chord of a convex rho is as steep as rho' somewhere between, whose noise this allows
        chords, slack = np.diff(rho_values) / np.diff(t.ravel()), 1e-6 * np.abs(probes).max()
        if (np.maximum(slopes[:-1] - chords, chords - slopes[1:]) > slack).any():
            allowed_pair = "a value with its derivative: the one given here is another function's"
            raise InvalidArgument("loss", self.name, allowed_pair)
        near = self.derivative(np.array([-2e-5, -1e-5, -1e-9, 1e-9, 1e-5, 2e-5]))
        curvatures = near[[1, 5]] - near[[0, 4]]  # of each side, over 1e-5: above a slope's noise
        least = max(curvatures.max(), 1e-6 * np.abs(slopes).max())
        if not self.kinks and (
            near[3] - near[2] > 0.1 * np.abs(slopes).max() or np.ptp(curvatures) > 0.1 * least
        ):
            allowed_kinks = "given where the derivative or its slope jumps, as here at 0: kinks=[0]"
            raise InvalidArgument("kinks", self.kinks, allowed_kinks)
        if self.kinks and self.pieces is None:
            rho_pieces = quadratic_pieces(self.value, self.derivative, self.kinks)
            object.__setattr__(self, "pieces", rho_pieces)
        if not self.kinks and not self.bends and self.width < 1:
            object.__setattr__(self, "bends", (0.0,))

    def __repr__(self) -> str:
        return f"Loss({self.name})"

    @cached_property
    def is_square(self) -> bool:
        """True if this is the square loss of ridge regression."""
        return self.kind == "residual" and self.pieces == SQUARE_PIECES

    @property
    def jumps(self) -> bool:
        """True if rho' jumps at a kink, so that the proximal map stays there."""
        return any(flat_end - first > 1e-9 for _, first, flat_end in self.flats(np.ones(())))

    @cached_property
    def is_symmetric(self) -> bool:
        """True if the loss is the same for opposite labels and predictions."""
        if self.kind == "margin":
            return True
        t, rho_kinks = np.geomspace(1e-3, 1e3, 400), np.array(self.kinks)
        with np.errstate(all="ignore"):
            is_even = np.allclose(self.value(t), self.value(-t), 1e-12, 0)
        return bool(is_even and np.array_equal(rho_kinks, -rho_kinks[::-1]))

    @cached_property
    def width(self) -> float:
        """Length over which rho' changes at its bends, by ``bend_width``."""
        return bend_width(self.derivative, self.bends or (0.0,), self.kinks)

    @cached_property
    def growth(self) -> tuple[float, float]:
        """Exponent k and coefficient C of the growth C abs(t)^k of rho(t), averaged over both
        signs.

        Both are infinite if rho grows faster than all powers.
        """
        far_out = 1e30  # there the leading power of a loss dominates
        with np.errstate(all="ignore"):
            far_t = far_out * np.array([1.0, 2.0, 4.0])
            rho_far, rho_at_2, rho_at_4 = (self.value(far_t) + self.value(-far_t)) / 2
            rho_power = np.log2((rho_at_4 - rho_at_2) / (rho_at_2 - rho_far))
        if not np.isfinite(rho_at_4):
            return np.inf, np.inf
        return float(rho_power), float(rho_far / far_out**rho_power)

    def __call__(self, y: Array, prediction: Array) -> Array:
        """Loss l(y, f), elementwise."""
        return self.value(y * prediction if self.kind == "margin" else y - prediction)

    def proximal(self, t0: Array, V: Array, slack: Array | float = 0.0) -> Array:
        """Proximal map argmin_t (t - t0)^2 / (2V) + rho(t), elementwise, for t0 or a number within
        ``slack`` of t0."""
        t0, V = np.broadcast_arrays(np.asarray(t0, dtype=float), np.asarray(V, dtype=float))
        if self.pieces is not None:
            return self.pieces.prox(t0, V)
        if self.prox is not None:
            return self.prox(t0, V)
        return proximal_by_newton(self.derivative, self.second, self.flats(V), t0, V, slack)

    def score(self, t0: Array, V: Array) -> tuple[Array, Array, Array]:
        """Score g = -rho'(t), its derivative in t0, and t itself.  Eq. (6.1)

        On a flat stretch of the proximal map, t at a kink, g' = -1 / V.
        """
        proximal_t = self.proximal(t0, V)
        rho_curvature = self.second(proximal_t)
        rho_score = -self.derivative(proximal_t)
        score_slope = -rho_curvature / (1 + V * rho_curvature)
        for kink in self.kinks:
            at_kink = np.abs(proximal_t - kink) <= 1e-12 * max(1.0, abs(kink))
            rho_score = np.where(at_kink, (proximal_t - t0) / V, rho_score)
            score_slope = np.where(at_kink, -1 / V, score_slope)
        return rho_score, score_slope, proximal_t

    def second(self, t: Array) -> Array:
        """Second derivative rho''(t), elementwise, away from the kinks."""
        if self.curvature is not None:
            return self.curvature(t)
        rho_step = 1e-5 * np.maximum(1.0, np.abs(t))
        for kink in self.kinks:  # without crossing a kink
            rho_step = np.minimum(rho_step, np.maximum(np.abs(t - kink) / 2, 1e-9))
        rho_slope_change = self.derivative(t + rho_step) - self.derivative(t - rho_step)
        return np.maximum(rho_slope_change / (2 * rho_step), 0.0)

    def flats(self, V: Array) -> list[tuple[float, Array, Array]]:
        """Kinks, each with the ends, of V's shape, of the interval of t0 that the map takes to
        it."""
        if not self.kinks:
            return []
        sides = np.nextafter(np.array(self.kinks)[:, None], [-np.inf, np.inf])
        return [
            (kink, kink + V * slope_left, kink + V * right)
            for kink, (slope_left, right) in zip(self.kinks, self.derivative(sides), strict=True)
        ]


def _piecewise(name: str, kind: str, knots: Any, *coefficients: tuple[float, float, float]) -> Loss:
    """Named loss a + b t + q t^2 / 2 between ``knots``, with coefficients (a, b, q) of each
    piece."""
    pieces = Pieces(tuple(knots), coefficients)
    functions = pieces.value, pieces.derivative, None, kind, lambda t: pieces.coefficients_at(t)[2]
    return Loss(*functions, kinks=tuple(knots), name=name, pieces=pieces)


@lru_cache  # so that one delta is one loss
def huber(delta: float) -> Loss:
    """Huber's loss: t^2 / 2 for abs(t) <= delta, linear beyond; prox t0 / (1 + V) or
    t0 -+ V delta."""
    delta = number("loss", delta, 0, MAX_NUMBER, "huber:DELTA with DELTA positive", open_low=True)
    left_piece, right_piece = ((-(delta**2) / 2, slope, 0.0) for slope in (-delta, delta))
    huber_name, huber_kinks = f"huber:{delta:g}", (-delta, delta)
    return _piecewise(huber_name, "residual", huber_kinks, left_piece, (0.0, 0.0, 1.0), right_piece)


@lru_cache
def quantile(q: float) -> Loss:
    """Quantile loss: q t for t > 0, (q - 1) t for t < 0; prox shifts t0 towards 0 and stops
    there."""
    q = number("loss", q, 0, 1, "quantile:Q with 0 < Q < 1", open_low=True)
    if q == 1:
        raise InvalidArgument("loss", "quantile:1", "quantile:Q with 0 < Q < 1")
    return _piecewise(f"quantile:{q:g}", "residual", (0.0,), (0.0, q - 1, 0.0), (0.0, q, 0.0))


def _logistic_curvature(t: Array) -> Array:
    """Second derivative 1 / (2 cosh(t / 2))^2 of the logistic loss, by one exponential."""
    exp_minus_t = np.exp(-np.abs(t))
    return np.asarray(exp_minus_t / (1 + exp_minus_t) ** 2)


PARAMETER_LOSSES = {"huber": huber, "quantile": quantile}
LOSSES = {
    "square": _piecewise("square", "residual", (), *SQUARE_PIECES.coefficients),
    # abs(t); prox soft thresholding
    "absolute": _piecewise("absolute", "residual", (0.0,), (0.0, -1.0, 0.0), (0.0, 1.0, 0.0)),
    # max(0, 1 - t); prox t0 + V, 1 or t0
    "hinge": _piecewise("hinge", "margin", (1.0,), (1.0, -1.0, 0.0), (0.0, 0.0, 0.0)),
    # max(0, 1 - t)^2 / 2; prox (t0 + V) / (1 + V) or t0
    "squared_hinge": _piecewise(
        "squared_hinge", "margin", (1.0,), (0.5, -1.0, 1.0), (0.0, 0.0, 0.0)
    ),
    # log(1 + exp(-t))
    "logistic": Loss(
        lambda t: np.logaddexp(0, -t),
        lambda t: -expit(-t),
        kind="margin",
        curvature=_logistic_curvature,
        bends=(0.0,),
        name="logistic",
    ),
}

USUAL_NAMES = {  # what others call the losses
    **dict.fromkeys(("mse", "l2", "squared", "squared_error", "ridge", "quadratic"), "square"),
    **dict.fromkeys(("mae", "l1", "absolute_error", "lad"), "absolute"),
    **dict.fromkeys(("log", "log_loss", "bce", "binary_cross_entropy"), "logistic"),
    **dict.fromkeys(("svm", "svc"), "hinge"),
    **dict.fromkeys(("pinball",), "quantile:0.5"),
}


def loss(spec: Any) -> Loss:
    """Loss with a given name; a ``Loss`` is returned as it is, and None means the square loss.

    Parameters
    ----------
    spec : str, Loss or None
        One of square, huber:delta, absolute, quantile:q; for labels +-1 logistic, hinge,
        squared_hinge.

    Raises
    ------
    InvalidArgument
        If the name is unknown, or the exponential loss.

    Examples
    --------
    >>> from replica import loss
    >>> loss("huber:0.2").proximal(2.0, 1.0).item()
    1.8
    """
    if isinstance(spec, Loss):
        return spec
    if spec is None:
        return LOSSES["square"]
    loss_text = spec.strip() if isinstance(spec, str) else ""
    loss_name, _, parameter_text = loss_text.partition(":")
    usual_loss_name = USUAL_NAMES.get(loss_text.lower())
    if loss_text in LOSSES:
        return LOSSES[loss_text]
    allowed_losses = (
        "one of square, huber:DELTA, absolute, quantile:Q, logistic, hinge, squared_hinge, or a "
        "replica.Loss(value=..., derivative=...), on the command line as module:name"
    )
    if "," in loss_text:
        allowed_losses += "; of several run a command once for each, or learning_curve of a list"
    if loss_name == "exponential":
        allowed_losses += (
            "; the exponential loss is not offered: its derivative grows faster than the "
            "polynomials for which features may be replaced by Gaussian ones, and its test error "
            "is carried by inputs that no sample contains (take logistic, whose tail for large "
            "margins is the same)"
        )
    elif loss_name in ("multinomial", "softmax", "cross_entropy"):
        allowed_losses += (
            "; the multinomial loss of several classes is not offered (take logistic for each "
            "class against the rest, labels == c)"
        )
    elif loss_name in PARAMETER_LOSSES:
        try:
            loss_parameter = float(parameter_text)
        except ValueError:
            raise InvalidArgument("loss", spec, allowed_losses) from None
        return PARAMETER_LOSSES[loss_name](loss_parameter)
    elif usual_loss_name:
        allowed_losses = f"{usual_loss_name}, as it is called here"
    elif is_import_path(loss_text):
        if isinstance(user_loss := import_object(spec, "loss"), Loss):
            return user_loss
        variable = loss_text.partition(":")[2]
        allowed_losses = f"a Loss: {variable} = replica.Loss(value=..., derivative=...)"
    else:
        allowed_losses += hint(loss_name, [*LOSSES, *PARAMETER_LOSSES])
    raise InvalidArgument("loss", spec, allowed_losses)


def _reduce_by_name(named_loss: Loss) -> Any:
    """Pickle a named loss by its name, any other loss by default."""
    with suppress(InvalidArgument):
        if loss(named_loss.name) == named_loss:
            return loss, (named_loss.name,)
    return object.__reduce__(named_loss)


copyreg.pickle(Loss, _reduce_by_name)
