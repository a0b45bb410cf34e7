"""Results that survive a kill: one small file for every finished cell.

The name of a file is a hash of the description of its cell, by ``identity``.  A file is written
whole or not at all, and many processes may share a folder, on a disk without locks, too: on
machines of one kind a cell has the same numbers whoever computes it, on others to rounding, and
those written last stay.  A file is only believed if it describes the cell that was looked for, its
numbers match their checksum, and such a cell can have them.
"""

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from replica.documents import open_regular, plain, write_file
from replica.errors import InvalidArgument
from solvers.results import Array

logger = logging.getLogger(__name__)

NUMBER_BYTES = 32  # at most: 24 characters for the digits of a float, a comma, brackets
Description = Mapping[str, Any]
Bounds = tuple[ArrayLike, ArrayLike]
Name = TypeVar("Name")  # by which a cell is asked for
ERRORS: Bounds = (0.0, np.inf)  # of squared errors


class StoreError(OSError):
    """A finished cell could not be written, as on a full disk."""


def open_folder(path: str | os.PathLike[str]) -> Path:
    """The folder of a store, made if it is not there.

    Raises
    ------
    InvalidArgument
        If it cannot be made or read.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        next(folder.iterdir(), None)
    except OSError as error:
        allowed = f"a folder that can be made ({error.strerror})"
        raise InvalidArgument("store", str(path), allowed) from None
    return folder


def check_writable(folder: Path, missing: int) -> None:
    """Raise InvalidArgument for a folder that cannot be written to, before the ``missing`` cells
    are computed."""
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
    """Numbers of those ``cells`` that are in the folder, each an array of this ``shape``; files
    that are damaged or cannot be read are reported, and count as missing.

    Numbers lie between the two ``bounds``, each broadcast to the shape, which are NaN where nothing
    is measured.
    """
    found: dict[Name, Array] = {}
    faults: dict[str, list[Path]] = {}
    for name, cell in cells.items():
        file = file_of(folder, cell)
        try:
            found[name] = _load(file, cell, shape, bounds)
        except FileNotFoundError:
            pass
        except OSError as error:
            faults.setdefault(f"cannot be read ({error.strerror})", []).append(file)
        except (ValueError, TypeError, KeyError, RecursionError):
            faults.setdefault("is damaged or not what its name says", []).append(file)
    for fault, (first, *others) in faults.items():
        more = f", as with {len(others)} others" if others else ""
        logger.warning("%s %s%s: computed again", first, fault, more)
    return found


def write(folder: Path, cell: Description, errors: Array, bounds: Bounds = ERRORS) -> None:
    """Write a finished cell, over a damaged file or a link if there is one.

    Errors outside the bounds, as where they overflow, are not written: they would not be believed.

    Raises
    ------
    StoreError
        If there is no space, or the file cannot be written for another reason.
    """
    if not _possible(errors, bounds):
        return
    numbers = plain(errors)
    document = {"cell": plain(cell), "errors": numbers, "sha256": _digest(numbers)}
    file, content = file_of(folder, cell), (json.dumps(document, sort_keys=True) + "\n").encode()
    try:
        write_file(file, content, afresh=True)
    except IsADirectoryError as error:
        raise StoreError(error.errno, "a folder is where a cell is kept", str(file)) from error
    except OSError as error:
        raise StoreError(
            error.errno,
            f"{error.strerror}: this cell could not be kept; those finished before are safe, and "
            "the same command goes on from them",
            str(folder),
        ) from error


def _load(file: Path, cell: Description, shape: tuple[int, ...], bounds: Bounds) -> Array:
    """The numbers in a cell's file; one of many errors if it is not that cell's."""
    described = plain(cell)
    most = len(json.dumps(described)) + NUMBER_BYTES * (int(np.prod(shape)) + 8)
    with open_regular(file) as stream:
        text = stream.read(most + 1)
    document = json.loads(text)
    values = np.array(document["errors"], dtype=object)
    if (
        len(text) > most
        or document["cell"] != described
        or document["sha256"] != _digest(document["errors"])
        or values.shape != shape
        or any(type(value) not in (float, type(None)) for value in values.flat)
    ):
        raise ValueError
    errors = values.astype(float)  # NaN of None
    if not _possible(errors, bounds):
        raise ValueError
    return errors


def _possible(errors: Array, bounds: Bounds) -> bool:
    """Whether all numbers are finite and in bounds, and NaN where these are."""
    low, high = bounds
    good = np.isfinite(errors) & (low <= errors) & (errors <= high)
    return bool(np.where(np.isnan(low), np.isnan(errors), good).all())


def _digest(value: Any) -> str:
    """SHA-256 of ``value`` as JSON with sorted keys, in hexadecimal."""
    text = json.dumps(plain(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
