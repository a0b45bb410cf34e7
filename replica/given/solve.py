"""The fixed point over strata at one number of samples and one penalty.

Ridge regression takes a fixed point in V alone, then a linear system; other losses one in C, v and
V.  All are iterated by Anderson's method.  docs/theory.md 20
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from solvers.fixed_point import fixed_point
from solvers.results import Array, Result, Status

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
    """Ridge regression: a fixed point in V, then the linear system (20.4) of the errors epsilon.

    The maps of log V and of epsilon / V have one derivative, (20.2) at the solution: Anderson's
    method takes the steps of the first into the second.
    """
    strata, labels = equations.strata, equations.labels
    G: Any = equations.response(np.ones_like(strata.shares)) if start is None else start.response
    T: Any = None

    def respond(x: Array) -> Array:
        nonlocal G
        G = equations.response(1 / (1 + np.exp(x)))
        return np.log(strata.positive(strata.trace(G)))

    past = np.zeros((1, 6, 2, strata.shares.size))
    of_V = _iterated(equations, respond, np.log(strata.positive(strata.trace(G))), tol, past)
    V = np.exp(of_V.value[0])
    slope = 1 / (1 + V)
    # E s + C / (1 + V) is h / (1 + V)
    a = equations.mean(G, labels.h * slope, slope, 0.0)
    # Eq. (20.4), v and T apart
    centre, label, own = strata.along(a)
    seen = (labels.h - centre) ** 2 + labels.spread + labels.noise - 2 * label + own

    def covary(x: Array) -> Array:
        nonlocal T
        T = equations.covariance(G, slope**2 * V * x)
        return (seen + strata.positive(strata.trace(T))) / V

    def power(x: Array) -> Array:
        return strata.positive(own + V * x - seen)

    # without a start errors are those of the mean readout
    errors = seen if start is None else seen + strata.trace(start.covariance)
    of_errors = _iterated(
        equations, covary, errors / V, tol, past, lambda x: equations.size2(centre, power(x)) / V
    )
    field = Field(*(x[None] for x in (centre, label[:, None], power(of_errors.value[0]), V)))
    return _solved(equations, field, Posterior(G, T, a), of_V, of_errors)


def _iterate(equations: StrataEquations, start: Posterior, tol: float) -> Solved:
    """Any loss, by passes of all equations."""
    posterior = start

    def image(x: Array) -> Array:
        nonlocal posterior
        field, posterior = equations.sweep(_unpack(x))
        return _pack(field)

    def size(x: Array) -> Array:
        field = _unpack(x)
        ones = np.ones_like(field.centre)
        root = np.sqrt(equations.size2(field.centre, field.power))
        return np.concatenate([ones, root, ones, root], axis=1)

    first = _pack(equations.strata.field(start))
    found = _iterated(equations, image, first, tol, np.zeros((1, 6, 2, first.size)), size)
    return _solved(equations, _unpack(found.value[0]), posterior, found)


def _solved(
    equations: StrataEquations, field: Field, posterior: Posterior, *found: Result
) -> Solved:
    """A solution that was ``found`` by one iteration after another, with what follows from it."""
    return Solved(
        field,
        posterior,
        residual=max(float(each.residual[0]) for each in found),
        iterations=sum(int(each.iterations[0]) for each in found),
        status=next((each.status[0] for each in found if not each.converged[0]), Status.CONVERGED),
        variance=equations.variance(field, posterior),
        freedom=equations.degrees_of_freedom(posterior.response),
    )


def _pack(field: Field) -> Array:
    """log V, C, log v and what goes with the label, (4 N,)."""
    rows = np.log(field.response), field.centre, np.log(field.power), field.pull[..., 0]
    return np.concatenate(rows, axis=1)[0]


def _unpack(x: Array) -> Field:
    """The field of ``_pack``."""
    response, centre, power, pull = np.split(x[None], 4, axis=1)
    return Field(centre, pull[..., None], np.exp(power), np.exp(response))


def _iterated(
    equations: StrataEquations,
    image: Callable[[Array], Array],
    start: Array,
    tol: float,
    past: Array,
    size: Callable[[Array], Array] = np.ones_like,
) -> Result:
    """The fixed point of ``image``, from ``start`` (k N,), after ``past`` steps of a map that has
    nearly its derivative.  Least squares are weighted by the shares of the strata."""
    root = np.sqrt(np.resize(equations.strata.shares, start.size))
    found = fixed_point(
        lambda x, rows: root * image(x[0] / root)[None],
        (root * start)[None],
        tol=tol,
        size=lambda x: root * size(x[0] / root).reshape(1, -1),
        past=past,
        near=1.0,
        longest=2.0,
        max_iterations=600,
    )
    return replace(found, value=found.value / root)
