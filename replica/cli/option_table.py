"""The options that describe a problem, as the commented file ``problem.toml`` has them, and the
numbers and lists that are typed.

The help of the commands and problem files read the table; which values a field may have is for the
problem classes to say.
"""

import re
from dataclasses import Field, fields
from importlib.resources import files
from typing import Any

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from ..observables import BEST
from ..problem import ACTIVATIONS, FINITE, READOUT_LAWS, SpikedRandomFeatures, axis, check_points
from ..steps import GradientStep

# By name, what was given: text as typed, or a value of a problem file.
Options = dict[str, Any]

GRID_FORMS = "a number, a,b,c, start:stop:count or start:stop:count:log"
LARGEST_DOCUMENT = 500_000  # points, which take 2 GB
# Parameters that take BEST in the place of a number, and in which commands.
COMMANDS_OF_BEST = {
    "lam": "replica curve, optimum, plan and readout take",
    "eta": "replica curve, optimum and plan take",
}
FOLLOWING = ("alpha0", "alpha")  # an option, and its word for as many samples as the readout's


def single_number(name: str, grid: Array) -> float:
    """The only value of a grid; one of several is refused."""
    if grid.size != 1:
        allowed = "a single number here (run the command once for each)"
        raise InvalidArgument(name, grid.tolist(), allowed)
    return float(grid[0])


def refuse_lists(options: Options) -> None:
    """Refuse lists of names where a command takes one and ``learning_curve`` a list."""
    for name in ("student", "theory", "loss"):
        text = options.get(name)
        each = [one.strip() for one in text.split(",")] if isinstance(text, str) else text
        if isinstance(each, list) and len(each) > 1:
            in_python = f"in Python learning_curve(..., {name}={each})"
            allowed = f"a single name here: run the command once for each, or {in_python}"
            raise InvalidArgument(name, text, allowed)


def one_or_axis(values: Array) -> Any:
    """Number of an array of one value, as Python would be given it; the array of several."""
    return values.item() if values.size == 1 else values


def parse_grid(name: str, text: Any) -> Array:
    """Numbers meant by ``text``: one of GRID_FORMS, or numbers from a file.

    >>> parse_grid("lam", "1e-2:1:3:log").round(12).tolist()
    [0.01, 0.1, 1.0]
    """
    if not isinstance(text, str):
        return axis(name, text)
    if text == BEST:
        taken = "a number here"
        if name in COMMANDS_OF_BEST:
            taken += f": {COMMANDS_OF_BEST[name]} the best, of ridge regression"
        raise InvalidArgument(name, text, taken)
    try:
        if ":" not in text:
            return np.array([float(part) for part in text.split(",")])
        start, stop, count, *log = text.split(":")
        ends, n = (float(start), float(stop)), int(count)
        if not (log in ([], ["log"]) and max(map(abs, ends)) <= FINITE and n >= 1):
            raise ValueError
    except ValueError:
        or_best = f", or {BEST} alone where it is searched" if name in COMMANDS_OF_BEST else ""
        raise InvalidArgument(name, text, GRID_FORMS + or_best) from None
    if log and min(ends) <= 0:
        positive = "between positive numbers where it is start:stop:count:log"
        raise InvalidArgument(name, text, positive)
    check_points(name, [n], LARGEST_DOCUMENT, text)
    return np.geomspace(*ends, n) if log else np.linspace(*ends, n)


def parse_law(text: Any) -> Any:
    """Law as typed: numbers or names, separated by commas, as a list.

    Anything else is returned as it is, for the constructor to check.
    """
    if not isinstance(text, str):
        return text
    parts = text.split(",")
    try:
        return [float(part) for part in parts]
    except ValueError:
        return text if len(parts) == 1 else [part.strip() for part in parts]


def parse_steps(text: str | list[list[float]]) -> list[list[float]]:
    """Pairs (alpha0, eta) as typed, "2:1,2:1", or from a file.

    >>> parse_steps("2:1,inf:.5")
    [[2.0, 1.0], [inf, 0.5]]
    """
    if not isinstance(text, str):
        return text
    try:
        pairs = [pair.split(":") for pair in text.split(",")]
        return [[float(alpha0), float(eta)] for alpha0, eta in pairs]
    except ValueError:
        raise InvalidArgument("steps", text, "pairs alpha0:eta, as in 2:1,2:1,4:.5") from None


# The file that ``replica init`` writes: of every option its meaning and an example of its value.
TABLE = (
    (files("replica.cli") / "problem.toml")
    .read_text("utf-8")
    .format(
        activations=", ".join(ACTIVATIONS),
        readout_laws=", ".join(READOUT_LAWS),
        grid_forms=GRID_FORMS,
    )
)
PANELS: dict[str, dict[str, str]] = {}  # the help of every option, in the panels of the commands
_comments: list[str] = []
for _line in TABLE.splitlines():
    if _option := re.match(r"(?:# )?(\w+) = ", _line):
        PANELS[[*PANELS][-1]][_option[1]] = " ".join(_comments)
    elif _line:
        _comments.append(_line.removeprefix("# "))
        continue
    elif len(_comments) == 1:  # a comment by itself is a title
        PANELS[_comments[0]] = {}
    _comments.clear()
HELP = {name: text for panel in PANELS.values() for name, text in panel.items()}
_all_fields = (*fields(GradientStep), *fields(SpikedRandomFeatures))
FIELDS: dict[str, Field[Any]] = {f.name: f for f in _all_fields if f.name in HELP}
FLAGS = tuple(name for name, f in FIELDS.items() if f.type is bool)
STEP_FIELDS, SRF_FIELDS = ("alpha0", "eta"), ("r", "c", "gamma")
# Numbers, or grids of them, in the order of the axes; the readout may be a grid of names.
GRIDS = (
    *STEP_FIELDS, "rate", *SRF_FIELDS, "beta", "dimension", "noise", "step_noise", "decay",
    "separation", "alpha", "samples", "lam",
)  # fmt: skip
# Options of arrays given in files, in the place of a problem.
GIVEN_FILES = ("weights", "directions", "features", "labels", "strata")
OF_PROBLEMS = tuple(name for name in HELP if name not in (*GIVEN_FILES, "classes", "samples"))
