"""The ridge saddle point against its equations, its exact identities and its limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import replica
from replica.equivalence.table import tables
from replica.saddle_point import ridge
from replica.saddle_point.isotropic import Isotropic
from replica.saddle_point.overlaps import Errors, Overlaps
from tests.oracles.equations import free_energy, hats, residuals, response, responses

MODELS = [
    dict(student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97),
    dict(student="erf", target="tanh", r=0.6, c=1.4, gamma=0.5, beta=1.7, noise=0.2),
    dict(student="relu", target="relu", r=0.3, c=1.03, gamma=0.83, beta=0.4),
    dict(student="sigmoid", target="sign", r=2.0, c=0.7, gamma=-0.6, beta=2.5, noise=0.1),
    dict(student="relu", target="he1+he2/2", r=0.0, c=1.0, gamma=0.0, beta=0.8),
]


def one_point(solved, index=0):
    return (
        Overlaps(*(part[index] for part in solved.overlaps)),
        Errors(*(part[index] for part in solved.errors)),
    )


def at(model, alpha, lam):
    """Table and solution at one point, on a rule finer than any of these models needs."""
    _, table = tables(replica.SpikedRandomFeatures(**model), 2)
    return table, ridge.solve_points(table, np.array([alpha]), np.array([lam]))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_original_equations_hold(model, alpha):
    """Residual of the equations as printed, at most 1e-10 (rounding leaves 1e-13 or less)."""
    table, solved = at(model, alpha, 0.02)
    found = residuals(table, alpha, 0.02, *one_point(solved))
    assert max(found.values()) < 1e-10, found


@pytest.mark.parametrize("model", MODELS)
def test_general_and_closed_forms_agree(model):
    """(4.3)-(4.4) and (4.10) at A = 1 against (5.1)-(5.3), to 1e-11."""
    table, solved = at(model, 0.9, 0.05)
    o, _ = one_point(solved)
    b = Isotropic(table)
    V1_hat, V2_hat = hats(table, o.V1, o.V2, 0.9)
    V1, V2, G, tau = responses(table, o.V2, V1_hat, V2_hat, 0.05)
    V_hat = np.array([[V1_hat[0, 0], V2_hat[0]]])
    closed = b.from_conjugates(V_hat, np.array([0.05]))[0]
    assert closed == pytest.approx([V1[0, 0], V2[0]], rel=1e-11)
    X1, X2 = np.array([[0.7]]), np.array([0.3])
    Q1, q2 = response(table, V1, V2, V1_hat, X1, X2, G, tau)
    closed = b.second_moments_at(V_hat, np.array([0.05]), np.array([[0.7, 0.3]]))[0]
    assert closed == pytest.approx([Q1[0, 0], q2[0]], rel=1e-11)


@pytest.mark.parametrize("model", MODELS)
def test_derivatives_in_lambda(model):
    """d/dlam of the training objective is q2 / 2, and of the free energy V2 (docs/theory.md 4).

    Central differences with a relative step 1e-4 err by about 1e-8 of the value.
    """
    alpha, lam, step = 0.9, 0.05, 5e-6
    ratio = alpha / model.get("beta", 1.0)

    def objective(lam):
        table, solved = at(model, alpha, lam)
        o, e = one_point(solved)
        V_hat = hats(table, o.V1, o.V2, alpha)
        V1, V2, G, tau = responses(table, o.V2, *V_hat, lam)
        training = 0.5 * ratio * e.train + 0.5 * lam * o.q2.sum()
        return training, free_energy(table, alpha, lam, V1, V2, *V_hat, tau, G)

    up, down = objective(lam + step), objective(lam - step)
    o, _ = one_point(at(model, alpha, lam)[1])
    slopes = (np.array(up) - np.array(down)) / (2 * step)
    assert slopes == pytest.approx([0.5 * o.q2.sum(), o.V2.sum()], rel=1e-7)


@pytest.mark.parametrize("model", MODELS)
def test_free_energy_is_stationary(model):
    """(4.12) does not move, to first order, with V1, V2, V1_hat, V2_hat, tau or G."""
    alpha, lam = 0.9, 0.05
    table, solved = at(model, alpha, lam)
    o, _ = one_point(solved)
    V_hat = hats(table, o.V1, o.V2, alpha)
    V1, V2, G, tau = responses(table, o.V2, *V_hat, lam)
    point = [V1, V2, *V_hat, tau, G]
    for i, argument in enumerate(point):
        for x in np.ndindex(argument.shape):
            values = []
            for sign in (1, -1):
                moved = [part.copy() for part in point]
                moved[i][x] *= 1 + sign * 1e-5
                values.append(free_energy(table, alpha, lam, *moved))
            # per relative change of the argument; the second difference is 1e-10 of O(1) terms
            assert abs(values[0] - values[1]) / 2e-5 < 1e-7


@pytest.mark.parametrize("model", MODELS)
def test_second_moment_dominates_the_mean(model):
    """Q1 >= psi^2: a readout's second moment is at least its mean squared."""
    _, solved = at(model, 2.0, 1e-3)
    o, _ = one_point(solved)
    assert o.Q1[0, 0] >= (o.psi @ o.psi.T).item()


def test_large_penalty_leaves_the_best_constant():
    """As lam -> inf, the error tends to (8.1), min_m E (sigma_* - mu_0 m)^2.

    The correction is of relative order 1/lam = 1e-9 in m but the error is at a minimum in
    the large-overlap direction; 1e-6 is what the published statement is tested to.
    """
    for model in MODELS:
        table, solved = at(model, 1.5, 1e9)
        projection = table.offsets[0] @ (table.weights * table.h)
        power = table.offsets[0] @ (table.weights * table.offsets[0])
        upper = table.weights @ table.power - (projection**2 / power if power else 0)
        assert solved.errors.test[0] == pytest.approx(upper, rel=1e-6)


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


def test_threshold_takes_few_iterations():
    """At alpha = beta and lam = 1e-12, where plain iteration needs over 2e6 steps."""
    for beta in (0.5, 1.0, 2.0):
        model = replica.SpikedRandomFeatures(**(MODELS[0] | dict(beta=beta)))
        point = replica.solve(model, alpha=beta, lam=1e-12)
        assert point.converged
        assert point.iterations < 100
        assert point.residual < 1e-10


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
