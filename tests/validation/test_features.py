"""First layers of finite size: the gradient step as written, and the statistics of the rows."""

from dataclasses import replace

import numpy as np
import pytest

from replica import GradientStep, SpikedRandomFeatures, activation
from replica.problem import MultiIndex, law
from validation import draw
from validation.draws import gradient_step, spread
from validation.draws.first_layers import sphere_rows

STEP = GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0)
MODEL = SpikedRandomFeatures(
    student="tanh", target="sin", r=1.5, c=1.3, gamma=-0.8, beta=0.5, noise=0.25
)


@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_gradient_step_is_that_of_half_the_mean_squared_error(name):
    """(1.1) in blocks: a step of rate eta p down (1/2n0) sum (y - f0)^2, by central differences."""
    rng = np.random.default_rng(0)
    p, d, n0, eta, h, student = 7, 12, 30, 1.7, 1e-5, activation(name)
    W, X, y = sphere_rows(p, d, rng), rng.standard_normal((n0, d)), rng.standard_normal(n0)
    readout, bias = rng.standard_normal((2, p))

    def loss(W):
        f0 = student(X @ W.T + bias) @ readout / p
        return ((y - f0) ** 2).mean() / 2

    gradient = np.zeros_like(W)
    for index in np.ndindex(p, d):
        shift = np.zeros_like(W)
        shift[index] = h
        gradient[index] = (loss(W + shift) - loss(W - shift)) / (2 * h)
    blocks = [(X[i : i + 8], y[i : i + 8]) for i in range(0, n0, 8)]
    found = gradient_step(W, blocks, student=student, eta=eta, readout=readout, bias=bias)
    # Differences of step h lose h^2 ~ 1e-10 to the third derivative, and p times that.
    np.testing.assert_allclose(found, W - eta * p * gradient, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("student", "target", "alpha0", "eta"),
    [("tanh", "sin", 2.0, 1.0), ("tanh", "sin", 20.0, 3.0), ("relu", "tanh", 3.0, 1.0)],
)
def test_network_after_its_step_has_the_parameters_of_its_srf(student, target, alpha0, eta):
    step = GradientStep(student=student, target=target, alpha0=alpha0, eta=eta, noise=0.1)
    d, p = 400, 600
    measured = []
    for seed in range(4):
        drawn = draw(step, dimension=d, beta=p / d, rng=seed)
        assert drawn.W.shape == (p, d)
        mean = drawn.W.mean(axis=0)
        power = (drawn.W**2).sum(axis=1).mean()
        # The rows' bulk adds c / p to the squared norm of their mean, and c = power - r^2.
        r = np.sqrt((mean @ mean - power / p) / (1 - 1 / p))
        measured.append([r, power - r**2, mean @ drawn.directions[0] / r])
    model = step.srf(beta=p / d)
    # One draw fluctuates by up to 3.7, 1.4 and 1.6 %: four standard deviations of the mean of
    # four.  Without f0 in (1.1), the last case has c 37 % and gamma 4 % too large.
    deviation = np.mean(measured, axis=0) / [model.r, model.c, model.gamma] - 1
    assert (np.abs(deviation) <= [0.074, 0.028, 0.032]).all()


def test_srf_rows_are_spike_plus_sphere():
    drawn = draw(MODEL, dimension=300, rng=0)
    assert drawn.W.shape == (150, 300)
    u = np.eye(300)[0]
    assert u @ drawn.directions[0] == MODEL.gamma
    assert np.linalg.norm(drawn.directions[0]) == pytest.approx(1, abs=1e-14)
    bulk = drawn.W - MODEL.r * u
    np.testing.assert_allclose((bulk**2).sum(axis=1), MODEL.c, rtol=1e-12)
    # Uniform on the sphere: the mean row has squared norm c / p, to within sqrt(2 / d) = 8 %.
    assert (bulk.mean(axis=0) ** 2).sum() == pytest.approx(MODEL.c / 150, rel=0.3)


def test_groups_and_spikes():
    """Rows, biases and directions of three groups on two spikes, in their exact shares."""
    target = MultiIndex(lambda a, b: a + np.sin(a * b), dimension=2)
    r, c, bias = np.array([[1, 0.5], [0, -1], [2, 0]]), np.array([1.0, 2, 3]), [0.5, 0, -1]
    gamma = np.array([[0.9, 0.1], [0, 0.7]])
    model = SpikedRandomFeatures(
        student="relu", target=target, r=r, c=c, bias=bias, gamma=gamma, fractions=[0.5, 0.3, 0.2]
    )
    drawn = draw(model, dimension=100, rng=0)
    np.testing.assert_allclose(drawn.directions @ drawn.directions.T, np.eye(2), atol=1e-13)
    np.testing.assert_allclose(drawn.directions[:, :2], gamma, atol=1e-15)
    for group, count in enumerate((50, 30, 20)):
        own = drawn.bias == bias[group]
        assert own.sum() == count
        bulk = drawn.W[own] - r[group] @ np.eye(2, 100)
        np.testing.assert_allclose((bulk**2).sum(axis=1), c[group], rtol=1e-12)
    X = np.random.default_rng(1).standard_normal((7, 100))
    np.testing.assert_allclose(drawn.targets(X), target(*(drawn.directions @ X.T)))
    np.testing.assert_allclose(drawn.features(X), np.maximum(X @ drawn.W.T + drawn.bias, 0))


def test_readouts_and_biases_of_a_network():
    """Pairs of readout and bias are independent, in their shares; a continuous law is spread
    over its quantiles."""
    step = replace(STEP, readout=[-1, 3], bias=([0, 1], [0.25, 0.75]), eta=0)
    drawn = draw(step, dimension=400, beta=1, rng=0)
    assert np.mean(drawn.bias) == 0.75
    # Of the 200 neurons of one readout, 150 +- 4.3 (hypergeometric) have bias 1; five of these.
    assert drawn.bias[:200].sum() == pytest.approx(150, abs=22)
    values = spread(law("readout", "gaussian"), 1000)
    assert values.mean() == pytest.approx(0, abs=1e-12)
    assert values.std() == pytest.approx(1, abs=5e-3)  # the outermost quantiles are left out


def test_without_a_step_rows_stay_on_the_sphere():
    for alpha0 in (2.0, np.inf):
        still = GradientStep(student="sign", target="sin", alpha0=alpha0, eta=0)
        W = draw(still, dimension=50, beta=2, rng=0).W
        np.testing.assert_allclose((W**2).sum(axis=1), 1, rtol=1e-12)


def test_labels_are_targets_with_noise():
    drawn = draw(MODEL, dimension=20, rng=0)
    X = np.random.default_rng(1).standard_normal((20_000, 20))
    noise = drawn.labels(X, np.random.default_rng(2)) - drawn.targets(X)
    np.testing.assert_allclose(drawn.targets(X), np.sin(X @ drawn.directions[0]))
    np.testing.assert_allclose(drawn.features(X), np.tanh(X @ drawn.W.T))
    # The variance of 20 000 samples is known to sqrt(2 / 20 000) = 1 %; four of these.
    assert noise.var() == pytest.approx(MODEL.noise, rel=0.04)
    assert noise.mean() == pytest.approx(0, abs=4 * np.sqrt(MODEL.noise / 20_000))


def test_a_seed_gives_the_same_draw_however_it_is_passed():
    root = np.random.SeedSequence(5)
    first = draw(STEP, dimension=30, beta=1, rng=root).W
    np.testing.assert_array_equal(draw(STEP, dimension=30, beta=1, rng=root).W, first)
    np.testing.assert_array_equal(draw(STEP, dimension=30, beta=1, rng=5).W, first)
    child = draw(STEP, dimension=30, beta=1, rng=root.spawn(1)[0]).W
    assert (first != child).all()
    one, two = (draw(STEP, dimension=30, beta=1, rng=np.random.default_rng(5)).W for _ in range(2))
    np.testing.assert_array_equal(one, two)
