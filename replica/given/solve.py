"""The fixed point over strata: a readout at given numbers of samples and penalties.  Section 20.

Ridge regression takes a fixed point in V alone, then linear systems; other losses one in C, V and
v.  Both are iterated by Anderson's method, from the solution of the point before.
docs/theory.md 20
"""

from functools import partial
from typing import Any

import numpy as np

from solvers.fixed_point import fixed_point
from solvers.results import Array, Result, Rows, Status

from ..convex import Labels, Loss, scores
from ..saddle_point import Field, scores_of_ridge
from .equations import Equations, relative_change
from .strata import Strata, StratumLabels

PAST = 6  # changes that Anderson's method combines


def solve_field(
    strata: Strata,
    moments: StratumLabels,
    labels: Labels,
    loss: Loss,
    samples: float,
    lam: float,
    start: Field | None = None,
    tol: float = 1e-9,
) -> tuple[Field, float, int, Status]:
    """The law of omega in every stratum, the residual of the equations there, how often they were
    evaluated, and how it ended."""
    ridge = Equations(strata, samples, lam, partial(scores_of_ridge, moments))
    if loss.is_square:
        return _ridge(ridge, moments, start, tol)
    if start is None:
        start = _ridge(ridge, moments, None, 1e-3)[0]
    return _convex(Equations(strata, samples, lam, partial(scores, labels, loss)), start, tol)


def _ridge(
    equations: Equations, moments: StratumLabels, start: Field | None, tol: float
) -> tuple[Field, float, int, Status]:
    """Ridge regression."""
    G: Any = None

    def image(x: Array, rows: Rows) -> Array:
        nonlocal G
        G = equations.resolvent(1 / (1 + np.exp(x[0])))
        return np.log(equations.response(G))[None]

    V = _first_responses(equations) if start is None else start.response[0]
    found = _iterated(image, np.log(V), tol)
    V = np.exp(found.value[0])
    R = 1 / (1 + V)
    readout = equations.readout(G, moments.h * R, R, 0.0)  # E s + C / (1 + V) is h / (1 + V)
    centre, covariance, own = equations.mean_field(readout)
    # Eq. (20.4)
    seen = (moments.h - centre) ** 2 + moments.spread + moments.noise - 2 * covariance + own
    error, applications = _errors(equations, G, R, seen, tol)
    field = equations.assemble(centre, covariance, own, error - seen, V)
    status = found.status[0]
    if status is not Status.CONVERGED:
        return field, float(found.residual[0]), int(found.iterations[0]), status
    residual = relative_change(equations.sweep(field), field)
    return field, residual, int(found.iterations[0]) + applications + 1, status


def _errors(equations: Equations, G: Any, R: Array, seen: Array, tol: float) -> tuple[Array, int]:
    """epsilon (N,) = ``seen`` + tr (S + mu mu^T) T / p, which is linear in it, and how often that
    trace was taken.  Eq. (20.4)

    By conjugate gradients on epsilon sqrt(omega) / (1 + V), on which it is symmetric.
    """
    root = np.sqrt(equations.strata.shares) * R
    x, residual, taken = np.zeros_like(seen), root * seen, 0
    direction, size = residual, residual @ residual
    enough = (tol / 100) ** 2 * size  # of all strata together, for each one
    while size > enough and taken < 100:
        image = direction - root * equations.variance(G, R**2 * direction / root)
        step = size / (direction @ image)
        x, residual = x + step * direction, residual - step * image
        size, before = residual @ residual, size
        direction, taken = residual + size / before * direction, taken + 1
    # one more application, as tails of little weight count for little above
    return seen + equations.variance(G, R**2 * x / root), taken + 1


def _first_responses(equations: Equations) -> Array:
    """V (N,) if all directions were alike: that of G = g, g = 1 / (lambda + (n/p) m / (1 + m g)),
    for the mean m of the features' power."""
    G = equations.resolvent(np.zeros_like(equations.strata.shares))  # 1 / lambda
    power = equations.response(G) * equations.lam
    m, lam, ratio = equations.strata.shares @ power, equations.lam, equations.ratio
    b = lam + (ratio - 1) * m
    g = 2 / (b + np.sqrt(b**2 + 4 * lam * m))
    return power * g


def _convex(equations: Equations, start: Field, tol: float) -> tuple[Field, float, int, Status]:
    """Any other loss."""

    def image(x: Array, rows: Rows) -> Array:
        after = equations.sweep(_unpack(x))
        return _pack(after)

    def size(x: Array) -> Array:
        field = _unpack(x)
        ones = np.ones_like(field.centre)
        return np.concatenate([ones, np.sqrt(field.centre**2 + field.power), ones], axis=1)

    with np.errstate(all="ignore"):
        found = _iterated(image, _pack(start)[0], tol, size)
    field = _unpack(found.value)
    return field, float(found.residual[0]), int(found.iterations[0]), found.status[0]


def _pack(field: Field) -> Array:
    """log V, C and log v, (1, 3 N)."""
    return np.concatenate([np.log(field.response), field.centre, np.log(field.power)], axis=1)


def _unpack(x: Array) -> Field:
    """The field of ``_pack``."""
    response, centre, power = np.split(x, 3, axis=1)
    return Field(centre, np.zeros((*centre.shape, 1)), np.exp(power), np.exp(response))


def _iterated(image: Any, start: Array, tol: float, size: Any = np.ones_like) -> Result:
    """The fixed point of ``image``, from ``start`` (k,)."""
    past = np.zeros((1, PAST, 2, start.size))
    return fixed_point(
        image, start[None], tol=tol, size=size, past=past, near=1.0, longest=2.0, max_iterations=200
    )
