"""Points of a loss with kinks or bends whose layers no shared table resolves: THEORY 6 on tables
of their own, with panels over kappa that close in on the layers of the solution.

Where the layers are is known once the point is solved, roughly: on the last shared table, or at
a nearby penalty.  A point that has no such start is followed along a path of penalties, each
stage on the panels that the two before let expect.
"""

from itertools import product

import numpy as np

from solvers.results import Array, Status

from . import convex, ridge
from .coordinates import Coordinates
from .evaluation import Evaluation
from .label_tables import LabelTable, label_table, label_table_at, mixture
from .layers import fields_at, kinks_of, panels
from .local_fields import Losses
from .losses import Loss
from .network import Model
from .overlaps import Overlaps
from .tau_layers import Line, line, sharp, tangencies, tau_rules

# Nodes a panel over kappa, over tau where it has layers, and level of the rest.
SIZES = ((5, 5, 1), (7, 6, 2), (10, 7, 3), (14, 8, 4), (20, 9, 5), (28, 11, 6), (40, 14, 7))
# How fast panels over kappa and tau close in, at every other level; those over tau, which are
# there for every kappa, are fewer.
CLOSING = ((0.5, 0.75), (0.45, 0.7))
FIRST = (1, 3)  # levels of the shared tables on which a path may start
ROUGH = 1  # and of that for the slopes
# Penalties to start a path from, and the longest steps of m there.
EASY = ((0.1, 2.0), (0.1, 0.3), (100.0, 2.0), (0.01, 0.3))
FACTOR = 4.0  # between penalties, at first
LUCK = 0.01  # least part of one difference that the next is trusted to leave
CLOSE = 1e-6  # residual of a stage
ARRIVED = 1e-12  # in log lam
FEW = 6  # iterations: the next step may be twice as long
SHORT = 0.7  # step in log lam that is worth every effort
STAGES = 24
LARGE = 2**16  # nodes, for a solution to be pursued past the first difficulty
WORK = 2**24  # nodes, times iterations, on one path: a few seconds
BLUR = 1.0  # of a bend


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
    """The point from ``overlaps`` near it, on tables of its own with more and more nodes, until
    two of them agree."""
    found, before, last = None, None, np.zeros(1)
    slopes = _slopes(model, loss, alpha, lam, overlaps)
    for sizes in SIZES:
        table = _table(model, loss, overlaps, sizes)
        if table is None:
            break
        points, losses, slopes = _solve(table, loss, alpha, lam, overlaps, slopes)
        # thin layers may leave the iteration's own, sharper criterion some rounding
        if not points.residual[0] <= convex.RESIDUAL_TOLERANCE:
            break
        points.status[:] = Status.CONVERGED
        if before is not None:
            change = convex.difference(table, loss, before, (points, losses))
            error = np.maximum(change, LUCK * last)  # two tables may agree by chance
            last = change
            nodes = np.array([table.table.weights.size])
            found = Evaluation(points, losses, points.residual, error, nodes, np.zeros(1))
            if error[0] <= tol:
                break
        overlaps, before = points.overlaps, (points, losses)
        if slopes is None:
            slopes = convex.slopes_near(table, loss, alpha, lam, overlaps)
    return found


def _slopes(
    model: Model, loss: Loss, alpha: Array, lam: Array, overlaps: Overlaps
) -> convex.Slopes | None:
    """Slopes of the equations on a shared table, if there is one."""
    table = label_table(model, ROUGH)
    return None if table is None else convex.slopes_near(table, loss, alpha, lam, overlaps)


def _solve(
    table: LabelTable,
    loss: Loss,
    alpha: Array,
    lam: Array,
    start: Overlaps,
    slopes: convex.Slopes | None,
    brief: bool | None = None,
) -> tuple[ridge.Points, Losses, convex.Slopes | None]:
    """The point on one table, and the slopes learnt: None where they did not do, and other means
    were needed."""
    if slopes is not None:
        near = convex.solve_near(table, loss, alpha, lam, start, slopes)
        if near is not None:
            return near
    brief = table.labels.size > LARGE if brief is None else brief
    return *convex.solve_points(table, loss, alpha, lam, start, brief=brief), None


def _easy(model: Model, loss: Loss, alpha: Array) -> tuple[Coordinates, Array, Overlaps] | None:
    """An easy penalty with the overlaps there, on a shared table."""
    tables = [table for table in (label_table(model, level) for level in FIRST) if table]
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
    slopes = _slopes(model, loss, alpha, at, overlaps)
    step, work = np.log(FACTOR), WORK
    for _ in range(STAGES):
        left = np.log(lam / at)
        if abs(left[0]) <= ARRIVED:
            return overlaps
        change = np.clip(left, -step, step)
        ahead = coordinates.unpack(x + slope * change)
        table = _table(model, loss, ahead, SIZES[0])
        if table is None or work < 0:
            return None
        there = at * np.exp(change)
        short = step <= SHORT
        trial, _, slopes = _solve(table, loss, alpha, there, ahead, slopes, brief=not short)
        work -= table.labels.size * int(trial.iterations[0])
        if trial.residual[0] <= CLOSE:
            overlaps, before = trial.overlaps, x
            x = coordinates.pack(overlaps)
            slope, at = (x - before) / change, there
            step *= 2 if trial.iterations[0] <= FEW else 1
        elif short:
            return None
        else:
            step = abs(float(change[0])) / 2
    return None


def _table(
    model: Model, loss: Loss, overlaps: Overlaps, sizes: tuple[int, int, int]
) -> LabelTable | None:
    over_kappa, over_tau, level = sizes
    split = sharp(model, loss)

    def lines(kappa: Array) -> Line:
        table, field = fields_at(model, overlaps, kappa)
        return line(model, loss, table.kappa, field)

    merging = tangencies(lines) if split else []
    levels = kinks_of(loss, model.binary)
    blur = 0.0 if loss.kinks else BLUR
    # ends of panels that tables have in common would hide what they miss
    for_kappa, for_tau = CLOSING[level % len(CLOSING)]
    (rule,) = panels(model, overlaps, levels, (over_kappa,), blur, merging, for_kappa)
    law = mixture(model, level)
    rules = tau_rules(lines(rule.nodes), law, over_tau, for_tau) if split else None
    return label_table_at(model, rule, level, rules)
