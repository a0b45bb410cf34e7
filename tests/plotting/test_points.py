"""A user's own points beside the lines of a curve, and what is neither."""

import numpy as np
import pytest

import replica
from replica import plotting
from tests.problems import PUBLISHED

MODEL = PUBLISHED.srf(beta=1.0)


@pytest.mark.slow
def test_own_points_lie_beside_the_lines():
    """Each in the colour of its line; what has none is refused."""
    curve = replica.learning_curve(MODEL, alpha=[0.5, 1.0, 2.0], lam=[0.01, 0.1])
    points = {"alpha": [1, 2, 1], "lam": [0.1, 0.1, 0.01], "test_error": [0.3, 0.2, 0.4],
              "test_error_stderr": [0.01, 0.02, 0.03]}  # fmt: skip
    ax = plotting.plot_curve(curve, train=False, points=points)
    lines = [line for line in ax.get_lines() if len(line.get_xdata()) == 3]
    first, second, _ = ax.containers  # the last is in the legend
    assert [one.lines[0].get_xdata().tolist() for one in (first, second)] == [[1], [1, 2]]
    assert second.lines[0].get_ydata().tolist() == [0.3, 0.2]
    assert [one.lines[0].get_color() for one in (first, second)] == [
        line.get_color() for line in lines
    ]
    low, high = second.lines[2][0].get_segments()[1][:, 1]
    assert (low, high) == pytest.approx((0.16, 0.24))  # two standard errors
    for odd, said in (({"lam": [3.0]}, "lam"), ({"test_error": None}, "test_error")):
        one = {name: values[:1] for name, values in points.items()} | odd
        with pytest.raises(replica.InvalidArgument, match=said):
            plotting.plot_curve(curve, points={k: v for k, v in one.items() if v is not None})
    points |= {"train_error": [0.1, 0.05, 0.2], "train_error_stderr": [0.01, 0.01, 0.02]}
    test, train, *_ = plotting.plot_curve(curve, points=points).containers
    assert (test.lines[0].get_ydata(), train.lines[0].get_ydata()) == ([0.4], [0.2])
    assert [one.lines[0].get_marker() for one in (test, train)] == ["o", "s"]
    assert {one.lines[0].get_markerfacecolor() for one in (test, train)} == {"none"}
    ax = plotting.plot_curve(curve, error="train_error", points=points)
    assert ax.containers[0].lines[2][0].get_segments()[0][:, 1] == pytest.approx([0.16, 0.24])
    single = replica.learning_curve(MODEL, alpha=[0.5, 1.0], lam=0.1)
    ax = plotting.plot_curve(single, points={"alpha": [1.0], "test_error": [0.1]})
    assert len(ax.containers) == 2
    near = replica.learning_curve(MODEL, alpha=[0.5, 1.0], lam=[1e-9, 2e-9])
    ax = plotting.plot_curve(near, points={"alpha": [1.0], "test_error": [0.1], "lam": [2e-9]})
    assert len(ax.containers) == 2


WIDE = np.linspace(0.5, 3, 12)


@pytest.mark.parametrize(
    ("grid", "points", "said"),
    [
        ({}, {"alpha": [1.0, 2.0], "test_error": [0.1]}, "arrays of one length"),
        ({}, {"alpha": [1.0], "test_error": ["x"]}, "of numbers"),
        ({}, {"alpha": [1.0], "test_error": [0.1], "test_error_stderr": [-1.0]}, "0 or more"),
        ({}, {"alpha": [1.0], "test_error": [0.1], "train_error_stderr": [-1.0]}, "0 or more"),
        ({}, {"alpha": [1.0], "test_error": [0.1], "lam": [5.0]}, "on the lines"),
        ({}, 3, r"a data frame, such as simulation\.to_dataframe\(\)"),
        ({"student": ["tanh", "erf"]}, {"alpha": [1], "test_error": [1], "student": [3]}, "lines"),
        ({"alpha": WIDE, "beta": WIDE}, {"alpha": [1.0], "test_error": [0.1]}, "left out of a map"),
    ],
)
def test_points_that_are_none_are_refused(grid, points, said):
    curve = replica.learning_curve(MODEL, **({"alpha": [0.5, 1.0], "lam": 0.1} | grid))
    with pytest.raises(replica.InvalidArgument, match=said) as refused:
        plotting.plot_curve(curve, points=points)
    assert "np." not in str(refused.value)


@pytest.mark.parametrize("draw", [plotting.plot_curve, plotting.plot_heat_map])
@pytest.mark.parametrize("curve", [3, None, [1, 2]])
def test_what_is_no_data_set_is_refused(draw, curve):
    with pytest.raises(replica.InvalidArgument, match="a data set"):
        draw(curve)
