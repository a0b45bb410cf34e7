"""Problem files: TOML with the options' names as keys, and a table [groups] for an sRF of several
groups or spikes, whose r, c and gamma are arrays."""

import re
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from ..documents import open_regular
from ..errors import InvalidArgument
from ..problem import SpikedRandomFeatures, names_code
from .options import FLAGS, GRIDS, HELP, SRF_FIELDS, Options, parse_grid

LARGEST_FILE = 2**20  # bytes: a thousand times a long problem file, read in seconds
# A key of many parts, a.b.c..., takes the reader a time of their square.
DEEP_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){20}""")
GROUP_FIELDS = (*SRF_FIELDS, "fractions", "bias")  # the keys of [groups]


def read_config(path: Path, *, allow_import: bool = False) -> Options:
    """The options in a TOML problem file; one with mistakes is refused, with all of them, and so is
    one that names code to import, unless that is allowed."""
    from pydantic import ValidationError

    content = _content(path)
    mistakes: dict[str, str] = {}
    options: Options = {}
    try:
        options = _file_schema().model_validate(content).model_dump(exclude_unset=True)
    except ValidationError as error:
        for mistake in error.errors():
            mistakes[str(mistake["loc"][0])] = mistake["msg"]
    for name in (content.keys() & set(GRIDS)) - mistakes.keys():
        try:
            parse_grid(name, content[name])
        except InvalidArgument as error:
            mistakes[name] = f"must be {error.allowed}"
    for name, value in content.items():
        if names_code(value) and name != "config" and not allow_import:
            mistakes[name] = f"imports and runs code ({value}): --allow-import lets a file do so"
    if mistakes:
        listed = "; ".join(f"{key}: {text}" for key, text in sorted(mistakes.items()))
        raise InvalidArgument("config", str(path), f"free of mistakes ({listed})")
    return options


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


def _file_schema() -> Any:
    """The pydantic model of a problem file: its keys are the options and [groups]."""
    from pydantic import ConfigDict, create_model

    # strict: a truth value is no number, and "yes" no truth value
    only_known = ConfigDict(extra="forbid", strict=True)
    needed = {f.name: ... if f.default is MISSING else None for f in fields(SpikedRandomFeatures)}
    in_groups: dict[str, Any] = {name: (Any, needed[name]) for name in GROUP_FIELDS}
    groups = create_model("Groups", __config__=only_known, **in_groups)
    grid = float | str | list[float]
    law = grid | list[list[float]] | list[str]
    types: dict[str, Any] = (
        dict.fromkeys(HELP, str)
        | dict.fromkeys((*GRIDS, "kinks"), grid)
        | dict.fromkeys(FLAGS, bool)
        | {"readout": law, "bias": law, "steps": str | list[list[float]], "groups": groups}
    )
    keys: dict[str, Any] = {name: (kind, None) for name, kind in types.items()}
    return create_model("ProblemFile", __config__=only_known, **keys)
