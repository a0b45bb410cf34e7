"""Which directions are learned,
docs/theory.md 11: facts, invariances, errors; expressions as targets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from replica import GradientStep, InvalidArgument, MultiIndex, after_each_step, staircase
from replica.problem import target
from solvers.quadrature import QuadratureError
from tests.marks import slow

CLIMB = "z1 + z1*z2 + z1*z2*z3"


def leaps(found):
    return [(stage.leap, len(stage.directions)) for stage in found.stages]


# The facts


def test_one_direction_a_step():
    found = staircase(CLIMB)
    assert leaps(found) == [(1, 1)] * 3
    np.testing.assert_allclose(found.directions, np.eye(3), atol=1e-12)
    assert [stage.strengths[0] for stage in found.stages] == pytest.approx([1, 1, 1], rel=1e-12)
    assert [stage.explained for stage in found.stages] == pytest.approx([1 / 3, 2 / 3, 1])
    assert (found.leap, found.linear_stages, len(found.learned)) == (1, 3, 3)


def test_a_kink_that_another_direction_multiplies():
    """abs(z1) z2 + z1: E z g = (1, E abs(z1)), of which the second is sqrt(2 / pi)."""
    first = staircase("z1 + abs(z1)*z2").directions[0]
    np.testing.assert_allclose(first[1] / first[0], np.sqrt(2 / np.pi), rtol=1e-8)


def test_leap_two_is_not_learned_linearly():
    for spec in ("he2", "he2(z1)", "he2(z1) + 0*z2"):
        found = staircase(spec)
        assert (found.leap, found.linear_stages, len(found.learned)) == (2, 0, 0)
        assert leaps(found) == [(2, 1)]
        assert found.stages[0].strengths == pytest.approx([2.0], rel=1e-12)  # E He_2^2


def test_escape_at_the_second_step():
    found = staircase("z1 + z2 + z1**2 - z2**2")
    assert leaps(found) == [(1, 1), (1, 1)]
    np.testing.assert_allclose(found.directions[0], np.full(2, np.sqrt(0.5)), atol=1e-12)
    # z1^2 - z2^2 = 2 z_u z_v along and across the diagonal: E v^2 = 4.
    assert [stage.strengths[0] for stage in found.stages] == pytest.approx([2, 4], rel=1e-12)


def test_a_weak_connection_is_reported_with_its_strength():
    """(4 z1 + z1^2 + z2)/2: u = (4, 1)/sqrt(17) and across it v(z_u) = -4/17 z_u."""
    found = staircase("(4*z1 + z1**2 + z2)/2")
    assert leaps(found) == [(1, 1), (1, 1)]
    np.testing.assert_allclose(found.directions[0], np.array([4, 1]) / np.sqrt(17), atol=1e-12)
    first, second = found.stages
    assert second.strengths == pytest.approx([16 / 289], rel=1e-12)
    assert second.strengths[0] < 0.02 * first.strengths[0]
    assert staircase("(4*z1 + z1**2 + z2)/2", threshold=0.02).directions.shape == (1, 2)


def test_leaps_of_later_stages():
    found = staircase("z1 + z1*he2(z2) + z1*z2*he3(z3)/6 + 0*z4")
    assert leaps(found) == [(1, 1), (2, 1), (3, 1)]
    assert len(found.learned) == 1
    np.testing.assert_allclose(found.directions, np.eye(3, 4), atol=1e-12)
    assert staircase("he5").leap is None
    assert staircase("he5", degree=5).leap == 5
    assert staircase("z1*z2*z3").leap == 3


def test_degenerate_connections_come_together():
    found = staircase("z1*z2 + z3*z4/2")
    assert leaps(found) == [(2, 4)]
    assert found.stages[0].strengths == pytest.approx([0.5, 0.5, 0.125, 0.125], rel=1e-12)
    np.testing.assert_allclose(found.directions @ found.directions.T, np.eye(4), atol=1e-12)


@pytest.mark.parametrize(
    ("spec", "exponent"), [("relu", 1), ("he3", 3), ("he4-he2", 2), ("sin", 1),
                           (MultiIndex(lambda a, b: a * b, 2, "product"), 2)],
)  # fmt: skip
def test_information_exponent(spec, exponent):
    assert staircase(spec).leap == exponent


# Tensors


def test_tensors_and_powers():
    g = "3 + z1 + 2*z1*z2 + he2(z2)*z1/4 + he3(z1)/6"
    C = staircase(g).tensors
    assert C[0] == pytest.approx(3)
    np.testing.assert_allclose(C[1], [1, 0], atol=1e-12)
    np.testing.assert_allclose(C[2], [[0, 2], [2, 0]], atol=1e-12)
    expected = np.zeros((2, 2, 2))
    expected[0, 0, 0] = 1
    expected[0, 1, 1] = expected[1, 0, 1] = expected[1, 1, 0] = 0.5
    np.testing.assert_allclose(C[3], expected, atol=1e-11)
    found = staircase(g)
    # Parseval: the degrees share out the variance, here all of it.
    assert found.powers.sum() == pytest.approx(1, rel=1e-12)
    assert found.variance == pytest.approx(1 + 4 + 1 / 8 + 1 / 6, rel=1e-12)


# Rotations


@pytest.mark.slow
@settings(deadline=None, max_examples=8)
@given(
    st.sampled_from([CLIMB, "z1*z2 + he3(z3)/3", "tanh(z1) + z1*z2/2 + 0*z3", "he2(z1)*z2 + z3"]),
    st.integers(0, 2**32 - 1),
)
def test_rotation_of_the_index_space_changes_nothing(text, seed):
    turn, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))
    g = target(text)

    def turned(*z):
        return g(*np.tensordot(turn, np.stack(z), axes=1))

    plain, rotated = staircase(g), staircase(turned, dimension=3)
    # To the quadrature's accuracy; tanh in turned tensor grids has the largest error.
    assert leaps(rotated) == leaps(plain)
    np.testing.assert_allclose(rotated.powers, plain.powers, atol=1e-8)
    for one, other in zip(plain.stages, rotated.stages, strict=True):
        np.testing.assert_allclose(other.strengths, one.strengths, rtol=1e-7)
        assert other.explained == pytest.approx(one.explained, rel=1e-7)
        # The same subspace: directions of equal strength may come in any basis.
        back = other.directions @ turn.T
        projector = one.directions.T @ one.directions
        np.testing.assert_allclose(back.T @ back, projector, atol=1e-6)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_stages_add_up(seed):
    """Random polynomials: orthonormal directions, growing shares, strengths within E g^2."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(6)

    def g(x, y, z):
        return a[0] * x + a[1] * x * y + a[2] * y * z + a[3] * (z**2 - 1) + a[4] * x**3 + a[5]

    found = staircase(g, dimension=3)
    m = len(found.directions)
    np.testing.assert_allclose(found.directions @ found.directions.T, np.eye(m), atol=1e-12)
    shares = [0, *(stage.explained for stage in found.stages)]
    assert (np.diff(shares) > 0).all()
    assert shares[-1] <= 1 + 1e-12
    assert found.powers.sum() == pytest.approx(1, rel=1e-10)  # all of degree 3 or less
    for stage in found.stages:
        assert stage.strengths.sum() <= found.variance * (1 + 1e-12)


# Errors


def test_rough_functions_say_how_well_they_are_known():
    """Of a function whose kinks are not known."""
    found = staircase(lambda x, y, z: np.maximum(x, 0) + y * z, dimension=3)
    assert leaps(found) == [(1, 1), (2, 2)]
    assert 1e-6 < found.error < 1e-2
    assert found.resolution == 10 * found.error
    truth = 0.25  # h_1 = 1/2
    assert found.stages[0].strengths[0] == pytest.approx(truth, abs=found.error * found.variance)


@pytest.mark.parametrize(
    ("target", "strengths"),
    [
        ("sign", [[2 / np.pi]]),
        ("relu", [[1 / 4]]),
        ("sign(z1 + z2)", [[2 / np.pi]]),
        ("sign(z1)*z2", [[1 / np.pi] * 2]),
        ("abs(z1 - z2) + z1", [[1], [1 / 3]]),
    ],
)
def test_kinks_and_jumps_are_split_at(target, strengths):
    found = staircase(target)
    assert found.error < 1e-10
    for stage, expected in zip(found.stages, strengths, strict=True):
        assert stage.strengths == pytest.approx(expected, rel=1e-10)
    assert found.stages[-1].explained == pytest.approx(1, rel=1e-10)


def test_what_cannot_be_integrated_is_refused():
    with pytest.raises(QuadratureError, match=r"known to .* of its variance only"):
        staircase(lambda a, b: np.exp(0.3 * a**2) + b, dimension=2)  # of infinite variance


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(target="3 + 0*z1"), "target must be a function that is not constant"),
        (dict(target="z1", degree=0), "degree must be an integer from 1 to 12"),
        (dict(target="z1", threshold=-1), "threshold must be 0 or more"),
        (dict(target="z1 + z2", dimension=3), "dimension must be 2 for"),
        (dict(target=lambda a: a, dimension=5), "dimension must be an integer from 1 to 4"),
        (dict(target="nope"), "target must be .*one of"),
    ],
)
def test_mistakes(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        staircase(**arguments)


@pytest.mark.parametrize(
    ("student", "stages"),
    [
        ("tanh", 1),
        *slow(("relu", 2), ("leaky_relu", 2), ("he1+he2/2", 2), ("relu(x + 0.5)", 3),
                       ("softplus", 2), ("gelu", 2), ("silu", 2), ("elu", 3)),
    ],
)  # fmt: skip
def test_a_student_turns_to_the_directions_that_it_is_promised_and_to_no_others(student, stages):
    """By the recursion of several steps.  relu and its like have no coefficient of He_2 in sigma',
    which z1*z2*z3 needs; tanh has none of He_1."""
    found = staircase(CLIMB, student=student)
    promised = found.learned
    np.testing.assert_allclose(promised, np.eye(3)[:stages], atol=1e-12)
    step = GradientStep(student=student, target=CLIMB, steps=[(4.0, 1.0)] * 3)
    (*_, last) = after_each_step(step)
    turned = np.abs(last.weight_cosines)
    # the averages are known to 1e-11; the smallest that is promised here is .006
    assert (turned > 2e-3).tolist() == (turned > 1e-9).tolist() == [n < stages for n in range(3)]


@pytest.mark.slow
def test_equal_neurons_turn_in_one_direction_a_step():
    """Both that a stage promises, in one step more."""
    target = "z1 + z1*z2 + he2(z1)*z3"
    assert leaps(staircase(target, student="relu(x - 1)")) == [(1, 1), (1, 2)]
    step = GradientStep(student="relu(x - 1)", target=target, steps=[(4.0, 2.0)] * 3)
    spikes = [after.r * np.array(after.gamma) for after in after_each_step(step)]
    assert [np.linalg.matrix_rank(spikes[:t], tol=1e-3) for t in (1, 2, 3)] == [1, 2, 3]


def test_a_bias_is_that_of_the_students_text():
    """As typed or as an argument; neurons of several biases see what any of them sees."""
    for student, bias, text in (
        ("relu", 0.7, "relu(x + 0.7)"),
        ("tanh", -0.3, "tanh(x - 0.3)"),
        ("x**3 + x", 0.5, "(x + 0.5)**3 + x"),
        ("relu", 6.0, "relu(x + 6)"),
    ):
        found = staircase(CLIMB, student=student, bias=bias)
        assert leaps(found) == leaps(staircase(CLIMB, student=text))
        assert found.settings["bias"] == bias
    assert leaps(staircase(CLIMB, student="relu", bias=0.7)) == [(1, 1)] * 3
    assert leaps(staircase(CLIMB, student="relu")) == [(1, 1)] * 2
    assert leaps(staircase(CLIMB, student="relu", bias=[0, 0.7])) == [(1, 1)] * 3
    for arguments in ({"bias": 0.7}, {"bias": "gaussian", "student": "relu"}):
        with pytest.raises(InvalidArgument, match="bias must be"):
            staircase(CLIMB, **arguments)


def test_an_odd_student_sees_the_odd_part():
    """z1*z2 is even: a network of odd neurons, whose output is odd, never learns it."""
    for student in ("tanh", "sigmoid"):  # odd, and odd but for a constant
        found = staircase(CLIMB, student=student)
        assert leaps(found) == [(1, 1), (2, 2)]
        assert found.stages[-1].explained == pytest.approx(2 / 3)
    even = staircase(CLIMB, student="cos")
    assert leaps(even) == [(2, 2)]
    assert even.stages[-1].explained == pytest.approx(1 / 3)


def test_a_polynomial_sees_no_degree_above_its_own():
    """At any step: its derivatives of a higher order vanish."""
    assert leaps(staircase(CLIMB, student="linear")) == [(1, 1)]
    found = staircase("z1 + z1*z2*z3 + he5(z1)", student="he1+he3/6")
    assert leaps(found) == [(1, 1), (2, 2)]
    assert found.stages[-1].explained == pytest.approx(2 / 122)  # E He_5^2 = 120
    both = staircase("he2(z1) + z1*he3(z2) + z3", student="he2+he3")  # degree 4, and 3 of none
    assert leaps(both) == [(1, 1), (2, 1)]


def test_the_part_seen_of_a_function():
    """The odd part of relu(z - 1/2) has its h_1, P(z > 1/2)."""
    found = staircase("relu(x - 0.5)", student="tanh")
    error = found.error * found.variance
    assert found.stages[0].strengths[0] == pytest.approx(ndtr(-0.5) ** 2, abs=error)


@pytest.mark.parametrize(
    ("student", "target", "said"),
    [
        (
            "tanh",
            "z1*z2",
            "of Hermite degrees that tanh can learn: odd ones up to inf, even ones up to 0",
        ),
        ("relu", "he3", "relu can learn: odd ones up to 1, even ones up to inf"),
        ("he2 + he3", "he5", "learn: odd ones up to 3, even ones up to 2"),
        ("0*x + 1", "z1", "student must be a function that is not constant"),
        ("nobody", "z1", "student must be .*one of"),
    ],
)
def test_a_student_that_sees_nothing_is_told_of(student, target, said):
    with pytest.raises(InvalidArgument, match=said):
        staircase(target, student=student)


@pytest.mark.parametrize("bias", [3.9, 4.1, 30.0])
def test_a_kink_far_from_0_is_seen(bias):
    """relu(b + s x) is no polynomial at any b: its neurons see both degrees of z1 + z1*z2."""
    assert len(staircase("z1 + z1*z2", student="relu", bias=bias).stages) == 2
    assert len(staircase("z1 + z1*z2", student="relu(x + 4.1)").stages) == 2
    # tanh at its plateau is not constant
    assert len(staircase("z1 + z1*z2", student="tanh", bias=25.0).stages) == 2
