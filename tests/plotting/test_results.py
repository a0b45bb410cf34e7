"""Results draw and show themselves."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import replica
from replica import plotting
from tests.problems import PUBLISHED as STEP

MODEL = STEP.srf(beta=1.0)


@pytest.mark.slow
def test_a_confusion_matrix_has_its_shares():
    rng = np.random.default_rng(0)
    of = rng.integers(0, 10, 400)
    features = rng.standard_normal((10, 8))[of] + rng.standard_normal((400, 8))
    names = np.array(list("abcdefghij"))
    sample = replica.FeatureSample(features=features, labels=names[of])
    point = replica.solve(sample, samples=100, lam=0.1)
    figure = Figure(figsize=(3.4, 2.6), layout="constrained")
    ax = point.plot_confusion(figure.subplots())
    for text in ax.texts:
        j, i = text.get_position()
        assert text.get_text() == f"{100 * point.confusion[i, j]:.0f}"
    assert len(ax.texts) == (point.confusion >= 0.005).sum()
    assert [label.get_text() for label in ax.get_yticklabels()] == list(names)
    figure.draw_without_rendering()
    cell = ax.bbox.width / 10
    assert max(text.get_window_extent().width for text in ax.texts) < cell
    two = replica.FeatureSample(features=features, labels=of > 4)
    ax = replica.solve(two, samples=100, lam=0.1).plot_confusion()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["False", "True"]
    drawn = replica.solve(two, samples=4, lam=0.1).plot().lines[0].get_xdata()
    assert drawn[0] == 1  # no tenth of four samples, which is none
    assert drawn[-1] == pytest.approx(40)
    three = replica.FeatureSample(features=features[:60], labels=of[:60] % 3)
    curve = replica.solve(three, samples=40, lam=0.1).plot().lines[0].get_xdata()
    assert curve[-1] == pytest.approx(60)  # of several classes to all rows, and no further
    real = replica.FeatureSample(features=features, labels=features[:, 0])
    with pytest.raises(replica.InvalidArgument, match="of classes, or of labels"):
        replica.solve(real, samples=100, lam=0.1).plot_confusion()


@pytest.mark.slow
def test_results_draw_themselves():
    """Each in axes that are given or new; a point and an optimum with a star where they are."""
    point = replica.solve(MODEL, alpha=0.9, lam=0.1)
    best = replica.optimal_lambda(MODEL, alpha=1.0)
    step = replica.GradientStep(student="erf", target="sin", alpha0=20, eta=3.0)
    both = replica.optimal_eta(step, alpha=1.0, beta=1.0)
    results = (
        point, best, both, replica.bounds(MODEL), replica.bounds(STEP, eta=[1.0, 3.0]),
        replica.spectrum(MODEL, 2.0), replica.staircase("z1 + z1*z2"),
        replica.learned_function(MODEL, alpha=1.0, lam=0.1),
    )  # fmt: skip
    for result in results:
        own = Figure().subplots()
        assert result.plot(own) is own
    stars = ((point, 0.9, point.test_error), (best, best.lam, best.test_error))
    for result, x, y in (*stars, (both, both.lam, both.eta)):
        star = result.plot().get_lines()[-1]
        assert star.get_xydata() == pytest.approx(np.array([[x, y]]), rel=1e-12)


def test_results_show_themselves():
    """A few lines with the names to type; the same as HTML; a data frame."""
    point = replica.solve(MODEL, alpha=0.9, lam=0.1)
    stairs = replica.staircase("z1 + z1*z2")
    assert repr(point).splitlines()[:2] == [
        "Solution",
        "  of           student tanh, target sin, alpha0 20, eta 3, noise 0, beta 1, alpha 0.9, "
        "lam 0.1",
    ]
    for result in (
        point, replica.bounds(MODEL), replica.bounds(STEP, eta=[1.0, 3.0]), stairs,
        replica.spectrum(MODEL, 2.0), replica.optimal_lambda(MODEL, alpha=1.0),
        replica.gradient(MODEL, alpha=0.9, lam=0.1), replica.best_bounds(STEP, eta=(1.0, 2.0)),
        replica.learned_function(MODEL, alpha=0.9, lam=0.1),
    ):  # fmt: skip
        assert repr(result).splitlines()[0] in result._repr_html_()
        assert len(result.to_dataframe()) > 0
    slopes = replica.gradient(MODEL, alpha=0.9, lam=0.1)
    assert dict(slopes.to_dataframe()[["parameter", "train_error"]].values) == slopes.train_error
    learned = replica.learned_function(MODEL, alpha=0.9, lam=0.1)
    table = learned.to_dataframe()
    assert table["mean"].tolist() == learned.mean(table.kappa.values).tolist()
    assert table.target_mean.tolist() == learned.target_mean(table.kappa.values).tolist()
    assert point.to_dataframe().test_error.tolist() == [point.test_error]
    assert stairs.to_dataframe().explained.tolist() == [one.explained for one in stairs.stages]


@pytest.mark.slow
@pytest.mark.parametrize("name", [r"$\frac$", "a$b$c", "$x"])
def test_the_name_of_a_function_is_no_mathtext(name):
    step = replica.GradientStep(
        student=replica.Activation(np.tanh, name=name), target="sin", alpha0=4.0, eta=2.0
    )
    for drawn in (replica.solve(step.srf(beta=1.0), alpha=1.0, lam=0.1), replica.bounds(step)):
        drawn.plot().figure.draw_without_rendering()
    curve = replica.learning_curve(step.srf(beta=1.0), alpha=[0.5, 1.0], lam=0.1)
    ax = plotting.plot_curve(curve)
    ax.figure.draw_without_rendering()
    assert name.replace("$", r"\$") + " student" in ax.get_title()
