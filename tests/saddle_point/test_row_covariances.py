"""docs/theory.md 16-18: the network of any student and several steps, against the printed numbers,
and section 16 typed as it stands."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

import replica
from replica.equivalence import table_at
from replica.saddle_point.correlated import CorrelatedGroup
from tests.oracles import equations_network as closed
from tests.oracles import equations_rows as literal


def errors(alpha, lam, beta=1.0, **fields):
    point = replica.solve(replica.GradientStep(**fields).network(beta=beta), alpha=alpha, lam=lam)
    assert point.converged
    return point.test_error, point.train_error


KNOWN = tomllib.loads(Path(__file__).with_name("rows.toml").read_text())
CASES = KNOWN["cases"]
A, B, D = (CASES[name] for name in "ABD")
SLOW = pytest.mark.slow
SEVERAL_STEPS = [
    pytest.param(*row, marks=[SLOW] * (row[1] == 3 and row[0] != "A"))
    for row in KNOWN["several_steps"]
]


@pytest.mark.parametrize(
    ("student", "target", "alpha0", "eta", "alpha", "lam", "beta", "test", "train"),
    KNOWN["one_step"],
)
def test_one_step(student, target, alpha0, eta, alpha, lam, beta, test, train):
    found = errors(alpha, lam, beta, student=student, target=target, alpha0=alpha0, eta=eta)
    # printed to six digits
    assert found == pytest.approx((test, train), abs=6e-7)


@pytest.mark.parametrize(("case", "steps", "test", "train", "digits"), SEVERAL_STEPS)
def test_several_steps(case, steps, test, train, digits):
    of = CASES[case]
    found = errors(**of | dict(steps=[of["steps"]] * steps))
    assert found == pytest.approx((test, train), abs=digits)


def test_unequal_steps():
    found = errors(2.0, 0.1, student="relu", target="sin", noise=0.1, steps=[(0.7, 1), (3, 2)])
    assert found == pytest.approx((0.347659, 0.248714), abs=6e-7)


@pytest.mark.parametrize(("steps", "test"), [(1, 0.0956197), (2, 0.0696544), (3, 0.0497436)])
def test_the_population_gradient(steps, test):
    for alpha0 in (np.inf, 1e8):
        found = errors(**A | dict(steps=[(alpha0, 1.0)] * steps))
        assert found[0] == pytest.approx(test, abs=1e-7)  # printed for 1e8


GAUSSIAN = [  # (17.1); relu/relu by section 16 as it stands, below, which 17 has to 1e-3 only
    (dict(student="erf", target="he1", alpha0=20, eta=3.0, beta=2.0), 3.0, 0.03, 0.09070),
    (dict(student="tanh", target="sin", alpha0=3, eta=4.0), 3.0, 0.02, 0.09705),
    (dict(student="relu", target="relu", alpha0=3, eta=3.0), 2.0, 0.05, 0.124868),
]


@pytest.mark.parametrize(("fields", "alpha", "lam", "test"), GAUSSIAN)
def test_gaussian_rows(fields, alpha, lam, test):
    found = errors(alpha, lam, initialisation="gaussian", **fields)
    assert found[0] == pytest.approx(test, abs=6e-6)  # printed to five digits
    assert found[0] < errors(alpha, lam, **fields)[0]


def of_section_16(step):
    gaussian = step.initialisation == "gaussian"
    return literal.Rows(step.student, step.target, step.alpha0, step.eta, step.noise, gaussian)


def response(model, V1_hat, V2):
    """M' of (16.10) on (u, delta, zeta): of (17.4), with what V1_hat sees of zeta."""
    responses = CorrelatedGroup(table_at(model, 0))
    of = responses.signal_response(np.array([[np.nan, V2]]), np.array([[V1_hat, np.nan]]))
    M = model.beta * of.overlaps(np.array([[V2]]), np.ones(1))[0]
    return M - V1_hat * np.outer(M[:, -1], M[-1]) / (1 + V1_hat * M[-1, -1])


@pytest.mark.slow
@pytest.mark.parametrize("initialisation", ["sphere", "gaussian"])
@pytest.mark.parametrize(
    "fields",
    [
        dict(student="relu", target="relu", alpha0=3.0, eta=3.0),
        dict(student="gelu", target="sin", alpha0=0.5, eta=4.0),
        dict(student="sigmoid", target="tanh", alpha0=1.0, eta=4.0),
    ],
)
def test_section_16_as_it_stands(fields, initialisation):
    """p and M' by another pencil, another way to the noise vector, and other rules."""
    step, beta = replica.GradientStep(initialisation=initialisation, **fields), 0.7
    expected, model = of_section_16(step), step.network(beta=beta)
    rows = model.rows.tabulated
    # 1e-11 of the rules for the batch
    assert rows.c == pytest.approx(expected.c, rel=1e-10)
    for V1_hat, Lam in ((0.1, 0.5), (10.0, 2.0)):
        V2 = expected.V2(beta, V1_hat, Lam)
        q = beta * V2 * V1_hat
        assert 1 / (1 + q * rows.c_e(np.array([q]))[0][0]) == pytest.approx(expected.p(q), rel=1e-9)
        M = expected.M(beta, V1_hat, Lam)
        np.testing.assert_allclose(
            response(model, V1_hat, V2), M, rtol=1e-8, atol=1e-9 * np.abs(M).max()
        )


@pytest.mark.slow
def test_errors_of_section_16_as_it_stands():
    step = replica.GradientStep(student="relu", target="relu", alpha0=3, eta=3.0)
    table = table_at(step.network(beta=1.0), 3)
    expected = literal.solve(of_section_16(step), table, 2.0, 0.05)
    found = errors(2.0, 0.05, student="relu", target="relu", alpha0=3, eta=3.0)
    assert found == pytest.approx(expected, rel=1e-9)  # the literal derivatives are differences


def test_a_step_of_nothing_is_none():
    at = dict(alpha=2.0, lam=0.1, student="relu", target="sin")
    alone = errors(alpha0=0.5, eta=1.5, **at)
    for steps in ([(0.5, 0.0), (0.5, 1.5)], [(0.5, 1.5), (2.0, 0.0)]):
        assert errors(steps=steps, **at) == pytest.approx(alone, rel=1e-9)  # of the batch's rules
    # linear in the rate, by a factor of 0.3
    assert errors(steps=[(0.5, 1.5), (2.0, 1e-10)], **at) == pytest.approx(alone, rel=1e-9)


@pytest.mark.parametrize(
    ("target", "steps"),
    [("sin", [(0.5, 3.0)]), pytest.param("relu", [(0.5, 1.5), (1.0, 1.0)], marks=pytest.mark.slow)],
)
def test_the_limit_of_students_with_an_even_part(target, steps):
    """h_2 -> 0 from h_2 that are not small for the pencil: their even powers are extrapolated."""

    def mean(h):
        students = (f"he1+{h}*he2-he3/6", f"he1-{h}*he2-he3/6")
        at = dict(alpha=2.0, lam=0.05, target=target, steps=steps)
        return np.mean([errors(student=student, **at) for student in students], axis=0)

    odd = errors(2.0, 0.05, student="he1-he3/6", target=target, steps=steps)
    # h^4 = 1e-12 is left, times 16 and a slope
    np.testing.assert_allclose((4 * mean(0.001) - mean(0.002)) / 3, odd, rtol=1e-9)


def test_the_pencil_of_a_student_that_becomes_odd():
    """h_2 -> 0, in second order for an odd target: p and M' of section 15, in closed form."""
    of_odd = replica.GradientStep(student="he1-he3/6", target="sin", alpha0=0.5, eta=3.0)
    expected = of_section_16(of_odd)
    near = replica.GradientStep(student="he1+0.000001*he2-he3/6", target="sin", alpha0=0.5, eta=3.0)
    beta = 0.7
    model = near.network(beta=beta)
    for V1_hat, Lam in ((0.1, 0.5), (10.0, 2.0)):
        V2 = closed.resolvent(expected, beta, V1_hat, Lam)[1]
        q = beta * V2 * V1_hat
        p = closed.kappa_t(expected, q * expected.b / (1 + q)) / (1 + q)
        effective = model.rows.tabulated.c_e(np.array([q]))[0][0]
        assert 1 / (1 + q * effective) == pytest.approx(p, rel=1e-9)
        M = closed.M_block(expected, beta, V1_hat, Lam)
        np.testing.assert_allclose(
            response(model, V1_hat, V2), M, rtol=1e-9, atol=1e-9 * np.abs(M).max()
        )


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(A | dict(steps=[(np.inf, 1.0)] * 3), marks=SLOW),
        dict(student="relu", target="sin", steps=[(np.inf, 1), (1, 1)], alpha=2.0, lam=0.1),
        dict(student="erf", target="he1", steps=[(np.inf, 4)], alpha=5.0, lam=0.01, beta=20.0),
        dict(student="tanh", target="sin", steps=[(np.inf, 4)], alpha=0.1, lam=1e-6),
    ],
)
def test_ever_more_samples(fields):
    many = [(min(alpha0, 1e12), eta) for alpha0, eta in fields["steps"]]
    # linear in 1 / alpha0, by a factor of up to 5
    assert errors(**fields | dict(steps=many)) == pytest.approx(errors(**fields), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [  # rho vanishes along curves, which may touch lines of constant kappa
        dict(student="relu", target="sin", steps=[(0.3, 3), (0.3, 5)]),
        dict(student="relu", target="relu", steps=[(0.5, 1e-10), (0.5, 1.5)]),
        dict(student="relu", target="z1*z2", alpha0=1.0, eta=2.0),
        dict(student="relu", target="relu(z1)+relu(z2)", alpha0=1.0, eta=2.0, noise=0.1),
    ],
)
def test_averages_that_vary_quickly(fields):
    """Labels with hardly any more noise, which other rules resolve, have the same errors."""
    noise = fields.pop("noise", 0.0)
    found, near = (
        errors(1.0, 0.1, **fields, noise=noise, step_noise=noise + more) for more in (0.0, 1e-12)
    )
    assert found == pytest.approx(near, rel=1e-7)  # a noise of 1e-6, and 1e-8 of the averages


@pytest.mark.parametrize(
    "fields",
    [
        dict(student="relu", steps=[(1.0, 2.0)] * 2),
        pytest.param(dict(student="relu", steps=[(0.59, 2.35)] * 3), marks=SLOW),
        pytest.param(dict(student="softplus", steps=[(0.31, 4.52)] * 3), marks=SLOW),
    ],
)
def test_rows_at_q_0(fields):
    """Where nothing is asked of the rows, what their trace is there is 0 but for rounding."""
    step = replica.GradientStep(target="sin", **fields)
    rows = step.network(beta=1.0).rows.tabulated
    at_0 = rows.rows.averages(np.zeros((1, 1, 1)))[0]
    np.testing.assert_allclose(at_0, rows.rows.start, rtol=1e-12, atol=1e-15)  # rounding
    assert rows.c == pytest.approx(float(step.srf(beta=1.0).c), rel=1e-11)  # of both tables


def test_branch_and_bounds_of_the_rows():
    """p is a Stieltjes transform: c_e falls and q c_e rises, and C_e is positive."""
    q = np.append(0.0, np.geomspace(1e-6, 1e8, 200))
    for fields in (B | dict(steps=[B["steps"]] * 2), D | dict(steps=[D["steps"]] * 3)):
        names = ("student", "target", "noise", "steps")
        step = replica.GradientStep(**{k: v for k, v in fields.items() if k in names})
        model = step.network(beta=1.0)
        rows = model.rows.tabulated
        c, slope = rows.c_e(q)
        assert (np.diff(c) <= 0).all()
        assert (np.diff(q * c) >= 0).all()
        at, h = q[q > 0.1], 1e-4 * q[q > 0.1]
        difference = (rows.c_e(at + h)[0] - rows.c_e(at - h)[0]) / (2 * h)
        # differences of second order
        np.testing.assert_allclose(slope[q > 0.1], difference, rtol=1e-5, atol=1e-9)
        assert (np.linalg.eigvalsh(rows.special_covariance(q)[0]) > 0).all()
