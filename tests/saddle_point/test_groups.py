"""Several groups and spikes: reductions to one group, exact identities, convergence."""

from dataclasses import replace

import numpy as np
import pytest

import replica
from replica import MultiIndex, SpikedRandomFeatures, solve
from replica.equivalence import group_kinds, table_at, table_of_size, tabulate, tabulate_at
from replica.observables import solve_grid
from replica.problem import law
from replica.saddle_point import groups, responses, ridge
from replica.saddle_point.overlaps import MeanSquaredErrors
from solvers.rules import Rule, trapezoid_tensor
from tests.oracles.equations import residuals
from tests.problems import POINTS, PUBLISHED, RAGGED, errors
from tests.saddle_point.test_random_models import solved


def repeated(fractions):
    """One group of neurons under several names, which merging would undo: see `table`."""
    model = PUBLISHED.srf(beta=1.3)
    one = table_at(model, 2)
    count = len(fractions)

    def rows(x):
        return np.repeat(x, count, axis=0)

    changed = dict(offsets=rows(one.offsets), mu1=rows(one.mu1), mu2sq=rows(one.mu2sq))
    changed["loadings"] = rows(one.loadings)
    changed |= dict(fractions=np.array(fractions), c=rows(one.c))
    changed |= dict(kinds=np.arange(count), shares=np.ones(count))
    return one, type(one)(**({f: getattr(one, f) for f in one.__dataclass_fields__} | changed))


@pytest.mark.parametrize("fractions", [[0.5, 0.5], [0.2, 0.3, 0.5], [0.9, 0.05, 0.03, 0.02]])
def test_identical_groups_are_one_group(fractions):
    """Errors to 1e-11, and overlaps that add up; the readout's split among them is free."""
    one, several = repeated(fractions)
    a, b = (ridge.solve_points(table, **POINTS) for table in (one, several))
    assert np.array(b.errors) == pytest.approx(np.array(a.errors), rel=1e-11)
    assert pytest.approx(a.overlaps.V2 * fractions, rel=1e-11) == b.overlaps.V2
    assert b.overlaps.V1.sum(axis=(1, 2)) == pytest.approx(a.overlaps.V1[:, 0, 0], rel=1e-11)
    assert b.overlaps.psi.sum(axis=1) == pytest.approx(a.overlaps.psi[:, 0], rel=1e-11)
    assert b.overlaps.m.sum(axis=1) == pytest.approx(a.overlaps.m[:, 0], rel=1e-11)


def test_splitting_and_merging():
    """Equal neurons given as two groups, and empty groups, change nothing: they are merged."""
    rows = dict(r=[0.3, 1.2, 1.2, -0.7, 5.0], c=[1.0, 0.6, 0.6, 2.0, 9.0], bias=[0, -1, -1, 0.5, 2])
    split = replace(RAGGED, **rows, fractions=[0.2, 0.1, 0.4, 0.3, 0.0])
    assert len(split.geometry.c) == 3
    assert errors(split) == pytest.approx(errors(RAGGED), rel=1e-13)


def test_permuted_groups_permute_the_answer():
    order = [2, 0, 1]
    names = ("r", "c", "bias", "fractions")
    permuted = replace(RAGGED, **{name: np.array(getattr(RAGGED, name))[order] for name in names})
    assert errors(permuted) == pytest.approx(errors(RAGGED), rel=1e-11)
    a, b = (replica.solve(model, alpha=0.9, lam=0.1).overlaps for model in (RAGGED, permuted))
    assert pytest.approx(a.V2[order], rel=1e-11) == b.V2
    assert pytest.approx(a.V1[np.ix_(order, order)], rel=1e-11) == b.V1
    assert b.theta == pytest.approx(a.theta[order], rel=1e-9)  # a small difference


@pytest.mark.slow
@pytest.mark.parametrize(("count", "target"), [(32, "he1+he3/2"), (48, "he1+he2+he3/2")])
def test_many_groups_are_solved_to_rounding(count, target):
    """m of nearly dependent groups are 1e4 and cancel, which rounds at 1e-12; the smallest of 48
    shares is 1e-15, and its theta rounds no worse."""
    readout = law("readout", "gaussian").discretise(count, 0.4)
    step = dict(student="tanh", target=target, alpha0=10, eta=3.0, readout=readout)
    model = replica.GradientStep(**step).srf(beta=1.0)
    grid = solve_grid(model, alpha=np.array([0.1, 0.8, 3.0]), lam=0.1, grids={})
    assert grid.columns["residual"].max() < 5e-12


@pytest.mark.parametrize(
    ("step", "beta", "alpha", "lam"),
    [
        (dict(student="sigmoid", target="tanh", readout=[0.5, 1.5]), 7.9, 0.16, 5.7e-10),
        (dict(student="sigmoid", target="he2", readout="gaussian"), 2.7, 0.3, 2.5e-9),
        (dict(student="sigmoid", target="he2", readout=[-1, 0, 2], noise=2), 11.3, 0.42, 2.7e-4),
        (dict(student="sigmoid", target="he2", readout=[-1, 0, 2], noise=2), 11.3, 0.6, 1e-4),
        (dict(student="sigmoid", target="he2", readout=[-1, 0, 2], noise=2), 11.3, 0.69, 1e-9),
    ],
)
def test_few_samples_of_a_wide_network_at_small_penalties(step, beta, alpha, lam):
    """V grows from 1 by decades before the iteration contracts; Newton's method from half way ended
    at residuals of 1 to 1e5."""
    model = replica.GradientStep(**step, alpha0=20, eta=3).srf(beta=beta)
    table, *answer = solved(model, alpha, lam)
    found = residuals(table, alpha, lam, *answer)
    assert max(found.values()) < 1e-10, found


@pytest.mark.parametrize(("alpha", "lam"), [(2.17, 3.6e-9), (230.0, 7e-9)])
def test_readouts_of_a_linear_student_do_not_matter(alpha, lam):
    """All mean outputs are multiples of kappa: one fits what any number of them do.  theta answers
    1e9 times its conjugate, which is 0 but for rounding."""
    step = dict(student="linear", target="sin", alpha0=4, eta=1.5, noise=0.1)
    one = replica.GradientStep(**step).srf(beta=2.17)
    several = replica.GradientStep(**step, readout=[-1.0, 0.0, 2.0]).srf(beta=2.17)
    same, point = (replica.solve(model, alpha=alpha, lam=lam) for model in (one, several))
    assert point.converged
    assert point.test_error == pytest.approx(same.test_error, rel=1e-10)


def test_opposite_readouts_of_an_odd_network():
    """tanh with readouts +-1 responds as with 1: one kind of neurons, half of it in each group."""
    same = PUBLISHED.srf(beta=1.0)
    opposite = replace(PUBLISHED, readout="rademacher").srf(beta=1.0)
    assert len(opposite.geometry.c) == 2
    assert len(table_at(opposite, 1).c) == 1
    assert errors(opposite) == pytest.approx(errors(same), rel=1e-11)
    one, two = (replica.solve(model, alpha=0.9, lam=0.1) for model in (same, opposite))
    assert pytest.approx(np.repeat(one.overlaps.V2 / 2, 2), rel=1e-11) == two.overlaps.V2
    assert two.overlaps.V1.sum() == pytest.approx(one.overlaps.V1.item(), rel=1e-11)


def test_kinds_solve_the_equations_of_all_groups():
    """Four readouts of an odd network are two kinds; as four groups they solve (4.1)-(4.11)."""
    model = replace(PUBLISHED, readout=[-1.5, -0.5, 0.5, 1.5]).srf(beta=1.0)
    point = replica.solve(model, alpha=0.9, lam=0.1)
    merged = table_at(model, 2)
    assert len(merged.c) == 2
    fields = {name: getattr(merged, name) for name in merged.__dataclass_fields__}
    rows = dict(mu1=merged.mu1[merged.kinds], mu2sq=merged.mu2sq[merged.kinds])
    rows["loadings"] = merged.loadings[merged.kinds]
    rows |= dict(c=merged.c[merged.kinds], fractions=model.geometry.fractions)
    everyone = type(merged)(**(fields | rows))
    errors_here = MeanSquaredErrors(np.array(point.test_error), np.array(point.train_error))
    found = residuals(everyone, 0.9, 0.1, point.overlaps, errors_here)
    # the rule here is the second, where the point may have needed a finer one
    assert max(found.values()) < 1e-8, found


def test_merged_kinds_at_a_finite_dimension():
    """Groups equal up to rounding are one kind; the price of m does not depend on the split."""
    fields = dict(student="relu", target="sin", c=1, gamma=0.9, dimension=500)
    nearly = SpikedRandomFeatures(r=[0.1 + 0.2, 0.3, 2.0], fractions=[0.3, 0.3, 0.4], **fields)
    one = SpikedRandomFeatures(r=[0.3, 2.0], fractions=[0.6, 0.4], **fields)
    assert len(nearly.geometry.c) == 3
    assert errors(nearly) == pytest.approx(errors(one), rel=1e-10)


def test_scale_of_a_student_does_not_matter():
    """1e-14 tanh with lam scaled by 1e-28 is the same problem."""
    tiny = replica.Activation(lambda x: 1e-14 * np.tanh(x), name="1e-14 tanh")
    fields = dict(target="sin", r=1.0, c=1.0, gamma=0.9)
    a = replica.solve(SpikedRandomFeatures(student="tanh", **fields), alpha=1, lam=0.1)
    b = replica.solve(SpikedRandomFeatures(student=tiny, **fields), alpha=1, lam=1e-29)
    assert b.test_error == pytest.approx(a.test_error, rel=1e-9)


def test_two_spikes_that_span_one_direction_are_one():
    """Loadings on two spikes, all along (cos, sin): the same as one spike of that length."""
    angle = 0.7
    direction = np.array([np.cos(angle), np.sin(angle)])
    fields = dict(student="tanh", target="sin", c=[1.0, 1.5], beta=1.2, noise=0.1)
    one = SpikedRandomFeatures(r=[1.1, 0.4], gamma=0.8, **fields)
    two = SpikedRandomFeatures(r=np.outer([1.1, 0.4], direction), gamma=0.8 * direction, **fields)
    at = dict(alpha=np.array([0.7]), lam=np.array([0.05]))
    assert errors(two, **at) == pytest.approx(errors(one, **at), rel=1e-9)  # other quadrature


def test_multi_index_of_one_direction_is_a_single_index():
    fields = dict(student="erf", r=1.2, c=1.1, gamma=0.7, noise=0.2)
    single = SpikedRandomFeatures(target="tanh", **fields)
    multi = SpikedRandomFeatures(target=MultiIndex(np.tanh, dimension=1), **fields)
    assert errors(multi) == pytest.approx(errors(single), rel=1e-9)


def test_intercept_removes_a_constant():
    """With an intercept, a constant added to the target costs nothing."""
    shifted = replica.Activation(lambda x: np.sin(x) + 5.0, name="sin + 5")
    fields = dict(student="tanh", r=1.0, c=1.0, gamma=0.8, intercept=True)
    plain = errors(SpikedRandomFeatures(target="sin", **fields))
    # 25 in 1e-2 of power: five digits of the sixteen are lost
    assert errors(SpikedRandomFeatures(target=shifted, **fields)) == pytest.approx(plain, rel=1e-9)


def test_dimension_tends_to_the_limit():
    """The price of m at finite d vanishes like 1/d."""
    limit = errors(RAGGED)
    gaps = []
    for dimension in (1e6, 1e7, 1e8):
        finite = replace(RAGGED, dimension=dimension)
        gaps.append(np.abs(errors(finite) / limit - 1).max())
    assert gaps[0] == pytest.approx(10 * gaps[1], rel=0.05)
    assert gaps[1] == pytest.approx(10 * gaps[2], rel=0.05)


def test_too_many_spikes_are_refused_with_their_cost():
    model = SpikedRandomFeatures(student="tanh", target="sin", r=np.eye(5), c=1, gamma=np.zeros(5))
    with pytest.raises(ArithmeticError, match=r"12\^5"):
        replica.solve(model, alpha=1, lam=0.1)


def test_opposite_groups_of_an_odd_student_are_one_kind_at_a_finite_dimension():
    """The penalty on m sees the square of m_hat.  A loading off by 1e-9 keeps the groups apart."""
    of = dict(student="tanh", target="sin", c=1.1, gamma=0.9, dimension=120)
    together = SpikedRandomFeatures(r=[1.5, 0.5, -0.5, -1.5], **of)
    apart = SpikedRandomFeatures(r=[1.5, 0.5, -0.5 - 1e-9, -1.5 - 1e-9], **of)
    assert [len(group_kinds(model)[0]) for model in (together, apart)] == [2, 4]
    one, other = (solve(model, alpha=1.5, lam=0.05) for model in (together, apart))
    # errors are smooth in the loading
    assert one.test_error == pytest.approx(other.test_error, rel=1e-8)
    assert one.overlaps.m == pytest.approx(other.overlaps.m, rel=1e-7)


def test_mirror_images_in_a_network_have_their_signs():
    """Opposite readouts of an odd student, which are one kind, against groups kept apart."""
    step = replica.GradientStep(
        student="tanh", target="sin", alpha0=0.5, eta=2.0, readout=[1, -1.5, 1.5]
    )
    model, at = step.network(beta=1.0), dict(alpha=2.0, lam=0.05)
    point = replica.solve(model, **at)
    table = table_of_size(model, point.nodes)
    apart = tabulate_at(model, table.places, table.weights, merged=False)
    expected = ridge.solve_points(apart, *(np.array([x]) for x in at.values()))
    overlaps, hats = expected.overlaps.special[0], expected.conjugates.special[0]
    # of the norms 1e-3 of the rest
    assert point.overlaps.special == pytest.approx(overlaps, rel=1e-8, abs=1e-10)
    assert point.conjugates.special == pytest.approx(hats, rel=1e-8, abs=1e-10)
    kappa = np.linspace(-2, 2, 5)
    places, weights = model.components.places_and_weights(Rule(kappa, np.ones(5)))
    columns = tabulate_at(model, places, weights, merged=False).regressors[:, :5]
    mean = replica.learned_function(model, **at).mean(kappa)
    assert mean == pytest.approx(
        np.append(point.overlaps.m, overlaps) @ columns, rel=1e-8, abs=1e-9
    )


def test_dependent_offsets_have_one_m_for_all_losses():
    """relu's mu_0 at twice the spike and four times the variance is twice as large."""
    model = SpikedRandomFeatures(student="relu", target="sin", r=[1, 2], c=[1, 4], gamma=0.9)
    square, huber = (
        replica.solve(model, alpha=2.0, lam=0.1, loss=loss).overlaps.m
        for loss in ("square", "huber:1000")
    )
    assert huber == pytest.approx(square, rel=1e-6)


def test_nearly_equal_groups_are_their_limit():
    """Of readouts 3/2 -+ d the mean outputs span mu_0 and its slope in the readout, however small d
    is: errors are even in d, so those of d = 1e-3 are off by 1e-6."""
    step = replica.GradientStep(student="tanh", target="sin", alpha0=1.0, eta=1.0)
    for make in ("srf", "network"):
        models = (
            getattr(replace(step, readout=[1.5 - d, 1.5 + d]), make)(beta=1.0) for d in (1e-3, 5e-8)
        )
        wide, close = (solve(model, alpha=2.0, lam=0.1) for model in models)
        assert close.converged
        assert close.test_error == pytest.approx(wide.test_error, rel=3e-6)


@pytest.mark.parametrize(("readout", "eta"), [("gaussian", 0.066), ("box", 0.2024)])
def test_a_continuous_readout_after_a_small_step(readout, eta):
    """Groups that hardly differ, with m of 1e7: solved, and smooth in the rate."""
    step = replica.GradientStep(student="sigmoid", target="sin", alpha0=1.0, readout=readout, eta=1)
    rates = 0.99 * eta, eta, 1.01 * eta
    models = (replace(step, eta=rate).srf(beta=1.0) for rate in rates)
    found = [solve(model, alpha=2.0, lam=0.1) for model in models]
    assert all(point.converged for point in found)
    before, at, after = (point.test_error for point in found)
    assert at == pytest.approx((before + after) / 2, rel=1e-8)


def test_many_groups_are_solved_without_matrices(monkeypatch):
    """By Anderson's method, to 1e-11 of Newton's; points whose overlaps differ by decades, which
    are done one after the other."""
    rng = np.random.default_rng(0)
    model = SpikedRandomFeatures(
        student="tanh", target="z1+z2", r=0.3 * rng.standard_normal((14, 2)),
        c=0.9 + 0.05 * rng.random(14), gamma=0.7 * np.eye(2), dimension=1000,
    )  # fmt: skip
    table = tabulate(model, trapezoid_tensor(14, 2))
    alpha, lam = np.array([0.1, 1.0, 2.0, 20.0]), np.array([1e-4, 0.1, 10.0, 1e-6])
    usual = ridge.solve_points(table, alpha, lam, coarse=table)
    wrong = ridge.responses_of(table)
    V = wrong.pack(usual.overlaps.V1, usual.overlaps.V2) * (1 + 1e-6)
    step = np.abs(wrong.newton_distance(V, alpha, lam)).max(axis=1)
    for module in (groups, responses):
        monkeypatch.setattr(module, "LARGEST_MATRIX", 50)
    many = ridge.solve_points(table, alpha, lam, coarse=table)
    assert many.residual.max() < 1e-12
    # what is left where V is off by 1e-6, with and without Newton's matrix
    assert np.abs(wrong.newton_distance(V, alpha, lam)).max(axis=1) == pytest.approx(step, rel=1e-3)
    for found, expected in zip(many.errors, usual.errors, strict=True):
        assert found == pytest.approx(expected, rel=1e-11)
    moments = many.overlaps.Q1, usual.overlaps.Q1
    assert moments[0] == pytest.approx(moments[1], rel=1e-8, abs=1e-11)


@pytest.mark.slow
def test_nearly_dependent_offsets_have_singular_values(capfd):
    """LAPACK's, of 72 offsets, were NaN at alpha = 1 alone, with a line on standard output."""
    step = replica.GradientStep(
        student="relu", target="sin", alpha0=4, eta=2, readout="gaussian", bias=[-1, 0, 1]
    )
    below, point, above = (
        solve(step.srf(beta=1.0), alpha=alpha, lam=0.1) for alpha in (0.999, 1.0, 1.001)
    )
    # the curvature of the error over alpha is of order 1
    for name in ("test_error", "train_error"):
        beside = (getattr(below, name) + getattr(above, name)) / 2
        assert getattr(point, name) == pytest.approx(beside, rel=1e-5)
    assert capfd.readouterr().out == ""
