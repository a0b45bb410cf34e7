"""What a step and the features it leads to have in common: what is trained, and on which labels.

Whatever takes a problem (a grid, a bound, an optimum, a simulation) asks it here for its models
and its labels, and need not know which kind it is.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

from ..errors import InvalidArgument
from .activation import Activation
from .labels import LabelLaw
from .targets import MultiIndex


class Problem(ABC):
    """A two-layer network, before or after its steps, and the labels it learns.

    Attributes
    ----------
    student : Activation
    target : Activation or MultiIndex
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
    target: Activation | MultiIndex | Any
    noise: float
    label_noise: Any
    intercept: bool
    train_bias: bool

    @property
    def rows(self) -> Any:
        """The rows of a network after its step, its NetworkRows; None of anything else."""
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

    @cached_property
    def labels(self) -> LabelLaw:
        """The law of the labels of the readout's data."""
        return LabelLaw(self.target, self.noise, self.label_noise)

    @property
    @abstractmethod
    def varying(self) -> list[str]:
        """The fields that may vary on a grid."""

    @abstractmethod
    def model(self, **values: float) -> Any:
        """The SpikedRandomFeatures to solve, with other ``values`` of ``varying`` fields; of a
        step, of width ``beta``."""

    def at_width(self, beta: float | None) -> Any:
        """The SpikedRandomFeatures to solve: of a step that of width ``beta``, which a model has
        of its own.

        Raises
        ------
        InvalidArgument
            If beta is missing, or given where there is one.
        """
        if self.schedule:
            return self.model(beta=beta)  # type: ignore[arg-type]
        if beta is not None:
            raise InvalidArgument("beta", beta, "left out: a model has its own")
        return self.model()

    def model_of_any_width(self, **values: float) -> Any:
        """The model, where its width does not matter: its own, or beta = 1 after a step."""
        return self.model(**values, **({"beta": 1.0} if self.schedule else {}))

    def check_noise(self) -> None:
        """Refuse Gaussian noise on labels that are +-1 at random."""
        if not self.labels.channel:
            return
        for name in ("noise", "step_noise"):
            if getattr(self, name, None):
                allowed = f"0 with labels +-1 (label_noise {self.label_noise.name})"
                raise InvalidArgument(name, getattr(self, name), allowed)

    def refuse_channel(self) -> None:
        """Refuse labels that are +-1 at random where only ridge regression's equations serve."""
        if self.labels.channel:
            raise InvalidArgument(
                "label_noise", self.label_noise.name, "one that is added to the target, here"
            )


def assign(problem: Problem, **values: Any) -> None:
    """Set fields of a frozen problem while it is being made."""
    for name, value in values.items():
        object.__setattr__(problem, name, value)


def check_problem(problem: Any) -> None:
    """Refuse what is neither a step nor a model."""
    if not isinstance(problem, Problem):
        raise InvalidArgument("problem", problem, "a GradientStep or a model made of one")


def check_step(problem: Any, argument: str = "step") -> None:
    """Refuse what has no learning rate."""
    if not isinstance(problem, Problem) or problem.step is None:
        raise InvalidArgument(argument, problem, "a GradientStep, or a model that one has made")
