"""The theory at one point."""

import logging
from operator import itemgetter, methodcaller
from typing import Any

from solvers.resources import TIME_LIMIT
from solvers.results import ConvergenceError

from ..convex import loss as as_loss
from ..errors import answering
from ..given import Given, ReadoutPoints
from ..problem import (
    SpikedRandomFeatures,
    asked,
    check_model,
    flag,
    needs_alpha,
    one_positive,
    samples_of,
)
from ..saddle_point import Conjugates, Overlaps
from ..steps import GradientStep, model_of
from .evaluate import evaluate
from .given_layers import layer_points
from .point import Solution


@answering
def solve(
    model: SpikedRandomFeatures | GradientStep | Given,
    *,
    alpha: float | None = None,
    samples: float | None = None,
    lam: float,
    beta: float | None = None,
    theory: str | None = None,
    loss: Any = "square",
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
    raise_on_failure: bool = False,
) -> Solution:
    """Test error, training error and overlaps at one point.  docs/theory.md 4, 6, 20

    The notes of a given layer or of features, where errors may be off, are logged as warnings.

    Parameters
    ----------
    model : GradientStep, SpikedRandomFeatures, FirstLayer, FeatureSample or FeatureMoments
        A model, step.srf(beta=...) or step.network(beta=...), has its own beta and theory.
    alpha : float
        Readout samples over input dimension, n/d.
    samples : float
        Number n of readout samples, in the place of alpha, of a FirstLayer or FeatureSample.
    lam : float
        Ridge penalty lambda of (1.2), positive.
    beta : float
        Width over input dimension p/d, for a GradientStep.
    theory : {"srf", "network"}
        Theory of a GradientStep: the published one, "srf", unless given.
    loss : str or Loss
        Convex loss of the readout: ridge regression's square unless given, see
        :func:`replica.loss`.
    quadrature_tol : float
        Bound on the estimated relative quadrature error; 1e-10 unless given, 1e-6 for a loss
        other than the square, and for the square where labels are +-1 at random; 1e-5 where
        samples of the step are reused, or 1e-3 if no rule reaches that; 2e-3 of a network at
        its own dimension.  Of a given layer largest relative change of an error from coarser
        strata: 1e-3 unless given.
    time_limit : float
        Seconds after which a point that is not solved is flagged.
    raise_on_failure : bool
        Raise instead of returning a point that did not converge.

    Raises
    ------
    InvalidArgument
        If alpha, samples or lam is missing or out of range, or an option does not fit the model.
    QuadratureError
        If a function of the model cannot be integrated, such as one with undeclared kinks.
    ConvergenceError
        On request, with the Solution inside.

    Examples
    --------
    >>> from replica import GradientStep, solve
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> point = solve(step, alpha=0.9, lam=0.1, beta=1.0)
    >>> round(point.test_error, 7), round(point.train_error, 7), point.converged
    (0.0425039, 0.0168595, True)
    >>> round(solve(step, alpha=0.9, lam=0.1, beta=1.0, theory="network").test_error, 7)
    0.0416284
    """
    problem: SpikedRandomFeatures | Given = model_of(model, beta, theory)
    if isinstance(problem, Given):
        solution, _ = solve_layer(problem, alpha, samples, lam, loss, quadrature_tol, time_limit)
        for note in solution.notes if solution.converged else ():
            logging.getLogger(__name__).warning(note)
    else:
        if alpha is None or samples is not None:
            alpha = needs_alpha(alpha, samples)
        assert alpha is not None
        problem = check_model(problem, alpha)
        minimised = as_loss(loss)
        evaluated = evaluate(
            problem,
            one_positive("alpha", alpha),
            one_positive("lam", lam),
            loss=minimised,
            quadrature_tol=quadrature_tol,
            time_limit=time_limit,
        )
        columns = evaluated.columns
        solution = Solution(
            model=problem,
            alpha=float(alpha),
            lam=float(lam),
            loss=minimised,
            overlaps=Overlaps(*map(itemgetter(0), evaluated.overlaps)),
            conjugates=Conjugates(*map(itemgetter(0), evaluated.conjugates)),
            **dict(zip(columns, map(methodcaller("item"), columns.values()), strict=True)),
        )
    failed = not solution.converged
    if raise_on_failure is not False and flag("raise_on_failure", raise_on_failure) and failed:
        name = "samples" if isinstance(problem, Given) else "alpha"
        raise ConvergenceError(
            f"at {name}={getattr(solution, name):g}, lam={solution.lam:g}: {solution.status.value} "
            f"(residual {solution.residual:.1e}, quadrature {solution.quadrature_error:.1e})",
            solution,
        )
    return solution


def solve_layer(
    model: Given,
    alpha: Any = None,
    samples: Any = None,
    lam: Any = None,
    loss: Any = "square",
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> tuple[Solution, ReadoutPoints]:
    """:func:`replica.solve` of a given layer, and the points that it is the one of; notes are not
    logged."""
    name, value = asked(model, alpha, samples)
    n, penalty = samples_of(model, name, one_positive(name, value)), one_positive("lam", lam)
    minimised = as_loss(loss)
    points = layer_points(model, n, penalty, minimised, quadrature_tol, time_limit)
    at = {"samples": n.item(), "lam": penalty.item(), "loss": minimised}
    columns = {name: column.item() for name, column in points.columns.items()}
    return Solution(model=model, **at, **columns, confusion=points.confusion), points
