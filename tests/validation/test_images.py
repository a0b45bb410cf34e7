"""Image files, of which robustness/test_image_faults.py has bad ones; preprocessing; draws from
fitted Gaussians, and what has a theory."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from replica import InvalidArgument
from tests.idx import idx
from validation.mixtures import image_task, images, in_theory, scaling, side_by_side
from validation.mixtures.image_tasks import read_idx

MNIST = os.environ.get("REPLICA_MNIST", "")
needs_mnist = pytest.mark.skipif(
    not Path(MNIST, "t10k-images-idx3-ubyte.gz").is_file(),
    reason="REPLICA_MNIST does not name a folder with MNIST's test set",
)


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(0, 256, size=(60, 4, 5), dtype=np.uint8)


@pytest.fixture
def labels():
    return (np.arange(60) % 3).astype(np.uint8)


@pytest.fixture
def folder(tmp_path, pixels, labels):
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(pixels))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(labels))
    return tmp_path


def check(found, pixels, labels):
    assert found.shape == (4, 5)
    for own, label in ((found.first, 2), (found.second, 0)):
        np.testing.assert_allclose(own, pixels[labels == label].reshape(20, 20) / 255, rtol=1e-6)


def test_idx_files_plain_and_gzip(folder, pixels, labels):
    check(images(folder, classes=(2, 0)), pixels, labels)
    check(images(folder / "t10k-images-idx3-ubyte", classes=(2, 0)), pixels, labels)
    for file in list(folder.iterdir()):
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    check(images(folder, classes=(2, 0)), pixels, labels)


def test_two_pairs_are_read_together(folder):
    for file in list(folder.iterdir()):
        (folder / file.name.replace("t10k", "train")).write_bytes(file.read_bytes())
    assert len(images(folder, classes=(0, 1)).first) == 40


@pytest.mark.parametrize("names", [("images", "labels"), ("x_test", "y_test"), ("x", "y")])
def test_npz_files(tmp_path, pixels, labels, names):
    file = tmp_path / "set.npz"
    np.savez(file, **dict(zip(names, (pixels, labels), strict=True)))
    check(images(file, classes=(2, 0)), pixels, labels)


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_other_types_of_numbers(tmp_path, dtype):
    array = np.arange(-3, 9, dtype=dtype).reshape(3, 4)
    (tmp_path / "a").write_bytes(idx(array))
    np.testing.assert_array_equal(read_idx(tmp_path / "a"), array)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda labels, pixels: idx(labels[:50]), "as many labels as images: 50 for 60"),
        (lambda labels, pixels: idx(pixels), r"one integer each, not an array \(60, 4, 5\)"),
        (None, "images with their labels beside them"),
    ],
)
def test_bad_labels_are_refused(folder, pixels, labels, made, message):
    file = folder / "t10k-labels-idx1-ubyte"
    file.write_bytes(made(labels, pixels)) if made else file.unlink()
    with pytest.raises(InvalidArgument, match=message):
        images(folder, classes=(0, 1))


@pytest.mark.parametrize(
    ("place", "classes", "message"),
    [
        ("", (0, 7), r"it has 0, 1, 2\), not 7"),
        ("", (1, 1), "two different labels"),
        ("empty", (0, 1), "a folder with IDX files"),
        ("nowhere", (0, 1), "No such file"),
    ],
)
def test_images_and_classes_must_be_there(folder, place, classes, message):
    (folder / "empty").mkdir()
    with pytest.raises(InvalidArgument, match=message):
        images(folder / place, classes=classes)


@pytest.mark.parametrize("source", ["gaussian", "images"])
def test_preprocessing(folder, source):
    """Each class centred, of trace theta before the noise: from the draws themselves."""
    task = image_task(images(folder, classes=(2, 0)), theta=30.0, source=source)
    X, y = task.draw(40_000, np.random.default_rng(0))
    assert task.trace == 50.0
    for sign in (1, -1):
        own = X[y == sign]
        # Standard errors: sqrt(2.5 / 2e4) = 0.011 of a mean; 50 sqrt(2 / (2e4 n_eff)) of a trace.
        assert np.abs(own.mean(axis=0)).max() < 0.06
        assert (own**2).sum(axis=1).mean() == pytest.approx(50, abs=0.7)


@pytest.mark.parametrize("size", [(2, 3), (9, 9)])
def test_fitted_gaussian_has_the_covariance_of_the_images(tmp_path, size):
    """45 images of either class, more than pixels or fewer, and noise."""
    np.savez(
        tmp_path / "a.npz", x=np.random.default_rng(1).random((90, *size)), y=np.arange(90) % 2
    )
    found = images(tmp_path / "a.npz", classes=(0, 1))
    fitted, exact = (image_task(found, theta=2.0, source=of) for of in ("gaussian", "images"))
    of_images = [rows.T @ rows / 45 + np.eye(rows.shape[1]) for rows in (exact.first, exact.second)]
    np.testing.assert_allclose(fitted.inputs.covariances, of_images, atol=1e-12)


@pytest.mark.parametrize("source", [pytest.param("gaussian", marks=pytest.mark.slow), "images"])
def test_images_have_a_theory(tmp_path, source):
    """Of images of unequal spread, from the covariances of the classes and from features."""
    x = np.random.default_rng(1).random((200, 6, 6))
    x[::2, :, 3:] *= 0.2
    np.savez(tmp_path / "a.npz", x=x, y=np.arange(200) % 2)
    task = image_task(images(tmp_path / "a.npz", classes=(0, 1)), theta=60.0, source=source)
    options = dict(students=["relu"], orders=[3], width=60, samples=90, rate=3.0, lam=1e-2)
    found = np.empty((2, 12, 3, 2))
    for seed in range(12):
        found[0, seed] = np.array(side_by_side(task, rng=seed, **options))[:, 0]
        found[1, seed] = np.array(in_theory(task, rng=seed, **options))[:, 0]
    difference = (found[0] - found[1])[:, 1:]
    # 3.5 standard errors, and 3 / n of the theory
    allowed = 3.5 * difference.std(axis=0, ddof=1) / np.sqrt(12) + found[1, :, 1:].mean(axis=0) / 30
    assert (np.abs(difference.mean(axis=0)) <= allowed).all()
    assert (found[1, :, 2] < 0.49).all()


def test_mistakes_of_preprocessing(tmp_path, folder):
    found = images(folder, classes=(0, 1))
    with pytest.raises(InvalidArgument, match="theta must be"):
        image_task(found, theta=0.0)
    with pytest.raises(InvalidArgument, match="source must be gaussian or images"):
        image_task(found, theta=1.0, source="camera")
    np.savez(tmp_path / "flat.npz", x=np.ones((4, 3)), y=np.array([0, 0, 1, 1]))
    with pytest.raises(InvalidArgument, match="a class whose images differ"):
        image_task(images(tmp_path / "flat.npz", classes=(0, 1)), theta=1.0)


@pytest.mark.slow
@needs_mnist
@pytest.mark.parametrize("classes", [(0, 1), (5, 9)])
def test_mnist(classes):
    """Network and Hermite model of order 4 on Gaussians fitted to two digits: the same errors."""
    found = images(MNIST, classes=classes)
    assert found.shape == (28, 28)
    theta = scaling(784, data_spread=0.74, split=0.0).theta
    eta = scaling(784, data_spread=0.74, split=0.5).eta
    task = image_task(found, theta=theta)
    draws = [
        side_by_side(
            task, students=["relu", "tanh"], orders=[4], width=500, samples=500, rate=eta,
            lam=1e-4, rng=seed,
        )
        for seed in range(4)
    ]  # fmt: skip
    for name in ("training", "generalisation", "misclassification"):
        errors = np.array([getattr(one, name) for one in draws])
        mean, scatter = errors.mean(axis=0), errors.std(axis=0, ddof=1) / 2
        # Done in this project's way: three combined standard errors, or 3 %.
        allowed = np.maximum(3 * np.hypot(*scatter.T), 0.03 * mean[:, 0])
        assert (np.abs(mean[:, 1] - mean[:, 0]) <= allowed).all(), name
    # Misclassification better than chance by relu; an odd activation cannot tell apart two
    # Gaussians of mean 0.
    assert (mean[0] < 0.49).all()
    assert mean[1] == pytest.approx(0.5, abs=0.03)
