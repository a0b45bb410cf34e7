"""Thin layers of a convex loss: labels summed over their steps, panels that close in, and how few
nodes a point takes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

import replica
from replica import Loss, SpikedRandomFeatures, solve
from replica.convex.averages import scores
from replica.convex.equations import Equations, PointsOnTable
from replica.convex.label_tables import Level, first_level, label_table, label_table_at
from replica.convex.layers import REACH, decision, kinks_of, layers_near, panels
from replica.convex.solve import solve_points
from replica.equivalence.table import tabulate
from solvers.rules import gauss_legendre, trapezoid
from tests.convex.problems import MODELS, SIGN, by_nodes
from tests.oracles.equations_convex import original_residuals

ONE = np.ones(1)


@pytest.mark.parametrize("lam", [1.0, 10.0, 1e3])
@pytest.mark.parametrize("name", ["sign", "flipped", "logistic teacher"])
def test_large_penalties_take_no_more_nodes(name, lam):
    """The unknowns are as smooth in kappa as at small penalties: the layer of the decision, which
    thins as 1 / lam, has panels of its own."""
    for alpha in (0.5, 2.0, 10.0):
        point = solve(MODELS[name], alpha=alpha, lam=lam, loss="logistic")
        assert point.converged
        assert point.nodes <= 128
        assert point.iterations <= 12  # of the last level, from the one before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "lam"),
    [
        (0.5, 0.01),
        pytest.param(0.5, 3.0, marks=pytest.mark.slow),
        pytest.param(2.0, 10.0, marks=pytest.mark.slow),
    ],
)
def test_thin_layers_of_the_hinge(alpha, lam):
    """Points whose layers even spacings do not resolve, against the equations as printed: 1500
    nodes of kappa and 4001 of omega, .005 apart, leave 1e-3 of the jumps of s'."""
    point = solve(SIGN, alpha=alpha, lam=lam, loss="hinge")
    assert point.converged
    assert point.nodes < 600
    found = original_residuals(SIGN, alpha, lam, replica.loss("hinge"), point, kappa=1500)
    assert abs(found.pop("classification")) < 1e-4
    assert max(map(abs, found.values())) < 2e-3, found


@pytest.mark.parametrize("name", ["sign", "flipped"])
def test_hinge_at_a_large_penalty(name):
    """lam -> inf: the best hinge loss of mu_0(kappa) m by an independent minimisation, its kinks
    split at; corrections are of order 1 / lam."""
    model = MODELS[name]
    point = solve(model, alpha=2.0, lam=1e5, loss="hinge")

    def mean_loss(m):
        even = tabulate(model, trapezoid(401))
        at = np.interp([-1 / m, 1 / m], even.offsets[0], even.kappa[0])
        table = tabulate(model, gauss_legendre(20, at))
        positive, f = (1 + table.h) / 2, m * table.offsets[0]
        both = positive * np.maximum(0, 1 - f) + (1 - positive) * np.maximum(0, 1 + f)
        return table.weights @ both

    best = minimize_scalar(mean_loss, bounds=(1.2, 6), method="bounded", options={"xatol": 1e-9})
    # the kinks are split at to 1e-3 of kappa
    assert point.loss_error == pytest.approx(best.fun, rel=1e-5)
    assert point.overlaps.m[0] == pytest.approx(best.x, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss", ["squared_hinge", pytest.param("logistic", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("lam", [0.05, pytest.param(10.0, marks=pytest.mark.slow)])
def test_labels_that_the_spike_nearly_decides(loss, lam):
    """gamma = .999: the label changes within .04 of kappa = 0, and nodes further apart would see
    separable labels."""
    model = replace(SIGN, gamma=0.999)
    point = solve(model, alpha=2.0, lam=lam, loss=loss)
    assert point.converged
    found = original_residuals(model, 2.0, lam, replica.loss(loss), point, kappa=1500)
    # the decision's layer is .002 wide at the larger penalty, these nodes .01 apart; there
    # the class is that of the spike, to order 1 / lam
    wrong = found.pop("classification")
    if lam < 1:
        assert abs(wrong) < 1e-4
    else:
        assert point.classification_error == pytest.approx(np.arccos(0.999) / np.pi, rel=0.01)
    # s' of the squared hinge jumps: 1e-4 of 4001 nodes; the layer is resolved by either
    assert max(map(abs, found.values())) < (1e-9 if loss == "logistic" else 1e-3), found


@pytest.mark.parametrize("loss", ["square", "hinge", "logistic"])
def test_labels_that_the_spike_decides(loss):
    """gamma = 1: a jump in kappa, not blurred at all.  A readout along the spike that is all
    that is left at a large penalty errs on the flipped labels alone."""
    decided = replace(SIGN, gamma=1.0, label_noise="flip:0.1")
    errors = [
        solve(decided, alpha=2.0, lam=lam, loss=loss, raise_on_failure=True).classification_error
        for lam in (10.0, 1e3, 1e6)
    ]
    assert (np.diff(errors) < 0).all()
    assert errors[-1] == pytest.approx(0.1, abs=1e-4)  # the rest falls as 1 / lam


def test_panels_close_in_on_the_layers():
    """Of an odd student the decision changes at 0; kinks are reached where the loss says."""
    given = label_table(SIGN, Level(3, 3, 3))
    hinge = replica.loss("hinge")
    overlaps = solve_points(PointsOnTable(given, hinge, 2 * ONE, 10 * ONE))[0].overlaps
    rule = panels(SIGN, layers_near(SIGN, overlaps, decision), 6)
    near = np.sort(np.abs(rule.nodes))
    assert near[0] < 0.02  # S / C' is .06 there
    # every kappa has its share of the Gaussian; the last node short of 1.1 misses part of a cell
    share = rule.weights[np.abs(rule.nodes) < 1.1].sum()
    assert share == pytest.approx(2 * ndtr(1.1) - 1, abs=0.05)
    kinked = kinks_of(hinge, True)
    rule = panels(SIGN, layers_near(SIGN, overlaps, kinked), 6)
    given = label_table_at(SIGN, tabulate(SIGN, rule), Level(1, 1, 1))
    field = Equations(given, hinge).field(overlaps)
    for level in kinked(given.table, field):
        at = np.argmin(np.abs(level))
        step = np.diff(rule.nodes)[max(at - 1, 0)]
        width = np.sqrt(field.power[0, at]) / np.abs(np.gradient(level, rule.nodes)[at])
        assert step < width
    assert rule.nodes.size < 250
    assert np.abs(rule.nodes).max() < REACH


@pytest.mark.parametrize("name", ["logistic teacher", "flipped"])
def test_wide_predictions_near_separable_labels(name):
    """At lam = 1e-4 predictions spread over tens of the scale on which the loss bends: the
    derivative of the objective is sum q2 / 2 to 1e-5 (differences of relative step 1e-3 err by
    1e-6). With 54 nodes of the local field, whatever its spread, it was off by 4e-3."""
    model, alpha, lam = MODELS[name], 2.0, 1e-4
    low, middle, high = (
        solve(model, alpha=alpha, lam=lam * (1 + change), loss="logistic")
        for change in (-1e-3, 0.0, 1e-3)
    )
    assert middle.converged
    rise = alpha / model.beta * (high.train_loss - low.train_loss)
    rise += 0.5 * (high.lam * high.overlaps.q2.sum() - low.lam * low.overlaps.q2.sum())
    assert rise / (high.lam - low.lam) == pytest.approx(0.5 * middle.overlaps.q2.sum(), rel=1e-5)


def test_penalties_whose_layers_the_first_table_misses():
    """Solved together with those for which it is fine: each as alone, and as on finer tables."""
    lam = np.geomspace(1e-4, 10, 6)
    curve = replica.learning_curve(SIGN, alpha=2.0, lam=lam, loss="logistic")
    assert curve.converged.all()
    for at in lam[:2]:
        together = curve.sel(alpha=2.0, lam=at)
        for tolerance in (1e-6, 1e-8):
            options = dict(alpha=2.0, lam=at, loss="logistic", quadrature_tol=tolerance)
            point = solve(SIGN, **options, raise_on_failure=True)
            for part in ("test_error", "train_loss", "classification_error"):
                # of which each is within 1e-6
                assert getattr(point, part) == pytest.approx(together[part].item(), rel=2e-6)


class Counted:
    """log cosh, counting where its derivative is asked for."""

    def __init__(self):
        self.nodes = 0

    def __call__(self, t):
        self.nodes += np.size(t)
        return np.tanh(t)


def test_a_users_loss_is_evaluated_at_few_nodes():
    """Nodes of t0 that serve all of tau and the laws of the noise one by one; a rule for every
    tau took 300 times as many."""
    derivative = Counted()
    own = Loss(lambda t: np.logaddexp(t, -t) - np.log(2), derivative, name="log-cosh")
    point = solve(MODELS["outliers"], alpha=2.0, lam=0.1, loss=own)
    assert point.converged
    assert derivative.nodes < 1e8


@pytest.mark.parametrize("name", ["outliers", "at a dimension"])
def test_a_users_kinks_on_real_labels(name):
    """The absolute loss as functions against the named one, whose averages are exact, on the same
    tables: to 1e-9, where the solver's tolerance is a thousandth of 1e-7."""
    own = by_nodes(Loss(np.abs, np.sign, curvature=np.zeros_like, kinks=(0.0,)))
    for alpha, lam in ((2.0, 0.1), (0.5, 0.05)):
        mine, named = (
            solve(MODELS[name], alpha=alpha, lam=lam, loss=loss, quadrature_tol=1e-7)
            for loss in (own, "absolute")
        )
        assert mine.nodes == named.nodes
        for part in ("test_error", "train_error", "train_loss", "loss_error"):
            assert getattr(mine, part) == pytest.approx(getattr(named, part), rel=1e-9)


def test_without_noise_every_tau_has_its_nodes():
    """Labels without noise and a large penalty: t0 is nearly a function of tau."""
    model = SpikedRandomFeatures(student="tanh", target="he2", r=1.1, c=1.0, gamma=0.5)
    own = by_nodes(Loss(np.abs, np.sign, curvature=np.zeros_like, kinks=(0.0,)))
    given = label_table(model, first_level(model))
    labels = given.labels
    points, _ = solve_points(PointsOnTable(given, replica.loss("absolute"), ONE, 10 * ONE))
    assert points.residual < 1e-10
    field = Equations(given, own).field(points.overlaps)
    exact = scores(labels, replica.loss("absolute"), field)
    # where kappa and tau are unlikely together there are no nodes: 1e-11 of tau at kappa = 4
    weights, likely = given.table.weights, np.abs(given.table.kappa[0]) < 4
    for mine, theirs in zip(scores(labels, own, field), exact, strict=True):
        # 11 nodes a panel, and a slope that is spread over V and divided by it
        assert mine[:, likely] == pytest.approx(theirs[:, likely], rel=1e-8, abs=1e-8)
        mine, theirs = (x.reshape(weights.size, -1).T * weights for x in (mine, theirs))
        assert mine == pytest.approx(theirs, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize(("alpha", "lam"), [(0.88, 909.0), (0.53, 9.1256)])
def test_separable_labels_of_two_sides(alpha, lam):
    """sign(z^2 - 1) without noise: the limit of large penalties, test error E y^2 = 1, is followed
    from small ones."""
    model = SpikedRandomFeatures(
        student="tanh", target="he2", r=1.1, c=1.0, gamma=0.8, label_noise="flip:0"
    )
    point = solve(model, alpha=alpha, lam=lam, loss="hinge", raise_on_failure=True)
    assert point.test_error == pytest.approx(1, abs=1e-2 / lam)


@pytest.mark.slow
def test_hinge_close_to_the_largest_margin():
    """lam -> 0 on separable labels: V grows like 1 / lam, and scores on the long flat of the
    proximal map are as small.  What is left of the way to the limit shrinks with lam."""
    points = [
        solve(SIGN, alpha=2.0, lam=lam, loss="hinge", raise_on_failure=True)
        for lam in (1e-5, 1e-6, 1e-7, 1e-8)
    ]
    errors = np.array([point.classification_error for point in points])
    assert 0 < errors[1] - errors[0] < 1e-5
    # 1e-8: twice the error asked of each
    assert (np.abs(np.diff(errors)[1:]) < np.abs(np.diff(errors)[:-1]) / 3 + 2e-8).all()
    assert max(point.residual for point in points) <= 1e-8


@pytest.mark.parametrize("r", [3.0, 12.0])
def test_labels_where_features_vanish(r):
    """Below kappa = 0 a relu student's predictions are less than rounding of the labels."""
    model = SpikedRandomFeatures(student="relu", target="sign", r=r, c=1.2, gamma=0.8)
    own = by_nodes(replica.loss("huber:0.5"))
    mine, named = (solve(model, alpha=1.5, lam=0.1, loss=of) for of in (own, "huber:0.5"))
    for part in ("test_error", "train_error", "train_loss", "loss_error"):
        # the tolerance of quadrature
        assert getattr(mine, part) == pytest.approx(getattr(named, part), rel=1e-6)


def rounded(delta, **more):
    return Loss(
        lambda t: delta**2 * (np.hypot(1, t / delta) - 1), lambda t: t / np.hypot(1, t / delta),
        name=f"rounded {delta}", **more,
    )  # fmt: skip


@pytest.mark.parametrize("noise", [0.0, 0.09])
@pytest.mark.parametrize("law", [None, "student:3:0.5"])
@pytest.mark.parametrize("delta", [0.1, 0.01])
def test_a_loss_may_bend_within_less_than_one(delta, law, noise):
    """Without a word about where it bends, and where only tau blurs that: labels, predictions and
    the loss in units of delta give the same problem, 1e-6 each."""
    model = SpikedRandomFeatures(
        student="tanh", target="sin", r=1.5, c=1.3, gamma=0.8, noise=noise, label_noise=law
    )
    scaled = replace(
        model,
        target=replica.Activation(lambda z: np.sin(z) / delta, name="large sine"),
        noise=noise / delta**2,
        label_noise=law and f"student:3:{0.5 / delta}",
    )
    at = dict(alpha=5.0, lam=3.0, raise_on_failure=True)
    point = solve(model, loss=rounded(delta), **at)
    large = solve(scaled, loss=rounded(1.0, bends=(0.0,)), **at)
    for part in ("test_error", "loss_error", "train_loss"):
        assert getattr(point, part) == pytest.approx(delta**2 * getattr(large, part), rel=2e-6)


def test_where_a_loss_bends():
    """Widths are those of log cosh or the half, quarter, ... of it; straight pieces do not bend,
    and what is said about bends stays."""
    assert replica.loss("logistic").width == replica.loss("absolute").width == 1.0
    assert rounded(10.0).width == rounded(1.0).width == 1.0
    assert rounded(0.1).width == 0.125
    assert rounded(0.1).bends == (0.0,)
    assert rounded(1.0).bends == ()
    assert rounded(0.1, bends=(0.2,)).bends == (0.2,)
