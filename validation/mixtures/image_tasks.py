"""Two classes of images as a task: preprocessing, and more draws than there are images.

As in the paper (docs/theory.md 12), each class is centred, both are scaled to the same trace,
E |x|^2 = theta, and N(0, I) is added: tr Sigma = n + theta.  Labels are +1 for the first class, -1
for the second.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, default_rng

from replica.errors import InvalidArgument
from replica.given import FeatureSample
from replica.problem import Activation, GaussianMixture, class_labels
from solvers.results import Array

from .image_files import ImageSet
from .mixtures import MixtureTask

ROWS = 8  # a neuron, of a sample of features


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
        """n + theta."""
        return self.dimension + self.theta

    def draw(self, samples: int, rng: Generator) -> tuple[Array, Array]:
        """Inputs (m, n) and labels (m,), both classes in equal shares, noise N(0, I) added."""
        counts = (samples - samples // 2, samples // 2)
        X = rng.standard_normal((samples, self.dimension))
        parts = zip((self.first, self.second), counts, strict=True)
        X += np.concatenate([rows[rng.integers(len(rows), size=count)] for rows, count in parts])
        return X, np.repeat([1.0, -1.0], counts)

    def given(self, weights: Array, student: Activation, feature_noise: float) -> FeatureSample:
        """A sample of the features that the first layer (k, n) has, of rows of the seed 0."""
        rng = default_rng(0)
        X, y = self.draw(ROWS * len(weights) + 1000, rng)
        features = student(X @ weights.T)
        features += np.sqrt(feature_noise) * rng.standard_normal(features.shape)
        return FeatureSample(features=features, labels=y)


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
    classes = []
    for label, rows in zip(pixels.classes, (pixels.first, pixels.second), strict=True):
        centred = rows - rows.mean(axis=0)
        power = float((centred**2).sum(axis=1).mean())
        if not power > 0:
            raise InvalidArgument("classes", label, "a class whose images differ")
        classes.append(centred * np.sqrt(theta / power))
    if source == "images":
        return ImageTask(classes[0], classes[1], float(theta))
    n = classes[0].shape[1]
    covariances = np.array([np.eye(n) + rows.T @ rows / len(rows) for rows in classes])
    law = GaussianMixture(means=np.zeros((2, n)), covariances=covariances)
    return MixtureTask(law, n, n + theta, class_labels("classes:1,-1", 2), np.empty((n, 0)))
