"""The checked fields of a :class:`GradientStep`: a network, and its training in giant steps.

The models after the steps (``several_steps``, ``network``) are computed from these
fields; :class:`GradientStep` adds the methods that return them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from ..problem import (
    MAX_NUMBER,
    WORDS,
    Activation,
    Averages,
    ClassLabels,
    GaussianMixture,
    LabelLaw,
    Law,
    MultiIndex,
    Problem,
    SpikedRandomFeatures,
    activation,
    assign,
    check_readout,
    choice,
    law,
    number,
    parse_target,
    problem_repr,
    separated,
)


def law_of_biases(bias_spec: Any) -> Law:
    """Law of the neurons' biases, which has finitely many values."""
    bias_law = law("bias", bias_spec)
    if bias_law.continuous is not None:
        raise InvalidArgument("bias", bias_spec, "a law with finitely many values")
    return bias_law


@dataclass(frozen=True, kw_only=True, repr=False)
class Step(Problem):
    """A network before its steps, and the laws of its training data.

    :class:`GradientStep` documents the fields.
    """

    differentiable: ClassVar[tuple[str, ...]] = ("eta", "alpha0")

    student: Activation | Any
    target: Activation | MultiIndex | ClassLabels | Any
    alpha0: Any = None
    eta: Any = None
    steps: Any = ()
    noise: float = 0.0
    readout: Any = "equal"
    bias: Any = 0.0
    intercept: bool = False
    train_bias: bool = False
    initialisation: str = "sphere"
    step_noise: Any = None
    label_noise: Any = None
    inputs: GaussianMixture | None = None
    step_target: Any = None
    decay: Any = 0.0

    def __post_init__(self) -> None:
        most_coordinates = 50  # of structured inputs: in the limit they are few of d
        bias_law = law_of_biases(self.bias)
        step_schedule = self._checked_schedule()
        alpha0, eta = step_schedule[0] if len(step_schedule) == 1 else (None, None)
        step_readout_target, step_inputs = parse_target(self.target, self.inputs)
        count = len(step_schedule)
        step_target, step_noise = self.step_target, self.step_noise
        if step_target is not None:
            target_specs = _per_step("step_target", step_target, count)
            targets_and_inputs = [parse_target(spec, step_inputs) for spec in target_specs]
            step_target, input_laws = zip(*targets_and_inputs, strict=True)
            step_inputs = max(input_laws, key=lambda law: 0 if law is None else law.dimension)
            step_target = step_target if len(step_target) > 1 else step_target[0]
        if step_inputs is not None and step_inputs.structured > most_coordinates:
            allowed = (
                f"structured in at most {most_coordinates} coordinates, of which d has many more "
                "(FirstLayer(weights=..., inputs=...) takes a covariance of all d)"
            )
            raise InvalidArgument("inputs", f"{step_inputs.structured} coordinates", allowed)
        if step_noise is not None:
            step_noise = _numbers_per_step(
                "step_noise", step_noise, count, MAX_NUMBER, "0 or more (a variance)"
            )
        assign(
            self,
            student=activation(self.student, "student"),
            target=step_readout_target,
            inputs=step_inputs,
            step_target=step_target,
            decay=_numbers_per_step("decay", self.decay, count, 1, "0 or more and less than 1"),
            alpha0=alpha0,
            eta=eta,
            steps=step_schedule if len(step_schedule) > 1 else (),
            step_noise=step_noise,
            readout=law("readout", self.readout),
            bias=bias_law,
        )
        check_readout(self)
        # uniform on the unit sphere, or N(0, I/d)
        choice("initialisation", self.initialisation, ("sphere", "gaussian"))

    def labels_at(self, t: int) -> LabelLaw:
        """Law of the labels of step t = 0, 1, ..."""
        target = self.target if self.step_target is None else _value_at_step(self.step_target, t)
        noise = self.noise if self.step_noise is None else _value_at_step(self.step_noise, t)
        return LabelLaw(target, noise, self.label_noise)

    @property
    def placed(self) -> Self:
        """The step with a number for alpha0: 1 where it follows the readout's alpha, which is not
        known yet."""
        return replace(self, alpha0=1.0) if self.alpha0 == "alpha" else self

    def decay_factor(self, t: int) -> float:
        """1 - weight decay, by which step t = 0, 1, ... multiplies the rows."""
        return 1.0 - float(_value_at_step(self.decay, t))

    @property
    def first_step(self) -> Self:
        """A GradientStep of the first step only."""
        (alpha0, eta), label_law = self.schedule[0], self.labels_at(0)
        one_step = dict(steps=(), alpha0=alpha0, eta=eta, decay=_value_at_step(self.decay, 0))
        return replace(self, **one_step, step_target=label_law.target, step_noise=label_law.noise)

    @property
    def averages(self) -> Averages:
        """Averages of the labels of the first step and of the inputs."""
        return self.labels_at(0).averages(self.inputs, self.known_dimension)

    @property
    def known_dimension(self) -> int:
        """Number D of coordinates on which the law of the inputs, or any target, depends."""
        step_targets = (self.labels_at(t).target for t in range(len(self.schedule)))
        return max(self.directions, *(step_target.dimension for step_target in step_targets))

    def __repr__(self) -> str:
        return problem_repr(self)

    @property
    def schedule(self) -> tuple[tuple[Any, float], ...]:
        """Pairs (alpha0, eta) of all steps."""
        return tuple(self.steps) or ((self.alpha0, self.eta),)

    @property
    def takes_step(self) -> bool:
        """True unless every learning rate is zero."""
        return any(eta for _, eta in self.schedule)

    @property
    def step(self) -> "Step":
        """The GradientStep itself; of a model, the step that made it."""
        return self

    @property
    def varying(self) -> list[str]:
        """Names of fields that may vary on a grid: numbers, readout, student and theory.

        ``rate`` is eta/d, ``beta`` the width, ``theory`` the theory, "srf" or "network", the latter
        at a ``dimension``; ``separation`` a factor of the means of the inputs.
        """
        numbers = [f.name for f in fields(self) if isinstance(getattr(self, f.name), float)]
        rate = ["rate"] if "eta" in numbers else []
        separation = ["separation"] if self.inputs is not None else []
        return [*numbers, "readout", *rate, *separation, "beta", "student", "theory", "dimension"]

    def with_values(self, beta: float, values: Mapping[str, Any]) -> Self:
        """The step with other ``values`` of ``varying`` fields, for networks of width ``beta``.

        ``rate``, eta/d = eta~ beta, may be given instead of eta.
        """
        fields_to_change = dict(values)
        if "rate" in fields_to_change:
            rate = number("rate", fields_to_change.pop("rate"), 0, MAX_NUMBER, "0 or more (eta/d)")
            if "eta" in fields_to_change:
                raise InvalidArgument("rate", rate, "left out where eta is given: eta~ = rate/beta")
            fields_to_change["eta"] = rate / beta
        if "separation" in fields_to_change:
            separation_factor = fields_to_change.pop("separation")
            fields_to_change["inputs"] = separated(self.inputs, separation_factor)
        return replace(self, **fields_to_change) if fields_to_change else self

    def features(self, *, gamma: Array, **groups: Any) -> SpikedRandomFeatures:
        """Spiked random features with this student and these labels, with cosines ``gamma`` (D,) of
        the spike and fields of the ``groups``."""
        direction_count = self.directions  # the readout's labels do not depend on other coordinates
        gamma = np.append(gamma, np.zeros(max(0, direction_count - len(gamma))))[:direction_count]
        return SpikedRandomFeatures(
            student=self.student,
            target=self.target,
            inputs=self.inputs,
            gamma=float(gamma[0]) if len(gamma) == 1 else gamma[:, None],
            noise=self.noise,
            intercept=self.intercept,
            train_bias=self.train_bias,
            label_noise=self.label_noise,
            **groups,
        )

    def _checked_schedule(self) -> tuple[tuple[Any, float], ...]:
        """Pairs (alpha0, eta) of all steps, from ``steps`` or from alpha0 and eta, in range."""
        single_step = (self.alpha0, self.eta)
        has_steps = not hasattr(self.steps, "__len__") or len(self.steps)
        if has_steps and single_step != (None, None):
            raise InvalidArgument(
                "steps", self.steps, "given without alpha0 and eta, which are for a single step"
            )
        try:
            pairs = [(alpha0, eta) for alpha0, eta in (self.steps if has_steps else (single_step,))]
        except (TypeError, ValueError):
            allowed_step = "a sequence of pairs (alpha0, eta)"
            raise InvalidArgument("steps", self.steps, allowed_step) from None
        checked_steps = []
        for alpha0, eta in pairs:
            if has_steps or not (isinstance(alpha0, str) and alpha0 == "alpha"):
                alpha0 = _checked_alpha0(alpha0)
            allowed_eta = "0 or more: the learning rate over the width, eta/p"
            allowed_eta += WORDS["eta"] * (isinstance(eta, str) and not has_steps)
            checked_steps.append((alpha0, number("eta", eta, 0, MAX_NUMBER, allowed_eta)))
        return tuple(checked_steps)


def check_is_step(step: Any) -> None:
    """Raise InvalidArgument unless ``step`` is a GradientStep."""
    if not isinstance(step, Step):
        raise InvalidArgument("step", type(step).__name__, "a GradientStep")


def _per_step(name: str, value: Any, step_count: int) -> tuple[Any, ...]:
    """The values of a field: one for all steps, or one for each of ``step_count``."""
    step_values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if len(step_values) not in (1, step_count):
        raise InvalidArgument(name, value, f"one value, or one for each of {step_count} steps")
    return step_values


def _numbers_per_step(name: str, value: Any, step_count: int, high: float, allowed: str) -> Any:
    """A checked number from 0 to ``high``, or one for each step; a ``high`` of 1 is excluded."""
    step_values = _per_step(name, value, step_count)
    per_step = tuple(number(name, x, 0, high, allowed, open_high=high == 1) for x in step_values)
    return per_step if len(per_step) > 1 else per_step[0]


def _value_at_step(step_values: Any, step_index: int) -> Any:
    """The value for step t of a field with one value, or one for each step."""
    return step_values[step_index] if isinstance(step_values, tuple) else step_values


def _checked_alpha0(alpha0: Any) -> float:
    """A checked alpha0: a positive number, or inf."""
    allowed = 'positive or inf (n0/d), or "alpha", the readout\'s, of a single step'
    is_finite = number("alpha0", alpha0, 0, np.inf, allowed, open_low=True) < np.inf
    return number("alpha0", alpha0, 0, MAX_NUMBER if is_finite else np.inf, allowed, open_low=True)
