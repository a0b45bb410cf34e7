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
from .equations import SampledEquations, StrataEquations
from .strata import Posterior, Stratified


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
    variance : float
        Of the prediction over the readout's samples, on average over new inputs.
    freedom : (float, float)
        Degrees of freedom df_1 and df_2 of the fit.
    """

    field: Field
    posterior: Posterior
    residual: float
    iterations: int
    status: Status
    variance: float
    freedom: tuple[float, float]


def solve_point(
    given: Stratified,
    loss: Loss,
    samples: float,
    lam: float,
    start: Posterior | None = None,
    tol: float = 1e-8,
) -> Solved:
    """The readout of ``samples`` and the penalty ``lam``, from the ``start`` of another one: on
    other strata, too, of the same features.  Raises ``GivenUp`` past the deadline."""
    p = given.strata.width
    penalties = np.full(p, lam)
    if given.intercept:  # its feature is the last; the others are over the root of one more
        penalties = lam * (p - 1) / p * (np.arange(p) < p - 1)
    at = given.strata, samples, penalties, given.moments
    of_ridge = partial(scores_of_ridge, given.moments)
    ridge = StrataEquations(*at, of_ridge)
    square = loss.is_square and not given.channel
    if square and given.rows is None:
        return _ridge(ridge, start, tol)
    if start is None:
        start = _ridge(ridge, None, 1e-3).posterior
    own = of_ridge if square else partial(scores, given.labels, loss)
    if given.rows is None:
        return _iterate(StrataEquations(*at, own), start, tol)
    return _iterate(SampledEquations(*at, own, rows=given.rows), start, tol)


def _ridge(equations: StrataEquations, start: Posterior | None, tol: float) -> Solved:
    """Ridge regression."""
    G: Any = None
    strata = equations.strata

    def image(x: Array, rows: Rows) -> Array:
        nonlocal G
        G = equations.response(1 / (1 + np.exp(x[0])))
        return np.log(strata.positive(strata.trace(G)))[None]

    first = equations.response(np.ones_like(strata.shares)) if start is None else start.response
    found = _iterated(image, np.log(strata.positive(strata.trace(first))), tol)
    slope = 1 / (1 + np.exp(found.value[0]))
    # E s + C / (1 + V) is h / (1 + V)
    a = equations.mean(G, equations.labels.h * slope, slope, 0.0)
    T, power, taken = _variances(equations, G, a, slope, start, tol)
    posterior = Posterior(G, T, a)
    after = strata.field(posterior)
    solved = after._replace(power=power[None], response=np.exp(found.value))
    account = equations.change(after, solved), int(found.iterations[0]) + taken, found.status[0]
    return _solved(equations, solved, posterior, *account)


def _variances(
    equations: StrataEquations, G: Any, a: Any, slope: Array, start: Posterior | None, tol: float
) -> tuple[Any, Array, int]:
    """T of ridge regression and the variances v (N,) in the errors epsilon that it comes from,
    which solve the linear system (20.4), from the ``start`` of another readout; and how many T were
    made.

    By Anderson's method on epsilon sqrt(omega) / (1 + V).
    """
    T: Any = None
    strata, labels = equations.strata, equations.labels
    root = np.sqrt(strata.shares) * slope
    # Eq. (20.4), v and T apart
    centre, label, own = strata.along(a)
    seen = (labels.h - centre) ** 2 + labels.spread + labels.noise - 2 * label + own

    def image(x: Array, rows: Rows) -> Array:
        nonlocal T
        T = equations.covariance(G, slope**2 * x[0] / root)
        return (root * (seen + strata.positive(strata.trace(T))))[None]

    def size(x: Array) -> Array:
        return root * equations.size2(centre, np.maximum(x[0] / root - seen + own, own))

    # without a start errors are those of the mean readout
    x = root * (seen if start is None else seen + strata.trace(start.covariance))
    found = _iterated(image, x, tol, size)
    return T, strata.positive(found.value[0] / root - seen + own), int(found.iterations[0])


def _iterate(equations: StrataEquations, start: Posterior, tol: float) -> Solved:
    """Any loss, by passes of all equations."""
    posterior = start

    def image(x: Array, rows: Rows) -> Array:
        nonlocal posterior
        field, posterior = equations.sweep(_unpack(x))
        return _pack(field)

    def size(x: Array) -> Array:
        field = _unpack(x)
        ones = np.ones_like(field.centre)
        root = np.sqrt(equations.size2(field.centre, field.power))
        return np.concatenate([ones, root, ones, root], axis=1)

    found = _iterated(image, _pack(equations.strata.field(start))[0], tol, size)
    account = float(found.residual[0]), int(found.iterations[0]), found.status[0]
    field = _unpack(found.value)
    return _solved(equations, field, posterior, *account)


def _solved(
    equations: StrataEquations,
    field: Field,
    posterior: Posterior,
    residual: float,
    passes: int,
    status: Status,
) -> Solved:
    """A solution with what follows from it."""
    freedom = equations.degrees_of_freedom(posterior.response)
    variance = equations.variance(field, posterior)
    return Solved(field, posterior, residual, passes, status, variance, freedom)


def _pack(field: Field) -> Array:
    """log V, C, log v and what goes with the label, (1, 4 N)."""
    rows = np.log(field.response), field.centre, np.log(field.power), field.pull[..., 0]
    return np.concatenate(rows, axis=1)


def _unpack(x: Array) -> Field:
    """The field of ``_pack``."""
    response, centre, power, pull = np.split(x, 4, axis=1)
    return Field(centre, pull[..., None], np.exp(power), np.exp(response))


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
        max_iterations=600,
    )
