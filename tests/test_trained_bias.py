"""The search for the best bias, on functions of one variable; models have it in test_groups and
test_convex."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replica.trained_bias import RANGE, best_bias

WIDTH = 1e-6


class Basins:
    """A function with two basins, how often it was asked for, and a look at it with an error,
    blind where ``blind`` says so."""

    def __init__(self, first, second, depth, error=0.0, blind=lambda t: False):
        self.at, self.depth, self.error, self.blind = (first, second), depth, error, blind
        self.asked = 0

    def exact(self, t):
        first, second = self.at
        pits = np.exp(-((t - first) ** 2)) + (1 + self.depth) * np.exp(-((t - second) ** 2))
        return 3.0 - pits + 0.001 * t**2

    def value(self, t, rows):
        self.asked += 1
        return np.full(len(rows), self.exact(t))

    def look(self, t, rows):
        if self.blind(t):
            return np.full((2, len(rows)), np.nan)
        wrong = self.error * np.sin(40 * t) * self.exact(t)
        return np.full(len(rows), self.exact(t) + wrong), np.full(len(rows), self.error * 3.0)

    def lowest(self):
        fine = np.linspace(-RANGE, RANGE, 320_001)
        return fine[np.argmin(self.exact(fine))]


def found(problem):
    (bias,) = best_bias(problem.value, problem.look, 1, WIDTH)
    return bias


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    first=st.floats(-6.0, 6.0),
    apart=st.floats(3.0, 8.0),
    depth=st.floats(-0.3, 0.3),
    error=st.sampled_from([0.0, 1e-8, 1e-3, 0.03]),
    blind=st.sampled_from(["nowhere", "left", "around the first", "everywhere"]),
)
def test_the_lowest_basin_is_found(first, apart, depth, error, blind):
    """Whatever the looks do not tell, or do not see.  3e-4: the step of the fine grid is 5e-5,
    and the bottom is as flat as 1e-8 of the value."""
    second = first + apart if first + apart < 6.5 else first - apart
    seen = {
        "nowhere": lambda t: False,
        "left": lambda t: t < min(first, second) + 1,
        "around the first": lambda t: abs(t - first) < 0.6,
        "everywhere": lambda t: True,
    }[blind]
    problem = Basins(first, second, depth, error, seen)
    bias, lowest = found(problem), problem.lowest()
    assert problem.exact(bias) <= problem.exact(lowest) + 1e-9
    if abs(depth) > 1e-3:
        assert bias == pytest.approx(lowest, abs=3e-4)


def test_few_are_asked():
    """A good look asks at the lowest place and for its bottom; a blind one at a few places."""
    clear = Basins(-2.0, 3.0, 0.2, error=1e-8)
    found(clear)
    assert clear.asked < 20
    dark = Basins(-2.0, 3.0, 0.2, blind=lambda t: True)
    found(dark)
    assert dark.asked < 40


def test_equal_basins():
    """The smaller bias is taken."""
    assert found(Basins(-2.0, 5.0, 0.0)) == pytest.approx(-2.0, abs=0.01)


def test_a_minimum_at_the_end():
    problem = Basins(RANGE + 3, RANGE + 3, 0.0)
    problem.exact = lambda t: -t
    assert np.isnan(found(problem))


def test_no_value_at_all():
    problem = Basins(0.0, 3.0, 0.0, blind=lambda t: True)
    problem.exact = lambda t: np.nan
    assert np.isnan(found(problem))
    assert problem.asked == 65
