"""Every parameter of every public function, given what it is not made for: it answers, or refuses
with a sentence that names it."""

import datetime
import warnings
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from inspect import Parameter, signature

import numpy as np
import pytest

import replica
from solvers.quadrature import QuadratureError
from solvers.results import ConvergenceError
from validation.mixtures import expand, mixture

STEP = replica.GradientStep(student="tanh", target="sin", alpha0=2, eta=1.0)
MODEL = STEP.srf(beta=1.0)
SIGN = replica.SpikedRandomFeatures(student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8)
POINT = replica.solve(SIGN, alpha=2.0, lam=0.05, loss="logistic")
RNG = np.random.default_rng(0)
WEIGHTS, FEATURES = RNG.standard_normal((8, 6)) / 2, RNG.standard_normal((90, 6))
SAMPLE = replica.FeatureSample(features=FEATURES, labels=FEATURES[:, 0] ** 2)
LAYER = replica.FirstLayer(
    weights=WEIGHTS, student="tanh", target="sin", directions=np.eye(6)[:, 0]
)
AT = dict(alpha=1.0, lam=0.1)

CALLS = {  # what is called, with arguments that are right
    replica.solve: dict(model=MODEL, **AT),
    replica.learning_curve: dict(model=MODEL, **AT),
    replica.gradient: dict(problem=MODEL, **AT),
    replica.bounds: dict(problem=STEP, eta=[1.0]),
    replica.best_bounds: dict(step=STEP),
    replica.activation: dict(spec="tanh"),
    replica.optimal_lambda: dict(model=MODEL, alpha=1.0),
    replica.samples_needed: dict(model=SAMPLE, lam=1.0, test_error=0.9),
    replica.sample_allocation: dict(step=STEP, budget=1.0, lam=0.1),
    replica.optimal_eta: dict(step=STEP, alpha=1.0, beta=1.0, lam=0.1),
    replica.spectrum: dict(model=MODEL, alpha=1.0),
    replica.learned_function: dict(model=MODEL, **AT),
    replica.calibration: dict(solution=POINT, kappa=[0.0]),
    replica.staircase: dict(target="he1"),
    replica.after_each_step: dict(step=STEP),
    replica.hermite: dict(coefficients=[0, 1.0]),
    replica.loss: dict(spec="huber:1"),
    replica.GradientStep: dict(student="tanh", target="sin", alpha0=2, eta=1.0),
    replica.SpikedRandomFeatures: dict(student="tanh", target="sin", r=1.0, c=1.0, gamma=0.9),
    replica.GaussianMixture: dict(means=[[1.0]], covariances=[[[1.0]]], fractions=[1.0]),
    replica.FirstLayer: dict(
        weights=WEIGHTS, student="tanh", target="sin", directions=np.eye(6)[:, 0]
    ),
    replica.FeatureSample: dict(features=FEATURES, labels=np.sign(FEATURES[:, 0])),
    replica.FeatureMoments: dict(
        covariances=np.eye(2), label_covariances=[1.0, 0.0], label_variances=1.5
    ),
    replica.learnability: dict(model=SAMPLE, direction=np.ones(6), samples=20, lam=0.1),
    replica.Activation: dict(function=np.tanh),
    replica.MultiIndex: dict(function=np.add, dimension=2),
}
ODD = [
    None, True, False, "", "no", "nan", b"x", float("nan"), float("inf"), -float("inf"), 0, -1,
    1e300, 1e-300, 10**400, 1j, np.float32(1.5), Fraction(1, 3), Decimal("0.1"), [], [[]], {},
    {"a": 1}, set(), [1.0, 2.0], [None], ["x"], np.array([1.0, 2.0]), np.array(["x"]),
    np.empty((0, 2)), np.ones((2, 2, 2)), np.ma.array([1.0, 2.0], mask=[0, 1]), np.array([1j, 2]),
    datetime.datetime(2020, 1, 1), np.datetime64("2020"), object(), object, lambda: 0,
    ValueError("x"), MODEL, STEP, LAYER,
]  # fmt: skip
ANSWERS = replica.InvalidArgument, QuadratureError, ConvergenceError


def parameters(function):
    """Names of what can be given by name."""
    kinds = Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD
    given = signature(function).parameters.items()
    # the name of an argument, for messages, is no value
    return [name for name, one in given if one.kind not in kinds and name != "argument"]


LONG = (
    *(replica.best_bounds, replica.optimal_eta, replica.bounds, replica.spectrum),
    *(replica.sample_allocation, replica.samples_needed, replica.optimal_lambda, replica.gradient),
)


@pytest.mark.parametrize(
    "function",
    [pytest.param(one, marks=[pytest.mark.slow] if one in LONG else []) for one in CALLS],
    ids=lambda function: function.__name__,
)
def test_all_parameters(function):
    right = CALLS[function]
    first = [n for n, p in signature(function).parameters.items() if p.kind is p.POSITIONAL_ONLY]

    def call(**given):
        positional = [given.pop(name) for name in first]
        return function(*positional, **given)

    call(**right)
    failed = []
    for name in parameters(function):
        for k, value in enumerate(ODD):
            if name == "progress" and callable(
                value
            ):  # a user's function: what it raises is theirs
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    call(**right | {name: value})
            except ANSWERS:
                pass
            except Exception as error:
                failed.append(f"{name}={str(value)[:30]} ({k}): {type(error).__name__}: {error}")
    assert not failed, "\n".join(failed)


def test_all_public_functions_are_called():
    """But for what they return and raise."""
    returned = {"AfterStep", "Calibration", "Loss", "Solution"}
    returned |= {"ConvergenceError", "InvalidArgument"}
    named = {name for name in replica.__all__ if callable(getattr(replica, name))}
    assert named - returned - {"Staircase"} == {function.__name__ for function in CALLS}


@pytest.mark.parametrize(
    "one",
    [None, {}, object(), [1], np.datetime64("NaT"), complex("nan"), np.nan],
    ids=["None", "dict", "object", "list", "NaT", "complex", "nan"],
)
def test_ids_that_cannot_be_told_apart(one):
    """Alone, and among others."""
    count = len(FEATURES)
    hidden = np.ma.masked_equal(np.arange(count), 3)
    for ids in ([one] * count, [one, *range(1, count)], hidden):
        with pytest.raises(replica.InvalidArgument, match="strata must be"):
            replica.FeatureSample(features=FEATURES, labels=np.arange(count) / 2, strata=ids)


BIG = 1e31
MIXTURE = replica.GaussianMixture(means=[[1.5, 0], [-1.5, 0]])
PARTS = dict(student="tanh", target="sin", directions=np.eye(6)[:, 0])
TOO_LARGE = {  # arrays, and functions, of which one value is too large
    "weights": lambda: replica.FirstLayer(weights=BIG * WEIGHTS, **PARTS),
    "bias": lambda: replica.FirstLayer(weights=WEIGHTS, bias=np.full(8, BIG), **PARTS),
    "directions": lambda: replica.FirstLayer(**PARTS | {"directions": [BIG] * 6}, weights=WEIGHTS),
    "features": lambda: replica.FeatureSample(
        features=BIG * FEATURES, labels=np.sign(FEATURES[:, 0])
    ),
    "labels": lambda: replica.FeatureSample(
        features=FEATURES, labels=BIG * FEATURES[:, 0], strata=np.sign(FEATURES[:, 0])
    ),
    "means": lambda: replica.GaussianMixture(means=[[BIG]]),
    "covariances": lambda: replica.GaussianMixture(means=[[0.0]], covariances=[[BIG]]),
    "fractions": lambda: replica.GaussianMixture(means=[[0.0], [1.0]], fractions=[1.0, BIG]),
    "coefficients": lambda: replica.hermite([0, BIG]),
    "readout": lambda: replace(STEP, readout=[BIG, 1.0]),
    "student": lambda: replace(STEP, student=f"{BIG}*tanh(z1)"),
    "target": lambda: replace(STEP, target="classes:1,1e31", inputs=MIXTURE),
    "direction": lambda: replica.learned_function(
        replace(STEP, inputs=MIXTURE).srf(beta=1.0), **AT, direction=[BIG, 1.0]
    ),
    "kappa": lambda: replica.calibration(POINT, [BIG]),
    "kinks": lambda: replica.Loss(np.abs, np.sign, kinks=(BIG,)),
    "loss": lambda: replica.Loss(lambda t: BIG * t**2, lambda t: 2 * BIG * t),
    "eigenvalues": lambda: mixture(20, eigenvalues=BIG),
    "proportions": lambda: mixture(20, eigenvalues=9.0, components=2, proportions=[1.0, BIG]),
    "b": lambda: expand("tanh", order=3, b=BIG),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_LARGE)
def test_numbers_end_at_1e30(name):
    """Their squares and fourth powers would overflow: an exception of numpy's, or NaN."""
    with pytest.raises(replica.InvalidArgument, match=rf"^{name} must be .*1e\+30"):
        TOO_LARGE[name]()


def test_a_short_direction_is_one():
    """Of a length whose square is 0 in double precision."""
    model = replace(STEP, inputs=MIXTURE).srf(beta=1.0)
    short, long = (
        replica.learned_function(model, **AT, direction=[size, size]) for size in (1e-200, 1.0)
    )
    assert short.mean(0.5) == long.mean(0.5)
