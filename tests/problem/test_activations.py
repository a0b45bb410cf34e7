"""Gaussian moments of activations: closed forms against quadrature, refusal of bad functions."""

import pickle
from functools import partial

import mpmath as mp
import numpy as np
import pytest

import replica
from replica import (
    Activation,
    FirstLayer,
    GradientStep,
    InvalidArgument,
    SpikedRandomFeatures,
    activation,
    learning_curve,
    loss,
    staircase,
)
from replica.problem import ACTIVATIONS
from solvers.quadrature import QuadratureError
from tests.marks import slow

CLOSED = ["erf", "sin", "relu", "sign", "linear", "he1+he2/2-he4/24"]


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("c", [1e-3, 0.1, 1.0, 5.0])
def test_closed_forms_agree_with_quadrature(name, c):
    """To 1e-12 of the largest value: the tolerance the numerical integral is asked for."""
    known = activation(name)
    same = Activation(known.function, known.derivative, known.kinks, "the same, integrated")
    s = np.linspace(-6, 6, 25)
    for closed, integrated in zip(known.moments(s, c), same.moments(s, c), strict=True):
        scale = max(1.0, np.abs(closed).max())
        assert closed == pytest.approx(integrated, abs=1e-12 * scale)


@pytest.mark.parametrize("name", ["erf", "sin", "relu", "sign"])
@pytest.mark.parametrize("s", [0.7, *slow(0.0, -3.0)])
def test_variance_keeps_its_digits(name, s):
    """mu_2^2 at a small c = 1e-4, where E sigma^2 - mean^2 - first^2 loses half of them.

    Compared with 40-digit quadrature; where the variance itself is below 1e-25 (sign and relu
    far from the kink) only that it is tiny.
    """
    c = 1e-4
    functions = {"erf": mp.erf, "sin": mp.sin, "relu": lambda x: max(x, mp.mpf(0)), "sign": mp.sign}
    with mp.workdps(40):
        S, root = mp.mpf(s), mp.sqrt(mp.mpf(c))
        kink = -S / root
        pieces = sorted({-14, 14, kink} if abs(kink) < 14 else {-14, 0, 14})

        def mean(f):
            return mp.quad(lambda z: f(z, functions[name](S + root * z)) * mp.npdf(z), pieces)

        first = mean(lambda z, f: z * f)
        centre = mean(lambda z, f: f)
        exact = float(mean(lambda z, f: (f - centre - first * z) ** 2))
    found = float(activation(name).moments(s, c).variance)
    assert found == pytest.approx(exact, rel=1e-9, abs=1e-25)


@pytest.mark.parametrize(("s", "c"), [(0.7, 0.3), (-2.0, 4.0), (0.0, 1.0)])
def test_hermite_coefficients_of_relu(s, c):
    """Integrals by mpmath from the kink on, up to degree 12."""
    found = ACTIVATIONS["relu"].hermite_coefficients(12, s, c)
    kink = -s / mp.sqrt(c)

    def hermite_part(k, z):
        return mp.hermite(k, z / mp.sqrt(2)) * (s + mp.sqrt(c) * z) * mp.npdf(z)

    with mp.workdps(30):
        ends = [kink, kink + 4, kink + 12, kink + 30]
        for k in range(2, 13):
            expected = mp.quad(partial(hermite_part, k), ends) / mp.sqrt(2**k * mp.factorial(k))
            assert found[k - 2] == pytest.approx(float(expected), abs=1e-14)


def test_zero_variance_is_the_function_itself():
    for name, known in ACTIVATIONS.items():
        moments = known.moments([0.3, -2.0], 0.0)
        assert moments.mean == pytest.approx(known([0.3, -2.0]), abs=1e-15), name
        assert np.abs(moments.first).max() < 1e-15, name
        assert moments.variance.max() < 1e-30, name


@pytest.mark.parametrize("name", sorted(set(ACTIVATIONS) - {"sign"}))
def test_derivatives(name):
    """The declared derivative against eighth-order differences, good to 1e-12."""
    known = ACTIVATIONS[name]
    x = np.linspace(-4, 4, 33) + 0.01
    bare = Activation(known.function, kinks=known.kinks)
    assert known.slope(x) == pytest.approx(bare.slope(x), abs=1e-10)
    assert known.slope_moments() == pytest.approx(bare.slope_moments(), abs=1e-8)


@pytest.mark.parametrize("c", [1.0, 1e2, 1e5])
def test_steep_functions(c):
    """tanh at bulk variances up to 1e5 tends to sign; E tanh(s + sqrt(c) z) at s = sqrt(c)."""
    found = activation("tanh").moments(np.sqrt(c), c)
    with mp.workdps(20):
        root = mp.sqrt(c)
        exact = mp.quad(
            lambda z: mp.tanh(root + root * z) * mp.npdf(z),
            [-9, -1 - 9 / root, -1, -1 + 9 / root, 9],
        )
    assert float(found.mean) == pytest.approx(float(exact), abs=1e-11)


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "gelu", "tanh"])
def test_far_tails(name):
    """Shifts far outside the Gaussian weight, alone or together: no failure, and E sigma there
    is sigma to 1e-4 of its size elsewhere."""
    known = activation(name)
    for s in (-400.0, -100.0, 300.0):
        assert known.moments(s, 60.0).mean == pytest.approx(float(known(s)), rel=1e-9, abs=1e-4)


@pytest.mark.parametrize(
    ("bad", "part"),
    [
        (lambda x: 1.0, "elementwise"),
        (lambda x: x[0], "elementwise"),
        (lambda x: np.log(np.abs(x) - 1), "finite"),
        (lambda x: float(x), "applicable to an array"),
        ("tan", "tanh, erf"),
        (3, "a name, a function"),
        ("numpy:tanh", r"the function itself, or replica.activation\(text, allow_import=True\)"),
        ("a b:c", "importable"),
        ("he2he3", "a Hermite sum"),
        ("He2 + 0.5he3", "'He2' is unknown"),
        ("he1+x", r"one of tanh.*he2\(z3\)"),
    ],
)
def test_bad_functions_are_refused(bad, part):
    with pytest.raises(InvalidArgument, match=part):
        activation(bad)


def test_text_imports_nothing_unless_that_is_allowed(tmp_path, monkeypatch):
    """Wherever Python is given text: it may be anybody's."""
    (tmp_path / "trap.py").write_text("import numpy\nopen('ran', 'w').close()\nf = numpy.tanh\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    text, step = "trap:f", dict(student="tanh", target="sin", alpha0=1, eta=1.0)
    layer = dict(weights=np.eye(2), student="tanh", target="sin", directions=[1.0, 0.0])
    known = GradientStep(**step)
    for call in (
        lambda: activation(text),
        *(partial(GradientStep, **step | {name: text}) for name in ("student", "target")),
        partial(GradientStep, **step, step_target=text),
        lambda: GradientStep(**step | {"student": f" {text} "}),
        lambda: SpikedRandomFeatures(student=text, target="sin", r=1.0, c=1.0, gamma=0.5),
        *(partial(FirstLayer, **layer | {name: text}) for name in ("student", "target")),
        lambda: staircase(text),
        lambda: staircase(text, dimension=2),
        lambda: staircase("z1", student=text),
        lambda: loss(text),
        lambda: learning_curve(known.srf(beta=1), alpha=1.0, lam=0.1, loss=["square", text]),
        lambda: learning_curve(known, beta=1.0, alpha=1.0, lam=0.1, student=["tanh", text]),
    ):
        with pytest.raises(InvalidArgument, match=r"itself.*text is not imported"):
            call()
    assert not (tmp_path / "ran").exists()
    assert activation(text, allow_import=True)(1.0) == np.tanh(1.0)
    assert (tmp_path / "ran").exists()
    with pytest.raises(InvalidArgument, match="is not imported"):  # though it is known by now
        activation(text)
    with pytest.raises(InvalidArgument, match="importable"):
        activation("numpy:nothing", allow_import=True)


def test_wrong_derivative_is_refused():
    wrong = Activation(np.tanh, np.cos, name="wrong")
    with pytest.raises(InvalidArgument, match="that of the function"):
        wrong.slope_moments()


@pytest.mark.parametrize(
    ("student", "ending"),
    [
        (Activation(lambda x: np.abs(x - 0.3)), "activation(f, kinks=[-1, 1]), or --kinks -1,1"),
        (
            Activation(lambda x: np.abs(x) ** 0.5, kinks=(0.0,)),
            "must be smoothed: (x**2 + 0.01)**0.25",
        ),
        ("relu(x)*exp(x**2)", "; another form may settle: of relu(x+0.5), relu with a bias of 0.5"),
        ("cos", "as at kinks or jumps"),
    ],
)
def test_an_integral_that_does_not_settle_says_what_can_be_typed(student, ending):
    with pytest.raises(QuadratureError) as refusal:
        activation(student).moments(0.0, 1e10 if student == "cos" else 1.0)
    assert str(refusal.value).endswith(ending)


@pytest.mark.parametrize("form", ["relu(x+0.5)", lambda x: np.maximum(x + 0.5, 0)])
def test_slope_between_a_kink_and_a_panel_that_ends_beside_it(form):
    """Averages of the slope of a shifted relu, by differences, are those of relu with a bias."""
    s, c = np.array([-0.50005, -0.5 + 1e-6, -0.5, 0.0]), 1e-3
    found = activation(form).slope_moments_at(s, c)
    assert found == pytest.approx(
        activation("relu").slope_moments_at(s + 0.5, c), rel=1e-8, abs=1e-8
    )


@pytest.mark.parametrize("text", ["exp(z1**2)", "exp(0.24*z1**2)"])
def test_a_target_that_grows_too_quickly(text):
    """Of the first it is infinite, of the second 5, of which .1 % come from beyond 16."""
    with pytest.raises(QuadratureError, match="grows too quickly"):
        replica.GradientStep(student="tanh", target=text, alpha0=2, eta=1).srf(beta=1)


def test_declared_kinks_reach_the_closed_form():
    """A user's relu with its kink declared: 1e-8 or better of the named one's answer."""
    own = Activation(lambda x: np.where(x > 0, x, 0.0), kinks=[0.0])
    step = dict(target="relu", alpha0=3, eta=1.0)
    named = replica.GradientStep(student="relu", **step).srf(beta=1.0)
    mine = replica.GradientStep(student=own, **step).srf(beta=1.0)
    assert (mine.r, mine.c) == pytest.approx((named.r, named.c), rel=1e-9)
    errors = [replica.solve(m, alpha=1.5, lam=0.1).test_error for m in (named, mine)]
    assert errors[1] == pytest.approx(errors[0], rel=1e-8)


def test_hermite_sums_travel_to_other_processes():
    sigma = activation("he1-he3/6")
    copy = pickle.loads(pickle.dumps(sigma))
    x = np.linspace(-2, 2, 5)
    assert (copy(x) == sigma(x)).all()
    assert (copy.slope(x) == sigma.slope(x)).all()
    assert all(map(np.array_equal, copy.moments(x, 0.7), sigma.moments(x, 0.7)))


@pytest.mark.parametrize(
    ("function", "kinks"),
    [
        (lambda x: np.maximum(x, 0.1 * x), (0.0,)),
        (lambda x: np.where(x > np.pi / 3, 1.0, -1.0), (np.pi / 3,)),
        (lambda x: np.abs(x - 0.3) + np.abs(x - 0.33), (0.3, 0.33)),
        (lambda x: x * np.clip(x + 3, 0, 6) / 6, (-3.0, 3.0)),
        (lambda x: np.where(x > 0, x, np.expm1(x)), (0.0,)),  # only its second derivative jumps
        (np.cos, ()),
        (lambda x: np.tanh(500 * x), ()),
        (lambda x: x**5, ()),
    ],
)
def test_kinks_that_nobody_declared_are_found(function, kinks):
    assert replica.activation(function).kinks == pytest.approx(kinks, abs=1e-12)
