"""The readout as Gaussian-process regression on the samples: a pencil of three fields per kind.
docs/theory.md 21.2

A sample adds a quadratic form in its fields: z, V and the multiplier of V for each kind of neurons,
the rest y' of the label, and two scalars of the row for each kind.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from solvers.results import Array

from .strata import Strata

LINKS = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, -1.0], [1.0, -1.0, 0.0]])  # T_0 of one kind


class Samples(NamedTuple):
    """One class of samples at N nodes: of the step and the readout, of the step, or of the readout.

    There are M = 5 A + 1 fields, of which the first F = 3 A are averaged over, and K unknowns.

    Attributes
    ----------
    weights : (N,)
        Quadrature weights times the number of samples over dimension.
    form : (N, M, M)
        The quadratic form (21.6).
    residual : (N, M)
        u of (21.6), zeros where the readout does not use the samples.
    noise, noise_slopes : (N,), (A, N)
        V_N, and its derivatives in the g_b.
    fixed, linear : (N, M), (N, M, K)
        The fields as a function of the unknowns, fixed + linear Theta.  Eq. (21.8)
    push : (N,)
        Own part of the coordinate along e_n.
    read : bool
        Whether the readout uses the samples.
    """

    weights: Array
    form: Array
    residual: Array
    noise: Array
    noise_slopes: Array
    fixed: Array
    linear: Array
    push: Array
    read: bool


class Unknowns(NamedTuple):
    """Places of the unknowns of (21.8): F along the D directions and e_n, m, (eps_2, eps_3), their
    multipliers, and eps_1."""

    fields: slice
    m: slice
    scalars: slice
    multipliers: slice
    initial: slice

    @classmethod
    def of(cls, D: int, A: int) -> "Unknowns":
        """Places for D directions of the target and A kinds of neurons."""
        ends = np.cumsum([3 * A * (D + 1), A, 2 * A, 2 * A, A])
        return cls(slice(0, ends[0]), *map(slice, ends[:-1], ends[1:]))


def classes(
    strata: Strata, counts: tuple[float, float, float], g: Array, lam: Array | float
) -> Iterator[Samples]:
    """The classes of samples, of the step and the readout, of the step alone and of the readout
    alone, ``counts`` of each over dimension.  Eqs. (21.6), (21.8)"""
    for kind, count in enumerate(counts):
        if count > 0:
            yield _samples(strata, count, g, lam, kind != 2, kind != 1)


def _samples(
    strata: Strata, count: float, g: Array, lam: Array | float, trained: bool, read: bool
) -> Samples:
    (D, N), A = strata.s.shape, len(strata.neurons)
    y, size = 3 * A, 5 * A + 1
    at = Unknowns.of(D, A)
    root = np.sqrt(g)
    form = np.zeros((N, size, size), np.result_type(g, lam, float))
    residual, noise_slopes = np.zeros(form.shape[:2], form.dtype), np.zeros((A, N))
    fixed, linear = np.zeros((N, size)), np.zeros((N, size, at.initial.stop), form.dtype)
    push = strata.push if trained else np.zeros(N)
    along = np.vstack([strata.s, strata.q + push])  # coordinates on the special directions
    for k, coordinate in enumerate(along):
        for field in range(3 * A):
            linear[:, field, 3 * A * k + field] = coordinate
    residual[:, y], fixed[:, y] = 1.0, strata.y
    for b, n in enumerate(strata.neurons):
        z, V, hat = 3 * b, 3 * b + 1, 3 * b + 2
        scalars, unknown = y + 1 + 2 * b, at.scalars.start + 2 * b
        if not trained:
            residual[:, V], noise_slopes[b] = -root[b] * n.fresh_slope, n.fresh_variance
            linear[:, y, at.m.start + b] = -root[b] * n.fresh_mean
            linear[:, y, unknown + 1] = -root[b] * n.fresh_norm
            linear[:, y, at.initial.start + b] = -root[b] * n.fresh_initial
            continue
        form[:, z, hat] += n.own * n.h2
        form[:, hat, hat] -= n.own**2 * n.rest / 2
        own = n.slope_omega * n.own
        residual[:, z], residual[:, V] = (
            -root[b] * (n.slope_z - own * n.h2),
            -root[b] * n.slope_omega,
        )
        residual[:, hat] = root[b] * n.own * (n.by_rest - own * n.rest)
        noise_slopes[b] = n.variance - 2 * own * n.by_rest + own**2 * n.rest
        linear[:, y, at.m.start + b] = -root[b] * n.mean
        linear[:, y, at.initial.start + b] = -root[b] * n.initial
        for a in range(2):
            form[:, z, scalars + a] += n.linear[a]
            form[:, hat, scalars + a] -= n.own * n.by_rest_of_scalars[a]
            residual[:, scalars + a] = root[b] * (n.by_scalars[a] - own * n.by_rest_of_scalars[a])
            linear[:, y, unknown + a] = -root[b] * n.scalars[a]
            linear[:, scalars + a, at.multipliers.start + 2 * b + a] = -1 / strata.alpha0
    form += form.swapaxes(1, 2)
    noise = lam + np.tensordot(g, noise_slopes, 1)
    if read:
        form += residual[:, :, None] * (residual / noise[:, None])[:, None]
    weights = count * strata.weights
    return Samples(weights, form, residual, noise, noise_slopes, fixed, linear, push, read)


def resolvent(form: Array, G: Array) -> Array:
    """The form seen through the cavity covariance ``G`` of the first fields, T (1 + G T)^-1."""
    F, size = len(G), form.shape[-1]
    matrix = np.zeros(form.shape, np.result_type(form, G))
    matrix[:] = np.eye(size)
    matrix[:, :F] += G @ form[:, :F]
    return np.linalg.solve(matrix.swapaxes(1, 2), form.swapaxes(1, 2)).swapaxes(1, 2)


def cavity_map(samples: list[Samples], links: Array, G: Array) -> tuple[Array, list[Array]]:
    """Right-hand side (T_0 + <Q>)^-1 of (21.7), and the Q of each class on the first fields."""
    F = len(G)
    forms = [resolvent(one.form[:, :F, :F], G) for one in samples]
    total = sum(np.tensordot(one.weights, Q, 1) for one, Q in zip(samples, forms, strict=True))
    return np.linalg.inv(links + total), forms


def cavity_jacobian(samples: list[Samples], mapped: Array, forms: list[Array]) -> Array:
    """Derivative (F^2, F^2) of ``cavity_map`` less the identity: F <Q dG Q> F - dG."""
    F = len(mapped)
    total = np.zeros((F * F, F * F), mapped.dtype)
    for one, Q in zip(samples, forms, strict=True):
        flat = Q.reshape(-1, F * F)
        product = (flat.T * one.weights) @ flat  # of Q_ab and Q_cd; Q is symmetric
        total += product.reshape(F, F, F, F).swapaxes(1, 2).reshape(F * F, F * F)
    return np.kron(mapped, mapped) @ total - np.eye(F * F)
