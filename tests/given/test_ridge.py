"""Ridge regression over strata: closed forms, the literal equations, and limits.  Section 20."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from replica import FirstLayer, solve
from replica.convex import LOSSES
from replica.given.evaluate_readout import errors_at
from replica.given.gaussian import MomentStrata
from replica.given.layer_strata import layer_strata
from replica.given.nodes import condition
from replica.given.solve_point import solve_point
from replica.given.strata import Stratified, StratumLabels, labels_of
from replica.problem import activation
from solvers.results import Status
from solvers.rules import gauss_hermite, tensor_rule
from tests.given.literal import layer_moments, one_stratum, ridge_errors

TIGHT = 1e-12
MODES = 1e-9  # tolerance of what modes leave out, far below the other errors here


def errors(strata, labels, samples, lam, tol=TIGHT):
    """Test and training error."""
    given = Stratified(strata, labels, labels_of(labels.h, [(0.0, 1.0)], binary=False))
    solved = solve_point(given, LOSSES["square"], samples, lam, tol=tol)
    assert solved.status is Status.CONVERGED
    assert solved.residual < 1e3 * tol
    return errors_at(given, solved, LOSSES["square"])[0][:2]


def rows(draw, p, d, loading=1.0):
    """Weights (p, d) with a spike of that ``loading`` on the first two axes."""
    weights = draw.standard_normal((p, d)) / np.sqrt(d)
    weights[:, 0] += loading * (1 + 0.3 * draw.standard_normal(p))
    weights[:, 1] += 0.5 * loading
    return weights


@pytest.fixture(scope="module")
def layer():
    """A small layer with biases: (weights, biases, directions, rule)."""
    draw = np.random.default_rng(0)
    p, d = 40, 30
    rule = tensor_rule(gauss_hermite(10), gauss_hermite(8))
    return rows(draw, p, d), 0.3 * draw.standard_normal(p), np.eye(d)[:, :2], rule


def of_layer(layer, student="tanh", k_max=2):
    """Its strata, and labels sin(z1) + z2 / 2 with noise."""
    weights, biases, directions, rule = layer
    given = condition(weights, biases, directions, 1.0, np.zeros(30), None)
    strata = layer_strata(given, activation(student), rule, k_max, MODES)
    kappa = rule.nodes @ given.axes.T
    h = np.sin(kappa[:, 0]) + kappa[:, 1] / 2
    return strata, StratumLabels(strata.shares, h, np.zeros_like(h), 0.1)


@pytest.mark.parametrize("samples", [15, 40, 200])
def test_one_stratum_is_ridge_regression_with_a_covariance(samples):
    draw = np.random.default_rng(1)
    p = 30
    covariance = np.diag(np.arange(1.0, p + 1) ** -1.0)
    slope = draw.standard_normal(p) / np.sqrt(p)
    along = covariance @ slope
    strata = MomentStrata(np.ones(1), np.zeros((1, p)), covariance[None], along[None], p)
    labels = StratumLabels(np.ones(1), np.zeros(1), np.array([slope @ along]), 0.2)
    expected = one_stratum(covariance, slope, 0.2, samples, 0.05)
    assert errors(strata, labels, samples, 0.05) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("student", ["tanh", "relu"])
@pytest.mark.parametrize("k_max", [1, 2, 3])
def test_low_rank_is_the_literal_equations(layer, student, k_max):
    weights, biases, directions, rule = layer
    strata, labels = of_layer(layer, student, k_max)
    smooth = activation(student)
    mu, S = layer_moments(weights, biases, smooth, directions, rule.nodes, k_max)
    none = np.zeros_like(mu)
    expected = ridge_errors(rule.weights, mu, S, labels.h, labels.spread, none, 0.1, 60, 0.05)
    # the literal rule over z passes the kink of relu
    assert errors(strata, labels, 60, 0.05) == pytest.approx(
        expected, rel=2e-6 if student == "tanh" else 1e-3
    )


def test_many_samples_give_the_least_squares_of_the_population(layer):
    strata, labels = of_layer(layer)
    M = strata.mix(strata.shares)
    b = strata.mix_vectors(strata.shares * labels.h, np.zeros_like(labels.h))
    best = labels.weights @ labels.h**2 - b @ np.linalg.solve(M, b)
    test, train = errors(strata, labels, 1e9, 1e-6)
    assert test == pytest.approx(best, rel=1e-6)
    assert train == pytest.approx(best + labels.noise, rel=1e-6)


def test_what_did_not_converge_says_so(layer):
    strata, labels = of_layer(layer)
    bad = replace(strata, correlation=np.nan * strata.correlation)
    given = Stratified(bad, labels, labels_of(labels.h, [(0.0, 1.0)], binary=False))
    assert solve_point(given, LOSSES["square"], 60, 0.05).status is Status.NOT_FINITE


def test_degrees_of_freedom_of_the_last_strata(layer):
    """df_1 is n E V / (1 + V), too, since the readout's fit takes that of every sample."""
    strata, labels = of_layer(layer)
    given = Stratified(strata, labels, labels_of(labels.h, [(0.0, 1.0)], binary=False))
    solved = solve_point(given, LOSSES["square"], 40.0, 0.1, tol=TIGHT)
    V, G = solved.field.response[0], solved.posterior.response
    fitted, squared, *_ = solved.freedom
    assert fitted == pytest.approx(40 * strata.shares @ (V / (1 + V)), rel=1e-9)
    sizes = 1 / np.linalg.eigvalsh(G) - 0.1  # A's
    assert squared == pytest.approx(((sizes / (sizes + 0.1)) ** 2).sum(), rel=1e-9)


@pytest.mark.parametrize("lam", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8])
def test_a_small_error_is_right_or_flagged(lam):
    """Without noise errors of a linear readout fall as lam^2, far below the labels' power."""
    rng = np.random.default_rng(0)
    weights, along = rng.standard_normal((80, 40)) / np.sqrt(40), rng.standard_normal(40)
    layer = FirstLayer(
        weights=weights, student="linear", target="z1", directions=along / np.linalg.norm(along)
    )
    point = solve(layer, samples=60, lam=lam)
    # in the basis of singular vectors, ridge regression of a target that features can make
    s, of_target = np.linalg.svd(weights, full_matrices=False)[1:]
    size, part = s**2, (of_target @ layer.directions)[:, 0] ** 2

    def gap(log_kappa):
        kappa = np.exp(log_kappa)
        return 60 - (size / (size + kappa)).sum() - 80 * lam / kappa

    kappa = np.exp(brentq(gap, -60, 20))
    left = kappa / (size + kappa)
    expected = (part @ left**2) / (1 - ((1 - left) ** 2).sum() / 60)
    # strata, which are given z1, and the closed form differ by some 1/d
    assert not point.converged or point.test_error == pytest.approx(expected, rel=0.04)
    # at 1e-4 the machine's last digits decide whether rounding hides it
    assert point.converged if lam >= 1e-3 else lam == 1e-4 or not point.converged
