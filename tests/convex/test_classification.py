"""The classification error: two correlated Gaussians, and a decision in its limit."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from replica import solve
from replica.convex.classification import bivariate
from tests.convex.problems import SIGN


@pytest.mark.parametrize("correlation", [-0.999, -0.5, 0.0, 0.3, 0.95])
def test_two_correlated_gaussians(correlation):
    """Against scipy's integration, asked for 1e-13; zeros and infinities included."""
    points = [-2.3, -0.4, -1e-308, 0.0, 1e-9, 0.8, 3.1]
    law = multivariate_normal(cov=[[1, correlation], [correlation, 1]])
    for h in points:
        for k in points:
            found = bivariate(np.array(h), np.array(k), np.array(correlation))
            assert float(found) == pytest.approx(law.cdf([h, k]), abs=1e-12)
        assert float(bivariate(np.array(h), np.array(40.0), np.array(correlation))) == (
            pytest.approx(ndtr(h), abs=1e-15)
        )


def test_decision_at_a_large_penalty():
    """lam -> inf: f is m mu_0(kappa) and its class the sign of kappa, whose error is the angle
    between the spike and the target; corrections are of order 1 / lam."""
    point = solve(SIGN, alpha=2.0, lam=1e7, loss="logistic")
    angle = np.arccos(0.8) / np.pi
    assert point.classification_error == pytest.approx(angle, rel=1e-6)
