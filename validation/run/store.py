"""Results that survive a kill: one small file for every finished cell.

A file's name is a hash of what its cell is, by ``identity``.  A file is only believed if it says
it is the cell that was looked for, its numbers match its checksum and are numbers that such a
cell can have.  Many processes may share a folder: each writes under the folder's lock, the first
cell to be there stays, and nothing but what a killed writer left half-written is ever deleted.
"""

import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from replica.documents import TEMPORARY, open_regular, plain, write_file
from replica.errors import InvalidArgument
from solvers.results import Array

try:
    import fcntl
except ImportError:  # not on Windows, where a store has one writer at a time
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

CELL_FILE = re.compile(r"[0-9a-f]{40}\.json")
LOCK = ".lock"
LOCK_SECONDS = 30.0  # a writer holds the lock for milliseconds, unless it was suspended
NUMBER_BYTES = 32  # at most: 24 characters for the digits of a float, a comma, brackets
Description = Mapping[str, Any]
Bounds = tuple[ArrayLike, ArrayLike]
Name = TypeVar("Name")  # by which a cell is asked for
ERRORS: Bounds = (0.0, np.inf)  # of squared errors


class StoreError(OSError):
    """A finished cell could not be kept, as on a full disk."""


def open_folder(path: str | os.PathLike[str]) -> Path:
    """The folder of a store, made if it is not there, or InvalidArgument if it cannot be made or
    read; files in it that are no cells are reported."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = sorted(file.name for file in folder.iterdir())
        left = [folder / name for name in names if TEMPORARY.fullmatch(name)]
        if left:
            _sweep(folder, left)
    except OSError as error:
        allowed = f"a folder that can be made ({error.strerror})"
        raise InvalidArgument("store", str(path), allowed) from None
    strange = [
        n for n in names if not (TEMPORARY.fullmatch(n) or n == LOCK or CELL_FILE.fullmatch(n))
    ]
    if strange:
        more = f" (nor are {len(strange) - 1} others)" if len(strange) > 1 else ""
        logger.warning("%s is not a cell of this library%s: left alone", folder / strange[0], more)
    return folder


def check_writable(folder: Path, missing: int) -> None:
    """Refuse a folder that keeps no cells, before so many are computed: InvalidArgument."""
    if not os.access(folder, os.W_OK):
        allowed = f"a folder that can be written to, as {missing} cells are not in it"
        raise InvalidArgument("store", str(folder), allowed)


def file_of(folder: Path, cell: Description) -> Path:
    """The path of the cell's file, whether it is there or not."""
    return folder / f"{_digest(cell)[:40]}.json"


def read(
    folder: Path,
    cells: Mapping[Name, Description],
    shape: tuple[int, ...],
    bounds: Bounds = ERRORS,
) -> dict[Name, Array]:
    """What was measured on those of ``cells`` that are there and to be trusted.

    The numbers of one cell have this ``shape`` and lie between the two ``bounds``, each broadcast
    to it, which are NaN where nothing is measured.
    """
    found: dict[Name, Array] = {}
    damaged: list[Path] = []
    for name, cell in cells.items():
        file = file_of(folder, cell)
        try:
            found[name] = _load(file, cell, shape, bounds)
        except FileNotFoundError:
            pass
        except Damaged:
            damaged.append(file)
    if damaged:
        more = f", and so are {len(damaged) - 1} others" if len(damaged) > 1 else ""
        logger.warning(
            "%s is damaged or not what its name says%s: computed again", damaged[0], more
        )
    return found


def write(folder: Path, cell: Description, errors: Array, bounds: Bounds = ERRORS) -> None:
    """Keep a finished cell, unless it is there.  A damaged file in its place is renamed, not lost.

    Errors outside the bounds, as where they overflow, are not kept: they would not be believed.

    Raises
    ------
    StoreError
        If there is no space, or the file cannot be written for another reason.
    """
    if not _possible(errors, bounds):
        return
    file = file_of(folder, cell)
    numbers = plain(errors)
    document = {"cell": plain(cell), "errors": numbers, "sha256": _digest(numbers)}
    try:
        with _lock(folder) as locked:
            try:
                _load(file, cell, errors.shape, bounds)
                return  # another process was first, or the same
            except FileNotFoundError:
                pass
            except Damaged:
                if not locked:
                    return  # by now it may be another's good cell
                file.rename(_aside(file))
            write_file(file, (json.dumps(document, sort_keys=True) + "\n").encode())
    except OSError as error:
        raise StoreError(
            error.errno,
            f"{error.strerror}: this cell could not be kept; those finished before are safe, and "
            "the same command goes on from them",
            str(folder),
        ) from error


class Damaged(ValueError):
    """A file that is not the cell that its name says."""


def _load(file: Path, cell: Description, shape: tuple[int, ...], bounds: Bounds) -> Array:
    """The numbers in a cell's file: every such file is read here.

    Raises
    ------
    FileNotFoundError
    Damaged
    """
    described = plain(cell)
    most = len(json.dumps(described)) + NUMBER_BYTES * (int(np.prod(shape)) + 8)
    try:
        with open_regular(file) as stream:
            text = stream.read(most + 1)
        if len(text) > most:
            raise Damaged
        document = json.loads(text)
        values = np.array(document["errors"], dtype=object)
        if (
            document["cell"] != described
            or document["sha256"] != _digest(document["errors"])
            or values.shape != shape
            or any(type(value) not in (float, type(None)) for value in values.flat)
        ):
            raise Damaged
    except FileNotFoundError:
        raise
    except (ValueError, TypeError, KeyError, OSError, RecursionError):
        raise Damaged from None
    errors = values.astype(float)  # NaN of None
    if not _possible(errors, bounds):
        raise Damaged
    return errors


def _possible(errors: Array, bounds: Bounds) -> bool:
    """Whether all numbers are finite and in bounds, and NaN where these are."""
    low, high = bounds
    good = np.isfinite(errors) & (low <= errors) & (errors <= high)
    return bool(np.where(np.isnan(low), np.isnan(errors), good).all())


@contextmanager
def _lock(folder: Path) -> Iterator[bool]:
    """Keep other writers out of the folder; whether that could be had.

    Not on a file system that has no locks, and not from a writer that was suspended.
    """
    # to read, as it may be that of another user; a pipe of that name is not waited for
    flags = os.O_RDONLY | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(folder / LOCK, flags, 0o666)
    try:
        yield _locked(handle, time.monotonic() + LOCK_SECONDS)
    finally:
        os.close(handle)


def _locked(handle: int, deadline: float) -> bool:
    """Lock an open file until it is closed; False where there is no lock, or none in time."""
    while fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        except OSError:
            return False
    return False


def _sweep(folder: Path, left: list[Path]) -> None:
    """Delete files that killed writers have ``left``: under the lock, nobody alive is writing."""
    if not os.access(folder, os.W_OK):
        return
    with _lock(folder) as locked:
        for file in left if locked else ():
            if file.is_file():  # a folder of that name is not ours
                file.unlink(missing_ok=True)


def _aside(file: Path) -> Path:
    """The first name ``file``.damaged-1, -2 ... that no file has."""
    number = 1
    while os.path.lexists(free := file.with_suffix(f".damaged-{number}")):
        number += 1
    return free


def _digest(value: Any) -> str:
    """SHA-256 of ``value`` as JSON with sorted keys, in hexadecimal."""
    text = json.dumps(plain(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
