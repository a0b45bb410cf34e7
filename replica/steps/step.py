"""What is trained in one giant step or several: the fields of a :class:`GradientStep`, checked.

What the steps make of a network (``one_step``, ``several_steps``, ``network``) is computed from
these fields alone; :class:`GradientStep` adds the methods that return it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from ..problem import (
    ACTIVATIONS,
    FINITE,
    READOUT_LAWS,
    Activation,
    LabelLaw,
    MultiIndex,
    Problem,
    SpikedRandomFeatures,
    activation,
    assign,
    flag,
    label_noise,
    law,
    number,
    target,
)

INITIALISATIONS = ("sphere", "gaussian")  # uniform on the unit sphere, or N(0, I/d)


@dataclass(frozen=True, kw_only=True)
class Step(Problem):
    """A network before its steps and the laws of all it is trained with; :class:`GradientStep`
    documents the fields.

    A field with a ``help`` text is an option of the command line; so it is of those of
    :class:`SpikedRandomFeatures`, which shares the texts of the fields that both have.
    """

    differentiable: ClassVar[tuple[str, ...]] = ("eta", "alpha0")

    student: Activation | Any = field(
        metadata={
            "help": f"Activation: {', '.join(ACTIVATIONS)}, he1+he2/2, or yours, module:function."
        }
    )
    target: Activation | MultiIndex | Any = field(
        metadata={
            "help": "Target: an expression in z1 ... z4 such as z1 + relu(z1*z2), a name such as "
            "sin, or module:function."
        }
    )
    alpha0: Any = field(
        default=None, metadata={"help": "Samples of the step n0/d, or inf, the population's."}
    )
    eta: Any = field(
        default=None, metadata={"help": "Learning rate of the step per neuron, eta~ = eta/p."}
    )
    steps: Any = field(
        default=(),
        metadata={
            "help": "Several steps, in the place of --alpha0 and --eta: alpha0:eta,alpha0:eta."
        },
    )
    noise: float = field(default=0.0, metadata={"help": "Variance Delta of the label noise."})
    readout: Any = field(
        default="equal",
        metadata={
            "help": f"First-step readout: {', '.join(READOUT_LAWS)}, or values: -1,1.  "
            "What papers call uniform is equal."
        },
    )
    bias: Any = field(
        default=0.0,
        metadata={"help": "Untrained biases of the neurons: values (-1,1), or b.npy of --weights."},
    )
    intercept: bool = field(default=False, metadata={"help": "Train an output intercept."})
    train_bias: bool = field(
        default=False, metadata={"help": "Train one bias common to all neurons."}
    )
    initialisation: str = field(
        default="sphere",
        metadata={"help": f"Rows before the steps: {' or '.join(INITIALISATIONS)}."},
    )
    step_noise: float | None = field(
        default=None,
        metadata={"help": "Noise variance of the step's samples, if not --noise."},
    )
    label_noise: Any = field(
        default=None,
        metadata={
            "help": "Heavier tails: outliers:SHARE:VARIANCE, student:NU; labels +-1: flip:P, "
            "logistic, probit."
        },
    )

    def __post_init__(self) -> None:
        bias = law("bias", self.bias)
        if bias.continuous is not None:
            raise InvalidArgument("bias", self.bias, "of finitely many values")
        schedule = self._checked_schedule()
        alpha0, eta = schedule[0] if len(schedule) == 1 else (None, None)
        step_noise = self.step_noise
        if step_noise is not None:
            step_noise = number("step_noise", step_noise, 0, FINITE, "0 or more (a variance)")
        assign(
            self,
            student=activation(self.student, "student"),
            target=target(self.target),
            alpha0=alpha0,
            eta=eta,
            steps=schedule if len(schedule) > 1 else (),
            noise=number("noise", self.noise, 0, FINITE, "0 or more (a variance)"),
            step_noise=step_noise,
            readout=law("readout", self.readout),
            bias=bias,
            intercept=flag("intercept", self.intercept),
            train_bias=flag("train_bias", self.train_bias),
            label_noise=label_noise(self.label_noise),
        )
        self.check_noise()
        if self.initialisation not in INITIALISATIONS:
            allowed = " or ".join(INITIALISATIONS)
            raise InvalidArgument("initialisation", self.initialisation, allowed)

    @property
    def step_labels(self) -> LabelLaw:
        """The law of the labels of the steps."""
        noise = self.noise if self.step_noise is None else self.step_noise
        return LabelLaw(self.target, noise, self.label_noise)

    @property
    def schedule(self) -> tuple[tuple[float, float], ...]:
        """The pairs (alpha0, eta) of all steps, one or more."""
        return tuple(self.steps) or ((self.alpha0, self.eta),)

    @property
    def step(self) -> "Step":
        """Itself."""
        return self

    @property
    def varying(self) -> list[str]:
        """The numeric fields, the law of the readout, the rate that follows the width, and this."""
        numbers = [f.name for f in fields(self) if isinstance(getattr(self, f.name), float)]
        return [*numbers, "readout", *(["rate"] if "eta" in numbers else []), "beta"]

    def at(self, beta: float, values: Mapping[str, Any]) -> Self:
        """The step with other ``values`` of ``varying`` fields, for networks of width ``beta``.

        ``rate`` is eta/d = eta~ beta, the learning rate itself in the place of that over the width.
        """
        changed = dict(values)
        if "rate" in changed:
            rate = number("rate", changed.pop("rate"), 0, FINITE, "0 or more (eta/d)")
            if "eta" in changed:
                raise InvalidArgument("rate", rate, "left out where eta is given: eta~ = rate/beta")
            changed["eta"] = rate / beta
        return replace(self, **changed) if changed else self

    def features(self, *, gamma: Array, **groups: Any) -> SpikedRandomFeatures:
        """Spiked random features of this student, fitted to these labels, with the spike's cosines
        ``gamma`` (T,) and the ``groups`` of neurons."""
        return SpikedRandomFeatures(
            student=self.student,
            target=self.target,
            gamma=float(gamma[0]) if len(gamma) == 1 else gamma[:, None],
            noise=self.noise,
            intercept=self.intercept,
            train_bias=self.train_bias,
            label_noise=self.label_noise,
            **groups,
        )

    def _checked_schedule(self) -> tuple[tuple[float, float], ...]:
        """The pairs (alpha0, eta) as ``steps`` or as alpha0 and eta give them, each in range."""
        single = (self.alpha0, self.eta)
        given = not hasattr(self.steps, "__len__") or len(self.steps)
        if given and single != (None, None):
            raise InvalidArgument(
                "steps", self.steps, "given without alpha0 and eta: those mean a single step"
            )
        try:
            pairs = [(alpha0, eta) for alpha0, eta in (self.steps if given else (single,))]
            return tuple(
                (_alpha0(alpha0), number("eta", eta, 0, FINITE, "0 or more"))
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


def _alpha0(value: Any) -> float:
    """A checked alpha0: a number as others are, or inf."""
    allowed = f"positive or inf (n0/d), from {1 / FINITE:g} to {FINITE:g}"
    alpha0 = number("alpha0", value, 1 / FINITE, np.inf, allowed)
    return alpha0 if alpha0 == np.inf else number("alpha0", alpha0, 0, FINITE, allowed)
