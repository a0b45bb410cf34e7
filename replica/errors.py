"""InvalidArgument, the one exception for bad input: argument, value and what is allowed; and
guesses at a name that does not exist."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# Where what others call by these names is found here.
ELSEWHERE = {
    "covariance": "inputs=GaussianMixture(means=..., covariances=...)",
    "weights": "weights of a FirstLayer",
    "activation": "student",
    "teacher": "target",
    "dimension": "learning_curve(step.network(beta=1), ..., dimension=500)",
    "lr": "eta",
    "learning_rate": "eta",
    "width": "beta, p/d",
    "samples": "alpha, n/d",
    "ridge": "lam",
    "lambda_": "lam",
    "penalty": "lam",
    "model": "theory",
}


def install(extra: str) -> str:
    """The command that installs an extra of this library, which no index of packages has.

    >>> install("explore")
    "python3 -m pip install '.[explore]' in the clone"
    """
    return f"python3 -m pip install '.[{extra}]' in the clone"


def shorten(text: str, most: int = 200) -> str:
    """``text``, or its beginning and its end where it has more than ``most`` characters."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} ... {text[-(most // 2) :]} ({len(text)} characters)"


def meant(name: str, known: Iterable[str]) -> str:
    """The ``known`` name that an unknown ``name`` probably stands for; empty if there is none.

    Examples
    --------
    >>> meant("alpah", ["alpha", "lam"]), meant("lr", ["eta"]), meant("foo", ["alpha"])
    ('alpha', 'eta', '')
    """
    plural = {"covariances": "covariance", "means": "covariance"}.get(name, name)
    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return ELSEWHERE.get(plural, close[0] if close else "")


def unknown_argument(function: str, name: str, known: Iterable[str]) -> str:
    """What to say of an argument that a function or a class has not: the one probably meant."""
    hint = meant(name, known)
    advice = f"did you mean {hint}?" if hint else ", ".join(known)
    return f"{function}() has no argument {name!r}: {advice}"


def explain_calls(function: Function) -> Function:
    """Decorator of a public function: a call without an argument that it needs, or with one that it
    has not, raises TypeError with a sentence on what to give."""

    @wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        try:
            return function(*args, **given)
        except TypeError:
            if wrong := _wrong_call(function, len(args), given):
                raise TypeError(wrong) from None
            raise

    return called  # type: ignore[return-value]


def _wrong_call(function: Callable[..., Any], by_place: int, given: Mapping[str, Any]) -> str:
    """What is wrong with the names in a call; empty if nothing is."""
    takes = [one for one in signature(function).parameters.values() if one.kind != one.VAR_KEYWORD]
    takes_any = len(takes) < len(signature(function).parameters)
    name, known = function.__name__, [one.name for one in takes]
    lacking = [one.name for one in takes[by_place:] if one.default is Parameter.empty]
    missing = [_with_type(one, function) for one in lacking if one not in given]
    unknown = [] if takes_any else [one for one in given if one not in known]
    wrong = [f"{name}() needs {' and '.join(missing)}"] if missing else []
    wrong += [unknown_argument(name, one, known) for one in unknown]
    return "; ".join(wrong)


def _with_type(name: str, function: Callable[..., Any]) -> str:
    """Name of an argument, with its type as the function's docstring states it."""
    stated = re.search(rf"^ *(?:\w+, )*{name}(?:, \w+)* : (.+)$", function.__doc__ or "", re.M)
    return f"{name} ({stated[1]})" if stated else name


class InvalidArgument(ValueError):
    """An argument outside its range.

    Attributes
    ----------
    name, value, allowed
        The parts of the message "<name> must be <allowed>, got <value>".
    """

    def __init__(self, name: str, value: Any, allowed: str) -> None:
        got = shorten(re.sub(r"\n\s*", " ", repr(value)))  # in one line
        super().__init__(f"{name} must be {allowed}, got {got}")
        self.name, self.value, self.allowed = name, value, allowed

    def __reduce__(self) -> tuple[Any, ...]:  # crosses process boundaries whole
        return type(self), (self.name, self.value, self.allowed)
