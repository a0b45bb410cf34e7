"""Results that survive a kill: one small file for every finished cell.

The name of a file is a hash of the description of its cell.  A file is written
whole or not at all, and many processes may share a folder, on a disk without locks, too: on
machines of one kind a cell has the same numbers whoever computes it, on others to rounding, and
those written last stay.  A file is only believed if it describes the cell that was looked for, and
its numbers match their checksum.

A cell is described in plain values: equal descriptions mean equal draws and equal errors.  A user's
functions may share a name, and may be edited.  They are told apart by their values at
fixed points, near and far.
"""

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from replica import __version__
from replica.convex import Loss
from replica.errors import InvalidArgument
from replica.files import open_regular, plain, write_file
from replica.problem import Activation, ClassLabels, LabelNoise, Law, MultiIndex
from solvers.results import Array

from .cells import CELL_METHOD, Experiment

# Points at which functions are compared: off the zeros of the usual ones, and as far out as the
# theory's quadrature goes, where large steps lead.
DISTANT_POINTS = np.geomspace(6.13, 256, 80)
COMPARED_AT = np.concatenate([-DISTANT_POINTS, np.linspace(-6.07, 5.93, 121), DISTANT_POINTS])
Part = Activation | MultiIndex | ClassLabels | Law | LabelNoise | Loss  # told apart by values


def describe_cells(
    experiment: Experiment, indices: Iterable[int], key: str | None = None
) -> dict[int, dict[str, Any]]:
    """Descriptions of cells, by the index of the seed: everything that errors depend on, and the
    versions of library and method.

    The ``key`` stands for functions that do not return the same twice; InvalidArgument if there
    are such functions and no key.
    """
    problem, loss = experiment.problem, experiment.loss
    parts = {f.name: getattr(problem, f.name) for f in fields(problem)}
    lists = {name: of for name, of in parts.items() if isinstance(of, tuple)}  # one for each step
    parts |= {f"{name} {step}": part for name, of in lists.items() for step, part in enumerate(of)}
    hashes = {name: _hashes(name, of, key) for name, of in parts.items() if isinstance(of, Part)}
    cell_content = vars(experiment) | {
        "version": __version__,
        "method": CELL_METHOD,
        "problem": experiment.described,
        "kind": type(problem).__name__,
        "values": hashes,
        "key": key,
        "loss": [loss.name, loss.kind, *_hashes("loss", loss, key)],
    }
    if experiment.samples:
        given_law = getattr(problem, "inputs", None)
        array_owners = [problem] if given_law is None else [problem, given_law]
        # fields alone: a model that has been solved also keeps what the theory made of them
        arrays = {f.name: getattr(part, f.name) for part in array_owners for f in fields(part)}
        arrays = {name: of for name, of in arrays.items() if isinstance(of, np.ndarray)}
        arrays.pop("strata", None)  # unknown to simulations
        digests = {name: hashlib.sha256(of.tobytes()).hexdigest() for name, of in arrays.items()}
        cell_content["given"] = digests
    return {index: cell_content | {"seed": index} for index in indices}


def _hashes(name: str, hashed_part: Part, key: str | None) -> list[str]:
    """A hash of the values of a part of the problem; nothing where ``key`` has to say it."""
    value_hash = fingerprint(hashed_part)
    if value_hash == fingerprint(hashed_part):
        return [value_hash]
    if key is None:
        allowed_key = (
            f"given with a store, as {name} does not return the same twice: any text, another one "
            "whenever what it computes has changed"
        )
        raise InvalidArgument("key", None, allowed_key)
    return []


def fingerprint(function: Part) -> str:
    """A hash of the values of a function or a law, to nine digits.

    Examples
    --------
    >>> one, two = Activation(np.tanh), Activation(lambda x: np.tanh(x) + 1e-6 * x**2)
    >>> fingerprint(one) == fingerprint(two)
    False
    """
    # nine digits: the last ones differ between mathematical libraries
    with np.errstate(all="ignore"):  # far out functions may overflow
        printed_values = [f"{number:.8e}" for part in _values_to_hash(function) for number in part]
    return hashlib.sha256(" ".join(printed_values).encode()).hexdigest()[:16]


def _values_to_hash(of: Part) -> list[Any]:
    """Sequences of numbers that tell one function, or law, from another of its kind."""
    match of:
        case Activation():
            slope: Any = [] if of.derivative is None else of.slope(COMPARED_AT)
            moments: Any = () if of.closed_form is None else of.moments(COMPARED_AT, 1.0)
            return [of(COMPARED_AT), slope, of.kinks, *moments]
        case MultiIndex():
            points = np.random.default_rng(0).standard_normal((of.dimension, COMPARED_AT.size))
            return [of(*points), np.ravel(of.function(*(4 * points)))]  # there it may overflow
        case ClassLabels():
            return [np.ravel(of.values)]
        case Law(continuous=None):
            return [of.values, of.fractions]
        case Law():
            law_tails = np.array([1e-9, 1e-6, 1e-3])
            law_quantiles = np.concatenate([law_tails, np.linspace(0.01, 0.99, 99), 1 - law_tails])
            return [of.distribution.ppf(law_quantiles)]
        case LabelNoise():
            return [of.parameters]
        case Loss():
            curvature: Any = [] if of.curvature is None else of.curvature(COMPARED_AT)
            prox: Any = [] if of.prox is None else of.prox(COMPARED_AT, np.ones(COMPARED_AT.size))
            return [of.value(COMPARED_AT), of.derivative(COMPARED_AT), curvature, prox, of.kinks]


logger = logging.getLogger(__name__)

Description = Mapping[str, Any]
CellName = TypeVar("CellName")  # by which a cell is asked for


class StoreError(OSError):
    """A finished cell could not be written, as on a full disk."""


def open_folder(path: str | os.PathLike[str]) -> Path:
    """The folder of a store, made if it is not there.

    Raises
    ------
    InvalidArgument
        If it cannot be made or read.
    """
    cell_folder = Path(path)
    try:
        cell_folder.mkdir(parents=True, exist_ok=True)
        next(cell_folder.iterdir(), None)
    except OSError as error:
        allowed_store = f"a folder that can be made ({error.strerror})"
        raise InvalidArgument("store", str(path), allowed_store) from None
    return cell_folder


def check_writable(folder: Path, missing: int) -> None:
    """Raise InvalidArgument for a folder that cannot be written to, before the ``missing`` cells
    are computed."""
    if not os.access(folder, os.W_OK):
        allowed_store = f"a folder that can be written to, as {missing} cells are not in it"
        raise InvalidArgument("store", str(folder), allowed_store)


def file_of(folder: Path, cell: Description) -> Path:
    """The path of the cell's file, whether it is there or not."""
    return folder / f"{_cell_digest(cell)[:40]}.json"


def read(
    folder: Path, cells: Mapping[CellName, Description], shape: tuple[int, ...]
) -> dict[CellName, Array]:
    """Numbers of those ``cells`` that are in the folder, each an array of this ``shape``, NaN where
    nothing was measured; files that are damaged or cannot be read are reported, and count as
    missing."""
    stored_errors: dict[CellName, Array] = {}
    cell_faults: dict[str, list[Path]] = {}
    for cell_name, cell in cells.items():
        cell_file = file_of(folder, cell)
        try:
            stored_errors[cell_name] = _load_cell(cell_file, cell, shape)
        except FileNotFoundError:
            pass
        except OSError as error:
            cell_faults.setdefault(f"cannot be read ({error.strerror})", []).append(cell_file)
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            cell_faults.setdefault("is damaged or not what its name says", []).append(cell_file)
    for file_fault, (first_file, *other_files) in cell_faults.items():
        more_files = f", as with {len(other_files)} others" if other_files else ""
        logger.warning("%s %s%s: computed again", first_file, file_fault, more_files)
    return stored_errors


def write(folder: Path, cell: Description, errors: Array) -> None:
    """Write a finished cell, over a damaged file or a link if there is one.

    Infinite errors, which have overflown, are not written.

    Raises
    ------
    StoreError
        If there is no space, or the file cannot be written for another reason.
    """
    if np.isinf(errors).any():
        return
    cell_numbers = plain(errors)
    stored = {"cell": plain(cell), "errors": cell_numbers, "sha256": _cell_digest(cell_numbers)}
    file, cell_bytes = file_of(folder, cell), (json.dumps(stored, sort_keys=True) + "\n").encode()
    try:
        write_file(file, cell_bytes, afresh=True)
    except IsADirectoryError as error:
        raise StoreError(error.errno, "a folder is where a cell is kept", str(file)) from error
    except OSError as error:
        raise StoreError(
            error.errno,
            f"{error.strerror}: this cell could not be kept; those finished before are safe, and "
            "the same command goes on from them",
            str(folder),
        ) from error


def _load_cell(cell_file: Path, cell: Description, shape: tuple[int, ...]) -> Array:
    """The numbers in a cell's file; one of many errors if it is not that cell's."""
    cell_described = plain(cell)
    # at most: 24 characters for the digits of a float, a comma, brackets
    longest_cell = len(json.dumps(cell_described)) + 32 * (int(np.prod(shape)) + 8)
    with open_regular(cell_file) as cell_stream:
        cell_text = cell_stream.read(longest_cell)  # what is longer is cut, and no JSON
    stored_cell = json.loads(cell_text)
    cell_errors = np.array(stored_cell["errors"], dtype=float)  # NaN of None
    if (
        stored_cell["cell"] != cell_described
        or stored_cell["sha256"] != _cell_digest(stored_cell["errors"])
        or cell_errors.shape != shape
    ):
        raise ValueError
    return cell_errors


def _cell_digest(hashed: Any) -> str:
    """SHA-256 of ``hashed`` as JSON with sorted keys, in hexadecimal."""
    json_text = json.dumps(plain(hashed), sort_keys=True)
    return hashlib.sha256(json_text.encode()).hexdigest()
