"""Layers whose neurons are uncorrelated, or repeated: strata that are no combination of a few.

Their second moments differ from one neuron to the next, on the diagonal alone or for groups of
neurons; nothing about them is of low rank.  Section 20, (20.9)-(20.14).
"""

from functools import partial

import numpy as np
import pytest

from replica import FirstLayer, GaussianMixture, solve
from replica.given.layer_strata import layer_strata
from replica.given.nodes import condition
from replica.problem import activation
from solvers.resources import GivenUp
from solvers.results import Status
from solvers.rules import gauss_hermite, tensor_rule
from tests.given.drawn import drawn_layer
from tests.given.literal import layer_moments
from tests.given.simulated import mean_errors, ridge, square_errors

HALVES = np.repeat([0.3, 1.0], 30)
MODES = np.arange(1.0, 61)


def anisotropic(scales, axis, **options):
    """Rows along the axes, of these lengths; a linear target along one of them."""
    d = len(scales)
    given = {"student": "linear", "target": "z1", "noise": 0.1} | options
    return FirstLayer(weights=np.diag(scales), directions=np.eye(d)[axis], **given)


def closed_form(scales, axis, samples, lam, noise=0.1):
    """Test and training error of ridge regression on independent inputs of variances ``scales``^2
    over d, n, d to infinity (section 20, under "Verified")."""
    d = len(scales)
    sizes = scales**2 / d
    low, high = 1e-12, 1e12
    for _ in range(200):  # n = sum L + lam / kappa, falling in kappa
        kappa = np.sqrt(low * high)
        over = (sizes / (sizes + kappa)).sum() + lam / kappa > samples
        low, high = (kappa, high) if over else (low, kappa)
    learned = sizes / (sizes + kappa)
    factor = samples / (samples - (learned**2).sum())
    test = factor * ((1 - learned[axis]) ** 2 + noise) - noise
    return test, (lam / (samples * kappa)) ** 2 * (test + noise)


@pytest.mark.parametrize(
    ("scales", "axis", "lam", "expected"),
    [  # the numbers of section 20, to which 400 simulated fits agree
        (HALVES, 0, 0.1, (0.459750, 0.191276)),
        (HALVES, 59, 0.1, (0.058507, 0.054559)),
        (np.linspace(0.3, 1, 60), 0, 0.01, (0.163058, 0.047753)),
        (MODES**-0.5, 4, 0.01, (0.060134, 0.046970)),
        (MODES**-1.0, 0, 0.01, (0.009742, 0.077726)),
    ],
)
def test_ridge_regression_of_anisotropic_inputs(scales, axis, lam, expected):
    point = solve(anisotropic(scales, axis), samples=100, lam=lam)
    assert point.converged
    # known to all digits that are written
    assert (point.test_error, point.train_error) == pytest.approx(expected, rel=1e-4)
    # the closed form is that of large d: 1/n is .01, and was .007 in the worst of these
    limit = closed_form(scales, axis, 100, lam)
    assert (point.test_error, point.train_error) == pytest.approx(limit, rel=0.02)


@pytest.mark.slow
def test_ridge_regression_of_many_anisotropic_inputs():
    scales = np.repeat([0.3, 1.0], 480)
    point = solve(anisotropic(scales, 0), samples=1600, lam=0.1)
    assert (point.test_error, point.train_error) == pytest.approx((0.456983, 0.192002), rel=1e-5)
    limit = closed_form(scales, 0, 1600, 0.1)
    assert limit == pytest.approx((0.456795, 0.192051), rel=1e-5)  # section 20
    assert (point.test_error, point.train_error) == pytest.approx(limit, rel=5e-4)  # some 1/n


def test_rotated_neurons_of_a_linear_student_are_the_same_features():
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 60)))[0]
    plain = anisotropic(HALVES, 0)
    turned = FirstLayer(
        weights=rotation @ plain.weights, student="linear", target="z1",
        directions=plain.directions, noise=0.1,
    )  # fmt: skip
    errors = [solve(one, samples=100, lam=0.1, quadrature_tol=1e-6) for one in (plain, turned)]
    assert errors[1].test_error == pytest.approx(errors[0].test_error, rel=1e-8)
    assert errors[1].train_error == pytest.approx(errors[0].train_error, rel=1e-8)


@pytest.mark.parametrize(
    ("strong", "loss", "lam", "options", "expected"),
    [  # the first three by closed form of linear discriminants, the others by 400 fits
        (100, "square", 0.01, {}, {0.6202: 0.1010, 1.2304: 0.0795}),
        (100, "square", 0.01, {"intercept": True}, {3.0: 0.0245}),
        (160, "hinge", 0.1, {}, {0.62: 0.1538, 1.23: 0.1180, 3.0: 0.0767}),
    ],
)
def test_two_classes_of_anisotropic_inputs(strong, loss, lam, options, expected):
    d = 200
    mean, variances = np.ones(d) / np.sqrt(d), np.repeat([0.5, 0.1], [strong, d - strong])
    inputs = GaussianMixture(means=[mean, -mean], covariances=np.diag(variances))
    layer = FirstLayer(
        weights=np.eye(d), student="linear", target="classes:1,-1", inputs=inputs, **options
    )
    for alpha, error in expected.items():
        point = solve(layer, alpha=alpha, lam=lam, loss=loss)
        assert point.classification_error == pytest.approx(error, abs=6e-5)  # as it is rounded


@pytest.mark.parametrize(
    ("student", "expected", "fits"),
    [
        ("linear", (2.369290, 0.427055), ((2.4037, 0.0188), (0.42895, 0.0047))),
        ("tanh", (1.977836, 0.441201), ((1.9708, 0.0115), (0.4435, 0.0046))),
    ],
)
def test_disjoint_patches(student, expected, fits):
    """Neurons of five inputs each, none of them shared, beside 400 simulated fits."""
    weights, patches = np.zeros((60, 300)), np.random.default_rng(1).standard_normal((60, 5))
    for i, patch in enumerate(patches):
        weights[i, 5 * i : 5 * i + 5] = patch
    layer = FirstLayer(
        weights=weights, student=student, target="z1", directions=np.eye(300)[0], noise=0.1
    )
    tol = 1e-4 if student == "linear" else None  # whose strata are exact: iterations to 5e-6
    point = solve(layer, samples=100, lam=0.05, quadrature_tol=tol)
    assert point.converged
    found = np.array([point.test_error, point.train_error])
    # strata of a linear student are exact, others known to 1e-3
    assert found == pytest.approx(expected, rel=1e-5 if student == "linear" else 1e-3)
    mean, stderr = np.transpose(fits)
    assert (np.abs(found - mean) < 3 * stderr + mean / 100).all()  # the theory is off by some 1/n


@pytest.mark.parametrize("student", ["relu", "tanh"])
def test_neurons_given_twice_are_the_neurons_once(student):
    """A ridge readout shares its weight between equal features, over the root of twice as many."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((50, 60)) / np.sqrt(60)
    weights[:, 0] += 0.5
    given = {"student": student, "target": "sin", "directions": np.eye(60)[0], "noise": 0.1}
    given["beside"] = 0  # since more rows tell more directions from noise
    once = solve(FirstLayer(weights=weights, **given), samples=120, lam=0.1)
    twice = solve(FirstLayer(weights=np.tile(weights, (2, 1)), **given), samples=120, lam=0.1)
    assert twice.converged
    for name in ("test_error", "train_error", "readout_variance"):
        assert getattr(twice, name) == pytest.approx(
            getattr(once, name),
            rel=1e-3,  # to which strata are known
        )


def test_second_moments_are_those_of_every_stratum():
    """On average over nodes to the tolerance, on the diagonal at every node to rounding."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((40, 30)) / np.sqrt(30)
    weights[:, :2] += 0.7 * rng.standard_normal((40, 2))
    weights[5] = weights[4]
    rule = tensor_rule(gauss_hermite(10), gauss_hermite(8))
    directions, of = np.eye(30)[:, :2], activation("tanh")
    given = condition(weights, np.zeros(40), directions, 1.0, np.zeros(30), None)
    mu, S = layer_moments(weights, 0.0, of, directions, rule.nodes, 4)
    M = S + mu[:, :, None] * mu[:, None]
    for tol in (1e-2, 1e-4, 1e-6):
        strata = layer_strata(given, of, rule, 4, tol)
        found, exact = strata.mix(rule.weights), np.tensordot(rule.weights, M, axes=1)
        # of each of six degrees modes of tol in all may be left out, and .3 tol be missed
        assert np.linalg.norm(found - exact) < 6 * 1.3 * tol
        each = [np.diagonal(strata.mix(unit)) for unit in np.eye(80)[::9]]
        np.testing.assert_allclose(each, strata.second[::9], rtol=1e-12)


def test_strata_without_their_diagonal_are_given_up(monkeypatch):
    """As an array library would leave them that copies where a view is written to."""
    monkeypatch.setattr("replica.given.layer_strata.diagonal_view", lambda x: np.diagonal(x).copy())
    point = solve(anisotropic(HALVES, 0), samples=100, lam=0.1)
    assert not point.converged
    assert np.isnan(point.test_error)
    given = condition(np.eye(3), np.zeros(3), np.eye(3)[:, :1], 1.0, np.zeros(3), None)
    with pytest.raises(GivenUp):
        layer_strata(given, activation("tanh"), tensor_rule(gauss_hermite(8)), 4, 1e-3)


@pytest.mark.parametrize("student", ["tanh", "erf", "sin"])
def test_simulated_readouts_of_uncorrelated_neurons(student):
    d, samples = 60, 100
    layer = anisotropic(MODES**-0.5, 4, student=student)
    rng = np.random.default_rng(0)

    def sample():
        X = rng.standard_normal((samples, d))
        y = X[:, 4] + np.sqrt(0.1) * rng.standard_normal(samples)
        return layer.student(X @ layer.weights.T), y

    mean, stderr = mean_errors(range(200), sample, partial(ridge, lam=0.01), square_errors)
    point = solve(layer, samples=samples, lam=0.01)
    expected = np.array([point.test_error + 0.1, point.train_error])
    # the theory is off by some 1/n
    assert (np.abs(mean - expected) <= 3.5 * stderr + mean / samples).all()


@pytest.mark.slow
def test_drawn_layers_of_every_kind_have_simulated_errors():
    beyond = []
    for number in range(200):
        layer, samples, lam, rng = drawn_layer(number)
        for accuracy in (1e-3, 1e-2):  # features of few directions or of blocks have the second
            point = solve(layer, samples=samples, lam=lam, quadrature_tol=accuracy)
            if point.converged:
                break
        for given in layer._made.values():
            strata = given.strata
            diagonal = np.diagonal(strata.mix(strata.shares))
            np.testing.assert_allclose(diagonal, strata.shares @ strata.second, rtol=1e-12)
        if not point.converged:
            beyond.append((np.nan, np.nan))
            continue

        def sample(layer=layer, samples=samples, rng=rng):
            X = rng.standard_normal((samples, layer.dimension))
            y = X @ layer.directions[:, 0] + np.sqrt(0.1) * rng.standard_normal(samples)
            return layer.student(X @ layer.weights.T + layer.bias), y

        mean, stderr = mean_errors(range(200), sample, partial(ridge, lam=lam), square_errors)
        expected = np.array([point.test_error + 0.1, point.train_error])
        # the theory is off by some 1/n, more so where most directions are fitted
        beyond.append((np.abs(mean - expected) - 2 * mean / samples) / stderr)
    beyond = np.array(beyond)
    known = np.isfinite(beyond[:, 0])
    assert known.mean() > 0.95
    assert (beyond[known] < 3).all()


def test_more_strata_than_memory_holds_are_refused():
    """Four steep directions, and a target that jumps across two: 250 000 strata, 2.1 GB."""
    weights = np.random.default_rng(0).standard_normal((60, 36)) / 6
    weights[:, :4] *= 50
    layer = FirstLayer(
        weights=weights, student="relu", target="sign(z1 - z2)", directions=np.eye(36)[:, :2],
        beside=2,
    )  # fmt: skip
    assert solve(layer, samples=100, lam=0.1).status is Status.MEMORY
