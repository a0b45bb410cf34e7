"""Simulated readouts of given layers and features, beside their theory."""

from dataclasses import replace

import numpy as np
import pytest

from replica import GradientStep, learning_curve, solve
from replica.convex import loss
from replica.given import FeatureSample, FirstLayer, evaluate_readout
from replica.observables.readout_curves import FITS_DIFFER
from tests.given.test_row_fits import one_hot
from tests.legends import labels
from validation import compare, draw, first_layer, simulate
from validation.comparisons.agreement_checks import Check

STEP = GradientStep(student="tanh", target="sin", alpha0=3, eta=2.0, noise=0.1)
WEIGHTS = np.random.default_rng(0).standard_normal((12, 20)) / 4
LAYER = FirstLayer(weights=WEIGHTS, student="relu", target="sin", directions=np.eye(20)[0])


def features(count, p=8, seed=1):
    """Features of two classes, and their labels."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1.0, -1.0], count // 2)
    return FeatureSample(features=rng.standard_normal((count, p)) + 0.4 * y[:, None], labels=y)


WIDE = {"student": "tanh", "directions": np.eye(60)[0], "noise": 0.1}
WIDE["weights"] = np.random.default_rng(3).standard_normal((60, 60)) / 60**0.5 + np.eye(60)[0] / 2
TALL = features(4000, p=20)
UNEVEN = (TALL.labels > 0) | (np.arange(4000) % 4 == 0)  # four of five labels are 1


@pytest.mark.parametrize(
    ("model", "options", "allowance"),
    [
        # errors of order 1/n beside four standard errors
        *(pytest.param(first_layer(STEP, dimension=d, beta=1.0, rng=1),
                       dict(samples=[d, 3 * d], seeds=40, rng=2, loss=of), 1 / d,
                       marks=[pytest.mark.slow] * ((d, of) != (60, "square")))
          for d, of in ((60, "square"), (120, "square"), (60, "absolute"))),
        # labels of mean 1, which tanh features without biases cannot have
        *(pytest.param(FirstLayer(target="1 + z1", intercept=True, **WIDE),
                       dict(samples=[60, 180], seeds=60, rng=0, loss=of), 1 / 60,
                       marks=[pytest.mark.slow] * (of != "square"))
          for of in ("square", "huber:0.3")),
        (FeatureSample(features=TALL.features[UNEVEN], labels=TALL.labels[UNEVEN], intercept=True),
         dict(samples=[40, 200], seeds=60, rng=0), 1 / 40),
        (TALL, dict(samples=[30, 100], seeds=30, rng=0), 0.02),
    ],
)  # fmt: skip
def test_simulated_readouts_have_the_errors_of_their_theory(model, options, allowance):
    found = compare(model, lam=0.1, workers=1, **options)
    for check in found.checks.values():
        off = np.abs(check.simulated - check.theory)
        assert (off < 3.5 * check.stderr + allowance * check.theory).all()


@pytest.mark.parametrize(("loss", "test_samples"), [("square", None), ("logistic", 70)])
def test_a_number_of_samples_is_tested_on_all_other_rows(loss, test_samples):
    """Whatever other n there are: beside 99 of 100 rows, too, 20 are tested on 80, not on one."""
    of, at = features(100), dict(lam=0.1, seeds=3, rng=0, loss=loss, workers=1)
    found = simulate(of, samples=[99, 20], test_samples=test_samples, **at)
    for i, n in enumerate((99, 20)):
        alone = simulate(of, samples=n, test_samples=min(test_samples or 100, 100 - n), **at)
        for name, errors in alone.errors.items():
            np.testing.assert_allclose(found.errors[name][:, [i]], errors, rtol=1e-9)
        np.testing.assert_allclose(found.test_variance[:, [i]], alone.test_variance, atol=1e-12)


def test_an_intercept_is_worth_having():
    """Labels of mean 1, which tanh features without biases cannot have."""
    with_it, without = (
        solve(FirstLayer(target="1 + z1", intercept=of, **WIDE), samples=60, lam=0.1).test_error
        for of in (True, False)
    )
    assert without > 1.2 * with_it


@pytest.mark.slow
def test_a_comparison_has_the_notes_of_its_theory(caplog):
    """In the words of the curve, without another log of the lines of its figure; and 1 / n is
    allowed at every n: 3 % is more than that at n = 100, and less at n = 8."""
    model = first_layer(STEP, dimension=40, beta=1.0, rng=1)
    at = dict(samples=[8, 100], lam=0.1)
    found = compare(model, **at, seeds=8, rng=0)
    found.plot()
    assert not caplog.messages
    learning_curve(model, **at)
    assert found.notes == caplog.messages
    assert "few residual degrees of freedom" in found.notes[0]
    assert found.document()["notes"] == found.notes
    assert found.notes[0][:40] in repr(found)
    theory = found.checks["test_error"].theory
    for shares, far in (([1.03, 1.0], False), ([1.0, 1.03], True)):
        simulated = theory * np.array(shares)[:, None]
        check = Check(theory, simulated, 1e-9 * theory, 0 * theory)
        assert replace(found, checks={"test_error": check}).disagrees == far


@pytest.mark.slow
@pytest.mark.parametrize("model", [first_layer(STEP, dimension=60, beta=1.0, rng=1),
                                   features(4000)], ids=["layer", "features"])  # fmt: skip
def test_a_comparison_has_the_theory_of_what_is_given(model):
    samples = np.array([60, 120])
    found = compare(model, samples=samples, lam=0.1, seeds=20, rng=0)
    expected = dict(evaluate_readout(model, samples, np.full(2, 0.1), loss("square")))
    check = found.checks["test_error"]
    for i, theory in enumerate(check.theory[:, 0]):
        assert theory == expected[i].columns["test_error"]
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


@pytest.mark.slow
def test_a_figure_marks_the_points_of_theory_that_have_a_note():
    """As that of a curve does: of 20 samples there are 14 residual degrees of freedom."""
    layer = first_layer(STEP, dimension=40, beta=1.0, rng=1)
    found = compare(layer, samples=[20, 100], lam=0.1, seeds=2, rng=0, workers=1)
    ax = found.plot()
    assert "may be off: see its note" in labels(ax)
    (marked,) = [line.get_xydata() for line in ax.get_lines()
                 if line.get_markerfacecolor() == "white" and len(line.get_xdata())]  # fmt: skip
    theory = found.checks["test_error"].theory[0, 0]
    np.testing.assert_allclose(marked[np.isfinite(marked[:, 1])], [[20, theory]], rtol=1e-9)


def test_alpha_of_a_layer_is_a_number_of_samples():
    by_alpha, by_number = (
        simulate(LAYER, lam=0.1, seeds=2, rng=3, **asked)
        for asked in ({"alpha": [0.52, 1]}, {"samples": [10, 20]})
    )
    assert by_alpha.axes["samples"].tolist() == [10, 20]
    np.testing.assert_array_equal(by_alpha.test_error, by_number.test_error)


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


@pytest.mark.parametrize(("loss", "judged"), [("huber:1", True), ("logistic", False)])
def test_squared_errors_of_a_loss_of_the_margin_are_not_judged(loss, judged):
    at = dict(samples=20, lam=1.0, seeds=8, rng=0, workers=1)
    found = compare(features(60), loss=loss, **at)
    checks = {
        name: Check(x.theory, x.theory, x.stderr, 0 * x.stderr) for name, x in found.checks.items()
    }
    checks["test_error"] = checks["test_error"]._replace(simulated=2 * checks["test_error"].theory)
    off = replace(found, checks=checks)
    assert off.disagrees == judged
    assert ("test error" in off.verdict) == judged
    assert "test_error" in off.columns


@pytest.mark.slow
def test_fits_that_are_off_the_theory_are_told_beside_few_draws():
    """Few draws agree with it, and hundreds of fits do not."""
    found = compare(one_hot(5), samples=[100], lam=0.1 / 45, seeds=8, rng=0)
    assert any(FITS_DIFFER.removesuffix(")") in note for note in found.notes)
