"""One group, and random models of several groups and spikes, against the equations and their
identities."""

from functools import lru_cache

import numpy as np
import pytest

import replica
from replica import MultiIndex, SpikedRandomFeatures
from replica.equivalence import table_at
from replica.saddle_point import MeanSquaredErrors, Overlaps, ridge
from tests.oracles.equations import free_energy, hats, residuals, responses
from tests.saddle_point.test_ridge import MODELS


@lru_cache
def random_model(seed):
    """A model of up to five groups, one or two spikes and one or two target directions; those of
    negative seeds have one of each."""
    if seed < 0:
        return SpikedRandomFeatures(**MODELS[-seed - 1])
    rng = np.random.default_rng(seed)
    groups, spikes, directions = rng.integers(2, 6), rng.integers(1, 3), rng.integers(1, 3)
    functions = {
        1: replica.activation("sin"),
        2: MultiIndex(lambda a, b: a + np.sin(a * b), dimension=2),
    }
    gamma = rng.normal(size=(directions, spikes))
    gamma *= rng.uniform(0.3, 1) / np.linalg.norm(gamma, 2)
    return SpikedRandomFeatures(
        student=rng.choice(["tanh", "sigmoid", "relu"]),
        target=functions[int(directions)],
        r=rng.normal(size=(groups, spikes)),
        c=rng.uniform(0.5, 2, groups),
        bias=rng.normal(size=groups),
        fractions=rng.dirichlet(np.ones(groups)),
        gamma=gamma,
        beta=rng.uniform(0.4, 2.5),
        noise=rng.choice([0.0, 0.2]),
    )


def solved(model, alpha, lam):
    """Table and one point on it; identities hold on any rule, so the first will do."""
    table = table_at(model, 0)
    points = ridge.solve_points(table, np.array([alpha]), np.array([lam]))
    overlaps = Overlaps(*(part[0] for part in points.overlaps))
    return table, overlaps, MeanSquaredErrors(*(part[0] for part in points.errors))


SEEDS = range(-len(MODELS), 8)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("alpha", "lam"), [(0.9, 0.05), (0.3, 0.02), (1.0, 0.02), (4.0, 1e-3)])
def test_random_models_solve_the_original_equations(seed, alpha, lam):
    """(4.1)-(4.11) as printed, to 1e-10; theta, a small difference, to 1e-8 of itself."""
    table, o, e = solved(random_model(seed), alpha, lam)
    found = residuals(table, alpha, lam, o, e)
    assert found.pop("theta") < 1e-8
    assert max(found.values()) < 1e-10, found
    smallest = np.linalg.eigvalsh(o.Q1 - o.psi @ o.psi.T).min()
    assert smallest >= -1e-12 * np.trace(o.Q1)  # Q1 dominates psi psi^T


@pytest.mark.parametrize("seed", SEEDS)
def test_random_models_satisfy_the_identities(seed):
    """dE/dlam = q2/2, dF/dlam = V2, and F stationary in all six arguments, to 1e-7.

    Central differences with relative steps of 1e-4 and 1e-5 err by about 1e-8.
    """
    model, alpha, lam, step = random_model(seed), 0.9, 0.05, 5e-6

    def objective(lam):
        table, o, e = solved(model, alpha, lam)
        V_hat = hats(table, o.V1, o.V2, alpha)
        V1, V2, G, tau = responses(table, o.V2, *V_hat, lam)
        fit = 0.5 * alpha / model.beta * e.train + 0.5 * lam * o.q2.sum()
        return fit, free_energy(table, alpha, lam, V1, V2, *V_hat, tau, G)

    table, o, _ = solved(model, alpha, lam)
    up, down = np.array(objective(lam + step)), np.array(objective(lam - step))
    expected = [0.5 * o.q2.sum(), o.V2.sum()]
    assert (up - down) / (2 * step) == pytest.approx(expected, rel=1e-7)
    V_hat = hats(table, o.V1, o.V2, alpha)
    V1, V2, G, tau = responses(table, o.V2, *V_hat, lam)
    point = [V1, V2, *V_hat, tau, G]
    for i, argument in enumerate(point):
        for x in np.ndindex(argument.shape):
            if argument.ndim == 2 and x[0] > x[1]:
                continue
            values = []
            for sign in (1, -1):
                moved = [part.copy() for part in point]
                change = sign * 1e-5 * np.abs(argument).max()
                for place in {x, x[::-1]}:  # matrices stay symmetric
                    moved[i][place] += change
                values.append(free_energy(table, alpha, lam, *moved))
            assert abs(values[0] - values[1]) / 2e-5 < 1e-7
