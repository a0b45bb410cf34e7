"""Calls of public functions that lack an argument, or have one that is not known."""

from functools import partial
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


AT = dict(alpha=1, lam=1)
FIELDS = dict(student="tanh", target="sin", alpha0=4.0, eta=2.0)
SAMPLE = dict(features=np.eye(3), labels=[1, 2, 3])
POINT = partial(replica.solve, None, samples=9)
WRONG_NAMES = [
    (
        replica.solve,
        dict(dimension=200),
        r"dimension=500\), for solve, .* \(others are of the limit",
    ),
    (replica.solve, dict(reuse=1), r"'reuse': did you mean step.network\(beta=1, reuse=1\), for s"),
    (replica.solve, dict(model=STEP, alpha=1, lamda=1), r"'lamda': did you mean lam\?"),
    (replica.solve, dict(model=STEP, alpha=1), r"\(\) needs lam, the penalty .* take samples$"),
    (
        replica.solve,
        dict(model=STEP, lam=1, zzz=1),
        "no argument 'zzz': model, alpha, samples, lam",
    ),
    (replica.solve, dict(model=STEP, sigma=1, **AT), "no argument 'sigma': model, alpha"),
    (replica.solve, dict(model=STEP, beta=1, noise=1, **AT), r"mean GradientStep\(\.\.\., noise="),
    (partial(replica.solve, STEP, 1, 1), {}, r"\(\) takes all but model by name: alpha=\.\.\."),
    (POINT, dict(C=1), r"solve\(\) .* 'C': did you mean lam, 1/\(p C\)"),
    (POINT, dict(n_samples=9, lam=1), "did you mean samples"),
    (partial(replica.learning_curve, None), dict(samples=9, penalty=1), "did you mean lam"),
    (partial(replica.learning_curve, None), dict(train_sizes=[9], lam=1), "did you mean samples"),
    (partial(validation.compare, None), dict(samples=9, alphas=1, seeds=2), "or lam, alpha/p"),
    (partial(replica.sample_allocation, STEP), dict(beta=1, samples=400), "argument 'samples': .*"),
    (replica.GaussianMixture, dict(mean=[[1], [-1]]), r"'mean': did you mean means\?"),
    (partial(replica.GradientStep, "tanh", "sin"), {}, r"takes all by name: student=\.\.\., ta"),
    (replica.GradientStep, dict(FIELDS, sigma=1), "did you mean noise"),
    (replica.GradientStep, dict(FIELDS, alpah0=1.0), "did you mean alpha0"),
    (replica.GradientStep, dict(FIELDS, covariance=1.0), r"did you mean inputs=GaussianMixture"),
    (replica.GradientStep, dict(FIELDS, qqq=1.0), "has no argument 'qqq': student, target"),
    (partial(replica.FeatureSample, np.eye(2), [1, 2]), {}, "takes all by name: features="),
    (replica.FeatureSample, dict(X=np.eye(3), y=[1, 2, 3]), "'X': did you mean features"),
    (replica.FeatureSample, dict(features=np.eye(3), y=[1, 2, 3]), "'y': did you mean labels"),
    (replica.FeatureSample, dict(SAMPLE, of_two="a"), "no argument 'of_two': features"),
    (STEP.srf, dict(beta=1, reuse=1), r"did you mean step\.network\(beta=1, reuse=1\)"),
    (STEP.srf, dict(beta=1, zzz=1), "no argument 'zzz': beta, dimension$"),
]


@pytest.mark.parametrize(("call", "given", "said"), WRONG_NAMES)
def test_a_name_is_one_of_the_function_s_own(call, given, said):
    with pytest.raises(TypeError, match=said):
        call(**given)


def rising(t):
    return np.where(t > 0, 1, 0.2) * t**2


def slope(t):
    return np.where(t > 0, 2, 0.4) * t


SRF = replica.SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.0, gamma=0.9)
LAYER = dict(weights=np.eye(3), student="relu", target="sin")
SKEWED = [[[1.0, 0.5], [0.0, 1.0]]]
WIDE = replica.GaussianMixture(means=[np.ones(60)])
WRONG_VALUES = [
    (replica.solve, dict(model=STEP, beta=1, loss=abs, **AT), r"Loss\(value=\.\.\., deriv"),
    (partial(replica.Loss, np.abs, np.sign), {}, r"slope jumps, as here at 0: kinks=\[0\]"),
    (partial(replica.Loss, rising, slope), {}, r"slope jumps, as here at 0: kinks=\[0\]"),
    (partial(replica.Loss, np.square, np.positive), {}, "loss must be a value with its derivative"),
    *((replica.loss, dict(spec=name), f"loss must be {usual}, as it is called here")
      for name, usual in (("MSE", "square"), ("log_loss", "logistic"), ("l1", "absolute"))),
    (partial(replica.spectrum, STEP.network(beta=1, dimension=300)), dict(alpha=1),
     "dimension must be left out here, for the limit"),
    (partial(replica.spectrum, STEP), dict(alpha=[1, 2], beta=1), r"one number .*, got \[1, 2\]"),
    (replica.FirstLayer, dict(LAYER, directions=[2, 0, 0]), r"of length 1\)"),
    (replica.GradientStep, dict(FIELDS, inputs=[[1]]),
     r"inputs must be a GaussianMixture, such as GaussianMixture\(means=\[\[1, 0\]"),
    (replica.GradientStep, dict(FIELDS, inputs=WIDE), "structured in at most 50 coordinates"),
    (replica.GradientStep, dict(FIELDS, eta=[1.0, 2.0]), "here, as learning_curve takes several"),
    (replica.GaussianMixture, dict(means=[[0.0, 0.0]], covariances=SKEWED),
     r"symmetric .* got 'entries 0.5 apart'"),
    (partial(replica.learning_curve, SRF), dict(AT, alpah=[1.0]), r"mean alpha\?\), got 'alpah'"),
    (partial(replica.learning_curve, SRF), dict(AT, covariance=[1.0]), "inputs=GaussianMixture"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "given", "said"), WRONG_VALUES)
def test_what_to_type_is_said(call, given, said):
    with pytest.raises(replica.InvalidArgument, match=said):
        call(**given)


def test_figures_are_in_plotting():
    with pytest.raises(AttributeError, match=r"it is replica\.plotting\.plot_curve"):
        replica.plot_curve  # noqa: B018
