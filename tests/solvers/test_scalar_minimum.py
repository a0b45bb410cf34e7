"""The lowest minimum of a function, of which a rough scan is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.scalar_minimum import lowest_minimum

SCAN = np.linspace(-8, 8, 33) + 0.1


def lowest(value, slope=None, scan=SCAN, error=0.0, blind=lambda t: t > np.inf, xtol=1e-9):
    """Its place; the scan's values and slopes are off by ``error`` and unknown where ``blind``."""
    if slope is None:

        def slope(t):
            return (value(t + 1e-5) - value(t - 1e-5)) / 2e-5

    off = 1 + error * np.sin(40 * scan)
    seen = np.where(blind(scan), np.nan, [value(scan) * off, slope(scan) * off])
    return lowest_minimum(lambda t: (value(t), slope(t)), scan, *seen, xtol=xtol)


def pits(first, second, depth):
    """Two basins, the second deeper by ``depth``."""
    return lambda t: (
        3 - np.exp(-((t - first) ** 2)) - (1 + depth) * np.exp(-((t - second) ** 2)) + 1e-3 * t**2
    )


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    first=st.floats(-6, 6),
    apart=st.floats(3, 8),
    depth=st.floats(-0.3, 0.3),
    error=st.sampled_from([0.0, 1e-8, 1e-3]),
)
def test_the_lowest_of_two_basins(first, apart, depth, error):
    """1e-4: the step of the fine grid that it is compared to; ties may go either way."""
    second = first + apart if first + apart < 6.5 else first - apart
    value, fine = pits(first, second, depth), np.linspace(-8, 8, 160_001)
    place, least = lowest(value, error=error), fine[value(fine).argmin()]
    assert value(place) <= value(least) * (1 + 1e-8)
    if abs(depth) > 1e-2:
        assert place == pytest.approx(least, abs=1e-4)


def test_a_minimum_is_found_to_the_tolerance():
    """1e-9 is asked for; the slope of t - 0.3 in the fourth vanishes to rounding 1e-4 away."""
    assert lowest(lambda t: 1 + (t - 0.3) ** 2, lambda t: 2 * (t - 0.3)) == pytest.approx(
        0.3, abs=1e-9
    )
    assert lowest(lambda t: 1 + (t - 0.3) ** 4, lambda t: 4 * (t - 0.3) ** 3) == pytest.approx(
        0.3, abs=1e-3
    )


def test_of_equal_minima_that_nearest_to_zero():
    """A cosine has them at 1.25 pi - 1 and -1.25 pi - 1; of +-1 it is the positive one."""
    near = lowest(lambda t: 2 + np.cos(0.8 * (t + 1)), lambda t: -0.8 * np.sin(0.8 * (t + 1)))
    assert near == pytest.approx(1.25 * np.pi - 1, abs=1e-8)  # xtol, and rounding of a root
    even = lowest(lambda t: 1 + (t**2 - 1) ** 2, lambda t: 4 * t * (t**2 - 1))
    assert even == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("width", [0.02, 0.1, 0.2])
def test_a_basin_behind_a_barrier_in_one_cell(width):
    """Beside 0, an even maximum that no place of the scan sees."""
    value = lambda t: 2 + 0.01 * t**2 + np.exp(-((t / width) ** 2) / 2)  # noqa: E731
    slope = lambda t: 0.02 * t - t / width**2 * np.exp(-((t / width) ** 2) / 2)  # noqa: E731
    bottom = width * np.sqrt(2 * np.log(50 / width**2))  # where the slope vanishes
    assert lowest(value, slope) == pytest.approx(bottom, abs=1e-8)


def test_where_it_makes_no_difference():
    """Everywhere, and on a plateau beyond a fall: there to 1e-8 of the value, from t = 3.5 on."""
    assert lowest(lambda t: 3 + 1e-15 * np.sin(70 * t)) == 0
    plateau = lowest(lambda t: 3 - np.tanh(3 * (t - 1)), lambda t: -3 / np.cosh(3 * (t - 1)) ** 2)
    assert 3.5 < plateau < 6


@pytest.mark.parametrize("sign", [1, -1])
def test_a_minimum_at_an_end_is_none(sign):
    """Also where a higher one lies inside."""
    assert np.isnan(lowest(lambda t: 10 + sign * t))
    assert np.isnan(lowest(lambda t: 10 + sign * t + np.cos(2 * t)))


def test_what_is_not_known():
    """Gaps are bridged as long as the function itself is known where it is needed."""
    value = pits(-3.0, 4.0, 0.5)
    assert lowest(value, blind=lambda t: abs(t - 4) < 0.8) == pytest.approx(4, abs=0.01)
    assert np.isnan(lowest(value, blind=lambda t: t > 3.4))
    assert np.isnan(lowest(value, blind=lambda t: t < np.inf))
    seen = value(SCAN), np.gradient(value(SCAN), SCAN)
    assert np.isnan(lowest_minimum(lambda t: (np.nan, np.nan), SCAN, *seen, xtol=1e-9))
