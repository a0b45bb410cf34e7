"""docs/theory.md 17: the network of several first-step readouts and biases."""

from dataclasses import replace

import numpy as np
import pytest

import replica
from replica.equivalence import table_at
from replica.saddle_point import ridge
from replica.saddle_point.correlated import CorrelatedGroups
from replica.steps.network import rows_after
from replica.steps.row_samples import Kinds
from tests.problems import step


@pytest.mark.parametrize(
    ("fields", "alpha", "lam", "beta", "test", "train"),
    [  # of the covariance alone; the first two by a 2A x 2A pencil in another normalisation
        (
            dict(student="sigmoid", alpha0=0.3, eta=12.0, readout=[2, -1]),
            *(2.0, 0.01, 1.0, 0.28452, 0.16127),
        ),
        # by levels of B, which commute for an odd student
        (dict(target="sin", eta=2.0, readout=[-1.5, 0.5]), 2.0, 0.05, 1.5, 0.2103398, None),
    ],
)
def test_references(fields, alpha, lam, beta, test, train):
    model = step(**fields).network(beta=beta, row_norms=False)
    point = replica.solve(model, alpha=alpha, lam=lam)
    assert point.test_error == pytest.approx(test, abs=6e-6 if train else 6e-8)  # as printed
    assert train is None or point.train_error == pytest.approx(train, abs=6e-6)


def several_times(model, fractions):
    """Two tables of one kind of neurons: as one group, and as several."""
    one, count = table_at(model, 2), len(fractions)
    names = ("mu1", "mu2sq", "loadings", "c", "offsets")
    rows = {name: np.repeat(getattr(one, name), count, axis=0) for name in names}
    kinds = Kinds(np.ones(count), np.full(count, model.step.bias.values[0]))
    covariance = rows_after(model.step, model.rows.row_norms, kinds)
    covariance = replace(covariance, basis=one.covariance.rows.basis)  # zeta has a sign
    rows |= dict(fractions=np.array(fractions), covariance=covariance)
    return one, replace(one, kinds=np.arange(count), shares=np.ones(count), **rows)


@pytest.mark.parametrize(
    "fractions", [pytest.param([1.0], marks=pytest.mark.slow), [0.2, 0.3, 0.5]]
)
@pytest.mark.parametrize(
    "changes",
    [
        dict(student="relu", noise=0.1),
        dict(student="relu", initialisation="gaussian"),
        dict(student="sigmoid", eta=12.0, bias=1.0),
        dict(student="gelu", target="z1 + z1*z2", alpha0=2.0, eta=1.0),
        dict(target="sin", alpha0=0.3, eta=6.0),
        dict(target="he2", alpha0=10.0),  # uncorrelated with the target direction
        dict(target="sin", alpha0=1e4),  # almost no noise in the gradient
        dict(student="relu", alpha0=np.inf),
    ],
)
def test_one_group_by_the_equations_of_several(changes, fractions):
    """Against the pencil of one group, whose effective covariances are tabulated."""
    alpha, lam = np.array([0.3, 1.0, 2.0, 4.0]), np.array([1e-4, 0.1, 0.01, 1.0])
    for row_norms in (True, False):
        model = step(**changes).network(beta=1.5, row_norms=row_norms)
        one, several = several_times(model, fractions)
        expected, found = (ridge.solve_points(table, alpha, lam) for table in (one, several))
        # the table of effective covariances is good to 1e-11
        np.testing.assert_allclose(found.errors.test, expected.errors.test, rtol=1e-9)
        np.testing.assert_allclose(found.errors.train, expected.errors.train, rtol=1e-9)
        a, b = found.overlaps, expected.overlaps
        for left, right in (
            (a.V2.sum(axis=1), b.V2[:, 0]),
            (a.V1.sum(axis=(1, 2)), b.V1[:, 0, 0]),
            (a.Q1.sum(axis=(1, 2)), b.Q1[:, 0, 0]),
            (a.theta.sum(axis=1), b.theta[:, 0]),
            (a.psi.sum(axis=1), b.psi[:, 0]),
        ):
            # an overlap may be zero, or rounding beside others
            np.testing.assert_allclose(
                left, right, rtol=1e-8, atol=1e-10 * np.abs(right).max() + 1e-15
            )


@pytest.mark.parametrize("initialisation", ["sphere", "gaussian"])
def test_signal_sources_are_derivatives(initialisation):
    """(15.8): of nu^T M' nu in V1_hat and in tau, at fixed nu, by differences."""
    changes = dict(student="relu", noise=0.1, readout=[1.5, -0.5], bias=[0.0, 0.7])
    table = table_at(step(initialisation=initialisation, **changes).network(beta=1.3), 0)
    responses, alpha, rng = CorrelatedGroups(table), np.array([1.7]), np.random.default_rng(0)
    A = responses.groups
    B = rng.standard_normal((A, A))
    V1_hat, V2 = B @ B.T / A, rng.uniform(0.2, 1.0, A)
    hats = rng.standard_normal((1, A, 3))

    def form(V1_hat, V2):
        V, V_hat = (responses.pack(part[None], V2[None]) for part in (np.eye(A), V1_hat))
        M = responses.susceptibility(V, V_hat, alpha).matrix[0]
        return responses.beta / alpha[0] * hats.ravel() @ M @ hats.ravel()

    V, V_hat = (responses.pack(part[None], V2[None]) for part in (np.eye(A), V1_hat))
    of = responses.susceptibility(V, V_hat, alpha)
    found = responses.signal_sources(V, of, alpha, np.zeros((1, A)), hats)
    (Q1,), (X2,) = responses.unpack(found.Q)[0], responses.unpack(found.X)[1]
    scale, h = (alpha[0] / responses.beta) ** 2, 1e-5
    for i in range(A):
        e = np.eye(A)[i]
        slope = (form(V1_hat, V2 + h * e) - form(V1_hat, V2 - h * e)) / (2 * h)
        # tau = beta V2; differences of second order
        assert scale * slope == pytest.approx(X2[i], rel=1e-6, abs=1e-8)
        for j in range(A):
            dV = h * (np.outer(e, np.eye(A)[j]) + np.outer(np.eye(A)[j], e)) / 2
            slope = (form(V1_hat + dV, V2) - form(V1_hat - dV, V2)) / (2 * h)
            assert -scale * slope == pytest.approx(Q1[i, j], rel=1e-6, abs=1e-8)


def test_a_rate_that_vanishes():
    """Biases alone: at eta = 0 the network is its sRF."""
    for initialisation in ("sphere", "gaussian"):
        problem = step(student="relu", eta=0.0, bias=[-0.5, 0.5], initialisation=initialisation)
        points = [
            replica.solve(model, alpha=2.0, lam=0.05)
            for model in (problem.network(beta=1.2, row_norms=False), problem.srf(beta=1.2))
        ]
        assert points[0].test_error == pytest.approx(points[1].test_error, rel=1e-10)


def test_a_student_that_becomes_odd():
    """h_2 -> 0: the second indices of the pencil go."""
    fields = dict(target="sin", readout=[0.5, -1.5])
    odd, near = (
        replica.solve(step(student=name, **fields).network(beta=2.0), alpha=1.0, lam=0.01)
        for name in ("he1-he3/6", "he1+0.0000001*he2-he3/6")
    )
    assert near.test_error == pytest.approx(odd.test_error, rel=1e-9)  # of second order in h_2


def test_even_students_keep_opposite_readouts_apart():
    """Without a spike, +-1 have equal c, but covariances (1 +- a A)^2 that differ."""
    model = step(student="he2", target="he1", readout=[-1, 1]).network(beta=1.0)
    assert len(model.geometry.c) == len(table_at(model, 0).c) == 2
    assert model.geometry.c[0] == pytest.approx(model.geometry.c[1], rel=1e-12)


@pytest.mark.parametrize(
    ("fields", "alpha", "lam", "beta"),
    [
        (
            dict(student="relu", target="linear", alpha0=0.055, eta=10, readout=[0.5, 1.5]),
            *(26.0, 0.3, 1 / 15),
        ),
        (
            dict(student="softplus", target="he2", alpha0=2.5, eta=5.2, bias=[-0.5, 0.5]),
            *(6.5, 4e-7, 0.15),
        ),
    ],
)
def test_rows_that_differ_much_from_isotropic_ones(fields, alpha, lam, beta):
    """The first response is far from any guess: it is found, and the error is smooth in alpha."""
    model = step(**fields, noise=1e-3).network(beta=beta)
    found = [replica.solve(model, alpha=alpha * f, lam=lam) for f in (0.999, 1, 1.001)]
    assert all(point.converged for point in found)
    before, at, after = (point.test_error for point in found)
    assert at == pytest.approx((before + after) / 2, rel=1e-5)  # the second difference


def test_mirror_images_are_of_a_kind():
    """Of an odd student, (readout, bias) and the opposite pair: the same row, negated."""
    problem = step(target="sin", readout=[1.5, -0.5], bias=[0.5, -0.5])
    table = table_at(problem.network(beta=1.0), 0)
    assert len(table.kinds) == 4
    assert len(table.c) == 4  # (1.5, .5) and (-1.5, -.5) would be, but not (-.5, .5)
    table = table_at(replace(problem, readout=[1.0, -1.0]).network(beta=1.0), 0)
    assert len(table.c) == 2


@pytest.mark.parametrize("fields", [{"readout": [0.5, 1.5]}, {"bias": [-0.5, 0.5]}])
def test_kinds_of_a_linear_student_that_respond_alike(fields):
    """At a penalty next to 0, at which equations of nearly dependent kinds have no digits left."""
    problem = step(student="linear", target="sin", alpha0=8.3, eta=0.14, noise=1e-3, **fields)
    point = replica.solve(problem.network(beta=3.5), alpha=4.8, lam=2e-12)
    assert point.converged
    near = replica.solve(problem.network(beta=3.5), alpha=4.8, lam=1e-8)
    assert point.test_error == pytest.approx(near.test_error, rel=1e-6)


def test_opposite_readouts_are_of_a_kind():
    """Odd students: a readout and its opposite make mirror images of one neuron."""
    points = [
        replica.solve(step(readout=values).network(beta=1.0), alpha=2.0, lam=0.1)
        for values in ([0.5, 1.5], [-0.5, 0.5, -1.5, 1.5], [0.5, -1.5])
    ]
    for point in points[1:]:
        assert point.converged
        # equal to the accuracy of the quadrature
        assert point.test_error == pytest.approx(points[0].test_error, rel=1e-9)


def test_several_readouts_without_noise_are_an_srf():
    problem = step(target="sin", alpha0=np.inf, readout=[0.5, -1.5])
    network = replica.solve(problem.network(beta=2.0, row_norms=False), alpha=1.0, lam=0.01)
    srf = replica.solve(problem.srf(beta=2.0), alpha=1.0, lam=0.01)
    assert network.test_error == pytest.approx(srf.test_error, rel=1e-10)  # as for one group
