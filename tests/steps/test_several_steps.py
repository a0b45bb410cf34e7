"""Several giant steps,
docs/theory.md 10: published row, exact recursions, the first step, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import roots_hermitenorm

from replica import (
    GradientStep,
    InvalidArgument,
    MultiIndex,
    SpikedRandomFeatures,
    after_each_step,
    solve,
)
from tests.problems import THREE


def parameters(step):
    return [(after.r, after.c, *after.gamma) for after in after_each_step(step)]


def test_published_row():
    """docs/theory.md 13, last row, to the printed digits; and the errors below its table."""
    found = parameters(THREE)
    assert [tuple(round(x, 4) for x in row) for row in found] == [
        (0.4629, 1.0211, 0.7937),
        (0.6519, 0.9690, 0.9096),
        (0.7848, 0.8997, 0.9538),
    ]
    for count, expected in ((2, 0.1126), (3, 0.0759)):
        model = replace(THREE, steps=THREE.steps[:count]).srf(beta=1.0)
        assert round(solve(model, alpha=1.0, lam=0.05).test_error, 4) == expected


def literal_second_step(eta, alpha0):
    """docs/theory.md 10 for tanh and sin as it is written, by 300-node Gauss-Hermite sums."""
    z, w = roots_hermitenorm(300)
    w = w / w.sum()
    step = GradientStep(student="tanh", target="sin", alpha0=alpha0, eta=eta)
    first = step.srf(beta=1.0)
    r, c, gamma = first.r, first.c, first.gamma
    rho = np.sqrt(1 - gamma**2)
    x = r * z[:, None] + np.sqrt(c) * z
    y = np.sin(gamma * z[:, None] + rho * z)
    slope = 1 / np.cosh(x) ** 2
    mu0, mu1 = np.tanh(x) @ w, slope @ w
    v1, m2 = slope**2 @ w - mu1**2, (-2 * np.tanh(x) * slope) @ w
    h, g, k = y @ w, (y * z) @ w, y**2 @ w
    residual, square = h - mu0, k - 2 * h * mu0 + mu0**2
    a_u, a_zeta, delta = w @ (residual * z * mu1), w @ (g * mu1), w @ (residual * m2)
    n_c, n_i = w @ (square * mu1**2) / alpha0, w @ (square * v1) / alpha0
    S = np.array([r + eta * a_u, eta * a_zeta, eta * np.sqrt(n_c)])
    towards = gamma * S[0] + rho * S[1]
    length = np.linalg.norm(S)
    s, nu = 1.0, c - 1  # an odd student's bulk is not rescaled by its first step
    return length, (s**2 + nu) * (1 + eta * delta) ** 2 + eta**2 * n_i, towards / length


def test_second_step_is_the_equations_typed_again():
    step = GradientStep(student="tanh", target="sin", steps=[(1.5, 0.8), (1.5, 0.8)])
    # 300 Gauss-Hermite nodes leave 1e-8 of tanh' (poles at i pi/2, docs/theory.md 14.2).
    assert parameters(step)[1] == pytest.approx(literal_second_step(0.8, 1.5), rel=1e-7)


@pytest.mark.parametrize("alpha0", [0.7, np.inf])
def test_linear_student_and_target(alpha0):
    """sigma = sigma* = z: S_t makes an exact recursion.  S -> S + eta (w* - S) + noise of
    squared length eta^2 (|w* - S|^2 + Delta) / alpha0; the bulk stays as it is."""
    eta, noise, count = 0.6, 0.3, 4
    step = GradientStep(
        student="linear", target="linear", steps=[(alpha0, eta)] * count, noise=noise
    )
    distance, along = 1.0, 0.0
    for r, c, gamma in parameters(step):
        # the network's own output f = S.x + bulk is a self-average: only S counts
        distance = (1 - eta) ** 2 * distance + eta**2 * (distance + noise) / alpha0
        along += eta * (1 - along)
        assert r * gamma == pytest.approx(along, rel=1e-12)
        assert r**2 - 2 * r * gamma + 1 == pytest.approx(distance, rel=1e-11)
        assert c == pytest.approx(1, rel=1e-12)


SMOOTH = st.sampled_from(["tanh", "erf", "relu", "sigmoid", "gelu", "he1+he2/2-he3/5"])


@settings(deadline=None, max_examples=30)
@given(SMOOTH, SMOOTH, st.floats(0.2, 50), st.floats(0.05, 5), st.floats(0, 1),
       st.sampled_from([1.0, -1.5, 0.3]), st.floats(-1, 1))  # fmt: skip
def test_first_step_is_that_of_section_2(student, target, alpha0, eta, noise, readout, bias):
    step = GradientStep(
        student=student, target=target, alpha0=alpha0, eta=eta, noise=noise,
        readout=readout, bias=bias,
    )  # fmt: skip
    ((r, c, gamma),) = parameters(step)
    expected = step.srf(beta=1.0)
    # The two integrate by different rules, each to rounding.
    assert r == pytest.approx(abs(expected.r), rel=1e-12)
    assert c == pytest.approx(expected.c, rel=1e-12)
    assert gamma == pytest.approx(np.sign(expected.r) * expected.gamma, rel=1e-12, abs=1e-13)


def test_steps_on_a_target_of_several_directions():
    """Rotating the directions of the target rotates gamma and leaves r and c; a direction that
    does not matter gets no component."""
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    def g(a, b):
        return (a + a**2 + b - b**2) / 2

    def turned(a, b):
        return g(*np.tensordot(turn, np.stack([a, b]), axes=1))

    options = {"student": "relu", "steps": [(2, 1)] * 3, "noise": 0.1}
    plain = after_each_step(GradientStep(target=MultiIndex(g, 2), **options))
    rotated = after_each_step(GradientStep(target=MultiIndex(turned, 2), **options))
    for one, other in zip(plain, rotated, strict=True):
        # Rules are the same, tensor grids are turned: to the accuracy of both.
        assert (other.r, other.c) == pytest.approx((one.r, one.c), rel=1e-10)
        np.testing.assert_allclose(turn @ other.gamma, one.gamma, atol=1e-10)
        np.testing.assert_allclose(turn @ other.gradient_cosines, one.gradient_cosines, atol=1e-10)
    alone = after_each_step(GradientStep(target="tanh", **options))
    beside = after_each_step(GradientStep(target="tanh(z1) + 0*z2", **options))
    for one, other in zip(alone, beside, strict=True):
        assert (other.r, other.c, *other.gamma) == pytest.approx(
            (one.r, one.c, *one.gamma, 0.0), rel=1e-10, abs=1e-14
        )


def test_noise_of_the_steps_and_of_the_readout():
    """Each acts where it belongs: the steps' on (r, c, gamma), the readout's on the model."""
    loud = replace(THREE, noise=0.3)
    assert parameters(replace(THREE, step_noise=0.3)) == parameters(loud)
    assert parameters(replace(loud, step_noise=0.0)) == parameters(THREE)
    assert replace(loud, step_noise=0.0).srf(beta=1.0).noise == 0.3


@pytest.mark.parametrize("law", ["outliers:0.1:9", "student:4", "flip:0.1", "logistic", "probit"])
def test_first_step_with_noisy_labels(law):
    """One pair is the one-step form:
    docs/theory.md 2 knows these labels by their first two moments."""
    of = {"student": "relu", "target": "tanh", "label_noise": law}
    one = GradientStep(alpha0=2.0, eta=1.5, **of).srf(beta=1.0)
    steps = GradientStep(steps=[(2.0, 1.5)], **of).srf(beta=1.0)
    assert (steps.r, steps.c, steps.gamma) == pytest.approx((one.r, one.c, one.gamma), rel=1e-12)


@pytest.mark.parametrize(
    ("law", "same"),
    [
        ({"label_noise": "outliers:1:0.3"}, {"noise": 0.3}),
        ({"label_noise": "flip:0"}, {"target": "sign"}),
    ],
)
def test_limits_of_noisy_labels(law, same):
    """Outliers everywhere are noise, signs never flipped are the target's."""
    one, other = (
        after_each_step(replace(THREE, **{"target": "tanh"} | changes))[-1]
        for changes in (law, same)
    )
    assert (one.r, one.c, *one.gamma) == pytest.approx((other.r, other.c, *other.gamma), rel=1e-9)


def test_a_step_of_rate_0_changes_nothing():
    steps = [(2, 1), (0.1, 0), (2, 1)]
    found = parameters(replace(THREE, steps=steps))
    assert found[1] == pytest.approx(found[0], rel=1e-14)
    assert found[2] == pytest.approx(parameters(THREE)[1], rel=1e-12)


def test_even_target_and_infinite_batches_leave_no_spike():
    step = GradientStep(student="tanh", target="he2", steps=[(np.inf, 1), (np.inf, 1)])
    assert parameters(step) == [(0.0, pytest.approx(1.0, rel=1e-14), 0.0)] * 2
    assert step.srf(beta=1.0).r == 0


# The problem object


def test_a_target_without_linear_part_leaves_noise_alone():
    """Cosines are 0, not rounding errors that later steps build on; a step by hand: h = v = 0,
    and all rows share noise of E[y^2] mu_1^2 / alpha0, with independent noise of the rest."""
    step = GradientStep(student="tanh", target="tanh(z1)*z2*z3", steps=[(1.3, 0.5)] * 3)
    states = parameters(step)
    assert all(cosine == 0 for state in states for cosine in state[2:])
    x = np.linspace(-12, 12, 2001)
    w = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    power, slope = w @ np.tanh(x) ** 2, 1 / np.cosh(x) ** 2
    mu1, square = w @ slope, w @ slope**2
    assert states[0][0] == pytest.approx(0.5 * mu1 * np.sqrt(power / 1.3), rel=1e-12)
    added = 0.25 * power * (square - mu1**2) / 1.3
    assert states[0][1] == pytest.approx(1 + added, rel=1e-12)


def test_one_pair_is_the_one_step_form():
    one = GradientStep(student="tanh", target="sin", steps=[(20, 3)], readout=[-1, 2])
    assert one == GradientStep(student="tanh", target="sin", alpha0=20, eta=3, readout=[-1, 2])
    assert one.schedule == ((20.0, 3.0),)
    assert THREE.schedule == ((2.0, 1.0),) * 3
    assert hash(THREE) == hash(replace(THREE))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(alpha0=2), "steps must be given without alpha0 and eta"),
        (dict(eta=2), "steps must be given without alpha0 and eta"),
        (dict(steps=()), "alpha0 must be positive or inf"),
        (dict(steps=3), "steps must be a sequence of pairs"),
        (dict(steps=[(1, 2), (1, 2, 3)]), "steps must be a sequence of pairs"),
        (dict(steps=[(1, 2), (0, 2)]), "alpha0 must be positive or inf"),
        (dict(steps=[(1, 2), (1, -2)]), "eta must be 0 or more"),
    ],
)
def test_steps_that_are_refused(changes, message):
    with pytest.raises(InvalidArgument, match=message):
        GradientStep(**(dict(student="tanh", target="sin", steps=[(2, 1)] * 2) | changes))


@pytest.mark.parametrize("changes", [dict(readout="rademacher"), dict(bias=[0, 1])])
def test_several_groups_are_refused_in_a_sentence(changes):
    (name,) = changes
    with pytest.raises(InvalidArgument, match=f"{name} must be a single value where there are"):
        replace(THREE, **changes).srf(beta=1.0)


# Bounds of the region where the recursion is plain: everything stays an sRF


@settings(deadline=None, max_examples=15)
@given(
    st.sampled_from(["tanh", "relu", "sigmoid"]),
    st.sampled_from(["sin", "tanh", "he1+he2/2"]),
    st.lists(st.tuples(st.floats(0.3, 20), st.floats(0.05, 2)), min_size=2, max_size=4),
)
def test_every_state_is_a_spiked_random_feature_model(student, target, steps):
    step = GradientStep(student=student, target=target, steps=steps)
    for after in after_each_step(step):
        assert np.isfinite([after.r, after.c, *after.gamma]).all()
        assert after.r >= 0
        assert after.c > 0
        assert abs(after.gamma[0]) <= 1 + 1e-12
        assert abs(after.gradient_cosines[0]) <= 1
        assert after.quadrature_error <= 1e-11
    assert isinstance(step.srf(beta=1.0), SpikedRandomFeatures)
