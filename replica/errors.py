"""InvalidArgument, the one exception for bad input: argument, value and what is allowed; and
guesses at a name that does not exist."""

import re
from collections.abc import Callable, Collection, Iterable, Sized
from dataclasses import Field
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

# Our argument for a name of scikit-learn, torch or of another of our functions.
OUR_NAMES = {
    "covariance": "inputs=GaussianMixture(means=..., covariances=...)",
    "weights": "weights of a FirstLayer",
    "activation": "student",
    "teacher": "target",
    "sigma": "noise, a variance",
    "noise": "GradientStep(..., noise=...)",
    "dimension": "learning_curve(step.network(beta=1), ..., dimension=500)",
    "reuse": "step.network(beta=1, reuse=1)",
    "lr": "eta",
    "learning_rate": "eta",
    "width": "beta, p/d",
    "samples": "alpha, n/d",
    "ridge": "lam",
    "lambda_": "lam",
    "penalty": "lam",
    "alphas": "alpha, n/d, or lam, alpha/p of scikit-learn",
    "C": "lam, 1/(p C)",
    "X": "features",
    "y": "labels",
    "n": "samples",
    "n_samples": "samples",
    "train_sizes": "samples",
    "fit_intercept": "intercept",
    "model": "theory",
    "weight_decay": "lam",
    "accuracy": "classification_error, 1 - accuracy",
}


def install(extra: str) -> str:
    """The command that installs an extra of this library, which no index of packages has.

    >>> install("explore")
    "python3 -m pip install '.[explore]' in the clone"
    """
    return f"python3 -m pip install '.[{extra}]' in the clone"


def shorten(text: str, longest: int = 200) -> str:
    """``text``, or its beginning and its end where it has more than ``longest`` characters."""
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]} ... {text[-(longest // 2) :]} ({len(text)} characters)"


def meant(name: str, known: Iterable[str]) -> str:
    """The ``known`` name that an unknown ``name`` probably stands for; empty if there is none.

    Examples
    --------
    >>> meant("alpah", ["alpha", "lam"]), meant("lr", ["eta"]), meant("foo", ["alpha"])
    ('alpha', 'eta', '')
    """
    plural = {"covariances": "covariance", "means": "covariance"}.get(name, name)
    known = list(known)
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    here = OUR_NAMES.get(plural, "")
    argument = here.split(",")[0]
    if here and (argument in known or not argument.isidentifier()):
        return here
    return close[0] if close else ""


def check_names(
    name: str,
    known: Collection[str],
    given: Iterable[str],
    by_name: Collection[str] = (),
    unnamed: int = 0,
) -> None:
    """Raise TypeError for an argument that ``name`` does not have, with the one that was probably
    meant; and where more arguments came without a name than may, with those ``by_name`` alone."""
    if unnamed > len(known) - len(by_name):
        raise TypeError(f"{name}() takes by name: {', '.join(f'{one}=...' for one in by_name)}")
    for one in given:
        if one not in known:
            hint, others = meant(one, known), [other for other in known if other != "self"]
            advice = f"did you mean {hint}?" if hint else ", ".join(others)
            raise TypeError(f"{name}() has no argument {one!r}: {advice}")


def check_fields(
    cls: type, known: Collection[Field[Any]], args: Sized, given: Iterable[str]
) -> None:
    """Raise TypeError as :func:`check_names` does, for a dataclass with the fields ``known``."""
    by_name = [field.name for field in known if field.kw_only]
    check_names(cls.__name__, [field.name for field in known], given, by_name, len(args))


def answering(function: Function) -> Function:
    """``function``, which answers a call without an argument that it needs by the argument's type,
    and a name that no argument has as :func:`check_names` does; where it takes any names, one that
    others have for an argument of its own."""
    parameters = signature(function).parameters.values()
    takes = [one for one in parameters if one.kind is not one.VAR_KEYWORD]
    known, any_name = [one.name for one in takes], len(takes) < len(parameters)
    by_name = [one.name for one in takes if one.kind is one.KEYWORD_ONLY]

    @wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        unknown = [one for one in given if one not in known]
        if unknown or len(args) > len(known) - len(by_name):
            foreign = [one for one in unknown if OUR_NAMES.get(one, "").split(",")[0] in known]
            refused = foreign if any_name else unknown
            check_names(function.__name__, known, refused, by_name, len(args))
        left = [one.name for one in takes[len(args) :] if one.default is one.empty]
        if missing := [_with_type(one, function) for one in left if one not in given]:
            close = [one for one in unknown if meant(one, left) in left]
            wrong = f", not {close[0]!r}" if close else ""
            if "lam" not in given and "alpha" in given and args and hasattr(args[0], "classes"):
                wrong = ": the penalty is lam, scikit-learn's alpha/p for p features"
            raise TypeError(f"{function.__name__}() needs {' and '.join(missing)}{wrong}")
        return function(*args, **given)

    return cast(Function, checked)


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
