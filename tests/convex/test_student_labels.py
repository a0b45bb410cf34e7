"""Labels with noise of Student's t: averages over them by brute force, and points."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import replica
from replica import Loss, solve
from replica.convex.averages import losses, scores
from replica.convex.label_tables import ConditionalLabels
from replica.equivalence import tabulate
from replica.problem import label_noise
from replica.problem.labels import student_t_mixture
from replica.saddle_point import Field, field_at_nodes, responses_of, ridge
from solvers.rules import Rule, composite_legendre, trapezoid
from tests.convex.problems import LOG_COSH, MODELS, WAVE, by_nodes, labels_on, overlaps_of

FOURTH = Loss(lambda t: t**4 / 4, lambda t: t**3, name="fourth")


@pytest.mark.parametrize("nu", [2.05, 2.2, 3.0, 6.0, 30.0, 1e12])
def test_mixture_of_gaussians(nu):
    """Against scipy's law: 2e-8 of each, the mixture's 1e-8; what it leaves out is not seen."""
    variances, shares = student_t_mixture(nu)
    x = np.array([[0.01], [0.9], [30.0]])
    mixed = stats.norm.cdf(x, scale=np.sqrt(variances)) @ shares
    assert mixed == pytest.approx(stats.t.cdf(x[:, 0], nu), abs=2e-8)
    assert shares @ variances == pytest.approx(nu / (nu - 2), rel=1e-12)


@pytest.mark.parametrize("of", ["absolute", "huber:0.5", LOG_COSH], ids=str)
@pytest.mark.parametrize(
    ("nu", "V"),
    [(2.2, 2.0), *(pytest.param(3.0, V, marks=pytest.mark.slow) for V in (30.0, 0.1))],
)
def test_averages_by_brute_force(of, nu, V):
    """Scores and losses at one kappa and nine tau, against the integral over t0 of the density
    of Student's t with a Gaussian: the mixture's 1e-8, and 2e-8 of a squared residual that tails
    alone leave."""
    of, sigma, sd, pull = replica.loss(of), 0.3, 0.5, 0.8
    tau = np.linspace(-3.0, 3.0, 9)
    weights = stats.norm.pdf(tau) / stats.norm.pdf(tau).sum()
    mean = np.sin(2 * tau)
    noise = label_noise(f"student:{nu}:{sigma}")
    variances, shares = np.array(noise.components).T
    labels = ConditionalLabels(
        *(tau[None, :, None], weights[None], mean[None], variances, shares), *(False, 14, noise)
    )
    one = np.ones((1, 1))
    field = Field(0.2 * one, pull * one[..., None], (sd**2 + pull**2) * one, V * one)
    found = [*scores(labels, of, field), *losses(labels, np.ones(1), of, field).values()]

    z, over_z = trapezoid(96)
    ends = np.ravel([(kink, *both) for kink, *both in of.flats(np.array(V))] or 0.0)
    away = np.logspace(-4, 60, 300)  # beyond which E t^2 has 1e-12 of itself at nu = 2.2
    panels = np.sort(
        np.concatenate([ends, *(end + side * away for end in ends for side in (-1, 1))])
    )
    t0, length = composite_legendre(8, panels)
    g, slope, near = of.score(t0, np.full_like(t0, V))
    exact, scale = np.zeros(7), stats.t.pdf(0, nu) / sigma
    for t, w, y in zip(tau, weights, mean, strict=True):
        x = (t0 - (y - 0.2 - pull * t))[:, None] - sd * z
        density = scale * (1 + (x / sigma) ** 2 / nu) ** (-(nu + 1) / 2) @ over_z
        parts = (-g, -slope, g**2, -t * g, of.value(near), near**2, of.value(t0))
        exact += w * (np.array(parts) @ (length * density))
    assert [float(x.squeeze()) for x in found] == pytest.approx(exact, rel=1e-8, abs=3e-8)


def test_where_kappa_is_too_unlikely():
    """Averages given such kappa are zero: 8.1 is, 6.7 is not."""
    kappa = np.array([6.7, 8.1])
    given = labels_on(MODELS["student"], Rule(kappa, np.exp(-(kappa**2) / 2)))
    one = np.ones((1, 2))
    field = Field(0.3 * one, 0.1 * one[..., None], one, one)
    for of in (LOG_COSH, replica.loss("absolute")):
        for near, far in (x[0] for x in scores(given.labels, of, field)):
            assert near != 0
            assert far == 0


@pytest.mark.slow
@pytest.mark.parametrize(("nu", "sigma"), [(4.1, 1.0), (6.0, 0.1)])
def test_a_loss_that_grows_faster_than_the_square(nu, sigma):
    """E t0^4 / 4 is known given the prediction's law: near nu = 4 most of it is far out."""
    point = solve(replace(WAVE, label_noise=f"student:{nu}:{sigma}"), alpha=2.0, lam=1.0,
                  loss=FOURTH, raise_on_failure=True)  # fmt: skip
    table = tabulate(WAVE, Rule(np.linspace(-9, 9, 401), np.ones(401)))
    weights = np.exp(-(table.kappa[0] ** 2) / 2)
    weights /= weights.sum()
    field = field_at_nodes(responses_of(table), overlaps_of(point))
    tau, over_tau = np.polynomial.hermite_e.hermegauss(60)
    rest = np.sqrt(1 - 0.8**2)
    x = np.sin(0.8 * table.kappa[0][:, None] + rest * tau)
    x -= field.centre[0][:, None] + field.tau_slope[0] * tau
    variance = (field.variance[0] - field.tau_slope[0, :, 0] ** 2)[:, None]
    second = sigma**2 * nu / (nu - 2)
    fourth_moment = 3 * sigma**4 * nu**2 / ((nu - 2) * (nu - 4))
    m2, m4 = x**2 + variance, x**4 + 6 * x**2 * variance + 3 * variance**2
    exact = (m4 + 6 * m2 * second + fourth_moment) / 4 @ over_tau / over_tau.sum() @ weights
    assert point.loss_error == pytest.approx(exact, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nu", "of"), [(3.9, FOURTH), (30.0, Loss(np.cosh, np.sinh, name="cosh"))], ids=str
)
def test_a_loss_without_an_average_is_flagged(nu, of):
    """However long it may look for one."""
    model = replace(WAVE, label_noise=f"student:{nu}:.3")
    point = solve(model, alpha=2.0, lam=1.0, loss=of, time_limit=4.0)
    assert not point.converged
    assert np.isnan(point.loss_error)


def test_how_losses_grow():
    """Far from a minimum anywhere and values of any sign."""
    shifted = Loss(lambda t: (t - 12.5) ** 2 / 2 - 80, lambda t: t - 12.5)
    assert shifted.growth == pytest.approx((2.0, 0.5), rel=1e-12)
    assert replica.loss("quantile:0.3").growth == pytest.approx((1.0, 0.5), rel=1e-12)
    assert Loss(np.cosh, np.sinh).growth[0] == np.inf
    assert FOURTH.growth == pytest.approx((4.0, 0.25), rel=1e-12)


@pytest.mark.parametrize("law", [None, "student:3:0.5"])
def test_features_that_vanish(law):
    """Where V = 0 a kink is passed at once, and scores stay finite."""
    of = by_nodes("absolute")
    given = labels_on(replace(MODELS["student"], label_noise=law), trapezoid(36, 6.7))
    o = ridge.solve_points(given.table, np.array([0.7]), np.array([0.1])).overlaps
    gone = o._replace(V1=0 * o.V1, V2=0 * o.V2)
    field = field_at_nodes(responses_of(given.table), gone)
    assert all(np.isfinite(part).all() for part in scores(given.labels, of, field))
