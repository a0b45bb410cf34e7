"""InvalidArgument, for bad input: argument, value, what is allowed; guesses at a mistyped name."""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import accumulate
from typing import Any

# Our argument for a name of scikit-learn, torch or of another of our functions.
OUR_NAMES = {
    "covariance": "inputs=GaussianMixture(means=..., covariances=...)",
    "weights": "weights of a FirstLayer",
    "activation": "student",
    "teacher": "target",
    "logistic": "sigmoid",  # activations of MLPClassifier
    "identity": "linear",
    "sigma": "noise, a variance",
    "noise": "GradientStep(..., noise=...)",
    "dimension": "step.network(beta=1, dimension=500), for solve, curves and optima (others are of "
    "the limit, or take step.srf(beta=1, dimension=500))",
    "reuse": "step.network(beta=1, reuse=1), for solve, curves, optima, learned_function and "
    "gradient (others are of fresh samples)",
    "lr": "eta",
    "learning_rate": "eta",
    "width": "beta, p/d",
    "samples": "alpha, n/d",
    "ridge": "lam",
    "lambda_": "lam",
    "penalty": "lam",
    "lam": "alphas, p lam",
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
    "error": "classification_error of classes, else test_error",
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


def shorten_list(names: Iterable[Any], longest: int = 200) -> str:
    """``names`` with commas between them: the first that have ``longest`` characters in all, and
    how many more there are.

    >>> shorten_list("abcd"), shorten_list(["alpha", "beta", "lam"], longest=12)
    ('a, b, c, d', 'alpha, beta and 1 more')
    """
    texts = [shorten(str(name)) for name in names]
    name_ends = accumulate(len(short_name) + 2 for short_name in texts)
    shown = sum(name_end <= max(longest, len(texts[0])) + 2 for name_end in name_ends)
    return ", ".join(texts[:shown]) + f" and {len(texts) - shown} more" * (shown < len(texts))


def meant(name: str, known: Iterable[str]) -> str:
    """The ``known`` name that an unknown ``name`` probably stands for; empty if there is none.

    Examples
    --------
    >>> meant("alpah", ["alpha", "lam"]), meant("lr", ["eta"]), meant("id", ["ID"])
    ('alpha', 'eta', 'ID')
    """
    looked_up = {"covariances": "covariance", "means": "covariance"}.get(name, name)
    known = {known_name.lower(): known_name for known_name in known}
    close_names = get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    our_name = "" if f"{name}s" in known else OUR_NAMES.get(looked_up, "")
    if "error" in known:  # of ProbeCurve
        our_name = our_name.replace("classification_error", "error")
    argument = our_name.split(",")[0]
    if our_name and (argument in known or not argument.isidentifier()):
        return our_name
    return known[close_names[0]] if close_names else ""


def hint(name: Any, known: Collection[str]) -> str:
    """The question whether one of the ``known`` names is meant by an unknown one; empty if none is
    close.

    Examples
    --------
    >>> hint("netwrok", ["srf", "network"]), hint("foo", ["alpha"])
    (' (did you mean network?)', '')
    """
    close_name = meant(name, known) if isinstance(name, str) and name not in known else ""
    return f" (did you mean {close_name}?)" * bool(close_name)


def check_names(
    name: str,
    known: Collection[str],
    given: Iterable[str],
    args: Collection[Any] = (),
    in_order: Collection[str] = (),
) -> None:
    """Raise TypeError for an argument that ``name`` does not have, with the one that was probably
    meant, or for more ``args`` without a name than those that are taken ``in_order``."""
    others = [other for other in known if other != "self"]
    by_name = [f"{other}=..." for other in others if other not in in_order]
    if by_name and len(args) > len(in_order):
        first = ", ".join(one for one in in_order if one != "self")
        all_but = f"all but {first}" if first else "all"
        raise TypeError(f"{name}() takes {all_but} by name: {', '.join(by_name)}")
    for given_name in given:
        if given_name not in known:
            hint = meant(given_name, known)
            names_advice = f"did you mean {hint}?" if hint else ", ".join(others)
            raise TypeError(f"{name}() has no argument {given_name!r}: {names_advice}")


class InvalidArgument(ValueError):
    """An argument outside its range.

    Attributes
    ----------
    name, value, allowed
        The parts of the message "<name> must be <allowed>, got <value>".
    """

    def __init__(self, name: str, value: Any, allowed: str) -> None:
        value_text = shorten(re.sub(r"\n\s*", " ", repr(value)))  # in one line
        super().__init__(f"{name} must be {allowed}, got {value_text}")
        self.name, self.value, self.allowed = name, value, allowed

    def __reduce__(self) -> tuple[Any, ...]:  # crosses process boundaries whole
        return type(self), (self.name, self.value, self.allowed)
