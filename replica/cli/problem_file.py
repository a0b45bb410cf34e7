"""TOML files: problem files, with the options' names as keys, a table [inputs] for the law of the
inputs, which may have a file of its own, and a table [groups] for an sRF of several groups or
spikes, whose r, c and gamma are arrays."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from solvers.results import Array

from ..array_files import Wanted, read_array
from ..documents import open_regular
from ..errors import ELSEWHERE, InvalidArgument, shorten
from ..problem import Code, GaussianMixture, is_import_path
from .option_table import (
    BEST,
    COMMANDS_OF_BEST,
    FLAGS,
    FOLLOWING,
    GIVEN_FILES,
    GRID_FORMS,
    GRIDS,
    HELP,
    SRF_FIELDS,
    Options,
    parse_grid,
)

LARGEST = 2**20  # bytes: a thousand times a long problem file, read in seconds
# Of every array what it may be, once read as float64.
ONE, TWO = (Wanted((axes, axes), "biuf", 8) for axes in (1, 2))
MIXTURE = {"means": TWO, "covariances": TWO._replace(axes=(2, 3)), "fractions": ONE}


def read_mixture(given: str | dict[str, Any]) -> GaussianMixture:
    """Gaussian mixture of a TOML file, of a table of one, or of an inline table as typed.

    Its keys hold lists, or names of files beside it.  Mistakes are InvalidArgument of --inputs.
    """
    if isinstance(given, str) and given.lstrip().startswith("{"):
        given = parse_toml("inputs", given, f"inputs = {given}".encode())["inputs"]
    path = Path(given) if isinstance(given, str) else Path("[inputs]")
    content = read_toml("inputs", path) if isinstance(given, str) else given
    for name in content:
        if name not in MIXTURE:
            allowed = f"a file of {', '.join(MIXTURE)}, without {name}"
            raise InvalidArgument("inputs", str(path), allowed)
    if "means" not in content:
        raise InvalidArgument("inputs", str(path), "a file with means")
    try:
        arrays = {
            name: read_array(name, path.parent / value, MIXTURE[name])
            if isinstance(value, str)
            else read_numbers(name, value)
            for name, value in content.items()
        }
        return GaussianMixture(**arrays)
    except InvalidArgument as error:
        allowed = f"a file whose {error.name} are {error.allowed}, not {error.value!s:.60}"
        raise InvalidArgument("inputs", str(path), allowed) from None


def read_numbers(name: str, value: Any) -> Array:
    """A number, or nested lists of them, as an array."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(name, value, "numbers, or a file of them") from None


def read_toml(name: str, path: Path) -> dict[str, Any]:
    """Content of the TOML file that the option ``name`` names, of a reasonable size."""
    try:
        with open_regular(path) as file:
            content = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise InvalidArgument(name, str(path), f"a readable TOML file ({error})") from None
    return parse_toml(name, str(path), content)


def parse_toml(name: str, source: str, content: bytes) -> dict[str, Any]:
    """Values of the TOML that the option ``name`` means by a ``source``."""
    # a key of many parts, a.b.c..., takes the reader a time of their square
    deep_key = r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){20}"""
    try:
        text = content.decode()
        if len(content) > LARGEST or re.search(deep_key, text):
            raise ValueError(f"larger than {LARGEST} bytes, or keys of 20 parts and more")
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        allowed = f"a readable TOML file, with 0.5 for .5 and text in quotes ({error})"
        raise InvalidArgument(name, source, allowed) from None


GROUP_FIELDS = (*SRF_FIELDS, "fractions", "bias")  # the keys of [groups]


def read_config(path: Path, *, allow_import: bool = False) -> Options:
    """The options in a TOML problem file; one with mistakes is refused, with all of them, and so is
    one that names code to import, unless that is allowed."""
    content = read_toml("config", path)
    mistakes = {name: _mistake(name, value, allow_import) for name, value in content.items()}
    listed = [f"{name}: {mistake}" for name, mistake in sorted(mistakes.items()) if mistake]
    if listed:
        raise InvalidArgument("config", str(path), f"free of mistakes ({'; '.join(listed)})")
    return as_typed(content) if allow_import else content


def as_typed(options: Options) -> Options:
    """The options, with text that names code as ``Code``, which may be imported."""
    return {
        name: Code(value) if is_import_path(value) else value for name, value in options.items()
    }


def _mistake(name: str, value: Any, allow_import: bool) -> str:
    """Mistake in the value of a key, in words; empty if there is none."""
    if name not in KEYS:
        hint = ELSEWHERE.get(name)
        return "there is no such key" + (f": it is {hint}" if hint in KEYS else "")
    forms, allowed = KEYS[name]
    try:
        if _form(value) in forms:
            word = (name in COMMANDS_OF_BEST and value == BEST) or (name, value) == FOLLOWING
            if name in (*GRIDS, "reuse") and not word:
                parse_grid(name, value)
            code = is_import_path(value) and name not in (*GIVEN_FILES, "bias", "inputs")
            if code and not allow_import:
                return f"imports and runs code ({value}): --allow-import lets a file do so"
            return ""
    except InvalidArgument as error:
        allowed = error.allowed
    return f"must be {allowed}, got {shorten(json.dumps(value, default=str), 60)}"


def _form(value: Any, depth: int = 0) -> str:
    """Kind of a value, as ``KEYS`` names it; a bool is no number."""
    if isinstance(value, list) and depth < 2:
        forms = {_form(one, depth + 1) for one in value}
        return f"list of {forms.pop() if len(forms) == 1 else 'several'}"
    if isinstance(value, dict) and set(SRF_FIELDS) <= value.keys() <= set(GROUP_FIELDS):
        return "groups"
    if isinstance(value, dict) and {"means"} <= value.keys() <= MIXTURE.keys():
        return "mixture"
    return {bool: "flag", str: "text", int: "number", float: "number"}.get(type(value), "other")


AXIS = ("text", "number", "list of number")
# Of every key the forms of its value, and these in words.
KEYS: dict[str, tuple[tuple[str, ...], str]] = (
    dict.fromkeys(HELP, (("text",), "text in quotes"))
    | {"classes": (("text", "list of text", "list of number"), "names: text in quotes, or a list")}
    | dict.fromkeys((*GRIDS, "kinks", "reuse"), (AXIS, f"{GRID_FORMS}, or a list of numbers"))
    | dict.fromkeys(FLAGS, (("flag",), "true or false"))
    | dict.fromkeys(
        ("readout", "bias"),
        ((*AXIS, "list of text", "list of list of number"), "a name, a number, or a list of these"),
    )
    | {
        "steps": (("text", "list of list of number"), "pairs, as in 2:1,2:1 or [[2, 1], [2, 1]]"),
        "inputs": (("text", "mixture"), f"a file's name, or a table of {', '.join(MIXTURE)}"),
        "groups": (("groups",), f"a table of {', '.join(GROUP_FIELDS)}, the first three given"),
    }
)
