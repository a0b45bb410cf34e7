"""What a network has learned along a direction of its inputs."""

import numpy as np
import pytest

import replica
from solvers.rules import gauss_hermite, trapezoid

AT = {"alpha": 2.0, "lam": 0.1}
TWO = replica.GradientStep(student="relu", target="z1 + z1*z2", alpha0=2, eta=2)
MEANS = np.array([[1.0, 0.5], [-1.0, 0.5]])
COVARIANCES = np.array([[[2.0, 0.3], [0.3, 1.0]], [[1.0, 0.0], [0.0, 3.0]]])
SHARES = (0.3, 0.7)
LAW = replica.GaussianMixture(means=MEANS, covariances=COVARIANCES, fractions=SHARES)
MIXED = replica.GradientStep(
    student="relu", target="sin(z1)+z2", inputs=LAW, alpha0=2, eta=1, readout=1
)
# A component that is known along z1, and one that varies there.
FLAT = replica.GaussianMixture(
    means=[[1.0, 0.0], [-1.0, 0.0]], covariances=[np.diag([0.0, 1.0]), np.eye(2)]
)
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_every_direction_sees_the_same_whole(kind):
    """Mean and variance over all inputs do not depend on the direction that is averaged last, as
    far as averages given it settle: to 1e-5."""
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
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=2e-5, atol=2e-5)
    one = replica.learned_function(model, direction=[1.0, 0.0], **AT)
    assert one.mean([]).shape == one.target_mean([]).shape == (0,)
    assert one.mean(np.zeros((2, 3))).shape == one.target_mean(np.zeros((2, 3))).shape == (2, 3)


@pytest.mark.parametrize(("r", "c"), [(20.0, 1.0), (20.0, 0.01)])
def test_long_spikes_take_more_nodes(r, c):
    """erf of a long spike is steep: 64 nodes have 7 to 22 % less; by 2 048 nodes given t."""
    model = replica.SpikedRandomFeatures(student="erf", target="sin", gamma=0.6, r=r, c=c)
    spike = replica.learned_function(model, **AT)
    along = replica.learned_function(model, direction=[1.0], **AT)
    x, w = trapezoid(2048).nodes, trapezoid(2048).weights
    for t in (0.3, 1.0):  # kappa given t; what the target has beside it is seen through psi
        seen = w @ spike.mean(0.6 * t + 0.8 * x)
        pull = along.mean(t) - seen
        assert pull == pytest.approx(pull_of(model, t, x, w), rel=1e-3)


def pull_of(model, t, x, w):
    """What E[zeta | kappa, t] = (t - gamma kappa) / root(1 - gamma^2) adds to the mean output."""
    point = replica.solve(model, **AT)
    kappa = 0.6 * t + 0.8 * x
    shift = model.r * kappa
    mu1 = 2 / np.sqrt(np.pi) / np.sqrt(1 + 2 * model.c) * np.exp(-(shift**2) / (1 + 2 * model.c))
    return w @ (mu1 * (t - 0.6 * kappa) / 0.8) * point.overlaps.psi.item()


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


def test_a_variance_that_rounding_hides_is_flagged():
    """One input in a million is so large that the readout's output there, 1e16, is the difference
    of what its variance is and what kappa tells of it."""
    wide = replica.GaussianMixture(
        means=np.zeros((2, 2)),
        covariances=[np.diag([1e16, 1]), np.eye(2)],
        fractions=[1e-6, 1 - 1e-6],
    )
    step = replica.GradientStep(
        student="relu", target="z1", alpha0=2, eta=0, inputs=wide, noise=0.01
    )
    learned = replica.learned_function(step.srf(beta=2.0), direction=[1, 0], alpha=4.0, lam=1e-3)
    assert learned.point.converged
    mean, variance = learned.moments([0.0, 1.0, 1e8, 2e8])
    assert np.isfinite(mean).all()
    assert (variance[:2] > 0).all()
    assert np.isnan(variance[2:]).all()
