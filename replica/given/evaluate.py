"""The errors of the readout at many numbers of samples and penalties, and what they are known to.

A point is solved on finer and finer strata until its errors stand still: more nodes, and more
Hermite degrees.  docs/theory.md 20
"""

import os
import time
from functools import partial
from typing import NamedTuple

import numpy as np

from solvers.results import Array, Status
from solvers.threads import one_thread

from ..convex import GivenUp, Loss, losses, wrong_at_nodes
from ..errors import InvalidArgument
from ..saddle_point import errors_of_ridge, scores_of_ridge
from .equations import Posterior, StrataEquations
from .first_layer import COARSE, FirstLayer
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
    quadrature_error : what a coarser rule and fewer Hermite degrees change of the errors, or one
        more special direction, if that is more.
    iterations, strata : passes, and strata of the last of them.
    directions : special ones of a layer.
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
    directions: Array
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
    time_limit: float = np.inf,
) -> ReadoutPoints:
    """The theory at the points (samples[i], lam[i]), arrays (P,), in ``time_limit`` seconds each;
    neighbours best stand side by side, as each is solved from the one before.

    Raises
    ------
    InvalidArgument
        If matrices between all neurons take more memory than there is.
    """
    check_memory(model)
    levels = _Levels(model)
    start: Posterior | None = None
    rows, level = [], 0
    for n, penalty in zip(samples, lam, strict=True):
        at = float(n), float(penalty)
        # the theory itself is off by a few 1 / n
        enough = max(tol, 3 / at[0])
        deadline = time.monotonic() + time_limit
        while True:
            point = _point(levels, at, loss, start, level, tol, deadline)
            start, level = point.posterior, point.level
            if not point.worth > enough or not levels.widen():
                break
            level = 0
        if point.status is Status.CONVERGED and point.worth > enough:
            point = point._replace(errors=UNKNOWN, status=Status.QUADRATURE)
        error = max(point.change, point.worth)
        account = point.residual, error, point.iterations, point.strata, levels.directions
        rows.append((*point.errors, *account, point.status))
    return ReadoutPoints(*(np.array(column) for column in zip(*rows, strict=True)))


def check_memory(model: FirstLayer | FeatureSample) -> None:
    """Raise ``InvalidArgument`` where twelve matrices (p, p), which a point takes, are more than
    there is memory."""
    need = 12 * 8.0 * model.width**2
    if hasattr(os, "sysconf") and need > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        name = "weights" if isinstance(model, FirstLayer) else "features"
        allowed = f"of fewer neurons: these take {need / 1e9:.2g} GB of memory"
        raise InvalidArgument(name, f"{model.width} neurons", allowed)


class _Levels:
    """The strata of every level, each made once."""

    def __init__(self, model: FirstLayer | FeatureSample) -> None:
        self.model = model
        self.made: list[Stratified] = []
        self._next: tuple[Stratified, Stratified] | None = None
        self._fixed = isinstance(model, FeatureSample) or model.beside is not None

    @property
    def directions(self) -> int:
        """Special ones."""
        return self.model.special.shape[1] if isinstance(self.model, FirstLayer) else 0

    def at(self, level: int) -> Stratified | None:
        """Those of a level, None past the last: all before it are made."""
        while level >= len(self.made):
            given = self.model.stratified(len(self.made))
            if given is None:
                return None
            self.made.append(given)
        return self.made[level]

    def next_direction(self) -> tuple[Stratified, Stratified] | None:
        """Coarse strata, and these split in three along the next special direction; None where
        there is no such direction."""
        if self._next is None and isinstance(self.model, FirstLayer):
            wider = self.model.wider()
            if wider.special.shape[1] > self.directions:
                self._next = self.model.cut(COARSE), wider.cut(COARSE, 3)
        return self._next

    def widen(self) -> bool:
        """Take the next special direction, unless there are four, as strata would be too many, or
        their number is given."""
        if self._fixed or self.directions >= 4 or isinstance(self.model, FeatureSample):
            return False
        self.model, self.made, self._next = self.model.wider(), [], None
        return True


class _Point(NamedTuple):
    """One point: its errors; what the last level and the next special direction change of them;
    its account; and where to start the next point: its readout, and the level before the last, or
    a lower one if the last changed a tenth of what it may."""

    errors: ReadoutErrors
    change: float
    worth: float
    residual: float
    iterations: int
    strata: int
    status: Status
    posterior: Posterior | None
    level: int


UNKNOWN = ReadoutErrors(*[np.nan] * 5)


def _point(
    levels: _Levels,
    at: tuple[float, float],
    loss: Loss,
    start: Posterior | None,
    level: int,
    tol: float,
    deadline: float,
) -> _Point:
    """One point, on the first of the ``levels``, which grow, from ``level`` on, on which its errors
    stand still."""
    iterations, strata, change, residual = 0, 0, np.inf, np.nan
    before, posterior, status = None, start, Status.QUADRATURE
    single = isinstance(levels.model, FeatureSample)
    while (given := levels.at(level)) is not None:
        # errors of the equations stay below those of the strata: far below in what is returned
        last = before is not None or single
        precision = max(1e-10, min(tol, TOLERANCE) * (1e-3 if last else 0.1))
        strata = given.strata.shares.size
        try:
            solved = solve_point(given, loss, *at, posterior, precision, deadline)
        except GivenUp as given_up:
            status = given_up.status
            break
        iterations, residual = iterations + solved.iterations, solved.residual
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
    if single and status is Status.QUADRATURE:
        status, change = Status.CONVERGED, 0.0
    known, worth = UNKNOWN, 0.0
    if status is Status.CONVERGED and before:
        known, worth = before, _worth(levels, loss, at, solved)
    account = residual, iterations, strata, status
    level = max(0, level - (3 if change < tol / 10 else 2))
    return _Point(known, change, worth, *account, posterior, level)


def _worth(levels: _Levels, loss: Loss, at: tuple[float, float], solved: Solved) -> float:
    """What one more special direction changes of the errors, to first order: those of one and the
    same readout."""

    def errors(given: Stratified) -> ReadoutErrors:
        equations = StrataEquations(given.strata, *at, partial(scores_of_ridge, given.moments))
        return errors_at(given, solved._replace(field=equations.field(solved.posterior)), loss)

    compared = levels.next_direction()
    if compared is None:
        return 0.0
    without, within = compared
    return _change(errors(without), errors(within), within)


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
