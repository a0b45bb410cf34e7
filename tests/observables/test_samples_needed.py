"""How many samples a readout needs for an error."""

import sys

import numpy as np
import pytest

import replica
from replica import FeatureSample, InvalidArgument, samples_needed, solve
from tests import legends
from tests.given.test_classes import classes_of
from tests.given.test_row_fits import one_hot
from tests.given.test_rows import pixels


@pytest.fixture(scope="module")
def sample():
    features, y = pixels(400, 15)
    return FeatureSample(features=features, labels=y, intercept=True)


@pytest.fixture(scope="module")
def at_120(sample):
    """The test error of 120 samples, and what it is said to need."""
    error = solve(sample, samples=120, lam=0.1).test_error
    return error, samples_needed(sample, lam=0.1, test_error=error)


@pytest.mark.slow
@pytest.mark.parametrize("error", ["test_error", "classification_error"])
def test_the_error_is_reached_there(sample, error):
    middle = getattr(solve(sample, samples=120, lam=0.1), error)
    needed = samples_needed(sample, lam=0.1, **{error: middle})
    # straight between points a factor of 1.5 apart
    assert needed.samples == pytest.approx(120, rel=0.03)
    for name, sign in (("low", -1), ("high", 1)):
        n = getattr(needed, name)
        if np.isfinite(n):
            point = solve(sample, samples=n, lam=0.1)
            # as wide as the band of its figure
            end = getattr(point, error) + 2 * sign * getattr(point, f"{error}_stderr")
            assert end == pytest.approx(middle, rel=0.02)
    assert needed.low < needed.samples
    assert not needed.beyond_rows
    assert f"{needed.samples:.4g}" in repr(needed)
    ax = needed.plot()
    assert r"$\lambda = 0.1$" in ax.get_title()
    # the curve, its open points and their name, the target, the number, and the bar
    assert len(ax.lines) == 6
    curve = needed.curve
    far = curve.samples.values < 60  # half of the answer, where no fits are made
    assert all("far from the answer" in note for note in curve.note.values[far])
    assert curve.noted.values[far].all()
    assert ax.lines[-1].get_xdata()[0] == needed.low


@pytest.mark.slow
def test_an_error_that_is_not_reached_has_no_number(sample):
    needed = samples_needed(sample, lam=0.1, test_error=1e-3)
    assert np.isnan(needed.samples)
    assert "more than 400, the largest tried" in repr(needed)
    easy = samples_needed(sample, lam=0.1, test_error=10.0)
    assert easy.samples == 4
    assert "at most 4" in repr(easy)


@pytest.mark.slow
def test_errors_that_rise_on_the_way_count_to_their_last_fall(sample):
    """Near n = p with a small penalty errors have a peak."""
    curve = replica.learning_curve(sample, samples=[4, 8, 16, 40], lam=1e-6).test_error.values
    assert curve[2] > curve[1]
    needed = samples_needed(sample, lam=1e-6, test_error=float(curve[1]))
    assert needed.samples > 16


@pytest.mark.slow
def test_a_rise_within_the_scatter_of_rows_does_not_count_and_is_noted():
    """Next to all rows the error is that of nearly one readout: it turns, by less than it
    scatters."""
    features, of = classes_of(120, 10, 3, seed=2)
    rows = FeatureSample(features=features, labels=of, intercept=True)
    at = dict(lam=0.1, loss="square")
    last, before = (solve(rows, samples=n, **at).classification_error for n in (120, 70))
    for target in (0.9995 * last, 0.999 * last):
        needed = samples_needed(rows, classification_error=target, **at)
        assert before > target
        assert 70 < needed.samples < 90
        assert f"rises above {target:g} again, at 120 samples, by less than" in needed.note
    assert "rises" not in samples_needed(rows, classification_error=1.01 * last, **at).note


@pytest.mark.slow
def test_a_penalty_at_the_end_of_its_range_is_noted(sample, caplog):
    large = FeatureSample(features=1e4 * sample.features, labels=sample.labels, intercept=True)
    note, of_usual = (
        samples_needed(one, lam="best", test_error=0.7, most=60).note for one in (large, sample)
    )
    assert "a best lam that is at an end of the range searched" in note
    assert "at an end" not in of_usual
    for scaled, noted in ((large, True), (sample, False)):
        caplog.clear()
        replica.learning_curve(scaled, samples=[60], lam="best")
        best = replica.optimal_lambda(scaled, samples=60)
        assert ("such as StandardScaler's" in caplog.text) == noted
        assert ("StandardScaler's" in repr(best)) == noted


@pytest.mark.slow
def test_the_best_penalty_needs_no_more(sample):
    target = solve(sample, samples=120, lam=0.1).test_error
    best = samples_needed(sample, lam="best", test_error=target, most=200)
    assert best.samples <= 122  # a per cent of the best penalty, and straight lines
    assert best.curve["lam"].dims == ("samples",)
    n, penalties = best.curve.samples.values, best.curve["lam"].values
    assert len(np.unique(penalties)) > 2
    assert (n[0], n[-1]) == (4, 200)
    assert penalties.min() <= best.lam <= penalties.max()
    assert f"lam      {best.lam:.6g}" in repr(best)


@pytest.mark.slow
def test_several_classes_and_layers():
    features, of = classes_of(200, 12, 4)
    digits = FeatureSample(features=features, labels=of)
    error = solve(digits, samples=80, lam=0.1).classification_error
    found = samples_needed(digits, lam=0.1, classification_error=error)
    assert found.samples == pytest.approx(80, rel=0.05)
    layer = replica.FirstLayer(
        weights=np.random.default_rng(0).standard_normal((30, 20)) / np.sqrt(20), student="tanh",
        target="z1", directions=np.eye(20)[0], noise=0.1,
    )  # fmt: skip
    error = solve(layer, samples=100, lam=0.1).test_error
    found = samples_needed(layer, lam=0.1, test_error=error)
    assert found.samples == pytest.approx(100, rel=0.03)
    assert np.isnan(found.low)


def test_more_than_the_rows_is_said(sample):
    least = solve(sample, samples=400, lam=0.1)
    gaussian = FeatureSample(
        features=sample.features, labels=sample.labels, strata=sample.labels, intercept=True
    )
    error = min(least.test_error, solve(gaussian, samples=1000, lam=0.1).test_error) * 0.999
    needed = samples_needed(sample, lam=0.1, test_error=error, most=4000)
    assert np.isnan(needed.samples) or needed.beyond_rows
    if needed.beyond_rows:
        assert "taken for Gaussian" in repr(needed)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "test_error must be given, or classification_error in its place"),
        (dict(test_error=0.1, classification_error=0.1), "one of them"),
        (dict(test_error=-1), "test_error must be an error, more than 0"),
        (dict(classification_error=0.6), r"less than 0.5, that of a guess .*1 - accuracy"),
        (dict(test_error=0.1, lam=[0.1, 1]), 'lam must be "best" or one number'),
        (dict(test_error=0.1, lam="auto"), 'lam must be "best" or one number'),
        (dict(test_error=0.1, most=5), "most must be 8 or more samples"),
        (dict(test_error=0.1, lam="best", loss="hinge"), "loss must be the square where the best"),
    ],
)
def test_mistakes_are_named(sample, asked, message):
    with pytest.raises(InvalidArgument, match=message):
        samples_needed(sample, **dict(lam=0.1) | asked)


@pytest.mark.slow
def test_the_error_at_a_hundred_times_the_samples_is_told(sample):
    """Beyond the rows of Gaussian classes, where there are enough of each."""
    layer = replica.FirstLayer(
        weights=np.random.default_rng(0).standard_normal((7, 5)), student="relu", target="z1",
        directions=np.eye(5)[0],
    )  # fmt: skip
    level = solve(layer, samples=20_000, lam=0.1).test_error
    told = samples_needed(layer, lam=0.1, test_error=level / 2, most=200).note
    assert f"at 20000 samples the error is {level:.3g}; other penalties or features may" in told
    rows = samples_needed(sample, lam=0.1, classification_error=1e-3).note
    assert "at 40000 samples the error is" in rows
    few = FeatureSample(features=sample.features[:40], labels=sample.labels[:40])
    note = samples_needed(few, lam=0.1, classification_error=1e-3).note
    assert "samples the error is" not in note
    assert "more rows, or other penalties or features, may reach it (most= must be at most" in note
    twice = samples_needed(few, lam=0.1, classification_error=1e-3, most=20).note
    assert "more samples (most=), or other penalties or features, may reach it" in twice


@pytest.mark.slow
def test_more_samples_are_advised_only_where_they_can_be(sample):
    few = FeatureSample(features=sample.features[:40], labels=sample.labels[:40], intercept=True)
    error = 1.01 * solve(few, samples=40, lam=0.1).classification_error
    note = samples_needed(few, lam=0.1, classification_error=error).note
    refused = "beyond them features are Gaussian in each class, which takes"
    assert f"the largest tried (most= must be at most the 40 rows here: {refused}" in note
    with pytest.raises(InvalidArgument, match="most must be at most the 40 rows here"):
        samples_needed(few, lam=0.1, classification_error=error, most=80)


@pytest.mark.slow
def test_a_target_that_the_most_frequent_class_reaches_is_noted():
    rng = np.random.default_rng(0)
    features, labels = rng.standard_normal((500, 5)), np.where(np.arange(500) % 50, 0, 1)
    rare = FeatureSample(features=features, labels=labels, intercept=True)
    needed = [samples_needed(rare, lam=1.0, classification_error=x).note for x in (0.05, 0.019)]
    frequent = "always answering the most frequent class has an error of 0.02: see the confusion"
    assert [frequent in note for note in needed] == [True, False]


@pytest.mark.slow
def test_a_number_that_fits_do_not_confirm_is_no_bound():
    needed = samples_needed(one_hot(5), lam=0.1 / 45, test_error=0.15)
    (label,) = [text for text in legends.labels(needed.plot()) if text.startswith("$n$")]
    assert label == f"$n$ = {needed.samples:.0f}, or not: see its note"
    few = samples_needed(one_hot(5), lam=0.1 / 45, test_error=100.0)
    assert few.samples == 4
    assert "at most 4" in repr(few)


def test_more_samples_than_rows_in_given_strata_are_not_scaled(sample):
    strata = FeatureSample(features=sample.features, labels=sample.labels, strata=sample.labels)
    for model, scaled in ((sample, True), (strata, False)):
        notes = " ".join(solve(model, samples=900, lam=0.1).notes)
        assert "more samples than rows" in notes
        assert ("are scaled" in notes) == scaled


def test_errors_of_classes_want_classes():
    features, y = pixels(60, 5, labels="reals")
    with pytest.raises(InvalidArgument, match="classification_error must be left out unless"):
        samples_needed(FeatureSample(features=features, labels=y), lam=1, classification_error=0.1)


LIMIT = "not converged: it took longer than it may (a larger time_limit gives it more seconds)"


def corrupted(monkeypatch, samples):
    """Have no error at some numbers of ``samples``, as of points that were not solved."""
    module = sys.modules[samples_needed.__module__]
    whole = module._curve

    def broken(model, n, lam, *options):
        curve = whole(model, n, lam, *options).copy(deep=True)
        at = np.isin(curve.samples, samples)
        curve.test_error[at], curve["status"] = np.nan, curve.status.astype(object)
        curve["lam"] = curve["lam"].where(~at) if lam == "best" else curve["lam"]
        curve.status[at] = LIMIT
        return curve

    monkeypatch.setattr(module, "_curve", broken)


@pytest.mark.parametrize(
    ("unsolved", "noted"),
    [
        ([6, 12], []),  # below the last error that is too large, and nothing is asked of them
        ([97], [97]),
        ([97, 138], [97, 138]),  # all around the answer
        ([12, 340], [340]),
        pytest.param([138, 340], [138, 340], marks=pytest.mark.slow),
        pytest.param([340, 400], [340, 400], marks=pytest.mark.slow),
    ],
)
def test_unsolved_points_are_told_and_leave_the_answer(
    sample, at_120, monkeypatch, unsolved, noted
):
    error, whole = at_120
    n = whole.curve.samples.values
    assert set(unsolved) <= set(n)
    assert n[n < whole.samples].max() == 97
    corrupted(monkeypatch, unsolved)
    needed = samples_needed(sample, lam=0.1, test_error=error)
    # straight over more than a factor of two where points beside the answer are missing
    beside = {97, 138} & set(unsolved)
    assert needed.samples == pytest.approx(120, rel=0.15 if beside else 0.03)
    assert needed.lam == pytest.approx(0.1)
    listed = ", ".join(map(str, noted))
    told = f"the error at {listed} samples is not known: {LIMIT}" if noted else ""
    assert needed.note == told
    assert "more than" not in repr(needed)


@pytest.mark.slow
def test_unsolved_points_where_no_error_is_small_enough(sample, monkeypatch):
    corrupted(monkeypatch, [340, 360, 380, 400])
    needed = samples_needed(sample, lam=0.1, test_error=1e-3)
    assert np.isnan(needed.samples)
    assert "samples  more than 281, the largest solved (smallest test error:" in repr(needed)
    assert "the error at 340, 360, 380, 400 samples is not known" in needed.note
    easy = samples_needed(sample, lam=0.1, test_error=10.0)
    assert easy.samples == 4
    corrupted(monkeypatch, [4, 6])
    easy = samples_needed(sample, lam=0.1, test_error=10.0)
    assert easy.samples == 8
    assert "at most 8, the smallest solved" in repr(easy)


def test_no_point_is_solved(sample):
    needed = samples_needed(sample, lam=0.1, loss="hinge", test_error=1, time_limit=1e-9, most=8)
    assert np.isnan([needed.samples, needed.low, needed.high, needed.lam]).all()
    assert "samples  not known" in repr(needed)
    assert needed.note == f"the error at 4, 5, 6, 8 samples is not known: {LIMIT}"
    assert needed.plot().lines


@pytest.mark.slow
def test_the_best_penalty_is_searched_past_unsolved_points(sample, monkeypatch):
    at = dict(lam="best", test_error=1.05, most=12)
    whole = samples_needed(sample, **at)
    n = whole.curve.samples.values
    assert n[-1] > whole.samples
    corrupted(monkeypatch, n[-1])
    needed = samples_needed(sample, **at)
    assert needed.samples == pytest.approx(whole.samples, rel=0.05)
    assert f"the error at {n[-1]:g} samples is not known: {LIMIT}" in needed.note


@pytest.mark.slow
@pytest.mark.parametrize("lam", [0.1, "best"])
def test_how_far_it_is_is_told(sample, lam):
    told = []
    samples_needed(sample, lam=lam, test_error=0.5, most=8, progress=lambda *now: told.append(now))
    assert told == [(done, 4) for done in (1, 2, 3, 4)]
