"""All minima of a function on a grid, and the lowest where a rough scan of it is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.minima import lowest_minimum, minima


def test_all_minima_are_found():
    """A polynomial of known minima in one variable, their products in two."""
    roots = np.array([-1.3, -0.4, 0.2, 0.9, 1.4])
    f = np.polynomial.Polynomial.fromroots(roots).integ()
    (low, *_) = found = minima(f, [np.linspace(-2, 2, 24)])
    assert sorted(one.argmin[0] for one in found if not one.at_edge) == pytest.approx(
        roots[::2], abs=1e-9
    )
    assert low.value == pytest.approx(min(f(roots)), rel=1e-12)
    pairs = minima(
        lambda x, y: f(x)[:, None] + f(y), [np.linspace(-1.6, 1.6, 18), np.linspace(-1.6, 1.6, 18)]
    )
    assert sum(not one.at_edge for one in pairs) == 9
    assert pairs[0].argmin == pytest.approx([low.argmin[0]] * 2, abs=1e-8)
    assert minima(lambda x: np.full(x.size, np.nan), [np.arange(4.0)]) == []


def test_minima_of_what_is_known_roughly():
    """Steps of the size of the tolerance are no basins; ends, and those of what is known, are."""

    def f(x):
        rough = 1 + (x**2 - 1) ** 2 + x / 9 + 1e-5 * np.sign(np.sin(300 * x))
        return np.where(x < 1.8, rough, np.nan)

    low, high = minima(f, [np.linspace(-2, 2, 17)], rtol=1e-3)
    assert (low.argmin[0], high.argmin[0]) == pytest.approx((-1.0136, 0.9858), abs=2e-2)
    assert low.at_edge == high.at_edge == ()
    (near_end,) = minima(lambda x: 1 + (x - 1.9) ** 2, [np.linspace(-2, 2, 5)], rtol=1e-3)
    assert near_end.argmin == pytest.approx(1.9, abs=1e-2)  # inside the last cell
    assert not near_end.at_edge
    (end,) = minima(lambda x: f(x - 3), [np.linspace(0, 1, 9)], rtol=1e-3)
    assert (end.argmin[0], end.at_edge) == (1, (0,))
    (last,) = minima(lambda x: f(x - 1) - 99 * x, [np.linspace(2, 4, 9)], rtol=1e-3)
    assert (last.argmin[0], last.at_edge) == (2.75, (0,))
    assert minima(f, [np.linspace(2, 3, 5)], rtol=1e-3) == []
    axis, ripple = np.arange(5.0), [2, 1, 2, 1.9999, 2]  # at 3 lower by less than is known
    (deep,) = minima(lambda x: np.interp(x, axis, ripple), [axis], rtol=1e-3)
    assert deep.argmin[0] == pytest.approx(1, abs=1e-2)


@pytest.mark.parametrize(("low", "points"), [(0.3, 12), (9.0, 17)])
def test_an_oblique_valley_is_followed_out_of_its_cell(low, points):
    """The lowest point of a scan is cells away from the minimum, which may lie at an end."""
    (found,) = minima(
        lambda x, y: 1 + 40 * (x[:, None] - y) ** 2 + (x[:, None] + y - 2 * low) ** 2 / 100,
        [np.linspace(-5, 5, points), np.linspace(-5, 5, 17)],
    )
    assert found.argmin == pytest.approx([min(low, 5)] * 2, abs=1e-6)
    assert found.at_edge == (() if low < 5 else (0, 1))


def test_a_plateau_is_the_end_that_it_reaches():
    """What rounding alone makes lower than an end of the scan is no minimum inside."""
    x = np.linspace(0, 10, 41)

    def step(x):
        return 23.0 + np.maximum(x - 6, 0) ** 2 - 1e-13 * np.sin(7 * x)

    (only,) = minima(step, [x])
    assert only.argmin.tolist() == [0.0]
    assert only.at_edge == (0,)


def test_a_minimum_next_to_unknown_values_is_itself_known():
    """Of x^2 + 1 known from c on: within a cell of the scan above c, or at 0."""
    cell = 0.25
    for c in np.linspace(-1.9, 1.9, 99):
        known = lambda x, c=c: np.where(x < c, np.nan, x**2 + 1)  # noqa: E731
        lowest = minima(known, [np.linspace(-2, 2, 17)], rtol=1e-4)[0]
        (place,) = lowest.argmin
        assert max(c, 0) - 1e-2 <= place <= max(c, 0) + cell
        assert lowest.value == pytest.approx(known(place), rel=1e-4)
        assert lowest.at_edge or abs(place) < 1e-2


def test_what_lies_beside_the_unknown_is_at_an_edge():
    def half_known(x):
        return np.where(x > 2.1, np.nan, -x)

    (only,) = minima(half_known, [np.linspace(0, 10, 21)])
    assert only.at_edge == (0,)
    assert minima(lambda x: x * np.nan, [np.linspace(0, 1, 5)]) == []


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
