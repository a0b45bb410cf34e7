"""What ``dimension`` has of the corrections at finite d, and what it has not.  docs/readout.md"""

import importlib
from dataclasses import replace

import numpy as np
import pytest

import replica
from replica import GradientStep, SpikedRandomFeatures
from replica.convex.equations import Equations
from replica.convex.label_tables import shared_table
from replica.fit import fit_convex_readout
from replica.saddle_point import Overlaps, field_at_nodes
from validation import draw, simulate

pytestmark = pytest.mark.slow

SIGN = GradientStep(student="tanh", target="sign", alpha0=4, eta=2.0).srf(beta=1.0)
SINE = GradientStep(student="tanh", target="sin", alpha0=20, eta=1.0)
FEW = GradientStep(student="relu", target="sin", alpha0=0.05, eta=50.0)


def mean_and_error(values):
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def at(model, d, **point):
    return replica.solve(replace(model, dimension=d), **point)


def with_fluctuation(point, monkeypatch):
    """sqrt(Q_m), and the test error and the loss on new samples of the equations with V_m and Q_m
    of docs/readout.md in them, for one group."""
    terms = np.zeros(2)

    def field(responses, overlaps, owner=None):
        plain, square = field_at_nodes(responses, overlaps, owner), responses.table.offsets[0] ** 2
        return plain._replace(
            response=plain.response + terms[0] * square, variance=plain.variance + terms[1] * square
        )

    for module in ("saddle_point.one_pass", "convex.equations"):
        monkeypatch.setattr(importlib.import_module(f"replica.{module}"), "field_at_nodes", field)
    equations = Equations(shared_table(point.model, 4, False), point.loss)
    table, responses = equations.table, equations.responses
    alpha, lam = np.array([point.alpha]), np.array([point.lam])
    o = Overlaps(*(np.asarray(part)[None] for part in point.overlaps))
    n = point.alpha * point.model.dimension
    mu_0_square = table.offsets[0] ** 2 * table.weights
    for _ in range(10):
        s = equations.scores(field(responses, o))
        V_hat = responses.conjugates_from(s.slope, alpha)
        near = responses.pack(o.V1, o.V2)
        X = (
            point.alpha
            / table.beta
            * (s.square * table.weights)
            @ responses.table.response_products.T
        )
        q2 = responses.second_moments_at(V_hat, lam, X, near)[0, 1]
        penalty = responses.susceptibility(near, V_hat, alpha).penalty[0, 0]
        V = 1 / (n * (s.slope[0] @ mu_0_square + penalty))
        terms[:] = V, V**2 * n * (s.square[0] @ mu_0_square + penalty * q2 / o.V2[0, 0])
        o, _ = equations.solve(alpha, lam, o)
    errors = equations.errors(o)
    return np.sqrt(terms[1]), errors["test_error"][0], errors["loss_error"][0]


@pytest.mark.parametrize(
    ("lam", "test", "of_loss"), [(0.01, 11.57, 0.4364), (0.1, 3.637, 0.3744), (1.0, 1.067, 0.4095)]
)
def test_of_a_logistic_readout_m_fluctuates(lam, test, of_loss, monkeypatch):
    """The error at ``dimension`` lacks what the fluctuation of m adds to it, and nothing else that
    300 draws would show."""
    d, grid = 150, dict(alpha=0.5, lam=lam, loss="logistic")
    point = at(SIGN, d, **grid)
    deviation, *expected = with_fluctuation(point, monkeypatch)
    assert expected == pytest.approx([test, of_loss], rel=1e-3)  # the table in docs/readout.md
    found = simulate(SIGN, dimension=d, seeds=300, rng=1, simulated="srf", **grid)
    for errors, theory, price in (
        (found.errors["test_error"], expected[0], point.test_error),
        (found.errors["loss_error"], expected[1], point.loss_error),
    ):
        mean, error = mean_and_error(errors[:, 0, 0])
        assert mean == pytest.approx(theory, abs=3 * error)
        assert price < mean
    overlaps = []
    for seed in range(300):
        layer, rng = draw(SIGN, dimension=d, rng=seed), np.random.default_rng(seed)
        X = rng.standard_normal((d // 2, d))
        data = [(layer.features(X), layer.labels(X, rng))]
        fits = fit_convex_readout(
            lambda data=data: data, np.array([d // 2]), np.array([lam]), point.loss
        )
        overlaps.append(fits.readouts.sum() / np.sqrt(d))
    assert np.std(overlaps) == pytest.approx(deviation, rel=0.2)  # known to 4 %


@pytest.mark.parametrize("of", ["logistic", "square"])
def test_without_m_little_is_left(of):
    """No mean overlap at r = 0: the errors are within 2/d of the limit."""
    model = SpikedRandomFeatures(student="tanh", target="sign", r=0, c=1, gamma=0)
    grid = dict(alpha=[0.5, 2.0], lam=[0.1, 1.0], loss=of)
    found = simulate(model, dimension=100, seeds=400, rng=0, simulated="srf", **grid)
    mean, error = mean_and_error(found.errors["test_error"])
    for i, alpha in enumerate(grid["alpha"]):
        for j, lam in enumerate(grid["lam"]):
            limit = replica.solve(model, alpha=alpha, lam=lam, loss=of).test_error
            assert abs(mean[i, j] / limit - 1) < 2 / 100 + 3 * error[i, j] / limit


def test_the_step_shrinks_the_mean_of_the_rows_that_the_srf_keeps():
    """f0 of (1.1): the mean of the rows at the start is 1 - eta h1^2 times as long after the step,
    which makes m cheaper."""
    d, model = 150, SINE.srf(beta=1.0)
    shrunk = (1 - SINE.student.moments(0.0, 1.0).first ** 2) ** 2
    for problem, width, left in ((SINE, 1.0, shrunk), (model, None, 1.0)):
        layers = (draw(problem, dimension=d, rng=seed, beta=width).W for seed in range(100))
        mean, error = mean_and_error(np.array([np.square(W.mean(axis=0)).sum() for W in layers]))
        assert mean == pytest.approx(model.r**2 + left / d, abs=3 * error)
    point = dict(alpha=2.0, lam=1.0)
    price, limit = (at(model, size, **point).test_error for size in (d, np.inf))
    options = dict(dimension=d, seeds=100, rng=2, **point)
    srf, error = mean_and_error(
        simulate(model, simulated="srf", **options).errors["test_error"][:, 0, 0]
    )
    assert srf == pytest.approx(price, abs=3 * error)
    network = simulate(SINE, simulated="network", beta=1.0, **options)
    own, error = mean_and_error(network.errors["test_error"][:, 0, 0])
    assert limit + 5 * error < own < price - 5 * error


def test_rows_of_few_directions_need_a_large_dimension():
    """relu after a step on 25 samples, whose rows lie in few directions, and on ten times as
    many."""
    d, grid = 500, dict(alpha=2.0, lam=100.0)
    for alpha0, gap in ((0.05, -0.2), (0.5, 0.0)):
        step = replace(FEW, alpha0=alpha0)
        theory = replica.solve(step.network(beta=1.0), **grid).test_error
        found = simulate(step, dimension=d, seeds=8, rng=3, beta=1.0, **grid)
        assert found.test_error[0, 0] / theory - 1 == pytest.approx(gap, abs=0.05)
        W = draw(step, dimension=d, rng=0, beta=1.0).W
        W -= W.mean(axis=0)
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        directions = 1 / np.mean((W @ W.T)[~np.eye(d, dtype=bool)] ** 2)
        assert (directions**2 / 2 > 2 * d) == (gap == 0)
