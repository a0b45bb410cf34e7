"""Given first layers: those of simulated networks, and what is drawn of any."""

from typing import Any

import numpy as np

from replica.errors import InvalidArgument
from replica.given import FirstLayer
from replica.problem import SpikedRandomFeatures
from replica.steps import GradientStep

from .features import Instance, draw, spiked_model


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
    weights, directions = drawn.W, drawn.directions
    if drawn.inputs is not None and drawn.frame is not None:  # to be the first axes
        turned = np.linalg.qr(drawn.frame.T, mode="complete")[0]
        turned[:, : len(drawn.frame)] = drawn.frame.T
        weights, directions = weights @ turned, directions @ turned
    return FirstLayer(
        weights=weights,
        bias=drawn.bias,
        student=drawn.student,
        target=drawn.target,
        directions=directions.T,
        inputs=drawn.inputs,
        noise=drawn.noise,
        label_noise=drawn.label_noise,
        intercept=model.intercept,
    )


def instance_of(layer: FirstLayer) -> Instance:
    """What is simulated of a given layer: the same of every seed."""
    label = layer.target, layer.noise, layer.label_noise, layer.inputs, None, layer.feature_noise
    return Instance(layer.weights, layer.bias, layer.directions.T, layer.student, *label)
