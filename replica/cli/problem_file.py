"""Problem files: TOML with the options' names as keys, and a table [groups] for an sRF of several
groups or spikes, whose r, c and gamma are arrays."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..documents import open_regular
from ..errors import InvalidArgument, shorten
from ..problem import names_code
from .options import FLAGS, GRID_FORMS, GRIDS, HELP, SRF_FIELDS, Options, parse_grid

SHOWN = 60  # characters of a value in a message, of which there may be several
LARGEST_FILE = 2**20  # bytes: a thousand times a long problem file, read in seconds
# A key of many parts, a.b.c..., takes the reader a time of their square.
DEEP_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){20}""")
GROUP_FIELDS = (*SRF_FIELDS, "fractions", "bias")  # the keys of [groups]


def read_config(path: Path, *, allow_import: bool = False) -> Options:
    """The options in a TOML problem file; one with mistakes is refused, with all of them, and so is
    one that names code to import, unless that is allowed."""
    content = _content(path)
    mistakes = {name: _mistake(name, value) for name, value in content.items()}
    for name, value in content.items():
        if names_code(value) and not mistakes[name] and not allow_import:
            mistakes[name] = f"imports and runs code ({value}): --allow-import lets a file do so"
    listed = [f"{name}: {mistake}" for name, mistake in sorted(mistakes.items()) if mistake]
    if listed:
        raise InvalidArgument("config", str(path), f"free of mistakes ({'; '.join(listed)})")
    return content


def _mistake(name: str, value: Any) -> str:
    """What is wrong with the value of a key, if anything is."""
    if name not in FORMS:
        return "there is no such key"
    fits, allowed = FORMS[name]
    try:
        if fits(value):
            if name in GRIDS:
                parse_grid(name, value)
            return ""
    except InvalidArgument as error:
        allowed = error.allowed
    return f"must be {allowed}, got {shorten(json.dumps(value, default=str), SHOWN)}"


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_number, value))


def _grid(value: Any) -> bool:
    return _text(value) or _number(value) or _numbers(value)


def _law(value: Any) -> bool:
    rows = isinstance(value, list) and (all(map(_numbers, value)) or all(map(_text, value)))
    return _grid(value) or rows


def _steps(value: Any) -> bool:
    return _text(value) or (isinstance(value, list) and all(map(_numbers, value)))


def _groups(value: Any) -> bool:
    return isinstance(value, dict) and set(SRF_FIELDS) <= value.keys() <= set(GROUP_FIELDS)


# Of every key whether a value can be meant, and what can.
FORMS: dict[str, tuple[Callable[[Any], bool], str]] = (
    dict.fromkeys(HELP, (_text, "text in quotes"))
    | dict.fromkeys((*GRIDS, "kinks"), (_grid, f"{GRID_FORMS}, or a list of numbers"))
    | dict.fromkeys(FLAGS, (lambda value: isinstance(value, bool), "true or false"))
    | dict.fromkeys(("readout", "bias"), (_law, "a name, a number, or a list of these"))
    | {
        "steps": (_steps, "pairs alpha0:eta, as in 2:1,2:1, or a list of pairs"),
        "groups": (_groups, f"a table of {', '.join(GROUP_FIELDS)}, the first three given"),
    }
)


def _content(path: Path) -> dict[str, Any]:
    """The TOML in a file of reasonable size; what cannot be read is refused."""
    try:
        with open_regular(path) as file:
            content = file.read(LARGEST_FILE + 1)
        text = content.decode()
        if len(content) > LARGEST_FILE or DEEP_KEY.search(text):
            raise ValueError(f"larger than {LARGEST_FILE} bytes, or keys of 20 parts and more")
        return tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidArgument("config", str(path), f"a readable TOML file ({error})") from None
