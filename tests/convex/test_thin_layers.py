"""Thin layers: where a prediction with little spread passes a kink, or an edge between labels."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import replica
from replica import GradientStep, Loss, SpikedRandomFeatures, solve
from replica.convex import Task
from replica.convex.averages import scores
from replica.convex.equations import Equations
from replica.convex.panels import fitted_table
from replica.equivalence import tabulate
from replica.saddle_point import Overlaps, field_at_nodes, responses_of
from solvers.rules import Rule, gauss_legendre, trapezoid
from tests.convex.problems import (
    LOG_COSH,
    MODELS,
    SIGN,
    WAVE,
    change_on,
    labels_on,
    overlaps_of,
)  # fmt: skip
from tests.oracles.equations_convex import original_residuals


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gamma", "alpha", "lam", "loss", "limit"),
    [  # 1500 nodes of kappa and 4001 of omega, .005 apart, leave 1e-3 of the hinge's jumps of s'
        (0.8, 0.5, 0.01, "hinge", 2e-3),
        (0.8, 0.5, 3.0, "hinge", 2e-3),
        (0.8, 2.0, 10.0, "hinge", 2e-3),
        # the label changes within .04 of kappa = 0: nodes further apart see separable labels
        (0.999, 2.0, 0.05, "squared_hinge", 1e-3),
        (0.999, 2.0, 0.05, "logistic", 1e-9),
        (0.999, 2.0, 10.0, "squared_hinge", 1e-3),
        (0.999, 2.0, 10.0, "logistic", 1e-9),
    ],
)
def test_original_equations_hold(gamma, alpha, lam, loss, limit):
    """The equations as printed, at points whose layers even spacings do not resolve."""
    model = replace(SIGN, gamma=gamma)
    point = solve(model, alpha=alpha, lam=lam, loss=loss, raise_on_failure=True)
    found = original_residuals(model, alpha, lam, replica.loss(loss), point, kappa=1500)
    wrong = found.pop("classification")
    if gamma < 0.9 or lam < 1:
        assert abs(wrong) < 1e-4
    else:  # the decision's layer is .002 wide, these nodes .01 apart; to order 1 / lam
        assert point.classification_error == pytest.approx(np.arccos(gamma) / np.pi, rel=0.01)
    assert max(map(abs, found.values())) < limit, found


@pytest.mark.parametrize(
    ("name", "loss", "lam"),
    [*(pytest.param(name, "hinge", 1e4, marks=pytest.mark.slow) for name in ("sign", "flipped")),
     ("sign", "logistic", 1e7)],
)  # fmt: skip
def test_a_large_penalty_leaves_the_best_offset(name, loss, lam):
    """lam -> inf: only m, which is free, is left: the best loss of mu_0(kappa) m by an independent
    minimisation, the hinge's kinks split at; corrections are of order 1 / lam."""
    model, of = MODELS[name], replica.loss(loss)
    point = solve(model, alpha=2.0, lam=lam, loss=loss)

    def mean_loss(m):
        even = tabulate(model, trapezoid(401))
        at = np.interp([-1 / m, 1 / m], even.offsets[0], even.kappa[0])
        table = tabulate(model, gauss_legendre(20, at))
        positive, f = (1 + table.h) / 2, m * table.offsets[0]
        return table.weights @ (positive * of.value(f) + (1 - positive) * of.value(-f))

    best = minimize_scalar(mean_loss, bounds=(1.2, 50), method="bounded", options={"xatol": 1e-9})
    # the kinks are split at to 1e-3 of kappa
    assert point.loss_error == pytest.approx(best.fun, rel=max(1e-6, 0.5 / lam))
    assert point.overlaps.m[0] == pytest.approx(best.x, rel=1e-3)


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


QUIET = ["quiet", "quiet relu", "quiet outliers", "signs with outliers", "quiet student"]


@pytest.mark.slow
@pytest.mark.parametrize("name", QUIET)
@pytest.mark.parametrize("loss", ["absolute", "huber:0.5"])
@pytest.mark.parametrize("lam", [0.1, 10.0])
def test_layers_in_tau_are_resolved(name, loss, lam):
    """Scores at a few of the kappa that panels are fitted at, against 8 nodes on each of 2 400
    even panels over tau, and those that end at the kinks of the target; at lam = 10 S is .004 to
    .04.  1e-8: what layers thinner than are left alone at the rarest kappa may cost."""
    model, of = MODELS[name], replica.loss(loss)
    point = solve(model, alpha=2.0, lam=lam, loss=loss, raise_on_failure=True)
    task = Task(model, of, np.array([2.0]), np.array([lam]))
    table, labels = fitted_table(task, overlaps_of(point), 1e-11, 11)
    likely = np.flatnonzero(np.abs(table.kappa[0]) < 2.5)
    chosen = likely[np.linspace(0, likely.size - 1, 5).astype(int)]
    kappa = Rule(table.kappa[0, chosen], np.ones(chosen.size))
    dense = labels_on(model, kappa, 8, 16.4 / 2400)
    field = field_at_nodes(responses_of(dense.table), overlaps_of(point))
    for at, k in enumerate(chosen):
        here = type(field)(*(part[:, [at]] for part in field))
        found = scores(labels.select(slice(k, k + 1)), of, here)
        exact = scores(dense.labels.select(slice(at, at + 1)), of, here)
        for mine, theirs in zip(found, exact, strict=True):
            assert mine == pytest.approx(theirs, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize(
    ("model", "alpha", "lam", "loss"),
    [
        (WAVE, 2.0, 10.0, "absolute"),
        # a smooth loss near interpolation needs nodes over kappa
        pytest.param(MODELS["quiet outliers"], 0.5, 1e-3, LOG_COSH, marks=pytest.mark.slow),
    ],
)
def test_equations_on_many_nodes(model, alpha, lam, loss):
    """What 6 nodes on each of 800 panels over kappa, .02 long, and 200 over tau leave of the
    equations: twice the tolerance."""
    point = solve(model, alpha=alpha, lam=lam, loss=loss, raise_on_failure=True)
    even = gauss_legendre(6, np.linspace(-8, 8, 801), 9.0)
    assert change_on(labels_on(model, even), replica.loss(loss), point) < 2e-6


def rounded(delta, **more):
    return Loss(
        lambda t: delta**2 * (np.hypot(1, t / delta) - 1), lambda t: t / np.hypot(1, t / delta),
        name=f"rounded {delta}", **more,
    )  # fmt: skip


KINKED = Loss(  # and not piecewise quadratic
    value=lambda t: np.abs(t) + 0.3 * np.sqrt(1 + t * t),
    derivative=lambda t: np.sign(t) + 0.3 * t / np.sqrt(1 + t * t),
    curvature=lambda t: 0.3 * (1 + t * t) ** -1.5,
    kinks=(0.0,),
    name="kinked",
)
TANH = SpikedRandomFeatures(student="tanh", target="tanh", r=3.2, c=1.3, gamma=0.75, noise=0.1)
SOFTPLUS = SpikedRandomFeatures(
    student="softplus", target="sign", r=2.294, c=1.464, gamma=0.487, beta=1.1346
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "alpha", "lam", "loss"),
    [(TANH, 0.44, 2e-4, KINKED), (SOFTPLUS, 1.2458, 5.02e-4, rounded(0.05))],
)
def test_a_tolerance_means_what_it_says(model, alpha, lam, loss):
    """Against a solution asked for a hundredth of it."""
    at = dict(alpha=alpha, lam=lam, loss=loss, raise_on_failure=True)
    point, fine = solve(model, **at), solve(model, **at, quadrature_tol=1e-8)
    for name in ("test_error", "train_loss", "loss_error"):
        assert getattr(point, name) == pytest.approx(getattr(fine, name), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delta", "law", "noise"),
    [
        *((delta, None, noise) for delta in (0.1, 0.01) for noise in (0.0, 0.09)),
        (0.1, "student:3:0.5", 0.0),
        (0.01, "student:3:0.5", 0.09),
    ],
)
def test_a_loss_may_bend_within_less_than_one(delta, law, noise):
    """Without a word about where it bends, and where only tau blurs that: labels, predictions and
    the loss in units of delta give the same problem, 1e-6 each."""
    model = replace(WAVE, noise=noise, label_noise=law)
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


@pytest.mark.parametrize("target", ["he2", "sin"])
@pytest.mark.parametrize(("alpha", "lam"), [(0.0175, 1e-11), (0.01, 1e-3)])
def test_the_loss_on_new_samples_is_resolved(target, alpha, lam):
    """With few samples nothing of (6.2) is thin in tau, but the loss of new labels has its kinks
    there; on 4 000 nodes of tau at each kappa, which leave 1e-8 of them."""
    step = GradientStep(student="sigmoid", target=target, alpha0=0.036, eta=0.018, noise=1e-3)
    model = step.srf(beta=15.0)
    point = solve(model, alpha=alpha, lam=lam, loss="huber:0.5", raise_on_failure=True)
    fine = labels_on(model, trapezoid(128, 8.2), panel=0.05)
    overlaps = Overlaps(*(part[None] for part in point.overlaps))
    exact = Equations(fine, replica.loss("huber:0.5")).errors(overlaps)
    assert point.loss_error == pytest.approx(exact["loss_error"][0], rel=1e-6)  # what is promised
