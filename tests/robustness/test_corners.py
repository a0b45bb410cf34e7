"""Corners of the ranges that are allowed: an answer, or a flag, and no exception of a library."""

import warnings

import numpy as np
import pytest

import replica
from replica import GaussianMixture, GradientStep, SpikedRandomFeatures
from replica.problem import Expression
from solvers.results import ConvergenceError, Status


def test_a_batch_far_smaller_than_the_input_is_flagged():
    """Below 1e-11 d samples a matrix of a network's rows is singular in double precision."""
    step = GradientStep(student="tanh", target="sin", alpha0=1e-12, eta=1.0)
    model = step.network(beta=1.0)
    curve = replica.learning_curve(model, alpha=[0.5, 1.0], lam=0.1)
    assert set(curve.status.values.ravel()) == {Status.NOT_FINITE.value}
    assert np.isnan(curve.test_error.values).all()
    assert replica.solve(step.srf(beta=1.0), alpha=1.0, lam=0.1).converged


def test_bounds_of_a_target_that_vanishes():
    step = GradientStep(student="tanh", target="0*z1", alpha0=4.0, eta=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = replica.bounds(step)
    assert found.converged
    assert (found.lower, found.upper, found.linear) == (0, 0, 0)


@pytest.mark.slow
def test_an_expression_is_continued_to_complex_arguments():
    """Its spectrum takes averages beside the real line: what drops an imaginary part there is
    wrong, and was said by a warning alone."""
    z = np.array([0.3 + 0.2j, -1.0 + 0.5j])
    assert Expression("tanh(3*z1) + he2(z1)")(z) == pytest.approx(np.tanh(3 * z) + z**2 - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = GradientStep(student="tanh", target="tanh(3*z1)", alpha0=4.0, eta=2.0)
        found = replica.spectrum(step.network(beta=1.0), 2.0)
    named = GradientStep(student="tanh", target=lambda x: np.tanh(3 * x), alpha0=4.0, eta=2.0)
    expected = replica.spectrum(named.network(beta=1.0), 2.0)
    assert found.edges == pytest.approx(expected.edges, rel=1e-6)  # to which density is known


@pytest.mark.parametrize(("variance", "rank"), [(1e-13, 3), (1e-14, 1), (1e-16, 2)])
@pytest.mark.parametrize("target", ["he2", "sin(z1) + z2"])
def test_components_that_are_all_but_points(variance, rank, target):
    """Against components that are points, to a few standard deviations of theirs."""
    draw = np.random.default_rng(3)
    means, roots = draw.standard_normal((2, 3)), draw.standard_normal((2, 3, rank))
    at, errors = dict(alpha=1.0, lam=0.1, raise_on_failure=True), []
    for v in (variance, 0.0):
        inputs = GaussianMixture(means=means, covariances=v * roots @ roots.swapaxes(1, 2))
        step = GradientStep(student="tanh", target=target, alpha0=3.0, eta=1.5, inputs=inputs)
        errors.append(replica.solve(step.network(beta=1.0), **at).test_error)
    assert errors[0] == pytest.approx(errors[1], rel=10 * np.sqrt(variance))


def test_inputs_that_are_a_point_warn_of_nothing():
    inputs = GaussianMixture(means=[[0.0, 0.0]], covariances=np.zeros((2, 2)))
    step = GradientStep(
        student="relu", target="sin(z1) + z2", alpha0=3, eta=1.5, inputs=inputs, intercept=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert replica.solve(step.network(beta=1.0), alpha=1.0, lam=0.1).test_error == 0


@pytest.mark.parametrize("scale", [1.0, 1e8])
@pytest.mark.parametrize(
    ("loss", "lam", "c", "r"),
    [("square", 1e-4, 1e16, 1e8), ("huber:1", 1e-12, 1.0, 1.0), ("absolute", 1e-12, 1e16, 1e8)],
)
def test_errors_below_the_rounding_of_their_terms_are_flagged(scale, loss, lam, c, r):
    """More neurons than inputs fit a linear target to lam^2 or so."""
    model = SpikedRandomFeatures(
        student="linear", target=f"{scale}*z1", noise=0, beta=2.0, c=c, r=r, gamma=0.8
    )
    curve = replica.learning_curve(model, alpha=[2.0, 10.0, 1000.0], lam=lam, loss=loss)
    assert not curve.converged.values.any()
    assert np.isnan([curve.test_error, curve.train_error]).all()


def test_errors_above_the_rounding_of_their_terms_are_known():
    """They are proportional to lam^2, up to 2e-4 of them at 1e-4."""
    model = SpikedRandomFeatures(
        student="linear", target="z1", noise=0, beta=2.0, c=1.0, r=1.0, gamma=0.8
    )
    large, small = (
        replica.solve(model, alpha=10.0, lam=lam, loss="huber:1").test_error for lam in (1e-4, 1e-5)
    )
    assert small == pytest.approx(large / 100, rel=2e-4)
    assert small < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize(
    ("student", "mean", "variance", "beta"),
    [("tanh", [1, 0], 1, 1e6), ("he2", [0, 0], 0, 1.0), ("he2", [0, 0], 0, 2e20)],
)
def test_classes_of_a_network_that_hardly_differ(student, mean, variance, beta):
    """Where they are the same a step leaves the network's rows all but as those of an sRF."""
    mean, variance = np.array(mean), variance * np.eye(2)
    inputs = GaussianMixture(means=[mean, -mean], covariances=[variance] * 2)
    step = GradientStep(student=student, target="classes:1,-1", alpha0=2, eta=1, inputs=inputs)
    found = [
        replica.solve(model(beta=1.0), alpha=1.0, lam=0.1).test_error
        for model in (step.network, step.srf)
    ]
    assert found[0] == pytest.approx(found[1], rel=0.01)
    if beta > 1e10:  # no density is resolved there
        with pytest.raises(ConvergenceError):
            replica.spectrum(step.network(beta=beta), alpha=1.0)
    else:
        edges = [
            replica.spectrum(model(beta=beta), alpha=1.0).edges
            for model in (step.network, step.srf)
        ]
        assert edges[0] == pytest.approx(edges[1], rel=0.01)


@pytest.mark.parametrize("kind", ["srf", "network"])
@pytest.mark.parametrize(
    ("target", "means", "covariances"),
    [
        ("sin({0}*z1)", np.zeros((1, 1)), np.ones((1, 1, 1))),
        ("sin({0}*z1)", np.array([[1.0], [-2.0]]), np.array([[[1.0]], [[4.0]]])),
        ("relu({0}*z1) + sin({0}*z2)", np.zeros((1, 2)), np.array([[[2.0, 1.0], [1.0, 1.0]]])),
    ],
)
def test_a_target_of_small_inputs_is_known_as_well_as_that_of_larger_ones(
    kind, target, means, covariances
):
    """The scale of inputs and the target's factor make up for each other, but for the scale squared
    of what features see of these inputs: at 1e-4 that is 1e-8."""
    found = []
    for scale in (1e-4, 1e-7, 1e-9):
        inputs = GaussianMixture(means=scale * means, covariances=scale**2 * covariances)
        step = GradientStep(
            student="tanh", target=target.format(1 / scale), alpha0=2.0, eta=1.0, inputs=inputs
        )
        point = replica.solve(getattr(step, kind)(beta=1.0), alpha=1.0, lam=0.1)
        assert point.converged
        found.append(point.test_error)
    assert found == pytest.approx([found[0]] * 3, rel=1e-7)


def test_a_target_that_hardly_depends_on_the_spike_has_bounds():
    """Its kink is 1e169 standard deviations away."""
    model = replica.SpikedRandomFeatures(student="tanh", target="relu", r=0, c=1, gamma=1e-169)
    assert replica.bounds(model).converged
