"""The errors of the readout at many numbers of samples and penalties, and what they are known to.

A point is solved on finer and finer strata until its errors stand still: more nodes, and more
Hermite degrees.  docs/theory.md 20
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from solvers.arrays import namespace, to_host
from solvers.resources import GivenUp, one_thread, within
from solvers.results import Array, Status

from ..convex import Loss, losses, wrong_at_nodes
from ..errors import InvalidArgument
from ..saddle_point import errors_of_ridge, scores_of_ridge
from .first_layer import FirstLayer
from .nodes import COARSE
from .sample import FeatureSample
from .solve import Solved, solve_point
from .strata import Posterior, Stratified

TOLERANCE = 1e-3  # relative, of errors, that strata are asked for; the theory is off by 1 / n
RESIDUAL_TOLERANCE = 1e-6  # largest that a solution may have
# a derivative of fourth order: steps in a logarithm, and weights
STEP, STENCIL = 0.02, ((1, 2 / 3), (-1, -2 / 3), (2, -1 / 12), (-2, 1 / 12))
PRECISION = 1e-11  # of the solutions that are subtracted


class ReadoutErrors(NamedTuple):
    """Errors of one readout, or arrays (P,) of those of many: of the target and of the label, in
    the loss, and of the class; the part of the first that the readout's samples are the reason of;
    and its squared norm over p.  As a ``ReadoutSolution`` has them."""

    test_error: Any
    train_error: Any
    loss_error: Any
    train_loss: Any
    classification_error: Any
    readout_variance: Any
    squared_norm: Any


class ReadoutPoints(NamedTuple):
    """P points, arrays (P,), and the account.

    Attributes
    ----------
    errors : ReadoutErrors
        NaN where they are not known.
    residual : of the equations.
    quadrature_error : what a coarser rule and fewer Hermite degrees change of the errors, or one
        more special direction, if that is more.
    iterations, strata : passes, and strata of the last of them.
    directions : special ones of a layer.
    status : Status
    last : Posterior or None
        The readout of the last point, over its samples; None where it is not known.
    given : Stratified
        The strata of the last point.
    """

    errors: ReadoutErrors
    residual: Array
    quadrature_error: Array
    iterations: Array
    strata: Array
    directions: Array
    status: Array
    last: Posterior | None
    given: Stratified

    @property
    def converged(self) -> Array:
        """Which are known to the tolerances, (P,)."""
        return np.asarray(self.status == Status.CONVERGED)

    @property
    def columns(self) -> dict[str, Array]:
        """What is known of each point, (P,), by the names that ``ReadoutSolution`` has for it."""
        account = "converged", "residual", "quadrature_error", "iterations", "strata", "status"
        return self.errors._asdict() | {name: getattr(self, name) for name in account}


@one_thread()
def evaluate(
    model: FirstLayer | FeatureSample,
    samples: Array,
    lam: Array,
    loss: Loss,
    tol: float = TOLERANCE,
    time_limit: float = np.inf,
    advance: Callable[[], None] = lambda: None,
) -> ReadoutPoints:
    """The theory at the points (samples[i], lam[i]), arrays (P,), in ``time_limit`` seconds each;
    ``advance`` is called after each.

    Raises
    ------
    InvalidArgument
        If matrices between all neurons take more memory than there is.
    """
    check_memory(model)
    levels, level = _Levels(model), 0
    start: Posterior | None = None
    rows: list[Any] = [()] * len(samples)
    # strata grow: points of a large penalty need the least, and are first of every n
    for i in np.lexsort((-lam, samples)):
        at = float(samples[i]), float(lam[i])
        # the theory itself is off by about 1 / n
        enough = max(tol, 1 / at[0])
        with within(time_limit):
            while True:
                point = _point(levels, at, loss, start, level, tol)
                start, level = point.posterior, point.level
                if not point.worth > enough or not levels.widen():
                    break
                level = 0
        if point.status is Status.CONVERGED and point.worth > enough:
            point = point._replace(errors=UNKNOWN, status=Status.QUADRATURE)
        error = max(point.change, point.worth)
        passes = point.iterations, point.strata, levels.directions
        rows[i] = (point.errors, point.residual, error, *passes, point.status)
        advance()
    errors, *account = zip(*rows, strict=True)
    columns = ReadoutErrors(*np.array(errors).T), *map(np.array, account)
    return ReadoutPoints._make([*columns, start, levels.made[-1]])


@one_thread()
def derivatives(points: ReadoutPoints, samples: float, lam: float, loss: Loss) -> Array:
    """The derivatives of test and training error in log n and in log lam, (2, 2), at the only one
    of ``points``, NaN where it is not known: differences of fourth order on its strata."""
    if not points.converged.all():
        return np.full((2, 2), np.nan)
    slopes = np.zeros((2, 2))
    for axis, unit in enumerate(np.eye(2)):
        for steps, weight in STENCIL:
            n, penalty = np.array([samples, lam]) * np.exp(steps * STEP * unit)
            solved = solve_point(points.given, loss, n, penalty, points.last, PRECISION)
            known = solved.status is Status.CONVERGED
            errors = errors_at(points.given, solved, loss) if known else UNKNOWN
            slopes[axis] += weight * np.array(errors[:2])
    return slopes / STEP


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
    its account; and where to start the next point: its readout, and the last level, or a lower one
    if the last changed a tenth of what it may."""

    errors: ReadoutErrors
    change: float
    worth: float
    residual: float
    iterations: int
    strata: int
    status: Status
    posterior: Posterior | None
    level: int


UNKNOWN = ReadoutErrors(*[np.nan] * 7)


def _point(
    levels: _Levels,
    at: tuple[float, float],
    loss: Loss,
    start: Posterior | None,
    level: int,
    tol: float,
) -> _Point:
    """One point, on the first of the ``levels``, which grow, from ``level`` on, that has the errors
    of the one before it."""
    single = isinstance(levels.model, FeatureSample)
    iterations, strata, residual = 0, 0, np.nan
    change, worth = 0.0 if single else np.inf, 0.0
    errors, posterior, status = UNKNOWN, start, Status.QUADRATURE
    precision = max(1e-10, min(tol, 1e-4) * 5e-3)  # far below the errors of strata
    level = max(level, 0 if single else 1)
    while (given := levels.at(level)) is not None:
        strata = given.strata.shares.size
        try:
            solved = solve_point(given, loss, *at, posterior, precision)
        except GivenUp as given_up:
            status = given_up.status
            break
        iterations, residual = iterations + solved.iterations, solved.residual
        if solved.status is not Status.CONVERGED:
            status = solved.status
            break
        if not solved.residual <= RESIDUAL_TOLERANCE:
            status = Status.NO_PROGRESS
            break
        posterior = solved.posterior
        if not single:
            change = _change(levels.made[level - 1], given, loss, solved)
        if change <= tol:
            status, errors = Status.CONVERGED, errors_at(given, solved, loss)
            break
        level += 1
    if status in (Status.CONVERGED, Status.QUADRATURE):
        compared = levels.next_direction()
        worth = _change(*compared, loss, solved) if compared else 0.0
    level -= status is Status.QUADRATURE or change < tol / 10
    return _Point(errors, change, worth, residual, iterations, strata, status, posterior, level)


def _change(before: Stratified, after: Stratified, loss: Loss, solved: Solved) -> float:
    """What other strata change of the errors, to first order: of those of one and the same readout.
    The largest change of one that is defined, relative to it, and to no less than a small part of
    the labels' power."""

    def errors(given: Stratified) -> Array:
        field = given.strata.field(solved.posterior)
        return np.array(errors_at(given, solved._replace(field=field), loss))

    was, now = errors(before), errors(after)
    moments = after.moments
    power = moments.weights @ (moments.h**2 + moments.spread) + moments.noise
    return float(np.nanmax(np.abs(now - was) / np.maximum(np.abs(now), 1e-4 * power)))


def errors_at(given: Stratified, solved: Solved, loss: Loss) -> ReadoutErrors:
    """The errors of a solution.  Eq. (20.5)"""
    moments, labels, field = given.moments, given.labels, solved.field
    s = scores_of_ridge(moments, field)
    test, train = (float(error[0]) for error in errors_of_ridge(moments, s))
    of_loss = train, (test + moments.noise) / 2, train / 2
    if given.channel or not loss.is_square:
        mean = {key: float(x[0]) for key, x in losses(labels, moments.weights, loss, field).items()}
        of_loss = mean["train_error"], mean["loss_error"], mean["train_loss"]
    wrong, norm = np.nan, np.nan
    if labels.binary:
        wrong = float(wrong_at_nodes(labels, field)[0].sum(axis=-1) @ moments.weights)
    if not given.rows:  # moments of a sample have another readout
        _, T, a = solved.posterior
        diagonal = to_host(namespace(T).linalg.diagonal(T))
        each = to_host(a) ** 2 + diagonal / len(diagonal)
        norm = float(each[: len(each) - given.intercept].sum())
    return ReadoutErrors(test, *of_loss, wrong, solved.variance, norm)
