"""How the neurons of a simulated network turn into the target's directions, step by step."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from replica.steps import GradientStep, after_each_step, first_step
from solvers.results import Array

from ..draw import Instance, seed_sequence, spread, trajectory, whole


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

    @property
    def weights_in_subspace(self) -> Array:
        """Cosines of the rows with the target's subspace, (S + 1, p)."""
        return np.asarray(np.linalg.norm(self.weights, axis=-1))

    @property
    def gradients_in_subspace(self) -> Array:
        """Cosines of the steps with the target's subspace, (S, p)."""
        return np.asarray(np.linalg.norm(self.gradients, axis=-1))


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
    >>> step = GradientStep(student="relu", target="z1 + z1*z2", steps=[(4, 2), (4, 2)])
    >>> found = alignment(step, dimension=100, beta=0.5, rng=0)
    >>> found.weights.shape, found.gradients.shape
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


@dataclass(frozen=True, eq=False)
class Comparison:
    """Simulated cosines beside the predicted ones: S steps, T directions.

    A neuron's cosine counts with the sign of its readout, so that neurons pulled to opposite
    sides do not cancel.

    Attributes
    ----------
    weights, gradients : (seeds, S, T)
        Means over the neurons of each draw.
    predicted_weights, predicted_gradients : (S, T)
        NaN where the theory does not go: with several readouts or biases, after the first step.
    """

    weights: Array
    gradients: Array
    predicted_weights: Array
    predicted_gradients: Array

    def rows(self) -> list[dict[str, Any]]:
        """A row for every step and direction, with standard errors over the seeds."""
        S, T = self.predicted_weights.shape
        rows = []
        for step, direction in np.ndindex(S, T):
            row: dict[str, Any] = {"step": step + 1, "direction": direction + 1}
            for name in ("weights", "gradients"):
                found = getattr(self, name)[:, step, direction]
                row[f"predicted_{name}"] = float(
                    getattr(self, f"predicted_{name}")[step, direction]
                )
                row[f"simulated_{name}"] = float(found.mean())
                row[f"stderr_{name}"] = float(found.std(ddof=1) / np.sqrt(len(found)))
            rows.append(row)
        return rows


def compare_alignment(
    problem: GradientStep,
    *,
    dimension: int,
    beta: float,
    seeds: int,
    rng: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """The neurons of ``seeds`` simulated networks after every step, beside the theory.

    Raises
    ------
    InvalidArgument

    Examples
    --------
    >>> from replica import GradientStep
    >>> step = GradientStep(student="tanh", target="sin", steps=[(4, 1), (4, 1)])
    >>> found = compare_alignment(step, dimension=200, beta=0.5, seeds=2, rng=0)
    >>> bool(abs(found.weights.mean(axis=0) - found.predicted_weights).max() < 0.1)
    True
    """
    seeds = whole("seeds", seeds, 2, "a standard error needs two draws")
    weights, gradients = [], []
    for stream in seed_sequence(rng).spawn(seeds):
        found = alignment(problem, dimension=dimension, beta=beta, rng=stream)
        sign = np.sign(found.readout)[:, None]
        weights.append((sign * found.weights[1:]).mean(axis=1))
        gradients.append((sign * found.gradients).mean(axis=1))
        if progress is not None:
            progress(len(weights), seeds)
    return Comparison(np.array(weights), np.array(gradients), *_predicted(problem))


def _predicted(problem: GradientStep) -> tuple[Array, Array]:
    """Cosines (S, T) of rows and gradients, with the sign of the readout."""
    if len(problem.readout.values) == len(problem.bias.values) == 1:
        sign = np.sign(problem.readout.values[0])
        after = after_each_step(problem)
        weights = np.array([now.weight_cosines for now in after])
        return sign * weights, sign * np.array([now.gradient_cosines for now in after])
    first = first_step(problem)
    unknown = np.full((2, len(problem.schedule), len(first.direction)), np.nan)
    weights, gradients = unknown
    if len(problem.bias.values) == 1:  # every cosine has the sign of readout * h_1 * C_1
        h1 = float(problem.student.moments(problem.bias.values[0], 1.0).first)
        sides = np.sign(h1 * first.direction)
        weights[0] = sides * (first.fractions @ np.abs(first.weights))
        gradients[0] = sides * np.abs(first.gradients).max(axis=0)
    return weights, gradients


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
    """The spike that all rows share, by their mean; for a uniform readout.

    The bulk adds c / p to the squared norm of the mean of p rows, and c to that of a row.
    """
    p = len(layer.W)
    mean, power = layer.W.mean(axis=0), float((layer.W**2).sum(axis=1).mean())
    r = float(np.sqrt(max(0.0, (mean @ mean - power / p) / (1 - 1 / p))))
    return Spike(r, power - r**2, layer.directions @ mean / (r or 1.0))
