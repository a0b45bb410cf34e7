"""Points of a loss with kinks or bends whose layers no shared table resolves: THEORY 6 on tables
of their own, with panels over kappa that close in on the layers of the solution.

Where the layers are is known once the point is solved, roughly: on the last shared table, or at
a nearby penalty.  A point that has no such start is followed along a path of penalties, each
stage on the panels that the two before let expect.
"""

from itertools import product

import numpy as np

from solvers.results import Array, Status

from . import convex
from .coordinates import Coordinates
from .equivalence import tabulate
from .evaluation import Evaluation
from .fields import field_on
from .label_tables import (
    LabelTable,
    Level,
    first_level,
    label_table,
    label_table_at,
    mixture,
    within,
)
from .layers import fields_at, fields_on_grid, kinks_of, panels
from .losses import Loss
from .network import Model
from .overlaps import Overlaps
from .refinement import refine, slopes_on_shared
from .ridge import bulk_of
from .tau_layers import Line, line, sharp, tangencies, tau_rules, usual_size

# Of every level, nodes a panel over kappa, and over tau where it has layers, and how fast panels
# close in: differently on the next, as ends that tables have in common would hide what they miss.
KAPPA = (
    *((4, 0.75), (6, 0.45), (8, 0.5), (11, 0.45), (15, 0.5), (21, 0.45), (29, 0.5), (40, 0.45)),
    *((56, 0.5), (80, 0.45)),
)
TAU = ((5, 0.9), (7, 0.7), (8, 0.75), (9, 0.7), (11, 0.75), (14, 0.7), (18, 0.75), (23, 0.7))
ROUGH, FIRST = Level(0, 0, 0), Level(1, 1, 2)  # along a path, and from where two are compared
EARLY = (Level(1, 5, 2), Level(3, 7, 4))  # of the shared tables on which a path may start
# Penalties to start a path from, and the longest steps of m there.
EASY = ((0.1, 2.0), (0.1, 0.3), (100.0, 2.0), (0.01, 0.3))
FACTOR = 4.0  # between penalties, at first
ALONG = 1e-6  # residual of a stage
ARRIVED = 1e-12  # in log lam
FEW = 6  # iterations: the next step may be twice as long
SHORT = 0.2  # step in log lam that is worth every effort
STAGES = 24
WORK = 2**24  # nodes, times iterations, on one path: a second
BLUR = 1.0  # of a bend


def has_layers(model: Model, loss: Loss) -> bool:
    """Whether points may have tables of their own."""
    return bool(loss.kinks or loss.bends) and model.geometry.r.shape[1] == 1


def solve_layered(
    model: Model, loss: Loss, alpha: Array, lam: Array, start: Overlaps | None, tol: float
) -> Evaluation | None:
    """One point, (1,) everywhere.

    ``start`` has overlaps near the solution, if any are known.  None where nothing was found.
    """
    found = None if start is None else _refine(model, loss, alpha, lam, start, tol)
    if found is None:
        start = _follow(model, loss, alpha, lam)
        found = None if start is None else _refine(model, loss, alpha, lam, start, tol)
    return found


def _refine(
    model: Model, loss: Loss, alpha: Array, lam: Array, overlaps: Overlaps, tol: float
) -> Evaluation | None:
    """The point from ``overlaps`` near it, on tables of its own."""

    def tables(level: Level, near: Overlaps | None) -> LabelTable | None:
        return None if near is None else own_table(model, loss, near, level)

    first = tables(ROUGH, overlaps)
    if first is None:
        return None
    slopes = slopes_on_shared(model, loss, alpha, lam, overlaps)
    near = convex.approach(first, loss, alpha, lam, overlaps, slopes)
    if near is None:
        return None
    return refine(model, loss, alpha, lam, None, *near, FIRST, tables, tol)


def _easy(model: Model, loss: Loss, alpha: Array) -> tuple[Coordinates, Array, Overlaps] | None:
    """An easy penalty with the overlaps there, on a shared table."""
    tables = [table for table in (label_table(model, level) for level in EARLY) if table]
    for table, (at, longest) in product(tables, EASY):
        there = np.array([at])
        points, _ = convex.solve_points(table, loss, alpha, there, brief=True, longest=longest)
        if points.status[0] is Status.CONVERGED:
            return Coordinates(table.table), there, points.overlaps
    return None


def _follow(model: Model, loss: Loss, alpha: Array, lam: Array) -> Overlaps | None:
    """Overlaps at ``lam`` or near it, followed from those at an easy penalty."""
    begin = _easy(model, loss, alpha)
    if begin is None:
        return None
    coordinates, at, overlaps = begin
    x, slope = coordinates.pack(overlaps), 0.0  # by log lam
    slopes = slopes_on_shared(model, loss, alpha, at, overlaps)
    step, work = np.log(FACTOR), WORK
    for _ in range(STAGES):
        left = np.log(lam / at)
        if abs(left[0]) <= ARRIVED:
            return overlaps
        change = np.clip(left, -step, step)
        ahead = coordinates.unpack(x + slope * change)
        table = own_table(model, loss, ahead, ROUGH)
        if table is None or work < 0:
            return None
        there = at * np.exp(change)
        short = step <= SHORT
        trial, _, slopes = convex.solve_from(
            table, loss, alpha, there, ahead, slopes, brief=not short
        )
        work -= table.labels.size * int(trial.iterations[0])
        if trial.residual[0] <= ALONG:
            overlaps, before = trial.overlaps, x
            x = coordinates.pack(overlaps)
            slope, at = (x - before) / change, there
            step *= 2 if trial.iterations[0] <= FEW else 1
        elif short:
            return None
        else:
            step = abs(float(change[0])) / 2
            slopes = convex.slopes_near(table, loss, alpha, at, overlaps)
            work -= table.labels.size * len(x[0])
    return None


def own_table(model: Model, loss: Loss, overlaps: Overlaps, level: Level) -> LabelTable | None:
    """The table for a point near ``overlaps``, or None past the last level."""
    # nodes over tau where nothing closes in: those of several directions grow fast enough
    one = len(model.geometry.gamma) == 1
    ahead = level.along("tau", by=first_level(model).tau + one - 1)
    if not (level.kappa < len(KAPPA) and level.tau < len(TAU) and within(model, ahead)):
        return None
    split, merging = sharp(model, loss), []
    if split:
        on_grid, field = fields_on_grid(model, overlaps)
        usual = usual_size(on_grid.kappa, field)

        def lines(kappa: Array) -> Line:
            table, field = fields_at(model, overlaps, kappa)
            return line(model, loss, table.kappa, field, usual)

        merging = tangencies(line(model, loss, on_grid.kappa, field, usual), lines)
    levels = kinks_of(loss, model.binary)
    blur = 0.0 if loss.kinks else BLUR * loss.width
    nodes, closing = KAPPA[level.kappa]
    (rule,) = panels(model, overlaps, levels, (nodes,), blur, merging, closing)
    table, rules = tabulate(model, rule), None
    if split:
        there = field_on(table, bulk_of(table), overlaps)
        here = line(model, loss, table.kappa, there)
        rules = tau_rules(here, mixture(model), *TAU[level.tau])
    return label_table_at(model, table, ahead, rules)
