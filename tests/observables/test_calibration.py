"""Stated probabilities and how often they are right."""

import numpy as np
import pytest
from scipy.special import expit, ndtr

import replica
from replica import InvalidArgument, solve
from tests.convex.problems import SIGN


def test_calibration_against_brute_force():
    """The mean stated probability at kappa from its definition, and the frequency from Phi."""
    point = solve(SIGN, alpha=2.0, lam=0.05, loss="logistic")
    found = replica.calibration(point, [0.7])
    rho = 0.6  # sqrt(1 - .8^2)
    assert found.frequency[0] == pytest.approx(float(ndtr(0.8 * 0.7 / rho)), rel=1e-9)
    z = np.random.default_rng(0).standard_normal(400_000)
    features = SIGN.student.moments(np.array([1.5 * 0.7]), np.array([1.3]))
    first = features.first / np.sqrt(1.3)
    o = point.overlaps
    centre = features.mean * o.m[0] + first * 0.7 * o.theta[0, 0]
    sd = np.sqrt(first**2 * o.Q1[0, 0] + features.variance * o.q2[0])
    sample = expit(centre + sd * z)
    assert found.predicted[0] == pytest.approx(
        sample.mean(), abs=5 * sample.std() / np.sqrt(z.size)
    )
    with pytest.raises(InvalidArgument, match="logistic"):
        replica.calibration(solve(SIGN, alpha=2.0, lam=0.05), [0.0])


def test_calibration_of_several_spikes():
    """kappa is then (K, N); the frequency of a sign is Phi(gamma.kappa / rho), to rounding."""
    gamma = np.array([0.6, 0.3])
    model = replica.SpikedRandomFeatures(
        student="tanh", target="sign", r=((1.0, 0.5),), c=1.0, gamma=tuple(gamma)
    )
    kappa = np.array([[0.0, 1.0, -1.0], [0.0, 0.4, -0.4]])
    found = replica.calibration(solve(model, alpha=2.0, lam=0.05, loss="logistic"), kappa)
    expected = ndtr(gamma @ kappa / np.sqrt(1 - gamma @ gamma))
    assert found.frequency == pytest.approx(expected, rel=1e-12)
    rows = found.to_dataframe()
    assert rows[["kappa1", "kappa2"]].values.T.tolist() == kappa.tolist()
    assert rows.predicted.tolist() == found.predicted.tolist()
    assert "loss logistic" in repr(found)
    assert found.predicted[0] == pytest.approx(0.5, abs=1e-12)  # an odd problem
    assert found.predicted[1] + found.predicted[2] == pytest.approx(1, abs=1e-12)
