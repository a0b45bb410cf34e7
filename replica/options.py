"""What the command lines share: grids written as text, problems, problem files."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from solvers.results import Array

from .errors import InvalidArgument
from .grids import Problem
from .models import GradientStep, SpikedRandomFeatures

GRID_FORMS = "a number, a,b,c, start:stop:count or start:stop:count:log"
STEP, SRF = ("alpha0", "eta"), ("r", "c", "gamma")

Values = float | str | list[float] | None


@dataclass(frozen=True)
class ProblemOptions:
    """The options that say which problem is meant, as typed or as in a problem file.

    Everything numeric may be a grid.
    """

    student: str | None = None
    target: str | None = None
    alpha0: Values = None
    eta: Values = None
    r: Values = None
    c: Values = None
    gamma: Values = None
    beta: Values = None
    noise: Values = None
    alpha: Values = None
    lam: Values = None


@dataclass(frozen=True)
class Request:
    """A problem, and the grids asked for: alpha, lam and model fields, arrays (n,)."""

    problem: Problem
    alpha: Array
    lam: Array
    grids: dict[str, Array] = field(default_factory=dict)


def parse_grid(name: str, text: Values) -> Array:
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
        return np.atleast_1d(np.asarray(text, dtype=float))
    try:
        if ":" not in text:
            return np.array([float(part) for part in text.split(",")])
        start, stop, count, *log = text.split(":")
        ends, n = (float(start), float(stop)), int(count)
        if n < 1 or log not in ([], ["log"]) or not np.isfinite(ends).all():
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
    try:
        TypeAdapter(strict).validate_python(content)
    except ValidationError as error:
        for mistake in error.errors():
            mistakes[str(mistake["loc"][0])] = mistake["msg"]
    for name in content.keys() - mistakes.keys() - {"student", "target"}:
        try:
            parse_grid(name, content[name])
        except InvalidArgument as error:
            mistakes[name] = f"must be {error.allowed}"
    if mistakes:
        found = "; ".join(f"{key}: {text}" for key, text in sorted(mistakes.items()))
        raise InvalidArgument("config", str(path), f"free of mistakes ({found})")
    return ProblemOptions(**content)


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


def request(options: ProblemOptions) -> Request:
    """The problem and grids that ``options`` describe.

    Raises
    ------
    InvalidArgument
        If something is missing, contradictory or out of range.
    """
    for name in ("student", "target", "alpha", "lam"):
        if getattr(options, name) is None:
            raise InvalidArgument(name, None, "given")
    step = [name for name in STEP if getattr(options, name) is not None]
    srf = [name for name in SRF if getattr(options, name) is not None]
    if step and srf:
        raise InvalidArgument(
            step[0],
            getattr(options, step[0]),
            f"given without --{srf[0]}: a step (--alpha0, "
            "--eta) or an sRF (--r, --c, --gamma), not both",
        )
    needed = SRF if srf else STEP
    for name in needed:
        if getattr(options, name) is None:
            raise InvalidArgument(name, None, f"given together with {', '.join(needed)}")
    numbers = {name: parse_grid(name, getattr(options, name)) for name in needed}
    for name, default in (("beta", 1.0), ("noise", 0.0)):
        text = getattr(options, name)
        numbers[name] = parse_grid(name, default if text is None else text)
    first = {name: float(values[0]) for name, values in numbers.items()}
    grids = {name: values for name, values in numbers.items() if values.size > 1}
    problem: Problem
    if srf:
        problem = SpikedRandomFeatures(student=options.student, target=options.target, **first)
    else:
        beta = first.pop("beta")
        problem = GradientStep(student=options.student, target=options.target, **first)
        grids.setdefault("beta", np.array([beta]))
    return Request(
        problem, parse_grid("alpha", options.alpha), parse_grid("lam", options.lam), grids
    )
