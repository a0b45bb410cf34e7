"""How the neurons of a simulated network turn into the target's directions, step by step."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from replica.steps import GradientStep
from solvers.results import Array

from ..draws import Instance, spread, trajectory


@dataclass(frozen=True, eq=False)
class Alignment:
    """Cosines of neurons with the target's directions, for S steps, p neurons, T directions.

    Attributes
    ----------
    readout : (p,)
        a~_i of the neurons.
    weights : (S + 1, p, T)
        Of the rows, at initialisation and after every step.
    gradients : (S, p, T)
        Of what every step adds to the rows; 0 where it adds nothing.
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
    weights, gradients, before = [], [], None
    for layer in trajectory(problem, dimension=dimension, beta=beta, rng=rng):
        weights.append(cosines(layer.W, layer.directions))
        if before is not None:
            gradients.append(cosines(layer.W - before, layer.directions))
        before = layer.W
    return Alignment(
        spread(problem.readout, weights[0].shape[0]), np.array(weights), np.array(gradients)
    )


def cosines(rows: Array, directions: Array) -> Array:
    """Cosines (p, T) of ``rows`` (p, d) with orthonormal ``directions`` (T, d); 0 for no row.

    Examples
    --------
    >>> cosines(np.array([[3.0, 4.0, 0.0]]), np.eye(2, 3)).tolist()
    [[0.6, 0.8]]
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows @ directions.T / np.where(lengths > 0, lengths, 1.0))


def spike(layer: Instance) -> Spike:
    """Estimates of the spike that all rows share, from their mean; for equal readouts.

    The bulk adds c / p to the squared norm of the mean of p rows, and c to that of a row.
    """
    p = len(layer.W)
    mean, power = layer.W.mean(axis=0), float((layer.W**2).sum(axis=1).mean())
    r = float(np.sqrt(max(0.0, (mean @ mean - power / p) / (1 - 1 / p))))
    return Spike(r, power - r**2, layer.directions @ mean / (r or 1.0))
