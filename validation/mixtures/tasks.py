"""Tasks: inputs from a mixture, with the labels of a regression or of a classification."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator, default_rng

from replica.errors import InvalidArgument
from replica.problem import Activation, activation
from solvers.results import Array

from .mixtures import Mixture


class LearningTask(Protocol):
    """Where the samples of an experiment come from: a dimension, a trace and ``draw``."""

    @property
    def dimension(self) -> int:
        """n."""

    @property
    def trace(self) -> float:
        """tr Sigma, the mean squared length of an input."""

    def draw(self, samples: int, rng: Generator) -> tuple[Array, Array]:
        """Inputs (m, n) and labels (m,)."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Inputs from a mixture; ``Regression`` and ``Classification`` say how they are labelled."""

    mixture: Mixture

    @property
    def dimension(self) -> int:
        """n."""
        return self.mixture.dimension

    @property
    def trace(self) -> float:
        """tr Sigma."""
        return self.mixture.trace


@dataclass(frozen=True, eq=False)
class Regression(Labelled):
    """Labels y = sigma_*(xi . x) + noise on a mixture.

    Attributes
    ----------
    mixture : Mixture
    direction : (n,)
        xi.
    target : Activation
        sigma_*.
    noise : float
        Variance of the label noise.
    """

    direction: Array
    target: Activation
    noise: float = 0.0

    def draw(self, samples: int, rng: Generator) -> tuple[Array, Array]:
        """Inputs (m, n) and labels (m,)."""
        X, _ = self.mixture.draw(samples, rng)
        y = self.target(X @ self.direction)
        return X, y + np.sqrt(self.noise) * rng.standard_normal(samples) if self.noise else y


@dataclass(frozen=True, eq=False)
class Classification(Labelled):
    """Labels +1 for the first component of a mixture, -1 for all others."""

    def draw(self, samples: int, rng: Generator) -> tuple[Array, Array]:
        """Inputs (m, n) and labels (m,)."""
        X, component = self.mixture.draw(samples, rng)
        return X, np.where(component == 0, 1.0, -1.0)


def regression(
    mixed: Mixture,
    *,
    target: str | Activation = "relu",
    aligned: bool = False,
    noise: float = 0.0,
    rng: Any = None,
) -> Regression:
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
    sigma = activation(target) if isinstance(target, str) else target
    n = mixed.dimension
    xi = mixed.directions.sum(axis=(0, 1)) if aligned else default_rng(rng).standard_normal(n)
    length = np.linalg.norm(xi)
    if length < 1e-6:
        raise InvalidArgument("aligned", aligned, "False where the spikes cancel in their sum")
    return Regression(mixed, xi / (length * np.sqrt(mixed.norm)), sigma, noise)
