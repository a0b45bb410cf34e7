"""What a cell is, in plain values: equal descriptions mean equal draws and equal errors.

Functions are told apart by their content, on top of their names: a user's functions may share
a name, and may be edited.  Their values at some points are compared too, for what a function
reads from elsewhere when it is called.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import fields
from functools import singledispatch
from typing import Any

import numpy as np

from replica import __version__
from replica.convex import Loss
from replica.problem import Activation, LabelNoise, Law, MultiIndex, describe

from .cells import METHOD, Experiment
from .content import digest

# Where functions are compared: off the zeros of the usual ones.
FINGERPRINT_POINTS = np.linspace(-6.07, 5.93, 121)


def describe_cells(
    experiment: Experiment, indices: Iterable[int], key: str | None = None
) -> dict[int, dict[str, Any]]:
    """Of each cell, everything its errors depend on, and the versions of library and method.

    Parameters
    ----------
    experiment : Experiment
    indices : iterable of int
        Of the seeds.
    key : str, optional
        What stands for functions of which the content cannot be seen.

    Raises
    ------
    InvalidArgument
        If there are such functions and no key.
    """
    problem = experiment.problem
    values = {
        f.name: fingerprint(getattr(problem, f.name))
        for f in fields(problem)
        if _values.dispatch(type(getattr(problem, f.name))) is not _values.dispatch(object)
    }
    shared = {
        "version": __version__,
        "method": METHOD,
        "problem": describe(problem),
        "kind": type(problem).__name__,
        "values": values,
        "content": [digest(problem, key), digest(experiment.loss, key)],
        "key": key,
        "simulated": str(experiment.simulated),
        "beta": experiment.beta,
        "dimension": experiment.dimension,
        "alpha": list(experiment.alpha),
        "lam": list(experiment.lam),
        "test_samples": experiment.test_samples,
        "entropy": experiment.entropy,
        "spawn_key": list(experiment.spawn_key),
        "pool_size": experiment.pool_size,
        "device": experiment.device,
        "loss": [experiment.loss.name, experiment.loss.kind, fingerprint(experiment.loss)],
    }
    return {index: shared | {"seed": index} for index in indices}


def fingerprint(of: Activation | MultiIndex | Law | LabelNoise | Loss) -> str:
    """A hash of the values of a function or a law, to nine digits.

    Examples
    --------
    >>> one, two = Activation(np.tanh), Activation(lambda x: np.tanh(x) + 1e-6 * x**2)
    >>> fingerprint(one) == fingerprint(two)
    False
    """
    # nine digits: the last ones differ between mathematical libraries
    text = [f"{value:.8e}" for part in _values(of) for value in part]
    return hashlib.sha256(" ".join(text).encode()).hexdigest()[:16]


@singledispatch
def _values(of: Any) -> list[Any]:
    """Sequences of numbers that tell one function, or law, from another of its kind."""
    raise TypeError(f"no values are known for {of!r}")


@_values.register
def _(of: Activation) -> list[Any]:
    slope: Any = [] if of.derivative is None else of.slope(FINGERPRINT_POINTS)
    return [of(FINGERPRINT_POINTS), slope, of.kinks]


@_values.register
def _(of: MultiIndex) -> list[Any]:
    at = np.random.default_rng(0).standard_normal((of.dimension, FINGERPRINT_POINTS.size))
    return [of(*at)]


@_values.register
def _(of: Law) -> list[Any]:
    if of.continuous is None:
        return [of.values, of.fractions]
    return [of.distribution.ppf(np.linspace(0.01, 0.99, 99))]


@_values.register
def _(of: LabelNoise) -> list[Any]:
    return [of.parameters]


@_values.register
def _(of: Loss) -> list[Any]:
    return [of.value(FINGERPRINT_POINTS), of.derivative(FINGERPRINT_POINTS), of.kinks]
