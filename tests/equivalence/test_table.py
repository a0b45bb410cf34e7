"""Tables of moments at the nodes of kappa: against sums over another variable by another rule."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from replica import GaussianMixture, GradientStep, SpikedRandomFeatures
from replica.equivalence import rules, table_at, tables


@pytest.mark.parametrize(("student", "target"), [("tanh", "sin"), ("erf", "tanh")])
def test_moments_at_the_nodes(student, target):
    """Section 3 of docs/theory.md, with 160 Gauss-Hermite nodes, which leave 1e-8 of tanh."""
    r, c, gamma = 1.1, 0.6, 0.7
    model = SpikedRandomFeatures(student=student, target=target, r=r, c=c, gamma=gamma)
    table = table_at(model, 2)
    z, w = hermegauss(160)
    w = w / w.sum()
    kappa = table.kappa[0]
    assert table.weights.sum() == pytest.approx(1, abs=1e-14)
    assert table.weights @ kappa**2 == pytest.approx(1, rel=1e-12)
    x = model.student(r * kappa[:, None] + np.sqrt(c) * z)
    y = model.target(gamma * kappa[:, None] + np.sqrt(1 - gamma**2) * z)
    mu1 = x @ (w * z) / np.sqrt(c)
    expected = {
        "offsets": x @ w, "mu1": mu1, "mu2sq": x**2 @ w - (x @ w) ** 2 - c * mu1**2,
        "h": y @ w, "g": y @ (w * z), "spread": y**2 @ w - (y @ w) ** 2,
    }  # fmt: skip
    for name, values in expected.items():
        mine = np.abs(np.squeeze(getattr(table, name)))  # an offset is known up to its scale
        if name == "offsets":
            mine, values = (np.abs(v) / np.abs(v).max() for v in (mine, values))
        else:
            values = np.abs(values)
        assert mine == pytest.approx(values, abs=1e-7), name


def test_finer_tables_have_the_same_integrals():
    """Levels of the rule double the nodes; E of the target's square does not move."""
    model = SpikedRandomFeatures(student="relu", target="sin", r=1.0, c=1.0, gamma=0.9)
    coarse, fine = (table_at(model, level + 1) for level in (0, 2))
    assert fine.weights.size > coarse.weights.size
    powers = [table.weights @ (table.h**2 + table.spread) for table in (coarse, fine)]
    assert powers == pytest.approx([-np.expm1(-2) / 2] * 2, rel=1e-10)


SPIKE = dict(student="tanh", r=1.1, c=0.6, gamma=0.7)
SPIKES = dict(student="tanh", r=[[1, 0.2], [-0.4, 0.8]], c=[1, 0.6])
MIXTURE = GaussianMixture(means=[[1.5], [-1.5]], covariances=[[[1.0]], [[0.3]]])
MODELS = {
    "smooth": SpikedRandomFeatures(**SPIKE, target="sin"),
    "steep": SpikedRandomFeatures(student="tanh", target="sin", r=1e4, c=0.6, gamma=0.7),
    "kink": SpikedRandomFeatures(**SPIKE, target="relu"),
    "jump": SpikedRandomFeatures(student="tanh", target="sign", r=1.1, c=0.6, gamma=1.0),
    "two spikes": SpikedRandomFeatures(**SPIKES, target="sin(z1) + z2", gamma=[[0.8, 0], [0, 0.7]]),
    "two kinks": SpikedRandomFeatures(
        **SPIKES, target="sign(z1) + relu(z2)", gamma=[[1, 0], [0, 1]]
    ),
    "three spikes": SpikedRandomFeatures(
        student="relu", target="z1*z2*z3", r=[[1, 0.2, 0.0]], c=1.0, gamma=np.diag([0.9, 1.0, 0.2])
    ),
    "mixture": GradientStep(
        student="relu", target="sin", inputs=MIXTURE, alpha0=2.0, eta=1.0
    ).network(beta=1.0),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "three spikes")) for n in MODELS]
)
def test_weights_of_every_rule_and_every_table_sum_to_1(name):
    """At every level, to rounding of the sums of up to 2^18 weights."""
    model = MODELS[name]
    for rule in rules(model):
        assert rule.weights.sum() == pytest.approx(1, abs=1e-13)
    for table, _ in zip(tables(model), range(3), strict=False):  # finer ones take seconds
        assert table.weights.sum() == pytest.approx(1, abs=1e-13)
