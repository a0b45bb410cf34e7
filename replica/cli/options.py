"""What the command lines share: grids written as text, problems, problem files."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from solvers.results import Array

from ..convex import LOSSES, Loss, loss
from ..errors import InvalidArgument
from ..problem import NAMES, Problem, SpikedRandomFeatures, axis
from ..steps import MODELS, GradientStep

GRID_FORMS = "a number, a,b,c, start:stop:count or start:stop:count:log"
STEP, SRF = ("alpha0", "eta"), ("r", "c", "gamma")
LONGEST = 10**6  # points of one grid
GRIDS = {*STEP, *SRF, "beta", "noise", "step_noise", "alpha", "lam"}

Name = str | None
Values = float | str | list[float] | None
LawValues = float | str | list[float] | list[list[float]] | None


@dataclass(frozen=True)
class GroupOptions:
    """An sRF of several groups or spikes: arrays as for :class:`SpikedRandomFeatures`."""

    r: list[float] | list[list[float]]
    c: float | list[float]
    gamma: float | list[float] | list[list[float]]
    fractions: list[float] | None = None
    bias: float | list[float] | None = None


@dataclass(frozen=True)
class ProblemOptions:
    """The options that say which problem is meant, as typed or as in a problem file.

    Everything numeric may be a grid, but for readout and bias, which are laws: values, or
    values and fractions.  What has a help text can be typed; a file may have a table ``groups``
    instead of r, c and gamma.
    """

    student: Annotated[Name, "Activation: a name or module:function."] = None
    target: Annotated[Name, "Target function: likewise."] = None
    alpha0: Annotated[Values, f"Gradient samples n0/d, or inf. ({GRID_FORMS})"] = None
    eta: Annotated[Values, "Learning rate eta~ of the step."] = None
    steps: Annotated[
        str | list[list[float]] | None,
        "Several steps, in the place of --alpha0 and --eta: alpha0:eta,alpha0:eta.",
    ] = None
    r: Annotated[Values, "Spike length, for an sRF given directly."] = None
    c: Annotated[Values, "Bulk variance, likewise."] = None
    gamma: Annotated[Values, "Spike-target cosine, likewise."] = None
    beta: Annotated[Values, "Width p/d (1 unless said)."] = None
    noise: Annotated[Values, "Label noise variance Delta (0 unless said)."] = None
    step_noise: Annotated[Values, "That of the gradient's samples, where it differs."] = None
    model: Annotated[Name, "Theory of a step: srf (as published), or the network itself."] = None
    alpha: Annotated[Values, "Readout samples n/d."] = None
    lam: Annotated[Values, "Ridge penalty lambda."] = None
    readout: Annotated[
        LawValues, "First-step readout: values (-1,1), gaussian, rademacher or uniform."
    ] = None
    bias: Annotated[LawValues, "Untrained biases of the neurons: values."] = None
    groups: GroupOptions | None = None
    intercept: Annotated[bool | None, "Train an output intercept."] = None
    train_bias: Annotated[bool | None, "Train one bias common to all neurons."] = None
    label_noise: Annotated[
        Name, "Heavier tails or signs: outliers:F:V, student:NU, flip:P, logistic, probit."
    ] = None
    loss: Annotated[
        Name, "square, huber:D, absolute, quantile:Q, logistic, hinge, squared_hinge."
    ] = None


@dataclass(frozen=True)
class Request:
    """A problem, the grids asked for - alpha, lam and model fields, arrays (n,) - which of MODELS
    of a step was named, if any, and the loss."""

    problem: Problem
    alpha: Array
    lam: Array
    grids: dict[str, Array] = field(default_factory=dict)
    model: str | None = None
    loss: Loss = LOSSES["square"]


def parse_grid(name: str, text: Any) -> Array:
    """Numbers meant by ``text``: one of GRID_FORMS, or numbers from a file.

    Raises
    ------
    InvalidArgument
        If it does not parse.

    Examples
    --------
    >>> parse_grid("lam", "1e-2:1:3:log").round(12).tolist()
    [0.01, 0.1, 1.0]
    """
    if not isinstance(text, str):
        return axis(name, text)
    try:
        if ":" not in text:
            return np.array([float(part) for part in text.split(",")])
        start, stop, count, *log = text.split(":")
        ends, n = (float(start), float(stop)), int(count)
        if not 1 <= n <= LONGEST or log not in ([], ["log"]) or not np.isfinite(ends).all():
            raise ValueError
        if log and min(ends) <= 0:
            raise ValueError
        return np.geomspace(*ends, n) if log else np.linspace(*ends, n)
    except ValueError:
        raise InvalidArgument(name, text, GRID_FORMS) from None


def read_config(path: Path) -> ProblemOptions:
    """The options in a TOML problem file.

    Raises
    ------
    InvalidArgument
        With every mistake in the file, each with its key.
    """
    from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidArgument("config", str(path), f"a readable TOML file ({error})") from None
    strict = with_config(ConfigDict(extra="forbid"))(ProblemOptions)
    mistakes: dict[str, str] = {}
    options = ProblemOptions()
    try:
        options = TypeAdapter(strict).validate_python(content)
    except ValidationError as error:
        for mistake in error.errors():
            mistakes[str(mistake["loc"][0])] = mistake["msg"]
    for name in (content.keys() & GRIDS) - mistakes.keys():
        try:
            parse_grid(name, content[name])
        except InvalidArgument as error:
            mistakes[name] = f"must be {error.allowed}"
    if mistakes:
        found = "; ".join(f"{key}: {text}" for key, text in sorted(mistakes.items()))
        raise InvalidArgument("config", str(path), f"free of mistakes ({found})")
    return options


def merge(typed: ProblemOptions, config: Path | None) -> ProblemOptions:
    """What was typed, completed from the problem file."""
    if config is None:
        return typed
    filed = read_config(config)
    values: Mapping[str, Any] = {
        f.name: getattr(filed, f.name) if getattr(typed, f.name) is None else getattr(typed, f.name)
        for f in fields(ProblemOptions)
    }
    return ProblemOptions(**values)


def request(options: ProblemOptions, required: Sequence[str] = ("alpha", "lam")) -> Request:
    """The problem and grids that ``options`` describe.

    Of alpha and lam, what is not ``required`` may be missing: an empty grid.

    Raises
    ------
    InvalidArgument
        If something is missing, contradictory or out of range.
    """
    for name in ("student", "target", *required):
        if getattr(options, name) is None:
            raise InvalidArgument(name, None, "given")
    kinds = {"a step": STEP, "several steps": ("steps",), "an sRF": SRF, "groups": ("groups",)}
    given = {
        kind: [name for name in names if getattr(options, name) is not None]
        for kind, names in kinds.items()
    }
    chosen = [kind for kind, names in given.items() if names]
    if len(chosen) > 1:
        first, second = (given[kind][0] for kind in chosen[:2])
        raise InvalidArgument(
            first,
            getattr(options, first),
            f"given without --{second}: {chosen[0]} ({', '.join(kinds[chosen[0]])}) or "
            f"{chosen[1]} ({', '.join(kinds[chosen[1]])}), not both",
        )
    needed = kinds[chosen[0] if chosen else "a step"]
    for name in needed:
        if getattr(options, name) is None:
            raise InvalidArgument(name, None, f"given together with {', '.join(needed)}")
    steps = needed in (STEP, kinds["several steps"])
    if not steps and options.readout is not None:
        raise InvalidArgument("readout", options.readout, "given with a step (--alpha0, --eta)")
    if not steps and options.step_noise is not None:
        raise InvalidArgument("step_noise", options.step_noise, "given with a step")
    if options.model not in (None, *MODELS) or (not steps and options.model == "network"):
        raise InvalidArgument("model", options.model, "srf or network, the latter with a step")
    numbers = {name: parse_grid(name, getattr(options, name)) for name in needed if name in GRIDS}
    for name, default in (("beta", 1.0), ("noise", 0.0), ("step_noise", None)):
        text = default if getattr(options, name) is None else getattr(options, name)
        if text is not None:
            numbers[name] = parse_grid(name, text)
    start: dict[str, Any] = {name: float(values[0]) for name, values in numbers.items()}
    grids = {name: values for name, values in numbers.items() if values.size > 1}
    start |= {"student": options.student, "target": options.target}
    start |= {"intercept": bool(options.intercept), "train_bias": bool(options.train_bias)}
    start["label_noise"] = options.label_noise
    if options.bias is not None:
        start["bias"] = parse_law("bias", options.bias)
    problem: Problem
    if steps:
        if options.steps is not None:
            start["steps"] = parse_steps(options.steps)
        beta = start.pop("beta")
        if options.readout is not None:
            start["readout"] = parse_law("readout", options.readout)
        problem = GradientStep(**start)
        if options.model == "network":
            problem = problem.network(beta=beta)
        else:
            grids.setdefault("beta", np.array([beta]))
    else:
        groups = {} if options.groups is None else vars(options.groups)
        groups = {name: value for name, value in groups.items() if value is not None}
        if "bias" in groups and options.bias is not None:
            raise InvalidArgument("bias", options.bias, "given once: here or in [groups]")
        problem = SpikedRandomFeatures(**(start | groups))
    return Request(
        problem,
        parse_grid("alpha", options.alpha) if options.alpha is not None else np.empty(0),
        parse_grid("lam", options.lam) if options.lam is not None else np.empty(0),
        grids,
        options.model,
        loss(options.loss or "square"),
    )


def parse_law(name: str, spec: Any) -> Any:
    """A law as typed: numbers separated by commas, or the name of a continuous one."""
    if isinstance(spec, str) and spec not in NAMES:
        try:
            return [float(part) for part in spec.split(",")]
        except ValueError:
            raise InvalidArgument(name, spec, f"a, b,c or one of {', '.join(NAMES)}") from None
    return spec


def parse_steps(spec: str | list[list[float]]) -> list[list[float]]:
    """Pairs (alpha0, eta) as typed, "2:1,2:1", or from a file.

    Raises
    ------
    InvalidArgument
        If it does not parse.

    Examples
    --------
    >>> parse_steps("2:1,inf:.5")
    [[2.0, 1.0], [inf, 0.5]]
    """
    if not isinstance(spec, str):
        return spec
    try:
        pairs = [[float(part) for part in pair.split(":")] for pair in spec.split(",")]
        if any(len(pair) != 2 for pair in pairs):
            raise ValueError
    except ValueError:
        raise InvalidArgument("steps", spec, "pairs alpha0:eta, as in 2:1,2:1,4:.5") from None
    return pairs
