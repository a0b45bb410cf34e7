"""Two classes of images, read from IDX and NPZ files as rows x in [0, 1]^n.

IDX is the format of MNIST and Fashion-MNIST: two zero bytes, a type, the number of axes, the
axes' lengths as big-endian 32-bit integers, then the numbers; gzip or not.
"""

import gzip
import math
import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from replica.errors import InvalidArgument
from solvers.results import Array

# By the number in an IDX file's header; and the names that arrays of NPZ files go by, in pairs.
IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
NPZ_NAMES = (("x_train", "y_train"), ("x_test", "y_test"), ("images", "labels"), ("x", "y"))


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images of two classes.

    Attributes
    ----------
    first, second : (N_c, n)
        Pixels between 0 and 1, of the classes in turn.
    classes : (int, int)
        Their labels in the file.
    shape : tuple of int
        Of one image; n is its product.
    """

    first: Array
    second: Array
    classes: tuple[int, int]
    shape: tuple[int, ...]


def images(path: str | os.PathLike[str], *, classes: tuple[int, int]) -> ImageSet:
    """Read the images of two classes.

    Parameters
    ----------
    path : path
        A folder with pairs of IDX files ``…images…`` and ``…labels…`` (all pairs are read), the
        images file of one pair, or an NPZ file with arrays ``images`` and ``labels``, ``x`` and
        ``y``, or ``x_train``, ``y_train``, ``x_test``, ``y_test``.
    classes : (int, int)
        Two labels.

    Returns
    -------
    ImageSet

    Raises
    ------
    InvalidArgument
        If a file is missing, truncated, mislabelled or not of these kinds, saying which and why;
        or if a class has fewer than two images.
    """
    first, second = (int(label) for label in classes)
    if first == second:
        raise InvalidArgument("classes", classes, "two different labels")
    where = Path(path)
    if where.suffix == ".npz":
        pairs = _npz(where)
    elif where.is_dir():
        files = sorted(file for file in where.iterdir() if "images" in file.name)
        if not files:
            raise _bad(where, "a folder with IDX files named …images… and …labels…")
        pairs = [_pair(file) for file in files]
    else:
        pairs = [_pair(where)]
    shapes = {pixels.shape[1:] for pixels, _ in pairs}
    if len(shapes) > 1:
        raise _bad(where, f"images of one shape, not of {sorted(shapes)}")
    (shape,) = shapes
    rows = np.concatenate([pixels.reshape(len(pixels), -1) for pixels, _ in pairs])
    labels = np.concatenate([labels for _, labels in pairs])
    chosen = [np.asarray(rows[labels == label], dtype=float) for label in (first, second)]
    for label, own in zip((first, second), chosen, strict=True):
        if len(own) < 2:
            known = ", ".join(map(str, np.unique(labels)[:12]))
            allowed = f"labels with two images or more in {where} (it has {known}), not {label}"
            raise InvalidArgument("classes", classes, allowed)
    return ImageSet(chosen[0], chosen[1], (first, second), shape)


def read_idx(path: Path) -> Array:
    """The array in an IDX file, gzip or not.

    Raises
    ------
    InvalidArgument
        If the file is not IDX, or shorter or longer than its header says.
    """
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except OSError as error:
        reason = error.strerror or f"not a gzip file after all: {error}"
        raise _bad(path, f"a file that can be read ({reason})") from None
    except (EOFError, zlib.error) as error:
        raise _bad(path, f"a whole gzip file, not truncated or damaged ({error})") from None
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in IDX_TYPES:
        raise _bad(path, f"an IDX file, which begins with 00 00, not {content[:4].hex(' ')!r}")
    axes, kind = content[3], np.dtype(IDX_TYPES[content[2]])
    start = 4 + 4 * axes
    if len(content) < start:
        raise _bad(path, "a whole IDX file; this one ends inside its header")
    shape = struct.unpack(f">{axes}I", content[4:start])
    expected = start + math.prod(shape) * kind.itemsize
    if len(content) != expected:
        fault = "truncated" if len(content) < expected else "with something after its end"
        raise _bad(path, f"a whole IDX file: {fault}, {len(content)} bytes for {expected}")
    return np.frombuffer(content, dtype=kind, offset=start).reshape(shape)


def _pair(file: Path) -> tuple[Array, Array]:
    """Pixels in [0, 1] and labels of an images file and the labels file beside it."""
    pixels = read_idx(file)
    if pixels.ndim < 2:
        raise _bad(file, f"a file of images: its array has {pixels.ndim} axis, as labels have")
    stem = file.name.removesuffix(".gz").replace("images", "labels").replace("idx3", "idx1")
    beside = [file.with_name(name) for name in (stem + ".gz", stem) if name != file.name]
    labels_file = next((other for other in beside if other.is_file()), None)
    if labels_file is None:
        raise _bad(file, f"images with their labels beside them, in {stem} or {stem}.gz")
    return _checked(labels_file, pixels, read_idx(labels_file))


def _npz(path: Path) -> list[tuple[Array, Array]]:
    """Pixels in [0, 1] and labels of every pair of arrays in an NPZ file."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            names = [pair for pair in NPZ_NAMES if all(name in arrays for name in pair)]
            if not names:
                wanted = " or ".join(f"{x} and {y}" for x, y in NPZ_NAMES)
                raise _bad(path, f"an NPZ file with arrays {wanted}, not {sorted(arrays)}")
            return [_checked(path, arrays[x], arrays[y]) for x, y in names]
    except InvalidArgument:
        raise
    except OSError as error:
        raise _bad(path, f"a file that can be read ({error.strerror or error})") from None
    except (ValueError, BadZipFile, EOFError, zlib.error) as error:
        raise _bad(path, f"a whole NPZ file of plain arrays ({error})") from None


def _checked(path: Path, pixels: Array, labels: Array) -> tuple[Array, Array]:
    """Pixels, over 255 where they are integers, and labels, checked: one integer for each image."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise _bad(path, f"a file of labels, one integer each, not an array {labels.shape}")
    if pixels.ndim < 2 or pixels.dtype.kind not in "iuf":
        raise _bad(path, f"images, an array of numbers with an axis of its own, not {pixels.shape}")
    if len(labels) != len(pixels):
        raise _bad(path, f"as many labels as images: {len(labels)} for {len(pixels)}")
    if not np.isfinite(pixels).all():
        raise _bad(path, "images of finite pixels")
    whole = pixels.dtype.kind in "iu"
    return np.asarray(pixels / 255.0 if whole else pixels, dtype=np.float32), labels


def _bad(path: Path, allowed: str) -> InvalidArgument:
    """The error to raise about a file or folder, with what would be allowed in its place."""
    return InvalidArgument("images", str(path), allowed)
