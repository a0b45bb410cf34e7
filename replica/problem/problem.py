"""What a step and the features it leads to have in common: what is trained, and on which labels.

Whatever takes a problem (a grid, a bound, an optimum, a simulation) asks it here for its models
and its labels, and need not know which kind it is.
"""

from abc import ABC, abstractmethod
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array

from ..errors import InvalidArgument, meant
from .activation import Activation
from .labels import LabelLaw
from .mixtures import ClassLabels, GaussianMixture
from .targets import MultiIndex


class RowLaw(Protocol):
    """The rows of a network after its steps: what a table asks of them."""

    @property
    def row_norms(self) -> bool:
        """Whether the fluctuation of the rows' norms is kept."""

    @property
    def gamma(self) -> Any:
        """Cosines of u, the direction of the gradient, with the coordinates of the inputs."""

    @property
    def apart(self) -> Array:
        """Groups that differ in this have different rows."""

    @property
    def v(self) -> float:
        """d times the variance of the squared row norms; 0 where it is not kept."""

    def covariance_of(self, groups: NDArray[np.int64]) -> Any:
        """The row covariances of some of the groups."""

    def agreeing(self, groups: NDArray[np.int64], slopes: Array) -> Array:
        """Numbers (G, n) in which those of the ``groups`` agree whose rows respond alike."""


class Problem(ABC):
    """A two-layer network, before or after its steps, and the labels it learns.

    Attributes
    ----------
    student : Activation
    target : Activation, MultiIndex or ClassLabels
    inputs : GaussianMixture or None
        The law of the first coordinates of the inputs, at least those that labels know.
    noise : float
        Variance Delta of the label noise of the readout's data.
    label_noise : LabelNoise or None
    intercept, train_bias : bool
    differentiable : tuple of str
        The parameters of which the features are smooth functions.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]  # all that derive are dataclasses
    differentiable: ClassVar[tuple[str, ...]]

    student: Activation | Any
    target: Activation | MultiIndex | ClassLabels | Any
    inputs: GaussianMixture | None
    noise: float
    label_noise: Any
    intercept: bool
    train_bias: bool

    def __new__(cls, *_: Any, **given: Any) -> "Problem":
        """Answer a name that no argument has with the one that was probably meant."""
        known = [field.name for field in fields(cls)]
        for name in given.keys() - set(known):
            hint = meant(name, known)
            said = f"did you mean {hint}?" if hint else ", ".join(known)
            raise TypeError(f"{cls.__name__}() has no argument {name!r}: {said}")
        return object.__new__(cls)

    @property
    def rows(self) -> RowLaw | None:
        """The law of the rows of a network after its steps; None of anything else."""
        return None

    @property
    def step(self) -> Any:
        """The GradientStep that makes the features: a step itself; of a model the one that made it,
        None of one that was given directly or changed since."""
        return None

    @property
    def schedule(self) -> tuple[tuple[float, float], ...]:
        """The pairs (alpha0, eta) of the steps still to be made."""
        return ()

    @property
    def directions(self) -> int:
        """D, coordinates of the inputs that have a law of their own, or that the target sees."""
        return int(self.target.dimension if self.inputs is None else self.inputs.dimension)

    @cached_property
    def labels(self) -> LabelLaw:
        """The law of the labels of the readout's data."""
        return LabelLaw(self.target, self.noise, self.label_noise)

    @property
    @abstractmethod
    def varying(self) -> list[str]:
        """The fields that may vary on a grid."""

    @abstractmethod
    def model(self, *, beta: float | None = None, **values: Any) -> Any:
        """The SpikedRandomFeatures to solve, with other ``values`` of ``varying`` fields; of width
        ``beta``, which a model has of its own and a step must be given."""

    def refuse_channel(self) -> None:
        """Refuse labels that are +-1 at random where only ridge regression's equations serve."""
        if self.labels.channel:
            raise InvalidArgument(
                "label_noise", self.label_noise.name, "one that is added to the target, here"
            )


def check_noise(problem: Any) -> None:
    """Refuse Gaussian noise on labels that are +-1 at random."""
    added = problem.label_noise
    for name in ("noise", "step_noise") if added is not None and added.binary else ():
        if np.any(getattr(problem, name, None) or 0.0):
            allowed = f"0 with labels +-1 (label_noise {added.name})"
            raise InvalidArgument(name, getattr(problem, name), allowed)


def check_problem(problem: Any) -> None:
    """Refuse what is neither a step nor a model."""
    if not isinstance(problem, Problem):
        raise InvalidArgument("problem", problem, "a GradientStep or a model made of one")


def check_step(problem: Any, argument: str = "step") -> None:
    """Refuse what has no learning rate."""
    if not isinstance(problem, Problem) or problem.step is None:
        raise InvalidArgument(argument, problem, "a GradientStep, or a model that one has made")


def check_width(problem: Problem, beta: float | None) -> None:
    """Refuse a width beside that of a model."""
    if beta is not None and not problem.schedule:
        raise InvalidArgument("beta", beta, "left out: a model has its own")
