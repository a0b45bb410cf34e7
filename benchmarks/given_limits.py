"""Given layers whose errors are known otherwise.

Each function has test and training errors of given layers, the same as known otherwise, and the
largest relative difference that is allowed.
"""

import numpy as np

import replica
from replica.given.evaluate_readout import errors_at
from replica.given.nodes import Level
from replica.given.solve_point import solve_point
from solvers.rules import gauss_hermite, tensor_rule
from tests.given.literal import one_stratum
from validation import draw, first_layer
from validation.draws import as_given

SIZES = 400, 600  # p and d of linear layers, whose readout has d samples
SINE = (1 - np.exp(-2)) / 2  # E sin(z)^2


def errors(model, **options):
    """Test and training error of a point."""
    point = replica.solve(model, **options)
    return [point.test_error, point.train_error]


def random_features(d):
    """A drawn sRF beside section 4."""
    model = replica.SpikedRandomFeatures(
        student="relu", target="sin", r=1.2, c=1.3, gamma=0.8, beta=0.5, noise=0.1, dimension=d
    )
    layer = as_given(model, draw(model, dimension=d, rng=0))
    at = dict(alpha=2.0, lam=0.1)
    return errors(layer, **at), errors(model, **at), 0.01


def network(d):
    """A drawn network after two steps beside section 18."""
    step = replica.GradientStep(student="tanh", target="sin", steps=[(2, 1), (2, 1)], noise=0.1)
    layer = first_layer(step, dimension=d, beta=0.5, rng=0)
    at = dict(alpha=2.0, lam=0.1)
    return errors(layer, **at), errors(step.network(beta=0.5), **at), 0.01


def linear_layer(target, loading):
    """Linear features of a power-law covariance, and the direction of a target along which rows
    have that ``loading``."""
    p, d = SIZES
    rng = np.random.default_rng(4)
    weights = rng.standard_normal((p, d)) * np.arange(1.0, d + 1) ** -0.5
    weights[:, 0] *= loading
    of = dict(student="he1", target=target, directions=np.eye(d)[0], noise=0.2, beside=0)
    return replica.FirstLayer(weights=weights, **of)


def linear_student(d):
    """Ridge regression with a covariance."""
    layer = linear_layer("he1", 1.0)
    weights = layer.weights
    slope = np.linalg.solve(weights @ weights.T, weights[:, 0])
    missed = 1 - weights[:, 0] @ slope
    test, train = one_stratum(weights @ weights.T, slope, 0.2 + missed, SIZES[1], 0.05)
    return errors(layer, samples=SIZES[1], lam=0.05), [test + missed, train], 1e-4


def rows_without_target(d):
    """Labels are noise to rows that do not see the target: theta is 0."""
    layer = linear_layer("sin", 0.0)
    covariance = layer.weights @ layer.weights.T
    test, train = one_stratum(covariance, np.zeros(SIZES[0]), 0.2 + SINE, SIZES[1], 0.05)
    # the equations of a point are solved to a twentieth of the tolerance of its strata
    at = dict(samples=SIZES[1], lam=0.05, quadrature_tol=1e-5)
    return errors(layer, **at), [test + SINE, train], 1e-6


def many_samples(d):
    """The least squares of the population, of three inputs and four neurons."""
    rng = np.random.default_rng(5)
    weights, bias = rng.standard_normal((4, 3)), rng.standard_normal(4)
    of = dict(student="tanh", target="z1 + z1*z2", directions=np.eye(3)[:, :2], noise=0.1)
    layer = replica.FirstLayer(weights=weights, bias=bias, **of)
    x, share = tensor_rule(*[gauss_hermite(60)] * 3)
    features, y = np.tanh(x @ weights.T + bias), x[:, 0] * (1 + x[:, 1])
    power, along = (features.T * share) @ features, (features.T * share) @ y
    best = share @ y**2 - along @ np.linalg.solve(power, along)
    return errors(layer, samples=1e9, lam=1e-8), [best, best + 0.1], 1e-4


def mixture(fractions):
    """Errors of a layer whose inputs have two components, which stand there again and again."""
    rng = np.random.default_rng(6)
    p, d, count = 40, 30, len(fractions)
    means = np.zeros((2, d))
    means[:, 1] = 1, -0.5
    covariances = np.array([np.eye(d), np.diag(np.linspace(0.5, 1.5, d))])
    own = np.arange(count) % 2
    inputs = replica.GaussianMixture(
        means=means[own], covariances=covariances[own], fractions=fractions
    )
    layer = replica.FirstLayer(
        weights=rng.standard_normal((p, d)) / np.sqrt(d), student="tanh", target="sin",
        directions=np.eye(d)[0], noise=0.1, inputs=inputs,
    )  # fmt: skip
    return errors(layer, samples=60, lam=0.05)


def split_strata(d):
    """Components that are split into parts that are alike."""
    return mixture([0.1, 0.5, 0.2, 0.2]), mixture([0.3, 0.7]), 1e-8


def hermite_degrees(d):
    """Few degrees beside many, for inputs of small effective dimension, 24."""
    rng = np.random.default_rng(8)
    p, d = 200, 300
    sizes = np.arange(1.0, d + 1) ** -1
    weights = rng.standard_normal((p, d)) * np.sqrt(sizes / sizes.sum())
    layer = replica.FirstLayer(
        weights=weights, student="relu", target="tanh(2*z1) + z1**2/2",
        directions=np.ones(d) / np.sqrt(d), noise=0.1,
    )  # fmt: skip
    found = []
    for k_max in (3, 8):
        given = layer.cut(Level((32, 20, 14, 8, 6), 8, k_max, 1e-8), layer.special)
        solved = solve_point(given, replica.loss("square"), 300, 0.05)
        found.append(errors_at(given, solved, replica.loss("square"))[0][:2].tolist())
    return *found, 1e-3


LIMITS = {
    "a drawn sRF, section 4": random_features,
    "a drawn network, section 18": network,
    "linear features, ridge with a covariance": linear_student,
    "rows without the target, the same of noise": rows_without_target,
    "n to infinity, least squares of the population": many_samples,
    "components split": split_strata,
    "Hermite degrees to 3, to 8": hermite_degrees,
}
