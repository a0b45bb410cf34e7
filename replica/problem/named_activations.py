"""Activations by name: the registry, sums of Hermite polynomials, expressions in x, and
``module:function`` where imports are allowed."""

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
from . import moments
from .activation import ACTIVATIONS, Activation
from .checks import MAX_NUMBER, finite_array, flag, number
from .expressions import Expression, function_hint, is_expression
from .kinks import find_kinks


def hermite(coefficients: ArrayLike) -> Activation:
    """The activation sum_k a_k He_k, with probabilists' Hermite polynomials.

    Parameters
    ----------
    coefficients : sequence of float
        The coefficients a_0, a_1, ...

    Examples
    --------
    >>> from replica import hermite
    >>> hermite([0, 1, 0.5])(2.0)
    array(3.5)
    """
    return _hermite(tuple(finite_array("coefficients", coefficients, 1).tolist()))


@lru_cache(maxsize=256)
def _hermite(coefficients: tuple[float, ...]) -> Activation:
    """The activation of a Hermite sum, cached: equal sums are equal."""
    a = np.array(coefficients)
    he_terms = [f"{np.format_float_positional(x, trim='-')}*he{k}" for k, x in enumerate(a) if x]
    # partial functions instead of lambdas, as these can be pickled
    return Activation(
        partial(_hermite_sum, a),
        partial(_hermite_sum, hermite_e.hermeder(a)),
        name="+".join(he_terms).replace("+-", "-") or "0*he0",
        closed_form=partial(moments.hermite_moments, a),
    )


def _hermite_sum(coefficients: Array, x: Array) -> Array:
    """The sum over k of ``coefficients[k]`` He_k(x)."""
    return np.asarray(hermite_e.hermeval(x, coefficients))


_NAMED = (
    # clipped, as cosh(x)^2 overflows beyond 350
    Activation(np.tanh, lambda x: 1 / np.cosh(np.clip(x, -350, 350)) ** 2, name="tanh"),
    Activation(erf, lambda x: 2 / np.sqrt(np.pi) * np.exp(-(x**2)), (), "erf", moments.erf_moments),
    Activation(np.sin, np.cos, name="sin", closed_form=moments.sin_moments),
    Activation(
        lambda x: np.maximum(x, 0),
        lambda x: np.heaviside(x, 0.5),
        (0.0,),
        "relu",
        moments.relu_moments,
    ),
    Activation(np.sign, np.zeros_like, (0.0,), "sign", moments.sign_moments),
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
ACTIVATIONS.update((named.name, named) for named in _NAMED)


class Code(str):
    """Trusted text, as typed on a command line, that may name code to import.

    Other text is never imported, as it may come from anybody.
    """


# sign, factor, degree and divisor of a term such as -0.5*he3/6
_TERM = re.compile(r"([+-]?)(?:(?<![\d.])([\d.]+(?:e[+-]?\d+)?)\*)?he(\d{1,2})(?:/([\d.]+))?")


def activation(
    spec: Any,
    argument: str = "activation",
    kinks: tuple[float, ...] = (),
    *,
    allow_import: bool = False,
) -> Activation:
    """The activation specified by a name, a Hermite sum, an expression or a callable.

    Parameters
    ----------
    spec : str, callable or Activation
        A name (tanh, erf, ...), a sum such as ``"he1+he2/2+0.1*he4"``, an expression in x such as
        ``"relu(x) - 0.1*relu(-x)"``, or any numpy function.
    argument : str
        Name of the argument, for messages.
    kinks : tuple of float
        Points at which a callable, or its derivative, jumps.  By default they are searched for.
    allow_import : bool
        Whether text may be ``"module:function"``, which imports that module and so runs its code.

    Raises
    ------
    InvalidArgument
        If ``spec`` is none of these; the message lists the names.

    Examples
    --------
    >>> from replica import activation
    >>> activation("he1+he2/2").name
    'he1+he2/2'
    """
    kinks = tuple(number("kinks", x, -MAX_NUMBER, MAX_NUMBER, "numbers") for x in np.ravel(kinks))
    if flag("allow_import", allow_import) and isinstance(spec, str):
        spec = Code(spec)
    if isinstance(spec, Activation):
        return spec
    if isinstance(spec, str) and ":" in spec:
        activation_path, imported_function = spec.strip(), import_object(spec, argument)
        if isinstance(imported_function, Activation):
            return imported_function
        if not (callable(imported_function) and isinstance(imported_function, Hashable)):
            raise InvalidArgument(argument, activation_path, "the name of a function")
        return _from_function(imported_function, activation_path, argument, kinks or None)
    if isinstance(spec, str):
        return _by_name(spec.strip(), argument, kinks)
    if callable(spec) and isinstance(spec, Hashable):
        return _from_function(spec, getattr(spec, "__name__", "custom"), argument, kinks or None)
    raise InvalidArgument(argument, spec, "a name, a function or an Activation")


@lru_cache(maxsize=256)
def _from_function(
    function: Callable[[Array], Array], name: str, argument: str, kinks: tuple[float, ...] | None
) -> Activation:
    """The Activation of a function, cached, so that equal problems share their tables.

    If ``kinks`` is None they are searched for.
    """
    try:
        wrapped = Activation(function, kinks=kinks or (), name=name)
        return replace(wrapped, kinks=find_kinks(wrapped)) if kinks is None else wrapped
    except InvalidArgument as error:
        allowed = error.allowed
        if argument == "target" and "required positional argument" in str(error.value):
            allowed = "a function of one array; one of several directions is a MultiIndex, in a "
            allowed += "module, too, such as replica.MultiIndex(function of z1 and z2, dimension=2)"
        raise InvalidArgument(argument, error.value, allowed) from None


@lru_cache(maxsize=256)
def _by_name(activation_text: str, argument: str, kinks_of_x: tuple[float, ...]) -> Activation:
    """The activation whose name, Hermite sum or expression is ``activation_text``."""
    if activation_text in ACTIVATIONS:
        return ACTIVATIONS[activation_text]
    compact_text = activation_text.replace(" ", "")
    hermite_terms = list(_TERM.finditer(compact_text))
    signed = all(term[1] for term in hermite_terms[1:])  # he2he3 is no sum
    if hermite_terms and signed and "".join(term.group() for term in hermite_terms) == compact_text:
        hermite_coefficients = np.zeros(1 + max(int(term[3]) for term in hermite_terms))
        try:
            for sign, term_factor, degree, divisor in (term.groups() for term in hermite_terms):
                constant = float(term_factor or 1) / float(divisor or 1)
                hermite_coefficients[int(degree)] += -constant if sign == "-" else constant
            return replace(hermite(hermite_coefficients), name=compact_text)
        except (ValueError, ZeroDivisionError):
            pass  # he1/0 or 1.2.3*he1, which raise InvalidArgument below
    if is_expression(activation_text):
        x_expression = Expression(activation_text, argument)
        if x_expression.dimension > 1:
            raise InvalidArgument(argument, activation_text, "a function of one variable, x")
        test_x, kinks_of_x = np.append([0.0, 1.0], np.linspace(-30, 30, 200)), x_expression.kinks
        with np.errstate(all="ignore"):
            test_values = x_expression(test_x)
            constant, slope = float(test_values[0]), float(test_values[1] - test_values[0])
            is_affine = np.allclose(test_values, constant + slope * test_x, rtol=1e-13, atol=0)
        if is_affine and not kinks_of_x:
            return replace(hermite([constant, slope]), name=activation_text)  # exactly linear
        return _from_function(x_expression, activation_text, argument, kinks_of_x)
    raise InvalidArgument(argument, activation_text, function_hint(activation_text))


def is_import_path(text: Any) -> bool:
    """True if ``text`` has the form module:name of an object to import."""
    parts = text.strip().split(":") if isinstance(text, str) else ()
    return len(parts) == 2 and all(part.isidentifier() for part in ".".join(parts).split("."))


def import_object(text: str, argument: str) -> Any:
    """The object that ``module:name`` names, also of a module in the working folder.

    Raises
    ------
    InvalidArgument
        If it cannot be imported, or ``text`` is not ``Code``.
    """
    module_name, _, object_name = text.strip().partition(":")
    if not is_import_path(text):
        raise InvalidArgument(argument, text, "importable as module:function")
    if not isinstance(text, Code):
        allowed = "the function itself, or replica.activation(text, allow_import=True) of the name"
        if argument == "loss":
            allowed = "the Loss itself"
        raise InvalidArgument(argument, text, f"{allowed}: text is not imported")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a user's file in the working folder, as `python -m` sees it
    try:
        return getattr(importlib.import_module(module_name), object_name)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise InvalidArgument(argument, text, f"importable as module:function ({error})") from None
