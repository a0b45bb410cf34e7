"""The residual sees every unknown, and every map that a solver may have wrong."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

import replica
from replica import GradientStep, SpikedRandomFeatures
from replica.convex.equations import Equations
from replica.equivalence import table_at
from replica.saddle_point import Overlaps, ridge, solve_damped
from replica.saddle_point.ridge import residual
from solvers.results import Status
from solvers.rules import trapezoid
from tests.convex.problems import SIGN, labels_on, overlaps_of
from tests.problems import POINTS, PUBLISHED, RAGGED
from tests.saddle_point.test_one_group import MIXTURE, general

RELU = GradientStep(student="relu", target="sin", alpha0=0.5, eta=2.0, noise=0.1)
MODELS = {
    "one group": PUBLISHED.srf(beta=1.3),
    "finite dimension": replace(RELU.srf(beta=0.8), dimension=300),
    "groups": RAGGED,
    "intercept": replace(RAGGED, intercept=True),
    "two spikes": SpikedRandomFeatures(
        student="tanh", target="sin(z1) + z2", r=[[1.0, 0.2], [-0.4, 0.8]], c=[1.0, 0.6],
        gamma=[[0.8, 0.0], [0.0, 0.7]], beta=1.3,
    ),
    "mixture": GradientStep(
        student="relu", target="z1*z2 + sin(z2)", alpha0=1.0, eta=2.0, inputs=MIXTURE
    ).srf(beta=0.7),
    "network": RELU.network(beta=1.2),
    "network, two readouts": replace(RELU, readout=[1.5, 0.5]).network(beta=1.2),
    "network, two steps": GradientStep(
        student="relu", target="z1 + z1*z2", steps=[(1, 1.0), (2, 0.5)]
    ).network(beta=1.0),
}  # fmt: skip
WRONG = 1e-6  # a fifth of any unknown leaves at least that: 1e4 times the tolerance


@pytest.fixture(params=MODELS, scope="module")
def solved(request):
    table = table_at(MODELS[request.param], 2)
    return table, ridge.solve_points(table, **POINTS)


def in_general(table):
    """The points by the general solver, for one group, too."""
    with np.errstate(all="ignore"):
        return general(ridge.responses_of(table), *POINTS.values())


def of(table, points):
    with np.errstate(all="ignore"):  # what is wrong may be anything
        return np.nan_to_num(residual([table], *POINTS.values(), points)[0], nan=np.inf)


def test_solutions_solve_their_equations(solved):
    """One pass, of other code than solves them, leaves all unknowns where they are."""
    assert of(*solved).max() < 1e-12


@pytest.mark.parametrize("record", ["overlaps", "conjugates", "errors"])
def test_every_number_is_checked(solved, record):
    table, points = solved
    numbers = getattr(points, record)
    for name, value in numbers._asdict().items():
        is_symmetric = value.ndim == 3 and np.array_equal(value, value.swapaxes(1, 2))
        for entry in np.ndindex(value.shape[1:]):
            bad = value.copy()
            for at in {entry, entry[::-1]} if is_symmetric else [entry]:
                # m_hat, and what parity forbids, is 0 but for rounding
                bad[:, *at] = 1.2 * bad[:, *at] + (np.abs(bad[:, *at]) < 1e-9)
            changed = points._replace(**{record: numbers._replace(**{name: bad})})
            assert of(table, changed).min() > WRONG, (name, entry)


def scaled(function, part=None, factor=1.2):
    """What it returns, or the named part of that, times a factor."""

    def wrong(*args):
        value = function(*args)
        if part is None:
            return value * factor
        if isinstance(part, int):
            return (*value[:part], value[part] * factor, *value[part + 1 :])
        return value._replace(**{part: getattr(value, part) * factor})

    return wrong


MAPS = [
    *(("ridge_signal", part) for part in ("m", "special", "special_hat")),
    ("conditional_error", 1),
]


@pytest.mark.parametrize(("name", "part"), MAPS)
def test_every_step_of_the_solver_is_checked(solved, name, part, monkeypatch):
    table, _ = solved
    with monkeypatch.context() as patch:
        patch.setattr(ridge, name, scaled(getattr(ridge, name), part))
        points = in_general(table)
    assert of(table, points).min() > WRONG


@pytest.mark.parametrize(
    ("name", "part", "factor"),
    [("conjugates_from", None, 1.2), ("conjugates_from", None, "first"),
     ("conjugates_from", None, "last"), ("second_moments_at", None, 1.2),
     ("signal_sources", "X", 1.2), ("susceptibility", "matrix", 1.2)],
)  # fmt: skip
def test_every_response_is_checked(solved, name, part, factor, monkeypatch):
    """V_hat and X wrong as a whole, or halved in V1_hat and X1, or in V2_hat and X2."""
    table, responses = solved[0], ridge.responses_of.__wrapped__(solved[0])
    if isinstance(factor, str):
        of_vector = np.arange(responses.unknowns) >= responses.unknowns - responses.groups
        factor = np.where(of_vector == (factor == "last"), 0.5, 1.0)
    setattr(responses, name, scaled(getattr(responses, name), part, factor))
    with monkeypatch.context() as patch:
        patch.setattr(ridge, "responses_of", lambda table: responses)
        points = in_general(table)
    assert of(table, points).min() > WRONG


@pytest.mark.parametrize(
    "name", ["one group", "groups", "intercept", "finite dimension", "network", "mixture"]
)
def test_half_a_pass_again_and_again_is_the_same_answer(name):
    """Damped iteration, to the 1e-10 that either is known to."""
    table, at = table_at(MODELS[name], 2), (np.array([0.9]), np.array([0.1]))
    usual, damped = ridge.solve_points(table, *at), solve_damped(table, *at)
    assert damped.status == Status.CONVERGED
    assert damped.errors.test == pytest.approx(usual.errors.test, rel=1e-10)
    assert damped.errors.train == pytest.approx(usual.errors.train, rel=1e-10)
    assert damped.iterations > 3 * usual.iterations


def test_what_damped_iteration_does_not_reach_is_flagged(monkeypatch):
    """At the threshold and lam = 1e-10 it would take 1e5 sweeps, of which this waits for 500."""
    module = importlib.import_module("replica.saddle_point.one_pass")
    monkeypatch.setattr(module, "MOST_SWEEPS", 500)
    table = table_at(MODELS["one group"], 2)
    point = solve_damped(table, np.array([1.0]), np.array([1e-10]))
    assert point.status == Status.ITERATION_LIMIT


@pytest.mark.parametrize("loss", ["huber:0.5", "logistic"])
def test_every_overlap_of_a_loss_is_checked(loss):
    """Of a loss the residual is what one pass changes of its coordinates."""
    equations = Equations(labels_on(SIGN, trapezoid(200, 7.9)), replica.loss(loss))
    overlaps = overlaps_of(replica.solve(SIGN, alpha=2.0, lam=0.05, loss=loss))
    at = np.array([2.0]), np.array([0.05])

    def change(o):
        pack = equations.coordinates.pack
        return np.abs(pack(equations.update(*at, o)[0]) - pack(o)).max()

    assert change(overlaps) < 1e-6
    for name in Overlaps._fields:
        value = getattr(overlaps, name)
        shift = 0.0 if np.abs(value).max() > 1e-9 else 0.1
        assert change(overlaps._replace(**{name: 1.2 * value + shift})) > WRONG, name
