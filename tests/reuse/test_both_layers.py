"""Both layers trained on the same samples, as they are asked for: alpha0 = "alpha" and reuse."""

import json

import numpy as np
import pytest

import replica
from replica import GradientStep, gradient, learning_curve, optimal_eta, optimal_lambda, solve
from replica.errors import InvalidArgument
from solvers.results import Status
from tests.cli.commands import theory, validate
from validation import simulate

FOLLOWING = GradientStep(student="tanh", target="sin", alpha0="alpha", eta=1.0)
BOTH = FOLLOWING.network(beta=1.0, reuse=1.0)


def at(alpha, **changes):
    step = GradientStep(student="tanh", target="sin", alpha0=alpha, eta=1.0)
    return step.network(beta=1.0, **{"reuse": 1.0} | changes)


def test_curve_is_that_of_steps_of_as_many_samples():
    curve = learning_curve(BOTH, alpha=[1.0, 2.0], lam=0.05)
    for alpha in (1.0, 2.0):
        here, alone = curve.sel(alpha=alpha), solve(at(alpha), alpha=alpha, lam=0.05)
        assert here.test_error == alone.test_error
        assert here.train_error == alone.train_error
        assert solve(BOTH, alpha=alpha, lam=0.05).test_error == alone.test_error
    assert "gamma" not in curve  # which is another one at every alpha
    assert curve.attrs["alpha0"] == "alpha"


@pytest.mark.parametrize("theory", ["srf", "network"])
def test_fresh_samples_follow_too(theory):
    """As many samples for either layer, of any loss."""
    whole = learning_curve(
        FOLLOWING, alpha=[1.0, 2.0], lam=0.05, loss=["square", "huber:1"], beta=1.0, theory=theory
    )
    alone = solve(at(2.0).step, alpha=2.0, lam=0.05, beta=1.0, theory=theory, loss="huber:1")
    assert whole.test_error.sel(loss="huber:1", alpha=2.0) == alone.test_error


def test_point_has_the_step_it_is_of():
    point = solve(BOTH, alpha=2.0, lam=0.05)
    assert point.model == at(2.0)
    assert point.settings["alpha0"] == 2.0
    assert eval(repr(BOTH), vars(replica)) == BOTH
    assert eval(repr(point.model), vars(replica)) == point.model


def test_a_finite_dimension_changes_errors_as_on_fresh_samples():
    """Of tanh on tanh with few samples, simulated at d = 300 and 1000 (benchmarks/REUSE.md)."""
    step = GradientStep(student="tanh", target="tanh", alpha0=0.5, eta=1.0)
    at = {"alpha": 0.5, "lam": 0.01, "quadrature_tol": 1e-3}
    reused, fresh = (solve(step.network(beta=1.0, reuse=share), **at) for share in (1.0, 0.0))
    for dimension, low, high in ((300, 0.2746, 0.2824), (1000, 0.2752, 0.2781)):  # 2 s.e.
        here, of_fresh = (
            solve(step.network(beta=1.0, reuse=share, dimension=dimension), **at)
            for share in (1.0, 0.0)
        )
        assert low < here.test_error < high
        for error in ("test_error", "train_error"):
            ratio = getattr(of_fresh, error) / getattr(fresh, error)
            assert getattr(here, error) == pytest.approx(getattr(reused, error) * ratio, rel=1e-9)
        assert np.isnan(here.overlaps.V1).all()  # which the theory of reused samples does not have
    shift = here.test_error / reused.test_error - 1
    assert reused.finite_size_shift == pytest.approx(shift, rel=1e-3)  # to the tables' accuracy
    assert reused.notes == fresh.notes
    assert reused.network_difference == 0


def test_errors_that_a_dimension_moves_far_are_flagged():
    """abs on He_2, whose training error would be 3 % below simulation at d = 1000."""
    step = GradientStep(student="abs", target="he2", alpha0=2.0, eta=1.0)
    at = {"alpha": 2.0, "lam": 0.1, "quadrature_tol": 1e-3}
    point = solve(step.network(beta=1.0, reuse=1.0, dimension=1000), **at)
    assert point.status is Status.FAR_FROM_LIMIT
    assert np.isnan([point.test_error, point.train_error]).all()
    limit, fresh = (solve(step.network(beta=1.0, reuse=share), **at) for share in (1.0, 0.0))
    assert limit.notes == fresh.notes != ()


def test_derivative_in_the_penalty():
    found = gradient(at(2.0), alpha=2.0, lam=0.05)
    near = learning_curve(at(2.0), alpha=2.0, lam=[0.0495, 0.0505])
    assert [*found.test_error] == [*found.train_error] == ["lam"]
    for error in ("test_error", "train_error"):  # of central differences, to second order
        slope = np.diff(near[error].values).item() / 0.001
        assert getattr(found, error)["lam"] == pytest.approx(slope, rel=1e-3)


@pytest.mark.parametrize("row_norms", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "changes",
    [
        dict(student="relu", readout=[1.5, -0.5]),
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param(dict(student="relu", bias=[-0.5, 1]), marks=pytest.mark.slow),
    ],
)
def test_learned_function(changes, row_norms):
    """Of hardly any reused samples that of fresh ones, to the accuracy of both, 1e-5; and of reused
    ones the deviation from the target, averaged over its argument, is the test error."""
    step = GradientStep(**STEP | changes)
    kappa, (s, w) = np.array([-1.5, 0.2, 1.0]), np.polynomial.hermite_e.hermegauss(40)
    found = [
        replica.learned_function(
            step.network(beta=1.0, reuse=share, row_norms=row_norms), alpha=2.0, lam=0.05
        )
        for share in (0.0, 1e-7)
    ]
    fresh, hardly = (one.moments(kappa) for one in found)
    np.testing.assert_allclose(hardly, fresh, rtol=1e-5, atol=1e-5)
    reused = replica.learned_function(
        step.network(beta=1.0, reuse=1.0, row_norms=row_norms), alpha=2.0, lam=0.05, direction=[1]
    )
    mean, variance = reused.moments(s)
    error = w @ ((reused.target_mean(s) - mean) ** 2 + variance) / w.sum()
    # relu's kink leaves 1e-4 to Gauss-Hermite nodes
    assert error == pytest.approx(reused.point.test_error, rel=1e-4)


@pytest.mark.slow
def test_best_penalty_and_rate_are_of_the_same_samples():
    best = optimal_lambda(BOTH, alpha=2.0, lam=(1e-3, 1.0))
    alone = optimal_lambda(at(2.0), alpha=2.0, lam=(1e-3, 1.0))
    assert (best.lam, best.test_error) == (alone.lam, alone.test_error)
    # (section 21 of the docs' theory page): .37 to .57 of the best one on fresh samples
    fresh = optimal_lambda(at(2.0, reuse=0.0), alpha=2.0)
    assert 0.365 < best.lam / fresh.lam < 0.575
    rate = optimal_eta(BOTH, alpha=2.0, lam=0.05, eta=(0.3, 5.0))
    there = [solve(BOTH.model_at(eta=rate.eta * f), alpha=2.0, lam=0.05) for f in (0.9, 1, 1.1)]
    assert rate.point.model.rows.reuse == 1
    assert np.argmin([one.test_error for one in there]) == 1


@pytest.mark.slow
def test_best_rate_and_penalty_together():
    """Within the time limit of every call, and lower than their neighbours."""
    best = optimal_eta(BOTH, alpha=2.0)
    lam, eta = best.lam * np.array([0.9, 1, 1.1]), best.eta * np.array([0.9, 1, 1.1])
    around = learning_curve(BOTH, alpha=2.0, lam=lam, eta=eta).test_error
    assert around.argmin(...) == {"eta": 1, "lam": 1}
    assert best.test_error == pytest.approx(around.values[1, 1], rel=1e-9)
    assert best.minima[0].test_error == pytest.approx(best.test_error, rel=1e-3)


@pytest.mark.slow
def test_commands(capsys, tmp_path):
    """--alpha0 alpha --reuse 1, of what the network's theory is the only one."""
    step = "--student tanh --target sin --alpha0 alpha --eta 1 --reuse 1"
    assert theory(f"curve {step} --alpha 1,2 --lam 0.05 --json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["problem"]["reuse"] == 1
    for point in document["points"]:
        alone = solve(at(point["alpha"]), alpha=point["alpha"], lam=0.05)
        assert point["test_error"] == pytest.approx(alone.test_error, rel=1e-9)
    (tmp_path / "a.toml").write_text('alpha0 = "alpha"\neta = 1\nreuse = 1\n')
    from_file = f"--config {tmp_path / 'a.toml'} --student tanh --target sin"
    assert theory(f"curve {from_file} --alpha 1,2 --lam 0.05 --json") == 0
    assert json.loads(capsys.readouterr().out) == document
    assert theory(f"optimum {step} --alpha 1 --json") == 0
    (best,) = json.loads(capsys.readouterr().out)["points"]
    assert best["lam"] == optimal_lambda(BOTH, alpha=1.0).lam
    small = "--dimension 40 --seeds 2 --rng 0 --workers 1"
    assert validate(f"simulate {step} --alpha 1 --lam 0.05 {small} --json") == 0
    drawn = json.loads(capsys.readouterr().out)
    same = simulate(at(1.0), alpha=1.0, lam=0.05, dimension=40, seeds=2, rng=0)
    assert drawn["points"][0]["train_error"] == pytest.approx(same.train_error.item())
    spiked = "curve --student tanh --target sin --r 1 --c 1 --gamma 0.9 --reuse 1"
    for line in (f"curve {step} --theory srf", spiked, f"curve {step.replace('1', '2')}"):
        assert theory(f"{line} --alpha 1 --lam 0.05") == 2
        assert "--reuse must be" in capsys.readouterr().err


def test_rate_keeps_what_is_reused():
    assert BOTH.model_at(eta=2.0).rows.reuse == 1


STEP = {"student": "tanh", "target": "sin", "alpha0": 2, "eta": 1}
LAW = replica.GaussianMixture(means=[[1.0], [-1.0]])
SEVERAL = GradientStep(**STEP | {"target": "z1*z2"}).network(beta=1.0, reuse=1.0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"alpha0": None, "eta": None, "steps": [(1, 1), (1, 1)]}, "several steps"),
        ({"inputs": LAW}, "inputs"),
        ({"alpha0": np.inf}, "alpha0 = inf"),
        ({"eta": 0}, "eta = 0"),
        ({"intercept": True}, "intercept"),
        ({"train_bias": True}, "trained bias"),
        ({"decay": 0.1}, "decay"),
        ({"step_noise": 0.5}, "noise of the step"),
        ({"readout": "gaussian"}, "continuous"),
        ({"target": "sign", "label_noise": "student:3"}, "moments"),
    ],
)
def test_what_is_not_covered_is_refused_in_a_sentence(changes, said):
    with pytest.raises(InvalidArgument, match=said):
        GradientStep(**STEP | changes).network(beta=1.0, reuse=1.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: solve(at(2.0), alpha=2.5, lam=0.1), "reuse \\* alpha"),
        (lambda: solve(at(2.0), alpha=1.0, lam=0.1, loss="huber:1"), "the square"),
        (lambda: GradientStep(**STEP).network(beta=1.0, reuse=1.5), "from 0 to 1"),
        (lambda: replica.bounds(at(2.0)), "reused samples"),
        (lambda: replica.best_bounds(at(2.0)), "reused samples"),
        (lambda: replica.spectrum(at(2.0), 1.0), "reused samples"),
        (lambda: replica.learned_function(SEVERAL, alpha=1.0, lam=0.1), "several directions"),
        (lambda: gradient(FOLLOWING, alpha=1.0, lam=0.1, beta=1.0), "a number here"),
        (lambda: replica.bounds(FOLLOWING), "a number here"),
        (lambda: replica.best_bounds(FOLLOWING), "a number here"),
        (lambda: replica.after_each_step(FOLLOWING), "a number here"),
        (lambda: replica.spectrum(FOLLOWING, 1.0, beta=1.0), "a number here"),
        (lambda: GradientStep(**STEP | {"alpha0": "alfa"}), "positive or inf"),
        (lambda: GradientStep(student="tanh", target="sin", steps=[("alpha", 1)] * 2), "single"),
    ],
)
def test_what_is_asked_in_vain_is_refused_in_a_sentence(call, said):
    with pytest.raises(InvalidArgument, match=said):
        call()


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "sign", "label_noise": "flip:0.2"},
        {"noise": 0.3, "initialisation": "gaussian"},
        pytest.param({"target": "sin", "label_noise": "flip:0.1"}, marks=pytest.mark.slow),
        pytest.param({"target": "sign", "label_noise": "logistic"}, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("row_norms", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_hardly_any_reused_samples_give_the_errors_of_fresh_ones(changes, row_norms):
    """Labels +-1 at random, whose test error is that of their mean, and laws of the rows."""
    step = GradientStep(**STEP | changes)
    fresh, reused = (
        solve(step.network(beta=1.0, row_norms=row_norms, reuse=share), alpha=2.0, lam=0.1)
        for share in (0.0, 1e-12)
    )
    classes = ("classification_error",) if fresh.model.labels.binary else ()
    for name in ("test_error", "train_error", "loss_error", *classes):
        # both are known to their quadrature tolerance, 1e-5
        assert getattr(reused, name) == pytest.approx(getattr(fresh, name), rel=2e-5), name


def test_an_even_target_is_solved():
    """No neuron learns it in a step, so that equations along the spike are 0 = 0."""
    point = solve(
        GradientStep(student="abs", target="he2", alpha0=2, eta=1).network(beta=1.0, reuse=1.0),
        alpha=2.0, lam=0.1,
    )  # fmt: skip
    assert point.converged
    # simulated at d = 300 and 1 000: 2.85 and 2.99, training .729 and .747 +- .003
    assert 2.9 < point.test_error < 3.3
    assert point.train_error == pytest.approx(0.7562, abs=1e-3)


@pytest.mark.slow
def test_what_is_not_solved_is_flagged():
    """A step of a hundred times its samples' rate, at which Newton's method loses its way."""
    step = GradientStep(
        student="sigmoid", target="he2", alpha0=0.12, eta=12, noise=0.1, readout=[1.5, -0.5]
    )
    point = solve(step.network(beta=5.0, reuse=1.0), alpha=0.12, lam=0.1)
    assert not point.converged
    assert np.isnan([point.test_error, point.train_error]).all()


@pytest.mark.slow
def test_a_large_rate_on_few_samples_is_known_to_what_it_says():
    """The finest rule, where no tolerance is asked for: errors of a coarser one differ by less."""
    step = GradientStep(student="tanh", target="sin", alpha0=0.3, eta=6)
    at = dict(alpha=0.3, lam=0.1)
    model = step.network(beta=1.0, reuse=1.0)
    point, coarse = solve(model, **at), solve(model, **at, quadrature_tol=1e-2)
    assert point.converged
    assert 1e-5 < point.quadrature_error < 1e-3
    assert coarse.nodes < point.nodes
    assert point.test_error == pytest.approx(coarse.test_error, rel=1e-3)
    assert not solve(model, **at, quadrature_tol=1e-5).converged
