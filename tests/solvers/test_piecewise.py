"""Gaussian averages of piecewise quadratic losses: against quadrature, and at their limits."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from replica import loss
from solvers.piecewise import gaussian_averages
from tests.marks import slow

PIECEWISE = ["square", "huber:0.5", "absolute", "quantile:0.3", "hinge", "squared_hinge"]


@pytest.mark.parametrize("name", PIECEWISE)
@pytest.mark.parametrize(
    ("mean", "sd", "V"),
    [
        (0.3, 0.7, 0.4),
        *slow((-2.0, 3.0, 5.0), (1.4, 0.1, 1e4)),
    ],
)
def test_gaussian_averages_are_exact(name, mean, sd, V):
    """Against adaptive quadrature on the pieces, asked for 1e-11."""
    of = loss(name)
    kinks = sorted(
        k + V * s
        for k in of.kinks
        for s in (of.derivative(np.nextafter(k, -9)), of.derivative(np.nextafter(k, 9)))
    )
    ends = [mean - 12 * sd, *(k for k in kinks if abs(k - mean) < 12 * sd), mean + 12 * sd]

    def average(function):
        parts = (
            quad(
                lambda x: float(function(np.array([x]))[0]) * stats.norm.pdf(x, mean, sd),
                low, high, epsabs=1e-12, epsrel=1e-11, points=[mean], limit=200,
            )[0]
            for low, high in itertools.pairwise(ends)
        )  # fmt: skip
        return sum(parts)

    def at(part):
        return lambda x: of.score(x, np.full_like(x, V))[part]

    exact = gaussian_averages("score", of.pieces, np.array(mean), np.array(sd), np.array(V))
    after = gaussian_averages("residual", of.pieces, np.array(mean), np.array(sd), np.array(V))
    before = gaussian_averages("residual", of.pieces, np.array(mean), np.array(sd), np.array(0.0))
    expected = [
        average(at(0)),
        average(at(1)),
        average(lambda x: at(0)(x) ** 2),
        average(at(2)),
        average(lambda x: at(2)(x) ** 2),
        average(lambda x: of.value(at(2)(x))),
        average(of.value),
    ]
    # sums of a few terms of the size of the integrand, known to 1e-11
    assert [*exact, *after, before[2]] == pytest.approx(expected, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("name", ["absolute", "hinge", "quantile:0.3"])
def test_averages_do_not_cancel_at_a_small_response(name):
    """V -> 0: g -> -rho' and E g' -> -(jump of rho') times the density at the kink; the
    corrections are of order V."""
    of, mean, sd, V = loss(name), np.array(0.3), np.array(0.7), np.array(1e-9)
    first, slope, square = gaussian_averages("score", of.pieces, mean, sd, V)
    (kink,) = of.kinks
    left, right = of.derivative(np.array([kink - 1, kink + 1]))
    below = stats.norm.cdf(kink, 0.3, 0.7)
    assert first == pytest.approx(-left * below - right * (1 - below), abs=1e-8)
    assert square == pytest.approx(left**2 * below + right**2 * (1 - below), abs=1e-8)
    assert slope == pytest.approx((left - right) * stats.norm.pdf(kink, 0.3, 0.7), rel=1e-7)


def test_averages_do_not_cancel_at_a_large_response():
    """Samples that end beside the kink: the score is (1 - t0) / V below 1 and 0 above, 1e-9 of
    what the flat of the proximal map reaches at its other end."""
    sd, V = 0.7, 1e9
    found = gaussian_averages(
        "score", loss("hinge").pieces, np.array(1.0), np.array(sd), np.array(V)
    )
    expected = [sd / (V * np.sqrt(2 * np.pi)), -1 / (2 * V), sd**2 / (2 * V**2)]
    assert [float(x) for x in found] == pytest.approx(expected, rel=1e-13, abs=0)
