"""Calls of public functions that lack an argument, or have one that is not known."""

from inspect import isfunction

import numpy as np
import pytest

import replica
import validation

STEP = replica.GradientStep(student="tanh", target="sin", alpha0=3, eta=1.0)
BY_NAME = ("activation", "hermite", "loss")  # which take one thing, as Python says
FUNCTIONS = [
    getattr(package, name)
    for package in (replica, validation)
    for name in package.__all__
    if isfunction(getattr(package, name)) and name not in BY_NAME
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_call_without_its_first_argument_says_what_it_needs(function):
    first = next(iter(function.__wrapped__.__annotations__))
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) missing .*'{first}'"):
        function()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"dimension": 200},
            r"dimension=500\), for solve, .* \(others are of the limit",
        ),
        ({"reuse": 1}, r"no argument 'reuse': did you mean step.network\(beta=1, reuse=1\), for s"),
        ({"model": STEP, "alpha": 1, "lamda": 1}, r"'lamda': did you mean lam\?"),
        (
            {"model": STEP, "alpha": 1},
            r"solve\(\) needs lam, the penalty .* features take samples$",
        ),
        ({"model": STEP, "lam": 1, "zzz": 1}, "no argument 'zzz': model, alpha, samples, lam"),
    ],
)
def test_a_wrong_call_is_one_sentence(given, said):
    with pytest.raises(TypeError, match=said):
        replica.solve(**given)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: replica.sample_allocation(STEP, beta=1, samples=400), "no argument 'samples': .*"),
        (lambda: replica.GaussianMixture(mean=[[1], [-1]]), r"'mean': did you mean means\?"),
        (
            lambda: replica.GradientStep("tanh", "sin"),
            r"\(\) takes all by name: student=\.\.\., ta",
        ),
        (lambda: replica.FeatureSample(np.ones((2, 2)), [1, 2]), "takes all by name: features="),
        (lambda: replica.solve(STEP, 1, 1), r"solve\(\) takes all but model by name: alpha=\.\.\."),
        (lambda: replica.solve(STEP, alpha=1, sigma=1, lam=1), "no argument 'sigma': model, alpha"),
        (lambda: replica.GradientStep(student="tanh", target="sin", sigma=1), "did you mean noise"),
        (
            lambda: replica.solve(STEP, beta=1, alpha=1, lam=1, noise=1),
            r"did you mean GradientStep\(\.\.\., noise=",
        ),
    ],
)
def test_a_name_is_one_of_the_function_s_own(call, said):
    with pytest.raises(TypeError, match=said):
        call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: replica.solve(STEP, beta=1, alpha=1, lam=1, loss=abs),
            r"Loss\(value=\.\.\., deriv",
        ),
        (lambda: replica.Loss(np.abs, np.sign), r"slope jumps, as here at 0: kinks=\[0\]"),
        (
            lambda: replica.Loss(
                lambda t: np.where(t > 0, 1, 0.2) * t**2, lambda t: np.where(t > 0, 2, 0.4) * t
            ),
            r"slope jumps, as here at 0: kinks=\[0\]",
        ),
        (lambda: replica.Loss(np.square, lambda t: t), "loss must be a value with its derivative"),
        (
            lambda: replica.spectrum(STEP.network(beta=1, dimension=300), alpha=1),
            "dimension must be left out here, for the limit",
        ),
        (
            lambda: replica.FirstLayer(
                weights=np.eye(3), student="relu", target="sin", directions=[2, 0, 0]
            ),
            r"of length 1\)",
        ),
        (
            lambda: replica.GradientStep(
                student="relu", target="z1", alpha0=1, eta=1, inputs=[[1]]
            ),
            r"inputs must be a GaussianMixture, such as GaussianMixture\(means=\[\[1, 0\]",
        ),
    ],
)
def test_what_to_type_is_said(call, said):
    with pytest.raises(replica.InvalidArgument, match=said):
        call()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"beta": 1, "reuse": 1}, r"did you mean step\.network\(beta=1, reuse=1\)"),
        ({"beta": 1, "zzz": 1}, "no argument 'zzz': beta, dimension$"),
    ],
)
def test_a_wrong_call_of_a_method_is_one_sentence(given, said):
    with pytest.raises(TypeError, match=said):
        STEP.srf(**given)


def test_figures_are_in_plotting():
    with pytest.raises(AttributeError, match=r"it is replica\.plotting\.plot_curve"):
        replica.plot_curve  # noqa: B018
