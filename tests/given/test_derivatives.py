"""Derivatives of the errors of what is given, in the number of samples and the penalty."""

import numpy as np
import pytest

from replica import FeatureSample, FirstLayer, gradient, optimal_lambda, solve


def layer(d=60):
    weights = np.random.default_rng(0).standard_normal((50, d)) / np.sqrt(d)
    known = {"student": "relu", "target": "tanh", "directions": np.eye(d)[0], "noise": 0.2}
    return FirstLayer(weights=weights, **known)


def sample(count=700):
    labels = np.repeat([1.0, -1.0], count // 2)
    features = np.random.default_rng(1).standard_normal((count, 20)) + 0.3 * labels[:, None]
    return FeatureSample(features=features, labels=labels)


@pytest.mark.parametrize("model", [layer(), sample()], ids=["layer", "sample"])
@pytest.mark.parametrize("loss", ["square", "huber:0.5"])
def test_they_are_what_errors_change_by(model, loss):
    """Against second-order differences of solutions a thousandth apart, whose strata are alike."""
    found = gradient(model, samples=90, lam=0.1, loss=loss)
    assert found.point.converged
    for name, at in (("samples", 90), ("lam", 0.1)):
        step = 1e-3 * at
        ends = [
            solve(model, loss=loss, quadrature_tol=1e-6, **{"samples": 90, "lam": 0.1, name: x})
            for x in (at - step, at + step)
        ]
        for error in ("test_error", "train_error"):
            low, high = (getattr(end, error) for end in ends)
            # solutions are known to some 1e-8, of which the difference is a thousandth
            expected, slope = (high - low) / (2 * step), getattr(found, error)[name]
            assert slope == pytest.approx(expected, rel=2e-3, abs=2e-4 * high / at)


def test_the_test_error_stands_still_at_the_best_penalty():
    model = layer()
    best = optimal_lambda(model, samples=90)
    found = gradient(model, samples=90, lam=best.lam)
    # its second derivative in log lam is of the order of the error, and lam is known to 1e-3
    assert abs(found.test_error["lam"] * best.lam) < 2e-3 * best.test_error
    assert found.test_error["samples"] < 0 < found.train_error["samples"]


def test_alpha_is_samples_over_the_input_dimension():
    by_samples, by_alpha = (
        gradient(layer(), lam=0.1, **at) for at in ({"samples": 90}, {"alpha": 1.5})
    )
    slopes = by_samples.test_error["samples"] * 60, by_alpha.test_error["alpha"]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-9)
