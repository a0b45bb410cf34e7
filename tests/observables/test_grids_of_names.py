"""Curves over losses, students and theories; the best penalty and rate of every point; notes."""

from dataclasses import replace

import numpy as np
import pandas
import pytest

import replica
from replica import InvalidArgument, learning_curve, optimal_eta, optimal_lambda, solve
from replica.observables import solve_grid
from solvers.results import ConvergenceError
from tests.problems import PUBLISHED

MODEL = PUBLISHED.srf(beta=1.0)
AT = dict(alpha=[0.5, 2.0], lam=0.1)


def test_a_number_has_no_dimension_and_a_list_has_one():
    curve = learning_curve(PUBLISHED, alpha=2.0, lam=0.1, beta=1.0)
    assert dict(curve.sizes) == {}
    assert float(curve.test_error) == solve(MODEL, alpha=2.0, lam=0.1).test_error
    assert (float(curve.alpha), float(curve.lam), float(curve.beta)) == (2.0, 0.1, 1.0)
    assert learning_curve(MODEL, alpha=[2.0], lam=0.1).test_error.dims == ("alpha",)


def test_grids_over_losses():
    curve = learning_curve(MODEL, loss=["square", "huber:1"], **AT)
    assert curve.test_error.dims == ("loss", "alpha")
    for loss in ("square", "huber:1"):
        for alpha in AT["alpha"]:
            point = solve(MODEL, alpha=alpha, lam=0.1, loss=loss)
            there = curve.sel(loss=loss, alpha=alpha)
            # of huber a point of a grid and one alone agree to the tolerance of their residual
            assert float(there.test_error) == pytest.approx(point.test_error, rel=1e-8)
            assert float(there.train_loss) == pytest.approx(point.train_loss, rel=1e-8)


def test_grids_over_students_and_theories():
    own = replica.activation(np.arctan)
    students = ["tanh", "relu(x) - 0.1*relu(-x)", own]
    curve = learning_curve(MODEL, student=students, theory=["srf", "network"], **AT)
    assert curve.test_error.dims == ("student", "theory", "alpha")
    assert list(curve.student.values) == ["tanh", "relu(x) - 0.1*relu(-x)", own.name]
    for name, student in zip(curve.student.values, students, strict=True):
        step = replica.GradientStep(student=student, target="sin", alpha0=20, eta=3.0)
        for kind, model in (("srf", step.srf(beta=1.0)), ("network", step.network(beta=1.0))):
            there = curve.test_error.sel(student=name, theory=kind, alpha=2.0)
            alone = solve(model, alpha=2.0, lam=0.1).test_error
            assert float(there) == pytest.approx(alone, rel=1e-13)  # sums in another order


def test_one_of_each_may_be_named():
    network = learning_curve(PUBLISHED, beta=1.0, theory="network", student="relu", **AT)
    step = replica.GradientStep(student="relu", target="sin", alpha0=20, eta=3.0)
    expected = learning_curve(step.network(beta=1.0), **AT)
    np.testing.assert_array_equal(network.test_error, expected.test_error)
    assert (network.theory.item(), network.student.item()) == ("network", "relu")


def test_a_step_is_at_a_dimension_in_both_theories():
    at = dict(alpha=2.0, lam=0.1, dimension=[300, np.inf])
    both = learning_curve(PUBLISHED, theory=["srf", "network"], beta=1.0, **at)
    for theory in ("srf", "network"):
        model = getattr(PUBLISHED, theory)(beta=1.0)
        expected = learning_curve(model, **at)
        found = both.test_error.sel(theory=theory)
        assert found.values.tolist() == expected.test_error.values.tolist()
    with pytest.raises(InvalidArgument, match=r"mean step\.network\(beta=1, reuse=1\)"):
        learning_curve(PUBLISHED, beta=1.0, alpha=2.0, lam=0.1, reuse=1)


def test_the_best_penalty_of_every_point():
    curve = learning_curve(PUBLISHED, beta=[0.5, 1.0], alpha=[0.5, 2.0], lam="best")
    assert curve.lam.dims == curve.test_error.dims == ("beta", "alpha")
    best = optimal_lambda(MODEL, alpha=2.0)
    there = curve.sel(beta=1.0, alpha=2.0)
    assert (float(there.lam), float(there.test_error)) == (best.lam, best.test_error)
    assert bool(curve.converged.all())


def test_the_best_rate_of_every_point():
    both = learning_curve(PUBLISHED, beta=1.0, alpha=[0.5, 1.0], lam="best", eta="best")
    best = optimal_eta(PUBLISHED, alpha=1.0, beta=1.0)
    there = both.sel(alpha=1.0)
    assert (float(there.eta), float(there.lam)) == (best.eta, best.lam)
    assert "eta" not in both.attrs
    assert "r" not in both
    held = learning_curve(PUBLISHED, beta=1.0, alpha=1.0, lam=[0.1, 1.0], eta="best")
    expected = optimal_eta(PUBLISHED, alpha=1.0, beta=1.0, lam=0.1)
    assert float(held.eta.sel(lam=0.1)) == expected.eta


def test_the_best_penalty_of_a_given_layer():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(200, 10))
    labels = np.where(features[:, 0] + rng.normal(size=200) > 0, 1.0, -1.0)
    layer = replica.FeatureSample(features=features, labels=labels)
    curve = learning_curve(layer, samples=[50, 100], lam="best")
    best = optimal_lambda(layer, samples=100)
    there = curve.sel(samples=100)
    assert (float(there.lam), float(there.test_error)) == (best.lam, best.test_error)


def test_a_search_that_fails_is_a_flagged_point():
    curve = learning_curve(MODEL, alpha=[1.0, 2.0], lam="best", time_limit=1e-9)
    assert not curve.converged.any()
    assert np.isnan(curve.test_error).all()
    assert all("time" in status for status in curve.status.values)
    with pytest.raises(ConvergenceError):
        learning_curve(MODEL, alpha=1.0, lam="best", time_limit=1e-9, raise_on_failure=True)


def test_notes_say_what_solutions_say():
    curve = learning_curve(PUBLISHED, beta=1.0, eta=[1.0, 6.0], alpha=1.0, lam=0.1, notes=True)
    point = solve(replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=6.0)
                  .srf(beta=1.0), alpha=1.0, lam=0.1)  # fmt: skip
    there = curve.sel(eta=6.0)
    for name in ("finite_size_shift", "network_difference"):
        assert float(there[name]) == pytest.approx(getattr(point, name), rel=1e-9)
    best = learning_curve(MODEL, alpha=1.0, lam="best", notes=True)
    assert (
        float(best.network_difference) == optimal_lambda(MODEL, alpha=1.0).point.network_difference
    )
    network = learning_curve(PUBLISHED.network(beta=1.0), alpha=1.0, lam=0.1, notes=True)
    assert float(network.network_difference) == 0


def test_progress_is_told_to_a_function_or_drawn(capsys):
    told = []
    progress = lambda *done: told.append(done)  # noqa: E731
    learning_curve(PUBLISHED, beta=[0.5, 1.0, 2.0], **AT, progress=progress)
    assert told == [(1, 3), (2, 3), (3, 3)]
    learning_curve(MODEL, alpha=[1.0, 2.0], lam="best", progress=progress)
    assert told[3:] == [(1, 2), (2, 2)]
    layer = replica.FeatureSample(features=np.eye(40)[:, :10], labels=np.arange(40) / 2)
    learning_curve(layer, samples=[5, 10], lam=0.1, loss=["square"], progress=progress)
    assert told[5:] == [(1, 2), (2, 2)]
    learning_curve(MODEL, **AT, progress=True)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "listed", [range(1, 3), pandas.Series([1.0, 2.0]), memoryview(b"\x01\x02")]
)
def test_whatever_has_several_values_is_an_axis(listed):
    curve = learning_curve(MODEL, alpha=listed, lam=0.1)
    expected = learning_curve(MODEL, alpha=[1.0, 2.0], lam=0.1)
    np.testing.assert_array_equal(curve.test_error, expected.test_error)
    single = learning_curve(MODEL, alpha=pandas.Series([2.0]), lam=0.1)
    assert single.test_error.dims == ("alpha",)


def test_a_network_stays_what_it_is_beside_its_srf():
    network = PUBLISHED.network(beta=1.0, row_norms=False)
    both = learning_curve(network, alpha=1.0, lam=0.1, theory=["srf", "network"])
    assert float(both.test_error[1]) == solve(network, alpha=1.0, lam=0.1).test_error
    assert float(both.test_error[0]) == solve(MODEL, alpha=1.0, lam=0.1).test_error


def test_each_of_several_steps_has_its_own_rate():
    step = replica.GradientStep(student="tanh", target="sin", steps=[(10, 1), (10, 1)])
    compare = "solve for each schedule and compare"
    for answer, said in (
        (lambda: learning_curve(step, beta=1.0, alpha=1.0, lam=0.1, eta="best"), compare),
        (lambda: optimal_eta(step.srf(beta=1.0), alpha=1.0), compare),
        (lambda: replica.bounds(step.srf(beta=1.0), eta=[1, 2]), "eta must be left out"),
        (lambda: replica.best_bounds(step.network(beta=1.0)), compare),
        (lambda: replica.sample_allocation(step, budget=2, eta="best"), compare),
        (lambda: replace(step, steps=[(2, "best"), (2, 1)]), "over the width, eta/p, got 'best'"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            answer()


@pytest.mark.slow
def test_notes_of_classes_and_losses():
    """Of the error that matters: of labels +-1 that of the class."""
    step = replica.GradientStep(student="tanh", target="sign", alpha0=2, eta=2.0)
    model = step.srf(beta=1.0)
    losses = ["square", "logistic"]
    curve = learning_curve(model, alpha=[1.0, 2.0], lam=0.1, loss=losses, notes=True)
    assert curve.network_difference.dims == ("loss", "alpha")
    for loss in losses:
        mine = solve(model, alpha=2.0, lam=0.1, loss=loss)
        network = solve(step.network(beta=1.0), alpha=2.0, lam=0.1, loss=loss)
        change = network.classification_error / mine.classification_error - 1
        there = float(curve.network_difference.sel(loss=loss, alpha=2.0))
        # classes are known to 1e-8, other losses to 1e-6
        assert there == pytest.approx(change, abs=3e-6)


def test_a_thinned_grid_has_the_ends_and_the_middle_of_its_axes():
    """In the order of a grid of them alone."""
    step = replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=3)
    students, losses = {"student": ["tanh", "erf"], "beta": 1.0}, ["square", "huber:1"]

    def on_grid(eta, alpha, lam):
        grids = students | {"eta": eta}
        return solve_grid(step, alpha=alpha, lam=lam, loss=losses, grids=grids)

    thinned = on_grid([0.1, 0.3, 1.0, 3.0], [0.5, 2], [0.1]).thinned()
    alone = on_grid([0.1, 1.0, 3.0], [0.5, 2], [0.1])
    assert thinned.models == alone.models
    for name, values in thinned.axes.items():
        assert list(values) == list(alone.axes[name])
    np.testing.assert_allclose(
        thinned.columns["test_error"], alone.columns["test_error"], rtol=1e-9
    )
