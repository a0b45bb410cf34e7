"""Derivatives of the errors in every parameter: differences of solutions on fixed nodes.

On the nodes that resolve the point, errors are smooth in every parameter: alpha and lam enter the
equations themselves, and a parameter of the model enters through its table, (r, c, gamma) of
(2.2)-(2.3) and the moments (3.2)-(3.3), and of a network through c_e(q) and C_e(q) of its rows
(16, 18).  A derivative is believed where one on smaller steps agrees with it.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from solvers.resources import TIME_LIMIT, GivenUp, check_time, deadline, one_thread
from solvers.results import Array, Status

from ..convex import LOSS_QUADRATURE_TOLERANCE, Task, errors_on_fixed_nodes
from ..convex import loss as as_loss
from ..display import in_words
from ..equivalence import table_of_size, tabulate_at
from ..errors import InvalidArgument
from ..given import FeatureSample, Given, GivenPoint, errors_at, solve_point
from ..problem import Problem, asked, check_call, number, refuse_options
from ..reuse import evaluate_reused
from ..saddle_point import ridge
from ..steps import model_of
from .readout_curves import beyond, classes_of
from .solution import AtPoint, Solution, solve, solve_layer

# how closely they have to agree: in part of the slope, and of the error over the parameter's unit
RIDGE_AGREEMENT, LOSS_AGREEMENT = (1e-5, 1e-8), (1e-3, 1e-5)
ErrorsAt = Callable[[str, float], Array]  # both, (2,), with one parameter at a value
Slopes = tuple[float, ...]  # of both errors


@dataclass(frozen=True, eq=False, repr=False)
class Gradient(AtPoint):
    """Derivatives of both errors at one point, of :func:`replica.gradient`.

    Attributes
    ----------
    point : Solution
    test_error, train_error : dict of name -> float
        Derivatives with respect to alpha, or samples, lam and the parameters of the model; NaN
        where the point did not converge, there is none, or rounding hides it, as beside a bound.
    status : Status
        Status of the point or, where a derivative of a converged point is missing, the reason.
    """

    point: Solution
    test_error: dict[str, float]
    train_error: dict[str, float]
    status: Status

    def _facts(self) -> dict[str, Any]:
        gradients = {name: in_words(getattr(self, name)) for name in ("test_error", "train_error")}
        return gradients | {"status": self.status.value}

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {"parameter": name, "test_error": test_slope, "train_error": self.train_error[name]}
            for name, test_slope in self.test_error.items()
        ]


@one_thread()  # more only get into each other's way: the matrices are small
@check_call
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
        A step has derivatives in alpha, lam, beta, noise, eta and alpha0, the latter two (and
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
    model = model_of(problem, beta, theory, given=Given, samples=samples)
    if isinstance(problem, Given):
        samples_name, samples_typed = asked(problem, alpha, samples)
        number(samples_name, samples_typed)
        if problem.outputs > 1:
            allowed_here = "of one output for derivatives: numbers, or two classes"
            raise InvalidArgument("labels", f"{problem.outputs} outputs", allowed_here)
        if isinstance(problem, FeatureSample) and problem.strata is None and problem.binary:
            # the scale of errors beyond the rows depends on lam
            problem = classes_of(problem) if beyond(problem, samples) else problem
        layer, given_point = solve_layer(
            problem, alpha, samples, lam, loss, quadrature_tol, time_limit
        )
        parameters = {samples_name: float(samples_typed), "lam": layer.lam}
        errors_near = partial(_layer_errors, given_point, layer, parameters)
        most_samples = getattr(given_point.given, "rows", None) or np.inf
        with deadline(time_limit), np.errstate(all="ignore"):
            return _gradient(layer, errors_near, parameters, 4, LOSS_AGREEMENT, most_samples)
    # with other losses a dimension is the price of m, as of an sRF
    refuse_options(problem, "alpha0", "train_bias", *["dimension"] * as_loss(loss).is_square)
    if model.rows is not None and len(model.geometry.c) > 1 and not model.reuse:
        allowed_here = "srf here: neurons of the network differ in their first-step readout or bias"
        raise InvalidArgument("theory", "network", allowed_here)
    with deadline(time_limit):
        point_options: dict[str, Any] = {"quadrature_tol": quadrature_tol, "time_limit": time_limit}
        point = solve(model, alpha=alpha, lam=lam, loss=loss, **point_options)
        return _model_slopes(problem if model.rows is None else model, point, quadrature_tol)


def _model_slopes(problem: Problem, point: Solution, quadrature_tol: float | None) -> Gradient:
    """The derivatives at a point of ``problem``, as far as there is time for them."""
    model = point.model
    source = problem if problem.rows is None else problem.step
    slope_fields = [name for name in source.differentiable if name in source.varying]
    # labels of two classes that are +-1 have no noise
    has_noise = not model.labels.channel and point.loss.kind == "residual"
    names = "beta", *(["noise"] if has_noise else []), *slope_fields
    parameters = {name: model.beta if name == "beta" else getattr(source, name) for name in names}
    parameters = {name: float(value) for name, value in parameters.items() if np.isfinite(value)}
    parameters = {"alpha": point.alpha, "lam": point.lam} | parameters
    if model.reuse:  # the only one that changes no stratum of samples
        errors_near = partial(_reused_errors, point)
        return _gradient(point, errors_near, {"lam": point.lam}, 4, LOSS_AGREEMENT)
    if point.loss.is_square and not model.labels.channel:
        errors_near = partial(_ridge_errors, problem, point)
        return _gradient(point, errors_near, parameters, 8, RIDGE_AGREEMENT)
    errors_near = partial(_loss_errors, problem, point, quadrature_tol)
    return _gradient(point, errors_near, parameters, 4, LOSS_AGREEMENT)


def _gradient(
    point: Solution,
    errors_near: Callable[[], ErrorsAt],
    parameters: dict[str, float],
    order: int,
    agreement: tuple[float, float],
    most_samples: float = np.inf,
) -> Gradient:
    """The derivatives at a point in all ``parameters``, by differences of ``errors_near`` it that
    agree so closely: in part of the slope, and of the error over the parameter or its unit, 1.
    They are on both sides or, where a bound is close, on one."""
    slopes: dict[str, Slopes] = dict.fromkeys(parameters, (np.nan, np.nan))
    gradient_status, errors_here = point.status, np.array([point.test_error, point.train_error])
    parameter_ranges = {"gamma": (-1.0, 1.0), "samples": (0.0, most_samples)}
    # where there is no step, as a spike is another number of groups, and at the ends of gamma,
    # as g grows like the root of the distance, there are none
    no_slope_at = {"eta": (0.0,), "gamma": (-1.0, 1.0)}
    without_unit = "alpha", "samples", "lam", "c"  # matter relative to themselves
    if point.converged:
        try:
            errors = errors_near()
            for name, value in parameters.items():
                if value in no_slope_at.get(name, ()):
                    continue
                scale = max(abs(value), 0.0 if name in without_unit else 1.0)
                # at r = 0, where errors jump, differences on one side tell, with the point itself
                slope_sides = (-np.inf, 0.0) if value < 0 else (0.0, np.inf)
                range_low, range_high = parameter_ranges.get(name, slope_sides)
                below, above = value - range_low < 0.1 * scale, range_high - value < 0.1 * scale
                floor = np.maximum(agreement[1] * errors_here / max(abs(value), 1.0), 1e-300)
                tolerances = {"rtol": agreement[0], "atol": 1.0}
                how = {"order": order, "tolerances": tolerances, "step_direction": below - above}
                slopes[name] = _slopes(partial(errors, name), value, 0.02 * scale, floor, **how)
            if not np.isfinite([*slopes.values()]).all():
                gradient_status = Status.NO_DERIVATIVE
        except GivenUp as given_up:
            gradient_status = given_up.status
    test_slopes, train = ({name: slope[i] for name, slope in slopes.items()} for i in range(2))
    return Gradient(point, test_slopes, train, gradient_status)


def _slopes(
    errors: Callable[[float], Array], value: float, step: float, floor: Array, **how: Any
) -> Slopes:
    """The derivatives of both errors over their ``floor``, on smaller and smaller steps until they
    agree, and NaN where they do not."""
    from scipy.differentiate import derivative

    @cache
    def scaled_errors_at(near_value: float) -> Array:
        with suppress(InvalidArgument):  # past a bound
            return errors(near_value) / floor
        return np.full(2, np.nan)

    scaled = np.vectorize(lambda x, which: scaled_errors_at(float(x))[which], otypes=[float])
    # at interpolation errors turn steeply: smaller steps are then tried from the start
    for first_step in step * 0.25 ** np.arange(6 if how["order"] > 4 else 1):
        difference = derivative(scaled, [value] * 2, args=([0, 1],), initial_step=first_step, **how)
        if difference.success.all():
            break
    return tuple(np.where(difference.success, difference.df * floor, np.nan).tolist())


def _layer_errors(
    given_point: GivenPoint, point: Solution, parameters: dict[str, float]
) -> ErrorsAt:
    """The errors of a given layer near a point, of samples or alpha and lam, on its strata."""
    stratified_layer, (typed_samples, _) = given_point.given, parameters.values()
    assert stratified_layer is not None

    def layer_errors_near(field: str, near_value: float) -> Array:
        near_n, near_lam = (parameters | {field: near_value}).values()
        # errors are subtracted, and have to be solved far beyond the differences
        near_n *= point.samples / typed_samples
        neighbour = solve_point(
            stratified_layer, point.loss, near_n, near_lam, given_point.last, 1e-11
        )
        neighbour_errors = errors_at(stratified_layer, neighbour, point.loss)[0][:2]
        return neighbour_errors if neighbour.status is Status.CONVERGED else np.full(2, np.nan)

    return layer_errors_near


def _ridge_errors(problem: Problem, point: Solution) -> ErrorsAt:
    """The errors of ridge regression near a point, on the nodes of its table."""
    slope_table = table_of_size(point.model, point.nodes)

    def ridge_errors_near(parameter: str, near_value: float) -> Array:
        check_time()
        at, near_table = {"alpha": point.alpha, "lam": point.lam}, slope_table
        if parameter in at:
            at[parameter] = near_value
        elif parameter == "beta":
            near_table = replace(slope_table, beta=near_value)
        else:
            near_model = problem.model_at(**{"beta": point.model.beta, parameter: near_value})
            near_table = tabulate_at(near_model, slope_table.places, slope_table.weights)
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


def _reused_errors(point: Solution) -> ErrorsAt:
    """The errors of a readout on reused samples near a point in lam, on the same strata."""

    def reused_errors_near(_: str, near_lam: float) -> Array:
        reused_point = np.array([point.alpha]), np.array([near_lam])
        reused = evaluate_reused(point.model, *reused_point, point.loss, np.inf, np.inf, level=1)
        return np.array([reused.test_error[0], reused.train_error[0]])

    return reused_errors_near
