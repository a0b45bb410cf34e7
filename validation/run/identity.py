"""What a cell is, in plain values: equal descriptions mean equal draws and equal errors.

A user's functions may share a name, and may be edited.  They are told apart by their values at
fixed points, near and far.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np

from replica import __version__
from replica.convex import Loss
from replica.errors import InvalidArgument
from replica.problem import Activation, ClassLabels, LabelNoise, Law, MultiIndex

from .cells import METHOD, Experiment

# Where functions are compared: off the zeros of the usual ones, and as far out as the theory's
# quadrature goes, where large steps lead.
FAR = np.geomspace(6.13, 256, 80)
POINTS = np.concatenate([-FAR, np.linspace(-6.07, 5.93, 121), FAR])
Part = Activation | MultiIndex | ClassLabels | Law | LabelNoise | Loss  # told apart by values


def describe_cells(
    experiment: Experiment, indices: Iterable[int], key: str | None = None
) -> dict[int, dict[str, Any]]:
    """Of each cell, by the index of its seed, everything its errors depend on, and the versions of
    library and method.

    The ``key`` stands for functions that do not return the same twice; InvalidArgument if there
    are such functions and no key.
    """
    problem, loss = experiment.problem, experiment.loss
    each = {f.name: getattr(problem, f.name) for f in fields(problem)}
    several = {name: of for name, of in each.items() if isinstance(of, tuple)}  # one for each step
    each |= {f"{name} {t}": part for name, of in several.items() for t, part in enumerate(of)}
    values = {name: _known(name, of, key) for name, of in each.items() if isinstance(of, Part)}
    shared = vars(experiment) | {
        "version": __version__,
        "method": METHOD,
        "problem": experiment.described,
        "kind": type(problem).__name__,
        "values": values,
        "key": key,
        "loss": [loss.name, loss.kind, *_known("loss", loss, key)],
    }
    if not experiment.reuse:
        del shared["reuse"]  # so that cells stored before there was any are found
    if not experiment.samples:
        del shared["samples"]  # the same
    else:
        law = getattr(problem, "inputs", None)
        parts = [problem] if law is None else [problem, law]
        # fields alone: a model that has been solved also keeps what the theory made of them
        given = {f.name: getattr(part, f.name) for part in parts for f in fields(part)}
        given = {name: of for name, of in given.items() if isinstance(of, np.ndarray)}
        given.pop("strata", None)  # of which simulations know nothing
        hashes = {name: hashlib.sha256(of.tobytes()).hexdigest() for name, of in given.items()}
        shared["given"] = hashes
    return {index: shared | {"seed": index} for index in indices}


def _known(name: str, of: Part, key: str | None) -> list[str]:
    """A hash of the values of a part of the problem; nothing where ``key`` has to say it."""
    values = fingerprint(of)
    if values == fingerprint(of):
        return [values]
    if key is None:
        allowed = (
            f"given with a store, as {name} does not return the same twice: any text, another one "
            "whenever what it computes has changed"
        )
        raise InvalidArgument("key", None, allowed)
    return []


def fingerprint(of: Part) -> str:
    """A hash of the values of a function or a law, to nine digits.

    Examples
    --------
    >>> one, two = Activation(np.tanh), Activation(lambda x: np.tanh(x) + 1e-6 * x**2)
    >>> fingerprint(one) == fingerprint(two)
    False
    """
    # nine digits: the last ones differ between mathematical libraries
    with np.errstate(all="ignore"):  # far out functions may overflow
        text = [f"{value:.8e}" for part in _values(of) for value in part]
    return hashlib.sha256(" ".join(text).encode()).hexdigest()[:16]


def _values(of: Part) -> list[Any]:
    """Sequences of numbers that tell one function, or law, from another of its kind."""
    match of:
        case Activation():
            slope: Any = [] if of.derivative is None else of.slope(POINTS)
            exact: Any = () if of.closed_form is None else of.moments(POINTS, 1.0)
            return [of(POINTS), slope, of.kinks, *exact]
        case MultiIndex():
            at = np.random.default_rng(0).standard_normal((of.dimension, POINTS.size))
            return [of(*at), np.ravel(of.function(*(4 * at)))]  # there it may overflow
        case ClassLabels():
            return [np.ravel(of.values)]
        case Law(continuous=None):
            return [of.values, of.fractions]
        case Law():
            tail = np.array([1e-9, 1e-6, 1e-3])
            shares = np.concatenate([tail, np.linspace(0.01, 0.99, 99), 1 - tail])
            return [of.distribution.ppf(shares)]
        case LabelNoise():
            return [of.parameters]
        case Loss():
            curvature: Any = [] if of.curvature is None else of.curvature(POINTS)
            prox: Any = [] if of.prox is None else of.prox(POINTS, np.ones(POINTS.size))
            return [of.value(POINTS), of.derivative(POINTS), curvature, prox, of.kinks]
