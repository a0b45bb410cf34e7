"""Features given by the moments of their population.  Section 20."""

import numpy as np
import pytest

import validation
from replica import (
    FeatureMoments,
    FeatureSample,
    FirstLayer,
    GaussianMixture,
    InvalidArgument,
    gradient,
    learning_curve,
    optimal_lambda,
    samples_needed,
    solve,
)
from tests.given.modes import EXACT, LAM, LEARNED, MODES, NOISE, SAMPLES, of_modes
from tests.given.simulated import mean_errors, ridge, square_errors
from tests.marks import slow

HALVES = np.repeat([0.1, 0.5], 20)


def two_classes(**options):
    """Two Gaussian classes of unequal shares, of features that differ in variance."""
    mean = np.full(40, 1 / np.sqrt(40))
    given = {"means": [mean, -mean], "covariances": np.diag(HALVES), "fractions": [0.3, 0.7]}
    return FeatureMoments(**given | {"label_means": [1, -1]} | options)


def test_strata_that_are_alike_are_one():
    one, at = of_modes(), {"samples": SAMPLES, "lam": LAM, **EXACT}
    again = of_modes(fractions=[0.2, 0.8, 0], label_means=[0, 0, 5])
    for name in ("test_error", "train_error", "kappa", "degrees_of_freedom_2", "squared_norm"):
        expected = getattr(solve(one, **at), name)
        assert getattr(solve(again, **at), name) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("loss", ["square", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
def test_classes_are_those_of_a_linear_layer(loss, intercept):
    """A layer of linear neurons, whose strata are the components of its inputs, exactly."""
    moments = two_classes(intercept=intercept)
    inputs = GaussianMixture(
        means=moments.means, covariances=moments.covariances, fractions=moments.fractions
    )
    layer = FirstLayer(
        weights=np.eye(40), student="linear", target="classes:1,-1", inputs=inputs, beside=0,
        intercept=intercept,
    )  # fmt: skip
    names = ["test_error", "train_error", "train_loss", "classification_error", "readout_variance"]
    names += ["kappa", "degrees_of_freedom", "degrees_of_freedom_2", "squared_norm"]
    given, same = (solve(one, samples=60, lam=0.1, loss=loss, **EXACT) for one in (layer, moments))
    for name in names:
        assert getattr(same, name) == pytest.approx(getattr(given, name), rel=1e-8), name


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [False, True])
def test_moments_are_those_of_a_sample_of_many_rows(intercept):
    p, rng = 20, np.random.default_rng(1)
    root = rng.standard_normal((2, p, p + 1)) / np.sqrt(p)
    moments = FeatureMoments(
        means=rng.standard_normal((2, p)) / 2,
        covariances=root @ root.swapaxes(1, 2),
        fractions=[1, 3],
        label_means=[0.5, -1],
        label_covariances=root[:, :, 0],  # of the label root_0 z, of variance 1
        label_variances=[1.0, 1.2],
        intercept=intercept,
    )
    count = 400_000
    stratum = rng.choice(2, count, p=moments.fractions)
    z, noise = rng.standard_normal((count, p + 1)), rng.standard_normal(count)
    features, labels = np.empty((count, p)), np.empty(count)
    for i in range(2):
        own = stratum == i
        features[own] = moments.means[i] + z[own] @ root[i].T
        added = np.sqrt(moments.label_variances[i] - 1) * noise[own]
        labels[own] = moments.label_means[i] + z[own, 0] + added
    sample = FeatureSample(features=features, labels=labels, strata=stratum, intercept=intercept)
    for samples in (15, 60):
        exact, rows = (solve(one, samples=samples, lam=0.05) for one in (moments, sample))
        for name in ("test_error", "train_error", "readout_variance", "kappa"):
            # three standard errors of a mean of squares of these rows: 3 sqrt(2 / 4e5)
            assert getattr(rows, name) == pytest.approx(getattr(exact, name), rel=7e-3), name


@pytest.mark.parametrize("samples", [60, *slow(30, 150)])
def test_fits_by_numpy(samples):
    moments = of_modes()
    rng = np.random.default_rng(samples)
    along = np.eye(60)[LEARNED] / MODES[LEARNED] ** 0.5

    def sample(count=samples):
        Phi = rng.standard_normal((count, 60)) * MODES**0.5
        return Phi, Phi @ along + np.sqrt(NOISE) * rng.standard_normal(count)

    def errors(a, train, test):
        return square_errors(a, train, sample(2000))

    mean, stderr = mean_errors(range(300), sample, lambda Phi, y: ridge(Phi, y, 0.1), errors)
    point = solve(moments, samples=samples, lam=0.1)
    # chance passes 3.5 standard errors once in 2000; and terms of order 1/n are left out
    away = np.abs(mean - [point.test_error, point.train_error])
    assert (away < 3.5 * stderr + 0.3 / samples * mean).all()


def test_whatever_takes_features_takes_moments():
    moments, at = of_modes(), {"samples": SAMPLES, "lam": LAM}
    curve = learning_curve(moments, samples=[50, SAMPLES], lam=LAM)
    point = solve(moments, **at)
    assert curve.kappa[1] == pytest.approx(point.kappa, rel=1e-6)
    best = optimal_lambda(moments, samples=SAMPLES)
    assert best.test_error < point.test_error
    assert samples_needed(moments, lam=LAM, test_error=point.test_error).samples == pytest.approx(
        SAMPLES, rel=0.01  # straight between points of a curve
    )  # fmt: skip
    slope = gradient(moments, **at).test_error["lam"]
    up, down = (solve(moments, samples=SAMPLES, lam=LAM + h, **EXACT) for h in (1e-5, -1e-5))
    assert slope == pytest.approx((up.test_error - down.test_error) / 2e-5, rel=1e-5)  # h^2 / lam^2
    assert repr(moments) == "FeatureMoments(features 60, strata 1)"


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_moments_are_simulated(loss):
    found = validation.compare(
        two_classes(intercept=True), samples=[60, 200], lam=0.1, seeds=30, rng=0, loss=loss
    )
    assert found.agrees
    assert "classification_error" in found.checks


def test_rows_of_constant_labels_have_these_to_the_bit():
    """Labels 0 and 1 are numbers here, and not names of classes."""
    moments = two_classes(label_means=[0, 1])
    found = validation.compare(moments, samples=100, lam=0.1, seeds=30, rng=0)
    assert found.agrees
    assert list(found.checks) == ["test_error", "train_error"]


@pytest.mark.parametrize(
    ("covariances", "along", "variance"),
    [
        (np.eye(100), np.eye(100)[0], 1 - 1e-6),
        (np.diag([1, 1e-10]), [0, 1e-5], 0.1),  # e S^-1 e is 1 of a feature of any scale
    ],
)
def test_label_variances_are_held_to_one_tolerance(covariances, along, variance):
    given = {"covariances": covariances, "label_covariances": along}
    with pytest.raises(InvalidArgument, match="label_variances must be at least"):
        FeatureMoments(**given, label_variances=variance)
    for rounded in (1.0, 1 - 1e-9):
        whole = FeatureMoments(**given, label_variances=rounded)
        assert solve(whole, samples=9, lam=0.1).converged


@pytest.mark.parametrize("array", [np.asarray, list, "torch"])
def test_moments_in_single_precision(array):
    """Of fewer rows than features: eigenvalues that are 0 are -1e-7 of the largest."""
    if array == "torch":
        array = pytest.importorskip("torch").asarray
    rng = np.random.default_rng(0)
    X, w = (rng.standard_normal(size).astype(np.float32) for size in ((60, 80), (80,)))
    S, e, s = X.T @ X / 60, X.T @ (X @ w) / 60, (X @ w) @ (X @ w) / 60
    single = FeatureMoments(covariances=array(S), label_covariances=array(e), label_variances=s)
    X, w = X.astype(float), w.astype(float)
    S, e, s = X.T @ X / 60, X.T @ (X @ w) / 60, (X @ w) @ (X @ w) / 60
    double = FeatureMoments(covariances=S, label_covariances=e, label_variances=s)
    at = {"samples": 40, "lam": 0.1}
    # 2^-24 of numbers, times a root of as many as a sum has
    assert solve(single, **at).test_error == pytest.approx(solve(double, **at).test_error, rel=1e-6)
    with pytest.raises(InvalidArgument, match="covariances must be symmetric"):
        FeatureMoments(covariances=array(np.float32(S - 1e-3 * np.eye(80))), label_means=1.0)


def test_strata_of_no_share_are_not_seen():
    """Labels there may be any."""
    alike, at = {"means": two_classes().means}, {"samples": 60, "lam": 0.1, "loss": "logistic"}
    padded = two_classes(
        means=[*alike["means"], 0 * HALVES], fractions=[0.3, 0.7, 0], label_means=[1, -1, 5],
        label_variances=[0, 0, 1],
    )  # fmt: skip
    expected, found = (solve(one, **at) for one in (two_classes(), padded))
    assert found.classification_error == pytest.approx(expected.classification_error, rel=1e-6)
