"""Arrays in NPY, NPZ, safetensors, ONNX and CSV files, and checks shared by all files of numbers.

Nothing pickled is read.  A header says how many numbers follow, and no more than these are read:
neither what a header promises nor what compressed data would unfold to is allocated before.  An
array may be up to 1 GiB.  Files of ONNX and of CSV are read whole, up to 2 GiB and 64 MiB of
them.
"""

import csv
import json
import math
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from io import BufferedIOBase, StringIO
from itertools import product, zip_longest
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, TypeVar
from zipfile import ZipFile

import numpy as np

from solvers.results import Array

from .documents import open_regular
from .errors import InvalidArgument, install
from .tables import CsvTable, TableArray, has_header, is_decimal, is_number, typed

MOST_BYTES = 2**30  # of one array: twice the largest set of small images, EMNIST
MOST_TEXT = 2**26  # of a table, whose cells take 15 times as much in memory
NPZ, SAFETENSORS, ONNX, TABLES = ".npz", ".safetensors", ".onnx", (".csv", ".tsv")
# Of files that are not read, as a pickled state of torch, the Python that makes one that is; file
# and member with their quotes.  numpy has no bfloat16.
_OF_TORCH = (
    "import numpy, torch; net = torch.load({file}, map_location='cpu', weights_only=True); "
    "x = net[{member}]; "
    "numpy.save('{name}.npy', x.float() if x.dtype == torch.bfloat16 else x)"
).replace("'", '"')  # which a shell takes as they are
WRITTEN_BY = {
    ".pt": _OF_TORCH,
    ".pth": _OF_TORCH,
    ".ckpt": _OF_TORCH.replace("True)", 'True)["state_dict"]'),  # of Lightning
}
NAMING = (NPZ, SAFETENSORS, ONNX, *TABLES, *WRITTEN_BY)  # suffixes that a name may follow

Readable = IO[bytes] | BufferedIOBase
Content = TypeVar("Content")


class Wanted(NamedTuple):
    """Shapes and kinds of the arrays that a reader accepts.

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


class Source(NamedTuple):
    """The file of an argument, the array that is wanted of it, and columns that are not."""

    name: str
    path: Path
    wanted: Wanted
    member: str = ""
    without: Sequence[str] = ()

    def fault(self, allowed: str) -> InvalidArgument:
        """InvalidArgument for the file; ``allowed`` says which files are."""
        return InvalidArgument(self.name, str(self.path), allowed)

    def chosen(self, axes: Mapping[str, int]) -> str:
        """The ``member``, or the only array with the fewest ``axes`` that are wanted."""
        if not axes:
            raise self.fault("a file with an array in it")
        (low, high), listed = self.wanted.axes, f"{', '.join(axes):.200}"
        fewest_axes = min((count for count in axes.values() if low <= count <= high), default=None)
        fitting = [name for name, count in axes.items() if fewest_axes in (count, None)]
        if self.member not in axes if self.member else len(fitting) != 1:
            file_and_array = f"{self.path}:{self.member}".rstrip(":")
            member_word = "columns" if self.path.suffix in TABLES else "arrays"
            allowed = f"{self.path}:NAME of one of its {member_word}, {listed}"
            if member_word == "columns" and high > 1:
                allowed += " (a .npy file can have several columns of labels)"
            lower_names = {name.lower(): name for name in axes}
            if close := get_close_matches(self.member.lower(), lower_names, 1):
                allowed = f"{self.path}:{lower_names[close[0]]}, one of its {member_word}"
            raise InvalidArgument(self.name, file_and_array, allowed)
        return self.member or fitting[0]

    def check_kind(self, kind: np.dtype) -> None:
        """Refuse an array whose data type is not wanted."""
        if kind.kind not in self.wanted.kinds:
            text = "U" in self.wanted.kinds
            pickled = ": nothing pickled is read" if kind.hasobject else ""
            names = ", or of names, none of them None or NaN, astype(str)," * text
            raise self.fault(
                f"a file of plain arrays of numbers{' or text' * text}; this one is of "
                f"{kind!s:.100}{pickled} (astype(float){names} before numpy.save makes it plain)"
            )

    def check_shape(self, shape: tuple[int, ...], bytes_each: int) -> None:
        """Refuse an array of other axes than are wanted, or too large."""
        least_axes, most_axes = self.wanted.axes
        byte_count = math.prod(shape) * max(bytes_each, self.wanted.bytes_each)
        if not (least_axes <= len(shape) <= most_axes and 0 < byte_count <= MOST_BYTES):
            axes = f"{least_axes} to {most_axes}" if least_axes < most_axes else least_axes
            allowed = f"an array of {axes} axes with numbers in it, at most 1 GiB of them"
            if shape and most_axes == 2 and 0 < byte_count <= MOST_BYTES:
                allowed += " (x.reshape(len(x), -1) before numpy.save)"
            raise self.fault(f"{allowed}, not one of shape {shape!s:.100}")

    def package(self, package: str) -> Any:
        """The package that reads the file, if it is installed."""
        try:
            return import_module(package)
        except ImportError:
            raise self.fault(
                f"a file FILE.npy or FILE.npz where {package} is not installed "
                f"({install('weights')})"
            ) from None

    def numbers(self, array: Any) -> Array:
        """The ``array`` with a wanted data type; bfloat16, which numpy lacks, becomes float32."""
        array = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
        self.check_kind(array.dtype)
        return np.asarray(array)

    def rest_of(self, stream: Readable, shape: tuple[int, ...], number_type: np.dtype) -> Array:
        """The array that the rest of a file holds, and nothing after it."""
        self.check_shape(shape, number_type.itemsize)
        expected = math.prod(shape) * number_type.itemsize
        array_bytes = bytearray()
        while len(array_bytes) <= expected and (chunk := stream.read(2**20)):
            array_bytes += chunk
        if len(array_bytes) < expected:
            truncated = f"truncated, {len(array_bytes)} bytes for the {expected} of {shape}"
            raise self.fault(f"a whole file; this one is {truncated}")
        if len(array_bytes) > expected:
            raise self.fault(f"a file that ends after the {expected} bytes of {shape}")
        return np.frombuffer(array_bytes, dtype=number_type).reshape(shape)

    def npy(self, stream: Readable) -> Array:
        """The array of a stream in NPY format."""
        header_1_0, later = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        # 3.0 is 2.0 but for names of fields that are not ASCII, and no array of fields is wanted
        headers = {(1, 0): header_1_0, (2, 0): later, (3, 0): later}
        shape, by_columns, number_type = headers[np.lib.format.read_magic(stream)](stream)
        self.check_kind(number_type)
        array = self.rest_of(stream, shape[::-1] if by_columns else shape, number_type)
        return array.T if by_columns else array

    def npz(self, stream: BinaryIO) -> Array:
        """The chosen array of an NPZ file."""
        with ZipFile(stream) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            with archive.open(f"{self.chosen(dict.fromkeys(names, 0))}.npy") as member:
                return self.npy(member)

    def safetensors(self, _stream: BinaryIO) -> Array:
        """The chosen array of a safetensors file."""
        with self.package("safetensors").safe_open(self.path, framework="numpy") as file:
            tensor_slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            shapes = {name: tuple(one.get_shape()) for name, one in tensor_slices.items()}
            name = self.chosen({name: len(shape) for name, shape in shapes.items()})
            self.check_shape(shapes[name], bytes_of(tensor_slices[name].get_dtype()))
            return self.numbers(file.get_tensor(name))

    def onnx(self, stream: BinaryIO) -> Array:
        """The chosen array of an ONNX file."""
        onnx = self.package("onnx")
        if os.fstat(stream.fileno()).st_size > 2 * MOST_BYTES:
            raise self.fault("a file of at most 2 GiB")
        initializers = onnx.load_model_from_string(stream.read()).graph.initializer
        tensors = {tensor.name: tensor for tensor in initializers}
        tensor = tensors[self.chosen({name: len(one.dims) for name, one in tensors.items()})]
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise self.fault("a file that holds its arrays, not one beside it")
        number_type = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).name
        self.check_shape(tuple(tensor.dims), bytes_of(number_type))
        return self.numbers(onnx.numpy_helper.to_array(tensor))

    def cells(self, stream: BinaryIO) -> CsvTable:
        """The table of a CSV or TSV file."""
        content = stream.read(MOST_TEXT + 1)
        if len(content) > MOST_TEXT:
            raise self.fault("a file of at most 64 MiB (numpy.save writes larger tables)")
        text = content.decode("utf-8-sig")
        first_line = text.partition("\n")[0]
        if ";" in first_line or "\t" in first_line:  # commas of decimals part no cells
            first_line = re.sub(r"\d,\d", "", first_line)
        separator = max(",;\t", key=first_line.count)
        csv_rows = csv.reader(StringIO(text, newline=""), delimiter=separator)
        table_rows = [(csv_rows.line_num, row) for row in csv_rows if row]
        lines = [line for line, _ in table_rows]
        columns = [*zip_longest(*(row for _, row in table_rows))]
        if lacking := [lines[one.index(None)] for one in columns if None in one]:
            raise self.fault(f"a table with {len(columns)} cells in line {min(lacking)}, too")
        first_row = int(has_header(columns))
        header = [one[0] for one in columns] * first_row
        columns_below = [one[first_row:] for one in columns]
        return CsvTable(self.path, separator, header, columns_below, lines[first_row:])

    def table(self, stream: BinaryIO) -> TableArray:
        """The numbers of a CSV or TSV file, (rows, columns), but for the columns ``without`` and
        that without a name, an index of pandas; or the chosen column, which may be text."""
        table = self.cells(stream)
        names, column_count = table.names, len(table.columns)
        column_places = {str(k): k % column_count for k in range(-column_count, column_count)}
        column_places |= {name: k for k, name in enumerate(names) if name}
        if self.member or "U" in self.wanted.kinds:
            if self.member not in column_places and names and self.member and not table.header:
                allowed = f"{self.path}:NUMBER of a column, from 0 to {column_count - 1}: there is "
                allowed += "no header, as the first line is taken for data"
                raise InvalidArgument(self.name, f"{self.path}:{self.member}", allowed)
            named_columns = dict.fromkeys(filter(None, names), 1)
            one = self.member if self.member in column_places else self.chosen(named_columns)
            kept_columns = [column_places[one]]
            cells = table.columns[kept_columns[0]]
            array = typed(cells)
            if array.dtype.kind == "U" and all(map(is_decimal, cells)):
                row = [*map(is_number, cells)].index(False)
                raise self.fault(table.refusal(kept_columns[0], row))
            self.check_kind(array.dtype)
        else:
            left_out = {column_places.get(one) for one in self.without}
            kept_columns = [k for k, name in enumerate(names) if name and k not in left_out]
            for i, k in product(range(len(table.lines)), kept_columns):
                cell = table.columns[k][i]
                if not (is_number(cell) and math.isfinite(float(cell))):
                    raise self.fault(table.refusal(k, i))
            array = np.array([table.columns[k] for k in kept_columns], dtype=float).T
        self.check_shape(array.shape, 8)
        return table.array(array, kept_columns)


def file_and_name(where: str | os.PathLike[str]) -> tuple[str, str]:
    """The file of ``FILE:NAME`` and the name of an array in it, empty where none is given.

    >>> file_and_name("a/net.npz:fc1.weight"), file_and_name("W.npy")
    (('a/net.npz', 'fc1.weight'), ('W.npy', ''))
    """
    parts = re.fullmatch(rf"(.*?({'|'.join(map(re.escape, NAMING))})):(.+)", str(where), re.DOTALL)
    return (parts[1], parts[3]) if parts else (str(where), "")


def read_array(
    name: str, where: str | os.PathLike[str], wanted: Wanted, without: Sequence[str] = ()
) -> Array:
    """Array in a file: the only one of an NPY file; the one named by ``FILE:NAME``, or the only
    one, of an NPZ, safetensors or ONNX file, of the latter two the only one with the axes
    ``wanted``; a CSV or TSV file, but for its columns ``without``, or the column ``FILE:COLUMN``.

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
        allowed = f"a file FILE.npy, which this writes: python3 -c {line}"
        raise InvalidArgument(name, str(where), allowed)
    of = Source(name, path, wanted, member, without)
    readers = {".npy": of.npy, NPZ: of.npz, SAFETENSORS: of.safetensors, ONNX: of.onnx}
    readers |= dict.fromkeys(TABLES, of.table)
    if path.suffix not in readers:
        allowed = (
            "a file FILE.npy, or FILE.npz, FILE.safetensors, FILE.onnx or FILE.csv, or "
            "FILE.npz:NAME for one of its arrays, FILE.csv:COLUMN of its columns"
        )
        raise InvalidArgument(name, str(where), allowed)
    what = f"{path.suffix[1:].upper()} file of plain arrays"
    return decoded(name, path, what, readers[path.suffix])


def bytes_of(kind: str) -> int:
    """Bytes of a number in memory, of a ``kind`` as safetensors or numpy name it; bfloat16 is
    read as float32.

    >>> [bytes_of(kind) for kind in ("F32", "int8", "bfloat16", "BF16", "BOOL", "int4")]
    [4, 1, 4, 4, 1, 1]
    """
    bits = re.search(r"\d+", kind)
    return 4 if kind.lower() in ("bfloat16", "bf16") else max(int(bits[0]) // 8, 1) if bits else 1


def decoded(name: str, path: Path, what: str, decode: Callable[[BinaryIO], Content]) -> Content:
    """Content of a file of numbers, read by ``decode``.

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
