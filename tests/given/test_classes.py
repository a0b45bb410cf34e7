"""Several classes, or outputs, of one readout, row by row: docs/theory.md 22."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.datasets import load_digits, load_wine

import validation
from replica import (
    FeatureSample,
    InvalidArgument,
    learning_curve,
    optimal_lambda,
    solve,
)
from replica.convex import loss
from replica.given import evaluate_readout
from replica.given.classes import win_probabilities
from replica.observables.readout_curves import meet_rows
from solvers.results import Status
from tests.given.test_rows import agrees, pixels


def classes_of(rows, p, count, seed=0):
    """Features that are far from Gaussian, and which of ``count`` their class is."""
    rng = np.random.default_rng(seed)
    features, _ = pixels(rows, p, seed)
    scores = features @ rng.standard_normal((p, count)) / np.sqrt(p)
    return features, (scores + 0.3 * rng.standard_normal(scores.shape)).argmax(axis=1)


def left_out(features, labels, lam):
    """Outputs (N, C) for every row of ridge regression on the others, with an intercept."""
    N, p = features.shape
    columns, penalty = np.column_stack([features, np.ones(N)]), p * lam * np.eye(p + 1)
    penalty[-1, -1] = 0
    outputs = []
    for i in range(N):
        rest = np.arange(N) != i
        gram = columns[rest].T @ columns[rest] + penalty
        outputs.append(columns[i] @ np.linalg.solve(gram, columns[rest].T @ labels[rest]))
    return np.array(outputs)


def test_all_rows_leave_one_out():
    features, of = classes_of(80, 10, 4)
    sample = FeatureSample(features=features, labels=of, intercept=True)
    point = solve(sample, samples=80, lam=0.05, quadrature_tol=1e-8)
    expected = left_out(features, np.eye(4)[of], 0.05)
    assert point.test_error == pytest.approx(
        np.sum((np.eye(4)[of] - expected) ** 2) / 80, rel=1e-10
    )
    chosen = expected.argmax(axis=1)
    assert point.classification_error == pytest.approx(np.mean(chosen != of), abs=1e-12)
    counts = np.zeros((4, 4))
    np.add.at(counts, (of, chosen), 1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    # rounding leaves outputs some variance, and a share of 0 may be 1e-206
    np.testing.assert_allclose(point.confusion, shares, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_two_classes_have_a_confusion_matrix(loss):
    features, of = classes_of(80, 10, 2)
    sample = FeatureSample(features=features, labels=np.array(["no", "yes"])[of], intercept=True)
    assert sample.names == ("no", "yes")
    point = solve(sample, samples=80, lam=0.05, loss=loss)
    shares = np.bincount(of) / 80
    assert 1 - point.classification_error == pytest.approx(shares @ np.diag(point.confusion))
    np.testing.assert_allclose(point.confusion.sum(axis=1), 1)
    if loss == "square":  # leave-one-out
        chosen = left_out(features, 2.0 * of[:, None] - 1, 0.05)[:, 0] > 0
        counts = np.zeros((2, 2))
        np.add.at(counts, (of, chosen.astype(int)), 1)
        np.testing.assert_allclose(point.confusion, counts / counts.sum(axis=1, keepdims=True))


@pytest.mark.slow
@pytest.mark.parametrize("samples", [885, 899])
def test_nearly_all_rows_are_nearly_leave_one_out(samples):
    """Of pixels that are on in two images one is drawn nearly surely."""
    pixels, digits = load_digits(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(digits))[:900]
    features = pixels[chosen][:, pixels[chosen].std(axis=0) > 0]
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    sample = FeatureSample(features=features, labels=digits[chosen], intercept=True)
    nearly, whole = (solve(sample, samples=n, lam=0.1) for n in (samples, 900))
    assert nearly.test_error == pytest.approx(whole.test_error, rel=0.01)


ROWS_OR_STRATA = pytest.mark.parametrize(
    ("samples", "by_rows"), [(40, True), (120, True), (10, False), (700, False)]
)


@ROWS_OR_STRATA
def test_outputs_are_those_of_one_at_a_time(samples, by_rows):
    """Two real labels: errors add up, also in strata within which labels go with the features."""
    features, of = classes_of(150, 8, 3)
    labels = np.column_stack([features[:, 0] + of, np.cos(features[:, 1])])
    strata = None if by_rows else of
    together, *each = (
        solve(
            FeatureSample(features=features, labels=y, strata=strata),
            samples=samples, lam=0.05, quadrature_tol=1e-7,
        )
        for y in (labels, labels[:, 0], labels[:, 1])
    )  # fmt: skip
    for name in ("test_error", "train_error", "readout_variance"):
        added = sum(getattr(one, name) for one in each)
        # what iterations of one label stop at
        assert getattr(together, name) == pytest.approx(added, rel=1e-8), name
    assert together.confusion is None
    assert np.isnan(together.classification_error)


@ROWS_OR_STRATA
def test_two_outputs_are_one_label(samples, by_rows):
    """With an intercept the outputs of two classes are (1 +- f) / 2."""
    features, y = pixels(150, 12)
    labels, strata = np.column_stack([y < 0, y > 0]).astype(float), None if by_rows else y
    of = dict(features=features, strata=strata, intercept=True)
    two, one = FeatureSample(labels=labels, classes=["-", "+"], **of), FeatureSample(labels=y, **of)
    found, expected = (
        solve(each, samples=samples, lam=0.05, quadrature_tol=1e-7) for each in (two, one)
    )
    for name in ("test_error", "train_error", "readout_variance"):
        half = getattr(expected, name) / 2
        assert getattr(found, name) == pytest.approx(half, rel=1e-8), name
    assert found.classification_error == pytest.approx(expected.classification_error, abs=1e-8)


def test_how_often_an_output_is_the_largest():
    rng = np.random.default_rng(0)
    mean, root = rng.standard_normal((500, 2)), rng.standard_normal((500, 2, 2))
    covariance = root @ root.swapaxes(1, 2)
    spread = covariance[:, 0, 0] + covariance[:, 1, 1] - 2 * covariance[:, 0, 1]
    exact = ndtr((mean[:, 0] - mean[:, 1]) / np.sqrt(spread))
    # the integral over their difference is in closed form
    np.testing.assert_allclose(win_probabilities(mean, covariance)[:, 0], exact, atol=1e-9)


@pytest.mark.parametrize(
    ("rows", "p", "lam"), [(400, 20, 0.1), pytest.param(1600, 80, 0.1, marks=pytest.mark.slow)]
)
def test_fits_of_some_rows(rows, p, lam):
    """Five classes; of the theory's 1/n 4 % and 2 % are left."""
    features, of = classes_of(rows, p, 5)
    sample = FeatureSample(features=features, labels=of, intercept=True)
    samples, part = [rows // 8, rows // 3, rows * 3 // 4], 0.04 if rows == 400 else 0.02
    agrees(sample, samples, lam, "square", 60, [part] * 3)


@pytest.mark.parametrize("samples", [60, 120])
def test_three_wines(samples):
    """Scikit-learn's table of wines, beside 200 fits."""
    X, of = load_wine(return_X_y=True)
    sample = FeatureSample(features=(X - X.mean(0)) / X.std(0), labels=of, intercept=True)
    compared = validation.compare(sample, samples=[samples], lam=0.1, seeds=200, rng=0)
    for name in ("test_error", "classification_error"):
        check = compared.checks[name]
        off = np.abs(check.theory - check.simulated).item()
        assert off < 0.03 * check.simulated + 2.5 * check.stderr, name


@pytest.mark.slow
def test_ten_digits():
    """The images of scikit-learn: their ten classes, and how they are taken for one another."""
    X, digit = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 0]
    features = (X - X.mean(axis=0)) / X.std(axis=0)
    sample = FeatureSample(features=features, labels=digit, intercept=True)
    compared = validation.compare(sample, samples=[300, 898], lam=0.1, seeds=40, rng=0)
    check = compared.checks["classification_error"]
    # 5 % of an error of 7 to 9 %, and 3 standard errors of 2 %
    assert (
        np.abs(check.theory / check.simulated - 1) < 0.05 + 3 * check.stderr / check.theory
    ).all()
    confusion = solve(sample, samples=898, lam=0.1).confusion
    np.testing.assert_allclose(confusion.sum(axis=1), 1)
    assert confusion[8, 1] == np.max(confusion - np.diag(np.diag(confusion)))  # as fits have it
    # at half of the rows, pixels that are on in two of them have a peak, as a linear map sees
    assert solve(sample, samples=898, lam=0.01).converged


def test_classes_are_names_in_their_order():
    features, of = classes_of(90, 6, 3)
    named = np.array(["b", "c", "a"])[of]
    numbers, names = (FeatureSample(features=features, labels=x) for x in (of, named))
    assert numbers.classes == (0, 1, 2)
    assert names.classes == ("a", "b", "c")
    a, b = (solve(each, samples=40, lam=0.1) for each in (numbers, names))
    assert b.test_error == pytest.approx(a.test_error, rel=1e-9)
    order = [2, 0, 1]
    # rows are drawn by chance
    np.testing.assert_allclose(b.confusion, a.confusion[np.ix_(order, order)], atol=0.01)
    assert "classes 3" in repr(b)
    again = replace(names, intercept=True)
    assert again.classes == names.classes
    ordered = FeatureSample(features=features, labels=named, classes=["c", "b", "a"])
    assert ordered.classes == ("c", "b", "a")
    assert (ordered.labels == names.labels[:, ::-1]).all()


def test_more_samples_than_rows_take_fewer_features():
    features, of = np.random.default_rng(0).random((90, 20)), np.arange(90) % 3
    sample = FeatureSample(features=features, labels=of)
    advice = r"at most the 90 rows here: .* 60 rows of each.*PCA\(10\): .* smaller readout.*"
    advice += "those of all 20 features may still fall.* there are 30 of class 0"
    with pytest.raises(InvalidArgument, match=advice):
        solve(sample, samples=91, lam=0.1)
    fewer = FeatureSample(features=features[:, :10], labels=of)
    assert solve(fewer, samples=91, lam=0.1).converged


def test_a_best_penalty_of_several_classes():
    features, of = classes_of(150, 12, 4)
    sample = FeatureSample(features=features, labels=of, intercept=True)
    best = optimal_lambda(sample, samples=60)
    assert best.converged
    for factor in (0.5, 2):
        other = solve(sample, samples=60, lam=factor * best.lam)
        assert other.test_error > best.test_error


def test_another_label_has_other_classes():
    features, of = classes_of(90, 6, 3)
    sample = FeatureSample(features=features, labels=of)
    with pytest.raises(InvalidArgument, match="classes must be those of the labels"):
        replace(sample, labels=of == 2)
    np.testing.assert_array_equal(replace(sample, labels=of.astype(float)).labels, sample.labels)
    assert replace(sample, labels=of == 2, classes=None).outputs == 1
    assert replace(sample, labels=of.astype(float), classes=()).outputs == 1


def test_labels_of_both_signs_name_no_class():
    """Vectors of -1 and 1 are real labels: no classification error, in theory or simulation."""
    features, of = classes_of(90, 6, 3)
    sample = FeatureSample(features=features, labels=2 * np.eye(3)[of] - 1)
    assert not sample.binary
    found = validation.simulate(sample, samples=[40], lam=0.1, seeds=2, rng=0, workers=1)
    assert "classification_error" not in found.errors
    curve = learning_curve(sample, samples=[40], lam=0.1)
    assert "classification_error" not in curve
    assert curve.converged.all()


def test_outputs_lost_to_rounding_are_flagged():
    features, of = classes_of(90, 6, 3)
    far = np.eye(3)[of] + 1e9
    constant = np.column_stack([features, np.ones(90)])
    point = solve(FeatureSample(features=constant, labels=far), samples=60, lam=1e-9)
    assert point.status is Status.ROUNDING
    assert np.isnan(point.test_error)


@pytest.mark.parametrize("loss_name", ["square", "logistic"])
def test_classes_that_rows_do_not_tell_apart_are_flagged_beyond_them(loss_name):
    """Labels at random: extrapolated, 1.1 of new labels would be missed, where the truth is .5."""
    rng = np.random.default_rng(21)
    features, of = rng.standard_normal((60, 5)), rng.integers(0, 2, 60)
    sample = FeatureSample(features=features, labels=of, intercept=True)
    point = solve(sample, samples=600, lam=0.1, loss=loss_name)
    assert point.status is Status.GUESS
    assert np.isnan([point.classification_error, point.test_error]).all()
    assert point.confusion is None
    features[:, 0] += 2.5 * of  # Bayes' error is .106
    known = solve(replace(sample, features=features), samples=600, lam=0.1, loss=loss_name)
    assert known.classification_error == pytest.approx(0.106, abs=0.05)  # its own +- .04


def test_a_scale_that_is_not_known_in_time_is_no_scale_of_one():
    features, of = classes_of(300, 20, 2)
    sample = FeatureSample(features=features, labels=of, intercept=True)

    def columns_at(model, samples, time_limit=60.0):
        at = np.array([samples]), np.array([0.3]), loss("square"), 1e-3, time_limit
        ((_, point),) = evaluate_readout(model, *at)
        return point.columns

    by_class = columns_at(replace(sample, strata=of), 300.0)
    beyond_rows = columns_at(sample, 400.0)
    known = meet_rows(beyond_rows, columns_at(sample, 300.0), by_class)
    late = meet_rows(beyond_rows, columns_at(sample, 300.0, 1e-9), by_class)
    assert known["converged"]
    assert not late["converged"]
    assert late["status"].value.endswith("(a larger time_limit gives it more seconds)")
    for name in ("test_error", "train_error", "classification_error", "test_error_stderr"):
        assert np.isfinite(known[name])
        assert np.isnan(late[name])
