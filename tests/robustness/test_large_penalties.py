"""Where the penalty is not much less than n, the limit d -> inf is far from any network."""

import pytest

import replica
from tests.problems import PUBLISHED as STEP
from validation import compare


def test_a_comparison_takes_the_theory_at_the_simulated_dimension():
    found = compare(
        STEP, alpha=1.0, lam=1e4, dimension=100, seeds=5, rng=0, beta=1.0, simulated="srf"
    )
    assert found.agrees
    assert found.checks["test_error"].theory[0, 0] == pytest.approx(
        0.430, abs=0.001
    )  # simulated: .437 +- .003
    limit = replica.solve(STEP.srf(beta=1.0), alpha=1.0, lam=1e4)
    assert limit.test_error == pytest.approx(0.046, abs=0.001)
