"""Points of a loss with kinks or bends whose layers no shared table resolves: THEORY 6 on tables
of their own, with panels over kappa that close in on the layers of the solution.

Where the layers are is known once the point is solved, roughly: on the last shared table, or at
a nearby penalty.  A point that has no such start is followed along a path of penalties, each
stage on the panels of the one before.
"""

import numpy as np

from solvers.results import Array, Status

from . import convex
from .label_tables import LabelTable, label_table, label_table_at
from .layers import kinks_of, panels
from .local_fields import Losses
from .losses import Loss
from .network import Model
from .overlaps import Overlaps
from .ridge import Points

# Nodes a panel and level of the integral over tau: for the estimate of the error, the solution.
SIZES = (((6, 0), (9, 1)), ((9, 1), (14, 2)), ((14, 2), (20, 3)))
FIRST = 3  # level of the shared table on which a path starts, or the last
EASY = np.array([[1.0], [0.1], [0.01]])  # penalties to start a path from
FACTOR = 4.0
STAGES = 24
BLUR = 1.0  # of a bend

Layered = tuple[Points, Losses, Array, Array, Array]


def solve_layered(
    model: Model, loss: Loss, alpha: Array, lam: Array, start: Overlaps | None, tol: float
) -> Layered | None:
    """One point, (1,) everywhere: its overlaps and errors, how far they are from solving the
    equations on their own table and on a coarser one, and its nodes.

    ``start`` has overlaps near the solution, if any are known.  None where nothing was found.
    """
    overlaps = start if start is not None else _follow(model, loss, alpha, lam)
    found = None
    # bends are never as thin as kinks, nor as well known: no use in the fewest nodes
    ladder = SIZES if loss.kinks else SIZES[1:]
    for sizes in ladder if overlaps is not None else ():
        assert overlaps is not None
        tables = _tables(model, loss, overlaps, sizes)
        if tables is None:
            break
        coarse, fine = tables
        points, losses = convex.solve_points(fine, loss, alpha, lam, overlaps)
        if points.status[0] is not Status.CONVERGED:
            break
        residual, error = (
            convex.mismatch(table, loss, alpha, lam, points, losses) for table in (fine, coarse)
        )
        found = points, losses, residual, error, np.array([fine.table.weights.size])
        if error[0] <= tol:
            break
        overlaps = points.overlaps
    return found


def _follow(model: Model, loss: Loss, alpha: Array, lam: Array) -> Overlaps | None:
    """Overlaps at ``lam`` or near it, from those at an easy penalty by factors of FACTOR or
    less; at ``lam`` at once, with every means, where no penalty is easy."""
    ladder = (label_table(model, level) for level in range(FIRST, -1, -1))
    shared = next((table for table in ladder if table is not None), None)
    if shared is None:
        return None
    for at in (*EASY, lam):
        points, _ = convex.solve_points(shared, loss, alpha, at, brief=at is not lam)
        if points.status[0] is Status.CONVERGED:
            break
    step = np.log(FACTOR)
    for _ in range(STAGES):
        if points.status[0] is not Status.CONVERGED:
            return None
        left = np.log(lam / at)
        if abs(left[0]) <= step:
            return points.overlaps
        ahead = at * np.exp(np.sign(left) * step)
        tables = _tables(model, loss, points.overlaps, SIZES[0][:1])
        if tables is None:
            return None
        trial, _ = convex.solve_points(tables[0], loss, alpha, ahead, points.overlaps, brief=True)
        if trial.status[0] is Status.CONVERGED:
            points, at = trial, ahead
        else:
            step /= 2
    return None


def _tables(
    model: Model, loss: Loss, overlaps: Overlaps, sizes: tuple[tuple[int, int], ...]
) -> list[LabelTable] | None:
    nodes, levels = zip(*sizes, strict=True)
    blur = 0.0 if loss.kinks else BLUR
    rules = panels(model, overlaps, kinks_of(loss, model.binary), nodes, blur)
    found = [label_table_at(model, *each) for each in zip(rules, levels, strict=True)]
    tables = [table for table in found if table is not None]
    return tables if len(tables) == len(sizes) else None
