"""Legends, styles and sizes: a figure is whole, and covers nothing that it shows."""

import itertools
import json

import matplotlib
import numpy as np
import pytest
import xarray
from matplotlib.colors import to_rgb

import replica
from replica import plotting
from replica.display import in_words
from replica.plotting import settings
from tests.legends import labels, legend_of
from tests.marks import slow
from tests.problems import PUBLISHED as STEP

MODEL = STEP.srf(beta=1.0)


def covered(ax):
    """Points that are drawn under the legend, and whether it leaves the canvas."""
    figure = ax.figure
    figure.draw_without_rendering()
    box = legend_of(ax).get_window_extent()
    canvas = figure.bbox
    inside = (
        canvas.x0 <= box.x0 <= box.x1 <= canvas.x1 and canvas.y0 <= box.y0 <= box.y1 <= canvas.y1
    )
    drawn = [line.get_transform().transform(line.get_xydata()) for line in ax.get_lines()]
    points = np.concatenate([points for points in drawn if len(points)])
    return int(box.count_contains(points)), not inside


@pytest.mark.parametrize(
    ("law", "title", "words"),
    [
        ([[0.5], [1.0]], "bias = $0.5$", "bias 0.5"),
        ([[-1.0, 1.0], [0.5, 0.5]], "bias = $-1, 1$", "bias -1, 1"),
        ([[-1.0, 1.0], [0.2, 0.8]], "bias -1 (0.2), 1 (0.8)", "bias -1 (0.2), 1 (0.8)"),
    ],
)
def test_a_law_is_stated_by_its_values(law, title, words):
    """Not its fractions as if they were another value; as a file holds it, too."""
    assert settings({"bias": law}) == settings({"bias": json.dumps(law)}) == [title]
    assert in_words({"bias": law}) == words


def test_settings_stand_in_a_title_and_infinity_is_a_sign():
    step = replica.GradientStep(student="tanh", target="sin", alpha0=np.inf, eta=3.0)
    curve = replica.learning_curve(step.srf(beta=2.0), alpha=[0.5, 1, 2], lam=0.1)
    title = plotting.plot_curve(curve).get_title()
    for piece in (
        "tanh student", "sin target", r"$\alpha_0 = \infty$", r"$\tilde\eta = 3$", r"$\beta = 2$",
        r"$\lambda = 0.1$",
    ):  # fmt: skip
        assert piece in title
    assert "inf" not in title.replace(r"\infty", "")
    assert "noise" not in title  # switched off
    both = replica.learning_curve(
        step.srf(beta=2.0), alpha=[0.5, 1, 2], lam=0.1, alpha0=[1, np.inf]
    )
    assert labels(plotting.plot_curve(both))[1] == r"$\alpha_0 = \infty$"
    along = replica.learning_curve(step.srf(beta=2.0), alpha=1.0, lam=0.1, alpha0=[1, 2, 4, np.inf])
    drawn = plotting.plot_curve(along)
    assert drawn.get_xscale() == "linear"  # of the finite ones
    drawn.figure.draw_without_rendering()


def test_a_title_is_broken_where_it_is_too_long():
    assert "\n" not in replica.learned_function(MODEL, alpha=1.0, lam=0.1).plot().get_title()
    step = replica.GradientStep(
        student="leaky_relu", target="tanh", alpha0=2, eta=1, noise=0.3, step_noise=0.1, decay=0.1
    )
    ax = plotting.plot_curve(replica.learning_curve(step, beta=1.0, alpha=[0.5, 1.0], lam=0.1))
    ax.figure.draw_without_rendering()
    assert ax.get_title().count(",\n") == 1
    assert ax.title.get_window_extent().width <= ax.bbox.width


def test_columns_of_a_legend_below_are_even():
    ax = plotting.axes(None)
    for i in range(5):
        ax.plot(np.tile([0, 1], 200), np.linspace(i, i + 1, 400), label=f"line {i} of five")
    plotting.add_legend(ax)
    extents = [text.get_window_extent() for text in legend_of(ax).get_texts()]
    assert len({round(extent.x0) for extent in extents}) == 3  # 2 + 2 + 1, not 2 + 1 + 1 + 1


def test_pdf_has_truetype_fonts():
    """Type 3, matplotlib's own choice, is what journals refuse."""
    curve = replica.learning_curve(MODEL, alpha=[0.5, 1.0], lam=0.1)
    content = plotting.picture(plotting.plot_curve(curve).figure, "pdf")
    assert b"/FontFile2" in content
    assert b"/Type3" not in content


def test_a_style_can_be_turned_off():
    """The title, and the library's colours; after it both are there again."""
    curve = replica.learning_curve(MODEL, alpha=[0.5, 1.0, 2.0], lam=[0.01, 0.1])
    with plotting.style(title=False, colours=False):
        ax = plotting.plot_curve(curve)
    assert ax.get_title() == ""
    assert [line.get_color() for line in ax.get_lines()[:3:2]] == ["C0", "C1"]
    assert plotting.plot_curve(curve).get_title()
    with pytest.raises(replica.InvalidArgument, match="title"), plotting.style(title="no"):
        pass


def drawn_comparison():
    """Points of two errors beside the lines of their theory."""
    curve = replica.learning_curve(MODEL, alpha=[0.3, 1.0, 2.0, 3.0], lam=[0.1])
    points = curve[["test_error", "train_error"]].expand_dims(source=["theory", "simulation"])
    for name in list(points):
        points[f"{name}_stderr"], points[f"{name}_z"] = 0.1 * points[name], 0 * points[name]
    return plotting.plot_comparison(points, {"theory": curve})


def drawn_optima():
    best = replica.learning_curve(STEP, beta=[0.5, 1], alpha=[0.5, 1, 2], lam="best", eta="best")
    return plotting.plot_optima(best)


def drawn_classification():
    """Whose labels take two lines where one is too short."""
    step = replica.GradientStep(student="tanh", target="sign", alpha0=2, eta=1)
    return plotting.plot_curve(replica.learning_curve(step, beta=1.0, alpha=[0.5, 1, 2], lam=0.1))


@pytest.mark.parametrize(
    "draw",
    [
        drawn_comparison,
        *slow(drawn_optima, drawn_classification),
    ],
)
def test_a_figure_for_a_column_of_a_paper(draw):
    """3.4 x 2.6 inches: no title, 8 points, a legend on no line that takes no room from them, and
    all of it on the canvas."""
    with plotting.style("paper"):
        ax = draw()
    assert ax.figure.get_size_inches().tolist() == [3.4, 2.6]
    assert [one.get_title() for one in ax.figure.axes] == [""] * len(ax.figure.axes)
    assert ax.yaxis.label.get_fontsize() == ax.get_yticklabels()[0].get_fontsize() == 8
    ax.figure.draw_without_rendering()
    if legend_of(ax):
        assert covered(ax) == (0, False)
    assert ax.get_ylim()[1] < 1.3 * ax.dataLim.y1
    words = [label.get_window_extent() for panel in ax.figure.axes
             for label in (panel.xaxis.label, panel.yaxis.label) if label.get_text()]  # fmt: skip
    assert not any(one.overlaps(other) for one, other in itertools.combinations(words, 2))
    tight = ax.figure.get_tightbbox()
    assert tight.x0 >= 0 <= tight.y0
    assert tight.x1 <= 3.4
    assert tight.y1 <= 2.6


def test_a_style_is_changed_by_what_is_asked_for():
    curve = replica.learning_curve(MODEL, alpha=[0.3, 1.0], lam=0.1)
    with plotting.style(size=(3.4, 2.6)):  # which is too narrow for a title
        assert plotting.plot_curve(curve).get_title() == ""
    with plotting.style("paper", title=True, size=(6, 4)):
        ax = plotting.plot_curve(curve)
    assert ax.get_title()
    assert ax.yaxis.label.get_fontsize() == 10
    for size in ((3, np.nan), (0.5, 2), 3, ("a", 2)):
        with pytest.raises(replica.InvalidArgument, match="size"), plotting.style(size=size):
            pass
    with pytest.raises(replica.InvalidArgument, match="paper"), plotting.style("poster"):
        pass


@pytest.mark.slow
def test_what_is_transparent_is_mixed_with_white_in_eps(caplog):
    """Matplotlib would draw it as dark as if it were not, and say so."""
    curve = replica.learning_curve(MODEL, alpha=[0.3, 1.0, 2.0], lam=[0.1])
    with_band = curve.assign(test_error_stderr=0.1 * curve.test_error)
    for ax in (plotting.plot_curve(with_band), plotting.plot_staircase(replica.staircase("z1"))):
        assert b"%!PS" in plotting.picture(ax.figure, "eps")
    assert not caplog.records
    (bar,) = ax.patches
    blue = np.array(to_rgb(plotting.COLOURS[0]))
    assert bar.get_facecolor() == pytest.approx([*(0.75 + 0.25 * blue), 1])


@pytest.mark.parametrize(("kind", "theory"), [("srf", "sRF"), ("network", "network")])
def test_a_title_names_the_theory_of_a_step(kind, theory):
    step = replica.GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0)
    model = getattr(step, kind)(beta=1.0)
    along = ({"alpha": [0.5, 1.0]}, {"alpha": 1.0, "alpha0": [1.0, 2.0]})
    for axes in along:  # alpha0 stands in the title, or along the abscissa
        curve = replica.learning_curve(model, lam=0.1, **axes)
        title = plotting.plot_curve(curve).get_title()
        assert f"theory of the {theory}" in title
        assert title.count("theory of") == 1


def test_latex_that_is_missing_is_one_sentence(monkeypatch):
    curve = replica.learning_curve(MODEL, alpha=[0.5, 1.0], lam=0.1)
    monkeypatch.setenv("PATH", "")
    with (
        matplotlib.rc_context({"text.usetex": True}),
        pytest.raises(replica.InvalidArgument, match=r"text.usetex must be False .* not installed"),
    ):
        plotting.plot_curve(curve)


def test_theories_along_an_axis_are_in_the_legend_alone():
    """Joined by hand, as docs/howto/results.md does it, or a grid."""
    point = dict(beta=1.0, alpha=[0.5, 1.0], lam=0.1)
    each = [replica.learning_curve(STEP, **point, theory=theory) for theory in ("srf", "network")]
    joined = xarray.concat(each, xarray.Variable("theory", ["srf", "network"]))
    for curve in (joined, replica.learning_curve(STEP, **point, theory=["srf", "network"])):
        ax = plotting.plot_curve(curve)
        assert "theory" not in ax.get_title()
        assert {"theory of the sRF", "theory of the network"} <= {*labels(ax)}
