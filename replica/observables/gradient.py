"""Derivatives of the errors in every parameter: differences of solutions on fixed nodes.

On the nodes that resolve the point, errors are smooth in every parameter: alpha and lam enter the
equations themselves, and a parameter of the model enters through its table, (r, c, gamma) of
(2.2)-(2.3) and the moments (3.2)-(3.3), and of a network through c_e(q) and C_e(q) of its rows
(16, 18).  A derivative is believed where a difference of one order less agrees with it.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from solvers.resources import TIME_LIMIT, GivenUp, check_time, deadline, one_thread
from solvers.results import Array, Status

from ..convex import LOSS_QUADRATURE_TOLERANCE, Task, errors_on_fixed_nodes
from ..convex import loss as as_loss
from ..display import Displayed, in_words
from ..equivalence import Table, table_of_size, tables, tabulate_at
from ..errors import InvalidArgument, answering
from ..given import FeatureSample, Given, ReadoutPoints, errors_at, solve_point
from ..problem import Problem, alpha_of_limit, asked, check_fixed_alpha0, limits, number
from ..reuse import evaluate_reused
from ..saddle_point import ridge
from ..steps import model_of
from .readout_curves import beyond, classes_of
from .solution import Solution, solve, solve_layer

# how closely they have to agree: in part of the slope, and of the error over the parameter's unit
RIDGE_AGREEMENT, LOSS_AGREEMENT = (1e-5, 1e-8), (1e-3, 1e-5)
ErrorsAt = Callable[[str, float], Array]  # both, (2,), with one parameter at a value
Slopes = tuple[float, ...]  # of both errors


@dataclass(frozen=True, eq=False, repr=False)
class Gradient(Displayed):
    """Derivatives of both errors at one point, of :func:`replica.gradient`.

    Attributes
    ----------
    point : Solution
    test_error, train_error : dict of name -> float
        Derivatives with respect to alpha, or samples, lam and the parameters of the model; NaN
        where the point did not converge, there is none, or rounding hides it, as beside a bound.
    status : Status
        That of the point, or why derivatives are missing that it has.
    """

    point: Solution
    test_error: dict[str, float]
    train_error: dict[str, float]
    status: Status

    @property
    def settings(self) -> dict[str, Any]:
        """The problem and the point, in plain values."""
        return self.point.settings

    def _facts(self) -> dict[str, Any]:
        slopes = {name: in_words(getattr(self, name)) for name in ("test_error", "train_error")}
        return slopes | {"status": self.status.value}

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {"parameter": name, "test_error": test_slope, "train_error": self.train_error[name]}
            for name, test_slope in self.test_error.items()
        ]


@one_thread()  # more only get into each other's way: the matrices are small
@answering
def gradient(
    problem: Problem | Given,
    *,
    alpha: float | None = None,
    samples: float | None = None,
    lam: float,
    beta: float | None = None,
    theory: str | None = None,
    loss: Any = "square",
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> Gradient:
    """Derivatives of test and training error with respect to every parameter.  docs/theory.md 4

    Parameters
    ----------
    problem : GradientStep, SpikedRandomFeatures, FirstLayer, FeatureSample or FeatureMoments
        Of a step: derivatives in alpha, lam, beta, noise, eta and alpha0, the latter two (and
        the noise of the step) through the features they lead to.  Of an sRF: in alpha, lam,
        beta, noise and, for one group and one spike, r, c and gamma.  Of a network with one value
        of the first-step readout: as of its step, in some tenths of a second a parameter.  Where
        the readout reuses the step's samples: in lam alone, to some five digits.  Of what is
        given: in samples, or alpha, and lam, to some six digits.
    alpha, samples, lam, loss, quadrature_tol : float
        As in :func:`replica.solve`.  Of ridge regression derivatives have some eight digits; of
        another loss, or labels +-1 at random, they are of the same squared errors, and within
        about 1e-5 of themselves, in ten times what the point takes or more.
    time_limit : float
        Seconds after which derivatives that are not known yet are left NaN.
    beta : float
        Width over input dimension p/d, for a GradientStep.
    theory : {"srf", "network"}
        Theory of a GradientStep: the published one, "srf", unless given.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, the model trains a bias, neurons of a network differ in
        their first-step readout or bias, or a network with the square loss has a finite dimension.

    Examples
    --------
    >>> from replica import GradientStep, gradient
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> slopes = gradient(step, alpha=0.9, lam=0.1, beta=1.0)
    >>> [f"{name} {slope:.6f}" for name, slope in slopes.test_error.items()][:2]
    ['alpha -0.009220', 'lam -0.045097']
    >>> [f"{name} {slope:.6f}" for name, slope in slopes.train_error.items()][-2:]
    ['eta -0.004419', 'alpha0 -0.000113']
    """
    model = model_of(problem, beta, theory, given=Given)
    if isinstance(problem, Given):
        name, samples_typed = asked(problem, alpha, samples)
        number(name, samples_typed)
        if problem.outputs > 1:
            allowed_here = "of one output for derivatives: numbers, or two classes"
            raise InvalidArgument("labels", f"{problem.outputs} outputs", allowed_here)
        if isinstance(problem, FeatureSample) and problem.strata is None and problem.binary:
            # the scale of errors beyond the rows depends on lam
            problem = classes_of(problem) if beyond(problem, samples) else problem
        layer, points = solve_layer(problem, alpha, samples, lam, loss, quadrature_tol, time_limit)
        with deadline(limits(quadrature_tol, time_limit)[1]), np.errstate(all="ignore"):
            slopes, slope_status = _layer_slopes(points, layer)
        slopes_in_n = slopes.pop("samples")
        typed_slopes = tuple(slope * layer.samples / samples_typed for slope in slopes_in_n)
        return _gradient_record(layer, {name: typed_slopes} | slopes, slope_status)
    alpha = alpha_of_limit(alpha, samples)
    check_fixed_alpha0(problem)
    if as_loss(loss).is_square:  # with other losses a dimension is the price of m, as of an sRF
        model.refuse_own_dimension()
    if model.train_bias:
        raise InvalidArgument("train_bias", True, "off for derivatives: the best bias moves too")
    if model.rows is not None and len(model.geometry.c) > 1 and not model.reuse:
        allowed_here = "srf here: neurons of the network differ in their first-step readout or bias"
        raise InvalidArgument("theory", "network", allowed_here)
    slope_tol, seconds = limits(quadrature_tol, time_limit)
    with deadline(seconds):
        accuracy: dict[str, Any] = {"quadrature_tol": slope_tol, "time_limit": seconds}
        point = solve(model, alpha=alpha, lam=lam, loss=loss, **accuracy)
        return _model_slopes(problem if model.rows is None else model, point, slope_tol)


def _layer_slopes(layer_points: ReadoutPoints, point: Solution) -> tuple[dict[str, Slopes], Status]:
    """The derivatives at a point of a given layer in n and lam, on its strata, and its status, or
    why there are none."""
    stratified, slope_status = layer_points.given, point.status
    point_values = {"samples": point.samples, "lam": point.lam}
    slopes: dict[str, Slopes] = dict.fromkeys(point_values, (np.nan, np.nan))
    if stratified is None or not point.converged:
        return slopes, slope_status

    def errors(field: str, near_value: float) -> Array:
        near_n, near_lam = (point_values | {field: near_value}).values()
        # errors are subtracted, and have to be solved far beyond the differences
        neighbour = solve_point(stratified, point.loss, near_n, near_lam, layer_points.last, 1e-11)
        neighbour_errors = errors_at(stratified, neighbour, point.loss)[0][:2]
        return neighbour_errors if neighbour.status is Status.CONVERGED else np.full(2, np.nan)

    point_errors, (tol, floor) = np.array([point.test_error, point.train_error]), LOSS_AGREEMENT
    n_max = stratified.rows if stratified.rows and point.samples <= stratified.rows else np.inf
    try:
        for field, x in point_values.items():
            most = n_max if field == "samples" else np.inf
            slopes[field] = _slopes(errors, field, x, 0.0, 4, tol, floor * point_errors / x, most)
    except GivenUp as given_up:
        return slopes, given_up.status
    slopes_known = np.isfinite([*slopes.values()]).all()
    return slopes, slope_status if slopes_known else Status.NO_DERIVATIVE


def _model_slopes(problem: Problem, point: Solution, quadrature_tol: float | None) -> Gradient:
    """The derivatives at a point of ``problem``, as far as there is time for them."""
    model, slope_status = point.model, point.status
    source = problem if problem.rows is None else problem.step
    slope_fields = [name for name in source.differentiable if name in source.varying]
    # labels of two classes that are +-1 have no noise
    has_noise = not model.labels.channel and point.loss.kind == "residual"
    names = "beta", *(["noise"] if has_noise else []), *slope_fields
    parameters = {name: model.beta if name == "beta" else getattr(source, name) for name in names}
    parameters = {name: float(value) for name, value in parameters.items() if np.isfinite(value)}
    parameters = {"alpha": point.alpha, "lam": point.lam} | parameters
    if model.reuse:  # the only one that changes no stratum of samples
        parameters = {"lam": point.lam}
    slopes: dict[str, Slopes] = dict.fromkeys(parameters, (np.nan, np.nan))
    if point.converged:
        is_ridge = point.loss.is_square and not model.labels.channel and not model.reuse
        other_errors = _reused_errors if model.reuse else _loss_errors
        errors_near, order, (tol, least_slope) = (
            (_ridge_errors, 8, RIDGE_AGREEMENT) if is_ridge else (other_errors, 4, LOSS_AGREEMENT)
        )
        slope_table = next(tables(model))
        field_units = {"noise": float(slope_table.weights @ slope_table.power) or 1.0}
        errors_here = np.array([point.test_error, point.train_error])
        # where there is no step, as a spike is another number of groups, and at the ends of gamma,
        # as g grows like the root of the distance, there are none
        no_slope_at = {"eta": (0.0,), "gamma": (-1.0, 1.0)}
        try:
            errors = errors_near(problem, point, quadrature_tol)
            for name, field_value in parameters.items():
                if field_value not in no_slope_at.get(name, ()):
                    field_unit = field_units.get(name, 1.0)
                    floor = least_slope * errors_here / max(abs(field_value), field_unit)
                    slopes[name] = _slopes(errors, name, field_value, field_unit, order, tol, floor)
            if not np.isfinite([*slopes.values()]).all():
                slope_status = Status.NO_DERIVATIVE
        except GivenUp as given_up:
            slope_status = given_up.status
    return _gradient_record(point, slopes, slope_status)


def _slopes(
    errors: ErrorsAt,
    field: str,
    field_value: float,
    field_unit: float,
    order: int,
    tol: float,
    floor: Array,
    most: float = np.inf,
) -> Slopes:
    """The derivatives of both errors in one parameter: of several differences the one that agrees
    best with the one that leaves out a point; NaN where none does."""
    good_enough = 1e-3 if order > 4 else 1.0  # of the tolerance: a point of a loss takes its time
    best_slopes, least_gap = np.full(2, np.nan), 1.0
    for offsets, spacing in _stencils(field, field_value, field_unit, order, most):
        inner = offsets != (-(order // 2) if offsets[0] else offsets[-1])
        weights = np.zeros((2, offsets.size))
        weights[0], weights[1, inner] = map(difference_weights, (offsets, offsets[inner]))
        with suppress(InvalidArgument):  # past a bound
            near_errors = [errors(field, field_value + spacing * offset) for offset in offsets]
            slope, other = weights @ np.array(near_errors) / spacing
            slope_gap = float((np.abs(slope - other) / (tol * np.abs(slope) + floor)).max())
            if slope_gap <= least_gap:
                best_slopes, least_gap = slope, slope_gap
                if slope_gap <= good_enough:
                    break
    return float(best_slopes[0]), float(best_slopes[1])


def _gradient_record(point: Solution, slopes: dict[str, Slopes], status: Status) -> Gradient:
    """The derivatives of test and training error, by parameter."""
    test_slopes, train = ({name: slope[i] for name, slope in slopes.items()} for i in range(2))
    return Gradient(point, test_slopes, train, status)


def _ridge_errors(problem: Problem, point: Solution, _: Any) -> ErrorsAt:
    """The errors of ridge regression near a point, on the nodes of its table."""
    slope_table = table_of_size(point.model, point.nodes)

    def ridge_errors_near(parameter: str, value: float) -> Array:
        check_time()
        at, near_table = {"alpha": point.alpha, "lam": point.lam}, slope_table
        if parameter in at:
            at[parameter] = value
        elif parameter == "beta":
            near_table = replace(slope_table, beta=value)
        else:
            near_model = problem.model_at(**{"beta": point.model.beta, parameter: value})
            near_table = tabulate_at(near_model, slope_table.places, slope_table.weights)
        if not _same_structure(slope_table, near_table):
            return np.full(2, np.nan)
        ridge_point = ridge.solve_points(near_table, np.array([at["alpha"]]), np.array([at["lam"]]))
        return np.where(ridge_point.status == Status.CONVERGED, ridge_point.errors, np.nan)[:, 0]

    return ridge_errors_near


def _loss_errors(problem: Problem, point: Solution, tol: float | None) -> ErrorsAt:
    """The squared errors of any loss near a point, on the nodes that resolve it."""
    tol = LOSS_QUADRATURE_TOLERANCE if tol is None else tol
    point_task = Task(point.model, point.loss, np.array([point.alpha]), np.array([point.lam]), tol)
    errors_of_task = errors_on_fixed_nodes(point_task)

    def loss_errors_near(field: str, value: float) -> Array:
        moved_fields: dict[str, Any] = {field: np.array([value])}
        if field not in ("alpha", "lam"):
            moved_fields = {"model": problem.model_at(**{"beta": point.model.beta, field: value})}
        return errors_of_task(point_task._replace(**moved_fields))

    return loss_errors_near


def _reused_errors(_: Problem, point: Solution, tol: float | None) -> ErrorsAt:
    """The errors of a readout on reused samples near a point in lam, on the same strata."""

    def reused_errors_near(_: str, near_lam: float) -> Array:
        reused_point = np.array([point.alpha]), np.array([near_lam])
        reused = evaluate_reused(point.model, *reused_point, point.loss, np.inf, np.inf, level=1)
        return np.array([reused.test_error[0], reused.train_error[0]])

    return reused_errors_near


def _same_structure(table: Table, other: Table) -> bool:
    """True if two tables have as many kinds of neurons, and the same mu_0 vanish in both: errors
    jump where a mean feature appears, which the readout may multiply by any number."""
    same_mu1_shape = table.mu1.shape == other.mu1.shape
    return same_mu1_shape and bool((table.offsets.any(axis=1) == other.offsets.any(axis=1)).all())


def _stencils(
    name: str, value: float, unit: float, order: int, most: float
) -> Iterator[tuple[Array, float]]:
    """Offsets (order + 1,) and spacing of values of a parameter for finite differences at
    ``value``: on both sides; then, if a bound is close, on one side, relative to its ``unit``.
    No value is more than ``most``.  Differences of order 8 are tried closer and closer, as errors
    turn steeply at interpolation.
    """
    stencil_spacing = 0.04 / order  # of order 8 it errs by rounding alone
    lowest_value, high = {"gamma": (-1.0, 1.0), "r": (-np.inf, np.inf)}.get(name, (0.0, most))
    distance_to_bound, unit = min(value - lowest_value, high - value), max(abs(value), unit)
    offsets = np.arange(order + 1)
    closer = stencil_spacing * 0.25 ** np.arange(6 if order > 4 else 1)
    if distance_to_bound > 0:
        yield from ((offsets - order // 2, part * min(distance_to_bound, unit)) for part in closer)
    if distance_to_bound < 0.1 * unit:
        signed_unit = unit if value - lowest_value == distance_to_bound else -unit
        yield from ((offsets, part * signed_unit) for part in closer)


def difference_weights(offsets: Array) -> Array:
    """Weights of values at ``offsets`` (n,) that give the derivative at 0, of order n - 1."""
    offset_powers = np.vander(offsets, increasing=True).T.astype(float)
    return np.asarray(np.linalg.solve(offset_powers, np.arange(len(offsets)) == 1))
