"""Targets given as formulas."""

import pickle

import numpy as np
import pytest
from scipy.stats import norm

from replica import (
    Activation,
    GradientStep,
    InvalidArgument,
    MultiIndex,
    SpikedRandomFeatures,
    activation,
    solve,
)
from replica.problem import Expression, GaussianMixture, LabelLaw, target
from solvers.quadrature import QuadratureError

# Expressions


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("z1 + z1*z2", 2.0 + 2 * 3),
        ("-z1**2/4 - +z2", -4.0),
        ("he3(z2)/6 + 1e-1*z1", 3 + 0.2),
        ("tanh(z1)*exp(z2) + cos(z1) + abs(-z1)", np.tanh(2) * np.exp(3) + np.cos(2) + 2),
        ("relu(z1 - z2) + sigmoid(0*z1)", 0.5),
    ],
)
def test_expressions(text, value):
    assert float(Expression(text)(np.array(2.0), np.array(3.0))) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    "text",
    ["z1 +", "z5 + z1", "__import__('os') + z1", "z1.real", "z1 if z1 else 0", "z1 & 2", "z1[0]",
     "he2(z1, z1)", "nope(z1)", "z1 + y", "lambda z1: z1", "z1 + 'a'", "z1 + 1j", "z1; z2",
     "z1 @ z2", "z1 // 2", "~z1", "z1 < 0", "not z1", "z1 and z2", "f'{z1}'", "tanh(x=z1)",
     "(" * 500 + "z1", "+".join(["z1"] * 20_000)],
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(InvalidArgument, match=r"target must be .*arithmetic in x, or in z1"):
        Expression(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("he1+he2x", "target must be one of tanh.*; 'he2x' is unknown"),
        ("z5", "'z5' is unknown"),
        ("z1 + zz2 + zz3", "'zz2' is unknown"),
        ("z1 + 1j", "'j' is unknown"),
        ("|z1|^2", r"def act\(x\) in mymodule\.py, got"),
        ("2he1 + he3", r"did you mean 2\*he1\(x\) \+ he3\(x\)\?"),
        ("leeky_relu", r"'leeky_relu' is unknown \(did you mean leaky_relu\?\)"),
        ("sigmod(x)", r"did you mean sigmoid\?"),
        ("ReLU", r"did you mean relu\?"),
        ("logistic", r"did you mean sigmoid\?"),
        ("identity", r"did you mean linear\?"),
        ("Tanh", r"'Tanh' is unknown \(did you mean tanh\?\)"),
        ("z1^3", r"did you mean z1\*\*3\?"),
        ("sin(2x) + 1e-3", r"did you mean sin\(2\*x\) \+ 1e-3\?"),
        ("z1 + he2/2", r"he2\(z3\)/2"),
    ],
)
def test_the_first_unknown_word_is_named(text, said):
    with pytest.raises(InvalidArgument, match=said):
        GradientStep(student="relu", target=text, alpha0=3, eta=1)


def test_expressions_are_targets_everywhere():
    assert not isinstance(target("he1+he2/2"), Expression)
    step = GradientStep(student="relu", target="z1 + he2(z1)/2", alpha0=3, eta=1)
    plain = GradientStep(student="relu", target="he1+he2/2", alpha0=3, eta=1)
    one, other = (solve(s.srf(beta=1.0), alpha=1.0, lam=0.1).test_error for s in (step, plain))
    # Tensor quadrature to 1e-11 on one side, closed forms on the other.
    assert one == pytest.approx(other, rel=1e-9)
    assert step == GradientStep(student="relu", target="z1 + he2(z1)/2", alpha0=3, eta=1)
    assert pickle.loads(pickle.dumps(step)) == step  # as worker processes need it
    with pytest.raises(InvalidArgument, match="finite"):
        GradientStep(student="relu", target="1/(0*z1)", alpha0=3, eta=1)


@pytest.mark.parametrize("text", ["tanh(z1*z2) + z1", "tanh(z1**2*z2) + z1", "sin(z1*z2**2) + z1"])
def test_a_smooth_target_of_two_directions_is_integrated(text):
    """Its power against a brute sum over 2000 x 2000 nodes, to what is promised of users'
    functions; and a point is solved."""
    z, h = np.linspace(-9, 9, 2000, retstep=True)
    weights = np.exp(-(z**2) / 2) * h / np.sqrt(2 * np.pi)
    step = GradientStep(student="tanh", target=text, alpha0=np.inf, eta=1.0)
    y = step.labels_at(0).target(*np.meshgrid(z, z, indexing="ij"))
    assert step.labels_at(0).averages().power == pytest.approx(weights @ y**2 @ weights, rel=1e-8)
    assert solve(step.srf(beta=1.0), alpha=1.0, lam=0.1).converged


DECLARED = {  # the same by hand: the function, and its kinks
    "relu(z1)": (lambda z: np.maximum(z, 0), [0]),
    "abs(z1-0.3)": (lambda z: np.abs(z - 0.3), [0.3]),
    "sign(z1)": (np.sign, [0]),
    "relu(z1)*abs(z1 - 0.3) + sign(2*z1 + 1)": (
        lambda z: np.maximum(z, 0) * np.abs(z - 0.3) + np.sign(2 * z + 1), [-0.5, 0, 0.3],
    ),
    "abs(he2(z1)) - relu(abs(z1) - 2)": (
        lambda z: np.abs(z**2 - 1) - np.maximum(np.abs(z) - 2, 0), [-2, -1, 0, 1, 2],
    ),
}  # fmt: skip


@pytest.mark.parametrize("alpha0", [2.0, np.inf])
@pytest.mark.parametrize("text", DECLARED)
def test_an_expression_knows_its_kinks(text, alpha0):
    """As accurate as the same function with declared kinks, and as one whose kinks are found."""
    function, kinks = DECLARED[text]
    of = dict(student="tanh", alpha0=alpha0, eta=2.0)
    targets = {"text": text, "declared": Activation(function, kinks=kinks), "found": function}
    points = {
        name: solve(GradientStep(target=one, **of).srf(beta=1.0), alpha=1.0, lam=0.1)
        for name, one in targets.items()
    }
    assert all(point.converged for point in points.values())
    for name in ("text", "found"):
        assert points[name].test_error == pytest.approx(points["declared"].test_error, rel=1e-8)


@pytest.mark.parametrize(
    ("text", "mean", "power"),
    [
        ("relu(z1)*relu(z2) + z1", 1 / (2 * np.pi), 5 / 4 + 1 / np.sqrt(2 * np.pi)),
        ("z1 + sign(z1*z2)", 0, 2),
        ("abs(z1 - z2) + relu(z2 - 1)", 1.128379167095513 + 0.0833154705876943, None),
        ("z1 + relu(z1 - z2 + z3)", np.sqrt(3 / (2 * np.pi)), 1 + 3 / 2 + 1),
        ("relu(z2 + z1*z2)", (2 * norm.pdf(1) + 1 - 2 * norm.cdf(-1)) / np.sqrt(2 * np.pi), 1.0),
        ("abs(z1**2 - z2**2)", 4 / np.pi, 4.0),
    ],
)
def test_targets_that_bend_at_planes_are_integrated(text, mean, power):
    """By hand: E relu(z) = 1/sqrt(2 pi), E abs(z) = 2/sqrt(2 pi), E z relu(z) = 1/2,
    E relu(z - 1) = phi(1) - Phi(-1), and E abs(z + 1) = 2 phi(1) + 1 - 2 Phi(-1)."""
    found = LabelLaw(target(text)).averages()
    assert found.mean == pytest.approx(mean, rel=1e-9, abs=1e-9)
    if power is not None:
        assert found.power == pytest.approx(power, rel=1e-9)
    step = GradientStep(student="tanh", target=text, alpha0=np.inf, eta=1.0)
    assert solve(step.srf(beta=1.0), alpha=1.0, lam=0.1).converged


def test_declared_planes_are_those_of_the_expression():
    """Of a user's own function; at alpha0 = 2 the planes move with kappa."""
    step = dict(student="tanh", alpha0=2.0, eta=1.0)
    own = MultiIndex(lambda a, b: a + np.abs(a - b / 3), 2, planes=[((3, -1), 0)])
    one, other = (
        solve(GradientStep(target=t, **step).srf(beta=1.0), alpha=1.0, lam=0.1).test_error
        for t in (own, "z1 + abs(z1 - z2/3)")
    )
    assert one == pytest.approx(other, rel=1e-9)
    with pytest.raises(InvalidArgument, match=r"planes must be pairs \(v, t\), with v of 2"):
        MultiIndex(lambda a, b: a, 2, planes=[((1, 0, 0), 0)])


@pytest.mark.parametrize("text", ["abs(z1**2 + z2**2 - 1) + z1", "relu(z1 - z2**2) + z1"])
def test_kinks_along_a_curve_are_refused_by_name(text):
    """With what to type where planes are enough."""
    step = GradientStep(student="tanh", target=text, alpha0=1.0, eta=1.0)
    with pytest.raises(QuadratureError, match=r"target .*kinks or varies .*planes=\[\(v, t\)"):
        step.srf(beta=1.0)


def test_one_point_takes_one_number():
    model = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.0, gamma=0.9)
    for several in ([1, 2], np.array([1.0])):
        with pytest.raises(InvalidArgument, match=r"alpha must be positive .*one number here"):
            solve(model, alpha=several, lam=0.1)
    with pytest.raises(InvalidArgument, match=r"lam must be a number, or .* got .best."):
        solve(model, alpha=1, lam="best")
    with pytest.raises(InvalidArgument, match=r"alpha must be a number, got '2'"):
        solve(model, alpha="2", lam=0.1)


@pytest.mark.parametrize(("text", "same"), [("sin(z4)", "sin(z1)"), ("z2*z4", "z1*z2")])
def test_coordinates_that_are_not_mentioned_cost_nothing(text, same):
    """A function of few of four coordinates is averaged over these, and equals it in others."""
    assert Expression(text).mentioned == [int(z) - 1 for z in text if z.isdigit()]
    errors = []
    for written in (text, same):
        step = GradientStep(student="tanh", target=written, alpha0=4.0, eta=2.0)
        errors.append(solve(step.srf(beta=1.0), alpha=1.0, lam=0.1).test_error)
    assert errors[0] == pytest.approx(errors[1], rel=1e-9)  # quadrature, 1e-10 each


@pytest.mark.parametrize(
    ("text", "turned", "more"),
    [
        ("sign(z1 - z2)", "sign(z1)", dict(loss="hinge")),
        ("z1 - z2", "z1", dict(loss="logistic", label_noise="flip:0.1")),
        ("relu(z1 - z2) + z3*(z2 - z1)", "2**.5*(relu(z1) - z1*z3)", {}),
    ],
)
@pytest.mark.parametrize("kind", ["srf", "network"])
def test_a_function_of_few_combinations_of_its_arguments(text, turned, more, kind):
    """It is the same in coordinates turned by 45 degrees, in which it is one of fewer arguments:
    also where the inputs are a mixture, turned with them."""
    a = np.sqrt(0.5)
    turn = np.array([[a, -a, 0], [a, a, 0], [0, 0, 1]])
    means, covariances = np.array([[1.0, 0, 0.3], [-1, 0.5, 0]]), [np.diag([1, 0.5, 1]), np.eye(3)]
    laws = (
        GaussianMixture(means=means @ U.T, covariances=[U @ C @ U.T for C in covariances])
        for U in (np.eye(3), turn)
    )
    loss, at = more.get("loss", "square"), dict(alpha0=2.0, eta=1.0)
    at |= {name: value for name, value in more.items() if name != "loss"}
    errors = []
    for written, inputs in zip((text, turned), laws, strict=True):
        step = GradientStep(student="tanh", target=written, inputs=inputs, **at)
        point = solve(getattr(step, kind)(beta=1.0), alpha=1.0, lam=0.1, loss=loss)
        assert point.converged
        errors.append([point.test_error, point.classification_error])
    rel = 1e-8 if loss == "square" else 2e-6  # as each is known
    assert errors[0] == pytest.approx(errors[1], rel=rel, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "rank"),
    [("abs(z1 - z2) + relu(z2 - 1)", 2), ("z1*z2 + 0*z3", 2), ("0*z2", 1), ("exp(z2 - z1)*z3", 2)],
)
def test_how_many_combinations_there_are(text, rank):
    """A part that all but vanishes, as relu(z - 1), is one."""
    rows = LabelLaw(target(text)).combinations
    assert rows @ rows.T == pytest.approx(np.eye(rank), abs=1e-14)


def test_averages_over_fewer_directions_than_arguments():
    """Arguments that are mixtures of one direction are averaged over that one: h, g and the
    spread of sin(z1 + z2), in closed form."""
    target = MultiIndex(lambda a, b: np.sin(a + b), dimension=2)
    centre, L = np.array([[0.3, 1.0], [0.2, -0.4]]), np.array([[0.6, 0.8], [0.3, 0.4]])
    found = target.conditional_moments(centre, L, np.ones(2))
    total, slope = centre.sum(axis=0), L.sum(axis=0)
    size = slope @ slope
    assert found.h == pytest.approx(np.sin(total) * np.exp(-size / 2), abs=1e-12)
    expected = slope[:, None] * np.cos(total) * np.exp(-size / 2)
    assert found.g == pytest.approx(expected, abs=1e-12)
    square = (1 - np.cos(2 * total) * np.exp(-2 * size)) / 2
    assert found.spread == pytest.approx(square - found.h**2, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("relu(x) - 0.1*relu(-x)", Activation(lambda x: np.where(x > 0, x, 0.1 * x), kinks=0.0)),
        ("x**2 - 1", "he2"),
        ("2*x", "2*he1"),
        ("z1*sigmoid(z1)", "silu"),
        # straight over most inputs, and not everywhere
        ("relu(x+2)", Activation(lambda x: np.maximum(x + 2, 0), kinks=-2.0)),
        (
            "relu(x-3)*relu(6-x)",
            Activation(lambda x: np.maximum(x - 3, 0) * np.maximum(6 - x, 0), kinks=(3.0, 6.0)),
        ),
    ],
)
def test_students_are_expressions_too(text, same):
    """In x or z1, with their kinks; sRF and network."""
    x = np.linspace(-9, 9, 37)
    assert activation(text)(x) == pytest.approx(activation(same)(x), abs=1e-12)
    for kind in ("srf", "network"):
        errors = []
        for student in (text, same):
            step = GradientStep(student=student, target="sin(2*x) + x/2", alpha0=4.0, eta=2.0)
            point = solve(getattr(step, kind)(beta=1.0), alpha=1.0, lam=0.1, quadrature_tol=1e-9)
            errors.append(point.test_error)
        assert errors[0] == pytest.approx(errors[1], rel=1e-8)
    with pytest.raises(InvalidArgument, match="student must be a function of one variable, x"):
        GradientStep(student="x*z2", target="sin", alpha0=4.0, eta=2.0)
