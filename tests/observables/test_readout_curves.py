"""What users get of given layers and features: answers, against readouts that are fitted, and
refusals."""

import numpy as np
import pytest

import replica
from replica.given import evaluate_readout
from solvers.results import ConvergenceError
from tests.given.simulated import ridge


@pytest.fixture(scope="module")
def layer():
    """Ninety neurons with biases on 120 inputs, one direction of which they have learned."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((90, 120)) / np.sqrt(120)
    weights[:, 0] += 0.7
    bias = 0.3 * rng.standard_normal(90)
    return replica.FirstLayer(
        weights=weights, bias=bias, student="tanh", target="sin", directions=np.eye(120)[0],
        noise=0.1,
    )  # fmt: skip


def fitted(layer, rng):
    """The readout of a hundred samples, over sqrt(p)."""
    X = rng.standard_normal((100, 120))
    y = np.sin(X[:, 0]) + np.sqrt(0.1) * rng.standard_normal(100)
    return ridge(np.tanh(X @ layer.weights.T + layer.bias), y, 0.1)


@pytest.fixture(scope="module")
def sample():
    """Features of two classes, Gaussian in each."""
    rng = np.random.default_rng(1)
    labels = np.repeat([1.0, -1.0], 4000)
    features = rng.standard_normal((8000, 20)) + 0.3 * labels[:, None]
    return replica.FeatureSample(features=features, labels=labels)


def test_a_point_is_what_the_theory_of_given_layers_says(layer):
    point = replica.solve(layer, samples=100, lam=0.1)
    at = np.array([100.0]), np.array([0.1]), replica.loss("square")
    ((_, found),) = evaluate_readout(layer, *at)
    assert point.converged
    for name in ("test_error", "train_error", "quadrature_error", "strata"):
        assert getattr(point, name) == found.columns[name]
    assert "weights 90 x 120" in repr(point)
    assert isinstance(point, replica.Solution)
    with pytest.warns(FutureWarning, match="is now Solution"):
        assert replica.ReadoutSolution is replica.Solution
    assert replica.solve(layer, alpha=100 / 120, lam=0.1).test_error == point.test_error


def test_few_residual_degrees_of_freedom_are_said(layer):
    """400 fits of 45 samples at lam = 1e-6 have a training error 13 % above the theory."""
    known, unsure = (
        replica.solve(layer, samples=n, lam=lam) for n, lam in ((200, 0.1), (45, 1e-6))
    )
    assert known.converged
    assert unsure.converged
    assert "note" not in repr(known)
    assert "few residual degrees of freedom" in repr(unsure)
    assert known.degrees_of_freedom < 90 < known.residual_degrees
    assert unsure.degrees_of_freedom == pytest.approx(45, rel=1e-3)


def test_the_mean_of_readouts_has_less_of_their_variance(layer):
    """Of two readouts on samples of their own: half of it."""
    rng, new = np.random.default_rng(3), np.random.default_rng(4).standard_normal((4000, 120))
    features = np.tanh(new @ layer.weights.T + layer.bias)
    means = ((fitted(layer, rng) + fitted(layer, rng)) / 2 for _ in range(60))
    off = [np.sin(new[:, 0]) - features @ mean for mean in means]
    errors = (np.array(off) ** 2).mean(axis=1)
    point = replica.solve(layer, samples=100, lam=0.1)
    expected = point.test_error - point.readout_variance / 2
    # at n = 100 the theory is off by some 1 / n, and 4 000 inputs tell errors to 2 %
    assert abs(errors.mean() - expected) <= 3.5 * errors.std() / np.sqrt(60) + 0.03 * expected


def test_the_best_penalty_is_the_lowest_of_a_curve(layer):
    best = replica.optimal_lambda(layer, samples=100, lam=(1e-3, 10.0))
    around = np.array([0.5, 0.8, 1, 1.25, 2]) * best.lam
    errors = replica.learning_curve(layer, samples=100, lam=around).test_error.values
    # at a tenth in the logarithm a minimum is as flat as errors are exact
    assert errors[2] == errors.min() == pytest.approx(best.test_error, rel=1e-4)
    assert not best.at_edge
    assert replica.optimal_lambda(layer, samples=100, lam=(1e-6, 1e-4)).at_edge == ("lam",)


@pytest.mark.parametrize("axis", ["samples", "alpha"])
def test_a_curve_is_its_points(layer, axis):
    values, lam = (np.array([40.0, 200.0]) / (120 if axis == "alpha" else 1)), [0.05, 0.5]
    curve = replica.learning_curve(layer, **{axis: values}, lam=lam)
    assert curve.test_error.dims == (axis, "lam")
    assert curve.converged.all()
    for at in values:
        for penalty in lam:
            point = replica.solve(layer, **{axis: at}, lam=penalty)
            of_curve = curve.sel({axis: at, "lam": penalty})
            assert float(of_curve.test_error) == pytest.approx(point.test_error, rel=1e-4)


def test_a_point_that_is_not_known_is_raised_on_request(layer):
    at = {"samples": 100, "lam": 0.1, "quadrature_tol": 1e-30}
    assert np.isnan(replica.solve(layer, **at).test_error)
    with pytest.raises(ConvergenceError, match="samples=100"):
        replica.solve(layer, **at, raise_on_failure=True)


def test_a_readout_has_learned_this_function(layer):
    """Outputs of fitted readouts at inputs of three projections."""
    rng, kappa = np.random.default_rng(5), np.array([-1.5, 0.2, 0.7])
    outputs = []
    for _ in range(80):
        a, new = fitted(layer, rng), rng.standard_normal((3, 200, 120))
        new[..., 0] = kappa[:, None]
        outputs.append(np.tanh(new @ layer.weights.T + layer.bias) @ a)
    means = np.mean(outputs, axis=2)
    learned = replica.learned_function(layer, samples=100, lam=0.1)
    # of order 1/n beside 3.5 standard errors
    off = np.abs(means.mean(axis=0) - learned.mean(kappa))
    assert (off < 3.5 * means.std(axis=0) / np.sqrt(80) + 0.01).all()
    assert np.var(outputs, axis=(0, 2)) == pytest.approx(learned.variance(kappa), rel=0.1)
    np.testing.assert_allclose(learned.target_mean(kappa), np.sin(kappa))
    assert learned.mean(kappa.reshape(3, 1)).shape == (3, 1)


def test_a_function_is_not_known_where_the_point_is_not(layer):
    learned = replica.learned_function(layer, samples=100, lam=0.1, quadrature_tol=1e-30)
    assert np.isnan(learned.mean([0.0, 1.0])).all()
    assert np.isnan(learned.variance(1.0))


@pytest.mark.slow
def test_a_point_of_features_is_drawn_over_samples():
    rng = np.random.default_rng(3)
    labels = np.repeat([1.0, -1.0], 100)
    features = rng.standard_normal((200, 5)) + 0.5 * labels[:, None]
    point = replica.solve(
        replica.FeatureSample(features=features, labels=labels), samples=50, lam=1
    )
    star = point.plot().get_lines()[-1]
    assert star.get_xydata() == pytest.approx(np.array([[50, point.classification_error]]))


@pytest.mark.slow
def test_the_best_penalty_of_features(sample):
    best = replica.optimal_lambda(sample, samples=50, lam=(1e-2, 1e3))
    around = replica.learning_curve(sample, samples=50, lam=best.lam * np.array([0.5, 1, 2]))
    assert around.test_error.values.argmin() == 1


@pytest.mark.parametrize("lam", [0.1, "best"])
def test_a_number_of_samples_that_is_too_large_takes_no_other_with_it(lam):
    """Real labels have no classes that could be Gaussian beyond the rows."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((60, 3))
    sample = replica.FeatureSample(features=features, labels=features[:, 0] + rng.random(60))
    curve = replica.learning_curve(sample, samples=[30, 61, 900], lam=lam)
    alone = replica.learning_curve(sample, samples=30, lam=lam)
    assert curve.test_error[0] == alone.test_error
    assert np.isnan(curve.test_error.values).tolist() == [False, True, True]
    (status,) = set(curve.status.values[1:])
    assert status.startswith("samples must be at most the 60 rows, or given with strata")
    with pytest.raises(replica.InvalidArgument, match=r"at most the 60 rows, .* got 61"):
        replica.learning_curve(sample, samples=[61, 900], lam=lam)
