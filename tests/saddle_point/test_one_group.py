"""The compiled core of the responses against those of the general code."""

from dataclasses import replace

import numpy as np
import pytest

import replica
from replica.equivalence import table_at
from replica.saddle_point import Points, ridge
from replica.saddle_point.correlated import CorrelatedGroup
from replica.saddle_point.groups import Groups
from replica.saddle_point.isotropic import Isotropic
from replica.saddle_point.ridge import residual
from solvers.results import Status

MIXTURE = replica.GaussianMixture(
    means=[[1.2, -0.4], [-0.7, 0.8]],
    covariances=[[[1.5, 0.3], [0.3, 0.8]], [[0.6, -0.2], [-0.2, 1.9]]],
    fractions=[0.4, 0.6],
)
TWO = dict(student="relu", target="z1*z2 + sin(z2)")
MODELS = {
    "odd": dict(student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97),
    "noisy": dict(student="erf", target="tanh", r=0.6, c=1.4, gamma=0.5, beta=1.7, noise=0.2),
    "relu": dict(student="relu", target="relu", r=0.3, c=1.03, gamma=0.83, beta=0.4),
    "no spike": dict(student="relu", target="he1+he2/2", r=0.0, c=1.0, gamma=0.0, beta=0.8),
    "linear": dict(student="linear", target="sign", r=2.0, c=0.7, gamma=-0.6, beta=2.5),
    "finite": dict(student="sigmoid", target="sin", r=1.0, c=1.0, gamma=0.9, dimension=100),
    "two directions": dict(TWO, r=1.2, c=0.8, gamma=[[0.6, 0.3]], noise=0.1),
    "two spikes": dict(TWO, r=[[1.2, 0.4]], c=0.8, gamma=[[0.6, 0.3], [-0.2, 0.5]], beta=0.7),
    "odd, two spikes": dict(
        student="tanh", target="tanh(z1)*z2**2", r=[[0.6, 0.2]], c=0.5, gamma=np.eye(2)
    ),
    "mixture": dict(TWO, r=1.2, c=0.8, gamma=[[0.6, 0.3]], inputs=MIXTURE, beta=1.6),
    "mixture, finite": dict(TWO, r=0.7, c=1, gamma=[[0.6, 0.3]], inputs=MIXTURE, dimension=50),
}
STEPS = {  # of networks: name -> step, options of the network
    "odd": (dict(student="tanh", target="sin", alpha0=0.3, eta=6.0), {}),
    "relu": (dict(student="relu", target="relu", alpha0=1.0, eta=3.0, noise=0.2), dict(beta=1.7)),
    "two steps": (dict(student="gelu", target="tanh", steps=[(1, 2)] * 2), dict(beta=0.6)),
    "equal norms": (dict(student="relu", target="sin", alpha0=3, eta=1), dict(row_norms=False)),
    "norms follow u": (dict(student="erf", target="he1", alpha0=np.inf, eta=4.0), {}),
    "no step": (dict(student="relu", target="sin", alpha0=1.0, eta=0.0), {}),
    "zero residual": (dict(student="tanh", target="he2", alpha0=1.0, eta=2.0), {}),
    "finite": (dict(student="sigmoid", target="sin", alpha0=1, eta=3), dict(dimension=100)),
    "two directions": (dict(TWO, alpha0=0.5, eta=2.0), {}),
    "mixture": (dict(TWO, alpha0=1.0, eta=2.0, noise=0.1, inputs=MIXTURE), dict(beta=0.7)),
    "mixture, equal norms": (dict(TWO, alpha0=3, eta=1, inputs=MIXTURE), dict(row_norms=False)),
    "mixture, finite": (dict(TWO, alpha0=1, eta=3, inputs=MIXTURE), dict(dimension=100)),
}
ALPHA = np.array([0.05, 0.3, 1.0, 4.0, 30.0])
LAM = np.array([10.0, 1e-3, 1e-6, 0.1, 1e-2])


def general(responses, alpha=ALPHA, lam=LAM):
    """The points by the code for any number of groups."""
    result = responses.solve(alpha, lam, 1e-14)
    readout = ridge.trained_readout(responses, result.value, alpha, lam)
    unchecked = np.full(len(alpha), np.inf)
    return Points(*readout, result.residual, unchecked, result.iterations, result.status)


def checked(fine, coarse, alpha, lam):
    """The points, with their residual, and their quadrature errors."""
    points = ridge.solve_points(fine, alpha, lam, coarse=coarse)
    return points, points.quadrature_error


def model_of(name):
    if name in MODELS:
        return replica.SpikedRandomFeatures(**MODELS[name])
    fields, options = (dict(part) for part in STEPS[name.removeprefix("network, ")])
    norms, beta = options.pop("row_norms", True), options.pop("beta", 1.0)
    return replace(replica.GradientStep(**fields).network(beta=beta, row_norms=norms), **options)


def of(name):
    return table_at(model_of(name), 1)


NETWORKS = [f"network, {name}" for name in STEPS]


def assert_agree(found, expected, rel):
    """Numbers relative to themselves, those that may vanish to a tenth of 1."""
    for mine, theirs in zip(found[:3], expected[:3], strict=True):
        for name in mine._fields:
            floor = rel / 10 if name in ("m", "theta", "psi", "special", "X2") else 0
            value = pytest.approx(getattr(theirs, name), rel=rel, abs=floor)
            assert getattr(mine, name) == value, name
    assert (found.status == Status.CONVERGED).all()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("responses", [Isotropic, Groups])
def test_core_is_the_general_code_at_one_group(name, responses):
    """To 1e-11 of the closed forms; the matrices of ``Groups`` lose half the digits of a nearly
    singular system at lam = 1e-6 and alpha = 1."""
    table = of(name)
    rel = 1e-11 if responses is Isotropic else 1e-9
    assert_agree(ridge.solve_points(table, ALPHA, LAM), general(responses(table)), rel)


@pytest.mark.parametrize("name", NETWORKS)
def test_core_is_the_general_code_of_a_network(name):
    """To 1e-11, which rows are tabulated to, and its residual is that of the equations as the
    general code has them."""
    table = of(name)
    found, error = checked(table, table, ALPHA, LAM)
    assert_agree(found, general(CorrelatedGroup(table)), 1e-11)
    assert error.max() < 1e-11
    assert residual([table], ALPHA, LAM, found).max() < 1e-12


@pytest.mark.parametrize("lam", [1e-8, 1e3])
@pytest.mark.parametrize("name", ["network, relu", "network, norms follow u"])
def test_network_at_its_thresholds(name, lam):
    """alpha = beta and alpha = 1, where the equations nearly cancel, and few samples, where Newton
    tries q < 0."""
    table = of(name)
    alpha, lam = np.array([table.beta, 1.0, 1.001, 0.02]), np.full(4, lam)
    found, error = checked(table, table, alpha, lam)
    assert (found.status == Status.CONVERGED).all()
    assert error.max() < 1e-10  # what is asked of a point
    expected = ridge.trained_readout(
        CorrelatedGroup(table),
        np.column_stack([found.overlaps.V1[:, 0, 0], found.overlaps.V2]),
        alpha,
        lam,
    )
    # the readout of the same V: 1e-13 of it, amplified by 1 / lam at worst
    assert found.errors.test == pytest.approx(expected[2].test, rel=1e-9)
    assert found.errors.train == pytest.approx(expected[2].train, rel=1e-9)


@pytest.mark.parametrize("name", [*MODELS, "network, odd", "network, relu"])
def test_violations_are_those_of_the_general_code(name, monkeypatch):
    """On a table too coarse, and of numbers that solve nothing; to 1e-6 of the larger, of a
    network to what c_e changes in second order."""
    fine, coarse = of(name), table_at(model_of(name), 0)
    every_third = np.arange(0, coarse.weights.size, 3)
    weights = coarse.weights[every_third] / coarse.weights[every_third].sum()
    varying = ("kappa", "mean", "root", "offsets", "mu1", "mu2sq", "loadings", "h", "g", "spread")
    rough = {field: getattr(coarse, field)[..., every_third].copy() for field in varying}
    coarse = replace(coarse, weights=weights, **rough)
    found, error = checked(fine, coarse, ALPHA, LAM)
    monkeypatch.setattr(ridge, "compiled_core", lambda: None)
    ridge.responses_of.cache_clear()
    expected = residual([coarse], ALPHA, LAM, found)[0]
    assert expected.max() > 1e-10 or name == "no spike"  # whose table is constant
    rel = 1e-6 if name in MODELS else max(1e-6, 10 * expected.max())
    assert error == pytest.approx(expected, rel=rel, abs=1e-13)


def test_what_is_not_finite_is_flagged():
    """In its row alone."""
    table = of("odd")
    alpha, lam = np.array([1.0, 1e300, 1.0]), np.array([0.1, 1e-300, 0.1])
    with np.errstate(all="ignore"):  # numpy warns where the functions are not compiled
        points, error = checked(table, table, alpha, lam)
    assert points.status[0] == points.status[2] == Status.CONVERGED
    assert points.status[1] != Status.CONVERGED or not points.residual[1] <= 1e-10
    assert error[0] < 1e-13


TEST = dict(alpha=0.9, lam=0.1)
MODEL = replica.SpikedRandomFeatures(**MODELS["odd"])


def test_noise_of_features_is_what_no_input_explains():
    """As the part he2 of an activation, where there is no spike."""
    of = dict(target="sin", r=0.0, c=1.0, gamma=0.0)
    noisy = replica.SpikedRandomFeatures(student="linear", feature_noise=0.32, **of)
    curved = replica.SpikedRandomFeatures(student="he1 + .4*he2", **of)
    found, expected = (replica.solve(model, **TEST) for model in (noisy, curved))
    assert found.test_error == pytest.approx(expected.test_error, rel=1e-12)
    assert found.train_error == pytest.approx(expected.train_error, rel=1e-12)
