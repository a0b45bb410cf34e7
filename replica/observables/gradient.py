"""How the errors change with every parameter, by implicit differentiation of the fixed point.

The saddle point F(V; p) = 0 of docs/theory.md 4 moves by dV = -(dF/dV)^-1 dF/dp, and everything
after V is explicit.  Both are evaluated by a complex step: at p + i h with h = 1e-20 one Newton
step from the real solution makes V right to first order in h, the imaginary part of an error over
h is its derivative, and nothing is subtracted.  alpha and lam enter the equations themselves.  A
parameter of the model enters through its table, (r, c, gamma) of (2.2)-(2.3) and the moments
(3.2)-(3.3), and of a network through c_e(q) and C_e(q) of its rows (16, 18): smooth functions of
one variable, differentiated by an eighth-order difference.  Of a loss other than the square all
derivatives are such differences, of the solutions on nodes that are held.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from solvers.linear import solve_rows
from solvers.resources import TIME_LIMIT, GivenUp, check_time, one_thread, within
from solvers.results import Array, Status

from ..convex import LOSS_QUADRATURE_TOLERANCE, Task, errors_near
from ..equivalence import Table, table_of_size, tables, tabulate_at
from ..errors import InvalidArgument
from ..given import Given, asked, derivatives, needs_alpha
from ..problem import Problem, check_problem, check_width, limits
from ..saddle_point import ridge
from .evaluate import is_ridge
from .given_layers import ReadoutSolution, solve_given
from .solution import Solution, solve

COMPLEX_STEP = 1e-20  # its square is below rounding, whatever the scale of a parameter
# how closely they have to agree: in part of the slope, and of the error over the parameter's unit
AGREEMENT, LOSS_AGREEMENT = (1e-5, 1e-8), (1e-3, 1e-5)
Estimate = tuple[Array, Array]  # slopes of both errors, (2,), in two ways
Estimates = Iterator[tuple[str, Iterable[Estimate]]]  # by parameter
Numbers = dict[str, float]


@dataclass(frozen=True, eq=False)
class Gradient:
    """Derivatives of both errors at one point, of :func:`replica.gradient`.

    Attributes
    ----------
    point : Solution or ReadoutSolution
    test_error, train_error : dict of name -> float
        Derivatives with respect to alpha, or samples, lam and the parameters of the model; NaN
        where the point did not converge, there is none, or rounding hides it, as beside a bound.
    status : Status
        That of the point, or why derivatives are missing that it has.
    """

    point: Solution | ReadoutSolution
    test_error: dict[str, float]
    train_error: dict[str, float]
    status: Status


@one_thread()  # more only get into each other's way: the matrices are small
def gradient(
    problem: Problem | Given,
    *,
    alpha: float | None = None,
    samples: float | None = None,
    lam: float,
    beta: float | None = None,
    loss: Any = "square",
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> Gradient:
    """Derivatives of test and training error with respect to every parameter.  docs/theory.md 4

    Parameters
    ----------
    problem : GradientStep, SpikedRandomFeatures, FirstLayer or FeatureSample
        Of a step: derivatives in alpha, lam, beta, noise, eta and alpha0, the latter two (and
        the noise of the step) through the features they lead to.  Of an sRF: in alpha, lam,
        beta, noise and, for one group and one spike, r, c and gamma.  Of a network with one value
        of the first-step readout: as of its step, in some tenths of a second a parameter.  Of what
        is given: in samples, or alpha, and lam, to some six digits.
    alpha, samples, lam, loss, quadrature_tol : float
        As in :func:`replica.solve`.  Of ridge regression derivatives have some ten digits; of
        another loss, or labels +-1 at random, they are of the same squared errors, and within
        about 1e-5 of themselves, in ten times what the point takes or more.
    time_limit : float
        Seconds after which derivatives that are not known yet are left NaN.
    beta : float
        Width over input dimension p/d, for a GradientStep; an sRF has its own.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, the model trains a bias, or neurons of a network differ in
        their first-step readout or bias.

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
    if isinstance(problem, Given):
        if beta is not None:
            raise InvalidArgument("beta", beta, "left out of given layers, which have a width")
        if problem.outputs > 1:
            allowed = "of one output for derivatives: numbers, or two classes"
            raise InvalidArgument("labels", f"{problem.outputs} outputs", allowed)
        found, points = solve_given(problem, alpha, samples, lam, loss, quadrature_tol, time_limit)
        name, value = asked(problem, alpha, samples)
        of_n, of_lam = derivatives(points, found.samples, found.lam, found.loss)
        slopes = {name: tuple(of_n / value), "lam": tuple(of_lam / found.lam)}
        lost = found.converged and not np.isfinite([of_n, of_lam]).all()
        return _gradient(found, slopes, Status.NO_DERIVATIVE if lost else found.status)
    alpha = needs_alpha(alpha, samples)
    check_problem(problem)
    check_width(problem, beta)
    model = problem.model(beta=beta)
    if model.train_bias:
        raise InvalidArgument("train_bias", True, "off for derivatives: the best bias moves too")
    if model.rows is not None and len(model.geometry.c) > 1:
        allowed = "srf here: neurons of the network differ in their first-step readout or bias"
        raise InvalidArgument("model", "network", allowed)
    tol, seconds = limits(quadrature_tol, time_limit)
    with within(seconds):
        accuracy: dict[str, Any] = {"quadrature_tol": tol, "time_limit": seconds}
        point = solve(model, alpha=alpha, lam=lam, loss=loss, **accuracy)
        return _beside(problem, point, tol)


def _beside(problem: Problem, point: Solution, quadrature_tol: float | None) -> Gradient:
    """The derivatives at a point of ``problem``, as far as there is time for them."""
    model, status = point.model, point.status
    own = problem if problem.rows is None else problem.step
    given = [name for name in own.differentiable if name in own.varying]
    # labels of two classes that are +-1 have no noise
    noisy = not model.labels.channel and point.loss.kind == "residual"
    names = "beta", *(["noise"] if noisy else []), *given
    values = {name: model.beta if name == "beta" else getattr(own, name) for name in names}
    values = {name: float(value) for name, value in values.items() if np.isfinite(value)}
    slopes = dict.fromkeys(["alpha", "lam", *values], (np.nan, np.nan))
    if point.converged:
        square = is_ridge(model, point.loss)
        of, (tol, least) = (_of_ridge, AGREEMENT) if square else (_of_loss, LOSS_AGREEMENT)
        table = next(tables(model))
        units = {"noise": float(table.weights @ table.power) or 1.0}
        size = np.array([point.test_error, point.train_error])
        # where there is no step, as a spike is another number of groups, and at the ends of gamma,
        # as g grows like the root of the distance, there are none
        none_at = {"eta": (0.0,), "gamma": (-1.0, 1.0)}
        smooth = {name: x for name, x in values.items() if x not in none_at.get(name, ())}
        try:
            for name, estimates in of(problem, point, smooth, units, quadrature_tol):
                x = values[name] if name in values else getattr(point, name)
                floor = least * size / max(abs(x), units.get(name, 1.0))
                slopes[name] = _agreed(estimates, tol, floor)
            if not np.isfinite([*slopes.values()]).all():
                status = Status.NO_DERIVATIVE
        except GivenUp as given_up:
            status = given_up.status
    return _gradient(point, slopes, status)


def _agreed(estimates: Iterable[Estimate], tol: float, floor: Array) -> tuple[float, float]:
    """The first of the ``estimates`` of both slopes whose two parts agree; NaN where none do."""
    for slope, other in estimates:
        if (np.abs(slope - other) <= tol * np.abs(slope) + floor).all():
            return float(slope[0]), float(slope[1])
    return np.nan, np.nan


def _gradient(
    point: Solution | ReadoutSolution, slopes: dict[str, tuple[float, float]], status: Status
) -> Gradient:
    """The derivatives of test and training error, by parameter."""
    test, train = ({name: slope[i] for name, slope in slopes.items()} for i in range(2))
    return Gradient(point, test, train, status)


def _of_ridge(
    problem: Problem, point: Solution, values: Numbers, units: Numbers, _: Any
) -> Estimates:
    """Derivatives of ridge regression's errors, by complex steps."""
    table = table_of_size(point.model, point.nodes)
    at, penalty = np.array([point.alpha]), np.array([point.lam])
    overlaps = ridge.solve_points(table, at, penalty).overlaps
    V = ridge.responses_of(table).pack(overlaps.V1, overlaps.V2)

    def slopes(near: Table, alpha: Array, lam: Array, unit: float = 1.0) -> Array:
        """Of both errors, where one argument is a step of that ``unit`` away from what V solves."""
        responses = ridge.responses_of(near)
        try:
            with np.errstate(all="ignore"):
                residual, slope = responses.analytic_residual(V, alpha, lam)
                there = V + 1j * solve_rows(slope.real, -residual.imag)
                errors = ridge.trained_readout(responses, there, alpha, lam)[2]
        except np.linalg.LinAlgError:
            return np.full(2, np.nan)
        return np.array([error[0].imag / (COMPLEX_STEP * unit) for error in errors])

    def table_near(name: str, x: float) -> Table:
        check_time()
        model = problem.model(beta=point.model.beta, **{name: x})
        return tabulate_at(model, table.places, table.weights)

    def by_differences(name: str, value: float) -> Iterator[Estimate]:
        """Beside those of the errors, solved on the same tables."""
        for offsets, spacing in _stencils(name, value, units.get(name, 1.0), order=8):
            weights = difference_weights(offsets) / spacing
            with suppress(InvalidArgument):  # past a bound
                near = [table_near(name, value + spacing * k) for k in offsets]
                if all(_alike(table, other) for other in near):
                    errors = [ridge.solve_points(other, at, penalty).errors for other in near]
                    tangent = _tangent(table, near, weights)
                    yield slopes(tangent, at, penalty), weights @ np.array(errors)[..., 0]

    step, beta = 1 + 1j * COMPLEX_STEP, table.beta
    exact = {
        "alpha": slopes(table, at * step, penalty, point.alpha),
        "lam": slopes(table, at, penalty * step, point.lam),
        "beta": slopes(replace(table, beta=beta * step), at, penalty, beta),  # type: ignore
    }
    if point.alpha < 1e8 * beta:  # else (4.2) has a large number times what is lost
        yield from ((name, [(slope, slope)]) for name, slope in exact.items())
    for name in [name for name in values if name not in exact]:
        yield name, by_differences(name, values[name])


def _of_loss(
    problem: Problem, point: Solution, values: Numbers, units: Numbers, tol: float | None
) -> Estimates:
    """Derivatives of the squared errors of any loss, by differences on nodes that are held."""
    tol = LOSS_QUADRATURE_TOLERANCE if tol is None else tol
    at = Task(point.model, point.loss, np.array([point.alpha]), np.array([point.lam]), tol)
    errors = errors_near(at)

    def near(name: str, value: float) -> Task:
        moved: dict[str, Any] = {name: np.array([value])}
        if name not in ("alpha", "lam"):
            moved = {"model": problem.model(**{"beta": point.model.beta, name: value})}
        return at._replace(**moved)

    def by_differences(name: str, value: float) -> Iterator[Estimate]:
        """Beside those of a lower order, which have the errors at the point itself."""
        # each takes a solution, whose own error is more than this difference's 1e-7
        for offsets, spacing in _stencils(name, value, units.get(name, 1.0), order=4):
            inner = offsets != (-2 if -2 in offsets else offsets[-1])
            weights = np.zeros((2, offsets.size))
            weights[0], weights[1, inner] = map(difference_weights, (offsets, offsets[inner]))
            with suppress(InvalidArgument):  # past a bound
                beside = [errors(near(name, value + spacing * k)) if k else centre for k in offsets]
                yield tuple(weights @ np.array(beside) / spacing)

    centre = errors(at)
    for name, value in {"alpha": point.alpha, "lam": point.lam, **values}.items():
        yield name, by_differences(name, value)


def _alike(table: Table, other: Table) -> bool:
    """Whether two tables have as many kinds of neurons, and whether of both the same mu_0 vanish:
    the readout may multiply any by any number, and errors jump where one appears."""
    alike = table.mu1.shape == other.mu1.shape
    return alike and bool((table.offsets.any(axis=1) == other.offsets.any(axis=1)).all())


def _tangent(table: Table, near: list[Table], weights: Array) -> Table:
    """``table`` a complex step along its derivative, which ``weights`` (n,) make of those near."""
    terms = list(zip(weights, near, strict=True))
    constant = ("weights", "places", "dimension", "classes", "signs", "covariance")
    moved = {}
    for part in {field.name for field in fields(table)}.difference(constant):
        slope = sum(weight * getattr(other, part) for weight, other in terms)
        moved[part] = getattr(table, part) + 1j * COMPLEX_STEP * slope
    if table.covariance is not None:
        tangent = tuple((1j * COMPLEX_STEP * weight, other.covariance) for weight, other in terms)
        moved["covariance"] = replace(table.covariance, tangent=tangent)
    return replace(table, **moved)


def _stencils(name: str, value: float, unit: float, order: int) -> Iterator[tuple[Array, float]]:
    """Offsets (order + 1,) and spacing of values of a parameter whose errors make the derivative at
    ``value``: on both sides of it; then, if a bound is close, on one, relative to its ``unit``.

    At this spacing an eighth-order difference errs by rounding alone, 1e-14.
    """
    low, high = {"gamma": (-1.0, 1.0), "r": (-np.inf, np.inf)}.get(name, (0.0, np.inf))
    room, unit = min(value - low, high - value), max(abs(value), unit)
    offsets = np.arange(order + 1)
    if room > 0:
        yield offsets - order // 2, 0.01 * min(room, unit)
    if room < 0.1 * unit:
        yield offsets, 0.01 * (unit if value - low == room else -unit)


def difference_weights(offsets: Array) -> Array:
    """Weights of values at ``offsets`` (n,) that give the derivative at 0, of order n - 1."""
    powers = np.vander(offsets, increasing=True).T.astype(float)
    return np.asarray(np.linalg.solve(powers, np.arange(len(offsets)) == 1))
