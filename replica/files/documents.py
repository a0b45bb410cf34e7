"""Results as documents and files.  A file appears whole or not at all."""

import csv
import errno
import io
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from string import ascii_lowercase
from typing import Any, BinaryIO

import numpy as np

from ..errors import InvalidArgument

TEMPORARY = re.compile(r"\.replica-[0-9a-f]{16}")  # names of files that are being written


def write_file(path: str | os.PathLike[str], content: bytes, *, afresh: bool = False) -> None:
    """Make ``content`` the whole of a file, at once: all files of this library are written here.

    A temporary file beside it is synced and renamed.  Whatever goes wrong before that (a full
    disk, Ctrl-C) leaves an old file untouched and nothing else behind.  A symbolic link stays one:
    what it leads to is replaced, and keeps its mode.  With ``afresh`` a link itself is
    replaced, and no mode is kept.

    Raises
    ------
    OSError
        With ``path`` as its file name.
    """
    target = Path(path if afresh else os.path.realpath(path))
    temporary = _temporary_beside(target)
    try:
        with open(temporary, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if not afresh and target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _temporary_beside(target: Path) -> Path:
    """A new name in the folder of a file; it is short, as names of files may not be."""
    return target.with_name(f".replica-{secrets.token_hex(8)}")


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file to read it, where it is one: a pipe is not waited for, a device not drained, but
    an OSError raised."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(errno.EINVAL, "neither a folder, a pipe nor a device is read", str(path))
    return open(path, "rb")


def check_writable(option: str, path: Path, suffixes: Sequence[str]) -> None:
    """Refuse a path that could not be written after the computation: an empty file is written
    beside it, and removed, as no permissions tell for sure."""
    if path.suffix.lower() not in suffixes:
        raise InvalidArgument(option, str(path), f"a file name ending in {', '.join(suffixes)}")
    target_file = Path(os.path.realpath(path))
    if not target_file.parent.is_dir():
        raise InvalidArgument(option, str(path), "in a folder that exists")
    there = os.path.lexists(target_file)  # also where links go round in a circle
    if there and not (target_file.is_file() and os.access(target_file, os.W_OK)):
        raise InvalidArgument(option, str(path), "a file that can be written")
    trial = _temporary_beside(target_file)
    try:
        trial.open("xb").close()
        trial.unlink()
    except OSError as error:
        allowed_folder = f"in a folder that can be written to ({error.strerror})"
        raise InvalidArgument(option, str(path), allowed_folder) from None


def plain(value: Any) -> Any:
    """``value`` in JSON's types: numpy scalars unwrapped, NaN as null, infinities as text."""
    if isinstance(value, Mapping):
        return {document_key: plain(document_item) for document_key, document_item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(document_item) for document_item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)  # the latter is known, and read back as is
    return value


def to_json(document: Mapping[str, Any]) -> str:
    """The document as JSON text, NaN as null."""
    return json.dumps(plain(document), indent=1, allow_nan=False)


# Columns that a printed table has no room for: how points were found, and what they are made of.
NOT_PRINTED = (
    "converged", "residual", "quadrature_error", "iterations", "status", "nodes",
    "note", "low_and_high", "r", "c", "gamma",
)  # fmt: skip


def to_tex(
    rows: Sequence[Mapping[str, Any]],
    symbol: Callable[[str], str] = str,
    printed: Sequence[str] = (),
) -> str:
    r"""The rows as a table of LaTeX, with the rules of its package booktabs: the ``symbol`` of each
    column, numbers to four digits, a dash where one is not known; columns of NOT_PRINTED only where
    they are ``printed``.  Rows with a note have its letter, and comments below have the notes.

    Examples
    --------
    >>> print(to_tex([{"alpha": 0.5, "test_error": 1 / 3, "status": "converged"}]))
    \begin{tabular}{rr}
    \toprule
    alpha & test error \\
    \midrule
    0.5 & 0.3333 \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    used_columns = [name for name in rows[0] if any(row[name] != "" for row in rows)]
    printed_columns = [name for name in used_columns if name in printed or name not in NOT_PRINTED]
    notes = [row.get("note") or "" for row in rows]
    distinct_notes = filter(None, dict.fromkeys(notes))
    letters = {note: ascii_lowercase[k % 26] for k, note in enumerate(distinct_notes)}
    marks = [rf"\rlap{{$^{letters[note]}$}}" if note else "" for note in notes]
    body_rows = [
        " & ".join(_tex(row[name]) for name in printed_columns) + mark
        for row, mark in zip(rows, marks, strict=True)
    ]
    tex_lines = [
        rf"\begin{{tabular}}{{{'r' * len(printed_columns)}}}",
        r"\toprule",
        rf"{' & '.join(_tex(symbol(name)) for name in printed_columns)} \\",
        r"\midrule",
        *(rf"{row} \\" for row in body_rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(f"% {letter}: {note}" for note, letter in letters.items()),
    ]
    return "\n".join(tex_lines) + "\n"


def _tex(cell: Any) -> str:
    """A cell of a table of LaTeX."""
    if cell is None or (isinstance(cell, (float, np.floating)) and np.isnan(cell)):
        return "--"
    if isinstance(cell, (float, np.floating)):
        tex_digits, _, power = f"{cell:.4g}".partition("e")
        if tex_digits.endswith("inf"):
            return tex_digits.replace("inf", r"$\infty$")
        tex_number = tex_digits.replace("-", "$-$")
        return rf"{tex_number} $\cdot 10^{{{int(power)}}}$" if power else tex_number
    if str(cell).startswith("$"):
        return str(cell)
    if re.fullmatch(r"[a-z](\^\d+)?", str(cell)):
        return f"${cell}$"
    tex_commands = {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "_": " ",
    }
    return "".join(tex_commands.get(c, rf"\{c}" if c in "&%$#{}" else c) for c in str(cell))


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as CSV text with a header, floats to their last digit, NaN as an empty field."""
    csv_text = io.StringIO()
    csv_writer = csv.DictWriter(csv_text, fieldnames=list(rows[0]), lineterminator="\n")
    csv_writer.writeheader()
    csv_writer.writerows(plain(rows))
    return csv_text.getvalue()
