"""Calls of public functions that lack an argument, or have one that is not known."""

from inspect import isfunction

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
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) needs {first}\b"):
        function()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dimension": 200}, r"no argument 'dimension': did you mean learning_curve\(step"),
        ({"reuse": 1}, r"no argument 'reuse': did you mean step.network\(beta=1, reuse=1\)"),
        ({"alpha": 1.0}, r"needs model \(GradientStep, .*\) and lam \(float\)$"),
        ({"model": STEP, "alpha": 1, "lamda": 1}, r"'lamda': did you mean lam\?"),
        ({"model": STEP, "lam": 1, "zzz": 1}, "no argument 'zzz': model, alpha, samples, lam"),
    ],
)
def test_a_wrong_call_is_one_sentence(given, said):
    with pytest.raises(TypeError, match=said):
        replica.solve(**given)


@pytest.mark.parametrize(
    ("args", "given", "said"),
    [
        ((1.0,), {}, r"srf\(\) takes by name: beta=\.\.\., dimension="),
        ((), {}, r"srf\(\) needs beta$"),
        ((), {"beta": 1, "reuse": 1}, r"did you mean step\.network\(beta=1, reuse=1\)"),
        ((), {"beta": 1, "zzz": 1}, "no argument 'zzz': beta, dimension$"),
    ],
)
def test_a_wrong_call_of_a_method_is_one_sentence(args, given, said):
    with pytest.raises(TypeError, match=said):
        STEP.srf(*args, **given)


def test_an_error_of_another_kind_is_left_as_it_is():
    def target(x):
        return x + "a"

    with pytest.raises((TypeError, replica.InvalidArgument)) as raised:
        replica.staircase(target)
    assert "staircase() needs" not in str(raised.value)
