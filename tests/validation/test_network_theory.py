"""The network's own theory against drawn and simulated networks."""

import numpy as np
import pytest

import replica
from replica.equivalence import table_at
from replica.saddle_point.correlated import CorrelatedGroups


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
