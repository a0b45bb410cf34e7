"""Averages over the labels given the local field: steps in closed form, others by nodes."""

import numpy as np
import pytest
from scipy.special import ndtr

import replica
from replica import SpikedRandomFeatures
from replica.convex import classification_error
from replica.convex.averages import scores
from replica.convex.equations import Equations
from replica.convex.label_tables import labels_at, tau_rule
from replica.saddle_point import field_at_nodes, responses_of, ridge
from solvers.rules import trapezoid
from tests.convex.problems import MODELS, SIGN, by_nodes, change_on, labels_on

ONE = np.ones(1)

STEPS = replica.Activation(
    lambda z: np.where((z > -0.4) & (z <= 0.7), -1.0, 1.0), kinks=(-0.4, 0.7)
)
THREE = SpikedRandomFeatures(  # P(y = 1) in three steps of z, two of them asymmetric
    student="relu", target=STEPS, r=0.8, c=1.0, gamma=0.6, label_noise="flip:0.05"
)


@pytest.mark.parametrize("model", [SIGN, MODELS["flipped"], THREE], ids=["sign", "flip", "three"])
@pytest.mark.parametrize("loss", ["logistic", "absolute"])
def test_steps_are_summed_exactly(model, loss):
    """The closed form of the label's law given the local field, against Bayes' rule on 200
    nodes of tau that split at the steps (1e-8, their own error)."""
    given = labels_on(model, trapezoid(54, 7.9))
    labels, of, summed = given.labels, replica.loss(loss), by_nodes(loss)
    start = ridge.solve_points(given.table, ONE, 0.1 * ONE).overlaps
    overlaps, _ = Equations(given, of).solve(ONE, 0.1 * ONE, start)
    field = field_at_nodes(responses_of(given.table), overlaps)
    assert labels.steps is not None
    exact = scores(labels, summed, field)
    for mine, theirs in zip(exact, scores(labels._replace(steps=None), summed, field), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-7, abs=1e-8)
    by_steps = classification_error(model, overlaps, 1e-9)[0]
    # the same from its definition, kappa and tau summed
    tau, weights, mean, *_ = labels
    centre = field.centre[..., None] + np.einsum("pnk,ntk->pnt", field.tau_slope, tau)
    sd = np.sqrt(field.variance - (field.tau_slope**2).sum(axis=-1))[..., None]
    below = ndtr(-centre / sd)
    up = (1 + mean) / 2
    wrong = (weights * (up * below + (1 - up) * (1 - below))).sum(axis=-1)
    # 54 nodes of kappa leave 1e-4 of the decision's layer
    assert by_steps == pytest.approx(wrong @ given.table.weights, abs=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [2.0, 20.0])
def test_labels_of_a_steep_teacher_are_resolved(alpha):
    """P(y = 1) = 1 / (1 + exp(-6 z)), nearly all of z beside the spike: to the 1e-6 promised, on
    200 nodes over kappa, 200 over tau."""
    model = SpikedRandomFeatures(
        student="he1+0.3*he2", target="6*he1", r=0.1, c=1.0, gamma=0.1, label_noise="logistic"
    )
    point = replica.solve(model, alpha=alpha, lam=0.1, loss="logistic")
    fine = labels_on(model, trapezoid(200, 9.0))
    assert change_on(fine, replica.loss("logistic"), point) < 1e-6


@pytest.mark.parametrize(
    ("model", "lam"),
    [
        (MODELS["outliers"], 0.1),
        # without noise t0 is nearly a function of tau, which have nodes one by one
        (SpikedRandomFeatures(student="tanh", target="he2", r=1.1, c=1.0, gamma=0.5), 10.0),
    ],
)
def test_kinks_of_a_user_are_split(model, lam):
    """The averages over the local field of an absolute loss given as functions, real labels:
    1e-7, with a slope that is spread over V and divided by it."""
    given, of = labels_on(model, trapezoid(30, 6.5)), replica.loss("absolute")
    overlaps = ridge.solve_points(given.table, ONE, lam * ONE).overlaps
    field = field_at_nodes(responses_of(given.table), overlaps)
    exact = scores(given.labels, of, field)
    own = scores(given.labels, by_nodes("absolute"), field)
    # where kappa and tau are unlikely together there are no nodes: 1e-11 of tau at kappa = 4
    weights, likely = given.table.weights, np.abs(given.table.kappa[0]) < 4
    for mine, named in zip(own, exact, strict=True):
        assert mine[:, likely] == pytest.approx(named[:, likely], rel=1e-7, abs=1e-7)
        mine, named = (x.reshape(weights.size, -1).T * weights for x in (mine, named))
        assert mine == pytest.approx(named, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("level", [0, 2])
def test_kinks_of_two_directions_of_which_one_is_left(level):
    """sign(z1) sign(z2 + 1) given z1, along the spike: 2 Phi(1) - 1 times sign(z1), on nodes over
    z2 that split at -1 (1e-9: the interval's ends)."""
    step = replica.GradientStep(
        student="tanh", target="sign(z1)*sign(z2 + 1)", alpha0=np.inf, eta=1.0
    )
    model = step.srf(beta=1.0)
    places, _ = model.components.places_and_weights(trapezoid(24))
    labels = labels_at(model, places, tau_rule(model, places, level), 6)
    expected = np.sign(places.z[0]) * (2 * ndtr(1) - 1)
    found = (labels.weights * labels.mean).sum(axis=1)
    assert found == pytest.approx(expected, abs=1e-9)
    # which solves (4.5), its averages by panels over z and 6001 nodes of the field, to 6e-8; a rule
    # that does not split was off by 4e-4
    point = replica.solve(model, alpha=2.0, lam=0.1, loss="hinge")
    assert point.test_error == pytest.approx(2.1937283, rel=1e-6)


@pytest.mark.slow
def test_jumps_in_two_directions_given_kappa():
    """A quotient and the same in coordinates turned by 45 degrees: test errors to the 1e-10 that
    averages settle to, and classification errors, which were off by 7e-4, to the 1e-8 that these
    are asked for, beside .49769531142106: 300 nodes of kappa with 70 a panel over each of tau, of
    which 200 with 30 a panel differ by less than 1e-15."""
    a, means = np.sqrt(0.5), np.array([[1.0, 0], [-1, 0.5]])
    turn, errors = np.array([[a, -a], [a, a]]), []
    for text, U in (("sign((z1 + z2)/(z1 - z2))", np.eye(2)), ("sign(z2/z1)", turn)):
        inputs = replica.GaussianMixture(means=means @ U.T)
        step = replica.GradientStep(student="tanh", target=text, alpha0=2.0, eta=1.0, inputs=inputs)
        point = replica.solve(step.srf(beta=1.0), alpha=1.0, lam=0.1)
        errors.append([point.test_error, point.classification_error])
    assert errors[0][0] == pytest.approx(errors[1][0], rel=1e-10)
    assert [one[1] for one in errors] == pytest.approx([0.49769531142106] * 2, abs=1e-8)
