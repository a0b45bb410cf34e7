"""Targets given as formulas."""

import pickle

import numpy as np
import pytest

from replica import GradientStep, InvalidArgument, solve
from replica.problem.expressions import Expression, is_expression
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
     "he2(z1, z1)", "nope(z1)", "z1 + x", "lambda z1: z1", "z1 + 'a'", "z1 + 1j",
     "(" * 500 + "z1", "+".join(["z1"] * 20_000)],
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(InvalidArgument, match="target must be arithmetic in z1"):
        Expression(text)


def test_expressions_are_targets_everywhere():
    assert not is_expression("he1+he2/2")
    assert not is_expression("some.module:z1")
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
    y = step.step_labels.target(*np.meshgrid(z, z, indexing="ij"))
    assert step.step_labels.averages().power == pytest.approx(weights @ y**2 @ weights, rel=1e-8)
    assert solve(step.srf(beta=1.0), alpha=1.0, lam=0.1).converged


def test_a_target_with_undeclared_kinks_is_refused_by_name():
    step = GradientStep(student="tanh", target="abs(z1 - z2/3) + z1", alpha0=1.0, eta=1.0)
    with pytest.raises(QuadratureError, match=r"target abs.*kinks or varies too quickly"):
        step.srf(beta=1.0)
