"""Bounds, optima, the learned function: limits, identities, independent minimisation."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import erf

import replica
from replica import GradientStep, InvalidArgument, SpikedRandomFeatures
from replica.equivalence import table_at_kappa
from solvers.results import ConvergenceError
from tests.problems import PUBLISHED as STEP

Z = np.linspace(-8.5, 8.5, 801)
W = np.exp(-(Z**2) / 2) / np.exp(-(Z**2) / 2).sum()


@st.composite
def models(draw):
    """One to three groups of an odd or a general student, any cosine, noise and width."""
    groups = draw(st.integers(1, 3))
    # spikes of 1e-9, say, leave mu_0 of rounding's size: flagged, and no test of the bounds
    length = st.one_of(st.just(0.0), st.floats(0.1, 2), st.floats(-2, -0.1))
    numbers = st.lists(length, min_size=groups, max_size=groups)
    return SpikedRandomFeatures(
        student=draw(st.sampled_from(["tanh", "erf", "relu", "sigmoid", "sin"])),
        target=draw(st.sampled_from(["tanh", "sin", "he1+he3/2", "relu"])),
        r=draw(numbers),
        c=draw(st.lists(st.floats(0.3, 2), min_size=groups, max_size=groups)),
        gamma=draw(st.floats(-1, 1)),
        beta=draw(st.floats(0.2, 4)),
        noise=draw(st.sampled_from([0.0, 0.3])),
        intercept=draw(st.booleans()),
    )


@settings(max_examples=30, deadline=None)
@given(models(), st.floats(0.1, 5))
def test_large_penalty_attains_the_upper_bound(model, alpha):
    """epsilon_g - U = O(alpha / lam): 1e-6 at lam = 1e8 has two digits to spare."""
    found = replica.bounds(model)
    point = replica.solve(model, alpha=alpha, lam=1e8)
    assume(found.converged and point.converged)
    assert point.test_error == pytest.approx(found.upper, rel=1e-6, abs=1e-9)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(models(), st.floats(0.1, 5))
def test_every_optimum_lies_between_the_bounds(model, alpha):
    found = replica.bounds(model)
    best = replica.optimal_lambda(model, alpha=alpha)
    assume(found.converged and best.converged)
    slack = 1e-9 * (1 + found.upper)  # rounding of errors of order 1
    # U is reached as lam -> inf: where the search ends, at lam = 1e4, terms in 1/lam^2 are left
    above = slack + 1e-8
    assert found.lower - slack <= best.test_error <= found.upper * (1 + 1e-3) + above
    assert found.lower <= found.upper + slack


def test_upper_bound_is_a_distance():
    """gamma = 1: the distance of sigma_* to span{mu_0}, minimised by scipy on its own rule."""
    model = SpikedRandomFeatures(student="erf", target="sin", r=1.2, c=0.7, gamma=1.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    mu0 = erf(1.2 * nodes / np.sqrt(1 + 2 * 0.7))
    best = minimize_scalar(lambda m: weights @ (np.sin(nodes) - m * mu0) ** 2)
    found = replica.bounds(model)
    assert found.upper == pytest.approx(best.fun, rel=1e-8)  # the rule's own accuracy
    x = np.array([-1.0, 0.3, 2.0])
    shape = erf(1.2 * x / np.sqrt(1 + 2 * 0.7))
    assert found.upper_function(x) == pytest.approx(best.x * shape, rel=1e-6)  # Brent's place


def test_functions_attain_the_bounds():
    """E of the squared distance of the returned callables, on a rule of its own; what is across
    the spike is target variance less the part that psi fits."""
    model = replace(STEP, readout=[-1, 0.5, 2]).srf(beta=1.0)
    found = replica.bounds(model)
    z, w = Z, W
    h = found.target_function(z)
    table, _ = table_at_kappa(model, z)
    upper = w @ (table.spread + (h - found.upper_function(z)) ** 2)
    across = (table.g[0] - found.psi[:, 0] @ table.mu1) ** 2 - table.g[0] ** 2
    lower = w @ (table.spread + (h - found.lower_function(z)) ** 2 + across)
    assert upper == pytest.approx(found.upper, rel=1e-10)  # both rules are exact to rounding
    assert lower == pytest.approx(found.lower, rel=1e-9)


@pytest.mark.slow
def test_erf_learns_erf():
    """E erf(r kappa + sqrt(c) z) = erf(r kappa / sqrt(1 + 2c)): exact at r = sqrt(1 + 2c)."""
    best = replica.best_bounds(GradientStep(student="erf", target="erf", alpha0=np.inf, eta=1))
    model = best.at_upper.model
    assert 0 <= best.upper <= 1e-8
    assert model.r == pytest.approx(np.sqrt(1 + 2 * model.c), rel=1e-7)  # of a quadratic minimum
    assert not best.edge_upper


@pytest.mark.parametrize(("student", "constant"), [("tanh", False), ("relu", True)])
def test_random_features_learn_linear_functions(student, constant):
    """The published statement on the RF limit: L is the best linear predictor's error."""
    step = GradientStep(student=student, target="he0/2+he1+he2", alpha0=3, eta=0.0)
    found = replica.bounds(step)
    # E sigma_*^2 = 1/4 + 1 + 2; the linear part takes 1, the constant 1/4
    assert found.linear == pytest.approx(2.0 if constant else 2.25, rel=1e-12)
    assert found.lower == pytest.approx(found.linear, rel=1e-12)
    assert replica.bounds(replace(step, intercept=True)).lower == pytest.approx(2.0, rel=1e-12)


@pytest.mark.slow
def test_bounds_over_the_rate_and_its_edges():
    found = replica.bounds(STEP, eta=[1.0, 3.0, 10.0])
    assert found.lower[1] == replica.bounds(STEP).lower
    for one in (found, found.each[1]):  # an error below "lower" is no contradiction
        assert f"{one.linear:.6g} (the best linear predictor of the inputs, not of" in repr(one)
    assert found.converged
    best = replica.best_bounds(STEP)
    assert best.upper <= found.upper.min()
    assert best.lower <= found.lower.min()
    assert replica.best_bounds(STEP, eta=(0.1, 1.0)).edge_upper
    made = STEP.srf(beta=1)  # it remembers the step
    assert np.array_equal(replica.bounds(made, eta=[1.0, 3.0, 10.0]).lower, found.lower)
    assert replica.best_bounds(made).lower == best.lower
    with pytest.raises(InvalidArgument, match=r"eta must be left out.*sRF.*got \[1.0\]"):
        replica.bounds(replace(made, r=1.0), eta=[1.0])


def test_trained_bias_refines_the_bounds():
    """[C] Eq. (132): the minimum over untrained biases of the features of the unbiased step, found
    by values to the root of their rounding."""
    model = replace(STEP, student="relu").srf(beta=1)
    found = replica.bounds(replace(model, train_bias=True))
    for name in ("lower", "upper"):
        bias = getattr(found, f"bias_{name}")
        best = minimize_scalar(
            lambda t, name=name: getattr(replica.bounds(replace(model, bias=t)), name),
            bounds=(bias - 1, bias + 0.5),
            method="bounded",
            options=dict(xatol=1e-7),
        )
        assert getattr(found, name) == pytest.approx(best.fun, rel=1e-12)
        assert bias == pytest.approx(best.x, abs=1e-6)
        for other in np.linspace(-6, 6, 13):
            bound = getattr(replica.bounds(replace(model, bias=other)), name)
            assert getattr(found, name) <= bound


@pytest.mark.slow
def test_a_bias_at_which_an_even_student_has_no_linear_part():
    """At every bias but 0 the best linear function of the inputs is within reach, to 1/6."""
    step = GradientStep(
        student="exp(-x**2)", target="z1 + (z1**3 - 3*z1)/6", steps=[(1, 0), (2, 2)],
        label_noise="outliers:0.1:10", train_bias=True,
    )  # fmt: skip
    found = replica.bounds(step)
    assert found.lower == pytest.approx(1 / 6, rel=1e-10)
    assert found.bias_lower != 0
    assert found.upper == pytest.approx(7 / 6, rel=1e-10)
    assert replica.solve(step.srf(beta=1.0), alpha=1000.0, lam=1e-3).test_error > found.lower


@pytest.mark.parametrize(
    ("student", "target", "lower"),
    [pytest.param("tanh", "he2", 2, marks=pytest.mark.slow), ("linear", "he1", 0)],
)
def test_a_bias_that_makes_no_difference_to_a_bound(student, target, lower):
    """The direction of the step says nothing of an even target, at any bias, and all of a linear
    one, where bounds are rounding: of all biases, 0 is taken."""
    step = GradientStep(student=student, target=target, alpha0=2.0, eta=1.0, train_bias=True)
    found = replica.bounds(step)
    assert found.converged
    assert found.bias_lower == 0
    assert found.bias_upper == pytest.approx(0, abs=1e-8)  # as found where it does matter
    assert found.lower == pytest.approx(lower, abs=1e-12)


def test_optimum_is_stationary():
    """The derivative by implicit differentiation vanishes where the search has stopped."""
    best = replica.optimal_eta(STEP, alpha=1.0, beta=1.0)
    slopes = replica.gradient(
        replace(STEP, eta=best.eta), alpha=1.0, lam=best.lam, beta=1.0
    ).test_error
    # relative to epsilon_g / parameter ~ 1e-2, ten digits
    assert abs(slopes["eta"]) < 1e-12
    assert abs(slopes["lam"]) < 1e-11
    assert best.at_edge == ()
    fixed = replica.optimal_eta(STEP, alpha=1.0, beta=1.0, lam=best.lam)
    assert fixed.eta == pytest.approx(best.eta, rel=1e-8)
    assert replica.optimal_lambda(
        replace(STEP, eta=best.eta).srf(beta=1), alpha=1.0
    ).lam == pytest.approx(best.lam, rel=1e-8)


@pytest.mark.slow
def test_optimum_at_the_end_of_a_valley():
    """Of a relu student a larger penalty goes with a larger rate, oblique to the scan."""
    step = GradientStep(student="relu", target="sin", alpha0=3, eta=1.0)
    best = replica.optimal_eta(step, alpha=1.0, beta=1.0)
    slopes = replica.gradient(
        replace(step, eta=best.eta), alpha=1.0, lam=best.lam, beta=1.0
    ).test_error
    assert max(abs(slopes["eta"]), abs(slopes["lam"])) < 1e-10
    step = replace(step, target="relu")
    best = replica.optimal_eta(step, alpha=2.0, beta=1.0)
    assert (best.at_edge, best.eta) == (("eta",), pytest.approx(100))
    at_end = replica.optimal_lambda(best.point.model, alpha=2.0)
    assert at_end.lam == pytest.approx(best.lam, rel=1e-6)


def test_optimum_of_an_error_of_zero():
    """A target so small that its square is 0: as good at every penalty."""
    step = GradientStep(student="tanh", target="1e-200*he1", alpha0=20, eta=1.0)
    assert replica.optimal_lambda(step.srf(beta=1.0), alpha=2.0).test_error == 0


@pytest.mark.parametrize("size", [1, 1e8])
def test_no_optimum_is_lost_to_rounding(size):
    """Without noise, features that all of a linear target is in: errors vanish with the penalty,
    as far as the equations can be solved."""
    step = GradientStep(student="linear", target=f"{size}*z1", alpha0=20, eta=1.0)
    model = step.srf(beta=2.0)
    best = replica.optimal_lambda(model, alpha=3.0)
    (found,) = best.minima
    assert found.at_edge == ("lam",)
    assert found.test_error == pytest.approx(best.test_error, rel=1e-6)
    assert best.converged
    assert best.test_error / size**2 < 1e-7
    assert not replica.solve(model, alpha=3.0, lam=best.lam / 4).converged
    with pytest.raises(ConvergenceError, match="solved nowhere in the range"):
        replica.optimal_eta(step, alpha=3.0, beta=2.0, lam=1e-9)


def test_optimum_at_an_edge_is_reported():
    """Without noise, a linear network on a linear target: less penalty is always better."""
    model = SpikedRandomFeatures(student="linear", target="linear", r=0.0, c=1.0, gamma=0.0)
    best = replica.optimal_lambda(model, alpha=3.0)
    assert best.at_edge == ("lam",)
    assert best.lam == pytest.approx(1e-8, rel=1e-6)
    with pytest.raises(InvalidArgument):
        replica.optimal_lambda(model, alpha=1.0, lam=(1.0, 0.1))
    with pytest.raises(InvalidArgument):
        replica.optimal_eta(STEP, alpha=1.0)


@pytest.mark.slow
def test_nothing_converged_raises():
    """The best bias lies beyond those that are searched, at every one of these penalties."""
    model = SpikedRandomFeatures(
        student="softplus", target="linear", r=1, c=1, gamma=0.9, train_bias=True
    )
    with pytest.raises(ConvergenceError, match="solved nowhere in the range"):
        replica.optimal_lambda(model, alpha=2.0, lam=(0.01, 0.1))


@pytest.mark.parametrize("readout", [1.0, [-1, 0.5, 2]])
def test_learned_function_makes_the_error(readout):
    """E over kappa of the conditional error (4.7) is the test error; the cross term with the
    rest of the target from psi."""
    model = replace(STEP, alpha0=1.0, readout=readout).srf(beta=1.3)
    learned = replica.learned_function(model, alpha=1.0, lam=0.1)
    z, w = Z, W
    table, _ = table_at_kappa(model, z)
    square = (learned.mean(z) - learned.target_mean(z)) ** 2
    error = w @ (square + learned.variance(z) + learned.target_variance(z))
    error -= 2 * w @ (learned.point.overlaps.psi[:, 0] @ table.mu1 * table.g[0])
    assert error == pytest.approx(learned.point.test_error, rel=1e-10)
    bounds = replica.bounds(model)
    functions = learned.mean, learned.variance, learned.target_mean, bounds.lower_function
    assert all(function(np.empty((3, 0))).shape == (3, 0) for function in functions)


def test_large_penalty_learns_the_upper_function():
    model = STEP.srf(beta=1.0)
    kappa = np.linspace(-2, 2, 9)
    learned = replica.learned_function(model, alpha=1.0, lam=1e9)
    expected = replica.bounds(model).upper_function(kappa)
    assert learned.mean(kappa) == pytest.approx(expected, abs=1e-8)  # O(alpha / lam)
    assert learned.variance(kappa).max() < 1e-8


def test_bounds_are_of_the_model_that_was_given():
    """Its width, too, though they do not depend on it; a step has none, and gets 1."""
    step = GradientStep(student="tanh", target="sin", alpha0=2.0, eta=1.0)
    for model in (step.srf(beta=0.5), step.network(beta=0.5)):
        assert replica.bounds(model).model == model
    assert replica.bounds(step.network(beta=0.5), eta=[2.0]).each[0].model.beta == 0.5
    assert replica.bounds(step).model.beta == 1.0
