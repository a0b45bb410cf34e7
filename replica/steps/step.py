"""What is trained in one giant step or several: the fields of a :class:`GradientStep`, checked."""

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from ..errors import InvalidArgument
from ..problem import (
    FINITE,
    NAMES,
    Activation,
    LabelLaw,
    MultiIndex,
    Problem,
    activation,
    assign,
    label_noise,
    law,
    number,
    target,
)


@dataclass(frozen=True, kw_only=True)
class Step(Problem):
    """Fields and checks of :class:`GradientStep`, which documents them.

    A field with a ``help`` text is an option of the command line; so it is of those of
    :class:`SpikedRandomFeatures`, which shares the texts of the fields that both have.
    """

    differentiable: ClassVar[tuple[str, ...]] = ("eta", "alpha0")

    student: Activation | Any = field(metadata={"help": "Activation: a name or module:function."})
    target: Activation | MultiIndex | Any = field(metadata={"help": "Target function: likewise."})
    alpha0: Any = field(default=None, metadata={"help": "Gradient samples n0/d, or inf."})
    eta: Any = field(default=None, metadata={"help": "Learning rate eta~ of the step."})
    steps: Any = field(
        default=(),
        metadata={
            "help": "Several steps, in the place of --alpha0 and --eta: alpha0:eta,alpha0:eta."
        },
    )
    noise: float = field(default=0.0, metadata={"help": "Label noise variance Delta."})
    readout: Any = field(
        default=1.0,
        metadata={"help": f"First-step readout: values (-1,1), {', '.join(NAMES)}."},
    )
    bias: Any = field(
        default=0.0, metadata={"help": "Untrained biases of the neurons: values (-1,1)."}
    )
    intercept: bool = field(default=False, metadata={"help": "Train an output intercept."})
    train_bias: bool = field(
        default=False, metadata={"help": "Train one bias common to all neurons."}
    )
    step_noise: float | None = field(
        default=None, metadata={"help": "That of the gradient's samples, where it differs."}
    )
    label_noise: Any = field(
        default=None,
        metadata={
            "help": "Heavier tails or signs: outliers:F:V, student:NU, flip:P, logistic, probit."
        },
    )

    def __post_init__(self) -> None:
        bias = law("bias", self.bias)
        if bias.continuous is not None:
            raise InvalidArgument("bias", self.bias, "of finitely many values")
        schedule = self._checked_schedule()
        alpha0, eta = schedule[0] if len(schedule) == 1 else (None, None)
        assign(
            self,
            student=activation(self.student, "student"),
            target=target(self.target),
            alpha0=alpha0,
            eta=eta,
            steps=schedule if len(schedule) > 1 else (),
            noise=number("noise", self.noise, 0, FINITE, "0 or more (a variance)"),
            step_noise=None
            if self.step_noise is None
            else number("step_noise", self.step_noise, 0, FINITE, "0 or more (a variance)"),
            readout=law("readout", self.readout),
            bias=bias,
            intercept=bool(self.intercept),
            train_bias=bool(self.train_bias),
            label_noise=label_noise(self.label_noise),
        )
        self.check_channel()

    @property
    def first_noise(self) -> float:
        """Variance of the Gaussian noise in the labels of the steps."""
        return self.noise if self.step_noise is None else self.step_noise

    @property
    def step_labels(self) -> LabelLaw:
        """The law of the labels of the steps."""
        return LabelLaw(self.target, self.first_noise, self.label_noise)

    @property
    def schedule(self) -> tuple[tuple[float, float], ...]:
        """The pairs (alpha0, eta) of all steps, one or more."""
        return tuple(self.steps) or ((self.alpha0, self.eta),)

    @property
    def varying(self) -> list[str]:
        """The numeric fields."""
        return [f.name for f in fields(self) if isinstance(getattr(self, f.name), float)]

    def _checked_schedule(self) -> tuple[tuple[float, float], ...]:
        """The pairs (alpha0, eta) of either form, each in range."""
        single = (self.alpha0, self.eta)
        given = not hasattr(self.steps, "__len__") or len(self.steps)
        if given and single != (None, None):
            raise InvalidArgument(
                "steps", self.steps, "given without alpha0 and eta: those mean a single step"
            )
        try:
            pairs = [(alpha0, eta) for alpha0, eta in (self.steps if given else (single,))]
            return tuple(
                (
                    number("alpha0", alpha0, 0, np.inf, "positive or inf (n0/d)", open_low=True),
                    number("eta", eta, 0, FINITE, "0 or more"),
                )
                for alpha0, eta in pairs
            )
        except (TypeError, ValueError):
            if not given:
                raise
            raise InvalidArgument(
                "steps",
                self.steps,
                "a sequence of pairs (alpha0, eta): alpha0 positive or inf, eta 0 or more",
            ) from None
