"""Two classes of images as a task: IDX and NPZ files, preprocessing, more draws than images.

Images are read as rows x in [0, 1]^n.  As in the paper (docs/theory.md 12), each class is centred,
both
are scaled to the same trace, E |x|^2 = theta, and N(0, I) is added: tr Sigma = n + theta.  Labels
are +1 for the first class, -1 for the second.

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
from numpy.random import Generator

from replica.errors import InvalidArgument
from solvers.results import Array

TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
NPZ_NAMES = (("x_train", "y_train"), ("x_test", "y_test"), ("images", "labels"), ("x", "y"))
BYTE = 255.0


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
        found = sorted(file for file in where.iterdir() if "images" in file.name)
        if not found:
            raise _bad(where, "a folder with IDX files named …images… and …labels…")
        pairs = [_pair(file) for file in found]
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
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in TYPES:
        raise _bad(path, f"an IDX file, which begins with 00 00, not {content[:4].hex(' ')!r}")
    axes, kind = content[3], np.dtype(TYPES[content[2]])
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
    """Pixels over 255 where they are bytes, and whole labels, as many as there are images."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise _bad(path, f"a file of labels, one integer each, not an array {labels.shape}")
    if pixels.ndim < 2 or pixels.dtype.kind not in "iuf":
        raise _bad(path, f"images, an array of numbers with an axis of its own, not {pixels.shape}")
    if len(labels) != len(pixels):
        raise _bad(path, f"as many labels as images: {len(labels)} for {len(pixels)}")
    if not np.isfinite(pixels).all():
        raise _bad(path, "images of finite pixels")
    whole = pixels.dtype.kind in "iu"
    return np.asarray(pixels / BYTE if whole else pixels, dtype=np.float32), labels


def _bad(path: Path, allowed: str) -> InvalidArgument:
    return InvalidArgument("images", str(path), allowed)


@dataclass(frozen=True, eq=False)
class ImageTask:
    """Classification of preprocessed images, or of draws from Gaussians fitted to them.

    Attributes
    ----------
    first, second : (N_c, n)
        Centred images of the two classes, with mean squared length theta each.
    theta : float
    resampled : bool
        Draw the images themselves, with replacement; otherwise N(0, covariance of the class).
    """

    first: Array
    second: Array
    theta: float
    resampled: bool = False

    @property
    def dimension(self) -> int:
        """n, the number of pixels."""
        return self.first.shape[1]

    @property
    def trace(self) -> float:
        """n + theta."""
        return self.dimension + self.theta

    def draw(self, samples: int, rng: Generator) -> tuple[Array, Array]:
        """Inputs (m, n) and labels (m,), both classes in equal shares, noise N(0, I) added."""
        counts = (samples - samples // 2, samples // 2)
        X = rng.standard_normal((samples, self.dimension))
        parts = zip((self.first, self.second), counts, strict=True)
        X += np.concatenate([self._draw_class(rows, count, rng) for rows, count in parts])
        return X, np.repeat([1.0, -1.0], counts)

    def _draw_class(self, rows: Array, count: int, rng: Generator) -> Array:
        if self.resampled:
            return rows[rng.integers(len(rows), size=count)]
        return rng.standard_normal((count, len(rows))) @ rows / np.sqrt(len(rows))


def image_task(found: ImageSet, *, theta: float, source: str = "gaussian") -> ImageTask:
    """Preprocess two classes of images: centre each, scale each to mean squared length theta.

    Parameters
    ----------
    found : ImageSet
    theta : float
        Trace of either class before noise of variance 1 a pixel is added.
    source : {"gaussian", "images"}
        Draw from Gaussians with the classes' covariances, as many samples as wanted; or the
        images themselves, with replacement and fresh noise (then training and test samples share
        images).

    Raises
    ------
    InvalidArgument
        If theta is not above 0, a class does not vary, or the source is unknown.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = ImageSet(rng.random((50, 9)), rng.random((40, 9)), (3, 5), (3, 3))
    >>> task = image_task(found, theta=4.0)
    >>> task.trace, task.draw(7, rng)[0].shape
    (13.0, (7, 9))
    """
    if not 0 < theta < np.inf:
        raise InvalidArgument("theta", theta, "a finite number above 0")
    if source not in ("gaussian", "images"):
        raise InvalidArgument("source", source, "gaussian or images")
    classes = []
    for label, rows in zip(found.classes, (found.first, found.second), strict=True):
        centred = rows - rows.mean(axis=0)
        power = float((centred**2).sum(axis=1).mean())
        if not power > 0:
            raise InvalidArgument("classes", label, "a class whose images differ")
        centred *= np.sqrt(theta / power)
        if source == "gaussian" and len(centred) > centred.shape[1]:
            # Any square root of the covariance will do: the smallest one.
            root = np.linalg.qr(centred, mode="r")
            centred = root * np.sqrt(len(root) / len(centred))
        classes.append(centred)
    return ImageTask(classes[0], classes[1], float(theta), source == "images")
