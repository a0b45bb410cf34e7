"""Results that survive a kill: one small file for every finished cell.

A file's name is a hash of what its cell is: problem, sizes, penalties, seed, and the version
of this library.  It is written under a temporary name, synced and renamed, so that it is there
whole or not at all.  A file is only believed if it says it is the cell that was looked for and
its numbers match its checksum; whatever else lies in the folder is reported and left alone.
"""

import hashlib
import json
import logging
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from replica.documents import plain
from replica.errors import InvalidArgument
from solvers.results import Array

logger = logging.getLogger(__name__)

CELL_FILE = re.compile(r"[0-9a-f]{40}\.json")
Description = Mapping[str, Any]


class StoreError(OSError):
    """A finished cell could not be kept, as on a full disk."""


def open_folder(path: str | os.PathLike[str]) -> Path:
    """The folder of a store, made if it is not there; files in it that are no cells are reported.

    Raises
    ------
    InvalidArgument
        If it cannot be made or written to.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = sorted(file.name for file in folder.iterdir())
    except OSError as error:
        allowed = f"a folder that can be made ({error.strerror})"
        raise InvalidArgument("store", str(path), allowed) from None
    if not os.access(folder, os.W_OK):
        raise InvalidArgument("store", str(path), "a folder that can be written to")
    for name in names:
        if not CELL_FILE.fullmatch(name):
            logger.warning("%s is not a cell of this library; it is left alone", folder / name)
    return folder


def file_of(folder: Path, cell: Description) -> Path:
    """The path of the cell's file, whether it is there or not."""
    return folder / f"{_digest(cell)[:40]}.json"


def read(folder: Path, cell: Description, shape: tuple[int, ...]) -> Array | None:
    """The errors of a finished cell, an array of ``shape``; None if there are none to trust."""
    file = file_of(folder, cell)
    try:
        document = json.loads(file.read_bytes())
        errors = np.array(document["errors"], dtype=float)
        good = (
            document["cell"] == plain(cell)
            and document["sha256"] == _digest(document["errors"])
            and errors.shape == shape
        )
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, OSError):
        good = False
    if good:
        return errors
    logger.warning("%s is damaged or not what its name says; the cell is computed again", file)
    return None


def write(folder: Path, cell: Description, errors: Array) -> None:
    """Keep a finished cell.  A damaged file in its place is renamed, not lost.

    Raises
    ------
    StoreError
        If there is no space, or the file cannot be written for another reason.
    """
    file = file_of(folder, cell)
    numbers = plain(errors)
    document = {"cell": plain(cell), "errors": numbers, "sha256": _digest(numbers)}
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=".cell-", dir=folder)
        with os.fdopen(handle, "w") as stream:
            stream.write(json.dumps(document, sort_keys=True) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        if file.exists():
            file.rename(_aside(file))
        os.replace(temporary, file)
        _sync(folder)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise StoreError(
            error.errno,
            f"{error.strerror}: this cell could not be kept; those finished before are safe, and "
            "the same command goes on from them",
            str(folder),
        ) from error


def _aside(file: Path) -> Path:
    """The first name ``file``.damaged-1, -2 ... that no file has."""
    number = 1
    while (free := file.with_suffix(f".damaged-{number}")).exists():
        number += 1
    return free


def _sync(folder: Path) -> None:
    """Write the folder's entries to the disk, so that a rename survives a power cut, on POSIX."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _digest(value: Any) -> str:
    """SHA-256 of ``value`` as JSON with sorted keys, in hexadecimal."""
    text = json.dumps(plain(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
