"""Simulations on mixtures, of steps with another target, and with weight decay."""

from dataclasses import replace

import numpy as np
import pytest

import replica
from replica import GaussianMixture, GradientStep
from tests.steps.structured import setting
from validation import compare, draw, trajectory
from validation.draws import as_given

LAW = GaussianMixture(means=[[1.0, 0.5], [-1.0, 0.5]], covariances=np.diag([2.0, 1.0]))
DECAY = GradientStep(student="tanh", target="sin", steps=[(2, 1), (1, 2)], decay=[0.3, 0.6])


@pytest.mark.slow
@pytest.mark.parametrize("simulated", ["network", "srf", "gaussian"])
def test_classes(simulated):
    step, at, beta = setting(6)
    theory = "network" if simulated == "network" else "srf"
    found = compare(
        step, **at, beta=beta, dimension=300, seeds=8, rng=0, simulated=simulated, theory=theory,
        allowance=0.03,
    )  # fmt: skip
    assert found.agrees, found.verdict


@pytest.mark.slow
@pytest.mark.parametrize(
    "of",
    [
        dict(student="softplus", target="tanh(z1 + z2)", step_target="z1", alpha0=1, eta=3),
        dict(student="relu", target="sin(z1)", step_target="classes:1,-1", step_noise=0.1,
             alpha0=1, eta=2, inputs=LAW),
        dict(student="tanh", target="sin", alpha0=1, eta=2, decay=0.5),
        dict(student="relu", target="z1 - z2", alpha0=1, eta=2, readout=[-0.5, 1.5], inputs=LAW),
    ],
    ids=["another target", "classes first", "decay", "two readouts"],
)  # fmt: skip
def test_other_steps(of):
    found = compare(
        GradientStep(**of), alpha=2.0, lam=0.1, beta=1.0, dimension=300, seeds=8, rng=0,
        allowance=0.03,
    )  # fmt: skip
    assert found.agrees, found.verdict


def test_inputs_of_a_drawn_srf():
    """The law is that of the target's directions, and standard normal beside them."""
    model = replica.SpikedRandomFeatures(
        student="relu", target="z1 + z2", inputs=LAW, r=1.5, c=1.0, gamma=[0.6, 0.3]
    )
    layer = draw(model, dimension=40, rng=0)
    blocks = list(layer.draw_inputs(40_000, np.random.default_rng(0)))
    X, component = (np.concatenate(part) for part in zip(*blocks, strict=True))
    Z = X @ layer.directions.T
    assert component.mean() == pytest.approx(0.5, abs=0.0125)  # 5 standard errors
    for j in (0, 1):
        own = Z[component == j]
        assert own.mean(axis=0) == pytest.approx(LAW.means[j], abs=0.05)  # 4 standard errors
        assert np.cov(own.T) == pytest.approx(LAW.covariances[j], abs=0.07)
    spike = layer.W.mean(axis=0)
    assert np.corrcoef(X @ spike, (X - Z @ layer.directions) @ spike)[0, 1] > 0
    assert layer.directions @ spike / 1.5 == pytest.approx([0.6, 0.3], abs=0.1)
    apart = X - Z @ layer.directions
    assert np.linalg.norm(np.cov(apart.T), 2) < 1.1
    given = as_given(model, layer)
    assert given.inputs.dimension == 40
    assert given.weights @ given.directions == pytest.approx(layer.W @ layer.directions.T)


def test_decay_shortens_rows():
    """A step of rate 0 multiplies them by what is kept; theory and simulation alike."""
    still = replace(DECAY, steps=[(2, 0), (1, 0)])
    first, *_, last = trajectory(still, dimension=30, beta=1.0, rng=0)
    assert pytest.approx(0.7 * 0.4 * first.W, rel=1e-14) == last.W
    assert still.srf(beta=1.0).c == pytest.approx(0.28**2, rel=1e-14)


@pytest.mark.parametrize("steps", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_decay_is_the_same_in_all_equations(steps):
    """The pencil's bulk variance is the recursion's, and a last step's decay a change of scale: of
    relu networks, of their penalty."""
    of = dict(steps=[(2, 1), (1, 2)][:steps], decay=[0.3, 0.6][:steps])
    if steps == 1:
        of = dict(alpha0=2, eta=1, decay=0.3)
    step = GradientStep(student="relu", target="sin", **of)
    network = step.network(beta=1.0)
    assert network.rows.tabulated.rows.c == pytest.approx(step.srf(beta=1.0).c, rel=1e-10)
    assert network.rows.tabulated.rows.c == pytest.approx(network.c, rel=1e-8)
    *_, kept = [step.decay_factor(t) for t in range(steps)]
    rate = step.schedule[-1][1] / kept
    schedule = [*step.schedule[:-1], (step.schedule[-1][0], rate)]
    if steps == 1:
        other = replace(step, eta=rate, decay=0.0)
    else:
        other = replace(step, steps=schedule, decay=[step.decay[0], 0.0])
    one = replica.solve(network, alpha=2, lam=0.1)
    two = replica.solve(other.network(beta=1.0), alpha=2, lam=0.1 / kept**2)
    assert one.test_error == pytest.approx(two.test_error, rel=1e-8)
    assert one.train_error == pytest.approx(two.train_error, rel=1e-8)
