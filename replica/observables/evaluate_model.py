"""The theory of one model at many points, of any loss.

The answer at a point does not depend on the other points that are solved with it.  Points of ridge
regression are solved on tables of growing size, shared by all points of the model, each until its
answer solves the equations on the table before as well, within the tolerance.

A bias t common to all neurons, trained with the readout, minimises the training objective of
docs/theory.md 4 (docs/theory.md 7, [C] App. C.8), a function of one variable around the solver,
which knows its slope, too (``convex.slope_in_bias``).  It may have several minima: a scan by rough
solutions, of all points at once, tells where, and solutions to the full tolerance find the bottom
of the lowest.
"""

from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from solvers.minima import lowest_minimum
from solvers.resources import TIME_LIMIT, GivenUp, check_time, deadline, one_thread, time_left
from solvers.results import Array, Indices, Status

from ..convex import (
    BIAS_SCAN,
    LOSS_QUADRATURE_TOLERANCE,
    LOSS_RESIDUAL_TOLERANCE,
    LOSSES,
    Loss,
    Task,
    classification_error,
    slope_in_bias,
    solve_convex,
    training_objective,
)
from ..dimension import evaluate_at_dimension
from ..equivalence import Table, table_at
from ..errors import InvalidArgument
from ..problem import Model, SpikedRandomFeatures
from ..reuse import IN_DOUBT, evaluate_reused
from ..saddle_point import (
    COLUMNS,
    LARGEST_MATRIX,
    Evaluation,
    ridge,
    ridge_scores,
    solve_on_growing_tables,
    unknown_overlaps,
)

RIDGE_QUADRATURE_TOLERANCE = 1e-10
# Nodes of a table times pairs of groups, or of many groups four times these: a point of ridge
# regression keeps some ten arrays so large of every table, in all below 1 GB.
LARGEST_TABLE = 2**23
CHUNK = 2**17  # points times nodes handled at once: 1 MiB an array

# Results of reused samples in the limit that stand for those of fresh ones.
# Largest lam / n of reused samples at a dimension.  From .03 on errors are 4 % and more off
# simulations (docs/theory/21), which the change of fresh samples does not tell.
LARGEST_PENALTY = 0.02
OF_REUSED = (
    *("test_error", "train_error", "classification_error"),
    *("quadrature_error", "converged", "status"),
)
LABELS_NEEDED = (  # by a loss of the margin
    "a regression loss, such as square or huber:1, for real labels; hinge and logistic take labels "
    "+-1: target sign, sign(z1*z2), or classes:1,-1 on a mixture of inputs, without noise or with "
    "label noise flip:0.1 in its place; of features numpy.where(labels > 0, 1, -1)"
)


@one_thread()  # more only get into each other's way: the matrices are small
def evaluate(
    model: SpikedRandomFeatures,
    alpha: Array,
    lam: Array,
    *,
    loss: Loss = LOSSES["square"],
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> Evaluation:
    """The theory of ``model`` at the points (alpha[i], lam[i]), arrays of shape (P,)."""
    if loss.kind == "margin" and not model.labels.binary:
        raise InvalidArgument("loss", loss.name, LABELS_NEEDED)
    model_settings = loss, quadrature_tol, time_limit
    if model.follows_alpha:
        options: Any = {"loss": loss, "quadrature_tol": quadrature_tol, "time_limit": time_limit}
        return _models_at_alphas(model, alpha, lam, **options)
    if model.own_dimension < np.inf and loss.is_square:
        return _at_own_dimension(model, alpha, lam, quadrature_tol, time_limit)
    if model.reuse:
        return evaluate_reused(model, alpha, lam, *model_settings)
    with deadline(time_limit * len(alpha)):
        if model.train_bias:
            return _at_trained_bias(model, alpha, lam, *model_settings)
        return evaluate_at_bias(model, alpha, lam, *model_settings)


def _at_own_dimension(
    model: SpikedRandomFeatures, alpha: Array, lam: Array, tol: float | None, time_limit: float
) -> Evaluation:
    """Ridge regression at the points of a network at its own dimension.  docs/theory.md 23

    Where the readout reuses the step's samples, the relative change of its errors from the limit is
    taken for that on fresh samples, unless it is large: benchmarks/REUSE.md has both beside
    simulations.
    """
    # Largest change of an error of fresh samples from the limit, up to which it is that of reused
    # ones: errors are 1.2 % off simulation at 3.1 %, and 3 and 8 % off at 4.3 and 11 %.
    farthest_of_reused = 0.035
    fresh_model = model.on_fresh_samples.of_one_kind
    limit = evaluate(replace(fresh_model, dimension=np.inf), alpha, lam, time_limit=time_limit)
    if model.reuse:
        limit_model = replace(model, dimension=np.inf)
        reused = evaluate(limit_model, alpha, lam, quadrature_tol=tol, time_limit=time_limit)
        limit.store(np.arange(len(alpha)), **{name: getattr(reused, name) for name in OF_REUSED})
    at_dimension = evaluate_at_dimension(fresh_model, limit, alpha, lam, tol, time_limit)
    if model.reuse:
        errors, of_limit = (np.array([e.test_error, e.train_error]) for e in (at_dimension, limit))
        is_far_from_limit = np.abs(errors / of_limit - 1).max(axis=0) > farthest_of_reused
        is_far_from_limit |= lam > LARGEST_PENALTY * alpha * model.dimension
        at_dimension.flag(at_dimension.converged & is_far_from_limit, Status.FAR_FROM_LIMIT)
        at_dimension.overlaps, at_dimension.conjugates = unknown_overlaps(len(alpha))
    return at_dimension


def _models_at_alphas(
    model: SpikedRandomFeatures, alpha: Array, lam: Array, **options: Any
) -> Evaluation:
    """The points, each of the step that has its alpha; without overlaps, of which there may be
    other numbers."""
    evaluations = Evaluation(len(alpha))
    for model_alpha in np.unique(alpha):
        alpha_rows = np.flatnonzero(alpha == model_alpha)
        one = evaluate(model.at_alpha(model_alpha), alpha[alpha_rows], lam[alpha_rows], **options)
        evaluations.store(alpha_rows, **{name: getattr(one, name) for name in COLUMNS})
    return evaluations


def _at_trained_bias(
    model: Model, alpha: Array, lam: Array, loss: Loss, tol: float | None, time_limit: float
) -> Evaluation:
    """The points (alpha[i], lam[i]), arrays (P,), each at its best bias: NaN, as its errors are,
    where that is no minimum inside the scan or was not solved.  Those that are scanned take
    ``time_limit`` seconds each, and all end at the deadline."""

    def at_bias(
        bias: float, rows: list[int], tol: float | None, seconds: float
    ) -> tuple[Evaluation, Array]:
        """Some points at one bias; their training objectives and slopes, (2, P)."""
        biased_model, a, b = model.with_bias(bias, train_bias=True), alpha[rows], lam[rows]
        with deadline(seconds * len(rows)):
            result = evaluate_at_bias(biased_model, a, b, loss, tol, seconds)
        bias_objective = training_objective(result.train_loss, result.overlaps, a, b, model.beta)
        return result, np.array([bias_objective, result.slope])

    all_rows, is_ridge = list(range(len(alpha))), loss.is_square and not model.labels.channel
    scan_time = np.inf if is_ridge else time_limit / len(BIAS_SCAN)
    # to a rough tolerance: which of its cells hold a minimum is told by less
    bias_scan = np.array([at_bias(float(bias), all_rows, 1e-3, scan_time)[1] for bias in BIAS_SCAN])
    # errors, which depend on the bias linearly, are then known as well as otherwise
    xtol = 1e-10 if is_ridge else 1e-6

    best_points = Evaluation(len(alpha))

    def find_bias(row: int) -> None:
        """The best bias of one point."""
        fine_at = cache(lambda bias: at_bias(bias, [row], tol, np.inf))
        bias, scan_row = np.nan, bias_scan[..., row].T
        if time_left() > 0:
            bias = lowest_minimum(lambda t: fine_at(t)[1].ravel(), BIAS_SCAN, *scan_row, xtol=xtol)
        best_evaluation = fine_at(float(np.nan_to_num(bias)))[0]
        best_points.store([row], **vars(best_evaluation) | {"trained_bias": bias})
        if np.isnan(bias):
            best_points.flag([row], Status.TIME if time_left() < 0 else Status.AT_EDGE)

    for row in all_rows:
        find_bias(row)
    return best_points


def evaluate_at_bias(
    model: Model,
    alpha: Array,
    lam: Array,
    loss: Loss,
    tol: float | None,
    time_limit: float = TIME_LIMIT,
) -> Evaluation:
    """Solutions at the points (alpha[i], lam[i]), arrays (P,), and at the model's bias, whether or
    not a bias is trained; to the quadrature tolerance ``tol``, or that of the loss, before the
    deadline.  What a single point takes alone has ``time_limit`` seconds."""
    classification_tolerance = 1e-8
    ridge_residual_tolerance = 1e-10
    is_ridge = loss.is_square and not model.labels.channel  # so this is ridge regression
    if tol is None:
        tol = RIDGE_QUADRATURE_TOLERANCE if is_ridge else LOSS_QUADRATURE_TOLERANCE
    task = Task(model, loss, alpha, lam, tol)
    try:
        with deadline(time_limit):
            _ = model.geometry  # a network's rows, once for all points
        if is_ridge:
            evaluated, all_points = Evaluation(len(alpha)), np.arange(len(alpha))
            solve_level = partial(_solve_ridge, task, evaluated)
            solve_on_growing_tables(evaluated, all_points, solve_level, 1, table_at(model, 0))
        else:
            evaluated = solve_convex(task, time_limit)
    except GivenUp as given_up:
        evaluated = Evaluation(len(alpha))
        evaluated.flag(slice(None), given_up.status)
    if not hasattr(evaluated, "overlaps"):  # not even the first of the tables was made
        evaluated.overlaps, evaluated.conjugates = unknown_overlaps(len(alpha))
        return evaluated
    table = table_at(model, 0)
    assert table is not None
    # A test error is a difference of terms of the size of the labels' power: of the squares that
    # (h - C)^2 - 2 P.g + S^2 has, C^2 + S^2 is at most twice that power and twice the error.
    label_power = table.label_power.sum() - (0.0 if is_ridge else table.noise)  # Eqs. (4.7), (4.11)
    is_rounded = (evaluated.test_error < IN_DOUBT * label_power) | (evaluated.train_error < 0)
    evaluated.close(ridge_residual_tolerance if is_ridge else LOSS_RESIDUAL_TOLERANCE, is_rounded)
    if model.labels.binary:
        class_rows = np.flatnonzero(evaluated.converged)
        class_tol = (
            classification_tolerance if is_ridge else min(classification_tolerance, tol / 10)
        )
        with suppress(GivenUp):
            class_error = classification_error(model, evaluated.overlaps_at(class_rows), class_tol)
            evaluated.store(class_rows, classification_error=class_error)
    if len(table.kinds) != len(table.c):
        evaluated.overlaps = ridge.overlaps_of_groups(table, evaluated.overlaps)
        evaluated.conjugates = ridge.conjugates_of_groups(table, evaluated.conjugates)
    return evaluated


def _solve_ridge(
    task: Task, result: Evaluation, level: int, points: Indices, coarse_table: Any
) -> tuple[Table | None, Indices]:
    """Ridge regression at some ``points`` of a task on the table of a level, from where they were
    found before, with the error of the ``coarse_table`` before it; the table, and the points that
    need a larger one.  docs/theory.md 4"""
    groups = len(coarse_table.c)
    node_size = groups**2 if groups * (groups + 3) / 2 <= LARGEST_MATRIX else 4 * groups
    if level > 1:
        check_time()
        if 2 * coarse_table.weights.size * node_size >= LARGEST_TABLE:  # mostly twice the last
            raise GivenUp(Status.MEMORY)
    ridge_table = table_at(task.model, level)
    if ridge_table is None:
        return None, points[:0]
    chunk_points = max(1, CHUNK // (ridge_table.weights.size * len(ridge_table.c) ** 2))
    for rows in (points[i : i + chunk_points] for i in range(0, len(points), chunk_points)):
        found_before = result.converged[rows].all()
        ridge_start = (result.overlaps.V1[rows], result.overlaps.V2[rows]) if found_before else None
        alpha, lam = task.alpha[rows], task.lam[rows]
        ridge_point = ridge.solve_points(ridge_table, alpha, lam, ridge_start, coarse_table)
        is_solved, results = ridge_point.status == Status.CONVERGED, ridge_point._asdict()
        ridge_test, ridge_train = results.pop("errors")
        result.store(
            rows,
            **results,
            test_error=ridge_test,
            train_error=ridge_train,
            loss_error=(ridge_test + ridge_table.noise) / 2,
            train_loss=ridge_train / 2,
            nodes=ridge_table.weights.size,
            converged=is_solved,
            open=~(is_solved & (ridge_point.quadrature_error <= task.tol)),
        )
        if task.model.train_bias:
            ridge_score = partial(ridge_scores, ridge_table)
            slope = slope_in_bias(task.model, ridge_table, alpha, ridge_point.overlaps, ridge_score)
            result.store(rows, slope=slope)
    return ridge_table, points[result.open[points] & result.converged[points]]
