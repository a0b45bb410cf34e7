"""What a network has learned along a direction of its inputs."""

import numpy as np
import pytest

import replica
from solvers.rules import gauss_hermite

AT = {"alpha": 2.0, "lam": 0.1}
TWO = replica.GradientStep(student="relu", target="z1 + z1*z2", alpha0=2, eta=2)
MEANS = np.array([[1.0, 0.5], [-1.0, 0.5]])
COVARIANCES = np.array([[[2.0, 0.3], [0.3, 1.0]], [[1.0, 0.0], [0.0, 3.0]]])
SHARES = (0.3, 0.7)
LAW = replica.GaussianMixture(means=MEANS, covariances=COVARIANCES, fractions=SHARES)
MIXED = replica.GradientStep(
    student="relu", target="sin(z1)+z2", inputs=LAW, alpha0=2, eta=1, readout=1
)
# A component that is known along a direction, and one that varies there.
FLAT = replica.GaussianMixture(means=[[1.0, 0.0], [-1.0, 0.0]], covariances=[[0.5, 0], [0, 1]])
MODELS = {
    "srf": (TWO.srf(beta=1.0), None),
    "network": (TWO.network(beta=1.0), None),
    "two spikes": (
        replica.SpikedRandomFeatures(
            student="relu", target="z1*z2", r=[[1.0, 0.4], [0.5, -1.0]], c=1.0,
            gamma=[[0.8, 0.1], [0.0, 0.6]], fractions=[0.5, 0.5],
        ),
        None,
    ),
    "mixture": (MIXED.network(beta=1.0), LAW),
    "classes": (
        replica.GradientStep(
            student="relu", target="classes:1,-1", inputs=FLAT, alpha0=2, eta=1
        ).network(beta=1.0),
        FLAT,
    ),
}  # fmt: skip


def total(function, variance, direction, law):
    """Mean and variance over all inputs, from those given their projection on the direction."""
    x, w = gauss_hermite(80)
    e = np.array(direction) / np.linalg.norm(direction)
    parts = [(1.0, 0.0, 1.0)]
    if law is not None:
        each = zip(law.fractions, law.means, law.each_covariance, strict=True)
        parts = [(share, e @ mean, np.sqrt(e @ C @ e)) for share, mean, C in each]
    t = np.concatenate([centre + width * x for _, centre, width in parts])
    weights = np.concatenate([share * w for share, _, _ in parts])
    mean = weights @ function(t)
    return mean, weights @ (variance(t) + function(t) ** 2) - mean**2


@pytest.mark.parametrize("kind", MODELS)
def test_every_direction_sees_the_same_whole(kind):
    """Mean and variance over all inputs do not depend on the direction that is averaged last; the
    rule of z given it is good to 1e-7 at a relu's size, of two spikes to 1e-5."""
    model, law = MODELS[kind]
    found = []
    for direction in ([1.0, 0.0], [0.0, -2.0], [1.0, 1.0]):
        one = replica.learned_function(model, direction=direction, **AT)
        found.append(
            [
                *total(one.mean, one.variance, direction, law),
                *total(one.target_mean, one.target_variance, direction, law),
            ]
        )
        square = one.expected(np.square, 0.7)
        assert square == pytest.approx(one.variance(0.7) + one.mean(0.7) ** 2, rel=1e-12)
    rel = 1e-5 if kind == "two spikes" else 1e-7
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=rel, atol=rel)
    one = replica.learned_function(model, direction=[1.0, 0.0], **AT)
    assert one.mean([]).shape == one.target_mean([]).shape == (0,)
    assert one.mean(np.zeros((2, 3))).shape == one.target_mean(np.zeros((2, 3))).shape == (2, 3)


def test_along_the_spike_it_is_the_learned_function():
    """Where the spike is in the target's own space: a batch so large that nothing else moves."""
    step = replica.GradientStep(student="tanh", target="z1 + z1*z2", alpha0=np.inf, eta=2)
    model, kappa = step.srf(beta=1.0), np.linspace(-2, 2, 5)
    spike = replica.learned_function(model, **AT)
    along = replica.learned_function(model, direction=np.ravel(model.gamma), **AT)
    for name in ("mean", "variance", "target_mean", "target_variance"):
        np.testing.assert_allclose(
            getattr(along, name)(kappa), getattr(spike, name)(kappa), rtol=1e-9, atol=1e-12
        )
    assert along.plot().get_legend() is not None


@pytest.mark.parametrize("direction", [[1.0], [0.0, 0.0], [1.0, np.nan], "z1", [[1.0, 0.0]]])
def test_what_is_no_direction_is_refused(direction):
    with pytest.raises(replica.InvalidArgument) as caught:
        replica.learned_function(TWO.srf(beta=1.0), direction=direction, **AT)
    assert caught.value.name == "direction"


def test_a_given_layer_knows_directions_of_its_target_alone():
    W = np.random.default_rng(0).standard_normal((20, 10)) / 10**0.5
    layer = replica.FirstLayer(weights=W, student="tanh", target="sin", directions=np.eye(10)[0])
    with pytest.raises(replica.InvalidArgument) as caught:
        replica.learned_function(layer, samples=30, lam=0.1, direction=[1.0])
    assert caught.value.name == "direction"
