"""The law of a label +-1, and of tau, given kappa and the local field omega = C + S z.

tau and z are two standard Gaussians of correlation r = P / S, in each direction: in closed form
where E[y | z] is a step of tau, as a series where it is smooth, else by Bayes' rule on the nodes of
tau.  docs/theory.md 6
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from solvers.results import Array

from .labels import Labels, Series, Steps
from .local_field import Field, remaining

CUT_OFF = 1e-12  # of a series for the mean label


class Posterior(NamedTuple):
    """E 1, E y (P, N, L), E tau and E tau y (P, N, L, K') given z (P, N, L); E 1 as the nodes of
    tau give it."""

    mass: Array | float
    label: Array
    tau: Array
    product: Array


def posterior(labels: Labels, field: Field, z: Array) -> Posterior:
    """The law given each z (P, N, L)."""
    r = field.pull[..., :1] / np.sqrt(field.power)[..., None]
    variance = (remaining(field) / field.power)[..., None]  # of tau
    if labels.steps is not None:
        mean, slope = _by_steps(labels.steps, r, variance, z)
    elif labels.series is not None and _decays(labels.series, r):
        mean, slope = _by_series(labels.series, r, z)
    else:
        return _by_nodes(labels, field, z)
    tau = r * z
    return Posterior(1.0, mean, tau[..., None], (tau * mean + variance * slope)[..., None])


def _by_steps(steps: Steps, r: Array, variance: Array, z: Array) -> tuple[Array, Array]:
    """E y and E dy/dtau where y changes at steps of tau, N(r z, variance) given z."""
    mean, slope = np.full_like(z, steps.values[0]), np.zeros_like(z)
    rest = np.sqrt(variance)
    for edge, jump in zip(steps.edges.T, np.diff(steps.values), strict=True):
        u = (r * z - edge[:, None]) / rest
        mean += jump * ndtr(u)
        slope += jump / (np.sqrt(2 * np.pi) * rest) * np.exp(-(u**2) / 2)
    return mean, slope


def _decays(series: Series, r: Array) -> bool:
    """Whether what is left of the series given z may be left out."""
    left = series.rest[:, None] * np.abs(r) ** series.coefficients.shape[1]
    return bool(left.max() <= CUT_OFF)


def _by_series(series: Series, r: Array, z: Array) -> tuple[Array, Array]:
    """E y and E dy/dtau of a series, as He_k(tau) is r^k He_k(z) on average."""
    powers = r ** np.arange(series.coefficients.shape[1])
    size = np.abs(series.coefficients * powers).max(axis=(0, 1))
    terms = int(np.flatnonzero(size > CUT_OFF).max(initial=1)) + 1
    mean, slope = np.zeros_like(z), np.zeros_like(z)
    before, hermite = np.zeros_like(z), np.ones_like(z)
    for k in range(terms):
        coefficient = series.coefficients[:, k, None]
        mean += coefficient * powers[..., k, None] * hermite
        if k:
            slope += np.sqrt(k) * coefficient * powers[..., k - 1, None] * before
        before, hermite = hermite, (z * hermite - np.sqrt(k) * before) / np.sqrt(k + 1)
    return mean, slope


def _by_nodes(labels: Labels, field: Field, z: Array) -> Posterior:
    """For any E[y | z] and K'."""
    rest, S2 = remaining(field)[..., None, None], field.power[..., None, None]
    shift = np.einsum("pnk,ntk->pnt", field.pull, labels.tau)[:, :, None]
    exponent = z[..., None] ** 2 - (np.sqrt(S2) * z[..., None] - shift) ** 2 / rest
    weights = labels.weights[:, None] * np.sqrt(S2 / rest) * np.exp(exponent / 2)
    mean = np.einsum("pnlt,nt->pnl", weights, labels.mean)
    tau = np.einsum("pnlt,ntk->pnlk", weights, labels.tau)
    product = np.einsum("pnlt,ntk->pnlk", weights, labels.mean[..., None] * labels.tau)
    return Posterior(weights.sum(axis=-1), mean, tau, product)
