"""Arrays in NPY and NPZ files, and what other files of numbers share with them.

Nothing pickled is read.  A header says how many numbers follow, and no more than these are read:
neither what a header promises nor what compressed data would unfold to is allocated before.
"""

import math
import os
from collections.abc import Callable
from io import BufferedIOBase
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, TypeVar
from zipfile import ZipFile

import numpy as np

from solvers.results import Array

from .documents import open_regular
from .errors import InvalidArgument

MOST_BYTES = 2**30  # of one array: twice the largest set of small images, EMNIST
CHUNK = 2**20  # bytes, as they are read
NPZ = ".npz"

Readable = IO[bytes] | BufferedIOBase
Content = TypeVar("Content")


class Wanted(NamedTuple):
    """Which arrays are read.

    Attributes
    ----------
    axes : (int, int)
        How many axes an array has at least and at most.
    kinds : str
        Its kinds of numbers, as ``numpy.dtype.kind`` has them.
    bytes_each : int
        What a number takes at least once it is read, where it is made a larger one.
    """

    axes: tuple[int, int]
    kinds: str = "iuf"
    bytes_each: int = 1


def read_array(name: str, where: str | os.PathLike[str], wanted: Wanted) -> Array:
    """The array in an NPY file, or in an NPZ file: the only one, or that of ``FILE.npz:NAME``.

    Raises
    ------
    InvalidArgument
        Of that ``name``: if there is no such file or array, it is not ``wanted``, or it is larger
        than a gigabyte.
    """
    file, _, member = str(where).partition(f"{NPZ}:")
    path = Path(f"{file}{NPZ}" if member else file)
    if path.suffix not in (".npy", NPZ):
        allowed = "a file FILE.npy, or FILE.npz, or FILE.npz:NAME for one of its arrays"
        raise InvalidArgument(name, str(where), allowed)

    def decode(stream: BinaryIO) -> Array:
        if path.suffix == ".npy":
            return read_npy(name, path, stream, wanted)
        with ZipFile(stream) as archive:
            known = [one.removesuffix(".npy") for one in archive.namelist()]
            if len(known) != 1 and not member:
                allowed = f"FILE.npz:NAME, which of the arrays {', '.join(known):.200}"
                raise InvalidArgument(name, str(where), allowed)
            if member and member not in known:
                allowed = f"the name of one of its arrays, {', '.join(known):.200}"
                raise InvalidArgument(name, str(where), allowed)
            return read_member(name, path, archive, member or known[0], wanted)

    return decoded(name, path, f"{path.suffix[1:].upper()} file of plain arrays", decode)


def read_member(name: str, path: Path, archive: ZipFile, member: str, wanted: Wanted) -> Array:
    """One array of an NPZ file."""
    with archive.open(f"{member}.npy") as stream:
        return read_npy(name, path, stream, wanted)


def read_npy(name: str, path: Path, stream: Readable, wanted: Wanted) -> Array:
    """The array of a stream in NPY format."""
    first, later = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
    # 3.0 is 2.0 but for names of fields that are not ASCII, and no array of fields is wanted
    headers = {(1, 0): first, (2, 0): later, (3, 0): later}
    shape, by_columns, kind = headers[np.lib.format.read_magic(stream)](stream)
    if kind.kind not in wanted.kinds:
        pickled = ": nothing pickled is read" if kind.hasobject else ""
        numbers = "numbers or text" if "U" in wanted.kinds else "numbers"
        mended = "astype(float)" + " or astype(str)" * ("U" in wanted.kinds)
        allowed = (
            f"a file of plain arrays of {numbers}; this one is of {kind!s:.100}{pickled} ({mended} "
            "before numpy.save makes it plain)"
        )
        raise InvalidArgument(name, str(path), allowed)
    given = shape[::-1] if by_columns else shape
    array = rest_of(name, path, stream, given, kind, wanted)
    return array.T if by_columns else array


def rest_of(
    name: str,
    path: Path,
    stream: Readable,
    shape: tuple[int, ...],
    kind: np.dtype,
    wanted: Wanted,
) -> Array:
    """The array that the rest of a file holds, and nothing after it."""
    expected = math.prod(shape) * kind.itemsize
    size = math.prod(shape) * max(kind.itemsize, wanted.bytes_each)
    low, high = wanted.axes
    if not low <= len(shape) <= high or not 0 < size <= MOST_BYTES:
        axes = f"{low} to {high}" if low < high else low
        allowed = f"an array of {axes} axes with numbers in it, at most 1 GiB of them"
        raise InvalidArgument(name, str(path), f"{allowed}, not one of shape {shape!s:.100}")
    content = bytearray()
    while len(content) <= expected and (chunk := stream.read(CHUNK)):
        content += chunk
    if len(content) < expected:
        fault = f"truncated, {len(content)} bytes for the {expected} of {shape}"
        raise InvalidArgument(name, str(path), f"a whole file; this one is {fault}")
    if len(content) > expected:
        allowed = f"a file that ends after the {expected} bytes of {shape}"
        raise InvalidArgument(name, str(path), allowed)
    return np.frombuffer(content, dtype=kind).reshape(shape)


def decoded(name: str, path: Path, what: str, decode: Callable[[BinaryIO], Content]) -> Content:
    """What ``decode`` makes of a file: all files of numbers are read here.

    Raises
    ------
    InvalidArgument
        Of that ``name``: if it cannot be read, or is not ``what``.
    """
    try:
        stream = open_regular(path)
    except (OSError, ValueError) as error:  # the latter of a name that none can have
        allowed = f"a file that can be read ({getattr(error, 'strerror', None) or error})"
        raise InvalidArgument(name, str(path), allowed) from None
    with stream:
        try:
            return decode(stream)
        except InvalidArgument:
            raise
        except Exception as error:  # gzip, zipfile and numpy raise a dozen kinds on damaged files
            reason = str(error) or type(error).__name__
            allowed = f"a whole {what}, not truncated or damaged ({reason:.200})"
            raise InvalidArgument(name, str(path), allowed) from None
