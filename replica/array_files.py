"""Arrays in NPY, NPZ, safetensors and ONNX files, and what other files of numbers share with them.

Nothing pickled is read.  A header says how many numbers follow, and no more than these are read:
neither what a header promises nor what compressed data would unfold to is allocated before.  An
array may be up to 1 GiB.  Of ONNX alone a file is read whole, up to 2 GiB of it.
"""

import json
import math
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, TypeVar
from zipfile import ZipFile

import numpy as np

from solvers.results import Array

from .documents import open_regular
from .errors import InvalidArgument

MOST_BYTES = 2**30  # of one array: twice the largest set of small images, EMNIST
CHUNK = 2**20  # bytes, as they are read
NPZ, SAFETENSORS, ONNX = ".npz", ".safetensors", ".onnx"
# Of files that are not read, as a pickled state of torch, the Python that makes one that is; file
# and member with their quotes.  numpy has no bfloat16.
_OF_TORCH = (
    "import numpy, torch; net = torch.load({file}, map_location='cpu', weights_only=True); "
    "x = net[{member}]; "
    "numpy.save('{name}.npy', x.float() if x.dtype == torch.bfloat16 else x)"
).replace("'", '"')  # which a shell takes as they are
_OF_TEXT = 'import numpy; numpy.save("{name}.npy", numpy.loadtxt({file}, delimiter=","))'
WRITTEN_BY = {
    ".pt": _OF_TORCH,
    ".pth": _OF_TORCH,
    ".ckpt": _OF_TORCH.replace("True)", 'True)["state_dict"]'),  # of Lightning
    ".csv": _OF_TEXT,
}
NAMING = (NPZ, SAFETENSORS, ONNX, *WRITTEN_BY)  # suffixes that a name may follow

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


def file_and_name(where: str | os.PathLike[str]) -> tuple[str, str]:
    """The file of ``FILE:NAME`` and the name of an array in it, empty where none is given.

    >>> file_and_name("a/net.npz:fc1.weight"), file_and_name("W.npy")
    (('a/net.npz', 'fc1.weight'), ('W.npy', ''))
    """
    parts = re.fullmatch(rf"(.*?({'|'.join(map(re.escape, NAMING))})):(.+)", str(where), re.DOTALL)
    return (parts[1], parts[3]) if parts else (str(where), "")


def read_array(name: str, where: str | os.PathLike[str], wanted: Wanted) -> Array:
    """The array in an NPY file; or in a file of several, NPZ, safetensors or ONNX, that of
    ``FILE:NAME``, or the only one; of the latter two, the only one with the axes ``wanted``.

    Raises
    ------
    InvalidArgument
        Of that ``name``: if there is no such file or array, it is not ``wanted``, or it is larger
        than a gigabyte.
    """
    file, member = file_and_name(where)
    path = Path(file)
    if path.suffix in WRITTEN_BY:
        quoted = partial(json.dumps, ensure_ascii=False)  # as Python has it
        parts = {"file": quoted(file), "member": quoted(member or "NAME")}
        line = shlex.quote(WRITTEN_BY[path.suffix].format(name=name, **parts))
        text = " of numbers alone (skiprows=1 leaves out a header)" * (path.suffix == ".csv")
        allowed = f"a file FILE.npy, which this writes{text}: python3 -c {line}"
        raise InvalidArgument(name, str(where), allowed)
    readers = {".npy": _from_npy, NPZ: _from_npz, SAFETENSORS: _from_safetensors, ONNX: _from_onnx}
    if path.suffix not in readers:
        allowed = (
            "a file FILE.npy, or FILE.npz, FILE.safetensors or FILE.onnx, or FILE.npz:NAME "
            "for one of its arrays"
        )
        raise InvalidArgument(name, str(where), allowed)
    of = partial(readers[path.suffix], name, path, member, wanted)
    return decoded(name, path, f"{path.suffix[1:].upper()} file of plain arrays", of)


def _from_npy(name: str, path: Path, _member: str, wanted: Wanted, stream: BinaryIO) -> Array:
    return read_npy(name, path, stream, wanted)


def _from_npz(name: str, path: Path, member: str, wanted: Wanted, stream: BinaryIO) -> Array:
    with ZipFile(stream) as archive:
        known = [one.removesuffix(".npy") for one in archive.namelist()]
        chosen = _chosen(name, path, member, known, known)
        return read_member(name, path, archive, chosen, wanted)


def _from_safetensors(
    name: str, path: Path, member: str, wanted: Wanted, _stream: BinaryIO
) -> Array:
    with _package(name, path, "safetensors").safe_open(path, framework="numpy") as file:
        shapes = {one: tuple(file.get_slice(one).get_shape()) for one in file.keys()}  # noqa: SIM118
        chosen = _chosen_by_axes(name, path, member, shapes, wanted)
        kind = file.get_slice(chosen).get_dtype()
        check_shape(name, path, shapes[chosen], bytes_of(kind), wanted)
        return _number(name, path, file.get_tensor(chosen), wanted)


def _from_onnx(name: str, path: Path, member: str, wanted: Wanted, stream: BinaryIO) -> Array:
    onnx = _package(name, path, "onnx")
    if os.fstat(stream.fileno()).st_size > 2 * MOST_BYTES:
        raise InvalidArgument(name, str(path), "a file of at most 2 GiB")
    known = {one.name: one for one in onnx.load_model_from_string(stream.read()).graph.initializer}
    shapes = {one: tuple(tensor.dims) for one, tensor in known.items()}
    tensor = known[_chosen_by_axes(name, path, member, shapes, wanted)]
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise InvalidArgument(name, str(path), "a file that holds its arrays, not one beside it")
    kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).name
    check_shape(name, path, tuple(tensor.dims), bytes_of(kind), wanted)
    return _number(name, path, onnx.numpy_helper.to_array(tensor), wanted)


def _package(name: str, path: Path, package: str) -> Any:
    """The package that reads a file, if it is installed."""
    try:
        return import_module(package)
    except ImportError:
        allowed = (
            f"a file FILE.npy or FILE.npz where {package} is not installed "
            "(python3 -m pip install 'replica-srf[weights]')"
        )
        raise InvalidArgument(name, str(path), allowed) from None


def _chosen_by_axes(
    name: str,
    path: Path,
    member: str,
    shapes: Mapping[str, tuple[int, ...]],
    wanted: Wanted,
) -> str:
    """The ``member``, or the only array with the fewest axes that are ``wanted``."""
    low, high = wanted.axes
    axes = {name: len(shape) for name, shape in shapes.items() if low <= len(shape) <= high}
    fitting = [name for name, count in axes.items() if count == min(axes.values())]
    return _chosen(name, path, member, [*shapes], fitting or [*shapes])


def bytes_of(kind: str) -> int:
    """How many a number takes once it is read, of a ``kind`` as safetensors or numpy name it;
    bfloat16 is made a larger one.

    >>> [bytes_of(kind) for kind in ("F32", "int8", "bfloat16", "BF16", "BOOL", "int4")]
    [4, 1, 4, 4, 1, 1]
    """
    bits = re.search(r"\d+", kind)
    return 4 if kind.lower() in ("bfloat16", "bf16") else max(int(bits[0]) // 8, 1) if bits else 1


def _chosen(
    name: str, path: Path, member: str, known: Sequence[str], fitting: Sequence[str]
) -> str:
    """The ``member``, if it is one of those ``known``, or the only one ``fitting``."""
    if not known:
        raise InvalidArgument(name, str(path), "a file with an array in it")
    listed = f"{', '.join(known):.200}"
    if not member and len(fitting) != 1:
        allowed = f"FILE{path.suffix}:NAME, which of the arrays {listed}"
        raise InvalidArgument(name, str(path), allowed)
    if member and member not in known:
        raise InvalidArgument(name, f"{path}:{member}", f"the name of one of its arrays, {listed}")
    return member or fitting[0]


def _number(name: str, path: Path, array: Any, wanted: Wanted) -> Array:
    """An ``array`` of numbers that are ``wanted``, those of bfloat16 in the precision of numpy."""
    array = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
    check_kind(name, path, array.dtype, wanted)
    return np.asarray(array)


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
    check_kind(name, path, kind, wanted)
    given = shape[::-1] if by_columns else shape
    array = rest_of(name, path, stream, given, kind, wanted)
    return array.T if by_columns else array


def check_kind(name: str, path: Path, kind: np.dtype, wanted: Wanted) -> None:
    """Refuse numbers, or what are none, of a kind that is not ``wanted``."""
    if kind.kind not in wanted.kinds:
        pickled = ": nothing pickled is read" if kind.hasobject else ""
        numbers = "numbers or text" if "U" in wanted.kinds else "numbers"
        mended = "astype(float)" + " or astype(str)" * ("U" in wanted.kinds)
        allowed = (
            f"a file of plain arrays of {numbers}; this one is of {kind!s:.100}{pickled} ({mended} "
            "before numpy.save makes it plain)"
        )
        raise InvalidArgument(name, str(path), allowed)


def check_shape(
    name: str, path: Path, shape: tuple[int, ...], bytes_each: int, wanted: Wanted
) -> None:
    """Refuse an array of other axes than are ``wanted``, or too large."""
    low, high = wanted.axes
    size = math.prod(shape) * max(bytes_each, wanted.bytes_each)
    if not (low <= len(shape) <= high and 0 < size <= MOST_BYTES):
        axes = f"{low} to {high}" if low < high else low
        allowed = f"an array of {axes} axes with numbers in it, at most 1 GiB of them"
        raise InvalidArgument(name, str(path), f"{allowed}, not one of shape {shape!s:.100}")


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
    check_shape(name, path, shape, kind.itemsize, wanted)
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
