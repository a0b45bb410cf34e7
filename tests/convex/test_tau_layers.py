"""Kinked losses on labels with little noise: layers in tau, and where they come and go."""

from dataclasses import replace

import numpy as np
import pytest

import replica
from replica import SpikedRandomFeatures, solve
from replica.convex.averages import scores
from replica.convex.equations import PointsOnTable
from replica.convex.label_tables import Level, label_table, label_table_at
from replica.convex.layers import fields_at
from replica.convex.solve import solve_points
from replica.convex.table_change import change_of_points
from replica.convex.tau_layers import Line, line, plateaus, sharp, tangencies, tau_rules
from replica.equivalence.table import tabulate
from replica.observables import evaluate as evaluate_module
from solvers.rules import Rule, gauss_legendre

ONE = np.ones(1)


SIN = SpikedRandomFeatures(student="tanh", target="sin", r=1.5, c=1.3, gamma=0.8)


MODELS = {
    "sin": SIN,
    "relu": replace(SIN, target="relu"),
    "outliers": replace(SIN, label_noise="outliers:0.1:9"),
    "signs with outliers": replace(SIN, target="sign", label_noise="outliers:0.1:9"),
    "student": replace(SIN, label_noise="student:3:0.1"),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("loss", ["absolute", "huber:0.5"])
@pytest.mark.parametrize("lam", [0.1, 10.0])
def test_layers_in_tau_are_resolved(name, loss, lam):
    """Scores given kappa on 10 nodes a panel, against 8 on each of 2 400 even panels, and
    those that end at the kinks of the target; at lam = 10 S is .004 to .04.  1e-8: what layers
    thinner than are left alone at the rarest kappa may cost."""
    model, of = MODELS[name], replica.loss(loss)
    overlaps = solve_points(
        PointsOnTable(label_table(model, Level(1, 1, 1)), of, 2 * ONE, lam * ONE)
    )[0].overlaps
    kappa = Rule(np.linspace(-2.9, 2.9, 7), np.full(7, 1 / 7))
    table, field = fields_at(model, overlaps, kappa.nodes)
    law = model.labels.gaussians
    own = tau_rules(line(model, of, table.kappa, field), law, 10, 0.75)
    kinks = np.array(model.labels.mean.kinks).reshape(-1, 1) - 0.8 * table.kappa
    nodes, weights = gauss_legendre(8, kinks.T / 0.6, 8.2, panel=16.4 / 2400)
    dense = [Rule(nodes[..., None], weights)] * len(law)
    assert own[0].nodes.shape[1] < 1000 < nodes.shape[1]
    found, exact = (
        scores(
            label_table_at(model, tabulate(model, kappa), Level(2, 2, 2), rules).labels, of, field
        )
        for rules in (own, dense)
    )
    for mine, theirs in zip(found, exact, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-7, abs=1e-8)


def line_with(model, kappa, prediction, pull, sd, ends, least):
    one = np.ones(kappa.size)
    centre, thinnest = model.geometry.gamma @ kappa[None], np.full_like(ends, least)
    return Line(model, kappa[None], centre, prediction, pull * one, sd * one, ends, thinnest)


@pytest.mark.parametrize("speed", [0.0, -20.0])
@pytest.mark.parametrize("least", [1e-8, 0.1])
def test_where_layers_merge(speed, least):
    """D = z^2 - 1 - P tau has its vertex at z = P / (2 delta), z = gamma kappa + delta tau, and
    the vertex passes e + speed kappa where (P gamma / delta - speed) kappa = e + 1 +
    (P / (2 delta))^2."""
    model = replace(SIN, target="he2")
    gamma, delta, P, s = 0.8, 0.6, 0.3, 1e-3
    ends = np.array([-0.2, 0.1])

    def lines(kappa):
        return line_with(model, kappa, 0 * kappa, P, s, ends[:, None] + speed * kappa, least)

    found = tangencies(lines(np.linspace(-9.0, 9.0, 401)), lines)
    slope = P * gamma / delta - speed
    expected = (ends + 1 + (P / (2 * delta)) ** 2) / slope
    assert [at for at, _ in found] == pytest.approx(expected, abs=2e-5)  # intervals of 1e-5
    assert [width for _, width in found] == pytest.approx([max(s / slope, least)] * 2, rel=1e-3)


def test_wide_passages_are_placed_by_the_grid():
    """The same vertex where s = .1: layers .25 wide, between values of kappa .045 apart, over which
    D changes by (.8 x .045)^2 beside .018 as its vertex moves on: 7 % of the width."""
    model, asked = replace(SIN, target="he2"), []
    gamma, delta, P, s = 0.8, 0.6, 0.3, 0.1
    ends = np.array([-0.2, 0.1])

    def lines(kappa):
        asked.append(kappa.size)
        return line_with(model, kappa, 0 * kappa, P, s, ends[:, None] + 0 * kappa, 1e-8)

    found = tangencies(lines(np.linspace(-9.0, 9.0, 401)), lines)
    assert asked == [401]
    expected = (ends + 1 + (P / (2 * delta)) ** 2) / (P * gamma / delta)
    assert [at for at, _ in found] == pytest.approx(expected, abs=0.045)
    assert [width for _, width in found] == pytest.approx([s * delta / (P * gamma)] * 2, rel=0.08)


def test_where_plateaus_pass():
    """Of relu without noise D is -c kappa - P tau up to the kink at tau = -gamma kappa / delta: an
    end is passed there and at tau = -3; beyond the kink, too slowly to need any help."""
    model = replace(SIN, target="relu")
    gamma, delta, c, P, s, end = 0.8, 0.6, 1.0, 0.01, 1e-3, -0.3

    def lines(kappa):
        return line_with(model, kappa, c * kappa, P, s, np.full((1, kappa.size), end), 1e-8)

    found = plateaus(lines(np.linspace(-9.0, 9.0, 401)), lines)
    speed = c - P * gamma / delta
    expected = [(3.0 * P - end) / c, -end / speed]
    assert [at for at, _ in found] == pytest.approx(expected, abs=2e-5)  # intervals of 1e-5
    widths = [(s + P) / c, (s + P) / speed]
    assert [width for _, width in found] == pytest.approx(widths, rel=1e-3)


def test_a_jump_that_comes_from_far_out_is_no_plateau():
    """D = +-1 without a prediction passes .3 where the sign changes alone, at every tau."""
    model = replace(SIN, target="sign")

    def lines(kappa):
        return line_with(model, kappa, 0 * kappa, 1e-6, 1e-3, np.full((1, kappa.size), 0.3), 1e-8)

    assert plateaus(lines(np.linspace(-9.0, 9.0, 401)), lines) == []


@pytest.mark.parametrize(
    ("target", "loss", "lam"),
    [
        ("relu", "huber:0.5", 80.0),
        ("relu", "absolute", 1e3),
        (replica.Activation(lambda z: np.tanh(3 * z), name="steep"), "huber:0.5", 1e3),
    ],
)
def test_plateaus_are_no_obstacle(target, loss, lam):
    """Labels that do not change over half of tau, at large penalties: what 6 nodes on each of 800
    panels over kappa leave of the equations, .01 long where layers are .001 wide.  Such points
    used to be flagged."""
    model = SpikedRandomFeatures(
        student="gelu", target=target, r=0.75, c=1.3, gamma=0.58, beta=0.25, label_noise=None
    )
    of, point = replica.loss(loss), (0.3 * ONE, lam * ONE)
    found = evaluate_module.evaluate_convex(model, *point, of, None)
    assert found.converged
    assert found.nodes < 450
    rule = gauss_legendre(6, np.linspace(-4, 4, 801), 9.0)
    table, field = fields_at(model, found.points.overlaps, rule.nodes)
    over_tau = tau_rules(line(model, of, table.kappa, field), model.labels.gaussians, 12, 0.75)
    dense = label_table_at(model, tabulate(model, rule), Level(2, 2, 2), over_tau)
    assert change_of_points(PointsOnTable(dense, of, *point), found.points, found.losses) < 1e-6


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name == "signs with outliers"))
        for name in MODELS
    ],
)
@pytest.mark.parametrize("loss", ["quantile:0.3", "huber:0.5"])
def test_little_noise_is_no_obstacle(name, loss):
    """The derivative of the optimal objective is sum q2 / 2.  Differences of relative steps 1/20
    and 1/10 err by 20^-4 / 30 = 2e-7 of the fifth derivative, and by 8 / .6 of what the loss
    does, 1e-6 of which is allowed and 1e-8 seen.  Most such points used to be flagged."""
    model, alpha, lam, h = MODELS[name], 2.0, 1.0, 0.05
    middle = solve(model, alpha=alpha, lam=lam, loss=loss, raise_on_failure=True)
    assert middle.nodes < 500

    def objective(at):
        one = solve(model, alpha=alpha, lam=at, loss=loss, raise_on_failure=True)
        return alpha / model.beta * one.train_loss + 0.5 * at * one.overlaps.q2.sum()

    near, far = (objective(lam * (1 + k * h)) - objective(lam * (1 - k * h)) for k in (1, 2))
    slope = (8 * near - far) / (12 * h * lam)
    assert slope == pytest.approx(0.5 * middle.overlaps.q2.sum(), rel=1e-5, abs=2e-7)


def test_noise_of_their_own_blurs_the_kinks():
    """Then the shared tables serve."""
    absolute = replica.loss("absolute")
    assert sharp(SIN, absolute)
    assert sharp(MODELS["outliers"], absolute)
    assert not sharp(replace(SIN, noise=0.1), absolute)
    assert not sharp(replace(SIN, label_noise="student:3:0.5"), absolute)
    assert not sharp(SIN, replica.loss("square"))
    assert not sharp(replace(SIN, target="sign"), replica.loss("hinge"))
    assert not sharp(replace(SIN, gamma=1.0), absolute)  # no tau
