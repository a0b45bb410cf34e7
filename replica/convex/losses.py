"""Convex losses of the readout, by name or as functions.  docs/theory.md 6.

A loss is a convex function rho of one number t,

    residual:  l(y, f) = rho(y - f),      margin:  l(y, f) = rho(y f), labels y = +-1,

and the equations need its proximal map t = argmin (t - t0)^2 / (2V) + rho(t) and the score
g(t0) = (t - t0) / V = -rho'(t), which is s of Eq. (6.1) but for the sign o = ds/dg: -1 for a
residual, y for a margin.  Piecewise quadratic losses have both in closed form, and their
Gaussian averages too; for others the proximal map is solved by Newton's method.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit

from solvers.piecewise import Pieces
from solvers.results import Array

from ..errors import InvalidArgument
from ..problem import FINITE, imported, number

KINDS = ("residual", "margin")
FURTHEST = 1e3  # from the kinks to where a loss is looked at
SPREAD = np.concatenate(
    [0.5 * 10.0 ** -np.arange(5.0, 0, -1), [0.5], 1 - 0.5 * 10.0 ** -np.arange(1.0, 6)]
)
EXACT = 1e-10
BEND = 3.0  # stretch of t beside a bend that a polynomial of degree FIT - 1 fits to BENT, as one
FIT, BENT = 9, 2e-3  # fits tanh, or sqrt(1 + t^2)'s slope; in shorter ones where those do not,
NARROWEST = 2.0**-20  # down to such a part of it
STEPS = 100  # of a safeguarded Newton iteration, which takes a few
FORMS = (
    "square, huber:DELTA, absolute, quantile:Q, logistic, hinge, squared_hinge, or a replica.Loss "
    "as it is or as module:name"
)


@dataclass(frozen=True, repr=False)
class Loss:
    """A convex loss rho(y - f), or rho(y f) for labels y = +-1.

    Parameters
    ----------
    value : callable, array t -> rho(t)
        Convex, elementwise.
    derivative : callable, t -> rho'(t)
    prox : callable (t0, V) -> t, optional
        argmin_t (t - t0)^2 / (2V) + rho(t), elementwise in arrays of one shape, of any number of
        axes; found by Newton's method when absent.
    kind : {"residual", "margin"}
        What t is: y - f, or y f.
    curvature : callable, t -> rho''(t), optional
        Differences of ``derivative`` when absent.
    kinks : sequence of float
        Points where rho' or rho'' jumps.
    bends : sequence of float
        Points where a smooth rho' changes most: where the quadrature may have to close in on.
        How fast it changes is found; 0 is taken where that is within less than one and none is
        named.
    name : str
        Used in messages and files.
    pieces : solvers.piecewise.Pieces, optional
        rho as a piecewise quadratic function, which makes all averages exact; found where there
        are kinks and rho is one.

    Raises
    ------
    InvalidArgument
        If the functions are not elementwise and finite, the derivative decreases, or the kind
        is unknown.

    Examples
    --------
    >>> smooth = Loss(lambda t: np.log(np.cosh(t)), np.tanh, name="log-cosh")
    >>> t = smooth.proximal(np.array([2.0]), np.array([1.0]))
    >>> bool(np.allclose(t + np.tanh(t), 2.0))
    True
    """

    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    prox: Callable[[Array, Array], Array] | None = None
    kind: str = "residual"
    curvature: Callable[[Array], Array] | None = None
    kinks: tuple[float, ...] = ()
    bends: tuple[float, ...] = ()
    name: str = "custom"
    pieces: Pieces | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidArgument("kind", self.kind, "residual or margin")
        for points in ("kinks", "bends"):
            given = np.ravel(getattr(self, points))
            object.__setattr__(self, points, tuple(sorted(float(t) for t in given)))
        t = np.linspace(-6.3, 6.1, 24).reshape(4, 6)
        for part, function in (("value", self.value), ("derivative", self.derivative)):
            with np.errstate(all="ignore"):
                found = np.asarray(function(t), dtype=float)
            if found.shape != t.shape or not np.isfinite(found).all():
                raise InvalidArgument(
                    "loss", f"{self.name} ({part})", "elementwise and finite (numpy functions)"
                )
        slope = np.asarray(self.derivative(t), dtype=float).ravel()
        if (np.diff(slope) < -1e-9 * np.abs(slope).max()).any():
            raise InvalidArgument("loss", self.name, "convex: its derivative must not decrease")
        if self.kinks and self.pieces is None:
            object.__setattr__(self, "pieces", _quadratic_pieces(self))
        if not self.kinks and not self.bends and self.width < 1:
            object.__setattr__(self, "bends", (0.0,))

    def __repr__(self) -> str:
        return f"Loss({self.name})"

    def __reduce__(self) -> Any:
        """Named losses cross process boundaries by name; others as pickle can."""
        try:
            named = loss(self.name) == self
        except InvalidArgument:
            named = False
        return (loss, (self.name,)) if named else object.__reduce__(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Loss):
            return NotImplemented
        if self.pieces is not None and other.pieces is not None:
            return (self.pieces, self.kind) == (other.pieces, other.kind)
        return (self.value, self.derivative, self.kind) == (
            other.value,
            other.derivative,
            other.kind,
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.name))

    @property
    def is_square(self) -> bool:
        """Whether this is ridge regression's loss."""
        return self.kind == "residual" and self.pieces == SQUARE

    @property
    def jumps(self) -> bool:
        """Whether rho' jumps at a kink, so that the proximal map stays there."""
        ends = np.array([both for _, *both in self.flats(np.ones(()))], dtype=float)
        return bool((np.diff(ends, axis=-1) > 1e-9).any()) if ends.size else False

    @cached_property
    def width(self) -> float:
        """Over which rho' changes at its bends, 1 for that of log cosh or more: a power of 1/2,
        for which polynomials fit it on either side."""
        width = 1.0
        for bend in self.bends or (0.0,):
            while width > NARROWEST and not self._fits(bend, width):
                width /= 2
        return width

    def _fits(self, bend: float, width: float) -> bool:
        nodes, between = np.cos(np.pi * (np.arange(FIT) + 0.5) / FIT), np.linspace(-0.99, 0.99, 41)
        for side in (-1.0, 1.0):
            t, there = (bend + side * BEND * width * (1 + x) / 2 for x in (nodes, between))
            if any(t.min() < kink < t.max() for kink in self.kinks):
                continue  # where panels end anyway
            with np.errstate(all="ignore"):
                known, slopes = (np.asarray(self.derivative(x), float) for x in (t, there))
            fit = np.vander(between, FIT) @ np.linalg.solve(np.vander(nodes, FIT), known)
            if np.abs(fit - slopes).max() > BENT * np.ptp(slopes) + EXACT * np.abs(slopes).max():
                return False
        return True

    def __call__(self, y: Array, prediction: Array) -> Array:
        """l(y, f), elementwise."""
        argument = y * prediction if self.kind == "margin" else y - prediction
        return np.asarray(self.value(argument), dtype=float)

    def proximal(self, t0: Array, V: Array, slack: Array | float = 0.0) -> Array:
        """argmin_t (t - t0)^2 / (2V) + rho(t), elementwise, of t0 or another within ``slack``."""
        t0, V = np.broadcast_arrays(np.asarray(t0, dtype=float), np.asarray(V, dtype=float))
        if self.pieces is not None:
            return self.pieces.prox(t0, V)
        if self.prox is not None:
            return np.asarray(self.prox(t0, V), dtype=float)
        return self._newton(t0, V, slack)

    def score(self, t0: Array, V: Array) -> tuple[Array, Array, Array]:
        """g = -rho'(t), its derivative in t0, and t itself.  Eq. (6.1)

        On a flat stretch of the proximal map, t at a kink, g' = -1 / V.
        """
        t = self.proximal(t0, V)
        second = self.second(t)
        slope = -second / (1 + V * second)
        g = -np.asarray(self.derivative(t), dtype=float)
        for kink in self.kinks:
            at = np.abs(t - kink) <= 1e-12 * max(1.0, abs(kink))
            g, slope = np.where(at, (t - t0) / V, g), np.where(at, -1 / V, slope)
        return g, slope, t

    def second(self, t: Array) -> Array:
        """rho''(t), elementwise, away from the kinks."""
        if self.curvature is not None:
            return np.asarray(self.curvature(t), dtype=float)
        step = 1e-5 * np.maximum(1.0, np.abs(t))
        for kink in self.kinks:  # on its own side
            step = np.minimum(step, np.maximum(np.abs(t - kink) / 2, 1e-9))
        change = np.asarray(self.derivative(t + step)) - np.asarray(self.derivative(t - step))
        return np.maximum(change / (2 * step), 0.0)

    def flats(self, V: Array) -> list[tuple[float, Array, Array]]:
        """Each kink k with the interval of t0 that the proximal map takes to it (a point where
        rho' is continuous), ends of V's shape."""
        found = []
        for kink in self.kinks:
            sides = np.array([np.nextafter(kink, -np.inf), np.nextafter(kink, np.inf)])
            left, right = np.asarray(self.derivative(sides), dtype=float)
            found.append((kink, kink + V * left, kink + V * right))
        return found

    def _newton(self, t0: Array, V: Array, slack: Array | float) -> Array:
        """t + V rho'(t) = t0 by Newton's method, or bisection where that does not close in."""
        at_start = np.asarray(self.derivative(t0), dtype=float)
        # rho' grows, so the solution lies between t0 and t0 - V rho'(t0)
        low, high = np.minimum(t0, t0 - V * at_start), np.maximum(t0, t0 - V * at_start)
        for kink, first, last in self.flats(V):
            stays = (first <= t0) & (t0 <= last)
            low, high = np.where(stays, kink, low), np.where(stays, kink, high)
        t = np.clip(t0 - V * at_start / (1 + V * self.second(t0)), low, high)
        last, done = high - low, np.zeros(t.shape, dtype=bool)
        for _ in range(STEPS):
            excess = t - t0 + V * np.asarray(self.derivative(t), dtype=float)
            near = np.abs(excess) < slack
            low, high = np.where(excess < 0, t, low), np.where(excess > 0, t, high)
            step = excess / (1 + V * self.second(t))
            # inside the bracket, and shrinking: Newton's method may run in a circle
            good = (t - step >= low) & (t - step <= high) & (np.abs(step) <= last / 2)
            after = np.where(good, t - step, np.where(near, t, (low + high) / 2))
            after = np.where(done, t, after)
            t, last = after, np.abs(after - t)
            done |= near | (last <= 1e-15 * np.maximum(1.0, np.abs(t)))
            if done.all():
                break
        return np.asarray(t)


def _quadratic_pieces(of: Loss) -> Pieces | None:
    """A loss with kinks as a piecewise quadratic function, or None if it is not one."""
    ends = (of.kinks[0] - FURTHEST, *of.kinks, of.kinks[-1] + FURTHEST)
    coefficients = []
    for low, high in pairwise(ends):
        t = low + (high - low) * SPREAD
        slopes = np.asarray(of.derivative(t), dtype=float)
        values = np.asarray(of.value(t), dtype=float)
        q = float((slopes[-1] - slopes[0]) / (t[-1] - t[0]))
        q = q if abs(q) * (high - low) > EXACT * np.abs(slopes).max() else 0.0
        b = float(slopes[0] - q * t[0])
        a = float(values[0] - t[0] * (b + q * t[0] / 2))
        fits = np.allclose(b + q * t, slopes, EXACT, EXACT)
        if not (fits and np.allclose(a + t * (b + q * t / 2), values, EXACT, EXACT)):
            return None
        coefficients.append((a, b, q))
    return Pieces(of.kinks, tuple(coefficients))


def _logistic_prox(t0: Array, V: Array) -> Array:
    """t - V expit(-t) = t0: Newton on a function that is convex or concave on either side of
    its inflection at 0, from the side where it cannot overshoot."""
    # At t = 0 the left side is -V / 2: beyond it start where t is, before it below.
    t = np.where(t0 >= -V / 2, np.maximum(t0, 0.0), np.minimum(t0 + V, 0.0))
    for _ in range(STEPS):
        pull = expit(-t)
        step = (t - t0 - V * pull) / (1 + V * pull * (1 - pull))
        t = t - step
        if np.abs(step).max(initial=0.0) <= 1e-13 * max(1.0, np.abs(t).max(initial=0.0)):
            break
    return np.asarray(t)


def _logistic_curvature(t: Array) -> Array:
    tail = expit(-np.abs(t))
    return np.asarray(tail * (1 - tail))


def _piecewise(name: str, kind: str, knots: Any, *coefficients: tuple[float, float, float]) -> Loss:
    pieces = Pieces(tuple(knots), coefficients)

    def curvature(t: Array) -> Array:
        return pieces.piece(t)[2]

    return Loss(
        pieces.value,
        pieces.derivative,
        kind=kind,
        curvature=curvature,
        kinks=tuple(knots),
        name=name,
        pieces=pieces,
    )


def huber(delta: float) -> Loss:
    """t^2 / 2 for abs(t) <= delta, delta abs(t) - delta^2 / 2 beyond; prox t0 / (1 + V) or
    t0 -+ V delta."""
    delta = number("loss", delta, 0, FINITE, "huber:DELTA with DELTA positive", open_low=True)
    tail = -(delta**2) / 2
    outside = (tail, -delta, 0.0), (tail, delta, 0.0)
    return _piecewise(
        f"huber:{delta:g}", "residual", (-delta, delta), outside[0], (0.0, 0.0, 1.0), outside[1]
    )


def quantile(level: float) -> Loss:
    """level t for t > 0, (level - 1) t for t < 0; prox shifts t0 towards 0 and stops there."""
    level = number("loss", level, 0, 1, "quantile:Q with 0 < Q < 1", open_low=True)
    if level == 1:
        raise InvalidArgument("loss", "quantile:1", "quantile:Q with 0 < Q < 1")
    return _piecewise(
        f"quantile:{level:g}", "residual", (0.0,), (0.0, level - 1, 0.0), (0.0, level, 0.0)
    )


SQUARE = Pieces((), ((0.0, 0.0, 1.0),))
FAMILIES = {"huber": huber, "quantile": quantile}
LOSSES = {
    # t^2 / 2; prox t0 / (1 + V)
    "square": _piecewise("square", "residual", (), (0.0, 0.0, 1.0)),
    # abs(t); prox soft thresholding
    "absolute": _piecewise("absolute", "residual", (0.0,), (0.0, -1.0, 0.0), (0.0, 1.0, 0.0)),
    # max(0, 1 - t); prox t0 + V, 1 or t0
    "hinge": _piecewise("hinge", "margin", (1.0,), (1.0, -1.0, 0.0), (0.0, 0.0, 0.0)),
    # max(0, 1 - t)^2 / 2; prox (t0 + V) / (1 + V) or t0
    "squared_hinge": _piecewise(
        "squared_hinge", "margin", (1.0,), (0.5, -1.0, 1.0), (0.0, 0.0, 0.0)
    ),
    # log(1 + exp(-t)); prox by Newton
    "logistic": Loss(
        lambda t: np.logaddexp(0, -t),
        lambda t: -expit(-t),
        _logistic_prox,
        kind="margin",
        curvature=_logistic_curvature,
        bends=(0.0,),
        name="logistic",
    ),
}


def loss(spec: Any) -> Loss:
    """The loss meant by a name such as ``"huber:0.2"``, a Loss as it is, or of None the square.

    Raises
    ------
    InvalidArgument
        If nothing fits, or the exponential loss is asked for.

    Examples
    --------
    >>> loss("huber:0.2").proximal(2.0, 1.0).item()
    1.8
    """
    if spec is None:
        return LOSSES["square"]
    if isinstance(spec, Loss):
        return spec
    if isinstance(spec, str):
        name, colon, parameter = spec.strip().partition(":")
        if name == "exponential":
            raise InvalidArgument(
                "loss",
                spec,
                f"one of {FORMS}; the exponential loss is not offered: its derivative grows faster "
                "than the polynomials for which features may be replaced by Gaussian ones, and its "
                "test error is carried by inputs that no sample contains (take logistic, whose "
                "tail for large margins is the same)",
            )
        if name in FAMILIES and colon:
            try:
                value = float(parameter)
            except ValueError:
                raise InvalidArgument("loss", spec, f"one of {FORMS}") from None
            return FAMILIES[name](value)
        if spec.strip() in LOSSES:
            return LOSSES[spec.strip()]
        if colon:
            found = imported(spec.strip(), "loss")
            if isinstance(found, Loss):
                return found
    raise InvalidArgument("loss", spec, f"one of {FORMS}")
