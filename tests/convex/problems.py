"""Problems that the tests of convex losses share."""

from dataclasses import replace

import numpy as np

import replica
from replica import Loss, MultiIndex, SpikedRandomFeatures
from replica.convex.equations import Equations
from replica.convex.label_tables import LabelTable, labels_at, tau_kinks
from replica.equivalence import tabulate
from replica.saddle_point import Overlaps
from solvers.rules import Rule, gauss_legendre

SIGN = SpikedRandomFeatures(student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8)
WAVE = replace(SIGN, target="sin")
SINE = dict(student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97)

MODELS = {
    "sign": SIGN,
    "flipped": replace(SIGN, label_noise="flip:0.1", beta=0.6),
    "logistic teacher": SpikedRandomFeatures(
        student="relu", target="3*he1", r=0.8, c=1.0, gamma=0.8, label_noise="logistic"
    ),
    "outliers": SpikedRandomFeatures(**SINE, noise=0.05, label_noise="outliers:0.1:9"),
    "student": SpikedRandomFeatures(**SINE, beta=1.5, label_noise="student:3:0.3"),
    "groups": SpikedRandomFeatures(
        student="relu", target="relu", r=[0.8, -0.4, 1.2], c=[1, 1.2, 0.9], gamma=0.7, noise=0.1
    ),
    "intercept": SpikedRandomFeatures(
        student="relu", target="softplus", r=0.5, c=1.0, gamma=0.9, noise=0.1, intercept=True
    ),
    "two spikes": SpikedRandomFeatures(
        student="tanh", target=MultiIndex(lambda a, b: a + np.sin(a * b), dimension=2), c=1.0,
        r=[[1, 0.5], [1, -0.5]], gamma=[[0.9, 0], [0, 1.0]], noise=0.1,
    ),
    "odd, two spikes": SpikedRandomFeatures(
        student="tanh", target="sin(z1) + z2", r=[[1, 0.2], [-0.4, 0.8]], c=[1, 0.6],
        gamma=[[0.8, 0], [0, 0.7]], beta=1.3,
    ),
    "at a dimension": SpikedRandomFeatures(**SINE, noise=0.05, dimension=300.0),
    "quiet": WAVE,
    "quiet relu": replace(WAVE, target="relu"),
    "quiet outliers": replace(WAVE, label_noise="outliers:0.1:9"),
    "quiet student": replace(WAVE, label_noise="student:3:0.1"),
    "signs with outliers": replace(SIGN, label_noise="outliers:0.1:9"),
    "vanishing features": SpikedRandomFeatures(
        student="relu", target="sign", r=12.0, c=1.2, gamma=0.8
    ),
    "network": replica.GradientStep(
        student="tanh", target="sin", alpha0=0.5, eta=2.0, noise=0.1
    ).network(beta=1.0),
}  # fmt: skip
REAL = ["outliers", "student", "groups", "intercept", "two spikes", "at a dimension", "network"]
RESIDUAL = ["huber:0.5", "absolute", "quantile:0.3"]
MARGIN = ["logistic", "hinge", "squared_hinge"]
LOG_COSH = Loss(lambda t: np.logaddexp(t, -t), np.tanh, name="log-cosh")


def by_nodes(name):
    """A named loss given as functions, whose averages are left to quadrature."""
    of = replica.loss(name)
    own = Loss(of.value, of.derivative, kind=of.kind, curvature=of.second, kinks=of.kinks)
    object.__setattr__(own, "pieces", None)
    return own


def labels_on(model, kappa: Rule, n: int = 12, panel: float = 1.0, order: int = 14) -> LabelTable:
    """The labels given kappa, with n nodes over tau on every panel of that length; these end at the
    target's kinks."""
    table = tabulate(model, kappa)
    over_tau = gauss_legendre(n, tau_kinks(model, table.places), 8.2, panel)
    rule = Rule(over_tau.nodes[..., None], over_tau.weights)
    return LabelTable(table, labels_at(model, table.places, rule, order))


def overlaps_of(point) -> Overlaps:
    """Those of one point, as one of many."""
    return Overlaps(*(part[None] for part in point.overlaps))


def change_on(given: LabelTable, of, point) -> float:
    """How far a point is from what the equations as a whole say on another table: the change of
    coordinates in one pass, and of errors relative to themselves."""
    equations, o = Equations(given, of), overlaps_of(point)
    pack = equations.coordinates.pack
    after, *_ = equations.update(np.array([point.alpha]), np.array([point.lam]), o)
    pairs = [(a.item(), getattr(point, name)) for name, a in equations.errors(o).items()]
    # a vanishing training loss is known relative to that of new samples
    least = 1e-2 * point.loss_error
    changes = [abs(a - b) / max(b, least) for a, b in pairs]
    return max(np.abs(pack(after) - pack(o)).max(), *changes)
