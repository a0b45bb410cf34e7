"""Real rows of features with labels: tables of scikit-learn, and features of images of MNIST."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.neural_network import MLPClassifier

import replica
from validation.mixtures import images

IMAGES, NEURONS = 2000, 100  # that are rows, of a layer; as many images again train another


class Table(NamedTuple):
    """Rows of features, each of mean 0 and variance 1.

    ``labels`` are real numbers or classes, and ``halves`` tell two classes apart, as ``parted``
    says.
    """

    name: str
    features: Any
    labels: Any
    halves: Any
    parted: str

    @property
    def real(self) -> bool:
        """Whether labels are numbers, not classes."""
        return bool(self.labels.dtype.kind == "f")

    def sample(self, *, two: bool, rows: Any = slice(None)) -> replica.FeatureSample:
        """Some of the rows, with their labels or with two classes."""
        labels = self.halves if two else self.labels
        return replica.FeatureSample(
            features=self.features[rows], labels=labels[rows], intercept=True
        )


def standardised(features: Any) -> Any:
    """Columns of mean 0 and variance 1, without those that are constant."""
    features = features[:, features.std(axis=0) > 0]
    return (features - features.mean(axis=0)) / features.std(axis=0)


def tables(folder: Path | None) -> Iterator[Table]:
    """The tables of scikit-learn; and features of the images in a ``folder``, if there is one."""
    for name, load, parted in [
        ("digits", datasets.load_digits, "odd digits"),
        ("breast cancer", datasets.load_breast_cancer, "its two classes"),
        ("wine", datasets.load_wine, "the first class"),
        ("diabetes", datasets.load_diabetes, "labels above the median"),
    ]:
        features, labels = load(return_X_y=True)
        halves = {"digits": labels % 2 == 1, "diabetes": labels > np.median(labels)}
        two = halves.get(name, labels == 0)
        if name == "diabetes":
            labels = (labels - labels.mean()) / labels.std()
        yield Table(name, standardised(features), labels, two, parted)
    if folder is not None:
        yield from of_images(folder)


def of_images(folder: Path) -> Iterator[Table]:
    """Images of MNIST under a layer of random relu neurons, and under one that was trained on other
    images."""
    pairs = [images(folder, classes=(digit, digit + 1)) for digit in range(0, 10, 2)]
    pixels = np.concatenate([part for one in pairs for part in (one.first, one.second)])
    each = [
        (one.classes[i], len(part))
        for one in pairs
        for i, part in enumerate([one.first, one.second])
    ]
    digits = np.concatenate([np.full(count, digit) for digit, count in each])
    order = np.random.default_rng(0).permutation(len(digits))
    own, other = order[:IMAGES], order[IMAGES : 2 * IMAGES]
    weights = np.random.default_rng(1).standard_normal((pixels.shape[1], NEURONS))
    network = MLPClassifier((NEURONS,), max_iter=20, random_state=0)
    with np.errstate(all="ignore"):
        network.fit(pixels[other], digits[other])
    layers = {
        "MNIST, random layer": (weights, 0.0),
        "MNIST, trained layer": (network.coefs_[0], network.intercepts_[0]),
    }
    for name, (matrix, bias) in layers.items():
        features = standardised(np.maximum(pixels[own] @ matrix + bias, 0))
        yield Table(name, features, digits[own], digits[own] % 2 == 1, "odd digits")
