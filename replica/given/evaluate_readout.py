"""Errors of the readout at many numbers of samples and penalties, and their accuracy.

A point is solved on finer and finer strata until its errors stand still: more directions, more
nodes, and more Hermite degrees.  docs/theory.md 20
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from solvers.arrays import namespace, to_host
from solvers.resources import GivenUp, deadline, one_thread
from solvers.results import Array, Status

from ..convex import Loss, answers_of_two, error_at_nodes, losses
from ..errors import InvalidArgument
from ..problem import check_bytes
from ..saddle_point import Field, ridge_errors, ridge_scores
from .classes import wrong_outputs
from .equations import Freedom, RowStrata
from .first_layer import SHARES, FirstLayer
from .gaussian import FeatureMoments
from .sample import FeatureSample
from .solve_point import Solved, solve_point
from .strata import Posterior, Stratified

Given = FirstLayer | FeatureSample | FeatureMoments
TOLERANCE = 1e-3  # relative, of errors, that strata are asked for; the theory is off by 1 / n
NEARLY_ALL = (
    0.8  # of the rows, from which on losses with a kink may have no answer: docs/reliability.md
)

# Errors of one readout: of the target and of the label, in the loss, and of the class; the part of
# the first that the readout's samples are the reason of; its squared norm over p; standard errors.
ERRORS = (
    *("test_error", "train_error", "loss_error", "train_loss", "classification_error"),
    *("readout_variance", "squared_norm", "test_error_stderr", "classification_error_stderr"),
)
# All that is said of a point, before anything is known.
UNKNOWN_POINT = dict.fromkeys([*ERRORS, *Freedom._fields, "residual"], np.nan)
UNKNOWN_POINT |= {"quadrature_error": np.inf, "iterations": 0, "strata": 0, "directions": 0}


def has_classes(model: Given) -> bool:
    """True if outputs name a class: labels are +-1, or one of several."""
    return model.binary or bool(getattr(model, "classes", None))


class GivenPoint(NamedTuple):
    """Theory of the readout at a point.

    Attributes
    ----------
    columns : dict
        Errors, NaN where they are not known, and the account, by the names that a
        ``Solution`` has for them.
    last : Posterior or None
        The readout, over its samples; None where it is not known.
    given : Stratified or None
        The strata, where the readout is known.
    confusion : (C, C) or None
        Shares of the answers to each class.
    row_errors : (2, N) or None
        Test and classification error of each row, where all rows are strata.
    law : Field or None
        The law of the outputs in the strata.
    """

    columns: dict[str, Any]
    last: Posterior | None = None
    given: Stratified | None = None
    confusion: Array | None = None
    row_errors: Array | None = None
    law: Field | None = None


def evaluate_readout(
    model: Given,
    samples: Array,
    lam: Array,
    loss: Loss,
    tol: float = TOLERANCE,
    time_limit: float = np.inf,
) -> Iterator[tuple[int, GivenPoint]]:
    """The theory at the points (samples[i], lam[i]), arrays (P,), in ``time_limit`` seconds each:
    every index i and its point, in an order in which each starts from one that is near.  Points of
    more samples than the rows allow have the refusal as their status.

    Raises
    ------
    InvalidArgument
        If matrices between all neurons take more memory than there is.
    """
    check_memory(model)
    stratify = lru_cache(maxsize=1)(model.stratified)  # penalties share the strata
    start_readout = None
    for i in np.lexsort((-lam, samples)).tolist():
        point = _Point(loss, float(samples[i]), float(lam[i]), tol, start_readout)
        yield i, point.solve(model, stratify, time_limit)
        start_readout = point.start


def check_memory(model: Given) -> None:
    """Raise ``InvalidArgument`` where twelve matrices (p, p), which a point takes, are more than
    there is memory; of fewer rows than features (N, N), and three copies of the rows."""
    neuron_bytes = 12 * 8.0 * model.width**2
    if isinstance(model, FeatureSample) and model.is_wide:
        neuron_bytes = 8.0 * (12 * len(model.labels) ** 2 + 3 * model.features.size)
    array_name = "weights" if isinstance(model, FirstLayer) else "features"
    fewer_neurons = f"of fewer neurons: these take {neuron_bytes / 1e9:.2g} GB of memory"
    check_bytes(neuron_bytes, array_name, f"{model.width} neurons", fewer_neurons)


@dataclass
class _Point:
    """Point that is solved on finer and finer strata until its errors converge.

    Attributes
    ----------
    start : Posterior or None
        The readout of the last solution or, to begin with, of another point.
    account : dict
        Iterations, residual and errors of all solutions, as ``GivenPoint`` has them.
    """

    loss: Loss
    samples: float
    lam: float
    tol: float
    start: Posterior | None
    account: dict[str, Any] = field(default_factory=UNKNOWN_POINT.copy)

    @one_thread()
    def solve(
        self, model: Given, stratify: Callable[[float], Any], time_limit: float
    ) -> GivenPoint:
        """The theory at the point, flagged where its errors do not settle in so many seconds or
        its number of samples is refused."""
        found = GivenPoint({})
        status: Status | InvalidArgument = Status.CONVERGED
        try:
            # what overflows is found out, and flagged
            with deadline(time_limit), np.errstate(all="ignore"):
                found = self.settle(model, stratify)
        except GivenUp as given_up:
            status = given_up.status
        except InvalidArgument as refusal:
            status = refusal
        ended = {"converged": status is Status.CONVERGED, "status": status}
        return found._replace(columns=UNKNOWN_POINT | self.account | found.columns | ended)

    def settle(self, model: Given, stratify: Callable[[float], Any]) -> GivenPoint:
        """Errors on strata of so many special directions that one more changes little, with more
        and more nodes until errors agree with those on coarser strata.  What has one level of
        strata has those of ``stratify``, at a number of samples.

        Raises ``GivenUp`` where that is not reached.
        """
        rough_share = 0.2  # of the tolerance, that errors are known to which are only compared
        if not isinstance(model, FirstLayer):  # of one level, with no error of strata
            self.account["quadrature_error"] = 0.0
            stratified = stratify(self.samples)
            is_row_part = isinstance(model, FeatureSample) and stratified.rows != len(model.labels)
            return self._solved(stratified, 0.1 if is_row_part else 5e-4)  # its errors scatter more
        # Change of an error by one more special direction that is tolerated: at most 5 %, and no
        # less than the theory of large n, p and d is off by.
        finite_size = 1 / min(self.samples, *model.weights.shape)
        direction_tol = max(self.tol, min(0.05, finite_size))
        first_count = model.special.shape[1]
        most_directions = first_count if model.beside is not None else max(first_count, len(SHARES))
        for directions in range(first_count, most_directions + 1):
            self.account["directions"] = directions
            rough = self._solved(model.stratified(0, directions), rough_share)
            wider = model.stratified(0, directions + 1, last=3)
            beyond = rough if wider is None else self._solved(wider, rough_share)
            wider_change = _largest_change(rough, beyond)
            if wider_change <= direction_tol:
                break
        for level in itertools.count(1):
            fine_readout = self._solved(model.stratified(level, directions))
            assert fine_readout.given is not None
            level_change = _largest_change(rough, fine_readout)
            level_change = max(level_change, fine_readout.given.label_error)
            self.account["quadrature_error"] = max(level_change, wider_change)
            if level_change <= self.tol:
                break
            rough = fine_readout
        if wider_change > direction_tol:
            raise GivenUp(Status.SPECIAL_DIRECTIONS)
        if np.isnan(fine_readout.columns["classification_error"]):
            return fine_readout
        return self._checked(model, fine_readout)

    def _checked(self, layer: FirstLayer, found: GivenPoint) -> GivenPoint:
        """The point ``found``, or that on strata between the classes where these change its
        classification error: outputs in a stratum are taken for Gaussian.

        The latter is tried where the error is another at drawn inputs, or where too few of these
        are wrong to tell.  Raises ``GivenUp`` where it is still another, or nothing tells.
        """
        tried, largest = 0.02, max(0.06, self.tol)  # relative differences
        difference, stderr = self._difference(layer, found)
        is_doubtful = stderr > tried or difference > max(tried, 3 * stderr)
        if is_doubtful and layer.between_classes is not None:
            finer = replace(self, account=UNKNOWN_POINT.copy())
            try:
                between = finer.settle(layer.between_classes, lambda n: None)
                errors = [one.columns["classification_error"] for one in (found, between)]
                if abs(errors[1] - errors[0]) > tried * max(errors):
                    self.account, self.start = finer.account, finer.start
                    return between
            except GivenUp:
                if stderr > largest:
                    raise
        if difference > max(largest, 4 * stderr):
            raise GivenUp(Status.OUTPUTS)
        return found

    def _difference(self, layer: FirstLayer, found: GivenPoint) -> tuple[float, float]:
        """How far the classification error is from that at drawn inputs, and the standard error of
        this difference; both relative to the larger of the errors."""
        assert found.last is not None
        assert found.given is not None
        assert found.law is not None
        drawn, T, mean_readout = layer.drawn, *map(to_host, found.last[1:])
        # T is of the first label; others' variances have the same shape
        in_strata = found.law.variance - found.given.strata.along(found.last.mean)[2]
        of_labels = in_strata @ found.given.moments.weights
        centre, of_label, _ = drawn.strata.along(mean_readout)
        variance = drawn.strata.trace(T) * (of_labels / of_labels[0])[:, None]
        variance = drawn.strata.blurred(centre, variance)
        law = Field(centre, of_label[..., None], variance, np.ones((1, centre.shape[1])))
        error, _ = class_errors(drawn, law)
        at_drawn, expected = float(error.mean()), found.columns["classification_error"]
        larger = max(at_drawn, expected, 1e-300)
        # of few wrong inputs the scatter among those drawn is too small
        scatter = max(float(error.std()), np.sqrt(larger * (1 - larger)))
        return abs(at_drawn - expected) / larger, scatter / np.sqrt(error.size) / larger

    def _solved(self, stratified: Stratified | None, tol_share: float = 0.05) -> GivenPoint:
        """Solve the point on ``stratified``, to ``tol_share`` of the tolerance, from the last
        readout; GivenUp where there are no strata, or it does not converge."""
        if stratified is None:
            raise GivenUp(Status.QUADRATURE)
        if stratified.intercept and self.samples <= 1:  # V is infinite, as n - df_1 is 0
            raise GivenUp(Status.ONE_SAMPLE)
        point_arguments = self.samples, self.lam, self.start, max(1e-10, tol_share * self.tol)
        point_solution = solve_point(stratified, self.loss, *point_arguments)
        self.account["iterations"] += point_solution.iterations
        self.account["residual"] = point_solution.residual
        if point_solution.status is not Status.CONVERGED:
            rows = isinstance(stratified.strata, RowStrata) and stratified.rows
            all_rows = rows and self.samples >= rows * (NEARLY_ALL if self.loss.kinks else 1.0)
            raise GivenUp(Status.ALL_ROWS if all_rows else point_solution.status)
        self.start = point_solution.posterior
        point_errors, confusion, each_row = errors_at(stratified, point_solution, self.loss)
        moments, field = stratified.moments, point_solution.field
        # the test error's rounding is at most the sum of the moduli of all terms of (20.4), times
        # the relative accuracy of the moments
        error_terms = field.centre**2 + 2 * np.abs(field.tau_slope[..., 0]) + field.variance
        error_size = (error_terms @ moments.weights)[: moments.outputs].sum() + moments.power
        if stratified.strata.accuracy * error_size > self.tol * point_errors[0]:
            raise GivenUp(Status.ROUNDING)
        columns = (
            dict(zip(ERRORS, point_errors.tolist(), strict=True)) | point_solution.freedom._asdict()
        )
        columns |= {"strata": stratified.strata.shares.size, "residual": point_solution.residual}
        return GivenPoint(columns, point_solution.posterior, stratified, confusion, each_row, field)


def _largest_change(coarse: GivenPoint, fine: GivenPoint) -> float:
    """Largest relative change of the ``ERRORS`` that are known, from one solution to the next; an
    error below a small part of the labels' power is compared with that part."""
    assert fine.given is not None
    before, after = (np.array([point.columns[name] for name in ERRORS]) for point in (coarse, fine))
    changes = np.abs(after - before) / np.maximum(np.abs(after), 1e-7 * fine.given.moments.power)
    return float(np.nanmax(changes))


def errors_at(
    stratified: Stratified, solved: Solved, loss: Loss
) -> tuple[Array, Array | None, Array | None]:
    """The ``ERRORS`` of a solution, sums over outputs; of classes the confusion matrix; and test
    and classification error of each row.  Eqs. (20.5), (22.12)"""
    moments, labels, field = stratified.moments, stratified.labels, solved.field
    s, C = ridge_scores(moments, field), moments.outputs
    test, train_error = (float(label_error[:C].sum()) for label_error in ridge_errors(moments, s))
    of_loss = train_error, (test + moments.noise) / 2, train_error / 2
    if stratified.channel or not loss.is_square:
        mean = losses(labels, moments.weights, loss, field)
        of_loss = tuple(mean[name].item() for name in ("train_error", "loss_error", "train_loss"))
    norm, by_row = np.nan, isinstance(stratified.strata, RowStrata)
    each = (s.square[:C] / s.slope**2).sum(axis=0)
    if by_row:
        # A row that shares no feature with others has the output 0, known to rounding, whose sign
        # means nothing; and variances are iterated to a part of their mean.
        output_rounding = 1e-8 * field.centre**2 + 1e-5 * field.variance
        variance_floor = (output_rounding @ moments.weights)[:C].mean()
        outputs_in_sum = 1 + (np.arange(len(output_rounding)) >= C)[:, None]
        added = variance_floor * outputs_in_sum * (field.variance[:C] < variance_floor).any(axis=0)
        field = field._replace(variance=field.variance + added)
    class_error, confusion = class_errors(stratified, field)
    missed = (class_error * moments.weights).sum()
    if C == 1 and (stratified.rows is None or by_row):  # moments of a sample have another readout
        _, T, a = solved.posterior
        T_diagonal = to_host(namespace(T).linalg.diagonal(T))
        readout_squares = to_host(a)[0] ** 2 + T_diagonal / stratified.strata.width
        norm = float(readout_squares[: len(readout_squares) - stratified.intercept].sum())
    row_errors = np.array(np.broadcast_arrays(each, class_error))
    # other rows would have other errors
    stderrs = row_errors.std(axis=1) / np.sqrt(s.slope.size) if by_row else 2 * [np.nan]
    point_errors = np.array([test, *of_loss, missed, solved.variance, norm, *stderrs])
    return point_errors, confusion, row_errors if by_row else None


def class_errors(stratified: Stratified, field: Field) -> tuple[Array, Array | None]:
    """Classification error of each stratum, and the confusion matrix; NaN and None where labels
    are no classes."""
    moments, labels = stratified.moments, stratified.labels
    if labels.binary:
        error = error_at_nodes(labels, field)[0].sum(axis=-1)
        return error, answers_of_two(labels, field, moments.weights)
    if stratified.classes:
        return wrong_outputs(moments, field.centre, field.variance)
    return np.array(np.nan), None
