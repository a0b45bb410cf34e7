"""Every call that may take long ends at its ``time_limit``, and says so."""

import time
from dataclasses import replace

import numpy as np
import pytest

import replica
from replica import GradientStep, SpikedRandomFeatures
from replica.problem.targets import _cached_moments
from solvers.resources import deadline
from solvers.results import ConvergenceError, Status

STEP = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
# tables of these take seconds: a target of three directions on two spikes
SLOW = SpikedRandomFeatures(
    student="tanh",
    target="z1 + he2(z2)*sin(z3)",
    r=[[1.0, 0.5], [0.7, -0.4], [-1.0, 0.3]],
    c=[1.1, 1.2, 1.3],
    gamma=[[0.6, 0.2], [0.3, 0.5], [0.2, 0.1]],
)


def timed(call, *args, **options):
    start = time.monotonic()
    found = call(*args, **options)
    return found, time.monotonic() - start


def test_a_first_table_that_takes_too_long_is_flagged():
    _cached_moments.cache_clear()
    point, seconds = timed(replica.solve, SLOW, alpha=1.0, lam=0.1, time_limit=0.2)
    assert point.status is Status.TIME
    assert np.isnan([point.test_error, point.train_error]).all()
    assert seconds < 2
    assert "time_limit" in str(point)
    learned = replica.learned_function(SLOW, alpha=1.0, lam=0.1, time_limit=1e-3)
    assert np.isnan(learned.mean(np.zeros((2, 3)))).all()


def test_derivatives_that_were_not_reached_are_flagged():
    assert replica.gradient(STEP, alpha=1.0, lam=0.1, beta=1.0).status is Status.CONVERGED
    point = replica.solve(STEP.network(beta=1.0), alpha=1.0, lam=0.1)
    assert point.converged  # its tables are known from here on
    found = replica.gradient(STEP.network(beta=1.0), alpha=1.0, lam=0.1, time_limit=0.03)
    assert found.point.converged
    assert found.status is Status.TIME
    assert np.isnan(list(found.test_error.values())).any()
    found = replica.gradient(SLOW, alpha=1.0, lam=0.1, time_limit=1e-3)
    assert found.status is Status.TIME
    for model in (SLOW, STEP.network(beta=1.0)):
        with deadline(0.0):  # of a caller, and past: the point is flagged all the same
            found = replica.gradient(model, alpha=1.0, lam=0.1)
        assert found.status is Status.TIME


@pytest.mark.slow
def test_derivatives_of_other_losses_tell_the_time_too():
    step = replace(STEP, target="sign")
    at = {"alpha": 1.0, "lam": 0.1, "beta": 1.0, "loss": "huber:1"}
    found, seconds = timed(replica.gradient, step, **at)
    assert found.status is Status.CONVERGED
    for share in (0.5, 0.7, 0.9):
        found = replica.gradient(step, **at, time_limit=share * seconds)
        assert found.status in (Status.TIME, Status.CONVERGED)  # never what it is not


def test_bounds():
    bias = replace(STEP, train_bias=True).srf(beta=1.0)
    found, seconds = timed(replica.bounds, bias, time_limit=0.05)
    assert found.status is Status.TIME
    assert np.isnan([found.lower, found.upper, found.lower_function(0.3)]).all()
    assert found.plot() is not None
    assert found.linear == replica.bounds(STEP).linear
    assert seconds < 1
    found = replica.bounds(STEP, eta=[1.0, 2.0], time_limit=1e-9)
    assert np.isnan(found.lower).all()
    with pytest.raises(ConvergenceError, match="time_limit"):
        replica.best_bounds(STEP, time_limit=0.01)


@pytest.mark.parametrize(
    "model", [STEP.srf(beta=1.0), replace(STEP, train_bias=True).srf(beta=1.0)]
)
def test_optima(model):
    with pytest.raises(ConvergenceError, match="time_limit"):
        replica.optimal_lambda(model, alpha=1.0, time_limit=1e-6)


def test_searches():
    with pytest.raises(ConvergenceError, match="time_limit"):
        replica.optimal_eta(STEP, alpha=1.0, beta=1.0, time_limit=0.01)
    W = np.random.default_rng(0).standard_normal((20, 30)) / 30**0.5
    along = np.eye(30)[:, :1]
    layer = replica.FirstLayer(weights=W, student="tanh", target="sin", directions=along)
    with pytest.raises(ConvergenceError, match="time_limit"):
        replica.optimal_lambda(layer, samples=50, time_limit=0.01)
