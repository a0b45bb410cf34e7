"""The default solution against one of more digits, and that one against itself."""

import mpmath
import pytest

import replica
from replica import reference
from solvers.results import ConvergenceError
from tests.problems import PRINTED, PUBLISHED

STUDENTS = ("tanh", "erf", "sin", "relu")
TARGETS = ("sin", "tanh", "relu", "sign")
ORDINARY = dict(r=1.2, c=1.1, gamma=0.8, beta=1.3, noise=0.1), dict(alpha=0.9, lam=0.1)
HARD = dict(r=8.0, c=5.0, gamma=0.8, beta=1.3, noise=0.1), dict(alpha=0.9, lam=1e-8)


def assert_agree(model, point):
    """Both errors, V1, V2 and q2 within 1e-10 relative, the accuracy promised by default.  Asked
    for 16 digits the reference has them all: the last halving of its steps changes 1e-8 at most,
    and squares the error."""
    exact = reference.solve(model, **point, digits=16)
    found = replica.solve(model, **point)
    assert found.converged
    o = found.overlaps
    values = dict(test_error=found.test_error, train_error=found.train_error)
    values |= dict(V1=o.V1.item(), V2=o.V2.item(), q2=o.q2.item())
    for name, value in values.items():
        assert value == pytest.approx(float(getattr(exact, name)), rel=1e-10, abs=0), name


@pytest.mark.slow
@pytest.mark.parametrize("setting", [ORDINARY, HARD], ids=["ordinary", "hard"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("student", STUDENTS)
def test_default_accuracy(student, target, setting):
    model, point = setting
    assert_agree(replica.SpikedRandomFeatures(student=student, target=target, **model), point)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "point"),
    [  # alpha = beta and alpha = 1 at a vanishing penalty, random features, extreme ratios
        (dict(student="tanh", target="sin", beta=1.3), dict(alpha=1.3, lam=1e-12)),
        (dict(student="erf", target="relu"), dict(alpha=1.0, lam=1e-12)),
        (dict(student="relu", target="tanh", r=0.0, gamma=0.0), dict(alpha=2.0, lam=0.1)),
        (dict(student="relu", target="relu", r=-1.3, gamma=-0.4), dict(alpha=2.0, lam=1e-3)),
        (dict(student="tanh", target="linear", gamma=1.0), dict(alpha=0.9, lam=1e-8)),
        (dict(student="sin", target="tanh", gamma=1.0), dict(alpha=1e3, lam=1e6)),
        (dict(student="tanh", target="sign", beta=20.0, gamma=0.99), dict(alpha=1e-3, lam=1e-3)),
        (dict(student="erf", target="sin", beta=0.05, noise=0.5), dict(alpha=0.05, lam=1e-10)),
    ],
)
def test_default_accuracy_at_limits(model, point):
    model = dict(r=1.2, c=1.1, gamma=0.8) | model
    assert_agree(replica.SpikedRandomFeatures(**model), point)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "errors"), PRINTED.items())
def test_published_setting(alpha, errors):
    """docs/theory.md 13: r, c, gamma and the five points of its first setting, to all digits
    given."""
    model = PUBLISHED.srf(beta=1.0)
    parameters = [round(value, 7) for value in (model.r, model.c, model.gamma)]
    assert parameters == [1.1340555, 1.0189732, 0.9718544]
    exact = reference.solve(model, alpha=alpha, lam=0.1, digits=16)
    assert (round(exact.test_error, 7), round(exact.train_error, 7)) == errors


@pytest.mark.slow
def test_digits_mean_what_they_say():
    """Asked for 40 digits, it agrees with itself at 30 to 1e-22, as that one claims."""
    model = replica.SpikedRandomFeatures(student="tanh", target="relu", **ORDINARY[0])
    thirty, forty = (reference.solve(model, **ORDINARY[1], digits=n) for n in (30, 40))
    assert max(thirty.residual, forty.residual) < 1e-40
    assert forty.change < 1e-32
    with mpmath.workdps(50):
        for name in ("test_error", "train_error", "V1", "V2", "m", "theta", "psi", "Q1", "q2"):
            a, b = getattr(thirty, name), getattr(forty, name)
            assert abs(a - b) < 1e-22 * abs(b), name


@pytest.mark.slow
def test_unsettled_is_refused(monkeypatch):
    """With steps too coarse for the problem there is no answer, rather than a wrong one; at the
    finest steps allowed it would take minutes to see."""
    monkeypatch.setattr("replica.reference.oracle.HALVINGS", range(3, 5))
    model = replica.SpikedRandomFeatures(student="tanh", target="sin", **HARD[0])
    with pytest.raises(ConvergenceError, match="not settled") as raised:
        reference.solve(model, **HARD[1], digits=16)
    assert raised.value.result.change > 1e-8


@pytest.mark.parametrize(
    ("name", "fields", "options"),
    [
        ("student", dict(student="gelu", target="sin"), {}),
        ("student", dict(student=replica.Activation(abs, name="relu"), target="sin"), {}),
        ("target", dict(student="tanh", target="he1+he2"), {}),
        ("gamma", dict(student="tanh", target="sign", gamma=-1.0), {}),
        ("r", dict(student="tanh", target="sin", r=[1.0, 2.0]), {}),
        ("model", dict(student="tanh", target="sin", dimension=100.0), {}),
        ("model", dict(student="tanh", target="sin", label_noise="outliers:0.1:9"), {}),
        ("digits", dict(student="tanh", target="sin"), dict(digits=8)),
        ("lam", dict(student="tanh", target="sin"), dict(lam=0.0)),
    ],
)
def test_what_it_cannot_do_is_refused(name, fields, options):
    model = replica.SpikedRandomFeatures(**dict(r=1.0, c=1.0, gamma=0.5) | fields)
    with pytest.raises(replica.InvalidArgument, match=f"^{name} must be"):
        reference.solve(model, **dict(alpha=1.0, lam=0.1) | options)
