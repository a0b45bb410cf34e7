"""TOML files, and the law of the inputs in one."""

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from solvers.results import Array

from ..array_files import Wanted, read_array
from ..documents import open_regular
from ..errors import InvalidArgument
from ..problem import GaussianMixture

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
