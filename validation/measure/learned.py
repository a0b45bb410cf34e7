"""The function that a simulated network has learned along its spike."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import default_rng
from numpy.typing import ArrayLike

from replica.errors import InvalidArgument
from replica.problem import Problem, axis, positive
from solvers.results import Array

from ..draws import Instance, draw, seed_count, seed_sequence, size, spiked_model, whole
from ..fit import Blocks, fit_readout, predict


@dataclass(frozen=True, eq=False)
class MeasuredFunction:
    """Output of trained networks at given projections on the spike.

    Attributes
    ----------
    kappa : (N,)
    mean, variance : (S, N)
        Over inputs of that projection, for each of S draws.
    """

    kappa: Array
    mean: Array
    variance: Array


def measured_function(
    problem: Problem,
    *,
    alpha: float,
    lam: float,
    kappa: ArrayLike,
    dimension: int,
    seeds: int,
    rng: Any = None,
    beta: float | None = None,
    inputs: int | None = None,
) -> MeasuredFunction:
    """Mean and variance of trained networks' outputs over inputs x with u.x = kappa.

    Parameters
    ----------
    problem : GradientStep or SpikedRandomFeatures
        With one spike; of a step, u is the direction of the mean row.
    alpha, lam : float
        As in the theory; n is rounded.
    kappa : array (N,)
        Projections, imposed on inputs that are Gaussian otherwise.
    dimension : int
        Input dimension d.
    seeds : int
        Independent draws of everything.
    rng : None, int, SeedSequence or Generator
    beta : float
        Width over input dimension p/d, for a GradientStep; an sRF has its own.
    inputs : int
        Inputs at each kappa, 2 d unless given.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or there are several spikes.

    Examples
    --------
    >>> from replica import SpikedRandomFeatures
    >>> from validation.measure import measured_function
    >>> model = SpikedRandomFeatures(student="erf", target="sin", r=1.0, c=1.0, gamma=0.9)
    >>> sizes = dict(dimension=50, seeds=2)
    >>> learned = measured_function(model, alpha=1, lam=0.1, kappa=[0, 1], rng=0, **sizes)
    >>> learned.mean.shape
    (2, 2)
    """
    model = spiked_model(problem, beta)
    if model.geometry.r.shape[1] > 1:
        raise InvalidArgument("problem", problem, "of one spike")
    places = axis("kappa", kappa)
    (ratio,), penalty = positive("alpha", [alpha]), positive("lam", [lam])
    d = whole("dimension", dimension, 2, "the input dimension d")
    seeds = seed_count(seeds)
    count = whole("inputs", 2 * d if inputs is None else inputs, 2, "for a variance")
    mean, variance = np.empty((2, seeds, places.size))
    for i, seed in enumerate(seed_sequence(rng).spawn(seeds)):
        layer, *streams = seed.spawn(4)
        data, noise, test = map(default_rng, streams)
        instance = draw(problem, dimension=d, rng=layer, beta=beta)
        X = data.standard_normal((size("alpha", float(ratio), d), d))
        fits = fit_readout(
            _design(instance, X, instance.labels(X, noise)),
            np.array([len(X)]),
            penalty,
            intercept=model.intercept,
            train_bias=model.train_bias,
        )
        u = _spike(problem, instance)
        for j, place in enumerate(places):
            X = test.standard_normal((count, d))
            X += np.outer(place - X @ u, u)
            output = predict(instance.features(X, fits.bias.item()), fits)
            mean[i, j], variance[i, j] = output.mean(), output.var(ddof=1)
    return MeasuredFunction(places, mean, variance)


def _design(instance: Instance, X: Array, y: Array) -> Callable[[float], Blocks]:
    """The features of X (n, d) and the labels y as one block, as a function of the bias."""
    return lambda bias: lambda: [(instance.features(X, bias), y)]


def _spike(problem: Problem, instance: Instance) -> Array:
    """The direction u (d,) of the spike.

    The first axis of an sRF; of a network, along its mean row, which the step has moved by r u,
    and on the side of the target.
    """
    if not problem.schedule:
        return np.eye(1, instance.W.shape[1])[0]
    u = instance.W.mean(axis=0)
    u = u / np.linalg.norm(u)
    return np.asarray(u * np.sign(u @ instance.directions[0]))
