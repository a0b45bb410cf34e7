"""Averages over the labels given the local field: steps in closed form, others as series."""

import numpy as np
import pytest
from scipy.special import ndtr

import replica
from replica import Loss, SpikedRandomFeatures
from replica.convex.averages import scores
from replica.convex.classification import classification_error
from replica.convex.equations import Equations, PointsOnTable
from replica.convex.label_tables import Level, label_table
from replica.convex.local_field import Field
from replica.convex.solve import solve_points
from tests.convex.problems import MODELS, SIGN, by_nodes

ONE = np.ones(1)


THREE = SpikedRandomFeatures(  # P(y = 1) in three steps of z, two of them asymmetric
    student="relu",
    target=replica.Activation(
        lambda z: np.where(z > 0.7, 1.0, np.where(z > -0.4, -1.0, 1.0)), kinks=(-0.4, 0.7)
    ),
    r=0.8,
    c=1.0,
    gamma=0.6,
    label_noise="flip:0.05",
)


@pytest.mark.parametrize("model", [SIGN, MODELS["flipped"], THREE], ids=["sign", "flip", "three"])
@pytest.mark.parametrize("loss", ["logistic", "absolute"])
def test_steps_are_summed_exactly(model, loss):
    """The closed form of the label's law given the local field, against Bayes' rule on 104 or
    more nodes of tau that split at the steps (1e-8, their own error)."""
    given = label_table(model, Level(2, 6, 3))
    labels = given.labels
    of = replica.loss(loss)
    summed = by_nodes(
        Loss(of.value, of.derivative, kind=of.kind, kinks=of.kinks, curvature=of.second)
    )
    overlaps = solve_points(PointsOnTable(given, of, ONE, 0.1 * ONE))[0].overlaps
    field = Equations(given, of).field(overlaps)
    assert labels.steps is not None
    exact = scores(labels, summed, field)
    for mine, theirs in zip(exact, scores(labels._replace(steps=None), summed, field), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-7, abs=1e-8)
    by_steps = classification_error(model, overlaps, 1e-9)[0]
    # the same from its definition, kappa and tau summed
    ((tau, weights, mean, *_),) = labels.components
    centre = field.centre[..., None] + np.einsum("pnk,ntk->pnt", field.pull, tau)
    sd = np.sqrt(field.power - (field.pull**2).sum(axis=-1))[..., None]
    below = ndtr(-centre / sd)
    up = (1 + mean) / 2
    wrong = (weights * (up * below + (1 - up) * (1 - below))).sum(axis=-1)
    # 54 nodes of kappa leave 1e-4 of the decision's layer
    assert by_steps == pytest.approx(wrong @ given.table.weights, abs=2e-4)


@pytest.mark.parametrize("pull", [0.0, 0.2, 0.6])
def test_a_smooth_teacher_is_summed_as_a_series(pull):
    """Mehler's series given the local field against Bayes' rule on 76 nodes of tau, for a
    prediction whose correlation with tau is ``pull``: rounding, and no term below 1e-12."""
    table, labels = label_table(MODELS["logistic teacher"], Level(5, 8, 5))
    assert labels.series is not None
    shape = (1, table.weights.size)
    field = Field(
        centre=0.3 * table.kappa,
        pull=np.full((*shape, 1), 2 * pull),
        power=np.full(shape, 4.0),
        response=np.full(shape, 1.5),
    )
    of = replica.loss("logistic")
    exact = scores(labels._replace(series=None), of, field)
    found = scores(labels, of, field)
    for mine, theirs in zip(found, exact, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-11)
