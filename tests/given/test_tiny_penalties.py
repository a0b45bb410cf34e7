"""Rows of features at penalties that are almost 0: least squares, or interpolation."""

import numpy as np
import pytest

from replica import FeatureSample, solve


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


def test_fewer_samples_than_features_interpolate_at_any_tiny_penalty():
    rng = np.random.default_rng(6)
    for rows, p in ((60, 40), (60, 100)):
        features = rng.standard_normal((rows, p))
        sample = FeatureSample(features=features, labels=features[:, 0], intercept=True)
        tiny, small = (solve(sample, samples=30, lam=lam) for lam in (1e-12, 1e-8))
        assert tiny.converged
        assert tiny.test_error == pytest.approx(small.test_error, rel=1e-5)
        assert tiny.train_error < 1e-12
