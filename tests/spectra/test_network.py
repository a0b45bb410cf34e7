"""The spectrum of the network itself, whose first batch shows."""

import numpy as np
import pytest

import replica
from replica import GradientStep
from replica.equivalence import table_at
from replica.spectra.contour import with_complex_batch
from replica.steps import first_sample_weights
from solvers.results import ConvergenceError, Status

NETWORKS = [
    ("tanh", "sign", 0.26, 0.6, 0.0, 0.77, 1.4),  # labels of one size
    ("tanh", "sign", 0.26, 0.6, 0.2, 0.77, 1.4),
    ("tanh", "sign", 1.0, 2.0, 0.02, 1.0, 2.0),
    ("tanh", "he1", 1.0, 2.0, 1e-3, 1.0, 2.0),  # too little noise to turn it
    ("sin", "tanh", 0.25, 0.36, 0.2, 1.1, 0.93),
    ("sin", "he1", 1.13, 2.62, 0.0, 0.6, 2.8),  # labels of any size
    ("erf", "relu", 2.0, 1.0, 0.0, 1.5, 0.7),  # a target without continuation
]
LONG = NETWORKS[1:]  # one to five seconds each


@pytest.mark.parametrize(
    ("student", "target", "alpha0", "eta", "noise", "beta", "alpha"),
    [pytest.param(*row, marks=[pytest.mark.slow] * (row in LONG)) for row in NETWORKS],
)
def test_network_mass_and_mean(student, target, alpha0, eta, noise, beta, alpha):
    """Samples of the first batch make eigenvalues of the rows' covariance, and these show."""
    step = GradientStep(student=student, target=target, alpha0=alpha0, eta=eta, noise=noise)
    found = replica.spectrum(step.network(beta=beta), alpha)
    assert found.converged
    assert found.mass_error < 1e-6  # the bar
    table = found.resolvent.real.table
    mean = table.weights @ (table.c[0] * table.mu1[0] ** 2 + table.mu2sq[0])
    # tails are cut off where x times the density is 1e-10
    assert found.moment(1) == pytest.approx(mean, rel=1e-7)


@pytest.mark.parametrize(
    ("law", "eta"),
    [
        pytest.param("outliers:0.1:9", 1.0, marks=pytest.mark.slow),
        pytest.param("outliers:0.1:4", 3.0, marks=pytest.mark.slow),
        ("flip:0.1", 1.0),
    ],
)
def test_network_mass_with_noisy_labels(law, eta):
    step = GradientStep(student="tanh", target="tanh", alpha0=0.5, eta=eta, label_noise=law)
    found = replica.spectrum(step.network(beta=0.8), 1.4)
    assert found.converged  # the mass to 1e-6 among the rest


@pytest.mark.parametrize("name", ["tanh", "sin"])
def test_batch_contour_of_an_expression(name):
    """A target as a formula, which is evaluated at complex numbers, is that of its name."""
    squares = []
    for target in (name, f"{name}(z1)"):
        step = GradientStep(student="erf", target=target, alpha0=2, eta=2.0)
        rows = step.network(beta=0.5).rows
        (batch,) = with_complex_batch(rows, rows.all_groups).batches
        squares.append(batch.t11[0])
    assert np.iscomplexobj(squares[1])
    np.testing.assert_allclose(squares[1], squares[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("student", "target", "alpha0", "eta", "noise", "beta", "alpha"),
    [pytest.param(*row, marks=[pytest.mark.slow] * (row in NETWORKS[2:6])) for row in NETWORKS],
)
def test_batch_contour(student, target, alpha0, eta, noise, beta, alpha):
    """E[rho^2 / (1 + t rho^2)] at complex t, against a fine real rule."""
    step = GradientStep(student=student, target=target, alpha0=alpha0, eta=eta, noise=noise)
    network = step.network(beta=beta).rows
    (batch,) = with_complex_batch(network, network.all_groups).batches
    square, weights = batch.t11[0] / first_sample_weights(step, network.kinds).square, batch.weights
    assert np.iscomplexobj(square) or (noise == 0 and target in ("sign", "relu"))
    edges = np.concatenate([np.linspace(-9, 0, 300), np.linspace(0, 9, 300)[1:]])  # a kink at 0
    nodes, w = np.polynomial.legendre.leggauss(6)
    s = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    w = (np.diff(edges)[:, None] * w / 2).ravel() * np.exp(-(s**2) / 2) / np.sqrt(2 * np.pi)
    xi = np.linspace(-9, 9, 1201)
    density = np.exp(-(xi**2) / 2)
    density /= density.sum()
    labels = step.target(s)[:, None] + np.sqrt(noise) * xi
    for t in (0.7, 0.5j, -0.3 + 0.4j, -2 + 1j):
        expected = w @ (labels**2 / (1 + t * labels**2)) @ density
        found = (weights * square / (1 + t * square)).sum()
        # the nodes agree with the real rule to 1e-10 of E y^2 at real t
        assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow
def test_nodes_of_labels_are_the_cause_that_is_named():
    """After several steps, of several directions, or on given inputs labels are on no contour."""
    fields = dict(student="gelu", target="z1 + z1*z2")
    found = replica.spectrum(GradientStep(alpha0=2, eta=1, **fields).network(beta=1.0), 2.0)
    assert found.status is Status.LABEL_NODES
    assert f"mass_error {found.mass_error:.1e}" in repr(found)
    network = GradientStep(steps=[(2, 1), (2, 1)], **fields).network(beta=1.0)
    with pytest.raises(ConvergenceError, match="network after several steps, on a target of"):
        replica.spectrum(network, 2.0, time_limit=1e-3)
    inputs = replica.GaussianMixture(means=[[0.0]], covariances=[[[0.99]]])
    cubes = GradientStep(student="gelu", target="z1**3", alpha0=2, eta=1, inputs=inputs)
    with pytest.raises(ConvergenceError, match="or with inputs="):
        replica.spectrum(cubes.network(beta=1.0), 2.0, time_limit=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        dict(student="tanh", target="sin", alpha0=0.5, eta=2.0, readout=[-1.5, 0.5]),
        dict(student="relu", target="tanh", alpha0=2.0, eta=1.0, bias=[0.0, 0.5]),
    ],
)
def test_network_of_several_groups(fields):
    """The pencil of several groups is analytic: no mass is lost on the axis."""
    found = replica.spectrum(GradientStep(**fields).network(beta=1.0), 2.0, time_limit=120.0)
    assert found.converged
    assert found.mass_error < 1e-9  # of the adaptive integral
    table = found.resolvent.real.table
    mean = table.weights @ (table.fractions @ (table.c[:, None] * table.mu1**2 + table.mu2sq))
    assert found.moment(1) == pytest.approx(mean, rel=1e-7)


@pytest.mark.slow
def test_size_from_which_an_outlier_stands_alone():
    """Of isotropic rows it is the sRF's.  Without noise in the gradient a row's norm follows its
    component along u, delta = k (v.u): one loading, kappa mu_1 + k d mu_0 / d c."""
    step, alpha = replica.GradientStep(student="tanh", target="sin", alpha0=np.inf, eta=3.0), 2.0
    equal = replica.spectrum(step.network(beta=1.0, row_norms=False), alpha)
    srf = replica.spectrum(step.srf(beta=1.0), alpha)
    assert equal.outliers_from == pytest.approx(srf.outliers_from, rel=1e-6)  # 1e-6 off an edge

    model = step.network(beta=1.0)
    table, C = table_at(model, 3), model.rows.tabulated.special_covariance(np.zeros(1))[0][0]
    V1, V2 = srf.resolvent.solutions(np.array([srf.edges.max() * (1 + 1e-6) + 0j]))[0].real
    weights = table.weights / (1 + V1 * table.mu1[0] ** 2 + V2 * table.mu2sq[0])
    of_m, of_u = table.offsets[0], table.loadings[0].T @ [1.0, C[0, 1] / C[0, 0]]
    own, mixed, response = weights @ of_u**2, weights @ (of_u * of_m), alpha * C[0, 0] * V2
    left = weights @ of_m**2 - response * mixed**2 / (1 + response * own)
    n = -1 / (V2 * left)  # Eq. (9.2), with the penalty 1 / (alpha d V2)
    assert replica.spectrum(model, alpha).outliers_from == pytest.approx(n, rel=1e-6)
