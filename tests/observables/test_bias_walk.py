"""The search for the best bias, on functions of one variable."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import replica
from replica import SpikedRandomFeatures
from replica.observables.search_ranges import LARGEST_BIAS, bias_scan
from replica.observables.trained_bias import BiasScan, best_bias

WIDTH = 1e-6


class Basins:
    """A function with two basins, how often it was asked for, and looks at it with an error,
    blind where ``blind`` says so."""

    def __init__(self, first, second, depth, error=0.0, blind=lambda t: False):
        self.at, self.depth, self.error, self.blind = (first, second), depth, error, blind
        self.asked = 0

    def exact(self, t):
        first, second = self.at
        pits = np.exp(-((t - first) ** 2)) + (1 + self.depth) * np.exp(-((t - second) ** 2))
        return 3.0 - pits + 0.001 * t**2

    def slope(self, t):
        return (self.exact(t + 1e-6) - self.exact(t - 1e-6)) / 2e-6

    def ask(self, t):
        self.asked += 1
        return self.exact(t), self.slope(t)

    def looks(self):
        t = bias_scan()
        values = self.exact(t) * (1 + self.error * np.sin(40 * t))
        seen = np.where(self.blind(t), np.nan, [values, self.slope(t)])
        return BiasScan(t, *seen, lambda place: 3.0 * self.error)

    def lowest(self):
        fine = np.linspace(-LARGEST_BIAS, LARGEST_BIAS, 320_001)
        return fine[np.argmin(self.exact(fine))]


def found(problem):
    return best_bias(problem.looks(), problem.ask, WIDTH)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    first=st.floats(-6.0, 6.0),
    apart=st.floats(3.0, 8.0),
    depth=st.floats(-0.3, 0.3),
    error=st.sampled_from([0.0, 1e-8, 1e-3, 0.03]),
    blind=st.sampled_from(["nowhere", "left", "between"]),
)
def test_the_lowest_basin_is_found(first, apart, depth, error, blind):
    """However far off the looks are, and blind where the function does not fall.  3e-4: the step
    of the fine grid is 5e-5, and the bottom is as flat as 1e-8 of the value."""
    second = first + apart if first + apart < 6.5 else first - apart
    left, middle = min(first, second) - 1.5, (first + second) / 2
    seen = {
        "nowhere": lambda t: t > np.inf,
        "left": lambda t: t < left,
        "between": lambda t: (t == bias_scan()[np.argmin(abs(bias_scan() - middle))]) & (apart > 5),
    }[blind]
    problem = Basins(first, second, depth, error, seen)
    bias, lowest = found(problem), problem.lowest()
    assert problem.exact(bias) <= problem.exact(lowest) + 1e-9
    if abs(depth) > 1e-3:
        assert bias == pytest.approx(lowest, abs=3e-4)


def test_few_are_asked():
    """A basin that is surely higher is left alone, one that is doubtful is left early, also those
    that looks far off show where there are none."""
    clear = Basins(-2.0, 3.0, 0.2, error=1e-8)
    found(clear)
    assert clear.asked <= 4
    doubtful = Basins(-2.0, 3.0, 0.2, error=0.1)
    found(doubtful)
    assert clear.asked < doubtful.asked < 12


def test_equal_basins():
    """The smaller bias is taken."""
    waves = Basins(0.0, 0.0, 0.0)
    waves.exact = lambda t: np.cos(t + 1.0)
    assert found(waves) == pytest.approx(np.pi - 1.0, abs=1e-4)


def test_no_difference():
    """All biases are equal, to rounding."""
    flat = Basins(0.0, 0.0, 0.0)
    flat.exact = lambda t: 3.0 + 1e-15 * np.sin(70 * t)
    assert found(flat) == 0
    student = SpikedRandomFeatures(
        student="linear", target="sin", r=1, c=1.2, gamma=0.7, intercept=True, train_bias=True
    )
    point = replica.solve(student, alpha=1.5, lam=0.1)
    assert point.converged
    assert point.trained_bias == 0


def test_a_plateau():
    """Of what is as low as it gets, to rounding, the smallest bias."""
    plateau = Basins(0.0, 0.0, 0.0)
    plateau.exact = lambda t: 3 - np.tanh(3 * (t - 1))
    assert 3 < found(plateau) < 5


def test_a_fall_that_goes_on():
    """Below the basin, or not so far."""
    for height, lowest in ((0.7, False), (0.3, True)):
        plateau = Basins(0.0, 0.0, 0.0)
        plateau.exact = lambda t, height=height: (
            3 - np.exp(-((t + 3) ** 2)) - height * (1 + np.tanh(t - 2))
        )
        plateau.looks = lambda plateau=plateau: BiasScan(
            bias_scan(), plateau.exact(bias_scan()), plateau.slope(bias_scan()), lambda place: 1e-9
        )
        assert np.isfinite(found(plateau)) == lowest


def test_a_flat_bottom():
    """Where the curvature vanishes, too, steps shorten slowly.  1e-4: the slope there is 4e-12,
    and the steps WIDTH."""
    flat = Basins(0.0, 0.0, 0.0)
    flat.exact, flat.slope = lambda t: (t - 0.3) ** 4, lambda t: 4 * (t - 0.3) ** 3
    assert found(flat) == pytest.approx(0.3, abs=1e-4)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_minimum_at_the_end(sign):
    problem = Basins(0.0, 0.0, 0.0)
    problem.exact = lambda t: sign * t
    assert np.isnan(found(problem))


def test_a_fall_into_the_dark():
    """Below the lowest basin there is no knowing how deep it goes."""
    assert np.isnan(found(Basins(-3.0, 4.0, 0.5, blind=lambda t: t > 3.6)))
    assert np.isfinite(found(Basins(-3.0, 4.0, 0.5, blind=lambda t: t > 5.2)))


def test_a_jump_up_at_the_bottom():
    """Odd students have no even features at 0, where the objective may be isolated."""
    jump = Basins(0.0, 0.0, 0.0)
    jump.exact = lambda t: t**2 + np.where(t == 0, 0.1, 0.0)
    assert 0 < abs(found(jump)) < 2 * WIDTH
    jump.looks, seen = (
        lambda: seen,
        BiasScan(bias_scan(), jump.exact(bias_scan()), 2 * bias_scan(), lambda place: 0.0),
    )
    jump.ask = lambda t: (jump.exact(t), 2 * t)
    assert 0 < abs(found(jump)) < 2 * WIDTH


def test_a_minimum_in_a_gap():
    """Where looks on both sides fall towards it, it is asked for."""
    gap = Basins(-3.0, 4.0, 0.5, blind=lambda t: abs(t - 4.0) < 0.8)
    assert found(gap) == pytest.approx(gap.lowest(), abs=3e-4)
    gap.ask = lambda t: (np.nan, np.nan)
    assert np.isnan(found(gap))


def test_no_looks_and_no_answers():
    assert np.isnan(found(Basins(0.0, 3.0, 0.0, blind=lambda t: t < np.inf)))
    problem = Basins(0.0, 3.0, 0.0)
    problem.ask = lambda t: (np.nan, np.nan)
    assert np.isnan(found(problem))
