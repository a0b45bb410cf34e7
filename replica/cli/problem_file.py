"""Problem files: TOML with the options' names as keys, a table [inputs] for the law of the inputs,
and a table [groups] for an sRF of several groups or spikes, whose r, c and gamma are arrays."""

import json
from pathlib import Path
from typing import Any

from ..errors import ELSEWHERE, InvalidArgument, shorten
from ..problem import Code, is_import_path
from .mixture_file import MIXTURE, read_toml
from .option_table import FLAGS, GIVEN_FILES, GRIDS, HELP, SRF_FIELDS
from .values import BEST, COMMANDS_OF_BEST, FOLLOWING, GRID_FORMS, Options, parse_grid

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
