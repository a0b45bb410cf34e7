"""The errors of the readout at many numbers of samples and penalties, and what they are known to.

A point is solved on finer and finer strata until its errors stand still: more directions, more
nodes, and more Hermite degrees.  docs/theory.md 20
"""

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from solvers.arrays import namespace, to_host
from solvers.resources import GivenUp, deadline, one_thread
from solvers.results import Array, Status

from ..convex import Loss, error_at_nodes, losses
from ..errors import InvalidArgument
from ..saddle_point import ridge_errors, ridge_scores
from .first_layer import FirstLayer
from .outputs import sensitivity, wrong_outputs
from .rows import RowStrata
from .samples import Given
from .solve import Solved, solve_point
from .strata import Posterior, Stratified

TOLERANCE = 1e-3  # relative, of errors, that strata are asked for; the theory is off by 1 / n
COARSEST = 0.05  # that one more special direction may change an error by
MOST = 4  # special directions
ROUGH = 0.2  # of the tolerance, that errors are known to which are only compared
# a derivative of fourth order: steps in a logarithm, and weights
STEP, STENCIL = 0.02, ((1, 2 / 3), (-1, -2 / 3), (2, -1 / 12), (-2, 1 / 12))
BACKWARD = (0, 25 / 12), (-1, -4), (-2, 3), (-3, -4 / 3), (-4, 1 / 4)
PRECISION = 1e-11  # of the solutions that are subtracted


class ReadoutErrors(NamedTuple):
    """Errors of one readout, or arrays (P,) of those of many: of the target and of the label, in
    the loss, and of the class; the part of the first that the readout's samples are the reason of;
    its squared norm over p; standard errors; and the sensitivity of the class.  As a
    ``Solution`` has them."""

    test_error: Any
    train_error: Any
    loss_error: Any
    train_loss: Any
    classification_error: Any
    readout_variance: Any
    squared_norm: Any
    test_error_stderr: Any
    classification_error_stderr: Any
    classification_sensitivity: Any = np.nan


class ReadoutPoints(NamedTuple):
    """P points.

    Attributes
    ----------
    columns : dict of name -> array (P,)
        Errors, NaN where they are not known, and the account, by the names that a
        ``Solution`` has for them.
    last : Posterior or None
        The readout of the last point, over its samples; None where it is not known.
    given : Stratified or None
        The strata of the last point, where any were made.
    confusion : (C, C) or None
        Of several classes, at the last point.
    """

    columns: dict[str, Array]
    last: Posterior | None
    given: Stratified | None
    confusion: Array | None = None


UNKNOWN = {
    "degrees_of_freedom": np.nan, "degrees_of_freedom_2": np.nan, "kappa": np.nan,
    "residual_degrees": np.nan, "residual": np.nan,
    "quadrature_error": np.inf, "iterations": 0, "strata": 0, "directions": 0,
}  # fmt: skip


@one_thread()
def evaluate(
    model: Given,
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
    rows: list[dict[str, Any]] = [{}] * len(samples)
    start = None
    for i in np.lexsort((-lam, samples)):  # so that a point starts from one that is near
        point = _Point(loss, float(samples[i]), float(lam[i]), tol, start)
        errors, status = ReadoutErrors(*[np.nan] * 9), Status.CONVERGED
        try:
            # what overflows is found out, and flagged
            with deadline(time_limit), np.errstate(all="ignore"):
                errors = point.settle(model)
        except GivenUp as given_up:
            status = given_up.status
        known = {"converged": status is Status.CONVERGED, "status": status}
        rows[i], start = errors._asdict() | point.account | known, point.start
        advance()
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return ReadoutPoints(columns, start, point.given, point.confusion)


@one_thread()
@np.errstate(all="ignore")
def derivatives(points: ReadoutPoints, samples: float, lam: float, loss: Loss) -> Array:
    """The derivatives of test and training error in log n and in log lam, (2, 2), at the only one
    of ``points``, NaN where it is not known: differences of fourth order on its strata."""
    if points.given is None or not points.columns["converged"].all():
        return np.full((2, 2), np.nan)
    slopes = np.zeros((2, 2))
    rows = points.given.rows if isinstance(points.given.strata, RowStrata) else np.inf
    for axis, unit in enumerate(np.eye(2)):  # no more samples than rows
        beyond = not axis and samples * np.exp(2 * STEP) > rows
        for steps, weight in BACKWARD if beyond else STENCIL:
            n, penalty = np.array([samples, lam]) * np.exp(steps * STEP * unit)
            solved = solve_point(points.given, loss, n, penalty, points.last, PRECISION)
            if solved.status is not Status.CONVERGED:
                return np.full((2, 2), np.nan)
            slopes[axis] += weight * np.array(errors_at(points.given, solved, loss)[0][:2])
    return slopes / STEP


def check_memory(model: Given) -> None:
    """Raise ``InvalidArgument`` where twelve matrices (p, p), which a point takes, are more than
    there is memory."""
    need = 12 * 8.0 * model.width**2
    if hasattr(os, "sysconf") and need > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        name = "weights" if isinstance(model, FirstLayer) else "features"
        allowed = f"of fewer neurons: these take {need / 1e9:.2g} GB of memory"
        raise InvalidArgument(name, f"{model.width} neurons", allowed)


@dataclass
class _Point:
    """One point, solved on one set of strata after another until they have the same errors.

    Attributes
    ----------
    start : Posterior or None
        The readout of the last solution or, to begin with, of another point.
    given : Stratified or None
        The strata of the last solution.
    account : dict
        Of the point, as ``ReadoutPoints`` has it.
    confusion : (C, C) or None
        Of several classes.
    contraction : float
        Rate df_2 / n of the iterations of the square loss, from the first solution on.
    """

    loss: Loss
    samples: float
    lam: float
    tol: float
    start: Posterior | None
    given: Stratified | None = None
    account: dict[str, Any] = field(default_factory=UNKNOWN.copy)
    confusion: Array | None = None
    contraction: float = 1.0

    def settle(self, model: Given) -> ReadoutErrors:
        """The errors on strata that are fine enough, along directions that are enough: they are
        the same on coarser strata with one more direction; or on coarser strata, where one more
        direction changes little.

        Raises ``GivenUp`` where that is not reached.
        """
        if not isinstance(model, FirstLayer):  # of one level, with no error of strata
            self.account["quadrature_error"] = 0.0
            return self._solved(model.stratified(self.samples), 5e-3 * min(1.0, 1e-4 / self.tol))
        # the theory is of large n, p and d
        enough = max(self.tol, min(COARSEST, 1 / min(self.samples, *model.weights.shape)))
        count = model.special.shape[1]
        most = count if model.beside is not None else MOST
        while True:
            self.account["directions"] = count
            errors = self._solved(model.stratified(1, count))
            more = model.stratified(0, count + 1, last=3)
            beyond = coarse = self._solved(more or model.stratified(0, count), rough=True)
            self.account["quadrature_error"] = change = self._difference(beyond, errors)
            if change <= self.tol:
                return errors
            if more:
                coarse = self._solved(model.stratified(0, count), rough=True)
            worth, finer = self._difference(beyond, coarse), self._difference(coarse, errors)
            if worth <= max(enough, finer) or count >= most:
                break
            count += 1
        for level in itertools.count(2):
            self.account["quadrature_error"] = max(finer, worth)
            if finer <= self.tol:
                break
            coarse, errors = errors, self._solved(model.stratified(level, count))
            finer = self._difference(coarse, errors)
        if worth > enough:
            raise GivenUp(Status.QUADRATURE)
        return errors

    def _solved(
        self, given: Stratified | None, share: float = 0.05, rough: bool = False
    ) -> ReadoutErrors:
        """The errors on some strata, known to that ``share`` of the tolerance; or in ``rough`` good
        enough to compare, of which no account is kept."""
        if given is None:
            raise GivenUp(Status.QUADRATURE)
        at = self.samples, self.lam, self.start
        tol = max(1e-10, (ROUGH if rough else share) * self.tol)
        solved = solve_point(given, self.loss, *at, tol, self.contraction)
        self.account["iterations"] += solved.iterations
        if not rough:
            self.given = given
            self.account |= {"strata": given.strata.shares.size, "residual": solved.residual}
        if solved.status is not Status.CONVERGED:
            raise GivenUp(solved.status)
        errors, confusion = errors_at(given, solved, self.loss)
        if not rough:
            self.start, self.confusion = solved.posterior, confusion
            self.contraction = max(solved.freedom.lost / self.samples, 0.01)
            self.account |= degrees_at(given, solved, self.samples)
        if rounding_at(given, solved) > self.tol * errors.test_error:
            raise GivenUp(Status.ROUNDING)
        return errors

    def _difference(self, was: ReadoutErrors, now: ReadoutErrors) -> float:
        """Largest change of an error that is defined, relative to it, and to no less than a small
        part of the labels' power."""
        assert self.given is not None
        before, after = np.array(was), np.array(now)
        size = np.maximum(np.abs(after), 1e-4 * self.given.moments.power)
        return float(np.nanmax(np.abs(after - before) / size))


def rounding_at(given: Stratified, solved: Solved) -> float:
    """What rounding may change of the test error: a unit in the last digit of all terms that
    (20.4) adds and subtracts."""
    moments, field = given.moments, solved.field
    terms = field.centre**2 + 2 * np.abs(field.tau_slope[..., 0]) + field.variance
    size = (terms @ moments.weights)[: moments.outputs].sum()
    return float(np.finfo(float).eps * (size + moments.power))


def degrees_at(given: Stratified, solved: Solved, samples: float) -> dict[str, float]:
    """df_1, df_2, kappa and residual degrees, Eqs. (20.15), (20.16); docs/theory.md 22 of rows."""
    first, second, kappa, lost = solved.freedom
    shares, V = given.strata.shares, solved.field.response[0]
    left = (samples - lost) * (shares @ V) ** 2 / (shares @ V**2)
    known = {"degrees_of_freedom": first, "degrees_of_freedom_2": second, "kappa": kappa}
    return known | {"residual_degrees": float(left)}


def errors_at(given: Stratified, solved: Solved, loss: Loss) -> tuple[ReadoutErrors, Array | None]:
    """The errors of a solution, sums over outputs, and of classes the confusion matrix.
    Eqs. (20.5), (22.12)"""
    moments, labels, field = given.moments, given.labels, solved.field
    s, C = ridge_scores(moments, field), moments.outputs
    test, train = (float(error[:C].sum()) for error in ridge_errors(moments, s))
    of_loss = train, (test + moments.noise) / 2, train / 2
    if given.channel or not loss.is_square:
        mean = {key: float(x[0]) for key, x in losses(labels, moments.weights, loss, field).items()}
        of_loss = mean["train_error"], mean["loss_error"], mean["train_loss"]
    wrong, norm, scatter, confusion = np.nan, np.nan, [np.nan, np.nan], None
    each = [(s.square[:C] / s.slope**2).sum(axis=0)]
    if labels.binary:
        each.append(error_at_nodes(labels, field)[0].sum(axis=-1))
    elif given.classes:
        of_class, confusion = wrong_outputs(moments, field.centre, field.variance)
        each.append(of_class)
    if len(each) > 1:
        wrong = float(each[1] @ moments.weights)
    if isinstance(given.strata, RowStrata):  # other rows would have other errors
        scatter[: len(each)] = [float(x.std() / np.sqrt(x.size)) for x in each]
        if given.classes:
            scatter.append(sensitivity(moments, field.centre, field.variance, wrong))
    # moments of a sample have another readout
    if C == 1 and (given.rows is None or isinstance(given.strata, RowStrata)):
        _, T, a = solved.posterior
        diagonal = to_host(namespace(T).linalg.diagonal(T))
        size = to_host(a)[0] ** 2 + diagonal / len(diagonal)
        norm = float(size[: len(size) - given.intercept].sum())
    return ReadoutErrors(test, *of_loss, wrong, solved.variance, norm, *scatter), confusion
