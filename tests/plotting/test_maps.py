"""Maps of an error over two grids."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import replica
from replica import plotting
from replica.plotting import draw_heat_map
from tests.legends import labels
from tests.problems import PUBLISHED

MODEL = PUBLISHED.srf(beta=1.0)


@pytest.mark.slow
def test_two_long_axes_make_a_heat_map():
    """With contours, and a star at the smallest error, which stands in the title."""
    curve = replica.learning_curve(
        MODEL, alpha=np.geomspace(0.2, 5, 13), lam=np.geomspace(1e-3, 1e2, 16)
    )
    ax = plotting.plot_curve(curve)
    j, i = np.unravel_index(curve.test_error.values.T.argmin(), (16, 13))
    star, *_ = ax.get_lines()
    assert star.get_xydata().tolist() == [[curve.alpha.values[i], curve.lam.values[j]]]
    smallest = float(curve.test_error.min())
    (label,) = labels(ax)  # at every size, also where there is no title
    assert label.startswith(f"smallest ${smallest:.3g}$ at")
    assert label.endswith(", at the edge")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    mesh = ax.collections[0].get_array()
    np.testing.assert_array_equal(np.ravel(mesh), curve.test_error.values.T.ravel())
    assert len(ax.collections) > 1  # the contours
    assert ax.figure.axes[1].get_ylabel() == r"test error $\epsilon_g$"


@pytest.mark.parametrize(("low", "high"), [(0.14, 0.208), (1.0, 1.0001), (1e-9, 1e3), (0.02, 0.11)])
def test_contours_are_at_the_ticks_of_the_colour_bar(low, high):
    """Round values with labels of their own."""
    ax = Figure().subplots()
    x, values = np.linspace(0, 1, 13), np.linspace(low, high, 13)
    draw_heat_map(ax, x, x, values[:, None] + 0 * x, "error")
    bar = ax.figure.axes[1]
    ax.figure.draw_without_rendering()
    labels = [text.get_text() for text in bar.get_yticklabels()]
    assert len(set(labels)) == len(labels) in range(3, 9)
    if high < 5 * low:  # plain numbers, with as many digits each
        assert len({len(label) for label in labels}) == 1
    contours = next(one for one in ax.collections if hasattr(one, "levels"))
    assert bar.get_yticks() == pytest.approx(contours.levels)
    assert ax.texts
    assert {text.get_text() for text in ax.texts} <= {*labels}


def test_a_map_for_a_column_of_a_paper():
    """As wide as its colour bar leaves it, with a label below that is broken before the edge is
    named, and without labels of contours, which would cover each other."""
    grid = replica.learning_curve(
        MODEL, alpha=np.linspace(0.5, 5, 12), lam=np.geomspace(0.01, 1, 12)
    )
    with plotting.style("paper"):
        ax = plotting.plot_heat_map(grid)
    ax.figure.draw_without_rendering()
    assert ax.bbox.width > 0.55 * ax.figure.bbox.width
    assert labels(ax)[0].endswith(",\nat the edge")
    assert not ax.texts
    own = plotting.plot_heat_map(grid, Figure().subplots())  # whose layout has no room below
    assert own.get_legend().get_frame_on()


@pytest.mark.slow
def test_grey_is_in_the_legend():
    """As far as anything is grey: points without an answer."""
    curve = replica.learning_curve(
        MODEL, alpha=np.geomspace(0.2, 5, 12), lam=np.geomspace(1e-3, 1e2, 12)
    )
    assert "not converged" in labels(plotting.plot_curve(curve.where(curve.alpha > 1)))


def test_a_map_without_a_value_is_a_map_without_a_colour_bar():
    curve = replica.learning_curve(MODEL, alpha=np.linspace(1, 2, 12), lam=np.linspace(1, 2, 12))
    ax = plotting.plot_curve(curve.where(curve.alpha > 9))
    assert ax.figure.axes == [ax]
    assert [text.get_text() for text in ax.texts] == ["no point converged"]
    assert labels(ax) == ["not converged"]


@pytest.mark.slow
def test_a_smallest_value_inside_is_at_no_edge():
    alpha, lam = np.linspace(0.5, 5, 12), np.geomspace(1e-3, 10, 12)
    curve = replica.learning_curve(MODEL, alpha=alpha, lam=lam)
    (label,) = labels(plotting.plot_heat_map(curve.where(curve.alpha < alpha[-1], 1.0)))
    assert label.startswith("smallest")
    assert not label.endswith(", at the edge")
