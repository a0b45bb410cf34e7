"""All minima of a function on a grid."""

import numpy as np
import pytest

from solvers.box_minima import minima, rough_minima


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

    low, high = rough_minima(f, np.linspace(-2, 2, 17), flat=1e-3, xtol=1e-2)
    assert (low.argmin[0], high.argmin[0]) == pytest.approx((-1.0136, 0.9858), abs=2e-2)
    assert low.at_edge == high.at_edge == ()
    (near_end,) = rough_minima(
        lambda x: 1 + (x - 1.9) ** 2, np.linspace(-2, 2, 5), flat=1e-3, xtol=1e-2
    )
    assert near_end.argmin == pytest.approx(1.9, abs=1e-2)  # inside the last cell
    assert not near_end.at_edge
    (end,) = rough_minima(lambda x: f(x - 3), np.linspace(0, 1, 9), flat=1e-3, xtol=1e-2)
    assert (end.argmin[0], end.at_edge) == (1, (0,))
    (last,) = rough_minima(lambda x: f(x - 1) - 99 * x, np.linspace(2, 4, 9), flat=1e-3, xtol=1e-2)
    assert (last.argmin[0], last.at_edge) == (2.75, (0,))
    assert rough_minima(f, np.linspace(2, 3, 5), flat=1e-3, xtol=1e-2) == []
    axis, ripple = np.arange(5.0), [2, 1, 2, 1.9999, 2]  # at 3 lower by less than is known
    (deep,) = rough_minima(lambda x: np.interp(x, axis, ripple), axis, flat=1e-3, xtol=1e-2)
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


def test_what_lies_beside_the_unknown_is_at_an_edge():
    def half_known(x):
        return np.where(x > 2.1, np.nan, -x)

    (only,) = minima(half_known, [np.linspace(0, 10, 21)])
    assert only.at_edge == (0,)
    assert minima(lambda x: x * np.nan, [np.linspace(0, 1, 5)]) == []
