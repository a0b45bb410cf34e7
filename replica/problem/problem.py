"""The common interface of a GradientStep and of the features it leads to.

Grids, bounds, optima and simulations use a problem through its models and its labels, whichever of
the two it is.
"""

from abc import ABC, abstractmethod
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..errors import InvalidArgument, check_names
from .activation import Activation
from .checks import MAX_NUMBER, assign, flag, number
from .labels import LabelLaw, label_noise
from .mixtures import ClassLabels, GaussianMixture
from .targets import MultiIndex

SINGLE_STEP = (
    "left out where the best step is searched, which is a single one: of several, solve for each "
    "schedule and compare"
)
NOT_COVERED = {  # of options that some functions refuse, what they have to be there
    "alpha0": "a number here: solve, learning_curve, learned_function, optimal_lambda and "
    "optimal_eta know the alpha that it follows",
    "reuse": "0 here: solve, curves, optima, learned_function and gradient cover reused samples",
    "dimension": "left out here, for the limit: of a network at its own dimension there are solve, "
    "learning_curve, optimal_lambda and optimal_eta",
    "label_noise": "noise that is added to the target, here",
    "train_bias": "off here: the trained bias depends on the fit, and moves with the point",
}


class Problem(ABC):
    """A two-layer network, before or after its steps, and the labels it learns.

    Attributes
    ----------
    student : Activation
    target : Activation, MultiIndex or ClassLabels
    inputs : GaussianMixture or None
        Law of the first coordinates of the inputs, including all on which labels depend.
    noise : float
        Variance Delta of the label noise of the readout's data.
    label_noise : LabelNoise or None
    intercept, train_bias : bool
    differentiable : tuple of str
        Names of the parameters of which the features are smooth functions.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]  # all subclasses are dataclasses
    differentiable: ClassVar[tuple[str, ...]]

    student: Activation | Any
    target: Activation | MultiIndex | ClassLabels | Any
    inputs: GaussianMixture | None
    noise: float
    label_noise: Any
    intercept: bool
    train_bias: bool

    def __new__(cls, *args: Any, **given: Any) -> "Problem":
        """Raise TypeError for an unknown argument, with the name that was probably meant."""
        field_names = [problem_field.name for problem_field in fields(cls)]
        check_names(cls.__name__, field_names, given, args)
        return object.__new__(cls)

    @property
    def rows(self) -> Any:
        """Law of the rows of a network after its steps, a NetworkRows; None for other problems."""
        return None

    @property
    def step(self) -> Any:
        """The GradientStep that makes the features; for a step, the step itself.

        None for a model that was given directly, or changed since.
        """
        return None

    @property
    def schedule(self) -> tuple[tuple[float, float], ...]:
        """Pairs (alpha0, eta) of the steps of a GradientStep; empty for a model."""
        return ()

    @property
    def directions(self) -> int:
        """Number D of coordinates on which the law of the inputs, or the target, depends."""
        return int(self.target.dimension if self.inputs is None else self.inputs.dimension)

    @cached_property
    def labels(self) -> LabelLaw:
        """Law of the labels of the readout's data."""
        return LabelLaw(self.target, self.noise, self.label_noise)

    @property
    @abstractmethod
    def varying(self) -> list[str]:
        """Names of the fields that may vary on a grid."""

    @abstractmethod
    def model_at(self, *, beta: float | None = None, **values: Any) -> Any:
        """The SpikedRandomFeatures to solve, with other ``values`` of ``varying`` fields.

        The width ``beta`` is required for a step, and optional for a model, which has one.
        """

    @property
    def model(self) -> Any:
        """Removed: raises AttributeError with the calls that replace it."""
        raise AttributeError(
            "model is gone: take step.srf(beta=...) or step.network(beta=...), of "
            "dataclasses.replace(step, ...) for other values"
        )

    @cached_property
    def follows_alpha(self) -> bool:
        """True if the step is trained on as many samples as the readout, alpha0 = "alpha"."""
        return self.step is not None and self.step.alpha0 == "alpha"

    @cached_property
    def reuse(self) -> float:
        """Share of the readout's samples that the step has been trained on."""
        return 0.0 if self.rows is None else self.rows.reuse

    @property
    def own_dimension(self) -> float:
        """Input dimension of a network with loadings of order 1/sqrt(d); inf of other problems."""
        return np.inf


def check_readout(problem: Any) -> None:
    """Check label noise and trained parts of the readout; InvalidArgument for noise on labels
    +-1."""
    assign(
        problem,
        noise=number("noise", problem.noise, 0, MAX_NUMBER, "0 or more (a variance)"),
        label_noise=label_noise(problem.label_noise),
    )
    trained_parts = (part for part in ("intercept", "train_bias") if hasattr(problem, part))
    assign(problem, **{part: flag(part, getattr(problem, part)) for part in trained_parts})
    added_noise = problem.label_noise
    for part in ("noise", "step_noise") if added_noise is not None and added_noise.binary else ():
        if np.any(getattr(problem, part, None) or 0.0):
            allowed_noise = f"0 with labels +-1 (label_noise {added_noise.name})"
            raise InvalidArgument(part, getattr(problem, part), allowed_noise)


def check_problem(problem: Any) -> None:
    """Raise InvalidArgument unless ``problem`` is a step or a model."""
    if not isinstance(problem, Problem):
        raise InvalidArgument("problem", problem, "a GradientStep, or a model made by one")


def refuse_options(problem: Any, *names: str) -> None:
    """Raise InvalidArgument unless ``problem`` is a step or a model without the options ``names``
    of ``NOT_COVERED``, in a function that does not cover these."""
    check_problem(problem)
    problem_options = {
        "alpha0": problem.follows_alpha and "alpha",
        "reuse": problem.reuse,
        "dimension": np.isfinite(problem.own_dimension) and problem.own_dimension,
        "label_noise": problem.labels.channel and problem.label_noise.name,
        "train_bias": problem.train_bias,
    }
    for name in names:
        if problem_options[name]:
            raise InvalidArgument(name, problem_options[name], NOT_COVERED[name])


def check_step(problem: Any, argument: str = "step") -> None:
    """Raise InvalidArgument unless ``problem`` is a single step, or a model made by one."""
    if not isinstance(problem, Problem) or problem.step is None:
        raise InvalidArgument(argument, problem, "a GradientStep, or a model made by one")
    if problem.step.steps:
        raise InvalidArgument("steps", problem.step.steps, SINGLE_STEP)
