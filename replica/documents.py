"""Results as documents and files.  A file appears whole or not at all."""

import csv
import io
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InvalidArgument


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then put it in place.

    A crash, a full disk or Ctrl-C leaves the old file, if there was one, untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{path.suffix}")
    try:
        write(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(option: str, path: Path, suffixes: Sequence[str]) -> None:
    """Refuse now what could not be written after the computation."""
    if path.suffix not in suffixes:
        raise InvalidArgument(option, str(path), f"a file name ending in {', '.join(suffixes)}")
    if not path.parent.is_dir():
        raise InvalidArgument(option, str(path), "in a folder that exists")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidArgument(option, str(path), "a file that can be written")
    if not os.access(path.parent, os.W_OK):
        raise InvalidArgument(option, str(path), "in a folder that can be written to")


def plain(value: Any) -> Any:
    """``value`` in JSON's types: numpy scalars unwrapped, NaN as null, infinities as text."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        return str(value)  # known, and read back as it is
    return value


def to_json(document: Mapping[str, Any]) -> str:
    """The document as JSON text, NaN as null."""
    return json.dumps(plain(document), indent=1, allow_nan=False)


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as CSV text with a header, floats to their last digit, NaN as an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(plain(rows))
    return text.getvalue()
