"""Notes of features: what may be off, and what may be meant otherwise."""

import re
from dataclasses import replace

import numpy as np
import pytest

import replica
from replica import (
    FeatureSample,
    FirstLayer,
    GaussianMixture,
    learning_curve,
    samples_needed,
    solve,
)
from replica.observables.readout_curves import FITS_DIFFER, GUESSED, MOST_FREQUENT, NO_INTERCEPT
from replica.plotting import plot_curve, plot_optima
from solvers.results import Status
from tests import legends
from tests.given.test_rows import pixels


@pytest.mark.slow
def test_points_with_a_note_are_drawn_open_and_the_best_penalty_is_said():
    features, y = pixels(60, 8)
    few = FeatureSample(features=features, labels=np.arange(60) % 3, intercept=True)
    curve = learning_curve(few, samples=[3, 4, 30], lam=0.1)
    assert curve.noted.values.tolist() == [True, True, False]  # by fits
    assert [note.startswith(FITS_DIFFER) for note in curve.note.values] == [True, True, False]
    assert curve.note.values[2] == ""
    ax = plot_curve(curve)
    (drawn,) = [
        line for line in ax.lines if line.get_marker() == "s" and len(line.get_xdata()) == 3
    ]
    assert np.isfinite(drawn.get_ydata()).tolist() == [True, True, False]
    assert {"may be off: see its note", "fits to random rows (±2 s.e.)"} < {*legends.labels(ax)}
    fits = ax.containers[0][0].get_ydata()
    expected = curve.fitted_classification_error.where(curve.noted).values
    np.testing.assert_array_equal(fits, expected)
    assert "best" not in ax.get_ylabel()
    best = learning_curve(FeatureSample(features=features, labels=y), samples=[20, 60], lam="best")
    ax = plot_curve(best)
    squared, optima = plot_curve(best, error="test_error", train=False), plot_optima(best)
    of_square = " of the squared error"
    for drawn, of_what in ((ax, of_square), (squared, ""), (optima, of_square)):
        label = drawn.get_ylabel().replace("\n", " ")
        assert label.endswith(rf" at the best $\lambda${of_what}")
    for drawn in (ax, squared, optima):
        assert legends.labels(drawn) == ["±2 s.e. over test rows"]
    assert not best.noted.any()
    assert not [line for line in ax.lines if line.get_marker() == "s"]


def test_errors_with_outliers_that_are_better_than_a_guess_have_no_note():
    """Outliers in 2 % of labels make the standard error as large as what is learned; fits have
    errors 3 below the variance of the labels."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((2000, 20))
    labels = 1.5 * features[:, 0] + 0.5 * rng.standard_normal(2000)
    is_outlier = rng.random(2000) < 0.02
    labels[is_outlier] += 15 * rng.standard_normal(is_outlier.sum())
    sample = FeatureSample(features=features, labels=labels, intercept=True)
    assert not any("a guess" in note for note in solve(sample, samples=300, lam=0.1).notes)


def test_labels_left_among_features_are_noted():
    rng = np.random.default_rng(0)
    clean, classes = rng.standard_normal((300, 4)), rng.integers(0, 5, 300)
    for labels, column in ((classes, classes**2), (clean[:, 0] ** 3, 2 * clean[:, 0] ** 3 + 1)):
        for features, noted in ((clean, False), (np.c_[clean, column], True)):
            point = solve(FeatureSample(features=features, labels=labels), samples=100, lam=0.1)
            assert any("which are to be left out: 4" in n for n in point.notes) == noted


def test_how_many_rows_are_taken_is_said(caplog):
    """As the rule has it, and errors that differ by their scatter."""
    wide = FeatureSample(features=np.zeros((20_000, 500)), labels=np.arange(20_000.0), classes=())
    taken = wide.taken(np.array([100, 1500, 3000, 10_000, 19_000]))
    assert taken.tolist() == [2000, 3000, 4000, 11_000, 20_000]
    features, y = pixels(6000, 10)
    sample, all_rows = (FeatureSample(features=features[:n], labels=y[:n]) for n in (6000, 5000))
    some = solve(sample, samples=100, lam=0.1)
    assert some.strata == 5000
    assert "a part of the rows" in repr(some)
    assert "a part of the rows" not in repr(solve(all_rows, samples=100, lam=0.1))
    learning_curve(sample, samples=[100, 5000], lam=0.1)
    assert "1 of 2 points, at samples 100, have a part of the rows" in caplog.text


@pytest.mark.slow
def test_labels_and_rows_that_may_be_meant_otherwise_are_noted():
    rng = np.random.default_rng(0)
    features, shares = rng.standard_normal((60, 4)), rng.dirichlet([1, 1, 1], 60)
    whole, real = rng.integers(0, 5, (60, 2)), rng.standard_normal((60, 2))
    rest = 2 * np.eye(3)[rng.integers(0, 3, 60)] - 1  # each class against the rest
    for labels, classes, said in (
        (shares, None, "sum to 1.*labels.argmax"),
        (rest, None, "sum to 1.*labels.argmax"),
        (rest * [1, 1, -1], None, "whole numbers a row"),
        (whole, None, "whole numbers a row"),
        (shares, (), ""),
        (whole, (), ""),
        (real, None, ""),
    ):
        given = dict(features=features, labels=labels, classes=classes, intercept=True)
        notes = solve(FeatureSample(**given), samples=30, lam=0.1).notes
        notes = [note for note in notes if "a guess" not in note]  # labels are random
        assert bool(notes) == bool(said)
        assert re.search(said, " ".join(notes))
    for rows, labels, said in (
        (np.r_[0:60, 0:6], real[:, 0], "6 rows that repeat another's features and label"),
        (np.r_[0:60, 0:6], rng.standard_normal(66), ""),  # other draws with the same features
        (np.r_[0:60], real[:, 0], ""),
    ):
        y = labels[rows] if len(labels) == 60 else labels
        given = dict(features=features[rows], labels=y, intercept=True)
        notes = solve(FeatureSample(**given), samples=30, lam=0.1).notes
        notes = [note for note in notes if "a guess" not in note]  # labels are random
        assert bool(notes) == bool(said)
        assert said in " ".join(notes)


@pytest.mark.parametrize(
    ("rows", "repeated"), [(np.r_[:200, :200], 200), (np.r_[:200, 5:200], 0), (np.r_[:15, :15], 0)]
)
def test_rows_of_few_values_repeat_if_all_are_there_as_often(rows, repeated):
    """By chance only some of them repeat."""
    features = np.random.default_rng(0).integers(0, 3, (200, 20))[rows]
    sample = FeatureSample(features=features, labels=np.arange(200)[rows] % 2)
    assert sample.repeated == repeated


def test_rows_of_a_few_flags_are_no_copies():
    """Independent draws, of which all with a flag have one label: there are four different rows."""
    rng = np.random.default_rng(4)
    flags = rng.random((200, 2)) < [0.08, 0.06]
    labels = flags.any(axis=1) | (rng.random(200) < 0.3)
    assert FeatureSample(features=1.0 * flags, labels=labels, intercept=True).repeated == 0


@pytest.mark.parametrize("columns", [1, 2])
def test_rows_of_rounded_numbers_are_no_copies(columns):
    """Independent draws of a height in cm and a weight in kg; labels with noise of their own."""
    rng = np.random.default_rng(0)
    features = np.round(rng.normal([170, 75], [9, 12], (300, 2)))[:, :columns]
    tall = features[:, 0] + 8 * rng.standard_normal(300) > 170
    assert len(np.unique(features, axis=0)) < 295
    assert FeatureSample(features=features, labels=tall, intercept=True).repeated == 0
    copied = np.r_[features + 1e-3 * rng.standard_normal(features.shape), features[:50]]
    copied[300:] = copied[:50]
    labels = np.r_[tall, tall[:50]]
    assert FeatureSample(features=copied, labels=labels, intercept=True).repeated == 50


@pytest.mark.parametrize(
    ("column", "noted"),
    [
        (np.arange(60), True), (np.arange(60) + 1.0, True), (np.arange(60)[::-1], False),
        (np.arange(60) + 5000, True), (np.arange(60) / 60, False), (np.arange(60) % 59, False),
        (np.arange(60) + 0.5, False), (np.arange(60) * 10 + 3, True), (np.arange(60) * 1.5, False),
    ],
)  # fmt: skip
def test_a_feature_that_numbers_the_rows_is_noted(column, noted):
    """By its name where pandas has one."""
    pandas = pytest.importorskip("pandas")
    features, labels = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) // 20
    array = np.insert(features, 1, column, axis=1)
    table = pandas.DataFrame(array, columns=["a", "row", "b", "c"])
    for given, name in ((array, "1"), (table, "'row'")):
        # names are kept where another field is changed
        model = replace(FeatureSample(features=given, labels=labels), intercept=True)
        notes = " ".join(solve(model, samples=30, lam=0.1).notes)
        assert (f"a feature, {name}, that numbers the rows" in notes) == noted


@pytest.mark.slow
def test_curves_and_samples_needed_note_a_feature_that_numbers_the_rows(caplog):
    pandas = pytest.importorskip("pandas")
    features, labels = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) // 20
    table = pandas.DataFrame(features, columns=list("abc")).assign(row=np.arange(60) + 1.0)
    model = FeatureSample(features=table, labels=labels, intercept=True)
    learning_curve(model, samples=[30], lam=0.1)
    assert "a feature, 'row', that" in caplog.text
    needed = samples_needed(model, classification_error=0.6, lam=1.0, most=30)
    assert "a feature, 'row', that numbers the rows" in needed.note


@pytest.mark.parametrize(
    ("name", "column", "noted"),
    [
        ("ID", np.arange(60)[::-1], True), ("index", np.arange(60) ** 2, True),
        ("id", np.arange(60) % 59, False), ("id", np.arange(60) / 60, False),
        *((name, np.arange(60)[::-1], True) for name in ("customer_id", "PassengerId", "userID")),
        *((name, np.arange(60)[::-1], False) for name in ("Lipid", "GRID", "idle")),
        ("row", np.arange(60) ** 2, False),
    ],
)  # fmt: skip
def test_a_feature_named_id_may_have_any_order(name, column, noted):
    sample = FeatureSample(features=column[:, None], labels=np.arange(60) % 2, columns=[name])
    notes = " ".join(solve(sample, samples=30, lam=0.1).notes)
    assert (f"a feature, '{name}', that numbers the rows" in notes) == noted


@pytest.mark.slow
def test_features_in_another_order_than_labels_are_asked_about(caplog):
    """Where no point of a curve is better than a guess."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((400, 5))
    for labels in (features[:, 0] + rng.standard_normal(400), np.sign(features[:, 0])):
        for rows, noted in ((np.arange(400), False), (rng.permutation(400), True)):
            sample = FeatureSample(features=features, labels=labels[rows], intercept=True)
            caplog.clear()
            learning_curve(sample, samples=[4, 200, 400], lam=0.1)
            assert ("200, 400, have an error that is not" in caplog.text) == noted
            needed = samples_needed(sample, test_error=0.3, lam=0.1)
            assert ("not clearly better than a guess" in needed.note) == noted
    given_up = solve(sample, samples=100, lam=1.0, time_limit=1e-9)
    assert not given_up.converged
    assert "a guess" not in repr(given_up)
    logistic = dict(samples=200, lam=1e-3, loss="logistic")  # whose outputs are no labels
    assert "a guess" not in repr(solve(replace(sample, labels=labels), **logistic))


@pytest.mark.parametrize(("share", "noise", "noted"), [(0.05, 1.2, True), (0.2, 0.1, False)])
def test_a_classifier_that_answers_one_class_is_noted(share, noise, noted, caplog):
    """One in 20 rows is positive, by a weak feature: the squared error falls below a guess's."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((1000, 25))
    score = features[:, 0] + noise * rng.standard_normal(1000)
    sample = FeatureSample(features=features, labels=score > np.quantile(score, 1 - share))
    learning_curve(replace(sample, intercept=True), samples=500, lam=1)
    assert (MOST_FREQUENT in caplog.text) == noted


def test_a_missing_intercept_is_a_cause_of_a_guess():
    rng = np.random.default_rng(0)
    features = 5 + rng.standard_normal((200, 4))
    y = np.where(features[:, 0] + 3 * rng.standard_normal(200) > 5, 1, -1)
    sample = FeatureSample(features=features, labels=y)
    without, having = (
        solve(replace(sample, intercept=x), samples=9, lam=1e-3).notes for x in (False, True)
    )
    assert NO_INTERCEPT in without
    assert NO_INTERCEPT not in having


@pytest.mark.parametrize("loss", ["logistic", "user's", ["square", "logistic"]])
@pytest.mark.parametrize("shuffled", [True, False])
def test_guesses_of_other_losses_are_noted(loss, shuffled, caplog):
    """Beside the best constant's loss; of a loss that is known by its name alone by classes."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((400, 4))
    y = np.where(features[:, 0] + 0.5 * rng.standard_normal(400) > 0, 1, -1)
    y = rng.permutation(y) if shuffled else y
    if loss == "user's":
        value = replica.loss("logistic")
        loss = replica.Loss(value.value, value.derivative, kind="margin", name="user's")
    sample = FeatureSample(features=features, labels=y, intercept=True)
    learning_curve(sample, samples=[200], lam=1.0, loss=loss)
    assert (GUESSED in caplog.text) == shuffled


def test_no_guess_has_classes_right():
    """With 3 residual degrees of freedom the squared error is 1.2, the classification error .25."""
    rng, labels = np.random.default_rng(0), np.arange(400) % 2
    features = rng.standard_normal((400, 8)) + labels[:, None]
    for y, noted in ((labels, False), (rng.permutation(labels), True)):
        sample = FeatureSample(features=features, labels=y, intercept=True)
        point = solve(sample, samples=12, lam=0.01)
        assert point.test_error > 1.2
        assert ("not clearly better than a guess" in repr(point.notes)) == noted


@pytest.mark.slow
def test_labels_far_from_0_without_an_intercept_are_noted(caplog):
    rng = np.random.default_rng(1)
    features = rng.standard_normal((80, 5))
    for mean, intercept, noted in ((3.0, False, True), (3.0, True, False), (0.5, False, False)):
        labels = mean + features[:, 0] + 0.5 * rng.standard_normal(80)
        given = FeatureSample(features=features, labels=labels, intercept=intercept)
        assert ("no intercept" in repr(solve(given, samples=40, lam=0.1))) == noted
        caplog.clear()
        learning_curve(given, samples=[20, 40], lam=0.1)
        assert ("2 of 2 points, at samples 20, 40, have labels" in caplog.text) == noted


@pytest.mark.parametrize("lam", [1e-3, 0.1])
def test_an_intercept_takes_more_than_one_sample(lam):
    """It fits one exactly: V is infinite, and so would be the error.  Of two the error is some 15 %
    above that of fits; without an intercept one is enough."""
    features, y = pixels(90, 12, labels="reals")
    sample = FeatureSample(features=features, labels=y, intercept=True)
    point = solve(sample, samples=1, lam=lam)
    assert point.status is Status.ONE_SAMPLE
    assert np.isnan(point.test_error)
    two = solve(sample, samples=2, lam=lam)
    assert two.test_error < 3 * np.var(y)
    assert two.test_error == pytest.approx(two.fitted["fitted_test_error"], rel=0.25)  # 5 % s.e.
    without = solve(FeatureSample(features=features, labels=y), samples=1, lam=lam)
    ratio = (features @ features.T) / ((features**2).sum(axis=1) + 12 * lam)  # of row j on row i
    literal = np.mean([(y - y[j] * ratio[:, j])[np.arange(90) != j] ** 2 for j in range(90)])
    assert without.test_error == pytest.approx(literal, rel=0.03)


@pytest.mark.parametrize("loss", ["square", "huber:1"])
def test_an_intercept_takes_what_labels_have_in_common(loss):
    """A shift leaves their rounding, of 1e-7 here; without an intercept that is all there is."""
    features, y = pixels(60, 5, labels="reals")
    near, far = (
        solve(
            FeatureSample(features=features, labels=y + shift, intercept=True),
            samples=30,
            lam=0.1,
            loss=loss,
        )
        for shift in (0, 1e9)
    )
    assert far.test_error == pytest.approx(near.test_error, rel=1e-6)
    point = solve(FeatureSample(features=features, labels=y + 1e9), samples=30, lam=0.1)
    assert np.isnan(point.test_error)


def test_few_neurons_for_the_classes_have_a_note():
    """Of ten classes the classification error of 80 neurons is 4 to 5 % below simulation."""
    rng = np.random.default_rng(0)
    inputs = GaussianMixture(means=2.5 * np.eye(4, 40))
    for width, is_noted in ((50, True), (60, False)):
        weights = rng.normal(size=(width, 40)) / 40**0.5
        layer = FirstLayer(weights=weights, student="relu", target="classes", inputs=inputs)
        point = solve(layer, samples=400, lam=0.3)
        assert point.converged
        notes = point.notes
        assert any("few neurons" in note for note in notes) == is_noted


@pytest.mark.parametrize("intercept", [False, True])
def test_rows_without_features_tie_and_are_noted(intercept):
    """A third of the rows have no count: half of these are wrong, by the library's and by no other
    rule."""
    rng = np.random.default_rng(0)
    counts = 1.0 * rng.poisson(0.2, (600, 5))
    labels = counts[:, 0] + 0.3 * rng.standard_normal(600) > 0.5
    sample = FeatureSample(features=counts, labels=labels, intercept=intercept)
    point = solve(sample, samples=300, lam=0.01)
    empty = ~counts.any(axis=1)
    assert any(f"{empty.sum()} rows whose features" in note for note in point.notes) != intercept
    assert (point.classification_error > 0.5 * empty.mean()) != intercept
