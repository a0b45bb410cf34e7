"""The fixed point over strata at one number of samples and one penalty.

Ridge regression takes a fixed point in V alone, then linear systems; other losses one in C, v and
V.  Both are iterated by Anderson's method.  docs/theory.md 20
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from solvers.fixed_point import fixed_point
from solvers.results import Array, Result, Rows, Status

from ..convex import Loss, scores
from ..saddle_point import Field, scores_of_ridge
from .equations import Posterior, StrataEquations
from .labels import StratumLabels
from .strata import Stratified


class Solved(NamedTuple):
    """One point.

    Attributes
    ----------
    field : Field
        The law of omega in N strata, arrays (1, N).
    posterior : Posterior
        That of the readout.
    residual : float
        Largest change of an unknown in one pass of all equations.
    iterations : int
        Passes, or what costs as much.
    status : Status
    """

    field: Field
    posterior: Posterior
    residual: float
    iterations: int
    status: Status


def solve_point(
    given: Stratified,
    loss: Loss,
    samples: float,
    lam: float,
    start: Posterior | None = None,
    tol: float = 1e-8,
    deadline: float = np.inf,
) -> Solved:
    """The readout of ``samples`` and the penalty ``lam``, from the ``start`` of another one: on
    other strata, too, of the same features.  Raises ``GivenUp`` past the ``deadline``."""
    equations = partial(StrataEquations, given.strata, samples, lam, deadline=deadline)
    ridge = equations(partial(scores_of_ridge, given.moments))
    if loss.is_square and not given.channel:
        return _ridge(ridge, given.moments, start, tol)
    if start is None:
        start = _ridge(ridge, given.moments, None, 1e-3).posterior
    return _convex(equations(partial(scores, given.labels, loss)), start, tol)


def _ridge(
    equations: StrataEquations, moments: StratumLabels, start: Posterior | None, tol: float
) -> Solved:
    """Ridge regression."""
    G: Any = None

    def image(x: Array, rows: Rows) -> Array:
        nonlocal G
        G = equations.response(1 / (1 + np.exp(x[0])))
        return np.log(equations.positive(equations.trace(G)))[None]

    V = _first_responses(equations) if start is None else equations.trace(start.response)
    found = _iterated(image, np.log(equations.positive(V)), tol)
    slope = 1 / (1 + np.exp(found.value[0]))
    a = equations.mean(G, moments.h * slope, slope, 0.0)  # E s + C / (1 + V) is h / (1 + V)
    known = None if start is None else start.covariance
    T, taken = _covariance(equations, moments, G, a, slope, known, tol)
    field = equations.field(Posterior(G, T, a))._replace(response=np.exp(found.value))
    posterior = equations.posterior(field)
    residual = equations.change(equations.field(posterior), field)
    iterations = int(found.iterations[0]) + taken + 1
    return Solved(field, posterior, residual, iterations, found.status[0])


def _covariance(
    equations: StrataEquations,
    moments: StratumLabels,
    G: Any,
    a: Any,
    slope: Array,
    start: Any,
    tol: float,
) -> tuple[Any, int]:
    """T of ridge regression, from the ``start`` of another readout, and how many were made: those
    of errors epsilon, that are the solution of the linear system (20.4).

    By conjugate gradients on epsilon sqrt(omega) / (1 + V), in which the system is symmetric.
    """
    strata, root = equations.strata, np.sqrt(equations.strata.shares) * slope
    # Eq. (20.4)
    seen = (moments.h - strata.mean(a)) ** 2 + moments.spread + moments.noise
    seen += strata.quadratic(a) - 2 * strata.along_labels(a)

    def answer(x: Array) -> Array:
        return root * equations.trace(equations.covariance(G, slope**2 * x / root))

    # without a start errors are those of the mean readout
    x = root * (seen if start is None else seen + equations.trace(start))
    residual, taken = root * seen - x + answer(x), 1
    direction, size = residual, residual @ residual
    enough = (tol * np.linalg.norm(x)) ** 2
    while size > enough and taken < 200:
        image = direction - answer(direction)
        step = size / (direction @ image)
        x, residual = x + step * direction, residual - step * image
        size, before = residual @ residual, size
        direction, taken = residual + size / before * direction, taken + 1
    return equations.covariance(G, slope**2 * x / root), taken + 1


def _first_responses(equations: StrataEquations) -> Array:
    """V (N,) if all directions were alike: that of G = g, g = 1 / (lambda + (n/p) m / (1 + m g)),
    for the mean m of the features' power."""
    lam, ratio, shares = equations.lam, equations.ratio, equations.strata.shares
    power = equations.trace(equations.response(np.zeros_like(shares))) * lam  # of G = 1 / lambda
    m = shares @ power
    b = lam + (ratio - 1) * m
    return power * 2 / (b + np.sqrt(b**2 + 4 * lam * m))


def _convex(equations: StrataEquations, start: Posterior, tol: float) -> Solved:
    """Any other loss."""
    posterior = start

    def image(x: Array, rows: Rows) -> Array:
        nonlocal posterior
        posterior = equations.posterior(_unpack(x))
        return _pack(equations.field(posterior))

    def size(x: Array) -> Array:
        field = _unpack(x)
        ones = np.ones_like(field.centre)
        return np.concatenate([ones, np.sqrt(equations.size2(field)), ones], axis=1)

    with np.errstate(all="ignore"):
        found = _iterated(image, _pack(equations.field(start))[0], tol, size)
    account = float(found.residual[0]), int(found.iterations[0]), found.status[0]
    return Solved(_unpack(found.value), posterior, *account)


def _pack(field: Field) -> Array:
    """log V, C and log v, (1, 3 N)."""
    return np.concatenate([np.log(field.response), field.centre, np.log(field.power)], axis=1)


def _unpack(x: Array) -> Field:
    """The field of ``_pack``."""
    response, centre, power = np.split(x, 3, axis=1)
    return Field(centre, np.zeros((*centre.shape, 1)), np.exp(power), np.exp(response))


def _iterated(
    image: Callable[[Array, Rows], Array], start: Array, tol: float, size: Any = np.ones_like
) -> Result:
    """The fixed point of ``image``, from ``start`` (k,)."""
    return fixed_point(
        image,
        start[None],
        tol=tol,
        size=size,
        past=np.zeros((1, 6, 2, start.size)),
        near=1.0,
        longest=2.0,
        max_iterations=200,
    )
