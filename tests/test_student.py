"""Student's t with Gaussian noise: tabulated densities and moments, and averages over them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import poch
from test_convex import MODELS, by_nodes

import replica
from replica import Loss, SpikedRandomFeatures, solve
from replica.convex.averages import at_once, losses, scores
from replica.convex.equations import Equations
from replica.convex.label_tables import Component, Level, label_table
from replica.convex.local_field import Field, field_on
from replica.equivalence.table import tabulate
from replica.problem import labels
from replica.saddle_point.overlaps import Overlaps
from replica.saddle_point.ridge import responses_of, solve_points
from solvers import student
from solvers.rules import Rule, composite
from solvers.student import blurred, lagrange, mixture, octaves

NUS = [2.05, 2.5, 3.0, 5.0, 30.0, 1e9]


@pytest.mark.parametrize("nu", NUS)
def test_mixture_of_gaussians(nu):
    """Against scipy's law: the trapezoidal rule leaves 1e-12, and the variances that are left
    out, beyond exp(60), 1e-13 of the mean modulus at nu = 2.05."""
    variances, shares = mixture(nu, 60.0)
    x = np.array([[0.01], [0.9], [30.0]])
    mixed = stats.norm.cdf(x, scale=np.sqrt(variances)) @ shares
    assert mixed == pytest.approx(stats.t.cdf(x[:, 0], nu), abs=1e-12)
    modulus = 2 * np.sqrt(nu / np.pi) * poch(nu / 2, 0.5) / (nu - 1)
    assert np.sqrt(2 / np.pi) * shares @ np.sqrt(variances) == pytest.approx(modulus, rel=1e-11)


@pytest.mark.parametrize("nu", NUS)
def test_without_a_gaussian_it_is_students(nu):
    """At s = 0, where the tables are worst, against scipy's law; far out relative to it."""
    law = blurred(nu, 1.0, np.zeros(1))
    z = np.concatenate([np.linspace(-6, 6, 41), [-1e9, -300.0, 20.0, 1e3, 1e7]])
    assert law.scale == pytest.approx(1.0)
    assert law.density(z[None])[0] == pytest.approx(stats.t.pdf(z, nu), abs=2e-10)
    below, first, second = (x[0] for x in law.integrals(z[None]))
    assert below == pytest.approx(stats.t.cdf(z, nu), abs=3e-11)
    assert law.second[0, 0] == pytest.approx(nu / (nu - 2), rel=2e-9)
    # E t 1(t < z) = -(nu + z^2) p(z) / (nu - 1)
    assert first == pytest.approx(-(nu + z**2) / (nu - 1) * stats.t.pdf(z, nu), abs=1e-10)
    if nu < 10:
        far = np.array([[-1e7, -1e4, -300.0]])
        assert law.density(far)[0] == pytest.approx(stats.t.pdf(far[0], nu), rel=1e-8)
        assert law.integrals(far)[0][0] == pytest.approx(stats.t.cdf(far[0], nu), rel=1e-8)
    assert second[np.argmax(z)] == pytest.approx(law.second[0, 0], rel=1 if nu < 2.9 else 1e-6)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    nu=st.floats(2.05, 60.0),
    log_ratio=st.floats(-6.0, 5.0),
    z=st.floats(-8.0, 8.0),
)
def test_convolution(nu, log_ratio, z):
    """Against the integral over the Gaussian, of width up to 150 sigma, on 4 000 panels: the
    tables' 2e-10."""
    sigma, s = 0.7, 0.7 * np.exp(log_ratio)
    law = blurred(nu, sigma, np.array([s**2]))
    assert law.scale[0] == pytest.approx(np.hypot(sigma, s))
    at, weights = composite(8, np.linspace(-9.0, 9.0, 4001))
    weights = weights * stats.norm.pdf(at)
    other, away = stats.t(nu, scale=sigma), z * law.scale[0] - s * at
    z = np.array([[z]])
    assert law.density(z)[0, 0] == pytest.approx(
        law.scale[0] * (weights @ other.pdf(away)), abs=2e-10
    )
    assert law.integrals(z)[0][0, 0] == pytest.approx(weights @ other.cdf(away), abs=1e-10)


@pytest.mark.parametrize("nu", NUS)
def test_moments_agree_with_each_other(nu):
    """Tails add up to 1 and to E r^2, which are known, at every s: the tables' 1e-10."""
    sigma = 0.3
    s2 = sigma**2 * np.concatenate([[0.0], np.logspace(-4, 8, 30)])
    law = blurred(nu, sigma, s2)
    below, _, second = law.integrals(np.full((s2.size, 1), 1e-300))
    assert below == pytest.approx(0.5, abs=1e-10)
    exact = (s2 + sigma**2 * nu / (nu - 2)) / law.scale**2
    # to the cells' 1e-9 of every octave of the tail, of which there are many close to nu = 2
    assert law.second[:, 0] == pytest.approx(exact, rel=2e-9 if nu < 2.2 else 1e-10)
    assert second[:, 0] == pytest.approx(law.second[:, 0] / 2, rel=1e-12)
    ends = law.integrals(np.full((s2.size, 1), np.inf))
    for end, all_of_it in zip(ends, (1.0, 0.0, law.second[:, 0]), strict=True):
        assert end[:, 0] == pytest.approx(all_of_it, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("width", [0.1, 3.0, 40.0])
def test_mixtures_near_and_far(width):
    """A few components that stand for many, far away or where all are close: 1e-10 of the
    density in the middle, and of itself far out."""
    rng = np.random.default_rng(0)
    law = blurred(3.0, 0.5, np.array([0.1, 2.0]))
    mean = 1.0 + width * rng.uniform(-1, 1, (2, 50))
    weights = rng.uniform(-1, 1, (2, 3, 50))
    weights[:, 0] = np.abs(weights[:, 0])
    far = np.array([[0.9, 5.0, 40.0, 170.0, 1e3, -1e5]] * 2)
    length = np.full(far.shape, 0.3)
    length[0, 0] = 0.0
    scale = law.scale[:, None]
    each = [law.density(np.ascontiguousarray((far[:, k, None] - mean) / scale)) for k in range(6)]
    exact = np.stack([np.einsum("rt,rkt->rk", x, weights) / scale for x in each], axis=2)
    found = law.blur(far, length, mean, weights)
    assert (found[0, :, 0] == 0).all()
    exact *= length[:, None]
    assert found == pytest.approx(exact, rel=1e-8, abs=1e-10 * np.abs(exact).max())


def test_kernels_as_they_are_written(monkeypatch):
    """The same without numba, to the last digits."""
    law = blurred(3.0, 0.5, np.array([0.1, 2.0]))
    z = np.array([[-1e9, -3.0, 0.0, 0.4, 50.0]] * 2)
    mean, weights = np.array([[-1.0, 40.0], [0.3, 0.5]]), np.ones((2, 2, 2)) / 3
    asked = [
        lambda: law.density(z),
        lambda: np.stack(law.integrals(z)),
        lambda: law.blur(z, np.ones_like(z), mean, weights),
    ]
    compiled = [ask() for ask in asked]
    for name in ("_value", "_density", "_integrals", "_blur"):
        monkeypatch.setattr(student, name, getattr(student, name).py_func)
    for ask, first in zip(asked, compiled, strict=True):
        assert ask() == pytest.approx(first, rel=1e-13, abs=1e-300)


def test_lagrange():
    """Polynomials of degree 6 through 7 nodes, exactly, and at a node."""
    nodes = np.cos(np.pi * (np.arange(7) + 0.5) / 7)
    x = np.array([-1.0, 0.3, nodes[2], 1.0])
    assert lagrange(7, x) @ nodes**6 == pytest.approx(x**6, abs=1e-14)


def test_octaves_grow_where_tails_are_heavy():
    assert octaves(2.1) > octaves(3.0) > octaves(30.0) >= 4


def logcosh_and_modulus(t):
    return np.abs(t) + np.logaddexp(t, -t)


STEEP = SpikedRandomFeatures(
    student="tanh", target="sin", r=1.5, c=1.3, gamma=0.8, label_noise="student:3:1"
)
USERS = [
    Loss(lambda t: np.logaddexp(t, -t), np.tanh, name="log-cosh"),
    Loss(logcosh_and_modulus, lambda t: np.sign(t) + np.tanh(t), kinks=(0.0,), name="both"),
]


@pytest.mark.parametrize(
    "of", ["absolute", "huber:0.5", "quantile:0.3", "modulus by nodes", *USERS], ids=str
)
@pytest.mark.parametrize(("nu", "lam"), [(3.0, 1e-3), (3.0, 10.0), (2.05, 0.1)])
def test_averages_are_those_of_a_mixture(of, nu, lam):
    """Scores and losses, where the prediction follows the labels closely and where it does not,
    against the sum over a hundred Gaussians that Student's t is a mixture of, 1e-8."""
    if of == "modulus by nodes":
        of = by_nodes(Loss(np.abs, np.sign, curvature=np.zeros_like, kinks=(0.0,)))
    else:
        of = replica.loss(of) if isinstance(of, str) else of
    sigma = 0.3
    model = replace(MODELS["student"], label_noise=f"student:{nu}:{sigma}")
    given = label_table(model, Level(1, 3, 8))
    at = np.array([0.7]), np.array([lam])
    field = Equations(given, of).field(solve_points(given.table, *at).overlaps)
    (one,) = given.labels.components
    variances, shares = mixture(nu, 60.0)
    variances[0] += (nu / (nu - 2) - shares @ variances) / shares[0]  # the widest, for all beyond
    law = zip(sigma**2 * variances, shares, strict=True)
    each = tuple(Component(*one[:3], float(v), float(p)) for v, p in law)
    explicit = given._replace(labels=given.labels._replace(components=each, student=None))
    found = [*scores(given.labels, of, field), *losses(given, of, field)[:3]]
    exact = [*scores(explicit.labels, of, field), *losses(explicit, of, field)[:3]]
    weights = given.table.weights
    for mine, theirs in zip(found, exact, strict=True):
        if mine.size > 1:  # given kappa
            mine, theirs = (x.reshape(weights.size, -1).T * weights for x in (mine, theirs))
        assert mine == pytest.approx(theirs, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("loss", ["absolute", "huber:0.5"])
def test_a_point_is_that_of_a_mixture(loss, monkeypatch):
    """Near interpolation, where averages are sharp in the variance of the noise: the default
    accuracy."""
    model = SpikedRandomFeatures(
        student="tanh", target="sin", r=1.5, c=1.3, gamma=0.8, label_noise="student:3:0.1"
    )
    at = dict(alpha=0.5, lam=0.01, loss=loss, raise_on_failure=True)
    point = solve(model, **at)
    law = [(0.01 * float(v), float(p)) for v, p in zip(*mixture(3.0, 18.0), strict=True)]
    monkeypatch.setattr(labels.LabelNoise, "components", law)
    monkeypatch.setattr(labels.LabelNoise, "student", None)
    label_table.cache_clear()  # which knows nothing of the patch
    mixed = solve(model, **at)
    label_table.cache_clear()
    for part in ("test_error", "loss_error", "train_loss"):
        assert getattr(point, part) == pytest.approx(getattr(mixed, part), rel=1e-6)


@pytest.mark.parametrize("of", ["absolute", *USERS], ids=str)
def test_where_kappa_is_too_unlikely(of):
    """Averages given such kappa are zero, in a part of the table that has no other, too."""
    of = replica.loss(of) if isinstance(of, str) else of
    given = label_table(MODELS["student"], Level(1, 3, 4))
    at = np.array([0.7]), np.array([0.1])
    field = Equations(given, of).field(solve_points(given.table, *at).overlaps)
    first = given.labels.at(slice(0, 1))
    far = first._replace(square=np.array([65.0]))
    alone = Field(*(x[:, :1] for x in field))
    assert all((x != 0).any() for x in scores(first, of, alone))
    assert all((x == 0).all() for x in scores(far, of, alone))


@pytest.mark.parametrize(("nu", "sigma"), [(4.5, 1.0), (5.0, 1.0), (6.0, 0.1), (4.1, 1.0)])
def test_a_loss_that_grows_faster_than_the_square(nu, sigma):
    """E t0^4 / 4 is known given the prediction's law: near nu = 4 most of it is past the tables."""
    fourth = Loss(lambda t: t**4 / 4, lambda t: t**3, name="fourth")
    point = solve(replace(STEEP, label_noise=f"student:{nu}:{sigma}"), alpha=2.0, lam=1.0,
                  loss=fourth, raise_on_failure=True)  # fmt: skip
    table = tabulate(STEEP, Rule(np.linspace(-9, 9, 401), np.ones(401)))
    weights = np.exp(-(table.kappa[0] ** 2) / 2)
    weights /= weights.sum()
    o = Overlaps(*(part[None] for part in point.overlaps))
    field = field_on(table, responses_of(table), o)
    tau, over_tau = np.polynomial.hermite_e.hermegauss(60)
    rest = np.sqrt(1 - 0.8**2)
    x = np.sin(0.8 * table.kappa[0][:, None] + rest * tau)
    x -= field.centre[0][:, None] + field.pull[0] * tau
    variance = (field.power[0] - field.pull[0, :, 0] ** 2)[:, None]
    second = sigma**2 * nu / (nu - 2)
    fourth_moment = 3 * sigma**4 * nu**2 / ((nu - 2) * (nu - 4))
    m2, m4 = x**2 + variance, x**4 + 6 * x**2 * variance + 3 * variance**2
    exact = (m4 + 6 * m2 * second + fourth_moment) / 4 @ over_tau / over_tau.sum() @ weights
    assert point.loss_error == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("nu", [3.9, 30.0])
def test_a_loss_without_an_average_is_flagged(nu):
    """Also where the tables do not see how fast it grows."""
    fourth = Loss(lambda t: t**4 / 4, lambda t: t**3, name="fourth")
    of = fourth if nu < 4 else Loss(np.cosh, np.sinh, name="cosh")
    point = solve(replace(STEEP, label_noise=f"student:{nu}:.3"), alpha=2.0, lam=1.0, loss=of)
    assert not point.converged
    assert np.isnan(point.loss_error)


@pytest.mark.parametrize("shift", [0.0, 12.5])
@pytest.mark.parametrize("offset", [0.0, 80.0])
def test_a_loss_may_have_its_minimum_anywhere(shift, offset):
    """Where tables of a light tail end, near the minimum or where the loss passes 0: against the
    square loss with an intercept, which takes the shift."""
    model = replace(STEEP, label_noise="student:30:.3", intercept=True)
    of = Loss(lambda t: (t - shift) ** 2 / 2 - offset, lambda t: t - shift, name="shifted")
    at = dict(alpha=2.0, lam=1.0, raise_on_failure=True)
    point, plain = solve(model, loss=of, **at), solve(model, loss="square", **at)
    assert point.loss_error + offset == pytest.approx(plain.loss_error, rel=1e-6)


def test_little_noise_and_a_wide_target():
    """Means spread over a thousand scales of the noise take nodes for each tau: against a mixture
    of Gaussians."""
    model = replace(STEEP, student="erf", target="he2", label_noise="student:3:0.01")
    of = USERS[0]
    given = label_table(model, Level(1, 3, 8))
    at = np.array([0.5]), np.array([1.0])
    field = Equations(given, of).field(solve_points(given.table, *at).overlaps)
    field = field._replace(power=(field.pull**2).sum(axis=-1) + 1e-5)
    (one,) = given.labels.components
    variances, shares = mixture(3.0, 40.0)
    law = zip(1e-4 * variances, shares, strict=True)
    each = tuple(Component(*one[:3], float(v), float(p)) for v, p in law)
    explicit = given.labels._replace(components=each, student=None)
    weights = given.table.weights
    for mine, theirs in zip(*(scores(x, of, field) for x in (given.labels, explicit)), strict=True):
        mine, theirs = (x.reshape(weights.size, -1).T * weights for x in (mine, theirs))
        assert mine == pytest.approx(theirs, rel=1e-7, abs=1e-8)


def test_tables_of_many_points_are_bounded():
    """Rows are handled a few at once, of 30 kB each."""
    given = label_table(replace(MODELS["student"], gamma=1.0, r=1.0), Level(1, 3, 4))
    rows = at_once(given.labels, replica.loss("absolute"))
    assert 8 * rows * student.size(3.0) <= 2**23


def test_a_bend_that_a_tail_passes_at_once():
    """At a large response t stays near a bend while t0 passes most of a tail: with few nodes a
    panel, against a mixture of Gaussians with many."""
    of = Loss(lambda t: np.sqrt(1 + t**2), lambda t: t / np.sqrt(1 + t**2), name="rounded")
    model = replace(MODELS["student"], label_noise="student:3:0.5")
    given, fine = (label_table(model, Level(1, 3, level)) for level in (5, 9))
    at = np.array([0.7]), np.array([0.1])
    field = Equations(given, of).field(solve_points(given.table, *at).overlaps)
    field = field._replace(response=np.full_like(field.response, 1e3))
    (one,) = fine.labels.components
    variances, shares = mixture(3.0, 40.0)
    law = zip(0.25 * variances, shares, strict=True)
    each = tuple(Component(*one[:3], float(v), float(p)) for v, p in law)
    explicit = fine.labels._replace(components=each, student=None)
    exact, found = (scores(x, of, field) for x in (explicit, given.labels))
    for mine, theirs in zip(found, exact, strict=True):
        assert np.abs(mine - theirs).max() <= 1e-7 * np.abs(theirs).max()


@pytest.mark.parametrize("law", [None, "student:3:0.5"])
def test_features_that_vanish(law):
    """Where V = 0 a kink is passed at once, and scores stay finite."""
    of = by_nodes(Loss(np.abs, np.sign, curvature=np.zeros_like, kinks=(0.0,)))
    model = replace(MODELS["student"], label_noise=law)
    given = label_table(model, Level(1, 3, 4))
    equations = Equations(given, of)
    o = solve_points(given.table, np.array([0.7]), np.array([0.1])).overlaps
    gone = Overlaps(
        *(0 * part if name in ("V1", "V2") else part for name, part in o._asdict().items())
    )
    assert all(np.isfinite(part).all() for part in scores(given.labels, of, equations.field(gone)))


@pytest.mark.parametrize("kink", [5.0, -30.0])
def test_a_kink_in_a_tail(kink):
    """The curvature there is infinite; 1e-2, as rho' is no polynomial next to it."""
    of = Loss(
        lambda t: np.abs(t - kink) ** 1.5,
        lambda t: 1.5 * np.sign(t - kink) * np.sqrt(np.abs(t - kink)),
        curvature=lambda t: 0.75 / np.sqrt(np.abs(t - kink)),
        kinks=(kink,),
        name="to the power 3/2",
    )
    model = replace(STEEP, label_noise="student:3:0.5")
    solve(model, alpha=1.0, lam=0.1, loss=of, quadrature_tol=1e-2, raise_on_failure=True)
