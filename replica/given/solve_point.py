"""The fixed point over strata at one number of samples and one penalty.

Ridge regression takes a fixed point in V alone, then a linear system; other losses one in C, v and
V.  All are iterated by Anderson's method.  docs/theory.md 20, 22
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from solvers.arrays import like
from solvers.fixed_point import fixed_point
from solvers.resources import GivenUp
from solvers.results import Array, Result, Status

from ..convex import Loss, scores
from ..saddle_point import Field, ridge_scores
from .equations import Freedom, RowEquations, RowStrata, SampledEquations, StrataEquations
from .strata import Posterior, Stratified

MOST_ROUNDING = 3e-4  # of V, twice of which is the most that errors may change


class Solved(NamedTuple):
    """Solution at one point: the law of the output and of the readout.

    Attributes
    ----------
    field : Field
        The law of omega in N strata, arrays (P, N) of P labels.
    posterior : Posterior
        Law of the readout.
    residual : float
        Largest change of an unknown in one pass of all equations.
    iterations : int
        Passes, or what costs as much.
    status : Status
    variance : float
        Variance of the prediction over the readout's samples, on average over new inputs; the sum
        of all outputs.
    freedom : Freedom
    """

    field: Field
    posterior: Posterior
    residual: float
    iterations: int
    status: Status
    variance: float
    freedom: Freedom


def solve_point(
    stratified: Stratified,
    loss: Loss,
    samples: float,
    lam: float,
    start: Posterior | None = None,
    tol: float = 1e-8,
) -> Solved:
    """The readout of ``samples`` and the penalty ``lam``, from the ``start`` of another one: on
    other strata, too, of the same features.  Raises ``GivenUp`` past the deadline.

    Where the iteration fails from there, ridge regression starts anew, and other losses from a
    quarter of the samples.
    """
    ridge = equations_of(stratified, samples, lam)
    if loss.is_square and not stratified.channel:
        solved = _ridge_point(ridge, start, tol)
        has_failed = solved.status is not Status.CONVERGED
        return _ridge_point(ridge, None, tol) if has_failed and start is not None else solved
    if start is None:
        start = _ridge_point(ridge, None, 1e-3).posterior
        feature_power = ridge.strata.trace(like(np.eye(ridge.strata.coordinates), start.response))
        if feature_power @ ridge.strata.shares > 100 * lam:  # ridge regression may be too far
            larger = solve_point(stratified, loss, samples, 10 * lam, None, 1e-2)
            start = larger.posterior if larger.status is Status.CONVERGED else start
    loss_scores = partial(scores, stratified.labels, loss)
    equations = replace(ridge, scores=loss_scores, of_square=False)
    solved = _loss_point(equations, start, tol)
    if solved.status is not Status.CONVERGED and samples >= 16:
        fewer = solve_point(stratified, loss, samples / 4, lam, None, 1e-3)
        if fewer.status is Status.CONVERGED:
            solved = _loss_point(equations, fewer.posterior, tol)
    return solved


def equations_of(stratified: Stratified, samples: float, lam: float) -> StrataEquations:
    """The equations of strata, of a sample's moments or of its rows, for the square loss."""
    p, coordinates = stratified.strata.width, stratified.strata.coordinates
    penalties = np.full(coordinates, lam)
    if stratified.intercept:  # its feature is the last; the others are over the root of one more
        penalties = lam * (p - 1) / p * (np.arange(coordinates) < coordinates - 1)
    moment_equations = SampledEquations if stratified.rows else StrataEquations
    equation_type = RowEquations if isinstance(stratified.strata, RowStrata) else moment_equations
    drawn = samples / stratified.rows if stratified.rows else 0.0
    of_ridge = partial(ridge_scores, stratified.moments)
    return equation_type(stratified.strata, samples, penalties, stratified.moments, of_ridge, drawn)


def _ridge_point(equations: StrataEquations, start: Posterior | None, tol: float) -> Solved:
    """Ridge regression: a fixed point in V, then the linear system (20.4) of the errors epsilon,
    for all labels at once."""
    strata, labels, shares = equations.strata, equations.labels, equations.strata.shares
    G: Any = None if start is None else start.response
    slope, v_of_T, T_variance = shares, np.empty(0), np.empty(0)
    T: Any = None
    V = equations.response(0 * shares + 1, 0 * shares)[1] if G is None else strata.trace(G)

    def response_image(log_V: Array) -> Array:
        # V and the slope of G, not of the next pass: H, and errors far below the labels' size, are
        # small differences of terms in both
        nonlocal G, V, slope
        V, slope = np.exp(log_V), 1 / (1 + np.exp(log_V))
        G, kept_V = equations.response(slope, V)
        return np.log(equations.response_of_square(kept_V))

    V_solution = _anderson(equations, response_image, np.log(strata.positive(V)), tol)
    if equations.rounding(G, slope, V) > MOST_ROUNDING:
        raise GivenUp(Status.ROUNDING)
    # E s + C / (1 + V) is h / (1 + V)
    a, under = equations.mean(G, np.atleast_2d(labels.h * slope), slope, V)
    variances_of, scores = equations.variances(G, slope, V), equations.scores(under)

    def over_labels(x: Array) -> Array:  # of outputs that are no classes the sum is asked for
        return x.mean(axis=0, keepdims=True) if len(x) == labels.outputs else x

    # Eqs. (20.4), (22.9), v and T apart
    mean_squares = over_labels(scores.square / slope**2)

    def covary(x: Array) -> Array:
        nonlocal T, v_of_T, T_variance
        errors = V * x.reshape(mean_squares.shape)
        T, v_of_T, T_variance = variances_of(scores.mean, errors * slope**2, errors - mean_squares)
        return ((mean_squares + v_of_T) / V).ravel()

    def size(x: Array) -> Array:
        """Scale of changes of the errors x: each error, or a part of their mean over strata."""
        error_sizes = V * np.abs(x.reshape(mean_squares.shape))
        return (np.maximum(error_sizes, 1e-4 * (error_sizes @ shares)[:, None]) / V).ravel()

    freedom = equations.freedom(G, slope, V)
    # contraction rate of the errors' map; bounded, as G is less accurate for very many samples
    rate = float(np.clip(1 - freedom.residual_degrees / equations.samples, 0.01, 0.99))
    errors = mean_squares  # without a start those of the mean readout; several labels have none
    if start is not None and labels.outputs == 1:
        errors = mean_squares + strata.trace(start.covariance)
    error_result = _anderson(equations, covary, (errors / V).ravel(), tol, rate, size, linear=True)
    field = under._replace(variance=strata.positive(under.variance + v_of_T))
    spread = float(labels.outputs * T_variance[: labels.outputs].mean())
    return _solution_record(freedom, field, Posterior(G, T(), a), spread, V_solution, error_result)


def _loss_point(equations: StrataEquations, start: Posterior, tol: float) -> Solved:
    """Solution for any loss: all equations are iterated together, on C, v and V of every
    stratum."""
    posterior, readout_variance = start, np.nan

    def field_image(unknowns: Array) -> Array:
        nonlocal posterior, readout_variance
        omega_field, posterior, readout_variance = equations.one_pass(_unpack_field(unknowns))
        return _pack_field(omega_field)

    def field_scale(unknowns: Array) -> Array:
        omega_field = _unpack_field(unknowns)
        output_square = equations.size2(omega_field.centre, omega_field.variance)
        omega_size, size_of_log_v = np.sqrt(output_square), output_square / omega_field.variance
        unknown_scales = np.ones_like(omega_size), omega_size, size_of_log_v, omega_size
        return np.concatenate(unknown_scales, axis=1)

    first_field = _pack_field(equations.strata.field(start))
    field_solution = _anderson(equations, field_image, first_field, tol, size=field_scale)
    omega_field = _unpack_field(field_solution.value[0])
    slope = equations.scores(omega_field).slope[0]
    freedom = equations.freedom(posterior.response, slope, omega_field.response[0])
    return _solution_record(freedom, omega_field, posterior, readout_variance, field_solution)


def _solution_record(
    freedom: Freedom, field: Field, posterior: Posterior, variance: float, *found: Result
) -> Solved:
    """Record of a solution whose fixed points, one or several in turn, are ``found``: the largest
    residual, all iterations, and the first status that is not converged."""
    point_residual = max(float(fixed.residual[0]) for fixed in found)
    point_iterations = sum(int(fixed.iterations[0]) for fixed in found)
    status = next((fixed.status[0] for fixed in found if not fixed.converged[0]), Status.CONVERGED)
    return Solved(field, posterior, point_residual, point_iterations, status, variance, freedom)


def _pack_field(field: Field) -> Array:
    """Field of one label as a vector of unknowns (4 N,): log V, C, log v and the covariance with
    the label."""
    unknowns = np.log(field.response), field.centre, np.log(field.variance), field.tau_slope[..., 0]
    return np.concatenate(unknowns, axis=1)[0]


def _unpack_field(unknowns: Array) -> Field:
    """Field with the unknowns x (4 N,) of ``_pack_field``."""
    log_V, omega_centre, log_v, label_slope = np.split(unknowns[None], 4, axis=1)
    return Field(omega_centre, label_slope[..., None], np.exp(log_v), np.exp(log_V))


def _anderson(
    equations: StrataEquations,
    image: Callable[[Array], Array],
    start: Array,
    tol: float,
    contraction: float = 1.0,
    size: Callable[[Array], Array] = np.ones_like,
    linear: bool = False,
) -> Result:
    """Fixed point of ``image``, by Anderson's method from ``start`` (k N,), with least squares
    weighted by the shares of the strata.  A ``linear`` image is extrapolated from any distance."""
    return fixed_point(
        lambda x, rows: image(x[0])[None],
        start[None],
        tol=tol,
        size=lambda x: size(x[0]).reshape(1, -1),
        history=np.zeros((1, 6, 2, start.size)),
        weights=np.resize(equations.strata.shares, start.size),
        linear_below=np.inf if linear else 1.0,
        longest_step=np.inf if linear else 2.0,
        max_iterations=600,
        contraction=contraction,
    )
