"""The ridge saddle point against its equations, its exact identities and its limits."""

import numpy as np
import pytest

import replica
from replica.equivalence import table_at
from replica.saddle_point import ridge

MODELS = [
    dict(student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97),
    dict(student="erf", target="tanh", r=0.6, c=1.4, gamma=0.5, beta=1.7, noise=0.2),
    dict(student="relu", target="relu", r=0.3, c=1.03, gamma=0.83, beta=0.4),
    dict(student="sigmoid", target="sign", r=2.0, c=0.7, gamma=-0.6, beta=2.5, noise=0.1),
    dict(student="relu", target="he1+he2/2", r=0.0, c=1.0, gamma=0.0, beta=0.8),
]


def at(model, alpha, lam):
    """Table and solution at one point, on a rule finer than any of these models needs."""
    table = table_at(replica.SpikedRandomFeatures(**model), 3)
    return table, ridge.solve_points(table, np.array([alpha]), np.array([lam]))


def test_linear_network_is_ridge_regression():
    """sigma = sigma_* = linear at beta -> inf and r = 0 is ridge regression in the inputs.

    Its error in the isotropic case is known in closed form; at beta = 1e6 the two differ by
    O(1/beta).
    """
    alpha, lam, noise = 1.7, 0.3, 0.25
    model = dict(student="linear", target="linear", r=0.0, c=1.0, gamma=0.0, beta=1e6, noise=noise)
    _, solved = at(model, alpha, lam)
    # V(lam + alpha / (1 + V)) = 1; the signal shrinks by lam V and the variance feeds back.
    b = lam + alpha - 1
    V = 2 / (b + np.sqrt(b**2 + 4 * lam))
    total = ((lam * V) ** 2 + noise) / (1 - alpha * V**2 / (1 + V) ** 2)
    assert solved.errors.test[0] == pytest.approx(total - noise, rel=1e-5)


@pytest.mark.parametrize("student", ["tanh", "relu"])
def test_a_spike_of_any_size(student):
    """Layers of width 1/r, down to what rounding of kappa misses, and features of size r: from
    1e8 on the errors differ from their limit by 1/r."""
    errors = []
    for r in (1e8, 1e14, 1e16, 1e100):
        model = replica.SpikedRandomFeatures(student=student, target="sin", r=r, c=1.0, gamma=0.8)
        point = replica.solve(model, alpha=1.3, lam=0.03, raise_on_failure=True)
        errors.append(point.test_error)
    assert errors[:-1] == pytest.approx(errors[-1:] * 3, rel=2e-8)


def test_a_spike_of_next_to_nothing():
    """Its length underflows, and the width of the layers over it is infinite."""
    of = dict(student="relu", target="sin", c=1.0, gamma=0.8)
    small, none = (
        replica.solve(replica.SpikedRandomFeatures(r=r, **of), alpha=1.3, lam=0.03).test_error
        for r in (5e-324, 0.0)
    )
    assert small == pytest.approx(none, rel=1e-10)
