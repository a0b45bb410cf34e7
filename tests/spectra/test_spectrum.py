"""The spectrum: closed forms, moments, exact identities, and simulated eigenvalues."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import erf

import replica
from replica import GradientStep, InvalidArgument, SpikedRandomFeatures
from replica.equivalence import table_at
from replica.saddle_point import ridge
from replica.spectra.contour import complex_moments
from replica.spectra.resolvent import Resolvent
from replica.spectra.spectrum import DENSITY_TOLERANCE, _scan_table
from solvers.results import Status
from tests.marks import slow
from tests.problems import PUBLISHED as ONE

SHAPES = [(1.5, 0.7), (0.6, 2.0), (2.0, 3.0)]  # beta on both sides of 1, n < p and n > p


def bulk_moments(model, alpha):
    """(1/p) tr of the covariance of one group and of its square, without the mu_0: with
    a = c mu_1^2 and T = a + mu_2^2, E T and (beta/alpha) E T^2 + (E T)^2 + beta (E a)^2."""
    z = np.linspace(-9, 9, 2001)
    w = np.exp(-(z**2) / 2)
    w /= w.sum()
    found = model.student.moments(model.r * z, model.c)
    a, T = found.first**2, found.first**2 + found.variance
    second = model.beta / alpha * (w @ T**2) + (w @ T) ** 2 + model.beta * (w @ a) ** 2
    return w @ T, second


@pytest.mark.parametrize("student", ["tanh", *slow("relu", "sin")])
@pytest.mark.parametrize(("beta", "alpha"), SHAPES)
def test_mass_and_moments(student, beta, alpha):
    model = SpikedRandomFeatures(student=student, target="sin", r=0.8, c=1.1, gamma=0.9, beta=beta)
    found = replica.spectrum(model, alpha)
    first, second = bulk_moments(model, alpha)
    assert found.converged
    assert found.atom == max(0.0, 1 - alpha / beta)
    # square-root edges: the rule is exact to rounding; tails are cut off at 1e-10
    assert found.moment(0) + found.atom == pytest.approx(1, abs=1e-8)
    assert found.moment(1) == pytest.approx(first, rel=1e-9)
    assert found.moment(2) == pytest.approx(second, rel=1e-9)


@pytest.mark.parametrize(
    ("student", "beta", "alpha", "r", "c"),
    [
        ("tanh", 1.7, 0.87, 0.76, 3.2),  # a faint tail beyond what looks like an edge
        pytest.param("he1+he3/6", 0.47, 2.2, 0.26, 1.2, marks=pytest.mark.slow),
        ("softplus", 1.9, 0.26, 0.51, 1.6),  # tails on both sides
        # T turns many times
        pytest.param("sin", 2.9, 0.21, 0.42, 0.39, marks=pytest.mark.slow),
        # and once, off the middle
        pytest.param("gelu", 3.2, 0.24, 0.45, 1.04, marks=pytest.mark.slow),
        pytest.param(  # three decades between the ends
            "he1+he2/2", 3.75, 0.23, 2.5, 1.0, marks=pytest.mark.slow
        ),
    ],
)
def test_hard_tails(student, beta, alpha, r, c):
    model = SpikedRandomFeatures(student=student, target="sin", r=r, c=c, gamma=0.9, beta=beta)
    found = replica.spectrum(model, alpha)
    assert found.converged
    assert found.mass_error < 1e-6  # the bar
    # what is cut off where x times the density is 1e-10 is a tail of the mean, too
    assert found.moment(1) == pytest.approx(bulk_moments(model, alpha)[0], rel=1e-7)


@pytest.mark.slow
def test_missing_mass_is_flagged():
    """relu at r / sqrt(c) = 2.9 and n < p: 4e-4 of the eigenvalues are below 1e-18, where a power
    of x tells all but 5e-6 of them."""
    model = SpikedRandomFeatures(student="relu", target="sin", r=1.8, c=0.38, gamma=0.9, beta=2.4)
    found = replica.spectrum(model, 0.4)
    assert found.status == Status.MASS
    assert 1e-6 < found.mass_error < 1e-5
    assert found.quadrature_error < DENSITY_TOLERANCE


def test_marchenko_pastur_of_marchenko_pastur():
    """Linear random features, W = 1: Phi = X W^T, the product of two Wishart matrices.  At
    alpha = inf it is Marchenko-Pastur in beta alone; at 1e6, up to 1/sqrt(alpha)."""
    model = SpikedRandomFeatures(student="linear", target="sin", r=0.0, c=1.0, gamma=0.0, beta=0.5)
    found = replica.spectrum(model, 1e6)
    low, high = (1 - np.sqrt(0.5)) ** 2, (1 + np.sqrt(0.5)) ** 2
    assert found.edges[0] == pytest.approx([low, high], rel=3e-3)
    x = np.linspace(0.3, 2.5, 7)
    law = np.sqrt((high - x) * (x - low)) / (2 * np.pi * 0.5 * x)
    assert found.density(x) == pytest.approx(law, rel=1e-3)
    wide = replica.spectrum(
        SpikedRandomFeatures(student="linear", target="sin", r=0.0, c=1.0, gamma=0.0, beta=2.0), 5
    )
    assert wide.atom == pytest.approx(0.5, abs=1e-15)  # p = 2 d linear features have rank d
    assert wide.moment(0) == pytest.approx(0.5, abs=1e-8)


@pytest.mark.parametrize(
    ("alpha", "beta", "power"), [(1, 1, -2 / 3), (2, 1, -1 / 2), (1, 2, -1 / 2), (2, 2, 0)]
)
def test_a_density_that_diverges_at_zero(alpha, beta, power):
    """Linear features of n = p = d: a product of two square matrices, whose density is that of
    Penson and Zyczkowski (2011), Eq. (33), x^(-2/3) at 0.  With one square factor x^(-1/2)."""
    model = SpikedRandomFeatures(student="linear", target="z1", r=0, c=1, gamma=0, beta=beta)
    found = replica.spectrum(model, alpha)
    assert found.converged
    assert found.moment(0) + found.atom == pytest.approx(1, abs=1e-11)  # the largest was 2e-12
    assert found.diverges == ("diverges at 0" in repr(found)) == (power < 0)
    assert (found.edges[0, 0] == 0) == (power < 0)
    assert found.density(0.0) == (np.inf if power else 0)
    if power:
        near = found.density(np.array([1e-22, 1e-20, 1e-16, 1e-14]))
        assert np.diff(np.log10(near)) / [2, 4, 2] == pytest.approx([power] * 3, abs=1e-4)
    if alpha == beta == 1:
        x = np.array([1e-19, 1e-10, 1e-3, 1, 6])
        w = 27 + 3 * np.sqrt(81 - 12 * x)
        law = 2 ** (1 / 3) * np.sqrt(3) / (12 * np.pi) / (x ** (2 / 3) * w ** (1 / 3))
        law *= 2 ** (1 / 3) * w ** (2 / 3) - 6 * x ** (1 / 3)
        # solved for to rounding; below 1e-18 of the edge a power, to the next term of the law
        assert found.density(x) == pytest.approx(law, rel=1e-5)
        assert found.density(x[1:]) == pytest.approx(law[1:], rel=1e-13)
        assert found.edges[0, 1] == pytest.approx(27 / 4, rel=1e-13)


def test_a_density_that_all_but_diverges_at_zero():
    """At 1e-8 more samples than neurons it ends above 0: its slope there is that of no power."""
    model = SpikedRandomFeatures(student="tanh", target="sin", r=0, c=1, gamma=0, beta=1)
    assert replica.spectrum(model, 1).diverges
    close = replica.spectrum(model, 1 + 1e-8)
    assert close.converged
    assert not close.diverges


def test_purely_nonlinear_features_are_wishart():
    """mu_1 = 0, mu_2 = const: Phi of independent entries, Marchenko-Pastur in p/n = 1/2,
    edges (1 +- sqrt(p/n))^2, to the 1e-8 of the bar and further."""
    model = SpikedRandomFeatures(student="he2", target="sin", r=0.0, c=1.0, gamma=0.0, beta=1.0)
    found = replica.spectrum(model, 2.0)
    expected = 2 * (1 + np.array([-1, 1]) * np.sqrt(0.5)) ** 2  # E He_2^2 = 2
    assert found.edges == pytest.approx(expected[None], rel=1e-12)
    assert found.sharp.all()
    # z s^2 (p/n) 2 + ... : the fixed-point equation of Marchenko and Pastur
    z = np.array([0.3 + 0.2j, 5 + 1j, -1.0])
    s = found.stieltjes(z)
    assert s * (2 * (1 - 0.5 - 0.5 * z * s) - z) == pytest.approx(np.ones(3), abs=1e-12)


def test_two_bulks_and_their_edges():
    """Random features with more neurons than inputs: d large eigenvalues, p - d small ones.
    At an edge found, the density inside starts like a square root, and is 0 outside."""
    model = GradientStep(student="tanh", target="sin", alpha0=1, eta=0.0).srf(beta=2.0)
    found = replica.spectrum(model, 3.0)
    assert found.edges.shape == (2, 2)
    assert found.sharp.all()
    masses = [
        np.trapezoid(found.density(x) * x, np.log(x))
        for x in (found.grid(k, 4000) for k in range(2))
    ]
    assert masses == pytest.approx([0.5, 0.5], abs=1e-4)  # the trapezoidal rule at edges
    for (low, high), inward in zip(found.edges, [1, 1], strict=True):
        for edge, sign in ((low, inward), (high, -inward)):
            for reach in (1e-8, 1e-6):
                assert found.density(edge - sign * reach * edge) == 0
                near, far = (float(found.density(edge + sign * k * reach * edge)) for k in (1, 4))
                # sqrt(4) = 2 within the 1e-8 of the edge relative to reach = 1e-6
                if reach == 1e-6:
                    assert far / near == pytest.approx(2, rel=1e-2)
    # a real solution in the gap: no density, and s increases
    gap = np.linspace(found.edges[0, 1], found.edges[1, 0], 7)[1:-1]
    s = found.stieltjes(gap)
    assert np.abs(s.imag).max() < 1e-12
    assert (np.diff(s.real) > 0).all()


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["tanh", "erf", "relu", "sin"]), st.sampled_from([0.0, 0.4, 1.0, 2.5]),
       st.floats(0.3, 3), st.floats(0.3, 3), st.floats(-2, 1), st.floats(-3, 1))  # fmt: skip
@example("sin", 2.5, 1.0, 1.0, 0.0, -1.0)
def test_transform_is_herglotz(student, r, beta, alpha, real, log_imag):
    """Im s > 0 for Im z > 0; |s| <= 1/Im z; s(conj z) = conj s(z); the companion's, too."""
    model = SpikedRandomFeatures(student=student, target="sin", r=r, c=1.0, gamma=0.5, beta=beta)
    resolvent = _resolvent(model, alpha)
    z = np.array([np.sign(real) * 10.0 ** abs(real) * (abs(real) > 0.1) + 1j * 10**log_imag])
    s = resolvent.transform(resolvent.solutions(z))
    assert s.imag[0] > 0
    assert abs(s[0]) <= 1 / z.imag[0] * (1 + 1e-9)
    companion = s / resolvent.ratio + (1 / resolvent.ratio - 1) / z
    assert companion.imag[0] > 0


def _resolvent(model, alpha):

    # 256 nodes are too few for sin(2.5 kappa)
    return _scan_table(model, table_at(model, 3), alpha, None)[0]


@pytest.mark.slow
def test_transform_is_the_integral_of_the_density():
    found = replica.spectrum(ONE.srf(beta=1.5), 0.7)
    z = np.array([-0.5, 0.1 + 0.1j, 1 + 0.02j, 1 - 0.02j, 5.0])
    angle_grid = found.grid(0, 20000)
    weight = found.density(angle_grid) * angle_grid
    log_x = np.log(angle_grid)
    integral = [np.trapezoid(weight / (angle_grid - place), log_x) for place in z]
    s = found.stieltjes(z)
    # the trapezoidal rule on 20 000 points
    assert s == pytest.approx(np.array(integral) - found.atom / z, abs=1e-5)
    assert found.stieltjes(z[3]) == found.stieltjes(z[2]).conj()
    companion = found.companion(z)
    assert companion == pytest.approx(1.5 / 0.7 * s + (1.5 / 0.7 - 1) / z, rel=1e-12)


def test_contour_agrees_with_the_real_line():
    """Where the latter resolves the averages, off the axis; and the moments are analytic."""
    model = ONE.srf(beta=1.5)
    beside = _resolvent(model, 0.7)
    assert beside.responses is not beside.real
    responses = ridge.responses_of(table_at(model, 3))
    along = Resolvent(responses, responses, 0.7)
    z = np.array([0.01 + 0.01j, 0.3 + 0.05j, 2 + 0.1j])
    s = [one.transform(one.solutions(z)) for one in (beside, along)]
    assert s[0] == pytest.approx(s[1], rel=1e-9)
    points = np.array([0.3 + 0.2j, -2 + 0.5j])
    found = complex_moments(replica.activation("erf"), points, 0.8)
    assert found.mean == pytest.approx(erf(points / np.sqrt(1 + 1.6)), rel=1e-11)


def test_what_is_refused():
    with pytest.raises(InvalidArgument, match="alpha"):
        replica.spectrum(ONE.srf(beta=1), -1.0)
    with pytest.raises(InvalidArgument, match="bias"):
        replica.spectrum(
            SpikedRandomFeatures(student="relu", target="sin", r=1, c=1, gamma=1, train_bias=True),
            1.0,
        )
    found = replica.spectrum(ONE.srf(beta=1), 2.0, quadrature_tol=1e-30)
    assert not found.converged
    assert found.quadrature_error < DENSITY_TOLERANCE
