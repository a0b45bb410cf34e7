"""Functions as users write them: they keep what they return, write into what they are given, and
return all kinds of arrays."""

import numpy as np
import pytest

import replica
from replica import Activation, InvalidArgument, MultiIndex


def memoising(x, _known={}):  # noqa: B006  (kept on purpose)
    key = x.tobytes(), x.shape
    if key not in _known:
        _known[key] = np.tanh(x)
    return _known[key]


def overwriting(x):
    return np.tanh(x, out=x)


def read_only(x):
    values = np.tanh(x)
    values.flags.writeable = False
    return values


KINDS = {
    "memoising": memoising,
    "overwriting": overwriting,
    "read-only": read_only,
    "list": lambda x: np.tanh(x).tolist(),
    "unmasked": lambda x: np.ma.masked_array(np.tanh(x)),
}


def points(function, dimension=1):
    """Three learning rates with the same function as student or target, twice each."""
    found = []
    for eta in (0.5, 1.0, 3.0, 0.5, 1.0, 3.0):
        student = Activation(function, name="mine") if dimension == 1 else "tanh"
        target = "sin"
        if dimension == 2:
            target = MultiIndex(lambda a, b: function(a) + b, dimension=2, name="mine")
        step = replica.GradientStep(student=student, target=target, alpha0=3, eta=eta)
        point = replica.solve(step.srf(beta=1.0), alpha=1.0, lam=0.1)
        found.append([point.test_error, point.train_error])
    return np.array(found)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_function_keeps_or_overwrites_changes_nothing(kind, dimension):
    found = points(KINDS[kind], dimension)
    np.testing.assert_allclose(found, points(np.tanh, dimension), rtol=1e-12)


def test_integers():
    """Of an activation that has them for values."""
    sign = Activation(lambda x: np.sign(x).astype(int), kinks=[0.0], name="steps")
    floats = Activation(np.sign, kinks=[0.0], name="steps")
    s = np.linspace(-2, 2, 7)
    np.testing.assert_array_equal(sign.moments(s, 1.3), floats.moments(s, 1.3))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.ma.masked_less(np.tanh(x), 0.0), "masked"),
        (lambda x: np.where(x > 2.5, np.nan, x), "finite"),
        (lambda x: np.tanh(x)[..., :1], "elementwise"),
        (lambda x: np.tanh(x) if x.size < 20 else np.tanh(x).ravel()[:3], "elementwise"),
        (lambda x: x + 0j, "real"),
        (lambda x: np.tanh(x).astype(np.float32), "double precision"),
        (lambda x: None, "elementwise"),
        (lambda x: [["a"]], "applicable"),
    ],
    ids=["masked", "nan", "shape", "shape of many", "complex", "single", "none", "words"],
)
def test_what_is_no_function_of_numbers_is_refused(function, message):
    with pytest.raises(InvalidArgument, match=message):
        Activation(function, name="mine").moments(np.linspace(-1, 1, 40), 1.0)
