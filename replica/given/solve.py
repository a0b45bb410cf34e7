"""The fixed point over strata at one number of samples and one penalty.

Ridge regression takes a fixed point in V alone, then linear systems; other losses one in C, v and
V.  Both are iterated by Anderson's method.  docs/theory.md 20
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from solvers.fixed_point import fixed_point
from solvers.results import Array, Result, Rows, Status

from ..convex import Loss, scores
from ..saddle_point import Field, scores_of_ridge
from .equations import SampledEquations, StrataEquations
from .rows import RowEquations, RowStrata
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
    kind = StrataEquations
    if given.rows:
        kind = RowEquations if isinstance(given.strata, RowStrata) else SampledEquations
    drawn = samples / given.rows if given.rows else 0.0
    of_ridge = partial(scores_of_ridge, given.moments)
    ridge = kind(given.strata, samples, penalties, given.moments, of_ridge, drawn)
    if loss.is_square and not given.channel:
        return _ridge(ridge, start, tol)
    if start is None:
        start = _ridge(ridge, None, 1e-3).posterior
    return _iterate(replace(ridge, scores=partial(scores, given.labels, loss)), start, tol)


def _ridge(equations: StrataEquations, start: Posterior | None, tol: float) -> Solved:
    """Ridge regression: V from (20.2), which has no other unknown; then a-bar; then the variances
    of omega from the linear system (20.4), or (22.3)."""
    G: Any = None
    T: Any = None
    variance, strata = np.nan, equations.strata

    def respond(x: Array, rows: Rows) -> Array:
        nonlocal G
        V = np.exp(x[0])
        G, t = equations.response(1 / (1 + V), V)
        return np.log(equations.response_of_square(t))[None]

    ones = np.ones_like(strata.shares)
    if start is None:
        first = equations.response(ones, 0.0 * ones)[1]
    else:
        first = strata.positive(strata.trace(start.response))
    responses = _iterated(respond, np.log(first), tol)
    V = np.exp(responses.value[0])
    slope = 1 / (1 + V)
    # E s + C / (1 + V) is h / (1 + V)
    a, under = equations.mean(G, equations.labels.h * slope, slope, V)
    varied = equations.variances(G, slope, V)
    own, root = under.power[0], np.sqrt(strata.shares) * slope

    def vary(x: Array, rows: Rows) -> Array:
        nonlocal T, variance
        power = x[0] / root
        scores = equations.scores(under._replace(power=power[None]))
        T, part, variance = varied(scores, power - own)
        return (root * (own + part))[None]

    def size(x: Array) -> Array:
        return root * equations.size2(under.centre[0], np.maximum(x[0] / root, own))

    # without a start errors are those of the mean readout
    power = own if start is None else own + strata.trace(start.covariance)
    variances = _iterated(vary, root * power, tol, size)
    field = under._replace(power=strata.positive(variances.value[0] / root)[None])
    each = responses, variances
    return Solved(
        field,
        Posterior(G, T, a),
        residual=float(max(found.residual[0] for found in each)),
        iterations=int(sum(found.iterations[0] for found in each)),
        status=next((one.status[0] for one in each if not one.converged[0]), Status.CONVERGED),
        variance=variance,
        freedom=equations.degrees_of_freedom(G),
    )


def _iterate(equations: StrataEquations, start: Posterior, tol: float) -> Solved:
    """Any loss, by passes of all equations."""
    posterior, variance = start, np.nan

    def image(x: Array, rows: Rows) -> Array:
        nonlocal posterior, variance
        field, posterior, variance = equations.sweep(_unpack(x))
        return _pack(field)

    def size(x: Array) -> Array:
        field = _unpack(x)
        square = equations.size2(field.centre, field.power)
        root, of_log = np.sqrt(square), square / field.power
        return np.concatenate([np.ones_like(root), root, of_log, root], axis=1)

    found = _iterated(image, _pack(equations.strata.field(start))[0], tol, size)
    return Solved(
        _unpack(found.value),
        posterior,
        residual=float(found.residual[0]),
        iterations=int(found.iterations[0]),
        status=found.status[0],
        variance=variance,
        freedom=equations.degrees_of_freedom(posterior.response),
    )


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
