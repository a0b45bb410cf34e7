"""Pictures hold the numbers they are given, in axes that are given or new."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import replica
from replica import plotting
from tests.problems import PUBLISHED as STEP

MODEL = STEP.srf(beta=1.0)


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
