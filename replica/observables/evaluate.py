"""Points of one model, each on the coarsest quadrature table that resolves it.

Points are solved on tables of growing size, shared by all points of the model, each until its
answer solves the equations on the table before as well, within the tolerance.  A loss other than
the square may leave layers in kappa that no shared table resolves: its points go on to tables of
their own (``layered``) as soon as the next shared one is not expected to resolve them.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array, Rows, Status

from ..convex import (
    LOSS_QUADRATURE_TOLERANCE,
    LOSS_RESIDUAL_TOLERANCE,
    Evaluation,
    LabelTable,
    Loss,
    Losses,
    PointsOnTable,
    Task,
    assign,
    change_of_overlaps,
    change_of_points,
    classification_error,
    concatenate,
    first_level,
    has_layers,
    label_table,
    sharp,
    slope_of_loss,
    slope_of_ridge,
    solve_layered,
    solve_points,
    solve_refined,
)
from ..equivalence import Table, table_at
from ..errors import InvalidArgument
from ..problem import Model
from ..saddle_point import Overlaps, residual, ridge

QUADRATURE_TOLERANCE = 1e-10
RESIDUAL_TOLERANCE = 1e-10
CLASSIFICATION_TOLERANCE = 1e-8
GROWTH = 1.5  # nodes of a table over those of the one below
COARSE = 0.02  # error of the table below the first
CHUNK = 2**17  # points times nodes handled at once: 256 KiB an array, kept in the cache

AnyTable = TypeVar("AnyTable", Table, LabelTable)
Solve = Callable[[Rows, Overlaps | None], Evaluation]  # points on one table, from guesses


def evaluate_at_bias(
    model: Model, alpha: Array, lam: Array, loss: Loss, tol: float | None
) -> Evaluation:
    """The points (alpha[i], lam[i]), arrays (P,), to the quadrature tolerance ``tol`` or that of
    the loss; at the model's bias, whether or not one is trained."""
    if is_ridge(model, loss):
        return evaluate_ridge(model, alpha, lam, tol)
    return evaluate_convex(model, alpha, lam, loss, tol)


def is_ridge(model: Model, loss: Loss) -> bool:
    """Whether the loss is the square, of labels that E[y | z] and a variance tell all about."""
    return loss.is_square and not model.labels.channel


def evaluate_ridge(model: Model, alpha: Array, lam: Array, tol: float | None) -> Evaluation:
    """Ridge regression at the points (alpha[i], lam[i]), arrays (P,).  docs/theory.md 4"""
    tol = QUADRATURE_TOLERANCE if tol is None else tol
    kept: Evaluation | None = None
    rows = np.arange(len(alpha))
    for coarse, fine in _successive_tables(lambda level: table_at(model, level)):

        def solve(
            at: Rows, start: Overlaps | None, coarse: Table = coarse, fine: Table = fine
        ) -> Evaluation:
            points = ridge.solve_points(fine, alpha[at], lam[at], start)
            train, unknown = points.errors.train, np.full(len(at), np.nan)
            test = points.errors.test + fine.noise
            losses = Losses(train / 2, train.copy(), test / 2, unknown)
            own, error = (residual(table, alpha[at], lam[at], points) for table in (fine, coarse))
            slope = slope_of_ridge(model, fine, alpha[at], points)
            return _evaluation(points, losses, own, error, fine, slope)

        kept = _solve_again(solve, fine.weights.size, kept, rows)
        # not (x <= tol), rather than x > tol: an undefined estimate is not a small one.
        rows = rows[~(kept.quadrature_error[rows] <= tol)]
        if not rows.size:
            break
    assert kept is not None  # the first tables are there for every model
    if model.labels.binary:
        wrong, error = _classification(model, kept, CLASSIFICATION_TOLERANCE)
        wrong[~(error <= CLASSIFICATION_TOLERANCE)] = np.nan
        kept = replace(kept, losses=kept.losses._replace(classification=wrong))
    return _with_status(fine, kept, tol, RESIDUAL_TOLERANCE)


def evaluate_convex(
    model: Model, alpha: Array, lam: Array, loss: Loss, tol: float | None
) -> Evaluation:
    """A convex loss at the points (alpha[i], lam[i]), arrays (P,).  docs/theory.md 6"""
    tol = LOSS_QUADRATURE_TOLERANCE if tol is None else tol
    layered = has_layers(model, loss)
    table, kept = _on_shared_tables(model, alpha, lam, loss, tol, layered)
    for row in np.flatnonzero(~(kept.converged & (kept.quadrature_error <= tol))):
        one = np.array([row])
        task = Task(model, loss, alpha[one], lam[one])
        if not layered:
            finer = solve_refined(task, kept.at(one), tol)
            kept = assign(kept, one, finer)
            continue
        known = kept.points.status[row] in (Status.CONVERGED, Status.LEFT)
        start = kept.at(one).points.overlaps if known else None
        found = solve_layered(task, start, tol)
        if found is not None and not (
            kept.converged[row] and kept.quadrature_error[row] <= found.quadrature_error[0]
        ):
            kept = assign(kept, one, found)
    if model.labels.binary:
        wrong, change = _classification(model, kept, min(CLASSIFICATION_TOLERANCE, tol / 10))
        kept = replace(
            kept,
            losses=kept.losses._replace(classification=wrong),
            quadrature_error=np.maximum(
                kept.quadrature_error, change / np.maximum(np.abs(wrong), 1e-4)
            ),
        )
    return _with_status(table, kept, tol, LOSS_RESIDUAL_TOLERANCE)


def _on_shared_tables(
    model: Model, alpha: Array, lam: Array, loss: Loss, tol: float, layered: bool
) -> tuple[Table, Evaluation]:
    """The points on the first tables, which all share, and these; if ``layered``, when each may
    have tables of its own, on those after them, too, as long as the next is expected to do: a
    point is left as soon as it shows that it is not."""
    # where noise does not blur the kinks, a point that is not easy is one for its own tables
    quick = layered and loss.jumps and (model.labels.binary or sharp(model, loss))
    kept: Evaluation | None = None
    rows = np.arange(len(alpha))
    error = np.full(len(alpha), COARSE)

    def solve(
        coarse: LabelTable, fine: LabelTable, leave: bool, at: Rows, start: Overlaps | None
    ) -> Evaluation:
        def give_up(near: Overlaps, after: Overlaps, which: Rows) -> NDArray[np.bool_]:
            below = PointsOnTable(coarse, loss, alpha[at[which]], lam[at[which]])
            error = change_of_overlaps(below, near, after=after)
            return (error > tol) & (_expected(error, COARSE) > tol)

        problem = PointsOnTable(fine, loss, alpha[at], lam[at])
        ask = give_up if leave else None
        points, losses = solve_points(problem, start, quick=quick, give_up=ask)
        left, change = points.status == Status.LEFT, np.full(len(at), np.inf)
        if not left.all():
            below = problem._replace(label_table=coarse)
            change = np.where(left, np.inf, change_of_points(below, points, losses))
        slope = slope_of_loss(model, fine, loss, alpha[at], points)
        return _evaluation(points, losses, points.residual, change, fine.table, slope)

    for coarse, fine in _successive_tables(
        lambda by: label_table(model, first_level(model).along(by=by - 1))
    ):
        table, first = fine.table, kept is None
        on_these = partial(solve, coarse, fine, layered and first)
        kept = _solve_again(on_these, table.weights.size, kept, rows)
        if not layered:
            return table, kept
        before, error = error, kept.quadrature_error.copy()
        met = kept.converged & (error <= tol)
        # what two tables did not solve is not a matter of quadrature
        rows = rows[~met[rows] & (kept.converged[rows] | (first & (not quick)))]
        rows = rows[~(_expected(error[rows], before[rows]) > tol)]
        if not rows.size:
            return table, kept
    if kept is None:
        raise InvalidArgument("loss", loss.name, "square for a model of so many directions")
    return table, kept


def _expected(error: Array, before: Array | float) -> Array:
    """What the next table leaves, if this one has that error and the one before it had another."""
    with np.errstate(all="ignore"):
        return np.asarray(error * (error / before) ** GROWTH)


def _successive_tables(
    table: Callable[[int], AnyTable | None],
) -> Iterator[tuple[AnyTable, AnyTable]]:
    """The tables of two successive levels, the coarser first, up to the last."""
    for level in itertools.count():
        coarse, fine = table(level), table(level + 1)
        if coarse is None or fine is None:
            return
        yield coarse, fine


def _solve_again(solve: Solve, nodes: int, kept: Evaluation | None, rows: Rows) -> Evaluation:
    """``kept`` with the points ``rows`` solved anew, on a table of that many nodes and block by
    block; they start from what is kept of them."""
    size = max(1, CHUNK // nodes)
    blocks = [rows[i : i + size] for i in range(0, len(rows), size)]
    found = concatenate([solve(block, _guess(kept, block)) for block in blocks])
    return found if kept is None else assign(kept, rows, found)


def _evaluation(
    points: ridge.Points, losses: Losses, own: Array, error: Array, table: Table, slope: Array
) -> Evaluation:
    """Solutions on one ``table`` with their residual on it (``own``) and the next coarser one's."""
    nodes = np.full(len(own), table.weights.size)
    return Evaluation(points, losses, own, error, nodes, slope, np.zeros(len(own)))


def _guess(kept: Evaluation | None, rows: Rows) -> Overlaps | None:
    """The overlaps found on the previous table, where every one of them is usable."""
    if kept is None or not kept.converged[rows].all():
        return None
    return kept.at(rows).points.overlaps


def _classification(model: Model, kept: Evaluation, tol: float) -> tuple[Array, Array]:
    """The classification error of the points that converged, and its own absolute error."""
    wrong, error = np.full((2, len(kept.nodes)), np.nan)
    rows = np.flatnonzero(kept.converged)
    wrong[rows], error[rows] = classification_error(model, kept.at(rows).points.overlaps, tol)
    return wrong, error


def _with_status(table: Table, kept: Evaluation, tol: float, residual_tol: float) -> Evaluation:
    """``kept`` with the status of every point set by the tolerances, and NaN errors where that
    is not convergence."""
    status = kept.points.status
    status[kept.converged & ~(kept.residual <= residual_tol)] = Status.NO_PROGRESS
    status[kept.converged & ~(kept.quadrature_error <= tol)] = Status.QUADRATURE
    for error in (*kept.points.errors, *kept.losses):
        error[status != Status.CONVERGED] = np.nan
    return replace(kept, points=ridge.for_groups(table, kept.points))
