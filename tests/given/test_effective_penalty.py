"""The effective penalty of a fit, and what it learns of each mode.  Section 20, (20.15)-(20.17)."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from replica import (
    FeatureMoments,
    FeatureSample,
    FirstLayer,
    GaussianMixture,
    InvalidArgument,
    learnability,
    solve,
)
from tests.given.modes import EXACT, LAM, LEARNED, MODES, NOISE, SAMPLES, of_modes, rows_of


def eigenlearning(n=SAMPLES):
    """kappa of sum s / (s + kappa) + delta / kappa = n, for the ridge delta = p lam on features as
    they are, and learnabilities (Simon, Dickens, Karkada and DeWeese, 2023)."""
    delta = 60 * LAM

    def missing(kappa):
        return (MODES / (MODES + kappa)).sum() + delta / kappa - n

    kappa = brentq(missing, 1e-9, 1e3, xtol=1e-16, rtol=1e-14)
    return kappa, MODES / (MODES + kappa), delta


def test_ridge_regression_by_its_modes():
    kappa, learned, delta = eigenlearning()
    factor = SAMPLES / (SAMPLES - (learned**2).sum())  # E_0
    test = factor * ((1 - learned[LEARNED]) ** 2 + NOISE)
    point = solve(of_modes(), samples=SAMPLES, lam=LAM, **EXACT)
    found = point.kappa, point.degrees_of_freedom, point.degrees_of_freedom_2
    # the equations of one stratum are these, and are solved to 1e-10
    assert found == pytest.approx((kappa, learned.sum(), (learned**2).sum()), rel=1e-8)
    assert SAMPLES / (SAMPLES - point.degrees_of_freedom_2) == pytest.approx(factor, rel=1e-8)
    errors = test, (delta / (SAMPLES * kappa)) ** 2 * test
    assert (point.test_error, point.train_error) == pytest.approx(errors, rel=1e-8)
    # the mean readout has 1 / E_0 of it
    assert point.readout_variance == pytest.approx(test * (1 - 1 / factor), rel=1e-8)
    each = learnability(of_modes(), np.eye(60), samples=SAMPLES, lam=LAM, **EXACT)
    np.testing.assert_allclose(each, learned, rtol=1e-8)
    # the number of section 20 for a layer of these scales, whose strata make it 1/n different
    assert test - NOISE == pytest.approx(0.0599, abs=1e-4)


def test_learnability_of_any_target():
    """E f f* over E f*^2, for f* = u phi and the mean readout (M + kappa)^-1 M u."""
    _, learned, _ = eigenlearning()
    u = np.random.default_rng(0).standard_normal(60)
    expected = (MODES * learned * u**2).sum() / (MODES * u**2).sum()
    at = {"samples": SAMPLES, "lam": LAM, **EXACT}
    assert learnability(of_modes(), u, **at) == pytest.approx(expected, rel=1e-8)
    assert learnability(of_modes(), 1e8 * u, **at) == pytest.approx(expected, rel=1e-8)
    assert np.isnan(learnability(of_modes(), 0 * u, **at))


def test_an_intercept_is_a_mode_that_is_learned():
    """It takes the means, whatever they are, at the price of one sample: its L is 1."""
    kappa, learned, _ = eigenlearning(SAMPLES - 1)
    shifted, at = of_modes(means=np.full(60, 3.0), intercept=True), {"lam": LAM, **EXACT}
    assert solve(shifted, samples=SAMPLES, **at).kappa == pytest.approx(kappa, rel=1e-8)
    found = learnability(shifted, np.eye(60), samples=SAMPLES, **at)
    np.testing.assert_allclose(found, learned, rtol=1e-8)


@pytest.mark.parametrize("shift", [0.0, 1.0, 5.0])
def test_an_intercept_takes_the_mean_of_a_target(shift):
    """Of features that are not centred, too: their shift is no part of what is learned."""
    mean, at = np.full(40, 1 / np.sqrt(40)), {"lam": 0.1, "samples": 60, **EXACT}
    given = {"means": shift + np.array([mean, -mean]), "covariances": np.eye(40)}
    moments = FeatureMoments(**given, fractions=[1, 1], label_means=[1, -1], intercept=True)
    layer = FirstLayer(
        weights=np.eye(40), student="linear", target="classes:1,-1", beside=0, intercept=True,
        inputs=GaussianMixture(**given, fractions=[1, 1]),
    )  # fmt: skip
    along = np.column_stack([mean, np.eye(40)[0]])
    # those of the moments, whose features are centred, without the shift
    expected = learnability(replace(moments, means=[mean, -mean]), along, **at)
    for model in (moments, layer):
        # the shift costs the digits of its square
        np.testing.assert_allclose(learnability(model, along, **at), expected, rtol=1e-7)
    features, labels = rows_of(moments, 400)
    for strata in (None, labels):
        sample = FeatureSample(features=features, labels=labels, strata=strata, intercept=True)
        found = learnability(sample, along, **at)
        # as below: a variance of 400 rows is off by sqrt(2 / 400), and 1 - L by twice that
        np.testing.assert_allclose(1 - found, 1 - expected, rtol=4 * np.sqrt(2 / 400))


@pytest.mark.parametrize("by_rows", [False, True])
def test_a_row_is_left_out_of_the_readout_that_it_tests(by_rows):
    """n is most of the rows: without their leverage 1 - L is 11 to 14 % too small."""
    _, learned, _ = eigenlearning(300)
    first, each = np.eye(60)[:, :8], []
    for seed in range(30):
        features, labels = rows_of(of_modes(), 400, seed)
        strata = None if by_rows else 0 * labels
        sample = FeatureSample(features=features, labels=labels, strata=strata)
        each.append(learnability(sample, first, samples=300, lam=LAM))
    # 3.5 standard errors, by the scatter of these draws: .014 at most
    np.testing.assert_allclose(1 - np.mean(each, axis=0), 1 - learned[:8], rtol=0.05)


def test_degrees_of_freedom_of_a_sample_are_those_of_its_population():
    """For isotropic rows; rows by themselves do not tell the second, and say so."""
    population = FeatureMoments(covariances=np.eye(200), label_means=1.0)
    at = {"samples": 100, "lam": 1e-3}
    expected = solve(population, **at)
    features = np.random.default_rng(0).standard_normal((800, 200))
    sample = FeatureSample(features=features, labels=features[:, 0], strata=np.zeros(800))
    found = solve(sample, **at)
    # three times the scatter of the mean of 800 x 200 squares, sqrt(2 / 160 000); of the
    # empirical moments the second is 53.1 for 49.8
    for name in ("kappa", "degrees_of_freedom", "degrees_of_freedom_2"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=0.0106), name
    by_rows = solve(replace(sample, strata=None), **at)
    assert np.isnan(by_rows.degrees_of_freedom_2)
    # residual ones are empirical: numbers of this library before the second was the population's
    left = found.residual_degrees, by_rows.residual_degrees
    assert left == pytest.approx((46.88444, 0.19807545), rel=1e-6)


def test_directions_past_the_time_limit():
    """The limit holds for all directions together, not for the point alone."""
    moments, many = FeatureMoments(covariances=np.eye(2), label_means=1.0), np.ones((2, 10_000))
    # they take seconds
    assert np.isnan(learnability(moments, many, samples=9, lam=0.1, time_limit=0.2)).all()


@pytest.mark.parametrize("rows", [400, 4000])
def test_effective_penalty_of_layers_and_samples(rows):
    """Rows tell the penalty of their population, and what is learned at inputs beside them."""
    kappa, learned, _ = eigenlearning()
    at = {"samples": SAMPLES, "lam": LAM}
    layer = FirstLayer(
        weights=np.diag(MODES**0.5), student="linear", target="z1", directions=np.eye(60)[LEARNED]
    )
    first = np.eye(60)[:, :8]
    features, labels = rows_of(of_modes(), rows)
    sample = FeatureSample(features=features, labels=labels)
    # variances of a sample of the features are off by sqrt(2 / rows), and 1 - L by twice that; a
    # layer's strata, whose responses differ, make terms of order 1/n: here 2/n
    chance = 4 * np.sqrt(2 / rows)
    for model, off in [
        (layer, 3 / SAMPLES),
        (sample, chance),
        (replace(sample, strata=0 * labels), chance),
    ]:
        assert solve(model, **at).kappa == pytest.approx(kappa, rel=0.01)
        found = learnability(model, first, **at)
        np.testing.assert_allclose(1 - found, 1 - learned[:8], rtol=off)


def test_leave_one_out_of_all_rows():
    """At n = N learnabilities are of predictions of rows that are left out."""
    features, labels = rows_of(of_modes(), 150)
    sample = FeatureSample(features=features, labels=labels)
    found = learnability(sample, np.eye(60)[0], samples=150, lam=LAM, **EXACT)
    target = features[:, 0]
    K = features @ features.T + 60 * LAM * np.eye(150)
    left_out = target - np.linalg.solve(K, target) / np.diag(np.linalg.inv(K))
    # an identity of ridge regression; 150 rows are solved for to 1e-10
    assert found == pytest.approx((left_out @ target) / (target @ target), rel=1e-8)


def test_kappa_of_a_loss_is_that_of_its_mean_curvature():
    """Of the square loss through the equations of any loss, a Huber loss whose bend is far away."""
    at = {"samples": 60, "lam": 0.1, **EXACT}
    rng = np.random.default_rng(0)
    mean = rng.standard_normal(20) / 4
    classes = FeatureMoments(
        means=[mean, -mean], covariances=np.eye(20), fractions=[1, 2], label_means=[1, -1]
    )
    names = ["kappa", "degrees_of_freedom", "degrees_of_freedom_2"]
    found, expected = (
        [getattr(solve(classes, loss=loss, **at), name) for name in names]
        for loss in ("huber:1e4", "square")
    )
    assert found == pytest.approx(expected, rel=1e-7)  # both are solved to 1e-10


def test_directions_that_do_not_fit():
    moments = of_modes()
    for model, direction, at, sentence in [
        (moments, np.ones(3), {"samples": 9}, "direction must be"),
        (moments, np.ones((3, 60)), {"samples": 9}, "direction must be .*direction.T"),
        (moments, np.full(60, np.nan), {"samples": 9}, "direction must be"),
        (1.0, np.ones(3), {"samples": 9}, "model must be"),
        (moments, np.ones(60), {}, "samples must be"),
    ]:
        with pytest.raises(InvalidArgument, match=sentence):
            learnability(model, direction, lam=LAM, **at)
