"""Inside simulated networks: function along the spike, alignment, eigenvalues; a published step.

The published experiment, of [D], is a giant step on n samples and the readout on these.  The labels
lose their estimated mean and linear part,

    y -> y - A - B.x,   A = (1/n) sum y,   B = (1/n) sum y x,

so that a step on n ~ d^2 samples sees the second Hermite tensor of the target instead of the
first (docs/theory.md 11); one step (1.1) of rate eta p is made and the readout fitted by (1.2),
both on these n samples.  Samples are generated anew at each pass over them - linear part, gradient,
features, residuals - so that memory does not grow with n.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import ArrayLike

from replica.errors import InvalidArgument
from replica.fit import Blocks, fit_readout, fit_ridge, predict
from replica.problem import (
    Activation,
    Problem,
    SpikedRandomFeatures,
    activation,
    axis,
    positive,
    unit_vector,
)
from replica.problem import target as find_target
from replica.steps import GradientStep
from solvers.results import Array

from . import draws


@dataclass(frozen=True, eq=False)
class Alignment:
    """Cosines of neurons with the target's directions, for S steps, p neurons, T directions.

    Attributes
    ----------
    readout : (p,)
        a~_i of the neurons.
    weights : (S + 1, p, T)
        Cosines of the rows, at initialisation and after every step.
    gradients : (S, p, T)
        Cosines of what every step adds to the rows; 0 where it adds nothing.
    """

    readout: Array
    weights: Array
    gradients: Array


class Spike(NamedTuple):
    """Estimates of the shared spike of a network's rows: r, bulk variance c, gamma (T,)."""

    r: float
    c: float
    gamma: Array


def alignment(problem: GradientStep, *, dimension: int, beta: float, rng: Any = None) -> Alignment:
    """Follow the neurons of one simulated network through its steps.

    Parameters
    ----------
    problem, dimension, beta, rng
        As for :func:`validation.trajectory`; any width and any law of the readout.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> from replica import GradientStep
    >>> from validation.measure import alignment
    >>> step = GradientStep(student="relu", target="z1 + z1*z2", steps=[(4, 2), (4, 2)])
    >>> cosines = alignment(step, dimension=100, beta=0.5, rng=0)
    >>> cosines.weights.shape, cosines.gradients.shape
    ((3, 50, 2), (2, 50, 2))
    """
    weights, gradients, previous_rows = [], [], None
    for layer in draws.trajectory(problem, dimension=dimension, beta=beta, rng=rng):
        weights.append(cosines(layer.W, layer.directions))
        if previous_rows is not None:
            gradients.append(cosines(layer.W - previous_rows, layer.directions))
        previous_rows = layer.W
    return Alignment(
        draws.spread(problem.readout, weights[0].shape[0]), np.array(weights), np.array(gradients)
    )


def cosines(rows: Array, directions: Array) -> Array:
    """Cosines (p, T) of ``rows`` (p, d) with orthonormal ``directions`` (T, d); 0 for no row.

    Examples
    --------
    >>> cosines(np.array([[3.0, 4.0, 0.0]]), np.eye(2, 3)).tolist()
    [[0.6, 0.8]]
    """
    row_lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows @ directions.T / np.where(row_lengths > 0, row_lengths, 1.0))


def spike(layer: draws.Instance) -> Spike:
    """Estimates of the spike that all rows share, from their mean; for equal readouts.

    The bulk adds c / p to the squared norm of the mean of p rows, and c to that of a row.
    """
    p = len(layer.W)
    mean_row, mean_square_row = layer.W.mean(axis=0), float((layer.W**2).sum(axis=1).mean())
    r = float(np.sqrt(max(0.0, (mean_row @ mean_row - mean_square_row / p) / (1 - 1 / p))))
    return Spike(r, mean_square_row - r**2, layer.directions @ mean_row / (r or 1.0))


def eigenvalues(
    problem: Problem,
    *,
    alpha: float,
    dimension: int,
    seeds: int = 1,
    rng: Any = None,
    beta: float | None = None,
) -> Array:
    """Eigenvalues of Phi^T Phi / n, (seeds, p), in increasing order, for fresh draws of all.

    Parameters
    ----------
    problem : GradientStep or SpikedRandomFeatures
        The network after its step, or the sRF.
    alpha : float
        Samples over input dimension, n/d; n is rounded.
    dimension : int
        Input dimension d.
    seeds : int
        Independent draws.
    rng : None, int, SeedSequence or Generator
    beta : float
        Width over input dimension p/d, for a GradientStep; an sRF has its own.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or the problem cannot be simulated.

    Examples
    --------
    >>> from replica import SpikedRandomFeatures
    >>> from validation.measure import eigenvalues
    >>> model = SpikedRandomFeatures(student="erf", target="sin", r=1.0, c=1.0, gamma=0.9)
    >>> values = eigenvalues(model, alpha=0.5, dimension=40, seeds=2, rng=0)
    >>> values.shape, int((values < 1e-12).sum(axis=1)[0])
    ((2, 40), 20)
    """
    draws.spiked_model(problem, beta)
    (alpha_value,) = positive("alpha", [alpha])
    d = draws.whole_number("dimension", dimension, 2, "the input dimension d")
    n = draws.size("alpha", float(alpha_value), d)
    draws.check_array(n, d)
    seeds = draws.seed_count(seeds)
    layer_spectra = []
    for seed in draws.seed_sequence(rng).spawn(seeds):
        layer_seed, input_seed = seed.spawn(2)
        instance = draws.draw(problem, dimension=d, rng=layer_seed, beta=beta)
        input_rng = default_rng(input_seed)
        X = np.concatenate([X for X, _ in instance.draw_inputs(n, input_rng)])
        layer_features = instance.features(X, rng=input_rng)
        values = np.linalg.svd(layer_features, compute_uv=False)[::-1] ** 2 / n
        layer_spectra.append(np.pad(values, (layer_features.shape[1] - len(values), 0)))
    return np.array(layer_spectra)


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
    direction: ArrayLike | None = None,
) -> MeasuredFunction:
    """Mean and variance of trained networks' outputs over inputs x with u.x = kappa.

    Parameters
    ----------
    problem : GradientStep or SpikedRandomFeatures
        Unless a direction is given, with one spike u; of a step, along the mean row.
    alpha, lam : float
        As in the theory; n is rounded.
    kappa : array (N,)
        Projections, imposed on inputs of the problem's law.
    dimension : int
        Input dimension d.
    seeds : int
        Independent draws of everything.
    rng : None, int, SeedSequence or Generator
    beta : float
        Width over input dimension p/d, for a GradientStep; an sRF has its own.
    inputs : int
        Inputs at each kappa, 2 d unless given.
    direction : array (D,)
        u in the coordinates of the target's arguments or, with ``inputs``, of these, as
        :func:`replica.learned_function` takes it.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or there are several spikes and no direction.

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
    model = draws.spiked_model(problem, beta)
    if direction is not None:
        u_in_frame = unit_vector("direction", direction, len(model.components.basis))
    elif model.geometry.r.shape[1] > 1:
        raise InvalidArgument("problem", problem, "of one spike, unless a direction is given")
    projections = axis("kappa", kappa)
    (alpha_value,), lam_value = positive("alpha", [alpha]), positive("lam", [lam])
    d = draws.whole_number("dimension", dimension, 2, "the input dimension d")
    seeds = draws.seed_count(seeds)
    count = draws.whole_number("inputs", 2 * d if inputs is None else inputs, 2, "for a variance")
    output_mean, output_variance = np.empty((2, seeds, projections.size))
    for draw_index, seed in enumerate(draws.seed_sequence(rng).spawn(seeds)):
        layer_seed, *seed_streams, feature_seed = seed.spawn(5)
        train_rng, noise_rng, test_rng = map(default_rng, seed_streams)
        instance = draws.draw(problem, dimension=d, rng=layer_seed, beta=beta)
        X, component = _inputs(instance, draws.size("alpha", float(alpha_value), d), train_rng)
        readout_fits = fit_readout(
            _design(instance, X, instance.labels(X, noise_rng, component), feature_seed),
            np.array([len(X)]),
            lam_value,
            intercept=model.intercept,
            train_bias=model.train_bias,
        )
        u = _spike(problem, model, instance) if direction is None else u_in_frame @ _frame(instance)
        for kappa_index, projection in enumerate(projections):
            X, input_weights = _given(projection, u, instance, *_inputs(instance, count, test_rng))
            test_features = instance.features(X, readout_fits.bias.item(), test_rng)
            outputs = predict(test_features, readout_fits).ravel()
            output_mean[draw_index, kappa_index] = np.average(outputs, weights=input_weights)
            output_variance[draw_index, kappa_index] = np.cov(outputs, aweights=input_weights)
    return MeasuredFunction(projections, output_mean, output_variance)


def _inputs(instance: draws.Instance, samples: int, rng: Generator) -> tuple[Array, Array]:
    """Inputs (n, d) of the problem's law, and their components."""
    X, components_of_X = zip(*instance.draw_inputs(samples, rng), strict=True)
    return np.concatenate(X), np.concatenate(components_of_X)


def _given(
    place: float, u: Array, instance: draws.Instance, X: Array, component: Array
) -> tuple[Array, Array]:
    """Inputs (n, d) moved to the projection ``place`` on u, each as others of its component are
    distributed there, and their weights, as components are likely there."""
    along, component_centres = u[None], np.zeros(1)
    if instance.inputs is not None:
        frame = _frame(instance)
        component_centres = instance.inputs.means @ (frame @ u)
        excess_cov = instance.inputs.each_covariance - np.eye(len(frame))
        along = u + (excess_cov @ (frame @ u)) @ frame  # the covariances of the inputs with u.x
    variance = np.maximum(along @ u, 1e-18)  # a component may be known along u
    X = X + ((place - X @ u) / variance[component])[:, None] * along[component]
    log_likelihood = -((place - component_centres) ** 2) / (2 * variance) - np.log(variance) / 2
    return X, np.exp(log_likelihood - log_likelihood.max())[component]


def _design(
    instance: draws.Instance, X: Array, y: Array, seed: SeedSequence
) -> Callable[[float], Blocks]:
    """The features of X (n, d) and the labels y as one block, as a function of the bias; each pass
    draws the same noise of the features from the ``seed``."""
    return lambda bias: lambda: [(instance.features(X, bias, default_rng(seed)), y)]


def _frame(instance: draws.Instance) -> Array:
    """The directions (D, d) of the coordinates that have a law of their own, or of the target."""
    if instance.inputs is None:
        return instance.directions
    D, d = instance.inputs.dimension, instance.W.shape[1]
    return np.eye(D, d) if instance.frame is None else instance.frame


def _spike(problem: Problem, model: SpikedRandomFeatures, instance: draws.Instance) -> Array:
    """The direction u (d,) of the spike.

    The first axis of an sRF; of a network, along its mean row, which the step has moved by r u,
    and on the side that the theory has.
    """
    if not problem.schedule:
        return np.eye(1, instance.W.shape[1])[0]
    mean_row = instance.W.mean(axis=0)
    side_of_theory = mean_row @ (model.geometry.gamma[:, 0] @ _frame(instance))
    return np.asarray(mean_row / np.linalg.norm(mean_row) * (-1.0 if side_of_theory < 0 else 1.0))


PUBLISHED_RATE = 10.0  # the published step has eta p = 10 sqrt(n) sqrt(p)


def linear_part(layer: draws.Instance, inputs: Iterable[Array]) -> tuple[float, Array]:
    """Estimates A = (1/n) sum y and B = (1/n) sum y x, (d,), of the mean and the linear part of the
    target on ``inputs`` in blocks."""
    samples, mean, linear_sum = 0, 0.0, np.zeros(layer.W.shape[1])
    for X in inputs:
        y = layer.targets(X)
        samples, mean, linear_sum = samples + len(X), mean + float(y.sum()), linear_sum + y @ X
    return mean / samples, linear_sum / samples


@dataclass(frozen=True, eq=False)
class SingleStep:
    """Errors and cosines of one draw of the experiment.

    Attributes
    ----------
    test_error : float
        Mean squared error of A + B.x + f(x), A and B as estimated on the training samples.
    published_test_error : float
        ``test_error`` with A and B estimated on the test samples, as in the published code.
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
) -> tuple[draws.Instance, Array]:
    """The published initialisation: rows N(0, 1/d) and readouts a~ ~ N(0, 1), (p,).

    Raises
    ------
    InvalidArgument
    """
    sigma: Activation = activation(student, "student")
    teacher = find_target(target)
    T = teacher.dimension
    d = draws.whole_number("dimension", dimension, T + 1, "the input dimension d")
    p = draws.whole_number("width", width, 1, "the number of neurons p")
    row_rng, readout_rng = map(default_rng, draws.seed_sequence(rng).spawn(2))
    W = row_rng.standard_normal((p, d)) / np.sqrt(d)
    drawn_layer = draws.Instance(W, np.zeros(p), np.eye(T, d), sigma, teacher, 0.0, None)
    return drawn_layer, readout_rng.standard_normal(p)


def single_step(
    layer: draws.Instance,
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
        Seed of the samples.

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
    lam_value = positive("lam", lam)
    n = draws.whole_number("samples", samples, 1, "the number of samples n")
    test_count = draws.whole_number(
        "test_samples", test_samples, 1, "inputs a test error is averaged over"
    )
    stream_seeds = draws.seed_sequence(rng).spawn(2)

    def inputs(sample_count: int, sample_seed: SeedSequence) -> Iterator[Array]:
        """Inputs in blocks, the same at every pass."""
        return (X for X, _ in layer.draw_inputs(sample_count, default_rng(sample_seed)))

    train, test = partial(inputs, n, stream_seeds[0]), partial(inputs, test_count, stream_seeds[1])
    (A, B), test_linear_part = (
        linear_part(layer, samples_of()) if preprocess else (0.0, np.zeros(d))
        for samples_of in (train, test)
    )
    rows_after = draws.gradient_step(
        layer.W,
        ((X, layer.targets(X) - A - X @ B) for X in train()),
        student=layer.student,
        eta=PUBLISHED_RATE * np.sqrt(n / p) if eta is None else eta,
        readout=readout,
    )
    stepped_layer = replace(layer, W=rows_after)
    fits = fit_ridge(
        lambda: ((stepped_layer.features(X), layer.targets(X) - A - X @ B) for X in train()),
        np.array([n]),
        lam_value,
    )
    squares = np.zeros(2)
    for X in test():
        test_residual = layer.targets(X) - predict(stepped_layer.features(X), fits)[:, 0, 0]
        squares += [((test_residual - a - X @ b) ** 2).sum() for a, b in ((A, B), test_linear_part)]
    errors = squares / test_count
    return SingleStep(
        float(errors[0]), float(errors[1]), fits.train.item(), cosines(rows_after, layer.directions)
    )
