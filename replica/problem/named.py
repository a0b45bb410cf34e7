"""Activations by name: the registry, sums of Hermite polynomials, expressions in x, and
``module:function`` where text may name code."""

import importlib
import re
import sys
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.polynomial import hermite_e
from numpy.typing import ArrayLike
from scipy.special import erf, expit, ndtr

from solvers.results import Array
from solvers.rules import gaussian_density

from ..errors import InvalidArgument
from . import closed_forms
from .activation import ACTIVATIONS, Activation
from .checks import FINITE, finite_array, flag, number
from .expressions import OWN, Expression, is_expression, near
from .kinks import find_kinks


def hermite(coefficients: ArrayLike) -> Activation:
    """sum_k a_k He_k with probabilists' Hermite polynomials.

    Parameters
    ----------
    coefficients : sequence of float
        a_0, a_1, ...

    Examples
    --------
    >>> from replica import hermite
    >>> hermite([0, 1, 0.5])(2.0)
    array(3.5)
    """
    a = finite_array("coefficients", coefficients, 1)
    terms = [f"{value:g}*he{k}" for k, value in enumerate(a) if value]
    # partial functions rather than lambdas: these can be sent to other processes
    return Activation(
        partial(_series, a),
        partial(_series, hermite_e.hermeder(a)),
        name="+".join(terms).replace("+-", "-") or "0*he0",
        closed_form=partial(closed_forms.hermite_moments, a),
    )


def _series(coefficients: Array, x: Array) -> Array:
    """sum_k ``coefficients[k]`` He_k(x)."""
    return np.asarray(hermite_e.hermeval(x, coefficients))


_NAMED = (
    # beyond 350 the slope would be 0 by an overflow
    Activation(np.tanh, lambda x: 1 / np.cosh(np.clip(x, -350, 350)) ** 2, name="tanh"),
    Activation(
        erf, lambda x: 2 / np.sqrt(np.pi) * np.exp(-(x**2)), (), "erf", closed_forms.erf_moments
    ),
    Activation(np.sin, np.cos, name="sin", closed_form=closed_forms.sin_moments),
    Activation(
        lambda x: np.maximum(x, 0),
        lambda x: np.heaviside(x, 0.5),
        (0.0,),
        "relu",
        closed_forms.relu_moments,
    ),
    Activation(np.sign, np.zeros_like, (0.0,), "sign", closed_forms.sign_moments),
    Activation(expit, lambda x: expit(x) * expit(-x), name="sigmoid"),
    Activation(lambda x: x * ndtr(x), lambda x: ndtr(x) + x * gaussian_density(x), name="gelu"),
    Activation(lambda x: np.logaddexp(0, x), expit, name="softplus"),
    Activation(
        lambda x: np.maximum(x, 0.01 * x),
        lambda x: np.where(x > 0, 1.0, 0.01),
        (0.0,),
        "leaky_relu",
    ),
    Activation(
        lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
        lambda x: np.exp(np.minimum(x, 0)),
        (0.0,),
        "elu",
    ),
    Activation(lambda x: x * expit(x), lambda x: expit(x) * (1 + x * expit(-x)), name="silu"),
    Activation(np.cos, lambda x: -np.sin(x), name="cos"),
    Activation(np.abs, np.sign, (0.0,), "abs"),
    Activation(lambda x: x, np.ones_like, name="linear", closed_form=hermite([0, 1]).closed_form),
)
ACTIVATIONS.update((one.name, one) for one in _NAMED)


class Code(str):
    """Text that may name code to import, as what is typed on a command line may.  Any other text
    may be anybody's, and imports nothing."""


# sign, factor, degree and divisor of a term such as -0.5*he3/6
_TERM = re.compile(r"([+-]?)(?:([\d.]+(?:e[+-]?\d+)?)\*)?he(\d{1,2})(?:/([\d.]+))?")


def activation(
    spec: Any,
    argument: str = "activation",
    kinks: tuple[float, ...] = (),
    *,
    allow_import: bool = False,
) -> Activation:
    """The activation meant by a name, a Hermite sum, an expression or a callable.

    Parameters
    ----------
    spec : str, callable or Activation
        A name (tanh, erf, ...), a sum such as ``"he1+he2/2+0.1*he4"``, an expression in x such as
        ``"relu(x) - 0.1*relu(-x)"``, or any numpy function.
    argument : str
        The argument's name, for the message.
    kinks : tuple of float
        Where a function that is given as such, or imported, or its derivative jumps; unless
        given, they are looked for.
    allow_import : bool
        Whether text may be ``"module:function"``, which imports that module and so runs its code.

    Raises
    ------
    InvalidArgument
        If nothing fits; the message lists the names.

    Examples
    --------
    >>> from replica import activation
    >>> activation("he1+he2/2").name
    '1*he1+0.5*he2'
    """
    kinks = tuple(number("kinks", x, -FINITE, FINITE, "numbers") for x in np.ravel(kinks))
    if flag("allow_import", allow_import) and isinstance(spec, str):
        spec = Code(spec)
    if isinstance(spec, Activation):
        return spec
    if isinstance(spec, str) and ":" in spec:
        text, function = spec.strip(), imported(spec, argument)
        if isinstance(function, Activation):
            return function
        if not (callable(function) and isinstance(function, Hashable)):
            raise InvalidArgument(argument, text, "the name of a function")
        return _wrapped(function, text, argument, kinks or None)
    if isinstance(spec, str):
        return _by_name(spec.strip(), argument, kinks)
    if callable(spec) and isinstance(spec, Hashable):
        return _wrapped(spec, getattr(spec, "__name__", "custom"), argument, kinks or None)
    raise InvalidArgument(argument, spec, "a name, a function or an Activation")


@lru_cache(maxsize=256)
def _wrapped(
    function: Callable[[Array], Array], name: str, argument: str, kinks: tuple[float, ...] | None
) -> Activation:
    """One Activation per function, so that equal problems share their tables; its kinks are looked
    for if they are None."""
    try:
        one = Activation(function, kinks=kinks or (), name=name)
        return replace(one, kinks=find_kinks(one)) if kinks is None else one
    except InvalidArgument as error:
        raise InvalidArgument(argument, error.value, error.allowed) from None


@lru_cache(maxsize=256)
def _by_name(text: str, argument: str, kinks: tuple[float, ...]) -> Activation:
    """The activation of that name, or sum of Hermite polynomials, or expression."""
    if text in ACTIVATIONS:
        return ACTIVATIONS[text]
    compact = text.replace(" ", "")
    terms = list(_TERM.finditer(compact))
    if terms and "".join(term.group() for term in terms) == compact:
        coefficients = np.zeros(1 + max(int(term[3]) for term in terms))
        try:
            for sign, factor, degree, divisor in (term.groups() for term in terms):
                value = float(factor or 1) / float(divisor or 1)
                coefficients[int(degree)] += -value if sign == "-" else value
            return hermite(coefficients)
        except (ValueError, ZeroDivisionError):
            pass  # such as he1/0 or 1.2.3*he1: refused below
    if is_expression(text):
        function = Expression(text, argument)
        if function.dimension > 1:
            raise InvalidArgument(argument, text, "a function of one variable, x")
        x, kinks = np.append([0.0, 1.0], np.linspace(-30, 30, 200)), function.kinks
        with np.errstate(all="ignore"):
            y = function(x)
            value, slope = float(y[0]), float(y[1] - y[0])
            affine = np.allclose(y, value + slope * x, rtol=1e-13, atol=0)
        if affine and not kinks:
            return replace(hermite([value, slope]), name=text)  # exactly linear
        return _wrapped(function, text, argument, kinks)
    raise InvalidArgument(argument, text, _meant(text))


def _meant(text: str) -> str:
    """What is allowed in the place of ``text``: what was probably meant, or all."""
    if text.lower() in ACTIVATIONS:
        return f"{text.lower()}, in small letters"
    if re.search(r"\b[yz]\b", text):
        return "in the variable x, or z1, z2, ... of a target, as in x**2"
    return near(text) or (
        f"one of {', '.join(ACTIVATIONS)}, a Hermite sum such as he1+he2/2, an "
        f"expression such as relu(x) - 0.1*relu(-x), or {OWN}"
    )


def names_code(text: Any) -> bool:
    """Whether ``text`` has the form module:name, of something to import."""
    parts = text.strip().split(":") if isinstance(text, str) else ()
    return len(parts) == 2 and all(part.isidentifier() for part in ".".join(parts).split("."))


def imported(text: str, argument: str) -> Any:
    """What ``module:name`` names; modules in the working folder are found too.

    Raises
    ------
    InvalidArgument
        If it cannot be imported, or is no ``Code``.
    """
    module, _, name = text.strip().partition(":")
    if not names_code(text):
        raise InvalidArgument(argument, text, "importable as module:function")
    if not isinstance(text, Code):
        allowed = "the function itself, or replica.activation(text, allow_import=True) of the name"
        if argument == "loss":
            allowed = "the Loss itself"
        raise InvalidArgument(argument, text, f"{allowed}: text imports nothing")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a user's file in the working folder, as `python -m` sees it
    try:
        return getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise InvalidArgument(argument, text, f"importable as module:function ({error})") from None
