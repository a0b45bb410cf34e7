"""Points that the first tables do not resolve, on finer ones.

kappa, tau and the proximal map have rules of their own, and what one of them leaves is seldom what
the others do.  Nodes are a product, so that to refine all for the sake of one would cost many
times as much: every axis is asked for what it leaves, and those that matter go on, at once as far
as that may need.
"""

from collections.abc import Callable

import numpy as np

from solvers.results import Array, Status

from . import convex
from .common_bias import slope_of_loss
from .evaluation import Evaluation
from .label_tables import KAPPA, LabelTable, Level, axes, first_level, label_table, within
from .losses import Loss
from .network import Model
from .overlaps import Overlaps

SHARE = 0.2  # of the tolerance, that what is left along one axis may take
MOST = 0.5  # of the error, for the rest not to be asked about
RATE = 12.0  # by which that falls from level to level, at best
CLOSE = 1e-3  # tolerance of the unknowns, of that of the quadrature

Tables = Callable[[Level, Overlaps | None], LabelTable | None]  # for a point near overlaps


def solve_refined(
    model: Model, loss: Loss, alpha: Array, lam: Array, found: Evaluation, tol: float
) -> Evaluation:
    """One point, (1,) everywhere, ``found`` on the first tables: on the first shared ones that
    meet the tolerance, or else the best."""

    def tables(level: Level, _: Overlaps | None) -> LabelTable | None:
        return label_table(model, level) if within(model, level) else None

    near, slopes = None, None
    if found.converged[0]:
        near = found.points.overlaps
        slopes = slopes_on_shared(model, loss, alpha, lam, near)
    level = first_level(model)
    best = refine(model, loss, alpha, lam, found, near, slopes, level, tables, tol)
    assert best is not None  # no worse than ``found``
    return best


def slopes_on_shared(
    model: Model, loss: Loss, alpha: Array, lam: Array, overlaps: Overlaps
) -> convex.Slopes | None:
    """Slopes of the equations on the coarsest of the shared tables, if there is one."""
    table = label_table(model, first_level(model).along(by=-1))
    return None if table is None else convex.slopes_near(table, loss, alpha, lam, overlaps)


def refine(
    model: Model,
    loss: Loss,
    alpha: Array,
    lam: Array,
    found: Evaluation | None,
    near: Overlaps | None,
    slopes: convex.Slopes | None,
    level: Level,
    tables: Tables,
    tol: float,
) -> Evaluation | None:
    """One point on ``tables`` beyond ``level``, the best of what was ``found`` there, too, if that
    is known with its error.  It is ``near`` those overlaps, with ``slopes``, if these are known."""
    best, names, placed = found, axes(model, exact=loss.pieces is not None), near
    doubtful = names
    close = min(CLOSE * tol, 0.1 * convex.RESIDUAL_TOLERANCE)
    while True:
        asked = dict.fromkeys(names, tol)
        if found is not None:
            asked = {}
            for name in doubtful:
                table = tables(level.along(name, by=-1), placed)
                asked[name] = np.inf
                if table is not None and near is not None:
                    asked[name] = float(convex.distance(table, loss, alpha, lam, near, slopes)[0])
                if MOST * found.quadrature_error[0] <= asked[name] < np.inf:
                    break
            small = [name for name, size in asked.items() if size <= SHARE * tol]
            doubtful = [name for name in doubtful if name not in small] or names
            # an undefined distance is not a small one
            asked = {n: asked[n] for n in doubtful if n in asked} or dict.fromkeys(names, tol)
        ahead = _ahead(tables, near, level, {name: size / tol for name, size in asked.items()})
        if ahead is None:
            return best
        level, fine, coarse = ahead
        points, losses, slopes = convex.solve_from(fine, loss, alpha, lam, near, slopes, tol=close)
        if points.residual[0] <= convex.RESIDUAL_TOLERANCE:
            # thin layers may leave the iteration's own, sharper criterion some rounding
            points.status[:] = Status.CONVERGED
        error = convex.mismatch(coarse, loss, alpha, lam, points, losses, slopes)
        nodes = np.array([fine.table.weights.size])
        slope = slope_of_loss(model, fine, loss, alpha, points)
        found = Evaluation(points, losses, points.residual, error, nodes, slope, np.zeros(1))
        # what two tables did not solve is not a matter of quadrature
        if not found.converged[0]:
            return found if best is None or not best.converged[0] else best
        if best is None or not best.quadrature_error[0] <= error[0]:
            best = found
        if error[0] <= tol:
            return found
        placed, near = near, points.overlaps
        if slopes is None:
            slopes = convex.slopes_near(fine, loss, alpha, lam, near)


def _ahead(
    tables: Tables, near: Overlaps | None, level: Level, excess: dict[str, float]
) -> tuple[Level, LabelTable, LabelTable] | None:
    """The level after this one with its table and that below: as far along each axis as its
    ``excess`` over the tolerance may need, or as there are tables."""
    with np.errstate(all="ignore"):
        wanted = {n: np.ceil(np.log(size) / np.log(RATE)) for n, size in excess.items()}
    steps = {n: int(size) if 1 < size < np.inf else 1 for n, size in wanted.items()}
    # even nodes over kappa end there, and panels begin anew with fewer
    if "kappa" in steps:
        steps["kappa"] = min(steps["kappa"], max(1, len(KAPPA) - 1 - level.kappa))
    for most in range(max(steps.values()), 0, -1):
        after = level
        for name, by in steps.items():
            after = after.along(name, by=min(by, most))
        fine, coarse = tables(after, near), tables(after.along(by=-1), near)
        if fine is not None and coarse is not None:
            return after, fine, coarse
    return None
