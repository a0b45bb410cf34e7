"""Labels with noise of Student's t: averages over them, and points."""

from dataclasses import replace

import numpy as np
import pytest

import replica
from replica import Loss, SpikedRandomFeatures, solve
from replica.convex.averages import at_once, losses, scores
from replica.convex.equations import Equations
from replica.convex.field_of_overlaps import field_on
from replica.convex.label_tables import Level, label_table
from replica.convex.labels import Component
from replica.convex.local_field import Field
from replica.equivalence.table import tabulate
from replica.saddle_point.overlaps import Overlaps
from replica.saddle_point.ridge import responses_of, solve_points
from solvers import student
from solvers.rules import Rule
from solvers.student import mixture
from tests.convex.problems import MODELS, by_nodes


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
    "of",
    [
        "absolute",
        "huber:0.5",
        "quantile:0.3",
        *(pytest.param(of, marks=pytest.mark.slow) for of in ("modulus by nodes", *USERS)),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("nu", "lam"),
    [
        (3.0, 1e-3),
        pytest.param(3.0, 10.0, marks=pytest.mark.slow),
        pytest.param(2.05, 0.1, marks=pytest.mark.slow),
    ],
)
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
    found = [
        *scores(given.labels, of, field),
        *losses(given.labels, given.table.weights, of, field)[:3],
    ]
    exact = [
        *scores(explicit.labels, of, field),
        *losses(explicit.labels, given.table.weights, of, field)[:3],
    ]
    weights = given.table.weights
    for mine, theirs in zip(found, exact, strict=True):
        if mine.size > 1:  # given kappa
            mine, theirs = (x.reshape(weights.size, -1).T * weights for x in (mine, theirs))
        assert mine == pytest.approx(theirs, rel=1e-7, abs=1e-9)


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


@pytest.mark.parametrize(
    ("nu", "sigma"),
    [(4.5, 1.0), (5.0, 1.0), pytest.param(6.0, 0.1, marks=pytest.mark.slow), (4.1, 1.0)],
)
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


@pytest.mark.slow
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


@pytest.mark.slow
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
