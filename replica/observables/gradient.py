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

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from solvers.linear import solve_rows
from solvers.resources import TIME_LIMIT, GivenUp, check_time, one_thread, within
from solvers.results import Array, Status

from ..convex import LOSS_QUADRATURE_TOLERANCE, Task, errors_near
from ..equivalence import Table, table_of_size, tabulate_at
from ..errors import InvalidArgument
from ..given import Given, asked, derivatives, needs_alpha
from ..problem import Problem, check_problem, check_width, limits
from ..saddle_point import ridge
from .evaluate import is_ridge
from .given_layers import ReadoutSolution, solve_given
from .solution import Solution, solve

COMPLEX_STEP = 1e-20  # its square is below rounding, whatever the scale of a parameter


@dataclass(frozen=True, eq=False)
class Gradient:
    """Derivatives of both errors at one point, of :func:`replica.gradient`.

    Attributes
    ----------
    point : Solution or ReadoutSolution
    test_error, train_error : dict of name -> float
        Derivatives with respect to alpha, or samples, lam and the parameters of the model; NaN
        where the point did not converge or the model is not differentiable.
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
        found, points = solve_given(problem, alpha, samples, lam, loss, quadrature_tol, time_limit)
        name, value = asked(problem, alpha, samples)
        of_n, of_lam = derivatives(points, found.samples, found.lam, found.loss)
        slopes = {name: tuple(of_n / value), "lam": tuple(of_lam / found.lam)}
        return _gradient(found, slopes, found.status)
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


def _beside(problem: Problem, point: Solution, tol: float | None) -> Gradient:
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
        of = _of_ridge if is_ridge(model, point.loss) else _of_loss
        # where there is no step, as a spike is another number of groups, and at the ends of gamma,
        # as g grows like the root of the distance, there are none
        none_at = {"eta": (0.0,), "gamma": (-1.0, 1.0)}
        smooth = {name: x for name, x in values.items() if x not in none_at.get(name, ())}
        try:
            for name, slope in of(problem, point, smooth, tol):
                slopes[name] = slope
                if not np.isfinite(slope).all():
                    status = Status.NOT_FINITE
        except GivenUp as given_up:
            status = given_up.status
        except np.linalg.LinAlgError:
            status = Status.NOT_FINITE
    return _gradient(point, slopes, status)


def _gradient(
    point: Solution | ReadoutSolution, slopes: dict[str, tuple[float, float]], status: Status
) -> Gradient:
    """The derivatives of test and training error, by parameter."""
    test, train = ({name: slope[i] for name, slope in slopes.items()} for i in range(2))
    return Gradient(point, test, train, status)


Slopes = Iterator[tuple[str, tuple[float, float]]]  # of both errors, by parameter


def _of_ridge(problem: Problem, point: Solution, values: dict[str, float], _: Any) -> Slopes:
    """Derivatives of ridge regression's errors, by complex steps."""
    table = table_of_size(point.model, point.nodes)
    at, penalty, step = np.array([point.alpha]), np.array([point.lam]), 1j * COMPLEX_STEP
    overlaps = ridge.solve_points(table, at, penalty).overlaps
    V = ridge.responses_of(table).pack(overlaps.V1, overlaps.V2)

    def slopes(near: Table, alpha: Array, lam: Array) -> tuple[float, float]:
        """Of both errors, where table, alpha or lam are a step away from those that V solves."""
        responses = ridge.responses_of(near)
        residual, slope = responses.analytic_residual(V, alpha, lam)
        there = V + 1j * solve_rows(slope.real, -residual.imag)
        test, train = ridge.trained_readout(responses, there, alpha, lam)[2]
        return float(test[0].imag / COMPLEX_STEP), float(train[0].imag / COMPLEX_STEP)

    yield "alpha", slopes(table, at + step, penalty)
    yield "lam", slopes(table, at, penalty + step)
    for name, value in values.items():
        near = _tangent(problem, point.model.beta, name, value, table)
        if near is not None:
            yield name, slopes(near, at, penalty)


def _of_loss(
    problem: Problem, point: Solution, values: dict[str, float], tol: float | None
) -> Slopes:
    """Derivatives of the squared errors of any loss, by differences on nodes that are held."""
    tol = LOSS_QUADRATURE_TOLERANCE if tol is None else tol
    at = Task(point.model, point.loss, np.array([point.alpha]), np.array([point.lam]), tol)

    def near(name: str, value: float) -> Task:
        moved: dict[str, Any] = {name: np.array([value])}
        if name not in ("alpha", "lam"):
            moved = {"model": problem.model(**{"beta": point.model.beta, name: value})}
        return at._replace(**moved)

    errors = errors_near(at)
    for name, value in {"alpha": point.alpha, "lam": point.lam, **values}.items():
        # each takes a solution, whose own error is more than this difference's 1e-7
        beside = _stencil(name, value, order=4)
        slope = np.sum([w * errors(near(name, x)) for w, x in beside], axis=0)
        yield name, (float(slope[0]), float(slope[1]))


def _tangent(problem: Problem, beta: float, name: str, value: float, table: Table) -> Table | None:
    """``table`` a complex step along the parameter ``name`` of that ``value``; None where a step
    along it changes the number of kinds."""
    if name == "beta":
        return replace(table, beta=table.beta + 1j * COMPLEX_STEP)  # type: ignore[arg-type]
    check_time()
    near = [(w, problem.model(beta=beta, **{name: x})) for w, x in _stencil(name, value)]
    terms = [(w, tabulate_at(one, table.places, table.weights)) for w, one in near]
    if any(other.mu1.shape != table.mu1.shape for _, other in terms):
        return None
    constant = ("weights", "places", "beta", "dimension", "classes", "signs", "covariance")
    moved = {}
    for part in {field.name for field in fields(table)}.difference(constant):
        slope = sum(weight * getattr(other, part) for weight, other in terms)
        moved[part] = getattr(table, part) + 1j * COMPLEX_STEP * slope
    if table.covariance is not None:
        tangent = tuple((1j * COMPLEX_STEP * weight, other.covariance) for weight, other in terms)
        moved["covariance"] = replace(table.covariance, tangent=tangent)
    return replace(table, **moved)


def _stencil(name: str, value: float, order: int = 8) -> Iterator[tuple[float, float]]:
    """Weights, and the values of the parameter ``name`` whose errors they make the derivative at
    ``value`` of.

    At this spacing, relative to the parameter or to its distance from a bound, an eighth-order
    difference errs by rounding alone, 1e-14.
    """
    low, high = {"gamma": (-1.0, 1.0), "r": (-np.inf, np.inf)}.get(name, (0.0, np.inf))
    room = min(value - low, high - value)
    one_sided = room == 0
    # The unit of a parameter without bounds is 1, as the pre-activations' is.
    spacing = 0.01 * (1.0 if one_sided else min(room, max(abs(value), 1.0)))
    offsets = np.arange(order + 1) - (0 if one_sided else order // 2)
    for k, weight in zip(offsets, difference_weights(offsets), strict=True):
        if abs(weight) > 1e-15:
            yield weight / spacing, value + k * spacing


def difference_weights(offsets: Array) -> Array:
    """Weights of values at ``offsets`` (n,) that give the derivative at 0, of order n - 1."""
    powers = np.vander(offsets, increasing=True).T.astype(float)
    return np.asarray(np.linalg.solve(powers, np.arange(len(offsets)) == 1))
