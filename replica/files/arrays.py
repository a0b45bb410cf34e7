"""Arrays in NPY, NPZ, safetensors, ONNX and CSV files, and checks shared by all files of numbers.

Nothing pickled is read.  A header says how many numbers follow, and no more than these are read:
neither what a header promises nor what compressed data would unfold to is allocated before.  An
array may be up to 1 GiB.  Files of ONNX and of CSV are read whole, up to 2 GiB and 64 MiB of
them, unpacked.
"""

import gzip
import json
import math
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from importlib import import_module
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, TypeVar
from zipfile import ZipFile

import numpy as np

from solvers.results import Array

from ..errors import OUR_NAMES, InvalidArgument, hint, install, shorten_list
from .documents import open_regular
from .tables import is_decimal, is_number, read_table

MOST_BYTES = 2**30  # of one array: twice the largest set of small images, EMNIST
NPZ, SAFETENSORS, ONNX = ".npz", ".safetensors", ".onnx"
TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PICKLED = (".pt", ".pth", ".ckpt")  # of torch and Lightning, which are not read
READ_BY_PANDAS = {".parquet": "parquet", ".feather": "feather", ".xlsx": "excel"}  # and not here
READ_BY_PANDAS |= {".json": "json", ".pkl": "pickle"}
TEXTS = (".txt", ".dat")  # mostly of numpy.savetxt
NAMING = (NPZ, SAFETENSORS, ONNX, *TABLES, *PICKLED, *READ_BY_PANDAS, *TEXTS)  # or with :NAME

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
        Least bytes of a number once it is read, where it is made a larger one.
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
        if {"indptr", "indices"} <= axes.keys():  # as scipy.sparse.save_npz has them
            dense = f"numpy.save('X.npy', scipy.sparse.load_npz('{self.path}').toarray())"
            raise self.fault(f"a file of a dense array, X.npy after {dense}")
        (low, high), listed = self.wanted.axes, shorten_list(axes)
        fewest_axes = min((count for count in axes.values() if low <= count <= high), default=None)
        fitting = [array_name for array_name, count in axes.items() if fewest_axes in (count, None)]
        if self.member not in axes if self.member else len(fitting) != 1:
            file_and_array = f"{self.path}:{self.member}".rstrip(":")
            member_word = "columns" if self.path.name.endswith(TABLES) else "arrays"
            allowed_members = f"{self.path}:NAME of one of its {member_word}, {listed}"
            allowed_members += hint(self.member, axes) * (self.member not in OUR_NAMES)
            raise InvalidArgument(self.name, file_and_array, allowed_members)
        return self.member or fitting[0]

    def check_kind(self, kind: np.dtype) -> None:
        """Refuse an array whose data type is not wanted."""
        if kind.kind not in self.wanted.kinds:
            text_wanted = "U" in self.wanted.kinds
            pickled = ": nothing pickled is read" if kind.hasobject else ""
            no_gaps = ", or of names, none of them None or NaN, "
            of_names = f"{no_gaps}numpy.array({self.name}).astype(str)," * text_wanted
            raise self.fault(
                f"a file of plain arrays of numbers{' or text' * text_wanted}; this one is of "
                f"{kind!s:.100}{pickled} (astype(float){of_names} before numpy.save makes it plain)"
            )

    def check_shape(self, shape: tuple[int, ...], bytes_each: int) -> None:
        """Refuse an array of other axes than are wanted, or too large."""
        least_axes, most_axes = self.wanted.axes
        byte_count = math.prod(shape) * max(bytes_each, self.wanted.bytes_each)
        if not (least_axes <= len(shape) <= most_axes and 0 < byte_count <= MOST_BYTES):
            axes = f"{least_axes} to {most_axes}" if least_axes < most_axes else least_axes
            allowed_array = f"an array of {axes} axes with numbers in it, at most 1 GiB of them"
            if shape and most_axes == 2 and 0 < byte_count <= MOST_BYTES:
                allowed_array += " (x.reshape(len(x), -1) before numpy.save)"
            raise self.fault(f"{allowed_array}, not one of shape {shape!s:.100}")

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
        byte_count = math.prod(shape) * number_type.itemsize
        array_bytes = bytearray()
        while len(array_bytes) <= byte_count and (chunk := stream.read(2**20)):
            array_bytes += chunk
        if len(array_bytes) != byte_count:
            held = len(array_bytes) if len(array_bytes) < byte_count else "more"
            raise self.fault(f"a whole file, {byte_count} bytes of {shape}; this one holds {held}")
        return np.frombuffer(array_bytes, dtype=number_type).reshape(shape)

    def npy(self, stream: Readable) -> Array:
        """The array of a stream in NPY format."""
        header_1_0, later = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        # 3.0 is 2.0 but for names of fields that are not ASCII, and no array of fields is wanted
        headers = {(1, 0): header_1_0, (2, 0): later, (3, 0): later}
        array_shape, by_columns, number_type = headers[np.lib.format.read_magic(stream)](stream)
        self.check_kind(number_type)
        array = self.rest_of(stream, array_shape[::-1] if by_columns else array_shape, number_type)
        return array.T if by_columns else array

    def npz(self, stream: BinaryIO) -> Array:
        """The chosen array of an NPZ file."""
        with ZipFile(stream) as archive:
            array_names = [array_name.removesuffix(".npy") for array_name in archive.namelist()]
            with archive.open(f"{self.chosen(dict.fromkeys(array_names, 0))}.npy") as member:
                return self.npy(member)

    def safetensors(self, _stream: BinaryIO) -> Array:
        """The chosen array of a safetensors file."""
        with self.package("safetensors").safe_open(self.path, framework="numpy") as file:
            tensor_names = file.keys()
            tensor_shapes = {name: tuple(file.get_slice(name).get_shape()) for name in tensor_names}
            name = self.chosen({name: len(shape) for name, shape in tensor_shapes.items()})
            self.check_shape(tensor_shapes[name], 8)
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
        self.check_shape(tuple(tensor.dims), 8)
        return self.numbers(onnx.numpy_helper.to_array(tensor))

    def places(self, names: Sequence[str], member: str) -> list[int]:
        """Places of the columns that ``member`` names, NAME or NAME,NAME: by their ``names``, or
        numbers from 0; of all others if it is without=NAME,NAME, and of all that have a name if it
        is empty."""
        column_count = len(names)
        place_of = {str(k): k % column_count for k in range(-column_count, column_count)}
        place_of |= {column_name: k for k, column_name in enumerate(names) if column_name}
        listed = member.removeprefix("without=")
        typed_names = [listed] if listed in place_of else map(str.strip, listed.split(","))
        wanted_columns = [*filter(None, typed_names)]
        if unknown := [column for column in wanted_columns if column not in place_of]:
            self._replace(member=unknown[0]).chosen(dict.fromkeys(filter(None, names), 1))
        column_places = [place_of[column] for column in wanted_columns]
        if listed == member and wanted_columns:
            return column_places
        return [k for k, column_name in enumerate(names) if column_name and k not in column_places]

    def table(self, stream: BinaryIO) -> Any:
        """The columns of a CSV or TSV file that ``member`` names, but for those ``without``: a
        pandas.DataFrame, with 1 for True and 0 for False, or of one column, which may be text, a
        pandas.Series."""
        most_text = 2**26  # of a table, whose cells take 15 times as much in memory
        is_packed = self.path.suffix == ".gz"
        with gzip.open(stream) if is_packed else nullcontext(stream) as text_stream:
            content = text_stream.read(most_text + 1)
        if len(content) > most_text:
            raise self.fault("a file of at most 64 MiB (numpy.save writes larger tables)")
        try:
            file_table = read_table(content.decode("utf-8-sig"))
        except UnicodeDecodeError:
            encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
            opened = f'{"gzip." * is_packed}open({json.dumps(str(self.path))}, "rt"'
            write_call = f'open("{self.name}.csv", "w", encoding="utf-8").write'
            code = f'import gzip; {write_call}({opened}, encoding="{encoding}").read())'
            raise self.fault(written_by(f"{self.name}.csv", code, " in UTF-8")) from None
        text_wanted = "U" in self.wanted.kinds  # whose cells may have spaces
        if file_table.shape[1] == 1 and not text_wanted and _has_words(file_table.iloc[:, 0]):
            raise self.fault(parted_by_spaces(self.path))
        column_names = [str(name) for name in file_table.columns]
        left_out = {place for member in self.without for place in self.places(column_names, member)}
        kept = [place for place in self.places(column_names, self.member) if place not in left_out]
        if left_out and not kept:
            raise self.fault("a table with columns beside its index, labels and strata")
        columns, (least_axes, most_axes) = file_table.iloc[:, kept], self.wanted.axes
        if least_axes == 1 and len(kept) == 1:
            columns = columns.iloc[:, 0]
        elif kept:
            columns = columns.apply(_truth_as_numbers)
        if columns.ndim == 2 and "U" in self.wanted.kinds and not self.member:
            # labels of a column for each class, without text, need no name
            is_one_hot = columns.isin([0, 1]).all(axis=None) and (columns.sum(axis=1) == 1).all()
            if most_axes == 1 or not (columns.size and is_one_hot):
                self.chosen(dict.fromkeys(filter(None, column_names), 1))
        for _, cells in columns.to_frame().items() if columns.ndim == 1 else columns.items():
            if cells.dtype.kind == "O" and cells.map(is_decimal).all():
                with_comma = next(cell for cell in cells if "," in cell)
                raise self.fault(
                    f"a table with decimal points, not commas as in {with_comma!r} (pandas."
                    "read_csv has decimal=',')"
                )
        self.check_shape(columns.shape, 8)
        return columns


def written_by(file: str, code: str, of_what: str = "") -> str:
    """Advice on a file that is not read: ``file`` in its place, which the line of Python in
    ``code`` writes."""
    return f"a file {file}{of_what}, which this writes: python3 -c {shlex.quote(code)}"


def parted_by_spaces(path: Path) -> str:
    """Advice on a file of text whose cells spaces part, as numpy.savetxt has them."""
    table = str(path.with_name(f"{path.name.partition('.')[0]}-commas.csv"))
    first = second = ""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with suppress(OSError), opener(path, "rt", errors="replace") as lines:
        first, second = lines.readline(), lines.readline()
    how = r'sep=r"\s+", dtype=str, keep_default_na=False'
    how += ', comment="#"' * first.startswith("#")
    # names of columns are a line as others, but of R, which has none for the numbers of its rows
    is_of_r = len(first.split()) + 1 == len(second.split()) and not first.startswith("#")
    how += ", header=None" * (not is_of_r)
    cells = f"pandas.read_csv({json.dumps(str(path))}, {how})"
    header = ", header=False" * (not is_of_r)
    code = f"import pandas; {cells}.to_csv({json.dumps(table)}, index=False{header})"
    return written_by(table, code, ", with commas between its cells")


def _has_words(cells: Any) -> bool:
    """True if the cells of a column have several words each, as many in all, one of them a number
    in the last."""
    words = cells.astype(str).str.split()
    counts = words.str.len()
    is_table = len(words) > 0 and counts.nunique() == 1 and counts.iloc[0] > 1
    return bool(is_table) and any(map(is_number, words.iloc[-1]))


def _truth_as_numbers(cells: Any) -> Any:
    """A column with 1 for True and 0 for False, if all its cells are such words."""
    cell_words = cells if cells.dtype.kind in "iuf" else cells.astype(str).str.lower()
    return (cell_words == "true").astype(int) if cell_words.isin(["true", "false"]).all() else cells


def file_and_name(where: str | os.PathLike[str]) -> tuple[str, str]:
    """The file of ``FILE:NAME`` and the name of an array in it, empty where none is given.

    >>> file_and_name("a/net.npz:fc1.weight"), file_and_name("W.npy")
    (('a/net.npz', 'fc1.weight'), ('W.npy', ''))
    """
    match = re.fullmatch(rf"(.*?({'|'.join(map(re.escape, NAMING))})):(.+)", str(where), re.DOTALL)
    return (match[1], match[3]) if match else (str(where), "")


def read_array(
    name: str, where: str | os.PathLike[str], wanted: Wanted, without: Sequence[str] = ()
) -> Any:
    """Array in a file: the only one of an NPY file; the one named by ``FILE:NAME``, or the only
    one, of an NPZ, safetensors or ONNX file, of the latter two the only one with the axes
    ``wanted``; a CSV or TSV file, but for its columns ``without``, as a pandas.DataFrame, of
    ``FILE:A,B`` of these columns, of ``FILE:without=A,B`` of all others; or, of one column where
    one is wanted, as a pandas.Series.

    Raises
    ------
    InvalidArgument
        If there is no such file or array, it is not ``wanted``, or it is larger than a gigabyte;
        the argument is ``name``.
    """
    file, member = file_and_name(where)
    file_path = Path(file)
    suffix = "".join(file_path.suffixes[-2:]) if file_path.suffix == ".gz" else file_path.suffix
    if file_path.suffix in PICKLED:
        keys = '["state_dict"]' * (file_path.suffix == ".ckpt") + json.dumps([member or "NAME"])
        loaded = f'torch.load({json.dumps(file)}, map_location="cpu", weights_only=True)'
        plain_tensor = "x.double() if x.is_floating_point() else x"
        code = f'import numpy, torch; x = {loaded}{keys}; numpy.save("{name}.npy", {plain_tensor})'
        raise InvalidArgument(name, str(where), written_by(f"{name}.npy", code))
    if file_path.suffix in READ_BY_PANDAS:
        read_file = f"pandas.read_{READ_BY_PANDAS[file_path.suffix]}({json.dumps(file)})"
        csv_file = str(file_path.with_suffix(".csv"))
        code = f"import pandas; {read_file}.to_csv({json.dumps(csv_file)}, index=False)"
        raise InvalidArgument(name, str(where), written_by(csv_file, code))
    if suffix in TEXTS:
        raise InvalidArgument(name, str(where), parted_by_spaces(file_path))
    of = Source(name, file_path, wanted, member, without)
    reader_of_suffix = {".npy": of.npy, NPZ: of.npz, SAFETENSORS: of.safetensors, ONNX: of.onnx}
    reader_of_suffix |= dict.fromkeys(TABLES, of.table)
    if suffix not in reader_of_suffix:
        allowed_files = (
            "a file FILE.npy, FILE.npz, FILE.safetensors or FILE.onnx, or a table FILE.csv or "
            "FILE.tsv, also with .gz; FILE.npz:NAME is one of its arrays, FILE.csv:A,B columns, "
            "FILE.csv:without=A,B all others"
        )
        raise InvalidArgument(name, str(where), allowed_files)
    file_kind = f"{suffix[1:].upper()} file of plain arrays"
    return decoded(name, file_path, file_kind, reader_of_suffix[suffix])


def decoded(name: str, path: Path, what: str, decode: Callable[[BinaryIO], Content]) -> Content:
    """Content of a file of numbers, read by ``decode``.

    Raises
    ------
    InvalidArgument
        If it cannot be read, or is not ``what``; the argument is ``name``.
    """
    try:
        stream = open_regular(path)
    except (OSError, ValueError) as error:  # the latter of a name that none can have
        allowed_file = f"a file that can be read ({getattr(error, 'strerror', None) or error})"
        raise InvalidArgument(name, str(path), allowed_file) from None
    with stream:
        try:
            return decode(stream)
        except InvalidArgument:
            raise
        except Exception as error:  # gzip, zipfile and numpy raise a dozen kinds on damaged files
            decoding_error = str(error) or type(error).__name__
            allowed_file = f"a whole {what}, not truncated or damaged ({decoding_error:.200})"
            raise InvalidArgument(name, str(path), allowed_file) from None
