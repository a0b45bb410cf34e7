"""Simulated readouts of given layers and features, beside their theory."""

from dataclasses import replace

import numpy as np
import pytest

from replica import GradientStep, InvalidArgument, learning_curve, solve
from replica.convex import loss
from replica.given import FeatureSample, FirstLayer, evaluate
from tests.legends import labels
from validation import compare, draw, first_layer, simulate
from validation.comparisons.checks import Check

STEP = GradientStep(student="tanh", target="sin", alpha0=3, eta=2.0, noise=0.1)
WEIGHTS = np.random.default_rng(0).standard_normal((12, 20)) / 4
LAYER = FirstLayer(weights=WEIGHTS, student="relu", target="sin", directions=np.eye(20)[0])


def features(count, p=8, seed=1):
    """Features of two classes, and their labels."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1.0, -1.0], count // 2)
    return FeatureSample(features=rng.standard_normal((count, p)) + 0.4 * y[:, None], labels=y)


@pytest.mark.parametrize(("dimension", "of"), [(60, "square"), (120, "square"), (60, "absolute")])
def test_readouts_of_a_simulated_layer_have_the_errors_of_its_theory(dimension, of):
    layer = first_layer(STEP, dimension=dimension, beta=1.0, rng=1)
    samples, lam = np.array([dimension, 3 * dimension]), 0.1
    found = simulate(layer, samples=samples, lam=lam, seeds=40, rng=2, loss=of)
    theory = evaluate(layer, samples, np.full(2, lam), loss(of))
    assert theory.columns["converged"].all()
    for name in ("test_error", "train_error"):
        mean, stderr = (getattr(found, f"{name}{end}")[:, 0] for end in ("", "_stderr"))
        expected = theory.columns[name]
        # errors of order 1/n beside four standard errors
        assert (np.abs(mean - expected) < 4 * stderr + expected / dimension).all()


@pytest.mark.parametrize("d", [60, 120])
@pytest.mark.parametrize("of", ["square", "huber:0.3"])
def test_readouts_with_an_intercept_have_the_errors_of_their_theory(d, of):
    """Labels of mean 1, which tanh features without biases cannot have."""
    weights = np.random.default_rng(3).standard_normal((d, d)) / np.sqrt(d) + 0.5 * np.eye(d)[0]
    given = {"weights": weights, "student": "tanh", "directions": np.eye(d)[0], "noise": 0.1}
    layer = FirstLayer(target="1 + z1", intercept=True, **given)
    at = {"samples": [d, 3 * d], "lam": 0.1, "seeds": 60, "rng": 0, "loss": of, "workers": 1}
    checks = compare(layer, **at).checks
    for check in checks.values():
        # errors of order 1/n beside 3.5 standard errors
        off = np.abs(check.simulated - check.theory)
        assert (off < 3.5 * check.stderr + check.theory / d).all()
    without = FirstLayer(target="1 + z1", **given)
    assert solve(without, samples=d, lam=0.1).test_error > 1.2 * checks["test_error"].theory[0, 0]


def test_features_with_an_intercept_have_the_errors_of_their_theory():
    sample = features(4000, p=20)
    keep = (sample.labels > 0) | (np.arange(4000) % 4 == 0)  # four of five labels are 1
    uneven = FeatureSample(
        features=sample.features[keep], labels=sample.labels[keep], intercept=True
    )
    compared = compare(uneven, samples=[40, 200], lam=0.1, seeds=60, rng=0, workers=1)
    for check in compared.checks.values():
        off = np.abs(check.simulated - check.theory)
        assert (off < 3.5 * check.stderr + check.theory / 40).all()


def test_splits_of_features_have_the_errors_of_their_theory():
    sample, samples = features(4000, p=20), np.array([30, 100])
    found = simulate(sample, samples=samples, lam=0.1, seeds=30, rng=0)
    theory = evaluate(sample, samples, np.full(2, 0.1), loss("square"))
    for name in ("test_error", "train_error", "classification_error"):
        each = found.errors[name][:, :, 0]
        stderr, expected = each.std(axis=0, ddof=1) / np.sqrt(30), theory.columns[name]
        assert (np.abs(each.mean(axis=0) - expected) < 4 * stderr + 0.02 * expected).all()


@pytest.mark.slow
@pytest.mark.parametrize("model", [LAYER, features(60)], ids=["layer", "features"])
def test_workers_stores_and_shards_change_nothing(model, tmp_path):
    options = dict(samples=[10, 30], lam=[0.1, 1.0], seeds=4, rng=3)
    alone = simulate(model, **options)
    for more in ({"workers": 2}, {"shard": "1/2"}, {"store": tmp_path}, {"store": tmp_path}):
        more = {"store": tmp_path, **more}
        part = simulate(model, **options, **more)
        for name, errors in alone.errors.items():
            np.testing.assert_array_equal(part.errors[name], errors[part.seed])
    assert len(list(tmp_path.glob("*.json"))) == 4
    assert alone.dataset().test_error_by_seed.dims == ("seed", "samples", "lam")
    assert alone.document()["points"][3]["samples"] == 30


def test_a_comparison_has_the_notes_of_its_theory(caplog):
    """In the words of the curve, without another log of the lines of its figure; and 1 / n is
    allowed at every n: 3 % is more than that at n = 100, and less at n = 8."""
    of = np.arange(300) % 5
    rows = np.eye(5, 8)[of] + np.random.default_rng(0).standard_normal((300, 8))
    model = FeatureSample(features=rows, labels=of)
    at = dict(samples=[8, 100], lam=0.1)
    found = compare(model, **at, seeds=8, rng=0)
    found.plot()
    assert not caplog.messages
    learning_curve(model, **at)
    assert found.notes == caplog.messages
    assert "few samples of a class" in found.notes[0]
    assert found.document()["notes"] == found.notes
    assert found.notes[0][:40] in repr(found)
    theory = found.checks["test_error"].theory
    for shares, far in (([1.03, 1.0], False), ([1.0, 1.03], True)):
        simulated = theory * np.array(shares)[:, None]
        check = Check(theory, simulated, 1e-9 * theory, 0 * theory)
        assert replace(found, checks={"test_error": check}).disagrees == far


def test_the_most_samples_of_given_rows_are_told_in_full():
    with pytest.raises(InvalidArgument, match=r"at most 301, got 400"):
        compare(features(302), samples=400, lam=0.1, seeds=2, rng=0)


@pytest.mark.slow
@pytest.mark.parametrize("model", [first_layer(STEP, dimension=60, beta=1.0, rng=1),
                                   features(4000)], ids=["layer", "features"])  # fmt: skip
def test_a_comparison_has_the_theory_of_what_is_given(model):
    samples = np.array([60, 120])
    found = compare(model, samples=samples, lam=0.1, seeds=20, rng=0)
    expected = evaluate(model, samples, np.full(2, 0.1), loss("square"))
    check = found.checks["test_error"]
    np.testing.assert_array_equal(check.theory[:, 0], expected.columns["test_error"])
    assert found.agrees
    assert "samples = " in found.verdict
    document = found.document()
    assert document["points"][2]["samples"] == 120
    far = {"test_error": check._replace(theory=9 * check.theory)}
    assert (
        "the 1/n plus 4 standard errors allowed for n = 60 to 120,"
        in replace(found, checks=far).verdict
    )
    size, count = ("dimension", 60) if model.width == 60 else ("width", model.width)
    assert document[size] == found.settings[size] == found.dataset().attrs[size] == count
    assert ("dimension" in document) == (size == "dimension")
    assert found.dataset().test_error.dims == ("samples", "source")
    assert labels(found.plot())


def test_alpha_of_a_layer_is_a_number_of_samples():
    by_alpha, by_number = (
        simulate(LAYER, lam=0.1, seeds=2, rng=3, **asked)
        for asked in ({"alpha": [0.52, 1]}, {"samples": [10, 20]})
    )
    assert by_alpha.axes["samples"].tolist() == [10, 20]
    np.testing.assert_array_equal(by_alpha.test_error, by_number.test_error)


def test_another_layer_is_another_cell(tmp_path):
    options = dict(samples=10, lam=0.1, seeds=2, rng=3, store=tmp_path)
    for weights in (WEIGHTS, WEIGHTS * (1 + 1e-12)):
        simulate(FirstLayer(weights=weights, student="relu", target="sin",
                            directions=np.eye(20)[0]), **options)  # fmt: skip
    assert len(list(tmp_path.glob("*.json"))) == 4


def test_a_layer_that_was_solved_has_the_same_cells(tmp_path):
    options = dict(samples=10, lam=0.1, seeds=2, rng=3, store=tmp_path)
    layer = FirstLayer(weights=WEIGHTS, student="relu", target="sin", directions=np.eye(20)[0])
    simulate(layer, **options)
    assert layer.special.shape[0] == 20  # what the theory takes first
    simulate(layer, **options)
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_a_first_layer_is_the_one_that_simulations_draw():
    simulation = simulate(STEP, alpha=1, lam=0.1, dimension=30, beta=0.5, seeds=2, rng=5)
    own = simulation.experiment.seed(1).spawn(1)[0]
    layer = first_layer(STEP, dimension=30, beta=0.5, rng=own)
    drawn = draw(STEP, dimension=30, beta=0.5, rng=own)
    np.testing.assert_array_equal(layer.weights, drawn.W)
    np.testing.assert_array_equal(layer.directions.T, drawn.directions)
    np.testing.assert_array_equal(layer.bias, drawn.bias)
    assert layer.noise == STEP.noise
