"""The errors of the readout at many numbers of samples and penalties, and what they are known to.

A point is solved on finer and finer strata until its errors stand still: more nodes, and more
Hermite degrees.  docs/theory.md 20
"""

from typing import Any, NamedTuple

import numpy as np

from solvers.results import Array, Status
from solvers.threads import one_thread

from ..convex import Loss, losses, wrong_at_nodes
from ..saddle_point import errors_of_ridge, scores_of_ridge
from .equations import Posterior
from .first_layer import FirstLayer
from .sample import FeatureSample
from .solve import Solved, solve_point
from .strata import Stratified

TOLERANCE = 1e-4  # relative, of errors, that strata are asked for
RESIDUAL_TOLERANCE = 1e-6  # largest that a solution may have


class ReadoutErrors(NamedTuple):
    """Errors of one readout: of the target and of the label, in the loss, and of the class."""

    test_error: float
    train_error: float
    loss_error: float
    train_loss: float
    classification_error: float


class ReadoutPoints(NamedTuple):
    """P points, arrays (P,): their errors, NaN where they are not known, and the account.

    Attributes
    ----------
    test_error, train_error, loss_error, train_loss, classification_error
        As a ``Solution`` has them.
    residual : of the equations.
    quadrature_error : what a coarser rule, and fewer Hermite degrees, change of the errors.
    iterations, strata : passes, and strata of the last of them.
    status : Status
    """

    test_error: Array
    train_error: Array
    loss_error: Array
    train_loss: Array
    classification_error: Array
    residual: Array
    quadrature_error: Array
    iterations: Array
    strata: Array
    status: Array

    @property
    def converged(self) -> Array:
        """Which are known to the tolerances, (P,)."""
        return np.asarray(self.status == Status.CONVERGED)


@one_thread()
def evaluate(
    model: FirstLayer | FeatureSample,
    samples: Array,
    lam: Array,
    loss: Loss,
    tol: float = TOLERANCE,
) -> ReadoutPoints:
    """The theory at the points (samples[i], lam[i]), arrays (P,); neighbours best stand side by
    side, as each is solved from the one before."""
    levels: list[Stratified] = []
    start: Posterior | None = None
    rows, level = [], 0
    for n, penalty in zip(samples, lam, strict=True):
        at = float(n), float(penalty)
        found, start, level = _point(model, levels, at, loss, start, level, tol)
        rows.append(found)
    return ReadoutPoints(*(np.array(column) for column in zip(*rows, strict=True)))


def _point(
    model: FirstLayer | FeatureSample,
    levels: list[Stratified],
    at: tuple[float, float],
    loss: Loss,
    start: Posterior | None,
    level: int,
    tol: float,
) -> tuple[tuple[Any, ...], Posterior | None, int]:
    """One point, on the first of the ``levels``, which grow, from ``level`` on, on which its errors
    stand still; and where to start the next point: its readout, and the level before the last, or
    a lower one if the last changed a tenth of what it may."""
    iterations, change, before, posterior = 0, np.inf, None, start
    status = Status.QUADRATURE
    while (given := _level(model, levels, level)) is not None:
        # errors of the equations stay below those of the strata: far below in what is returned
        last = before is not None or isinstance(model, FeatureSample)
        precision = max(1e-10, min(tol, TOLERANCE) * (1e-3 if last else 0.1))
        solved = solve_point(given, loss, *at, posterior, tol=precision)
        iterations, strata = iterations + solved.iterations, given.strata.shares.size
        if solved.status is not Status.CONVERGED:
            status = solved.status
            break
        if not solved.residual <= RESIDUAL_TOLERANCE and last:
            status = Status.NO_PROGRESS
            break
        posterior, level = solved.posterior, level + 1
        errors = errors_at(given, solved, loss)
        change = _change(before, errors, given) if before else np.inf
        before = errors
        if change <= tol:
            status = Status.CONVERGED
            break
    if isinstance(model, FeatureSample) and status is Status.QUADRATURE:
        status, change = Status.CONVERGED, 0.0
    known = before if status is Status.CONVERGED and before else ReadoutErrors(*[np.nan] * 5)
    account = solved.residual, change, iterations, strata, status
    return (*known, *account), posterior, max(0, level - (3 if change < tol / 10 else 2))


def _level(
    model: FirstLayer | FeatureSample, levels: list[Stratified], level: int
) -> Stratified | None:
    """The strata of a level, made once."""
    if level == len(levels):
        given = model.stratified(level)
        if given is None:
            return None
        levels.append(given)
    return levels[level]


def _change(before: ReadoutErrors, now: ReadoutErrors, given: Stratified) -> float:
    """Largest change of an error that is defined, relative to it, and to no less than a small part
    of the labels' power."""
    moments, after = given.moments, np.array(now)
    power = moments.weights @ (moments.h**2 + moments.spread) + moments.noise
    size = np.maximum(np.abs(after), 1e-4 * power)
    return float(np.nanmax(np.abs(after - np.array(before)) / size))


def errors_at(given: Stratified, solved: Solved, loss: Loss) -> ReadoutErrors:
    """The errors of a solution.  Eq. (20.5)"""
    moments, labels, field = given.moments, given.labels, solved.field
    s = scores_of_ridge(moments, field)
    test, train = (float(error[0]) for error in errors_of_ridge(moments, s))
    wrong = np.nan
    if labels.binary:
        wrong = float(wrong_at_nodes(labels, field)[0].sum(axis=-1) @ moments.weights)
    if loss.is_square and not given.channel:
        return ReadoutErrors(test, train, (test + moments.noise) / 2, train / 2, wrong)
    mean = losses(labels, moments.weights, loss, field)
    of_loss = float(mean.train_square[0]), float(mean.test[0]), float(mean.train[0])
    return ReadoutErrors(test, *of_loss, wrong)
