"""The search for the best bias, on functions of one variable; and what models tell it, the slope
of the training objective and looks at it.  Models have the whole in test_groups and test_convex."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import replica
from replica import MultiIndex, SpikedRandomFeatures
from replica.convex.common_bias import objective
from replica.observables import evaluate as ladders
from replica.observables.bias_walk import looks
from replica.observables.solution import evaluate
from replica.observables.trained_bias import RANGE, Looks, best_bias, scan

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
        t = scan()
        values = self.exact(t) * (1 + self.error * np.sin(40 * t))
        seen = np.where(self.blind(t), np.nan, [values, self.slope(t)])
        return Looks(t, *seen, lambda place: 3.0 * self.error)

    def lowest(self):
        fine = np.linspace(-RANGE, RANGE, 320_001)
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
        "between": lambda t: (t == scan()[np.argmin(abs(scan() - middle))]) & (apart > 5),
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
        plateau.looks = lambda plateau=plateau: Looks(
            scan(), plateau.exact(scan()), plateau.slope(scan()), lambda place: 1e-9
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
        Looks(scan(), jump.exact(scan()), 2 * scan(), lambda place: 0.0),
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


ONE = SpikedRandomFeatures(student="relu", target="sign", r=1.5, c=1.3, gamma=0.8)
THREE = SpikedRandomFeatures(
    student="tanh",
    target="sin",
    r=(1.5, -0.7, 0.3),
    c=(1.3, 1.1, 1.0),
    fractions=(0.5, 0.3, 0.2),
    gamma=0.8,
    noise=0.1,
    intercept=True,
    beta=0.7,
)
OPPOSITE = replace(THREE, r=(1.5, -1.5), c=(1.3, 1.3), fractions=(0.5, 0.5), intercept=False)
PLANE = SpikedRandomFeatures(
    student="softplus",
    target=MultiIndex(lambda x, y: x * np.tanh(y), 2, name="x tanh(y)"),
    r=((0.9, 0.4),),
    c=1.1,
    gamma=((0.8, 0.1), (0.2, 0.7)),
    noise=0.2,
)


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (ONE, "square"),
        (ONE, "logistic"),
        (ONE, "squared_hinge"),
        (replace(ONE, label_noise="flip:0.1"), "square"),
        (THREE, "square"),
        (THREE, "huber:0.5"),
        (replace(THREE, student="relu", dimension=500.0), "square"),
        (OPPOSITE, "square"),
        (OPPOSITE, "huber:0.5"),
        (replace(OPPOSITE, label_noise="student:4:0.5"), "huber:0.5"),
        (PLANE, "square"),
        (PLANE, "huber:0.5"),
    ],
    ids=lambda part: getattr(part, "name", None),
)
@pytest.mark.parametrize("bias", [0.0, 0.4])
def test_slope_of_the_objective(model, loss, bias):
    """dE/dt against a difference of order 4 of E itself, whose step leaves it 1e-7; what tables
    leave changes little over the step, as long as they are of one size: the least that there is
    for PLANE.  OPPOSITE's groups respond alike where the bias is 0, and E is even."""
    alpha, lam, step = np.array([1.7, 2.0]), np.array([0.03, 1.0]), 0.02
    tol = 1e-5 if model is PLANE else 1e-7

    def at(t):
        there = model.with_bias(t, train_bias=True)
        of = replica.loss(loss)
        one = ladders.climb(there, alpha, lam, of, 1e-10 if ladders.is_ridge(model, of) else tol)
        assert one.converged.all()
        return objective(one.losses.train, one.points.overlaps, alpha, lam, model.beta), one.slope

    values = [at(bias + k * step)[0] for k in (-2, -1, 1, 2)]
    by_difference = np.dot([1 / 12, -2 / 3, 2 / 3, -1 / 12], values) / step
    assert at(bias)[1] == pytest.approx(by_difference, rel=2e-6, abs=1e-7)


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (ONE, "logistic"),
        (ONE, "hinge"),
        (replace(ONE, target="sin", label_noise="outliers:0.1:9"), "absolute"),
        (OPPOSITE, "huber:0.5"),
    ],
)
def test_looks_tell_how_far_they_are_off(model, loss):
    """At every third bias that was seen and has a solution; most biases are."""
    alpha, lam = np.array([2.0]), np.array([0.1])
    seen = looks(replace(model, train_bias=True), replica.loss(loss), alpha, lam)
    places = np.flatnonzero(np.isfinite(seen.values))
    assert places.size > 20
    checked = 0
    for place in places[::3]:
        there = model.with_bias(float(seen.at[place]))
        one = evaluate(there, alpha, lam, loss=loss)
        if one.converged[0]:
            exact = objective(one.losses.train, one.points.overlaps, alpha, lam, model.beta)[0]
            assert abs(seen.values[place] - exact) <= seen.doubt(int(place)), seen.at[place]
            checked += 1
    assert checked > 6


@pytest.mark.parametrize(
    ("fields", "alpha", "lam", "loss"),
    [
        (dict(student="erf", r=0.11669, c=1.58311, gamma=0.584988, beta=2), 2.231, 0.089, "square"),
        (
            dict(student="erf", r=0.11669, c=1.58311, gamma=0.584988, beta=2, bias=0.25),
            2.231,
            0.089,
            "square",
        ),
        (
            dict(student="erf", r=0.11669, c=1.58311, gamma=0.584988, beta=2),
            2.231,
            0.089,
            "huber:0.5",
        ),
        (dict(student="tanh", r=0.02289, c=1.5947, gamma=0.6593), 3.857, 0.0073, "square"),
        (dict(student="tanh", r=0.0322, c=0.077, gamma=0.215), 1.5205, 0.00676, "square"),
    ],
)
def test_no_fixed_bias_is_lower(fields, alpha, lam, loss):
    """Nearly linear students have a narrow basin next to a wide one, behind a low barrier; the
    wide one's bottom is 10 to 30 % higher."""
    model = SpikedRandomFeatures(target="relu", train_bias=True, **fields)
    a, penalty = np.array([alpha]), np.array([lam])

    def value(there):
        one = evaluate(there, a, penalty, loss=loss)
        return objective(one.losses.train, one.points.overlaps, a, penalty, model.beta)[0], one

    least, found = value(model)
    assert found.converged.all()
    fixed = [value(model.with_bias(float(t)))[0] for t in np.linspace(-1, 1, 21)]
    assert least <= np.nanmin(fixed) * (1 + 1e-9)


def test_the_slope_vanishes_at_the_trained_bias():
    """To what the last step of the search leaves, 1e-5, times a curvature of order one."""
    for loss in ("square", "logistic", "hinge"):
        model = replace(ONE, train_bias=True)
        one = evaluate(model, np.array([2.0]), np.array([0.1]), loss=loss)
        assert one.converged.all()
        assert abs(one.slope[0]) < 1e-5
        assert one.bias[0] > 0
