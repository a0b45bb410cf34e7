"""Numbers, arrays and functions that come from outside: checked, or refused with a sentence, that
of an InvalidArgument."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.results import Array

from ..errors import InvalidArgument

FINITE = np.finfo(float).max  # an upper bound that leaves out inf alone


def number(
    name: str, value: Any, low: float, high: float, allowed: str, *, open_low: bool = False
) -> float:
    """``value`` as a float in [low, high] (or (low, high]), or InvalidArgument."""
    try:
        x = float(value)
    except (TypeError, ValueError):
        raise InvalidArgument(name, value, allowed) from None
    if not low <= x <= high or (open_low and x == low):  # catches NaN too
        raise InvalidArgument(name, value, allowed)
    return x


def numbers(name: str, value: Any, low: float, allowed: str, **options: bool) -> Any:
    """A float, or nested tuples of floats, each in range: hashable either way."""
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        return tuple(numbers(name, item, low, allowed, **options) for item in value)
    return number(name, value, low, FINITE, allowed, **options)


def axis(name: str, values: ArrayLike) -> Array:
    """``values`` of a parameter as a one-dimensional array of at least one number."""
    try:
        array = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 1 or not array.size:
        raise InvalidArgument(name, values, "a number or a one-dimensional sequence")
    return array


def positive(name: str, values: ArrayLike) -> Array:
    """``values`` of alpha or lam as a one-dimensional array of allowed ones."""
    allowed = {
        "alpha": "positive and finite (n/d)",
        "lam": "positive and finite: at 0 the ridge problem has no unique minimiser; "
        "take 1e-12 for its limit",
    }[name]
    array = axis(name, values)
    refused = array[~((array > 0) & (array <= FINITE))]  # NaN too
    if refused.size:
        raise InvalidArgument(name, float(refused[0]), allowed)
    return array


def logarithms(name: str, limits: tuple[float, float], count: int) -> Array:
    """Logarithms of ``count`` values from the first of ``limits`` to the second."""
    allowed = "two positive numbers, the smaller first"
    try:
        low, high = limits
    except (TypeError, ValueError):
        raise InvalidArgument(name, limits, allowed) from None
    low = number(name, low, 0, FINITE, allowed, open_low=True)
    high = number(name, high, low, FINITE, allowed, open_low=True)
    return np.linspace(np.log(low), np.log(high), count)


def check_elementwise(
    argument: str, name: str, function: Callable[..., Array], dimension: int = 1
) -> None:
    """Refuse at once a function of ``dimension`` arrays, called ``name``, that would fail, or
    silently broadcast, inside an integral."""
    x = np.linspace(-3.1, 2.9, 12 * dimension).reshape(dimension, 3, 4)
    try:
        with np.errstate(all="ignore"):
            y = np.asarray(function(*x), dtype=float)
    except Exception as error:  # whatever a user's function raises
        seen, allowed = f"{type(error).__name__}: {error}", f"applicable to arrays ({dimension})"
        raise InvalidArgument(argument, f"{name} ({seen})", allowed) from error
    if y.shape != x[0].shape:
        allowed = "elementwise, written with numpy functions, as in function=np.tanh"
        raise InvalidArgument(argument, f"{name} (shape {y.shape} of {x[0].shape})", allowed)
    if not np.isfinite(y).all():
        allowed = "finite on the whole line (try np.where or np.clip)"
        raise InvalidArgument(argument, f"{name} (inf or nan)", allowed)
