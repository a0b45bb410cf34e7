"""The spectrum of a given first layer."""

import numpy as np
import pytest

import replica
from replica import FirstLayer, GradientStep
from solvers.results import ConvergenceError
from validation import first_layer


def layer_of(weights, student="he1"):
    """A layer; its target does not matter."""
    axis = np.eye(weights.shape[1])[0]
    return FirstLayer(weights=weights, student=student, target="sin", directions=axis)


@pytest.mark.slow
@pytest.mark.parametrize("samples", [60, 200])
def test_orthogonal_rows_are_marchenko_pastur(samples):
    p = 100
    weights = np.linalg.qr(np.random.default_rng(0).standard_normal((2 * p, p)))[0].T
    found = replica.spectrum(layer_of(weights), samples=samples)
    assert found.converged
    assert not found.outliers.size
    assert found.atom == max(0, 1 - samples / p)
    c = p / samples
    low, high = (1 - np.sqrt(c)) ** 2, (1 + np.sqrt(c)) ** 2
    np.testing.assert_allclose(found.edges, [[low, high]], rtol=2e-3)  # three digits or so
    x = np.linspace(low, high, 12)[1:-1]
    exact = np.sqrt((x - low) * (high - x)) / (2 * np.pi * c * x)
    np.testing.assert_allclose(found.density(x), exact, rtol=5e-3)
    # trace, and trace of the square
    assert found.moment(1) == pytest.approx(1, abs=1e-3)
    assert found.moment(2) == pytest.approx(1 + c, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("p", [60, 120])
@pytest.mark.parametrize("student", ["relu", "tanh"])
def test_eigenvalues_of_a_layer_after_a_step(p, student):
    step = GradientStep(student=student, target="sin", alpha0=5, eta=2.0)
    layer = first_layer(step, dimension=p, beta=1.0, rng=1)
    n, draws = 2 * p, 60
    found = replica.spectrum(layer, samples=n)
    assert found.converged
    values = []
    for seed in range(draws):
        X = np.random.default_rng(seed).standard_normal((n, p))
        features = layer.student(X @ layer.weights.T + layer.bias)
        values.append(np.linalg.eigvalsh(features.T @ features / n))
    values, outside = np.array(values), len(found.outliers)
    bulk, above = values[:, : p - outside], values[:, p - outside :][:, ::-1]
    for k in range(outside):
        error = above[:, k].std() / np.sqrt(draws)
        assert abs(above[:, k].mean() - found.outliers[k]) < 4 * error + 4 / n * found.outliers[k]
    for power in (1, 2):
        each = (bulk**power).sum(axis=1) / p
        # the theory is off by some 1 / n
        off = abs(each.mean() - found.moment(power))
        assert off < 4 * each.std() / np.sqrt(draws) + 4 / n * each.mean()
    low, high = found.edges[0, 0], found.edges[-1, 1]
    assert np.mean((bulk > 0.8 * low) & (bulk < 1.2 * high)) > 0.99


@pytest.mark.slow
def test_features_that_depend_on_each_other():
    weights = np.random.default_rng(0).standard_normal((30, 20))
    found = replica.spectrum(layer_of(weights), samples=50, quadrature_tol=0.02)
    assert found.converged
    assert found.atom == pytest.approx(1 / 3)


@pytest.mark.slow
def test_alpha_is_samples_over_the_input_dimension_and_an_intercept_changes_nothing():
    weights = np.random.default_rng(0).standard_normal((12, 18)) / np.sqrt(18)
    of = dict(weights=weights, student="tanh", target="sin", directions=np.eye(18)[0])
    rough = dict(quadrature_tol=0.05)
    first = replica.spectrum(FirstLayer(**of), samples=36, **rough)
    second = replica.spectrum(FirstLayer(**of, intercept=True), 2.0, **rough)
    np.testing.assert_array_equal(first.edges, second.edges)


def test_a_spectrum_that_is_not_found():
    with pytest.raises(ConvergenceError, match="vanish"):
        replica.spectrum(layer_of(np.zeros((5, 5)), "tanh"), 2.0)
    with pytest.raises(ConvergenceError, match="time_limit"):
        replica.spectrum(layer_of(np.eye(20), "tanh"), 2.0, time_limit=1e-3)
