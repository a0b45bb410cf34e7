"""The ridge saddle point against its equations, its exact identities and its limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


log = st.floats(0, 1)


@settings(deadline=None, max_examples=80, derandomize=True)  # a run can be repeated
@given(
    student=st.sampled_from(["tanh", "erf", "relu", "sigmoid", "sin", "linear"]),
    target=st.sampled_from(["sin", "tanh", "relu", "sign"]),
    alpha0=log,
    eta=st.floats(0, 100),
    noise=st.sampled_from([0.0, 0.1, 2.0]),
    beta=log,
    alpha=st.one_of(st.none(), log),
    lam=log,
)
def test_converged_or_flagged(student, target, alpha0, eta, noise, beta, alpha, lam):
    """Over the whole range of parameters: a checked answer, or NaN and a reason."""
    width = 0.05 * 400**beta
    step = replica.GradientStep(
        student=student, target=target, alpha0=0.1 * 1000**alpha0, eta=eta, noise=noise
    )
    model = step.srf(beta=width)
    load = width if alpha is None else 1e-3 * 1e6**alpha
    point = replica.solve(model, alpha=load, lam=1e-12 * 1e18**lam)
    if point.converged:
        assert point.residual <= 1e-10
        assert point.quadrature_error <= 1e-10
        assert point.test_error >= -1e-9
        assert point.train_error >= -1e-12
        overlaps = np.concatenate([part.ravel() for part in point.overlaps])
        assert np.isfinite(overlaps).all()
    else:
        assert np.isnan(point.test_error)
        assert np.isnan(point.train_error)
        assert point.status.value.startswith("not converged")


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
