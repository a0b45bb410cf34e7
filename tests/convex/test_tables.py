"""Tables of convex losses: kinks that are split at, and slopes taken from one to another."""

import numpy as np
import pytest

import replica
from replica import Loss, solve
from replica.convex.averages import scores
from replica.convex.coordinates import Coordinates
from replica.convex.equations import Equations, PointsOnTable
from replica.convex.label_tables import Level, label_table
from replica.convex.solve import slopes_near, solve_points
from replica.saddle_point import ridge
from tests.convex.problems import MODELS, by_nodes


def test_kinks_of_a_user_are_split():
    """The averages over the local field of an absolute loss given as functions, real labels:
    1e-7, six to nine nodes a panel and two more panels for the kinks."""
    given = label_table(MODELS["outliers"], Level(1, 1, 1))
    labels = given.labels
    equations = Equations(given, replica.loss("absolute"))
    one = np.ones(1)
    overlaps = ridge.solve_points(given.table, one, 0.1 * one).overlaps
    field = equations.field(overlaps)
    exact = scores(labels, replica.loss("absolute"), field)
    mine = by_nodes(Loss(np.abs, np.sign, curvature=np.zeros_like, kinks=(0.0,)))
    own = scores(labels, mine, field)
    # where kappa and tau are unlikely together there are no nodes: 1e-9 of tau at kappa = 5
    weights, likely = given.table.weights, np.abs(given.table.kappa[0]) < 5
    for mine, named in zip(own, exact, strict=True):
        assert mine[:, likely] == pytest.approx(named[:, likely], rel=1e-7, abs=1e-7)
        mine, named = (x.reshape(weights.size, -1).T * weights for x in (mine, named))
        assert mine == pytest.approx(named, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("readout", ["rademacher", [0.5, 1.0, 1.5]])
def test_slopes_of_another_table(readout):
    """The combinations of offsets of two tables differ in sign, or are turned: slopes of the
    equations found on one, in the coordinates of the other, are those found there, to the 1e-4
    by which the tables differ."""
    step = dict(student="erf", target="sign", alpha0=5.0, eta=1.5, readout=readout)
    model = replica.GradientStep(**step, intercept=True).srf(beta=1.0)
    one, at, of = np.ones(1), 0.1 * np.ones(1), replica.loss("squared_hinge")
    coarse, fine = label_table(model, Level(2, 2, 2)), label_table(model, Level(3, 3, 3))
    overlaps = solve_points(PointsOnTable(fine, of, one, at))[0].overlaps
    first, second = (
        slopes_near(PointsOnTable(table, of, one, at), overlaps) for table in (coarse, fine)
    )
    turned = second.coordinates.slopes_from(first.coordinates, first.matrix)
    assert turned == pytest.approx(second.matrix, abs=1e-3)


@pytest.mark.slow
def test_tables_with_more_combinations_of_offsets():
    """Of a Gaussian readout finer tables tell more groups apart: slopes of a coarse one are of no
    use, and the point is solved without."""
    step = dict(student="tanh", target="sign", alpha0=1.0, eta=1.5, readout="gaussian")
    model = replica.GradientStep(**step).srf(beta=1.0)
    sizes = {
        Coordinates(label_table(model, Level(level, level, level)).table).combine.shape[1]
        for level in range(4)
    }
    assert len(sizes) > 1
    assert solve(model, alpha=2.0, lam=1.0, loss="huber:0.5").converged
