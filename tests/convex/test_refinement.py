"""Points on finer tables: every axis as far as it needs, and what is left."""

from functools import partial

import numpy as np
import pytest

from replica import Loss, SpikedRandomFeatures, solve
from replica.convex.equations import Equations, PointsOnTable
from replica.convex.evaluation import Evaluation, Task
from replica.convex.label_tables import Level, axes, first_level, label_table, within
from replica.convex.refinement import _ahead, _left
from replica.convex.solve import slopes_near, solve_points
from replica.convex.table_change import change_of_overlaps, change_of_points

OUTLIERS = SpikedRandomFeatures(
    student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97, noise=0.05, label_noise="outliers:0.1:9"
)


STUDENT = SpikedRandomFeatures(
    student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97, beta=1.5, label_noise="student:3:0.3"
)


KINKED = Loss(  # and not piecewise quadratic
    value=lambda t: np.abs(t) + 0.3 * np.sqrt(1 + t * t),
    derivative=lambda t: np.sign(t) + 0.3 * t / np.sqrt(1 + t * t),
    curvature=lambda t: 0.3 * (1 + t * t) ** -1.5,
    kinks=(0.0,),
    name="kinked",
)


def test_a_smooth_loss_near_interpolation():
    """It needs nodes over kappa: against 288 of them and twice as many as are taken of the rest,
    in a solution of its own."""
    law = dict(student="tanh", target="sin", r=1.5, c=1.3, gamma=0.8, label_noise="outliers:0.1:9")
    model = SpikedRandomFeatures(**law)
    own = Loss(lambda t: np.logaddexp(t, -t), np.tanh, name="log-cosh")
    point = solve(model, alpha=0.5, lam=1e-3, loss=own, raise_on_failure=True)
    fine = label_table(model, Level(6, 8, 7))
    points, losses = solve_points(PointsOnTable(fine, own, np.array([0.5]), np.array([1e-3])))
    assert points.residual < 1e-8
    assert point.test_error == pytest.approx(points.errors.test[0], rel=1e-6)
    assert point.train_loss == pytest.approx(losses.train[0], rel=1e-6)


@pytest.mark.slow
def test_a_kinked_loss_with_thin_layers_in_kappa():
    """A solution asked for a hundredth of the tolerance, on more nodes."""
    law = dict(student="tanh", target="tanh", r=3.2, c=1.3, gamma=0.75, noise=0.1)
    at = dict(alpha=0.44, lam=2e-4, loss=KINKED, raise_on_failure=True)
    point = solve(SpikedRandomFeatures(**law), **at)
    fine = solve(SpikedRandomFeatures(**law), **at, quadrature_tol=1e-8)
    assert fine.nodes > point.nodes
    for name in ("test_error", "train_loss", "loss_error"):
        assert getattr(point, name) == pytest.approx(getattr(fine, name), rel=1e-6)


@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_distance_from_a_solution(lam):
    """With slopes of a finer table: how far its solution is from that of a coarser one, but for
    what is of second order."""
    model = OUTLIERS
    one, at = np.array([2.0]), np.array([lam])
    coarse, fine = (label_table(model, level) for level in (Level(0, 1, 1), Level(2, 4, 4)))
    points, lost = solve_points(PointsOnTable(fine, KINKED, one, at))
    other, _ = solve_points(PointsOnTable(coarse, KINKED, one, at))
    pack = Equations(fine, KINKED).coordinates.pack
    apart = np.abs(pack(other.overlaps) - pack(points.overlaps)).max()
    slopes = slopes_near(PointsOnTable(fine, KINKED, one, at), points.overlaps)
    assert 1e-5 < apart < 1e-2
    found = change_of_overlaps(PointsOnTable(coarse, KINKED, one, at), points.overlaps, slopes)
    assert found[0] == pytest.approx(apart, rel=0.1)
    assert (
        change_of_points(PointsOnTable(coarse, KINKED, one, at), points, lost, slopes)[0]
        >= found[0]
    )


def test_levels_end_where_rules_cease_to_grow():
    model = OUTLIERS
    assert axes(model, exact=True) == ["kappa", "tau"]
    assert axes(STUDENT, exact=False) == ["kappa", "tau", "field"]
    level = first_level(model)
    assert level.along("tau", by=2) == level._replace(tau=level.tau + 2)
    assert level.along(by=-1).along() == level
    assert within(model, level)
    for name in ("tau", "field"):
        steps = next(n for n in range(100) if not within(model, level.along(name, by=n)))
        last, beyond = (label_table(model, level.along(name, by=n)) for n in (steps - 1, steps))
        assert last.labels.size == beyond.labels.size
        assert last.labels.order == beyond.labels.order


def test_a_rough_table_without_a_solution():
    """The finer ones have one all the same."""
    sharp = Loss(lambda t: np.hypot(0.05, t) - 0.05, lambda t: t / np.hypot(0.05, t), bends=(0.0,))
    model = SpikedRandomFeatures(
        student="softplus", target="sign", r=2.294, c=1.464, gamma=0.487, beta=1.1346
    )
    point = solve(model, alpha=1.2458, lam=5.02e-4, loss=sharp, raise_on_failure=True)
    given = dict(alpha=1.2458, lam=5.02e-4, loss=sharp, quadrature_tol=1e-8)
    finer = solve(model, **given, raise_on_failure=True)
    assert point.test_error == pytest.approx(finer.test_error, rel=1e-6)


def test_an_axis_at_its_end_does_not_hold_up_the_others():
    first = first_level(OUTLIERS)

    def tables(level):
        return label_table(OUTLIERS, level) if level.tau <= first.tau else None

    after, fine, coarse = _ahead(tables, first, {"kappa": 1e3, "tau": 1e3})
    assert after == first.along("kappa", by=3)  # RATE**3 > 1e3
    assert fine is tables(after)
    assert coarse is tables(after.along(by=-1))
    assert _ahead(tables, first, {"tau": 1e3}) is None


def test_losses_alone_tell_an_axis():
    """Where the equations are solved on the level below already: of errors that were off by 1 %."""
    one, lam = np.array([2.0]), np.array([0.5])
    level = first_level(OUTLIERS).along(by=2)
    points, lost = solve_points(PointsOnTable(label_table(OUTLIERS, level), KINKED, one, lam))
    none = np.zeros(1)
    task = Task(OUTLIERS, KINKED, one, lam)
    for off, least, most in ((1.0, 0.0, 1e-6), (1.01, 9e-3, 1.1e-2)):
        found = Evaluation(points, lost._replace(train=off * lost.train), *[none] * 5)
        tables = partial(label_table, OUTLIERS)
        left = _left(task, found, None, level, tables, ["kappa", "tau", "field"], 1e-6)
        assert all(least <= size <= most for size in left.values())
