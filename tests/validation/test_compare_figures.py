"""Figures of comparisons: which theory a line is of, points on their lines, panels of one width."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import xarray

from replica import GradientStep, learning_curve, solve
from replica.plotting import plot_comparison, style
from tests.legends import labels
from tests.problems import MODEL
from validation import compare, simulate

NETWORK, SRF, LIMIT = "theory of the network", "theory of the sRF", r"limit $d \to \infty$"


@pytest.mark.parametrize(
    ("which", "thin"), [("network", [SRF]), pytest.param("srf", [], marks=pytest.mark.slow)]
)
def test_the_picture_shows_other_theories_as_other_lines(which, thin):
    """The sRF thin beside the network's own theory, and the limit of either pale."""
    step = GradientStep(student="tanh", target="tanh", alpha0=0.5, eta=3.0)
    found = compare(
        step, alpha=[0.5, 2.0], lam=0.1, beta=1.0, theory=which, dimension=60, seeds=2, rng=0
    )
    ax, below = found.plot().figure.axes
    name = NETWORK if which == "network" else SRF
    assert labels(ax) == [name, "training error", *thin, LIMIT, "simulated (±2 s.e.)"]
    drawn = {
        (round(line.get_linewidth(), 2), float(line.get_ydata()[-1]))
        for line in ax.get_lines()
        if len(line.get_xdata()) > 3
    }
    own = step.network(beta=1.0) if which == "network" else step.srf(beta=1.0)
    of = {1.5: replace(own, dimension=60), 4.0: own}
    if thin:
        of |= {1.0: replace(step.srf(beta=1.0), dimension=60)}
    for width, model in of.items():
        point = solve(model, alpha=2, lam=0.1)
        for error in (point.test_error, point.train_error):
            # solved with the curve's other points, which rounds differently
            assert any(w == width and y == pytest.approx(error, rel=1e-12) for w, y in drawn)
    shown = [line.get_ydata()[-1] for line in below.get_lines() if len(line.get_xdata()) == 2]
    assert any(y == pytest.approx(found.checks["test_error"].z[-1, 0]) for y in shown)


@pytest.mark.slow
def test_panels_of_many_lines_keep_one_width():
    """Beside their colour bar; and points and differences are at their abscissa."""
    eta, alpha = np.linspace(1, 3, 9), np.linspace(0.5, 5, 10)
    names = [f"{one}_error{end}" for one in ("test", "train") for end in ("", "_stderr", "_z")]
    at = {"source": ["theory", "simulation"], "eta": eta, "alpha": alpha}
    parts = {name: (tuple(at), np.ones((2, 9, 10))) for name in names}
    ax, below, bar = plot_comparison(xarray.Dataset(parts, at)).figure.axes
    ax.figure.draw_without_rendering()
    assert bar.get_ylabel() == r"learning rate $\tilde\eta$"
    assert ax.get_position().x0 == pytest.approx(below.get_position().x0)
    assert ax.get_position().x1 == pytest.approx(below.get_position().x1)
    drawn = [one.lines[0].get_xdata() for one in below.containers]
    assert len(drawn) == 18
    np.testing.assert_array_equal(drawn, [alpha] * 18)
    np.testing.assert_array_equal([one.lines[0].get_xdata() for one in ax.containers[:18]], drawn)


@pytest.mark.parametrize(("far", "scale"), [(19.0, "linear"), (25.0, "symlog"), (-400.0, "symlog")])
def test_the_band_of_two_standard_errors_shows_beside_a_large_difference(far, scale):
    names = [f"{one}_error{end}" for one in ("test", "train") for end in ("", "_stderr", "_z")]
    at = {"source": ["theory", "simulation"], "alpha": [1.0, 2.0, 4.0]}
    parts = {name: (tuple(at), np.full((2, 3), 0.5)) for name in names}
    parts["test_error_z"][1][1, 2] = far
    with style("paper"):
        ax, below = plot_comparison(xarray.Dataset(parts, at)).figure.axes
    ax.figure.draw_without_rendering()
    assert below.get_yscale() == scale
    low, top, y = below.transData.transform([(1, -2), (1, 2), (1, far)])[:, 1]
    assert top - low > 0.1 * below.bbox.height
    assert len(below.get_yticks()) <= 5
    assert 3 < y - below.bbox.y0 < below.bbox.height - 3  # a mark within the frame
    labels_of_ticks = [text.get_window_extent() for text in below.get_yticklabels()]
    assert not any(one.overlaps(other) for one, other in combinations(labels_of_ticks, 2))


def test_markers_and_the_legend_tell_theories_of_points_apart():
    """Open beside the first theory, filled beside the other, of both errors and of differences."""
    names = [f"{one}_error{end}" for one in ("test", "train") for end in ("", "_stderr", "_z")]
    at = {"source": ["theory", "simulation"], "eta": [1.0, 3.0], "alpha": [1.0, 2.0]}
    parts = {name: (tuple(at), np.full((2, 2, 2), 0.5)) for name in names}
    theory = np.array([["network at d = 60"], ["network limit"]])
    parts["theory"] = (tuple(at), np.broadcast_to(theory, (2, 2, 2)))
    ax, below = plot_comparison(xarray.Dataset(parts, at)).figure.axes
    assert "test error, simulated (±2 s.e.), theory: network at d = 60" in labels(ax)
    assert "test error, simulated (±2 s.e.), theory: network limit" in labels(ax)
    for panel in (ax, below):
        dots = [one.lines[0] for one in panel.containers]
        shown = [dot for dot in dots if np.isfinite(np.array(dot.get_ydata(), float)).any()]
        fills = [dot.get_fillstyle() for dot in shown]
        assert fills == ["none", "none", "full", "full"]


def test_points_without_lines_have_labels():
    found = simulate(MODEL, alpha=[0.5, 1], lam=[0.1, 1], dimension=20, seeds=2, rng=0).plot()
    assert labels(found)[:2] == [r"$\lambda = 0.1$", r"$\lambda = 1$"]


@pytest.mark.slow
def test_points_over_any_parameters_lie_on_their_lines():
    """Two rates and two numbers of samples: a colour for each, and the abscissa the longest."""
    alpha0, eta, alpha = [1.0, 4.0], [1.0, 3.0], [0.5, 1.0, 2.0]
    rows = []
    for few in alpha0:
        steps = [GradientStep(student="tanh", target="sin", alpha0=few, eta=rate) for rate in eta]
        each = [
            compare(step, alpha=alpha, lam=0.1, beta=1.0, dimension=40, seeds=2, rng=0)
            for step in steps
        ]
        rows.append(xarray.concat([one.dataset() for one in each], xarray.Variable("eta", eta)))
    points = xarray.concat(rows, xarray.Variable("alpha0", alpha0))
    step = GradientStep(student="tanh", target="sin", alpha0=1.0, eta=1.0)
    theory = learning_curve(
        step.network(beta=1.0), alpha=np.linspace(0.5, 2, 20), lam=0.1, alpha0=alpha0, eta=eta
    )
    ax = plot_comparison(points, {"theory": theory})
    lines = [line for line in ax.get_lines() if len(line.get_xdata()) == 20]
    dots = [one for one in ax.containers if len(one.lines[0].get_xdata()) == 3]
    assert (len(lines), len(dots)) == (8, 8)
    for line, dot in zip(lines, dots, strict=True):
        assert line.get_color() == dot.lines[0].get_color()
    assert len({line.get_color() for line in lines}) == 4
    assert labels(ax)[0] == r"$\alpha_0 = 1$, $\tilde\eta = 1$"


@pytest.mark.slow
def test_lines_of_reused_samples_in_several_directions_have_few_points():
    """Each may take a second."""
    step = GradientStep(student="tanh", target="z1 + he2(z2)/2", alpha0=2, eta=1.0)
    network, run = step.network(beta=1.0, reuse=1.0), dict(dimension=30, seeds=2, rng=0)
    ax = compare(network, alpha=[1.0, 1.5], lam=0.1, **run).plot()
    assert max(len(line.get_xdata()) for line in ax.get_lines()) == 13
