"""Averages over labels whose mean is a step function of tau, given kappa: those of a sign, flipped
or with noise.  docs/theory.md 6

Given kappa, t0 = y - omega + noise, or y omega, of each label y and component of the noise is

    t0 = mean + sd z,   (z, tau) ~ N(0, [[1, r], [r, 1]]),   P(y | tau) a sum of steps at e_j,

so that y and z have the joint density phi(z) sum_j p_j Phi((r z - e_j) / sqrt(1 - r^2)), whose
partial moments are elementary but for Owen's function: all that a piecewise quadratic loss takes.
By partial integration in tau

    E[tau s] = P E[s'] + sum_j phi(e_j) sum_y p_j(y) E[s(y) | tau = e_j].

Other losses are averaged over points of the proximal map, with E[tau | z] beside the density.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, owens_t

from solvers.piecewise import NORMAL, NORMAL_CUT, average_score
from solvers.results import Array

from ..saddle_point import THINNEST_FIELD, Field, variance_given_tau
from .label_tables import ConditionalLabels
from .losses import Loss
from .proximal import FAR, OF_PIECES, Averaged, at_points, proximal_nodes

SMALLEST_ARGUMENT = 1e-100  # of Owen's function, whose arguments are ratios


class StepLaw(NamedTuple):
    """t0 = mean + sd z of K labels, each with a component of the noise, at (P, N); and the law of z
    together with the label: its mass is P(y).

    Attributes
    ----------
    share, sign : arrays (K, 1, 1)
        Of the component, and o = ds / dg.
    mean, sd : arrays (K, P, N)
    first : array (K, 1, 1)
        P(y | tau) before the first step.
    rises : array (J, K, 1, 1)
        Its change at each step.
    edges : array (J, 1, 1, N)
        The steps.
    r, rest : arrays (K, P, N)
        The correlation of z and tau, and sqrt(1 - r^2).
    """

    share: Array
    sign: Array
    mean: Array
    sd: Array
    first: Array
    rises: Array
    edges: Array
    r: Array
    rest: Array

    @property
    def total(self) -> tuple[Array, Array, Array]:
        """E 1, E z and E z^2."""
        density = self.rises * NORMAL.density(self.edges)
        mass = self.first + (self.rises * ndtr(-self.edges)).sum(axis=0)
        second = mass + self.r**2 * (density * self.edges).sum(axis=0)
        return mass, self.r * density.sum(axis=0), second

    def integrals(self, z: Array) -> tuple[Array, Array, Array]:
        """Integrals from -inf to each z of the density times 1, z and z^2."""
        z = np.clip(z, -NORMAL_CUT, NORMAL_CUT)
        z = np.where(np.abs(z) < SMALLEST_ARGUMENT, SMALLEST_ARGUMENT, z)
        below, density = ndtr(z), NORMAL.density(z)
        zeroth, first = self.first * below, -self.first * density
        second = zeroth + z * first
        for rise, edge in zip(self.rises, self.edges, strict=True):
            above = (self.r * z - edge) / self.rest  # tau given z, in standard deviations
            passed = (z - self.r * edge) / self.rest  # z given tau at the edge
            both = (below - ndtr(edge)) / 2 + 0.5 * (z * edge < 0)  # P(z' < z, tau > edge)
            both += owens_t(edge, passed / edge) - owens_t(z, above / z)
            end = density * ndtr(above)
            at_edge = self.r * NORMAL.density(edge)
            inside = at_edge * ndtr(passed)
            bent = self.r * edge * inside - self.rest * at_edge * NORMAL.density(passed)
            zeroth = zeroth + rise * both
            first = first + rise * (inside - end)
            second = second + rise * (both - z * end + bent)
        # exact far out, where a large response would multiply the rounding
        parts = zip(self.total, (zeroth, first, second), strict=True)
        low, high = z == -NORMAL_CUT, z == NORMAL_CUT
        zeroth, first, second = (np.where(high, all_, np.where(low, 0.0, x)) for all_, x in parts)
        return zeroth, first, second

    def density(self, z: Array) -> Array:
        """The density at each z."""
        chance = self.first
        for rise, edge in zip(self.rises, self.edges, strict=True):
            chance = chance + rise * ndtr((self.r * z - edge) / self.rest)
        return np.asarray(NORMAL.density(z) * chance)


def step_law(labels: ConditionalLabels, kind: str, field: Field) -> StepLaw:
    """What averages over labels with ``steps`` are made of, for a loss of that ``kind``."""
    assert labels.steps is not None
    edges, values = labels.steps
    if labels.binary:
        y = np.array([1.0, -1.0])
        chance = (1 + y[:, None] * values) / 2
    else:
        y, which = np.unique(values, return_inverse=True)
        chance = (which == np.arange(y.size)[:, None]).astype(float)
    # every label with every component, K of them
    components = labels.variances.size
    y, chance = np.repeat(y, components)[:, None, None], np.repeat(chance, components, axis=0)
    variance, share = (np.resize(x, y.shape) for x in (labels.variances, labels.shares))
    sd, rest = np.sqrt(field.variance + variance), np.sqrt(variance_given_tau(field) + variance)
    # t0 = label + sign omega
    label, sign = (0.0, y) if kind == "margin" else (y, np.full_like(y, -1.0))
    mean, pull = label + sign * field.centre, sign * field.tau_slope[..., 0]
    edges = np.where(np.abs(edges) < SMALLEST_ARGUMENT, SMALLEST_ARGUMENT, edges)
    steps, rises = edges.T[:, None, None], np.diff(chance).T[..., None, None]
    first = chance[:, :1, None]
    return StepLaw(share, sign, mean, sd, first, rises, steps, pull / sd, rest / sd)


def averages_of_steps(what: Averaged, labels: ConditionalLabels, loss: Loss, field: Field) -> Array:
    """E s, -E s', E s^2 and E tau s, or E t, E t^2 and E rho(t), given kappa: (4 or 3, P, N)."""
    of = step_law(labels, loss.kind, field)
    if loss.pieces is None:
        values, along = _by_points(what, loss, labels.order, of, field)
    else:
        values = OF_PIECES[what](loss.pieces, of.mean, of.sd, field.response, of)
    if what == "residual":
        return np.asarray((of.share * values).sum(axis=1))
    signed = of.share * of.sign
    mean = (signed * values[0]).sum(axis=0)
    slope, square = ((of.share * x).sum(axis=0) for x in (-values[1], values[2]))
    if loss.pieces is None:
        total = (signed * along).sum(axis=0)
    else:
        there = of.mean + of.sd * of.r * of.edges, of.sd * of.rest  # the law of t0 given tau
        at_edge = average_score(loss.pieces, *there, field.response)[0]
        change = (of.rises * signed * at_edge).sum(axis=1)
        total = (NORMAL.density(of.edges[:, 0]) * change).sum(axis=0)
        total -= field.tau_slope[..., 0] * slope
    return np.stack([mean, slope, square, total])


def _by_points(
    what: Averaged, loss: Loss, order: int, of: StepLaw, field: Field
) -> tuple[Array, Array]:
    """The averages (3, K, P, N), of each label, of what ``at_points`` gives, and of tau times the
    first of them (K, P, N), by points of the proximal map."""
    mean, sd, r, rest = (x[..., None] for x in (of.mean, of.sd, of.r, of.rest))
    sd = np.maximum(sd, THINNEST_FIELD * np.abs(mean))  # thinner ones are lost to rounding
    V = np.broadcast_to(field.response[..., None], mean.shape)
    curve = proximal_nodes(loss, V, mean - FAR * sd, mean + FAR * sd, sd, order)
    z = (curve.t0 - mean) / sd
    chance, slope = of.first[..., None], np.zeros_like(z)
    for rise, edge in zip(of.rises[..., None], of.edges[..., None], strict=True):
        u = (r * z - edge) / rest  # tau given z, in standard deviations
        chance = chance + rise * ndtr(u)
        slope += rise * NORMAL.density(u)
    values = at_points(what, loss, curve)
    weight = NORMAL.density(z) * curve.length / sd
    along = (values[0] * weight * (r * z * chance + rest * slope)).sum(axis=-1)
    return (values * (weight * chance)).sum(axis=-1), along
