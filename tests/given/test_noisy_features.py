"""Noise that is added to features, and the norm of the readout: against readouts that are fitted to
samples, at two sizes."""

import numpy as np
import pytest

from replica import FeatureSample, FirstLayer, solve
from validation import simulate
from validation.draws import instance_of


def layer(d, **options):
    """Rows with a spike along the target, of p = .8 d neurons."""
    weights = np.random.default_rng(5).standard_normal((int(0.8 * d), d)) / np.sqrt(d)
    weights[:, 0] += 0.7
    known = {"student": "relu", "target": "tanh", "directions": np.eye(d)[0], "noise": 0.1}
    return FirstLayer(weights=weights, **known, **options)


def fitted(model, samples, lam, draws):
    """|a|^2 / p and the training error of readouts from normal equations, (draws, 2)."""
    rng, drawn = np.random.default_rng(1), instance_of(model)
    found = np.empty((draws, 2))
    for i in range(draws):
        X = rng.standard_normal((samples, model.dimension))
        Phi = drawn.features(X, rng=rng) / np.sqrt(model.width)
        y = drawn.labels(X, rng)
        if model.intercept:
            Phi, y = Phi - Phi.mean(axis=0), y - y.mean()
        a = np.linalg.solve(Phi.T @ Phi + lam * np.eye(model.width), Phi.T @ y)
        found[i] = a @ a / model.width, ((y - Phi @ a) ** 2).mean()
    return found


@pytest.mark.parametrize("d", [100, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("intercept", [False, True])
def test_norms_and_errors_are_those_of_fits(d, noise, intercept):
    model = layer(d, feature_noise=noise, intercept=intercept)
    point = solve(model, samples=1.2 * d, lam=0.05)
    assert point.converged
    found = fitted(model, int(1.2 * d), 0.05, draws=100)
    test = (
        simulate(model, samples=[int(1.2 * d)], lam=[0.05], seeds=20, rng=3)
        .errors["test_error"]
        .ravel()
    )
    theory = point.squared_norm, point.train_error, point.test_error
    for value, draws in zip(theory, (*found.T, test), strict=True):
        # 3.5 standard errors, and the 1 / n of the theory
        allowed = 3.5 * draws.std(ddof=1) / np.sqrt(len(draws)) + 2 / d * draws.mean()
        assert value == pytest.approx(draws.mean(), abs=allowed)


def test_what_moments_of_a_sample_do_not_know():
    rng = np.random.default_rng(0)
    features, labels = rng.standard_normal((400, 9)), np.sign(rng.standard_normal(400))
    sample = FeatureSample(features=features, labels=labels, strata=labels)
    assert np.isnan(solve(sample, samples=100, lam=0.1).squared_norm)


def test_noise_is_shown():
    assert "feature_noise 0.3" in repr(layer(20, feature_noise=0.3))
