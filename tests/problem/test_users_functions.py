"""Functions of users as they come: they keep, reuse, mutate and return whatever they like."""

from functools import cache

import numpy as np
import pytest

from replica import Activation, InvalidArgument, Loss, MultiIndex, SpikedRandomFeatures, solve


def memoising(f):
    known = {}

    def function(x):
        key = x.tobytes(), x.shape
        if key not in known:
            known[key] = f(x)
        return known[key]

    return function


def mutating(f):
    def function(x):
        x[...] = f(x)
        return x

    return function


def read_only(f):
    def function(x):
        y = f(x)
        y.setflags(write=False)
        return y

    return function


def frame(f):
    pandas = pytest.importorskip("pandas")
    kinds = {1: pandas.Series, 2: pandas.DataFrame}  # it has no more axes than two
    return lambda x: kinds.get(x.ndim, np.asarray)(f(x))


SAME = {
    "memoising": memoising,
    "mutating": mutating,
    "read-only": read_only,
    "list": lambda f: lambda x: f(x).tolist(),
    "unmasked": lambda f: lambda x: np.ma.masked_array(f(x)),
    "pandas": frame,
}
REFUSED = {
    "nan": lambda f: lambda x: np.where(x > 4, np.nan, f(x)),
    "masked": lambda f: lambda x: np.ma.masked_where(x > 4, f(x)),
    "shape": lambda f: lambda x: f(x) if x.ndim > 1 and x.size < 50 else f(x).ravel()[:3],
    "text": lambda f: lambda x: f(x) if x.size < 50 else "no numbers",
    "complex": lambda f: lambda x: f(x) + 0j,
    "single precision": lambda f: lambda x: f(x).astype(np.float32),
}


def student(made):
    return SpikedRandomFeatures(
        student=Activation(made(np.tanh)), target="sin", r=1, c=1.2, gamma=0.8
    ), "square"


def target(made):
    one = Activation(made(np.sin))
    return SpikedRandomFeatures(student="tanh", target=one, r=1, c=1.2, gamma=0.8), "square"


def several(made):
    f = made(np.sin)
    one = MultiIndex(lambda z: f(z), dimension=1)
    return SpikedRandomFeatures(student="tanh", target=one, r=1, c=1.2, gamma=0.8), "square"


def loss(made):
    one = Loss(made(lambda t: np.logaddexp(t, -t)), made(np.tanh))
    return SpikedRandomFeatures(student="tanh", target="sin", r=1, c=1.2, gamma=0.8), one


def errors(place, made):
    model, minimised = place(made)
    solution = solve(model, alpha=1.0, lam=0.1, loss=minimised)
    assert solution.converged
    return solution.test_error, solution.train_error


@cache
def plain_errors(place):
    return errors(place, lambda f: f)


PLACES = [student, target, several, loss]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("made", SAME)
def test_the_answer_is_that_of_the_plain_function(place, made):
    # pandas keeps arrays by columns, which changes the order of sums
    assert errors(place, SAME[made]) == pytest.approx(plain_errors(place), rel=1e-13)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("made", REFUSED)
def test_what_is_no_function_of_the_line_is_refused(place, made):
    with pytest.raises(InvalidArgument):
        errors(place, REFUSED[made])


WHOLE = {  # the first value is a whole number: everywhere, to the left, to the right, between
    "relu": lambda x: 0 if x < 0 else x,
    "negative part": lambda x: 0 if x > 0 else x,
    "soft threshold": lambda x: 0 if abs(x) < 1 else x - x / abs(x),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("made", WHOLE)
def test_whole_numbers_of_vectorize_are_named(place, made):
    """Its kind of number is that of its first value: 0.7 is then 0."""
    with pytest.raises(InvalidArgument, match=r"otypes=\[float\]"):
        place(lambda _: np.vectorize(WHOLE[made]))
    Activation(np.vectorize(WHOLE[made], otypes=[float]))
    Activation(np.vectorize(lambda x: 1 if x > 0 else -1), kinks=[0.0])


@pytest.mark.parametrize("place", PLACES)
def test_what_is_drawn_at_random_is_named(place):
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidArgument, match="the same twice"):
        place(lambda f: lambda x: f(x) + 1e-3 * rng.standard_normal(np.shape(x)))


def test_integers_are_taken_as_they_are():
    signs = Activation(lambda x: np.where(x > 0, 1, -1), kinks=[0.0])
    assert signs.moments(0.0, 1.0) == pytest.approx(
        Activation(np.sign, kinks=[0]).moments(0.0, 1.0)
    )


def test_the_callers_array_is_left_alone():
    x = np.linspace(-2, 2, 9)
    own = Activation(mutating(np.tanh), derivative=mutating(np.cos))
    own(x), own.slope(x), MultiIndex(mutating(np.sin), 1)(x)
    np.testing.assert_array_equal(x, np.linspace(-2, 2, 9))


def test_a_memory_is_left_alone():
    """The same moments again, from remembered values: they were those of the remainders before."""
    own = Activation(memoising(np.tanh))
    first, again = own.moments(0.3, 1.0), own.moments(0.3, 1.0)
    assert again == first == Activation(np.tanh).moments(0.3, 1.0)
