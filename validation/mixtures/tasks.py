"""Tasks: inputs, and labels of a direction or of the component that an input is from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from replica.errors import InvalidArgument
from replica.given import FirstLayer
from replica.problem import Activation, GaussianMixture, LabelLaw, activation, class_labels
from solvers.results import Array

from .mixtures import Mixture


@dataclass(frozen=True, eq=False)
class MixtureTask:
    """Inputs of a mixture, with labels.

    Attributes
    ----------
    inputs : GaussianMixture
        Of the first coordinates; the others are standard normal.
    dimension : int
        n.
    trace : float
        tr Sigma.
    target : Activation or ClassLabels
        Of directions of the inputs, or of their components.
    directions : (n, T)
        The target's, orthonormal.
    noise : float
        Variance of the label noise.
    """

    inputs: GaussianMixture
    dimension: int
    trace: float
    target: Any
    directions: Array
    noise: float = 0.0

    def draw(self, samples: int, rng: Generator) -> tuple[Array, Array]:
        """Inputs (m, n) and labels (m,)."""
        component = self.inputs.components(samples, rng)
        X = self.inputs.at(rng.standard_normal((samples, self.dimension)), component)
        arguments = (X @ self.directions).T if self.directions.size else component[None]
        return X, LabelLaw(self.target, self.noise, None).draw(arguments, rng)

    def given(self, weights: Array, student: Activation, feature_noise: float) -> FirstLayer:
        """The network with this first layer (k, n), as one that is given."""
        return FirstLayer(
            weights=weights,
            student=student,
            target=self.target,
            directions=self.directions,
            noise=self.noise,
            inputs=self.inputs,
            feature_noise=feature_noise,
        )


def regression(
    mixed: Mixture,
    *,
    target: str | Activation = "relu",
    aligned: bool = False,
    noise: float = 0.0,
    rng: Any = None,
) -> MixtureTask:
    """The regression task of the paper: y = sigma_*(xi . x), xi of squared length 1/norm(Sigma).

    Parameters
    ----------
    mixed : Mixture
    target : str or Activation
    aligned : bool
        xi along the sum of all spikes; a random direction otherwise.
    noise : float
        Variance of the label noise, 0 or more.
    rng : None, int, SeedSequence or Generator

    Raises
    ------
    InvalidArgument
        If the noise is negative, or the spikes cancel (two of alignment -1).
    """
    if not 0 <= noise < np.inf:
        raise InvalidArgument("noise", noise, "a variance of 0 or more")
    sigma = activation(target)
    xi = default_rng(rng).standard_normal(mixed.dimension)
    if aligned:
        spikes = mixed.directions.sum(axis=(0, 1))
        xi = np.pad(spikes, (0, mixed.dimension - len(spikes)))
    length, size = np.linalg.norm(xi), mixed.norm**-0.5
    if length < 1e-6:
        raise InvalidArgument("aligned", aligned, "False where the spikes cancel in their sum")
    kinks = tuple(kink / size for kink in sigma.kinks)
    scaled = Activation(lambda x: sigma(size * x), kinks=kinks, name=f"{sigma.name}({size:g}*z1)")
    directions = (xi / length)[:, None]
    return MixtureTask(mixed.law, mixed.dimension, mixed.trace, scaled, directions, noise)


def classification(mixed: Mixture) -> MixtureTask:
    """Labels +1 for the first component of a mixture, -1 for all others."""
    count = len(mixed.proportions)
    target = class_labels("classes:1" + ",-1" * (count - 1), count)
    nowhere = np.empty((mixed.dimension, 0))
    return MixtureTask(mixed.law, mixed.dimension, mixed.trace, target, nowhere)
