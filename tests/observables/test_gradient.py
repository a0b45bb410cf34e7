"""Implicit derivatives against finite differences of the solver."""

from dataclasses import replace

import numpy as np
import pytest

import replica
from replica import GaussianMixture, GradientStep, InvalidArgument, SpikedRandomFeatures
from solvers.results import Status
from tests.problems import PUBLISHED


def step(student, target, **fields):
    return GradientStep(student=student, target=target, **fields)


def srf(student, target, **fields):
    return SpikedRandomFeatures(student=student, target=target, **fields)


SIN = step("tanh", "sin", alpha0=3, eta=1.0, noise=0.1, readout=[-1, 0.5, 2])
THREE = GaussianMixture(means=[[0.0], [1.0], [2.0]])
PROBLEMS = {  # alpha, lam, beta
    "published": (PUBLISHED, 0.9, 0.1, 1.0),
    "relu, noise": (step("relu", "tanh", alpha0=3, eta=1.0, noise=0.1), 2.0, 0.01, 0.7),
    "biases, intercept": (
        step("sigmoid", "relu", alpha0=2, eta=2.0, bias=[-1, 1], intercept=True), 1.5, 0.05, 1.2),
    "sRF": (srf("tanh", "sign", r=1.0, c=1.2, gamma=0.7, beta=2.0), 1.0, 0.01, None),
    "network": (step("tanh", "sin", alpha0=0.5, eta=3.0).network(beta=1.0), 1.5, 0.05, None),
    "three components": (
        step("tanh", "sin(z1)", alpha0=2, eta=1.0, inputs=THREE), 1.0, 0.1, 0.8),
}  # fmt: skip
SLOW = {
    "three groups": (SIN, 2.0, 0.01, 0.7),
    "network, two steps": (
        step("tanh", "sin", steps=[(2, 1)] * 2, noise=0.1).network(beta=1.5), 0.9, 0.01, None),
    "alpha = beta": (srf("erf", "sin", r=0.5, c=1.0, gamma=-0.6, noise=0.2), 1.0, 1e-3, None),
    "relu network, alpha = beta": (
        step("relu", "relu", alpha0=1, eta=1.0, noise=0.1).network(beta=1), 1.0, 0.01, None),
    "network, norms follow u": (
        step("erf", "he1", alpha0=np.inf, eta=4, noise=0.1).network(beta=0.7), 0.9, 0.01, None),
    "network, two directions": (
        step("relu", "z1+z1*z2", alpha0=2, eta=1, noise=0.1).network(beta=1), 0.9, 0.01, None),
}  # fmt: skip

SRF = srf("tanh", "sign", r=1.5, c=1.3, gamma=0.8)
NOISY = srf("tanh", "sin", r=1.1, c=1, gamma=0.7, noise=0.05)
LOSSES = {
    "huber:1": (NOISY, 2.0, 0.1, None),
    "logistic": (SRF, 2.0, 0.05, None),
    "hinge": (SRF, 0.7, 0.05, None),
    "huber:0.3": (replace(SIN, target="relu"), 1.0, 0.1, 0.8),  # with a kink, in three groups
    "huber:0.5": (
        step("tanh", "sin", alpha0=0.5, eta=3.0, noise=0.1).network(beta=1), 1.0, 0.1, None),
    "square": (  # labels +-1 at random
        step("tanh", "sin", alpha0=3, eta=3.0, label_noise="logistic"), 1.0, 0.1, 1.0),
}  # fmt: skip


def difference_weights(offsets):
    """Weights of values at ``offsets`` that give the derivative at 0."""
    powers = np.vander(offsets, increasing=True).T.astype(float)
    return np.linalg.solve(powers, np.arange(len(offsets)) == 1)


def errors(problem, name, value, alpha, lam, beta, **loss):
    """Both errors with the parameter ``name`` set to ``value``."""
    at = {"alpha": alpha, "lam": lam} | loss
    if name in at:
        at[name] = value
    elif name == "beta" and beta is not None:
        beta = value
    else:
        problem = problem.model_at(**{name: value} | ({} if beta is None else {"beta": beta}))
        beta = None
    point = replica.solve(problem.model_at(beta=beta), **at)
    return np.array([point.test_error, point.train_error])


def assert_slopes(found, of, names, length, rel, abs, **options):
    """Derivatives are five-point differences of steps of that ``length`` of (name, value)."""
    problem, alpha, lam, beta = of
    own = {"alpha": alpha, "lam": lam, "beta": problem.beta if beta is None else beta}
    step_of = problem if problem.rows is None else problem.step
    for name in names:
        value = own[name] if name in own else getattr(step_of, name)
        step, offsets = length(name, value), np.arange(5) if value == 0 else np.arange(-2, 3)
        slope = sum(
            w * errors(problem, name, value + k * step, alpha, lam, beta, **options)
            for k, w in zip(offsets, difference_weights(offsets) / step, strict=True)
            if w
        )
        mine = [found.test_error[name], found.train_error[name]]
        assert mine == pytest.approx(slope, rel=rel, abs=abs), name


@pytest.mark.parametrize(
    "case", [*PROBLEMS, *(pytest.param(c, marks=pytest.mark.slow) for c in SLOW)]
)
def test_against_finite_differences(case):
    """Five-point differences of step 1e-3 are good to about 1e-10 of the errors' own scale."""
    problem, alpha, lam, beta = of = (PROBLEMS | SLOW)[case]
    found = replica.gradient(problem, alpha=alpha, lam=lam, beta=beta)
    assert {"alpha", "lam", "beta", "noise"} <= set(found.test_error)

    def length(_, value):
        return 1e-3 * (abs(value) or 1.0)

    assert_slopes(found, of, found.test_error, length, 1e-6, 1e-8)


@pytest.mark.parametrize(
    ("loss", "names"),
    [
        ("huber:1", ["gamma"]),
        *(pytest.param(loss, None, marks=pytest.mark.slow) for loss in LOSSES),
    ],
)
def test_of_any_loss(loss, names):
    """Five-point differences of solutions on ever new nodes, each to 1e-8 of itself."""
    problem, alpha, lam, beta = of = LOSSES[loss]
    found = replica.gradient(problem, alpha=alpha, lam=lam, beta=beta, loss=loss)

    def length(name, value):
        return 0.01 * min(value, 1 - value if name == "gamma" else 1.0)

    options = dict(loss=loss, quadrature_tol=1e-8)
    assert_slopes(found, of, names or found.test_error, length, 1e-5, 1e-6, **options)


PLAIN = srf("tanh", "sin", r=1.0, c=1.2, gamma=0.7, beta=1.3, noise=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["square", "huber:1"])
@pytest.mark.parametrize(
    ("name", "value", "step"),
    [("noise", 1e-300, 1e-3), ("noise", 1e-30, 1e-3), ("beta", 1e-30, 1e-3), ("r", 0.0, 1e-3),
     ("r", 1e-300, 1e-3), ("r", 1e-6, 1e-3), ("c", 1e-6, 1e-7), ("gamma", 1 - 1e-12, -1e-4)],
)  # fmt: skip
def test_beside_a_bound_a_derivative_is_right_or_flagged(name, value, step, loss):
    """Against one-sided differences of fourth order on a wider step; at r = 0 errors jump."""
    at = dict(alpha=1.5, lam=0.1, loss=loss)
    found = replica.gradient(replace(PLAIN, **{name: value}), **at)
    assert found.point.converged
    offsets = np.arange(5)
    points = [replica.solve(replace(PLAIN, **{name: value + k * step}), **at) for k in offsets]
    reference = difference_weights(offsets) / step @ [[x.test_error, x.train_error] for x in points]
    mine = [found.test_error[name], found.train_error[name]]
    if name == "noise":
        assert found.status is Status.CONVERGED
    if np.isfinite(mine).all():  # the reference is known to 1e-13 over its step
        assert mine == pytest.approx(reference, rel=1e-5, abs=1e-9)
    else:
        assert found.status is Status.NO_DERIVATIVE


@pytest.mark.slow
@pytest.mark.parametrize("eta", [1e-30, 1e-6])
def test_rates_that_all_but_vanish(eta):
    """Of an odd student errors jump where the spike appears, and are even in eta beyond it: their
    slope at 1e-6 is a thousandth of that at 1e-3, to the 1e-12 of errors over differences of some
    thousandths; of other students they do not jump."""
    odd = GradientStep(student="tanh", target="sin", alpha0=2.0, eta=eta, noise=0.1)
    found = replica.gradient(odd, alpha=1.5, lam=0.1, beta=1.3)
    if eta == 1e-30:
        assert np.isnan(found.test_error["eta"])
        assert found.status is Status.NO_DERIVATIVE
    else:
        larger = replica.gradient(replace(odd, eta=1e-3), alpha=1.5, lam=0.1, beta=1.3)
        expected = 1e-3 * larger.test_error["eta"]
        assert found.test_error["eta"] == pytest.approx(expected, abs=5e-9)
    relu = replace(odd, student="relu", target="he2")
    found = replica.gradient(relu, alpha=1.5, lam=0.1, beta=1.3)
    points = [
        replica.solve(replace(relu, eta=eta + k * 1e-3).model_at(beta=1.3), alpha=1.5, lam=0.1)
        for k in range(5)
    ]
    reference = difference_weights(np.arange(5)) / 1e-3 @ [point.test_error for point in points]
    assert found.test_error["eta"] == pytest.approx(reference, rel=1e-5)


@pytest.mark.slow
def test_a_point_without_a_solution_has_no_derivatives():
    found = replica.gradient(NOISY, alpha=2.0, lam=0.1, loss="huber:1", quadrature_tol=1e-15)
    assert not found.point.converged
    assert np.isnan([*found.test_error.values(), *found.train_error.values()]).all()


@pytest.mark.slow
def test_neurons_of_equal_readouts_are_of_one_kind():
    """Two values that are the same, and a value that no neuron has."""
    step = GradientStep(student="relu", target="sin", alpha0=2, eta=1.0)
    one, *others = (
        replica.gradient(replace(step, readout=law).network(beta=1.0), alpha=1.0, lam=0.1)
        for law in (0.7, [0.7, 0.7], ([0.7, 2.0], [1.0, 0.0]))
    )
    assert np.isfinite(one.test_error["eta"])
    for other in others:
        assert (other.test_error, other.train_error) == (one.test_error, one.train_error)


def test_what_has_no_derivative():
    step = GradientStep(student="tanh", target="sin", alpha0=np.inf, eta=0.0)
    found = replica.gradient(step, alpha=1.0, lam=0.1, beta=1.0)
    assert "alpha0" not in found.test_error  # infinite
    assert np.isnan(found.test_error["eta"])  # no step, no spike
    assert found.status is Status.NO_DERIVATIVE
    assert np.isfinite(found.test_error["noise"])
    several = GradientStep(student="tanh", target="sin", alpha0=1, eta=1.0, readout=[1, 2])
    with pytest.raises(InvalidArgument, match="theory must be srf here: neurons of the network"):
        replica.gradient(several.network(beta=1.0), alpha=1.0, lam=0.1)
    with pytest.raises(InvalidArgument, match="train_bias"):
        replica.gradient(replace(step, train_bias=True), alpha=1.0, lam=0.1, beta=1.0)
    with pytest.raises(InvalidArgument, match="beta"):
        replica.gradient(step, alpha=1.0, lam=0.1)


@pytest.mark.parametrize(("lam", "expected"), [(3e-5, -31.6956), (1e-6, -1150.79), (1e-8, -107584)])
def test_where_errors_turn_steeply(lam, expected):
    """At interpolation, where alpha matters within sqrt(lam): the six digits that complex steps
    through the equations had."""
    step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    found = replica.gradient(step, alpha=1.0, lam=lam, beta=1.0)
    assert found.status is Status.CONVERGED
    assert found.test_error["alpha"] == pytest.approx(expected, rel=1e-5)
