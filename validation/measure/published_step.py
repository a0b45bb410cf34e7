"""Giant step on n samples, and the readout on these: test error against log n / log d.

The published experiment of [D]: the labels lose their estimated mean and linear part,

    y -> y - A - B.x,   A = (1/n) sum y,   B = (1/n) sum y x,

so that a step on n ~ d^2 samples sees the second Hermite tensor of the target instead of the
first (docs/theory.md 11); one step (1.1) of rate eta p is made and the readout fitted by (1.2),
both on these n samples.  Samples are generated anew at each pass over them - linear part, gradient,
features, residuals - so that memory does not grow with n.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import default_rng

from replica.problem import Activation, activation, positive
from replica.problem import target as find_target
from solvers.results import Array

from ..draws import Instance, gaussian_inputs, gradient_step, seed_sequence, whole_number
from ..fit import fit_ridge, predict
from .networks import cosines

PUBLISHED_RATE = 10.0  # the published step has eta p = 10 sqrt(n) sqrt(p)


def linear_part(layer: Instance, inputs: Iterable[Array]) -> tuple[float, Array]:
    """Estimates A = (1/n) sum y and B = (1/n) sum y x, (d,), of the mean and the linear part of the
    target on ``inputs`` in blocks."""
    samples, mean, slope = 0, 0.0, np.zeros(layer.W.shape[1])
    for X in inputs:
        y = layer.targets(X)
        samples, mean, slope = samples + len(X), mean + float(y.sum()), slope + y @ X
    return mean / samples, slope / samples


@dataclass(frozen=True, eq=False)
class SingleStep:
    """Errors and cosines of one draw of the experiment.

    Attributes
    ----------
    test_error : float
        Mean squared error of A + B.x + f(x), A and B as estimated on the training samples.
    published_test_error : float
        The same with A and B estimated on the test samples, as the published code has it.
    train_error : float
        Mean squared training residual.
    cosines : (p, T)
        Cosines of the rows after the step with the target's directions.
    """

    test_error: float
    published_test_error: float
    train_error: float
    cosines: Array


def initial_layer(
    *, student: Any, target: Any, dimension: int, width: int, rng: Any = None
) -> tuple[Instance, Array]:
    """The published initialisation: rows N(0, 1/d) and readouts a~ ~ N(0, 1), (p,).

    Raises
    ------
    InvalidArgument
    """
    sigma: Activation = activation(student, "student")
    teacher = find_target(target)
    T = teacher.dimension
    d = whole_number("dimension", dimension, T + 1, "the input dimension d")
    p = whole_number("width", width, 1, "the number of neurons p")
    rows, readouts = map(default_rng, seed_sequence(rng).spawn(2))
    W = rows.standard_normal((p, d)) / np.sqrt(d)
    layer = Instance(W, np.zeros(p), np.eye(T, d), sigma, teacher, 0.0, None)
    return layer, readouts.standard_normal(p)


def single_step(
    layer: Instance,
    readout: Array,
    *,
    samples: int,
    eta: float | None = None,
    lam: float = 1.0,
    test_samples: int = 100_000,
    preprocess: bool = True,
    rng: Any = None,
) -> SingleStep:
    """Take a giant step and fit the readout on ``samples``, and test it on ``test_samples`` others.

    Parameters
    ----------
    layer, readout
        As of :func:`initial_layer`.
    samples : int
        n.
    eta : float
        Rate over width; the published 10 sqrt(n / p) unless given.
    lam : float
        Ridge penalty.
    preprocess : bool
        Whether the mean and the linear part are removed first.
    rng : None, int, SeedSequence or Generator
        Of the samples.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> from validation.measure import initial_layer, single_step
    >>> layer, readout = initial_layer(
    ...     student="relu", target="he1+he2/2", dimension=40, width=60, rng=0
    ... )
    >>> step = single_step(layer, readout, samples=1600, test_samples=1000, rng=1)
    >>> step.cosines.shape
    (60, 1)
    """
    p, d = layer.W.shape
    penalty = positive("lam", lam)
    n = whole_number("samples", samples, 1, "the number of samples n")
    tests = whole_number("test_samples", test_samples, 1, "inputs a test error is averaged over")
    seeds = seed_sequence(rng).spawn(2)

    def train(width: int = p) -> Iterator[Array]:
        """The training inputs, the same at every pass."""
        return gaussian_inputs(n, d, default_rng(seeds[0]), width=width)

    def test(width: int = p) -> Iterator[Array]:
        """The test inputs."""
        return gaussian_inputs(tests, d, default_rng(seeds[1]), width=width)

    (A, B), own = (
        linear_part(layer, inputs(d)) if preprocess else (0.0, np.zeros(d))
        for inputs in (train, test)
    )
    after = gradient_step(
        layer.W,
        ((X, layer.targets(X) - A - X @ B) for X in train()),
        student=layer.student,
        eta=PUBLISHED_RATE * np.sqrt(n / p) if eta is None else eta,
        readout=readout,
    )
    stepped = replace(layer, W=after)
    fits = fit_ridge(
        lambda: ((stepped.features(X), layer.targets(X) - A - X @ B) for X in train()),
        np.array([n]),
        penalty,
    )
    squares = np.zeros(2)
    for X in test():
        rest = layer.targets(X) - predict(stepped.features(X), fits)[:, 0, 0]
        squares += [((rest - a - X @ b) ** 2).sum() for a, b in ((A, B), own)]
    errors = squares / tests
    return SingleStep(
        float(errors[0]), float(errors[1]), fits.train.item(), cosines(after, layer.directions)
    )
