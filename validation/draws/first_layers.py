"""First layers of finite size, drawn and trained by gradient steps: networks, sRFs and conditional
Gaussian models; and given layers.

At input dimension d the width is p = round(beta d).  Inputs and initial rows are invariant under
rotation, so the spikes, or else the target's directions, lie along the first axes without loss of
generality.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.random import Generator, default_rng

from replica.errors import InvalidArgument
from replica.given import FirstLayer
from replica.problem import (
    Activation,
    Law,
    Problem,
    SpikedRandomFeatures,
    check_call,
    check_problem,
    complement_root,
    refuse_options,
)
from replica.steps import GradientStep, model_of
from solvers.results import Array

from .arguments import check_array, seed_sequence, size, streams, whole_number
from .features import GaussianInstance, Instance


@check_call
def draw(
    problem: Problem, *, dimension: int, rng: Any = None, beta: float | None = None
) -> Instance:
    """Draw the first layer of ``problem`` at a finite input dimension.

    Parameters
    ----------
    problem : GradientStep or SpikedRandomFeatures
        The network, which then takes its steps, each on n0 = round(alpha0 d) samples of its
        own; or the sRF, rows sqrt(c) w_i + sum_k r_k u_k with w_i uniform on the unit sphere.
        Groups, readouts and biases have their exact shares of the p neurons, up to rounding.
    dimension : int
        Input dimension d, large enough for all spikes and target directions.
    rng : None, int, SeedSequence or Generator
    beta : float
        Width over input dimension p/d, for a GradientStep; an sRF has its own.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, the step has infinitely many samples, or the student
        has a jump (no gradient).

    Examples
    --------
    >>> from replica import GradientStep
    >>> from validation import draw
    >>> step = GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0)
    >>> draw(step, dimension=50, beta=0.5, rng=0).W.shape
    (25, 50)
    """
    model = spiked_model(problem, beta)  # refuses what the theory does, such as a student's jump
    if problem.schedule:
        drawn_step = cast(GradientStep, problem)
        return list(trajectory(drawn_step, dimension=dimension, beta=beta, rng=rng))[-1]
    neuron_groups = model.geometry
    L = complement_root(neuron_groups.gamma)
    spike_count = neuron_groups.r.shape[1]
    least_dimension = spike_count + L.shape[1]
    d = whole_number("dimension", dimension, max(2, least_dimension), "the input dimension d")
    row_rng = default_rng(seed_sequence(rng).spawn(1)[0])
    W = sphere_rows(size("beta", model.beta, d), d, row_rng)
    spike_axes = np.eye(least_dimension, d)
    spike_directions = neuron_groups.gamma @ spike_axes[:spike_count] + L @ spike_axes[spike_count:]
    group_of_row = shares(np.arange(len(neuron_groups.c)), neuron_groups.fractions, len(W))
    W *= np.sqrt(neuron_groups.c)[group_of_row, None]  # in place: W may fill most of the memory
    W[:, :spike_count] += neuron_groups.r[group_of_row]
    row_bias = neuron_groups.bias[group_of_row]
    label_fields = model.target, model.noise, model.label_noise
    target_directions = spike_directions[: model.target.dimension]
    input_fields = model.inputs, spike_directions, model.feature_noise
    return Instance(W, row_bias, target_directions, model.student, *label_fields, *input_fields)


@check_call
def trajectory(
    problem: GradientStep, *, dimension: int, beta: float | None, rng: Any = None
) -> Iterator[Instance]:
    """The network of ``problem`` at initialisation and after each of its steps.

    Every step has a batch of its own.  Any law of the readout will do, whether or not the
    theory follows the steps.

    Parameters
    ----------
    problem, dimension, rng, beta
        As for :func:`draw`.

    Raises
    ------
    InvalidArgument
        If an argument is out of range or a step has infinitely many samples.
    """
    if beta is None:
        raise InvalidArgument("beta", beta, "given together with a GradientStep (p/d)")
    refuse_options(problem, "alpha0")
    target_dimension = problem.known_dimension
    d = whole_number("dimension", dimension, max(2, target_dimension + 1), "the input dimension d")
    row_rng, input_rng, noise_rng = map(default_rng, streams(rng))
    W = sphere_rows(size("beta", beta, d), d, row_rng)
    if problem.initialisation == "gaussian":
        W *= np.sqrt(row_rng.chisquare(d, (len(W), 1)) / d)
    neuron_bias = row_rng.permutation(spread(problem.bias, len(W)))  # independent of the readout
    label_fields = problem.target, problem.noise, problem.label_noise
    coordinate_axes = np.eye(target_dimension, d)
    directions = coordinate_axes[: problem.target.dimension]
    instance = Instance(W, neuron_bias, directions, problem.student, *label_fields, problem.inputs)
    first_readout = spread(problem.readout, len(W))
    step_fields: Any = {"student": problem.student, "readout": first_readout, "bias": neuron_bias}
    for alpha0, eta in problem.schedule:
        if eta and not np.isfinite(alpha0):
            allowed = "finite in a simulation, where the gradient is a sum over n0 = alpha0 d "
            allowed += "samples (take a large alpha0, or simulate step.srf(beta=...))"
            raise InvalidArgument("alpha0", alpha0, allowed)
    yield instance
    for step_index, (alpha0, eta) in enumerate(problem.schedule):
        decay_factor, law = problem.decay_factor(step_index), problem.labels_at(step_index)
        if eta:
            target_axes = coordinate_axes[: law.target.dimension]
            learner = replace(instance, target=law.target, noise=law.noise, directions=target_axes)
            input_blocks = instance.draw_inputs(size("alpha0", alpha0, d), input_rng)
            batch = ((X, learner.labels(X, noise_rng, component=at)) for X, at in input_blocks)
            W = gradient_step(instance.W, batch, eta=eta, decay_factor=decay_factor, **step_fields)
            instance = replace(instance, W=W)
        elif decay_factor < 1:
            instance = replace(instance, W=decay_factor * instance.W)
        yield instance


def spiked_model(problem: Problem, beta: float | None) -> SpikedRandomFeatures:
    """The sRF that the theory makes of ``problem``; checks both arguments on the way."""
    check_problem(problem)
    if problem.rows is not None:
        allowed_problem = "the GradientStep of it, which is what is drawn, or an sRF"
        raise InvalidArgument("problem", "a network", allowed_problem)
    problem_srf: SpikedRandomFeatures = model_of(problem, beta)
    return problem_srf


def shares(values: Array, fractions: Array, count: int) -> Array:
    """``count`` values in their exact shares, up to rounding, in order.

    Examples
    --------
    >>> shares(np.array([7.0, 9.0]), np.array([0.25, 0.75]), 4).tolist()
    [7.0, 9.0, 9.0, 9.0]
    """
    share_quantiles = (np.arange(count) + 0.5) / count
    quantile_index = np.searchsorted(np.cumsum(fractions), share_quantiles * fractions.sum())
    return values[np.minimum(quantile_index, len(values) - 1)]


def spread(law: Law, count: int) -> Array:
    """``count`` values at equally spaced quantiles of a law, which represent it without noise."""
    if law.continuous is None:
        return shares(np.array(law.values), np.array(law.fractions), count)
    return np.asarray(law.distribution.ppf((np.arange(count) + 0.5) / count), dtype=float)


def sphere_rows(p: int, d: int, rng: Generator) -> Array:
    """p rows uniform on the unit sphere in d dimensions; InvalidArgument if they fit no memory."""
    check_array(p, d)
    sphere = rng.standard_normal((p, d))
    sphere /= np.sqrt(np.einsum("ij,ij->i", sphere, sphere))[:, None]
    return sphere


def gradient_step(
    W: Array,
    batch: Iterable[tuple[Array, Array]],
    *,
    student: Activation,
    eta: float,
    readout: Array | float = 1.0,
    bias: Array | float = 0.0,
    decay_factor: float = 1.0,
) -> Array:
    """Rows (p, d) after one step of rate eta p, for ``readout`` a~_i = sqrt(p) a_i; weight decay
    leaves a factor ``decay_factor`` of the rows.  Eq. (1.1)

    ``batch`` yields the samples in blocks of inputs (b, d) and labels (b,).
    """
    gradient_sum = np.zeros_like(W)
    readout_over_p = np.broadcast_to(readout, len(W)) / len(W)
    batch_rows = 0
    for inputs, labels in batch:
        pre_activations = inputs @ W.T + bias
        residual = labels - student(pre_activations) @ readout_over_p  # f0 = (1/p) sum_i a~_i sigma
        gradient_sum += (residual[:, None] * student.slope(pre_activations)).T @ inputs
        batch_rows += len(inputs)
    gradient_sum *= eta / batch_rows * np.reshape(readout, (-1, 1))
    gradient_sum += decay_factor * W
    return gradient_sum


@check_call
def first_layer(
    step: GradientStep, *, dimension: int, beta: float | None = None, rng: Any = None
) -> FirstLayer:
    """The first layer that a simulated network has after its steps, as a given one.

    Its readout has a theory at that finite size: the noise of the draw, and all effects of a
    finite dimension but those of the readout's own data, are then in theory and simulation alike.
    docs/theory.md 20

    Parameters
    ----------
    step, dimension, beta, rng
        As for :func:`draw`.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or a bias is trained.

    Examples
    --------
    >>> from replica import GradientStep
    >>> from validation import first_layer
    >>> step = GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0)
    >>> layer = first_layer(step, dimension=50, beta=0.5, rng=0)
    >>> layer.weights.shape, layer.directions.shape
    ((25, 50), (50, 1))
    """
    return as_given(spiked_model(step, beta), draw(step, dimension=dimension, beta=beta, rng=rng))


def as_given(model: SpikedRandomFeatures, drawn: Instance) -> FirstLayer:
    """A layer that was ``drawn`` of a problem, whose sRF is ``model``, as a given one.

    Raises
    ------
    InvalidArgument
        If a bias is trained.
    """
    if model.train_bias:
        raise InvalidArgument("train_bias", True, "False: a given first layer has its biases")
    row_weights, target_axes = drawn.W, drawn.directions
    if drawn.inputs is not None and drawn.frame is not None:  # to be the first axes
        frame_rotation = np.linalg.qr(drawn.frame.T, mode="complete")[0]
        frame_rotation[:, : len(drawn.frame)] = drawn.frame.T
        row_weights, target_axes = row_weights @ frame_rotation, target_axes @ frame_rotation
    copied_names = "bias", "student", "target", "inputs", "noise", "label_noise"
    layer_fields: Any = {name: getattr(drawn, name) for name in copied_names}
    layer_fields |= {"directions": target_axes.T, "intercept": model.intercept}
    return FirstLayer(weights=row_weights, **layer_fields)


def instance_of(layer: FirstLayer) -> Instance:
    """The instance of a given layer, which all seeds share."""
    fields = layer.target, layer.noise, layer.label_noise, layer.inputs, None, layer.feature_noise
    return Instance(layer.weights, layer.bias, layer.directions.T, layer.student, *fields)


def draw_gaussian(model: SpikedRandomFeatures, *, dimension: int, rng: Any) -> GaussianInstance:
    """The conditional Gaussian model of ``model``, on the bulk that ``draw`` gives its sRF.

    Parameters and errors are those of :func:`draw`.

    Examples
    --------
    >>> import numpy as np
    >>> from replica import SpikedRandomFeatures
    >>> from validation.draws import draw_gaussian
    >>> model = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.0, gamma=0.9)
    >>> layer = draw_gaussian(model, dimension=30, rng=0)
    >>> X = np.random.default_rng(1).standard_normal((5, 30))
    >>> layer.features(X, rng=np.random.default_rng(2)).shape
    (5, 30)
    """
    drawn_srf = draw(model, dimension=dimension, rng=rng)
    groups = model.geometry
    group_of_row = shares(np.arange(len(groups.c)), groups.fractions, len(drawn_srf.W))
    drawn_srf.W[:, : groups.r.shape[1]] -= groups.r[group_of_row]
    return GaussianInstance(**vars(drawn_srf), model=model, group=group_of_row)
