"""solve and learning_curve: published values, grids, independence of the grid, flags."""

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray

import replica
from replica import GradientStep, InvalidArgument, learning_curve, solve
from replica.observables import evaluate_model, solve_grid
from solvers.results import ConvergenceError, Status
from tests.problems import ORDER_OF_SUMS, PUBLISHED, RAGGED, THREE

MODEL = PUBLISHED.srf(beta=1.0)


def test_random_features_keep_the_constant():
    """docs/theory.md 14.6: relu/relu random features need m != 0; simulation gave .293 +- 2 %."""
    model = replica.GradientStep(student="relu", target="relu", alpha0=1, eta=0).srf(beta=1.0)
    assert replica.solve(model, alpha=2, lam=0.1).test_error == pytest.approx(0.293, rel=0.02)


def test_a_point_does_not_depend_on_its_grid():
    """The same to the rounding of matrix products of different shapes, also where lam is so
    small that points climb to finer rules."""
    lams = [1e-8, 1e-3, 10.0]
    curve = replica.learning_curve(MODEL, alpha=np.linspace(0.2, 3, 40), lam=lams)
    for alpha in (0, 11, 39):
        for i, lam in enumerate(lams):
            alone = replica.solve(MODEL, alpha=float(curve.alpha[alpha]), lam=lam)
            together = curve.isel(alpha=alpha, lam=i)
            assert float(together.test_error) == pytest.approx(alone.test_error, rel=1e-11)
            assert float(together.train_error) == pytest.approx(alone.train_error, rel=1e-11)


def test_grids_over_model_fields():
    """One of the points is published: docs/theory.md 13."""
    grids = dict(beta=[0.5, 1.0], eta=[0, 3.0])
    curve = learning_curve(PUBLISHED, alpha=[0.2, 0.9, 3.0], lam=[0.1, 1.0], **grids)
    assert dict(curve.sizes) == {"beta": 2, "eta": 2, "alpha": 3, "lam": 2}
    assert curve.r.dims == ("beta", "eta")
    cell = curve.sel(beta=1.0, eta=3.0, alpha=0.9, lam=0.1)
    assert round(float(cell.test_error), 7) == 0.0425039
    assert curve.attrs["student"] == "tanh"


@pytest.mark.parametrize(
    "grids",
    [dict(eta=[1, 3]), dict(alpha0=[2, np.inf]), dict(noise=[0, 0.1]), dict(beta=[1, 2]),
     dict(readout=["equal", "rademacher"]), dict(eta=[1, 3], beta=[0.5, 2])],
    ids=" ".join,
)  # fmt: skip
def test_a_model_remembers_the_step_that_made_it(grids):
    """Its curve over the step's fields is that of the step, and says what was not varied."""
    at = dict(alpha=1.0, lam=0.1)
    curve = learning_curve(MODEL, **at, **grids)
    of_step = grids | {"beta": grids.get("beta", 1.0)}
    other = learning_curve(PUBLISHED, **at, **of_step).squeeze()
    np.testing.assert_allclose(
        curve.test_error.squeeze(), other.test_error, rtol=ORDER_OF_SUMS, equal_nan=False
    )
    constant = {"alpha0": 20, "eta": 3, "noise": 0, "beta": 1}
    assert {name: curve.attrs.get(name) for name in constant} == {
        name: None if name in grids else value for name, value in constant.items()
    }


def test_a_model_that_is_changed_has_no_step():
    changed = replace(MODEL, r=2.0)
    assert changed.step is None
    with pytest.raises(InvalidArgument, match="a grid must be over alpha, lam, r, c, gamma, beta"):
        learning_curve(changed, alpha=1, lam=0.1, eta=[1])


@pytest.mark.parametrize("kind", ["srf", "network"])
def test_a_rate_that_follows_the_width(kind):
    """eta = eta~ p at a fixed d: eta~ beta is the same at every width."""
    made = getattr(PUBLISHED, kind)(beta=1.0)
    curve = learning_curve(made, alpha=1.0, lam=0.1, beta=[0.5, 2.0], rate=3.0).squeeze()
    assert curve.eta.values.tolist() == [6.0, 1.5]
    for beta, eta, error in zip([0.5, 2], [6.0, 1.5], curve.test_error.values, strict=True):
        one = getattr(replace(PUBLISHED, eta=eta), kind)(beta=beta)
        assert error == solve(one, alpha=1.0, lam=0.1).test_error
    assert "eta" not in curve.attrs


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (dict(alpha=-1, lam=1), "alpha must be positive"),
        (dict(alpha=1, lam=0), "lam must be positive, from 1e-30 to .*: at 0"),
        (dict(alpha=[], lam=1), "alpha must be a number"),
        (dict(alpha=1 + 2j, lam=1), "alpha must be a number"),
        (dict(alpha=1, lam="x"), "lam must be a number"),
        (dict(alpha=1, lam=1, beta=[[1, 2]]), "beta must be a number"),
        (dict(alpha=1, lam=1, readouts=["equal"]), "a grid must be over alpha, .*, got 'readouts'"),
        (dict(alpha=1, lam=1, rows=[1]), "a grid must be over alpha, lam, r, c, gamma, .* eta"),
        (dict(alpha=1, lam=1, rate=[1], eta=[1]), "rate must be left out where eta is given"),
        (dict(alpha=1, lam=1, readout=["box", "x"]), "readout must be equal .*on a grid"),
        (dict(alpha=1, lam=1, readout=[-1, 1]), "readout must be equal .*on a grid"),
        (dict(alpha=1, lam=1, beta=[-1.0]), "beta must be positive"),
        (dict(alpha=[1, 2], lam=1, workers=0), "workers must be .*1 or more"),
        (dict(alpha=1, lam=1, loss=["square", "square"]), "different names"),
        (dict(alpha=1, lam=1, loss=[]), "one or more"),
        (dict(alpha=1, lam=1, student=["tanh", "tanh"]), "different names"),
        (dict(alpha=1, lam=1, theory=["srf", "net"]), "theory must be srf or network"),
        (dict(alpha=1, lam="best", loss="huber:1"), "loss"),
        (dict(alpha=1, lam=1, beta="best"), "beta"),
        (dict(alpha=1, lam=1, eta="best", rate=[0.5, 1.0]), "rate must be left out"),
        (dict(alpha=1, lam=1, progress="yes"), "progress must be True, False"),
        (dict(alpha=1, lam=1, notes=1.5), "notes"),
    ],
)
def test_bad_grids(call, message):
    with pytest.raises(InvalidArgument, match=message):
        replica.learning_curve(MODEL, **call)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: learning_curve(PUBLISHED, beta=1, alpha=1, lam="bset"), "best"),
        (lambda: learning_curve(PUBLISHED, beta=1, alpha=1, lam=1, eta="bset"), "best"),
        (lambda: learning_curve(PUBLISHED, beta=1, alpha=1, lam=1, alpha0="alpah"), "alpha"),
        (lambda: solve(PUBLISHED, beta=1, alpha=1, lam="bset"), "best"),
        (lambda: replace(PUBLISHED, eta="bset"), "best"),
        (lambda: replace(PUBLISHED, alpha0="alpah"), "alpha"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_word(call, word):
    with pytest.raises(InvalidArgument, match=f"""["']{word}["'].*, got '(bset|alpah)'"""):
        call()


def test_a_ratio_that_may_be_a_number_of_samples_is_questioned(caplog):
    assert "for n = 300 samples give 300/d" in repr(solve(MODEL, alpha=300, lam=1))
    assert "n/d" not in repr(solve(MODEL, alpha=100, lam=1))
    learning_curve(MODEL, alpha=[1, 100], lam=1)
    assert not caplog.text
    learning_curve(MODEL, alpha=[1, 300], lam=1)
    assert "alpha = 300 is n/d" in caplog.text


def test_a_step_needs_beta():
    with pytest.raises(InvalidArgument, match="beta must be given"):
        learning_curve(PUBLISHED, alpha=1, lam=1)
    with pytest.raises(InvalidArgument, match="beta must be given"):
        solve(PUBLISHED, alpha=1, lam=1)
    with pytest.raises(InvalidArgument, match="model must be a GradientStep, or a model"):
        solve("tanh", alpha=1, lam=1)


def test_unresolved_points_are_flagged():
    """A tolerance below rounding cannot be met: NaN, a sentence, an exception on request."""
    point = replica.solve(MODEL, alpha=1.0, lam=0.1, quadrature_tol=1e-20)
    assert not point.converged
    assert point.status is Status.QUADRATURE
    assert np.isnan(point.test_error)
    assert np.isnan(point.train_error)
    options = dict(alpha=1.0, lam=0.1, quadrature_tol=1e-20, raise_on_failure=True)
    with pytest.raises(ConvergenceError, match="quadrature") as caught:
        replica.solve(MODEL, **options)
    assert caught.value.result.status is Status.QUADRATURE
    with pytest.raises(ConvergenceError, match="1 points"):
        replica.learning_curve(MODEL, **options)


def test_quadrature_error_bounds_the_error():
    """The estimate, made with the rule of half the size, exceeds the change on refinement."""
    model = replica.SpikedRandomFeatures(student="tanh", target="tanh", r=4, c=1, gamma=0.9)
    loose, tight = (
        solve(model, alpha=1.0, lam=1e-4, **asked) for asked in (dict(quadrature_tol=1e-3), {})
    )
    assert loose.nodes < tight.nodes
    assert 0 < abs(loose.test_error / tight.test_error - 1) <= loose.quadrature_error


@pytest.mark.parametrize("gamma", [1.0, 1 - 1e-9, 0.9999, -1.0])
@pytest.mark.parametrize("target", ["sign", "relu"])
def test_nearly_aligned_kinked_targets(gamma, target):
    """gamma -> 1 gives h(kappa) a layer of any width down to a jump; continuous in gamma."""
    fields = dict(student="erf", target=target, r=1.3, c=1.1, beta=1.2, noise=0.1)
    point = replica.solve(replica.SpikedRandomFeatures(gamma=gamma, **fields), alpha=1.4, lam=0.05)
    assert point.converged
    sign = np.sign(gamma)
    limit = replica.solve(replica.SpikedRandomFeatures(gamma=sign, **fields), alpha=1.4, lam=0.05)
    # h differs from its limit on a layer of width sqrt(1 - gamma^2), about 1.4e-2 at .9999
    assert point.test_error == pytest.approx(
        limit.test_error, rel=3 * np.sqrt(1 - gamma**2) + 1e-10
    )


@pytest.mark.parametrize("grids", [{}, {"beta": [0.5, 1]}, {"noise": [0, 1]}])
def test_learning_curves_of_groups(grids):
    curve = learning_curve(RAGGED, alpha=[0.5, 1], lam=0.1, **grids)
    assert bool(curve.converged.all())
    assert len(curve.to_dataframe()) == curve.test_error.size  # a row a point


def test_learning_curves_of_several_steps(tmp_path):
    curve = learning_curve(THREE, alpha=[1.0, 2.0], lam=0.05, beta=[0.5, 1.0], noise=[0.0, 0.1])
    assert dict(curve.sizes) == {"beta": 2, "noise": 2, "alpha": 2}
    assert json.loads(curve.attrs["steps"]) == [[2, 1]] * 3
    curve.to_netcdf(tmp_path / "curve.nc", engine="h5netcdf")
    with pytest.raises(InvalidArgument, match="eta must be left out: each of several steps"):
        learning_curve(THREE, alpha=1, lam=1, beta=1, eta=[1, 2])


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["square", "huber:0.5"])
def test_workers_do_not_change_an_answer(loss):
    """Two models, of the loss in two blocks of points, in two processes and in this one."""
    grid = dict(alpha=np.linspace(0.5, 3, 40), lam=1.0, beta=[0.5, 2.0], loss=loss)
    noisy = replace(MODEL, noise=0.3)
    here, there = (learning_curve(noisy, workers=workers, **grid) for workers in (1, 2))
    assert bool(here.converged.all())
    assert here.attrs == there.attrs
    # residuals and quadrature errors are themselves rounding; losses start from ridge regression
    told = ["test_error", "train_error", "converged", "status"]
    xarray.testing.assert_allclose(here[told], there[told], rtol=ORDER_OF_SUMS)


@pytest.mark.parametrize("limit", [Status.TIME, Status.MEMORY])
def test_a_point_beyond_its_limits_is_flagged(limit, monkeypatch):
    """A spike so long that its first tables do not do."""
    if limit is Status.MEMORY:
        monkeypatch.setattr(evaluate_model, "LARGEST_TABLE", 1)
    seconds = 1e-9 if limit is Status.TIME else 20.0
    point = solve(replace(MODEL, r=1e4), alpha=1, lam=0.1, time_limit=seconds)
    assert point.status == limit
    assert np.isnan(point.test_error)
    with pytest.raises(InvalidArgument, match="time_limit must be a positive"):
        solve(MODEL, alpha=1, lam=0.1, time_limit=0)
    with pytest.raises(InvalidArgument, match="time_limit must be a positive"):
        solve_grid(MODEL, alpha=1, lam=0.1, time_limit=-1)


def test_a_curve_over_readout_laws_has_a_row_a_point():
    curve = learning_curve(MODEL, alpha=1.0, lam=0.1, readout=["equal", "rademacher"])
    assert len(curve.to_dataframe()) == 2
    assert "r" not in curve  # of either group one: model.r
    assert curve.alpha.attrs["long_name"] == r"readout samples per dimension $\alpha = n/d$"


def test_a_point_knows_how_far_the_network_is():
    """As the command line notes it: of an sRF after a step; 0 of a network, and of what has no
    step; NaN where the network's theory does not cover it."""
    step = GradientStep(student="relu", target="sin", alpha0=0.3, eta=6.0)
    at = {"alpha": 1.0, "lam": 0.1}
    srf, network = (solve(make(beta=1.0), **at) for make in (step.srf, step.network))
    assert srf.network_difference == network.test_error / srf.test_error - 1
    assert srf.network_difference < -0.2
    assert "network_difference" in str(srf)
    assert network.network_difference == 0
    assert solve(replace(MODEL, r=1.2), **at).network_difference == 0
    biased = replace(step, train_bias=True).srf(beta=1.0)
    assert np.isnan(solve(biased, **at).network_difference)
    best = replica.optimal_eta(step, alpha=4.0, beta=1.0, lam=0.1, eta=(1.0, 100.0))
    assert ("network_difference" in str(best)) == (abs(best.point.network_difference) > 0.05)


# Functions of a step or a model, and one number of what they return.
OF_STEPS = {
    "solve": lambda one, **way: solve(one, alpha=0.9, lam=0.1, **way).test_error,
    "optimal_lambda": lambda one, **way: replica.optimal_lambda(one, alpha=1.0, **way).lam,
    "optimal_eta": lambda one, **way: (
        replica.optimal_eta(one, alpha=1.0, lam=0.1, eta=(1.0, 9.0), **way).eta
    ),
    "bounds": lambda one, **way: replica.bounds(one, **way).lower,
    "bounds over eta": lambda one, **way: replica.bounds(one, eta=2.0, **way).lower.item(),
    "best_bounds": lambda one, **way: replica.best_bounds(one, eta=(1.0, 9.0), **way).upper,
    "gradient": lambda one, **way: replica.gradient(one, alpha=0.9, lam=0.1, **way).test_error[
        "lam"
    ],
    "learned_function": lambda one, **way: float(
        replica.learned_function(one, alpha=0.9, lam=0.1, **way).mean(1.0)
    ),
    "spectrum": lambda one, **way: replica.spectrum(one, 2.0, **way).edges.tolist(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_STEPS)
def test_a_step_with_its_width_is_its_model(name):
    """For every function, either theory; a model has a width and a theory, and is given neither."""
    number, network = OF_STEPS[name], PUBLISHED.network(beta=0.5)
    assert number(PUBLISHED, beta=0.5) == number(PUBLISHED.srf(beta=0.5))
    if name not in ("optimal_eta", "best_bounds"):  # which take seconds
        assert number(PUBLISHED, beta=0.5, theory="network") == number(network)
    for given in ({"beta": 0.5}, {"theory": "srf"}):
        (option,) = given
        with pytest.raises(InvalidArgument, match=f"{option} must be left out: only a Gradient"):
            number(network, **given)
    with pytest.raises(InvalidArgument, match="theory must be srf or network"):
        number(PUBLISHED, beta=0.5, theory="both")


def test_former_ways_to_a_model_say_what_to_type():
    with pytest.raises(AttributeError, match=r"take step.srf\(beta=...\) or step.network"):
        PUBLISHED.model(beta=1.0)
    with pytest.raises(AttributeError, match=r"take step.network\(beta=...\)"):
        replica.Network(step=PUBLISHED)
    with pytest.raises(AttributeError, match="'optimal_lamda': did you mean optimal_lambda"):
        _ = replica.optimal_lamda
    with pytest.raises(InvalidArgument, match=r"the smaller first, got \(5, 1\)"):
        replica.optimal_eta(PUBLISHED, alpha=1.0, beta=1.0, eta=(5, 1))
    with pytest.raises(InvalidArgument, match="did you mean theory"):
        learning_curve(PUBLISHED, alpha=1.0, lam=0.1, beta=1.0, model="network")
