"""Brief looks at a convex loss along a bias common to all neurons, each from those before.

A solution at one bias is near that at the next: a few steps of Broyden's method do, with the slopes
learnt on the way, on a coarse table that all points share or, where layers of the solution are too
thin for any of those, on the roughest of its own.
"""

from typing import NamedTuple

import numpy as np

from solvers.results import Array, Status

from ..convex import (
    Coordinates,
    LabelTable,
    Level,
    Loss,
    Losses,
    Slopes,
    Task,
    first_level,
    has_layers,
    label_table,
    objective,
    own_label_tables,
    slope_of_loss,
    slopes_near,
    solve_from,
)
from ..problem import Model
from ..saddle_point import Overlaps, ridge
from .evaluate import evaluate_convex
from .search_ranges import bias_scan
from .trained_bias import BiasScan

PLACES = 33  # as many looks, and slopes: what twice the values tell
BIASES = bias_scan(PLACES)
CLOSE = 1e-4  # tolerance of a look's unknowns
ENOUGH = 1e-3  # residual of one
COARSE, FINER = Level(0, 0, 0), Level(1, 1, 1)  # of looks, and of the own tables that judge them
STARTS = PLACES // 2, 3 * PLACES // 4, PLACES // 4, PLACES - 1, 0  # places to walk from,
SURE = 3  # the first of which are worth any price
SAFE = 2.0  # times the difference between two tables and what both leave unsolved


class Look(NamedTuple):
    """A solution, more or less, at one bias and on one table: a shared one, or its own."""

    bias: float
    given: LabelTable
    points: ridge.Points
    losses: Losses
    slopes: Slopes | None
    own: bool


def scan_biases(model: Model, loss: Loss, alpha: Array, lam: Array) -> BiasScan:
    """The training objective along the bias at one point, (1,), of a model that trains one."""
    task = Task(model, loss, alpha, lam)

    def value(look: Look) -> float:
        at = look.losses.train, look.points.overlaps, alpha, lam, model.beta
        return float(objective(*at)[0])

    def doubt(place: int) -> float:
        look = found[place]
        finer = _finer(task, look)
        if finer is None:
            return np.inf
        unsolved = float(look.points.residual[0] + finer.points.residual[0])
        return SAFE * (abs(value(finer) - value(look)) + unsolved * abs(value(look)))

    found = _walk(task)
    values, slopes = np.full((2, PLACES), np.nan)
    for place, look in found.items():
        values[place] = value(look)
        there = _model(task, look.bias), look.given, loss, alpha, look.points
        slopes[place] = slope_of_loss(*there)[0]
    return BiasScan(BIASES, values, slopes, doubt)


def _model(task: Task, bias: float) -> Model:
    """The model with that bias, more of which may be trained."""
    return task.model.with_bias(bias, train_bias=True)


def _walk(task: Task) -> dict[int, Look]:
    """Looks by their place in the scan: from where they are had to both sides, as far as each
    goes."""
    found: dict[int, Look] = {}
    for start in STARTS:
        if start not in found:
            _follow(task, found, start, _on_shared(task, BIASES[start]))
    for start in STARTS[:SURE]:
        if not found:
            _follow(task, found, start, _surely(task, BIASES[start]))
    return found


def _follow(task: Task, found: dict[int, Look], start: int, first: Look | None) -> None:
    """Add the ``first`` look, at ``start``, and those to both sides of it."""
    if first is None:
        return
    found[start] = first
    for places in range(start + 1, PLACES), range(start - 1, -1, -1):
        before = last = first
        for place in places:
            pair = None if place in found else _next(task, BIASES[place], before, last)
            if pair is None:
                break
            before, last = pair
            found[place] = last


def _next(task: Task, bias: float, before: Look, last: Look) -> tuple[Look, Look] | None:
    """The look after two, with the one before it."""
    look = None
    if not last.own:
        look = _on_shared(task, bias, _ahead(before, last, bias), last.slopes)
    if look is None and has_layers(task.model, task.loss):
        if not last.own:  # what shared tables say is no start for others any more
            again = _on_own(task, last.bias, last.points.overlaps, last.slopes)
            before = last = last if again is None else again
        look = _on_own(task, bias, _ahead(before, last, bias), last.slopes)
    return None if look is None else (last, look)


def _surely(task: Task, bias: float) -> Look | None:
    """At any price."""
    there = evaluate_convex(_model(task, bias), task.alpha, task.lam, task.loss, None)
    if not there.converged[0]:
        return None
    overlaps = there.points.overlaps
    look = _on_shared(task, bias, overlaps)
    if look is None and has_layers(task.model, task.loss):
        look = _on_own(task, bias, overlaps)
    return look


def _on_shared(
    task: Task, bias: float, start: Overlaps | None = None, slopes: Slopes | None = None
) -> Look | None:
    return _on(label_table(_model(task, bias), COARSE), task, bias, start, slopes, own=False)


def _on_own(task: Task, bias: float, start: Overlaps, slopes: Slopes | None = None) -> Look | None:
    table = own_label_tables(_model(task, bias), task.loss, start)(COARSE)
    return _on(table, task, bias, start, slopes, own=True)


def _ahead(before: Look, last: Look, bias: float) -> Overlaps:
    """Extrapolated from two looks to another bias."""
    first, second = before.points.overlaps, last.points.overlaps
    if before.bias == last.bias or first.V2.shape != second.V2.shape:
        return second
    coordinates = Coordinates(last.given.table)
    x, y = coordinates.pack(first), coordinates.pack(second)
    return coordinates.unpack(y + (y - x) * (bias - last.bias) / (last.bias - before.bias))


def _finer(task: Task, look: Look) -> Look | None:
    """The same on more nodes."""
    model, overlaps = _model(task, look.bias), look.points.overlaps
    if look.own:
        table = own_label_tables(model, task.loss, overlaps)(FINER)
    else:
        table = label_table(model, first_level(model))
    return _on(table, task, look.bias, overlaps, look.slopes, own=look.own)


def _on(
    given: LabelTable | None,
    task: Task,
    bias: float,
    start: Overlaps | None,
    slopes: Slopes | None,
    *,
    own: bool,
) -> Look | None:
    """The look on one table, if there is one."""
    if given is None:
        return None
    if start is not None and start.V2.shape[1] != len(given.table.mu1):
        start = slopes = None  # groups that respond alike at one bias need not at another
    problem = task.on(given)
    points, losses, slopes = solve_from(
        problem, start, slopes, quick=True, tol=CLOSE, residual_tol=ENOUGH
    )
    if points.status[0] is not Status.CONVERGED:
        return None
    if slopes is None:
        slopes = slopes_near(problem, points.overlaps)
    return Look(bias, given, points, losses, slopes, own)
