"""Pictures hold the numbers they are given, in axes that are given or new."""

from dataclasses import replace

import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure

import replica
from replica import plotting
from solvers.results import Status
from tests.legends import labels
from tests.problems import PUBLISHED as STEP

MODEL = STEP.srf(beta=1.0)


def test_label_noise_is_said_to_be_in_no_test_error():
    """Training errors, which have it, may lie above."""
    layer = dict(weights=np.eye(6), student="relu", target="z1", directions=np.eye(6)[0])
    for noise, said in ((0.3, "test error, without label noise"), (0.0, "test error")):
        model = replica.FirstLayer(**layer, noise=noise)
        ax = plotting.plot_curve(replica.learning_curve(model, samples=[200, 400], lam=0.1))
        assert labels(ax)[-2:] == [said, "training error"]


@pytest.mark.slow
def test_a_band_is_of_two_standard_errors_and_ends_where_the_theory_does():
    """As error bars are, in every figure; the legend says so."""
    rng = np.random.default_rng(0)
    labels_of_rows = rng.choice([-1.0, 1.0], 200)
    features = rng.standard_normal((200, 10)) + 0.4 * labels_of_rows[:, None]
    sample = replica.FeatureSample(features=features, labels=labels_of_rows)
    curve = replica.learning_curve(sample, samples=[10, 20, 50, 100, 200], lam=0.1)
    ax = plotting.plot_curve(curve)
    name = "classification_error"
    values, stderr = curve[name].values, curve[f"{name}_stderr"].values
    corners = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert np.isin(np.round(values + 2 * stderr, 12), np.round(corners, 12)).all()
    assert np.isin(np.round(values - 2 * stderr, 12), np.round(corners, 12)).all()
    assert labels(ax) == ["±2 s.e. over test rows"]
    assert "intercept" not in ax.get_title()
    needed = replica.samples_needed(sample, lam=0.1, classification_error=float(values[2]))
    texts = labels(needed.plot())
    assert f"error of {values[2]:g}" in texts  # beside "may be off", of few samples
    assert f"$n$ = {needed.samples:.0f}" in texts
    broken = plotting.plot_curve(curve.where(curve.samples != 50))
    assert len(broken.collections[0].get_paths()) == 2
    assert np.isnan(broken.get_lines()[0].get_ydata()).sum() == 1
    assert labels(broken)[1] == "not converged"


@pytest.mark.parametrize("count", [1, 3, 9])
def test_a_curve_without_a_value_says_so(count):
    """Instead of numbers, lines in a legend, and a colour bar that mean nothing."""
    lam = np.geomspace(0.01, 1, count)
    curve = replica.learning_curve(MODEL, alpha=np.linspace(0.5, 4, 10), lam=lam)
    ax = plotting.plot_curve(curve.where(curve.alpha > 9))
    assert ax.figure.axes == [ax]
    assert [text.get_text() for text in ax.texts] == ["no point converged"]
    assert (ax.get_legend(), ax.get_ylim(), [*ax.get_yticks()]) == (None, (0, 1), [])
    assert ax.get_xlim()[0] < 0.5 < 4 < ax.get_xlim()[1]
    best = replica.learning_curve(MODEL, alpha=[0.5, 1.0], lam="best")
    ax, below = plotting.plot_optima(best.where(best.alpha > 9)).figure.axes
    assert [text.get_text() for text in (*ax.texts, *below.texts)] == ["no point converged"]
    assert [*below.get_yticks()] == []


def test_crosses_show_which_line_did_not_converge():
    """In its colour, above one another; grey where none did."""
    curve = replica.learning_curve(MODEL, alpha=[0.5, 1.0, 2.0], lam=[0.01, 0.1, 1.0])
    ax = plotting.plot_curve(curve.where(curve.alpha + curve.lam > 1.5))
    lines = [line for line in ax.get_lines() if line.get_marker() == "x"][:-1]  # of the legend
    first, second, _ = (line.get_color() for line in ax.get_lines()[:6:2])
    assert [(line.get_color(), line.get_xdata().tolist()) for line in lines] == [
        ("0.3", [0.5]), (first, [1.0]), (second, [1.0]),
    ]  # fmt: skip
    assert lines[1].get_ydata() < lines[2].get_ydata()


@pytest.fixture
def ax():
    return Figure().subplots()


def test_curve(ax):
    """The longest axis is the abscissa; a colour for each lam, training errors dashed."""
    curve = replica.learning_curve(MODEL, alpha=[0.5, 1.0, 2.0], lam=[0.1, 1.0])
    assert plotting.plot_curve(curve, ax) is ax
    lines = [line for line in ax.get_lines() if len(line.get_xdata())]
    drawn = {tuple(np.asarray(line.get_ydata(), dtype=float)) for line in lines}
    expected = [curve[name].sel(lam=lam) for name in ("test_error", "train_error")
                for lam in (0.1, 1.0)]  # fmt: skip
    assert drawn == {tuple(values.values.tolist()) for values in expected}
    assert [line.get_linestyle() for line in lines] == ["-", "--"] * 2
    assert len(plotting.plot_curve(curve, train=False).get_lines()) == 2


def test_spectrum(ax):
    """Areas of x times the density over log x are masses."""
    found = replica.spectrum(MODEL, 2.0)
    assert plotting.plot_spectrum(found, ax) is ax
    x, y = ax.get_lines()[0].get_data()
    assert ax.get_xscale() == "log"
    assert np.trapezoid(y, np.log(x)) == pytest.approx(1 - found.atom, abs=1e-2)
    assert rf"outlier at ${found.outliers[0]:.3g}\,p$ to leading order" in ax.get_title()
    flagged = plotting.plot_spectrum(replace(found, status=Status.MASS)).get_lines()[0]
    assert (flagged.get_linestyle(), flagged.get_label()) == ("--", "theory, not converged")


@pytest.mark.slow
def test_two_spectra_in_one_figure(ax):
    """Each has its colour and name, areas are masses of both, and no title is of the last alone."""
    spectra = [replica.spectrum(MODEL, 2.0), replica.spectrum(MODEL, 0.9)]
    for name, found in zip(("many", "few"), spectra, strict=True):
        found.plot(ax, label=name)
    lines = [line for line in ax.get_lines() if line.get_label() in ("many", "few")]
    assert len({line.get_color() for line in lines}) == 2
    for line, found in zip(lines, spectra, strict=True):
        x, y = line.get_data()
        assert np.trapezoid(y, np.log(x)) == pytest.approx(1 - found.atom, abs=1e-2)
    assert not ax.get_title()


def test_staircase(ax):
    """It ends at the share that can be explained."""
    found = replica.staircase("z1 + z1*z2")
    assert plotting.plot_staircase(found, ax) is ax
    heights = [np.max(line.get_ydata()) for line in ax.get_lines()]
    assert max(heights) == pytest.approx(found.stages[-1].explained)


def test_bounds(ax):
    each = replica.bounds(STEP, eta=[1.0, 3.0])
    points = [
        {"eta": eta, "lower": low, "upper": up, "achieved_1": None}
        for eta, low, up in zip([1.0, 3.0], each.lower, each.upper, strict=True)
    ]
    assert plotting.plot_bounds(points, each.linear, ax=ax) is ax
    drawn = [tuple(line.get_ydata()) for line in ax.get_lines()]
    assert tuple(each.lower) in drawn
    assert tuple(each.upper) in drawn


def test_functions(ax):
    """What attains the bounds, and what is learned, at the abscissae drawn."""
    found = replica.bounds(STEP)
    assert plotting.plot_functions(found, ax) is ax
    x = np.asarray(ax.get_lines()[0].get_xdata())
    drawn = [np.asarray(line.get_ydata()) for line in ax.get_lines()]
    for expected in (found.lower_function(x), found.upper_function(x)):
        assert any(np.allclose(one, expected) for one in drawn if one.shape == x.shape)
    learned = replica.learned_function(MODEL, alpha=1.0, lam=0.1)
    lines = plotting.plot_learned(learned).get_lines()
    x = np.asarray(lines[0].get_xdata())
    assert any(np.allclose(line.get_ydata(), learned.mean(x)) for line in lines)


@pytest.mark.slow
def test_more_than_eight_lines_have_a_colour_bar():
    curve = replica.learning_curve(
        MODEL, alpha=np.linspace(0.2, 3, 10), lam=np.geomspace(1e-2, 1, 9)
    )
    ax = plotting.plot_curve(curve)
    assert labels(ax) == ["test error", "training error"]
    _, bar = ax.figure.axes
    assert bar.get_ylabel() == r"ridge penalty $\lambda$"
    few = plotting.plot_curve(curve.isel(lam=slice(8)))
    assert len(few.figure.axes) == 1
    assert labels(few)[0] == r"$\lambda = 0.01$"
    both = replica.learning_curve(MODEL, alpha=[1, 2, 3, 4], lam=[0.1, 1, 10], beta=[0.5, 1, 2])
    with pytest.raises(replica.InvalidArgument, match="of at most 8 lines"):
        plotting.plot_curve(both)


@pytest.mark.parametrize(
    ("alpha", "scale"),
    [
        (np.linspace(0.05, 8, 13), "linear"),  # over two decades
        (np.geomspace(0.05, 8, 13), "log"),
        ([0.5, 1, 2], "linear"),  # too few decades to tell
        ([0.1, 1, 10, np.inf], "log"),  # but for what is infinite
        (np.linspace(0, 8, 13), "linear"),
    ],
)
def test_an_axis_is_spaced_as_its_grid(alpha, scale):
    errors = np.linspace(1, 2, len(alpha))
    curve = xarray.Dataset({"test_error": ("alpha0", errors)}, {"alpha0": alpha})
    assert plotting.plot_curve(curve).get_xscale() == scale


def test_labels_of_two_values_show_their_classification_error():
    model = replica.SpikedRandomFeatures(student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8)
    curve = replica.learning_curve(model, alpha=[0.5, 1, 2], lam=0.1, loss="logistic")
    ax = plotting.plot_curve(curve)
    (line,) = ax.get_lines()
    np.testing.assert_array_equal(line.get_ydata(), curve.classification_error.values)
    assert ax.get_ylabel() == "classification error on new labels"
    squared = plotting.plot_curve(curve, error="test_error")
    assert squared.get_ylabel() == "mean squared error"
    with pytest.raises(replica.InvalidArgument, match="classification_error"):
        plotting.plot_curve(curve, error="error")


def test_optima(ax):
    """A line of the error for each alpha0; below it, its best penalty and rate."""
    values = {
        "test_error": [[0.04, 0.03], [0.02, 0.01]],
        "lam": [[0.2, 0.1], [0.3, 0.2]],
        "eta": [[4.0, 4.0], [5.0, 5.0]],
        "at_edge": [["", "lam"], ["", ""]],
    }
    dims = {"alpha0": [3.0, 5.0], "alpha": [1.0, 2.0]}
    curve = xarray.Dataset({name: ([*dims], x) for name, x in values.items()}, dims)
    assert plotting.plot_optima(curve, ax) is ax
    _, *below = ax.figure.axes
    assert [line.get_ydata().tolist() for line in ax.get_lines()[:2]] == values["test_error"]
    assert [panel.get_ylabel() for panel in below] == [r"best $\lambda$", r"best $\tilde\eta$"]
    assert ["alpha" in panel.get_xlabel() for panel in (ax, *below)] == [False, False, True]
    for panel, name in zip(below, ("lam", "eta"), strict=True):  # one quantity each
        drawn = [line.get_ydata().tolist() for line in panel.get_lines()[::2]]
        assert drawn[:2] == values[name]
    ends = below[0].get_lines()[1]
    np.testing.assert_array_equal(ends.get_ydata(), [np.nan, 0.1])
    assert ends.get_markerfacecolor() == "white"
    assert sum(panel.get_legend() is not None for panel in (ax, *below)) == 1
    assert labels(ax)[-1] == "at an end of the range searched or solved"
    assert "not converged" in labels(plotting.plot_optima(curve.where(curve.alpha > 1)))
    held = curve.drop_vars("lam").assign_coords(lam=0.1)
    plotting.plot_optima(held, ax=(other := Figure().subplots()))
    _, only = other.figure.axes
    assert only.get_lines()[0].get_ydata().tolist() == [4.0, 4.0]
    assert "lambda = 0.1" in other.get_title(loc="left") + other.get_title()
    lam = xarray.DataArray([[0.1, 1.0], [np.nan, 10.0]], dims=[*dims])
    ax = plotting.plot_optima(curve.assign(lam=lam), ax=Figure().subplots())
    scales = [panel.get_yscale() for panel in ax.figure.axes]
    assert scales == ["linear", "log", "linear"]  # for all that one point is not known
    with pytest.raises(replica.InvalidArgument, match=r"eta=.best."):
        plotting.plot_optima(held.drop_vars("eta"))


def test_the_best_of_a_parameter_is_drawn():
    step = replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=1.0)
    curve = replica.learning_curve(step, beta=1.0, alpha=[0.5, 1, 2], lam="best", eta="best")
    for name, words in (("lam", "best ridge penalty"), ("eta", "best learning rate")):
        ax = plotting.plot_curve(curve, error=name)
        np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), curve[name])
        assert ax.get_ylabel().startswith(words)
    label = plotting.plot_curve(curve).get_ylabel()
    assert label.endswith(r"at the best $\lambda$ and $\tilde\eta$")
    for name in ("alpha", "status"):  # a coordinate, and no number
        with pytest.raises(replica.InvalidArgument, match="test_error, train_error, lam, eta"):
            plotting.plot_curve(curve, error=name)
    held = replica.learning_curve(MODEL, alpha=[0.5, 1, 2], lam=0.1)
    with pytest.raises(replica.InvalidArgument, match="one of test_error, train_error, got"):
        plotting.plot_curve(held, error="lam")


@pytest.mark.slow
def test_an_outlier_is_a_mark_where_it_is():
    """Of theory, where p is known, and of simulations; the words of it stand in the title."""
    found = replica.spectrum(MODEL, alpha=2.0)
    eigenvalues = np.geomspace(0.01, 2, 400).reshape(2, 200)
    alone = plotting.plot_spectrum(None, eigenvalues=eigenvalues)
    assert (labels(alone), alone.get_xscale()) == (["simulated eigenvalues (no theory)"], "log")
    ax = plotting.plot_spectrum(found, eigenvalues=eigenvalues)
    marks = {line.get_label(): line.get_xdata() for line in ax.get_lines()}
    (at_p,) = found.outliers_at(200)
    assert marks[f"outlier, theory: {at_p:.3g}"] == pytest.approx(200 * found.outliers, rel=0.02)
    (drawn,) = [x for name, x in marks.items() if name == "outlier, simulated"]
    assert 1.45 < min(drawn) < max(drawn) == pytest.approx(2)
    assert "above the bulk from $n = " in ax.get_title().replace("\n", " ")
    assert all(text.strip() for text in ax.get_legend_handles_labels()[1])
    lines = [one for one in ax.get_legend_handles_labels()[0] if hasattr(one, "get_marker")]
    assert len(lines) == 3
    assert not [one for one in lines if one.get_linestyle() == one.get_marker() == "None"]
