"""The network's own theory against drawn and simulated networks."""

import numpy as np
import pytest

import replica
from replica.equivalence import table_at
from replica.saddle_point.correlated import CorrelatedGroups
from tests.problems import step
from validation import simulate
from validation.draws import gradient_step
from validation.draws.first_layers import sphere_rows


@pytest.mark.slow
def test_fluctuation_of_drawn_rows():
    """v and k: covariances, over the neurons of one first layer, of the squared row norms."""
    d, p, alpha0 = 400, 20_000, 2.0
    problem = step(target="sin", alpha0=alpha0, eta=3.0)
    expected = problem.network(beta=1.0).rows
    rng = np.random.default_rng(3)
    v, along = [], []
    for _ in range(3):
        X = rng.standard_normal((round(alpha0 * d), d))
        y = np.sin(X[:, 0])
        W = sphere_rows(p, d, rng)
        after = gradient_step(W, [(X, y)], student=problem.student, eta=3.0)
        g = X.T @ y / len(y)
        u = g / np.linalg.norm(g)
        rows = after - after.mean(axis=0)
        norm = (rows**2).sum(axis=1) - (rows @ u) ** 2
        norm -= norm.mean()
        v.append(d * norm.var())
        along.append(d * norm @ (rows @ u) / p)
    # corrections of relative order 1/sqrt(d) and, for v, sampling noise sqrt(2/p) = 1 %
    assert np.mean(v) == pytest.approx(expected.v, rel=0.06)
    assert np.mean(along) == pytest.approx(
        expected.tabulated.special_covariance(np.zeros(1))[0][0, 0, 1], rel=0.06
    )


@pytest.mark.slow
def test_row_norms_matter():
    """erf/He1 at alpha0 = 20: equal norms are 30 % off, the network is not (two sizes)."""
    problem = step(student="erf", target="he1", alpha0=20, eta=3.0)
    theory, equal = (
        replica.solve(problem.network(beta=2.0, row_norms=n), alpha=3.0, lam=0.03)
        for n in (True, False)
    )
    for d in (100, 200):
        found = simulate(problem, alpha=3.0, lam=0.03, dimension=d, seeds=12, rng=1, beta=2.0)
        mean, stderr = found.test_error[0, 0], found.test_error_stderr[0, 0]
        # a finite-size bias of 20/d is what a comparison allows for
        assert abs(mean - theory.test_error) <= 3 * stderr + 20 / d * theory.test_error
        assert equal.test_error - mean > 6 * stderr


@pytest.mark.slow
def test_resolvent_of_drawn_groups():
    """The trace of (K^-1 + blockdiag C_b)^-1 over the inputs, and the covariances beside it along u
    and zeta, at two sizes."""
    fields = dict(student="relu", target="tanh", noise=0.1, alpha0=0.6, eta=3.0)
    problem, readouts = replica.GradientStep(readout=[1.5, -0.5], **fields), np.array([1.5, -0.5])
    table = table_at(problem.network(beta=1.0, row_norms=False), 0)
    K = np.array([[0.8, 0.5], [0.5, 1.2]])
    at = CorrelatedGroups(table).resolvent(K[None])
    expected = np.linalg.inv(np.linalg.inv(K) + at.C[0])
    h0, h2 = 1 / np.sqrt(2 * np.pi), 1 / np.sqrt(2 * np.pi)  # of relu; E sigma~^2 = 1/4 - h2^2
    rng = np.random.default_rng(5)
    for d in (300, 600):
        found = []
        for _ in range(6):
            X = rng.standard_normal((round(0.6 * d), d))
            y = np.tanh(X[:, 0]) + np.sqrt(0.1) * rng.standard_normal(len(X))
            e = y - readouts.mean() * h0
            inverse = np.kron(np.linalg.inv(K), np.eye(d))
            for b, rate in enumerate(3.0 * readouts):
                P = np.eye(d) + rate * h2 * (X.T * e) @ X / len(X)
                B = rate**2 * (0.25 - h2**2) / 0.6 * (X.T * e**2) @ X / len(X)
                inverse[b * d : (b + 1) * d, b * d : (b + 1) * d] += P @ P + B
            inverse = np.linalg.inv(inverse).reshape(2, d, 2, d)
            found.append(np.einsum("aibi->ab", inverse) / d)
        mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(6)
        # corrections of order 1/d
        assert np.all(np.abs(mean - expected) <= 4 * error + 2 / d * np.abs(expected))
