"""Two classes of images as a task: files, preprocessing, and more draws than there are images.

As in the paper (docs/theory.md 12), each class is centred, both are scaled to the same trace,
E |x|^2 = theta, and N(0, I) is added: tr Sigma = n + theta.  Labels are +1 for the first class, -1
for the second.

Images are read from IDX and NPZ files as rows x in [0, 1]^n.  IDX is the format of MNIST and
Fashion-MNIST: two zero bytes, a type, the number of axes, the axes' lengths as big-endian 32-bit
integers, then the numbers; gzip or not.  NPZ is a ZIP archive of NPY files.
"""

import gzip
import hashlib
import math
import os
import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipFile

import numpy as np
from numpy.random import Generator, default_rng

from replica.errors import InvalidArgument
from replica.files import Readable, Source, Wanted, decoded
from replica.given import FeatureSample
from replica.problem import Activation, GaussianMixture, class_labels
from solvers.results import Array

from .spiked_mixtures import MixtureTask

# By the number in an IDX file's header; and the names that arrays of NPZ files go by, in pairs.
IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
NPZ_NAMES = (("x_train", "y_train"), ("x_test", "y_test"), ("images", "labels"), ("x", "y"))
PIXELS = Wanted(axes=(1, 8))  # images, rows, columns, colours, and room


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
        Pixels of one image along each side; n is their product.
    """

    first: Array
    second: Array
    classes: tuple[int, int]
    shape: tuple[int, ...]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the pixels, in hexadecimal."""
        pixel_sha = hashlib.sha256(repr((self.first.shape, self.second.shape, self.shape)).encode())
        pixel_sha.update(self.first.tobytes())
        pixel_sha.update(self.second.tobytes())
        return pixel_sha.hexdigest()


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
        If a file is missing, truncated, mislabelled, not of these kinds or larger than a
        gigabyte, saying which and why; or if a class has fewer than two images.
    """
    first_class, second_class = (int(digit) for digit in classes)
    if first_class == second_class:
        raise InvalidArgument("classes", classes, "two different labels")
    where = Path(path)
    if where.suffix == ".npz":
        pairs = _npz_pairs(where)
    elif where.is_dir():
        try:
            idx_files = sorted(file for file in where.iterdir() if "images" in file.name)
        except OSError as error:
            raise _bad(where, f"a folder that can be read ({error.strerror})") from None
        if not idx_files:
            raise _bad(where, "a folder with IDX files named …images… and …labels…")
        pairs = [_idx_pair(file) for file in idx_files]
    else:
        pairs = [_idx_pair(where)]
    image_shapes = {pixels.shape[1:] for pixels, _ in pairs}
    if len(image_shapes) > 1:
        raise _bad(where, f"images of one shape, not of {sorted(image_shapes)}")
    (image_shape,) = image_shapes
    image_labels = np.concatenate([image_labels for _, image_labels in pairs])
    class_images = [
        np.concatenate([_pixel_rows(where, pixels[digits == digit]) for pixels, digits in pairs])
        for digit in (first_class, second_class)
    ]
    for digit, images_of_class in zip((first_class, second_class), class_images, strict=True):
        if len(images_of_class) < 2:
            digits = ", ".join(map(str, np.unique(image_labels)[:12]))
            allowed = f"labels with two images or more in {where} (it has {digits}), not {digit}"
            raise InvalidArgument("classes", classes, allowed)
    return ImageSet(class_images[0], class_images[1], (first_class, second_class), image_shape)


def read_idx(path: Path) -> Array:
    """The array in an IDX file, gzip or not.

    Raises
    ------
    InvalidArgument
        If the file is not IDX, or shorter or longer than its header says.
    """

    def decode(stream: BinaryIO) -> Array:
        is_gzip = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        idx_stream: Readable = gzip.GzipFile(fileobj=stream) if is_gzip else stream
        idx_header = idx_stream.read(4)
        if len(idx_header) < 4 or idx_header[:2] != b"\0\0" or idx_header[2] not in IDX_TYPES:
            raise _bad(path, f"an IDX file, which begins with 00 00, not {idx_header.hex(' ')!r}")
        axis_lengths = idx_stream.read(4 * idx_header[3])
        if len(axis_lengths) < 4 * idx_header[3]:
            raise _bad(path, "a whole IDX file; this one ends inside its header")
        pixel_shape = struct.unpack(f">{idx_header[3]}I", axis_lengths)
        pixel_type = np.dtype(IDX_TYPES[idx_header[2]])
        return Source("images", path, PIXELS).rest_of(idx_stream, pixel_shape, pixel_type)

    return decoded("images", path, "IDX file, plain or gzip", decode)


def _idx_pair(file: Path) -> tuple[Array, Array]:
    """Pixels and labels of an images file and the labels file beside it."""
    idx_pixels = read_idx(file)
    if idx_pixels.ndim < 2:
        raise _bad(file, f"a file of images: its array has {idx_pixels.ndim} axis, as labels have")
    stem = file.name.removesuffix(".gz").replace("images", "labels").replace("idx3", "idx1")
    labels_files = [file.with_name(name) for name in (stem + ".gz", stem) if name != file.name]
    labels_file = next((idx_file for idx_file in labels_files if idx_file.is_file()), None)
    if labels_file is None:
        raise _bad(file, f"images with their labels beside them, in {stem} or {stem}.gz")
    return _checked_pair(labels_file, idx_pixels, read_idx(labels_file))


def _npz_pairs(npz: Path) -> list[tuple[Array, Array]]:
    """Pixels and labels of every pair of arrays in an NPZ file."""

    def decode(npz_stream: BinaryIO) -> list[tuple[Array, Array]]:
        with ZipFile(npz_stream) as archive:
            npz_members = {name.removesuffix(".npy") for name in archive.namelist()}
            npz_names = [pair for pair in NPZ_NAMES if npz_members.issuperset(pair)]
            if not npz_names:
                wanted_names = " or ".join(f"{x} and {y}" for x, y in NPZ_NAMES)
                member_names = str(sorted(npz_members)[:12])
                raise _bad(npz, f"an NPZ file with arrays {wanted_names}, not {member_names:.200}")
            npz_source = Source("images", npz, PIXELS)
            pairs = [[npz_source.npy(archive.open(f"{x}.npy")) for x in pair] for pair in npz_names]
        return [_checked_pair(npz, pixels, labels) for pixels, labels in pairs]

    return decoded("images", npz, "NPZ file of plain arrays", decode)


def _checked_pair(file: Path, pixels: Array, labels: Array) -> tuple[Array, Array]:
    """Pixels and labels, checked: one integer for each image."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise _bad(file, f"a file of labels, one integer each, not an array {labels.shape}")
    if pixels.ndim < 2 or pixels.dtype.kind not in "iuf":
        raise _bad(file, f"images, an array of numbers with an axis of its own, not {pixels.shape}")
    if len(labels) != len(pixels):
        raise _bad(file, f"as many labels as images: {len(labels)} for {len(pixels)}")
    return pixels, labels


def _pixel_rows(images_path: Path, pixels: Array) -> Array:
    """Images as rows of floats, in [0, 1] where they are integers."""
    rows = pixels.reshape(len(pixels), math.prod(pixels.shape[1:]))
    with np.errstate(over="ignore"):
        pixel_rows = np.asarray(rows / 255.0 if rows.dtype.kind in "iu" else rows, np.float32)
    if not np.isfinite(pixel_rows).all():
        raise _bad(images_path, "images of finite pixels")
    return pixel_rows.astype(float)


def _bad(images_path: Path, allowed_images: str) -> InvalidArgument:
    """InvalidArgument for a file or folder; ``allowed_images`` says which are."""
    return InvalidArgument("images", str(images_path), allowed_images)


@dataclass(frozen=True, eq=False)
class ImageTask:
    """Classification of preprocessed images, drawn with replacement, fresh noise added.

    Attributes
    ----------
    first, second : (N_c, n)
        Centred images of the two classes, with mean squared length theta each.
    theta : float
    """

    first: Array
    second: Array
    theta: float

    @property
    def dimension(self) -> int:
        """n, the number of pixels."""
        return self.first.shape[1]

    @property
    def trace(self) -> float:
        """Trace n + theta of the covariance."""
        return self.dimension + self.theta

    def draw(self, samples: int, rng: Generator) -> tuple[Array, Array]:
        """Inputs (m, n) and labels (m,), both classes in equal shares, noise N(0, I) added."""
        class_sizes = (samples - samples // 2, samples // 2)
        images_with_noise = rng.standard_normal((samples, self.dimension))
        class_counts = zip((self.first, self.second), class_sizes, strict=True)
        drawn = [images[rng.integers(len(images), size=count)] for images, count in class_counts]
        images_with_noise += np.concatenate(drawn)
        return images_with_noise, np.repeat([1.0, -1.0], class_sizes)

    def given(self, weights: Array, student: Activation, feature_noise: float) -> FeatureSample:
        """A sample of the features that the first layer (k, n) has, of rows of the seed 0."""
        image_rng = default_rng(0)
        noisy_images, y = self.draw(8 * len(weights) + 1000, image_rng)  # some 8 rows a feature
        image_features = student(noisy_images @ weights.T)
        image_features += np.sqrt(feature_noise) * image_rng.standard_normal(image_features.shape)
        return FeatureSample(features=image_features, labels=y)


LearningTask = MixtureTask | ImageTask  # samples, and what has a theory given a first layer


def image_task(pixels: ImageSet, *, theta: float, source: str = "gaussian") -> LearningTask:
    """Preprocess two classes of images: centre each, scale each to mean squared length theta.

    Parameters
    ----------
    pixels : ImageSet
    theta : float
        Trace of either class before noise of variance 1 a pixel is added.
    source : {"gaussian", "images"}
        Draw from Gaussians with the classes' covariances; or the images themselves, with
        replacement and fresh noise (then training and test samples share images).

    Returns
    -------
    MixtureTask or ImageTask

    Raises
    ------
    InvalidArgument
        If theta is not above 0, a class does not vary, or the source is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from validation.mixtures import ImageSet, image_task
    >>> rng = np.random.default_rng(0)
    >>> pixels = ImageSet(rng.random((50, 9)), rng.random((40, 9)), (3, 5), (3, 3))
    >>> task = image_task(pixels, theta=4.0)
    >>> task.trace, task.draw(7, rng)[0].shape
    (13.0, (7, 9))
    """
    if not 0 < theta < np.inf:
        raise InvalidArgument("theta", theta, "a finite number above 0")
    if source not in ("gaussian", "images"):
        raise InvalidArgument("source", source, "gaussian or images")
    class_images = []
    for image_class, images in zip(pixels.classes, (pixels.first, pixels.second), strict=True):
        centred_images = images - images.mean(axis=0)
        mean_square_length = float((centred_images**2).sum(axis=1).mean())
        if not mean_square_length > 0:
            raise InvalidArgument("classes", image_class, "a class whose images differ")
        class_images.append(centred_images * np.sqrt(theta / mean_square_length))
    if source == "images":
        return ImageTask(class_images[0], class_images[1], float(theta))
    n = class_images[0].shape[1]
    covariances = np.array([np.eye(n) + images.T @ images / len(images) for images in class_images])
    image_law = GaussianMixture(means=np.zeros((2, n)), covariances=covariances)
    return MixtureTask(image_law, n, n + theta, class_labels("classes:1,-1", 2), np.empty((n, 0)))
