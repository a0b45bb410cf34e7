"""Two classes of images as a task: preprocessing, and more draws than there are images.

As in the paper (docs/theory.md 12), each class is centred, both are scaled to the same trace,
E |x|^2 = theta, and N(0, I) is added: tr Sigma = n + theta.  Labels are +1 for the first class, -1
for the second.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from replica.errors import InvalidArgument
from solvers.results import Array

from .image_files import ImageSet


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
        """``count`` inputs (count, n) of the class with these images, without the noise."""
        if self.resampled:
            return rows[rng.integers(len(rows), size=count)]
        return rng.standard_normal((count, len(rows))) @ rows / np.sqrt(len(rows))


def image_task(pixels: ImageSet, *, theta: float, source: str = "gaussian") -> ImageTask:
    """Preprocess two classes of images: centre each, scale each to mean squared length theta.

    Parameters
    ----------
    pixels : ImageSet
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
    classes = []
    for label, rows in zip(pixels.classes, (pixels.first, pixels.second), strict=True):
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
