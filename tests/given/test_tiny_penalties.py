"""Rows of features at penalties that are almost 0: least squares, or interpolation."""

import numpy as np
import pytest

from replica import FeatureSample, learning_curve, solve


def dependent(kind):
    """Features of 150 rows of which one is a sum of two others, with what is left without it; and
    labels."""
    rng = np.random.default_rng(5)
    features = rng.standard_normal((150, 20))
    y = features[:, :2].sum(axis=1) + 0.5 * rng.standard_normal(150)
    if kind == "one-hot":  # beside an intercept
        features = np.c_[features, np.eye(4)[rng.integers(0, 4, 150)]]
    elif kind == "unscaled":
        features *= np.logspace(0, 4, 20)
        features = np.c_[features, features[:, 0] + features[:, 1]]
    return features, features[:, :-1], y


@pytest.mark.parametrize("lam", [1e-12, 1e-7])
@pytest.mark.parametrize("kind", ["one-hot", "unscaled"])
def test_features_that_depend_on_each_other_at_a_tiny_penalty(kind, lam):
    """As least squares of the independent ones, which leave-one-out has, too."""
    features, independent, y = dependent(kind)
    of_all, of_independent = (
        FeatureSample(features=x, labels=y, intercept=True) for x in (features, independent)
    )
    for n in (90, 150):
        point, least = (solve(one, samples=n, lam=lam) for one in (of_all, of_independent))
        assert point.converged
        assert point.test_error == pytest.approx(least.test_error, rel=1e-5)
        assert point.degrees_of_freedom == pytest.approx(independent.shape[1] + 1, abs=1e-3)
    with_constant = np.c_[independent, np.ones(150)]
    hat = with_constant @ np.linalg.pinv(with_constant)
    left_out = (y - hat @ y) / (1 - np.diagonal(hat))
    assert point.test_error == pytest.approx(np.mean(left_out**2), rel=1e-5)


@pytest.mark.slow
def test_fewer_samples_than_features_interpolate_at_any_tiny_penalty():
    rng = np.random.default_rng(6)
    for rows, p in ((60, 40), (60, 100)):
        features = rng.standard_normal((rows, p))
        sample = FeatureSample(features=features, labels=features[:, 0], intercept=True)
        tiny, small = (solve(sample, samples=30, lam=lam) for lam in (1e-12, 1e-8))
        assert tiny.converged
        assert tiny.test_error == pytest.approx(small.test_error, rel=1e-5)
        assert tiny.train_error < 1e-12


@pytest.mark.parametrize("intercept", [False, True])
def test_coordinates_have_the_products_of_the_rows(intercept):
    """Sparse columns behind empty ones and copies, of which a QR without pivots drops some."""
    rng = np.random.default_rng(0)
    for density in (0.02, 0.05, 0.1, 0.3) * 10:
        features = 1.0 * (rng.random((60, 50)) < density) * 10.0 ** rng.integers(0, 6, 50)
        features[:, ::7] = 0
        features[:, 3::11] = features[:, :1] + 2 * features[:, 1:2]
        sample = FeatureSample(features=features, labels=rng.random(60), intercept=intercept)
        rows = features - intercept * features.mean(axis=0)
        coordinates = sample.row_coordinates
        norms = np.linalg.norm(rows, axis=0)
        rank = np.linalg.matrix_rank(rows / np.where(norms > 0, norms, 1.0))
        assert coordinates.shape[1] == rank
        if sample.row_directions is None:
            coordinates = rows
        np.testing.assert_allclose(
            coordinates @ coordinates.T, rows @ rows.T, atol=1e-13 * np.square(rows).max() * 50
        )


@pytest.mark.slow
def test_unused_and_sorted_levels_of_a_category():
    """One-hot columns of which the first are empty, and each of the others has three rows."""
    rng = np.random.default_rng(1)
    levels = np.repeat(np.eye(40, 80, 40), 3, axis=0)
    features = np.c_[levels, rng.standard_normal((120, 3))]
    y = features[:, -3:].sum(axis=1) + 0.3 * rng.standard_normal(120)
    used = features.any(axis=0)
    scaled = features[:, used] * (used.sum() / used.size) ** 0.5  # features are over sqrt(p)
    for lam in (1e-3, 0.1):
        point, least = (
            solve(FeatureSample(features=x, labels=y), samples=80, lam=lam)
            for x in (features, scaled)
        )
        assert point.test_error == pytest.approx(least.test_error, rel=1e-7)
        for name, error in least.fitted.items():
            assert point.fitted[name] == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
def test_features_without_a_direction_are_predicted_as_by_nothing(intercept):
    """All 0: the test error is that of 0, or of the mean of 50 of 100 labels of variance 1."""
    y = np.random.default_rng(0).standard_normal(100)
    y = (y - y.mean()) / y.std()
    sample = FeatureSample(features=np.zeros((100, 4)), labels=y, intercept=intercept)
    point = solve(sample, samples=50, lam=0.1)
    error = 100 / 99 * (1 + 1 / 50) if intercept else 1  # for others of the 100
    assert point.test_error == pytest.approx(error, rel=1e-3)
    fits = point.fitted["fitted_test_error"], point.fitted["fitted_test_error_stderr"]
    assert fits[0] == pytest.approx(error, abs=4 * fits[1])


@pytest.mark.slow
def test_a_penalty_that_no_fit_is_known_of_leaves_the_others_theirs():
    rng = np.random.default_rng(0)
    features = 255 * np.c_[np.eye(40)[rng.integers(0, 40, 200)], rng.standard_normal((200, 5))]
    sample = FeatureSample(features=features, labels=features[:, -1], intercept=True)
    both, alone = (
        learning_curve(sample, samples=[100], lam=lam).fitted_test_error.values.ravel()
        for lam in ([1e-13, 1.0], [1.0])
    )
    assert np.isfinite(alone[0])
    assert both[1] == alone[0]
