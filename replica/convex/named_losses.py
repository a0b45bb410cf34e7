"""Named losses: square, Huber, quantile, hinge, logistic and others.  docs/theory.md 6"""

import copyreg
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import expit, wrightomega

from solvers.piecewise import Pieces
from solvers.results import Array

from ..errors import InvalidArgument
from ..problem import FINITE, import_object, is_import_path, number
from .losses import SQUARE_PIECES, Loss


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
    delta = number("loss", delta, 0, FINITE, "huber:DELTA with DELTA positive", open_low=True)
    left, right = ((-(delta**2) / 2, slope, 0.0) for slope in (-delta, delta))
    name, kinks = f"huber:{delta:g}", (-delta, delta)
    return _piecewise(name, "residual", kinks, left, (0.0, 0.0, 1.0), right)


@lru_cache
def quantile(q: float) -> Loss:
    """Quantile loss: q t for t > 0, (q - 1) t for t < 0; prox shifts t0 towards 0 and stops
    there."""
    q = number("loss", q, 0, 1, "quantile:Q with 0 < Q < 1", open_low=True)
    if q == 1:
        raise InvalidArgument("loss", "quantile:1", "quantile:Q with 0 < Q < 1")
    return _piecewise(f"quantile:{q:g}", "residual", (0.0,), (0.0, q - 1, 0.0), (0.0, q, 0.0))


def _logistic_prox(t0: Array, V: Array) -> Array:
    """Proximal map of the logistic loss, t = t0 + V / (1 + exp(t)), by Newton's method.

    For t > 0 it starts from the solution with exp(-t) instead of 1 / (1 + exp(t)), whose error is
    below 1.  The equation is symmetric under t -> -t with t0 -> -t0 - V.
    """
    positive = 2 * t0 + V >= 0
    start = np.where(positive, t0, -t0 - V)
    t = start + wrightomega(np.log(np.maximum(V, 1e-300)) - start)
    for _ in range(5):  # the last changes t by rounding
        probability = expit(-t)
        t -= (t - start - V * probability) / (1 + V * probability * (1 - probability))
    return np.where(positive, t, -t)


def _logistic_curvature(t: Array) -> Array:
    """Second derivative 1 / (2 cosh(t / 2))^2 of the logistic loss, by one exponential."""
    exponential = np.exp(-np.abs(t))
    return np.asarray(exponential / (1 + exponential) ** 2)


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
        _logistic_prox,
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
    text = spec.strip() if isinstance(spec, str) else ""
    name, _, parameter = text.partition(":")
    usual = USUAL_NAMES.get(text.lower())
    if text in LOSSES:
        return LOSSES[text]
    allowed = (
        "one of square, huber:DELTA, absolute, quantile:Q, logistic, hinge, squared_hinge, or a "
        "replica.Loss as it is, or on the command line as module:name"
    )
    if name == "exponential":
        allowed += (
            "; the exponential loss is not offered: its derivative grows faster than the "
            "polynomials for which features may be replaced by Gaussian ones, and its test error "
            "is carried by inputs that no sample contains (take logistic, whose tail for large "
            "margins is the same)"
        )
    elif name in ("multinomial", "softmax", "cross_entropy"):
        allowed += (
            "; the multinomial loss of several classes is not offered (take logistic for each "
            "class against the rest, labels == c)"
        )
    elif name in PARAMETER_LOSSES:
        try:
            value = float(parameter)
        except ValueError:
            raise InvalidArgument("loss", spec, allowed) from None
        return PARAMETER_LOSSES[name](value)
    elif usual:
        allowed = f"{usual}, as it is called here"
    elif is_import_path(text) and isinstance(named := import_object(spec, "loss"), Loss):
        return named
    raise InvalidArgument("loss", spec, allowed)


def _reduce_by_name(instance: Loss) -> Any:
    """Pickle a named loss by its name, any other loss by default."""
    with suppress(InvalidArgument):
        if loss(instance.name) == instance:
            return loss, (instance.name,)
    return object.__reduce__(instance)


copyreg.pickle(Loss, _reduce_by_name)
