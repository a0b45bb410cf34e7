"""Points of a smooth loss that the first shared tables do not resolve, on finer ones.

kappa, tau and the proximal map have rules of their own, and what one of them leaves is seldom what
the others do.  Nodes are a product, so that to refine all for the sake of one would cost many
times as much: every axis is asked for what it leaves, and those that matter go on, at once as far
as that may need.
"""

import numpy as np

from solvers.results import Array

from . import convex
from .common_bias import slope_of_loss
from .evaluation import Evaluation
from .label_tables import KAPPA, LabelTable, Level, axes, first_level, label_table, within
from .losses import Loss
from .network import Model

SHARE = 0.2  # of the tolerance, that what is left along one axis may take
RATE = 12.0  # by which that falls from level to level, at best


def solve_refined(
    model: Model, loss: Loss, alpha: Array, lam: Array, found: Evaluation, tol: float
) -> Evaluation:
    """One point, (1,) everywhere, ``found`` on the first tables: on the first that meet the
    tolerance, or else the best."""
    level, slopes, best = first_level(model), None, found
    names = doubtful = axes(model, exact=loss.pieces is not None)
    rough = label_table(model, level.along(by=-1))
    while True:
        apart = {
            name: _distance(model, loss, alpha, lam, found, level.along(name, by=-1))
            for name in doubtful
        }
        # an undefined distance is not a small one
        doubtful = [n for n, size in apart.items() if not size <= SHARE * tol] or names
        ahead = _ahead(model, level, {name: apart.get(name, tol) / tol for name in doubtful})
        if ahead is None:
            return best
        level, fine, coarse = ahead
        start = found.points.overlaps if found.converged[0] else None
        if slopes is None and start is not None and rough is not None:
            slopes = convex.slopes_near(rough, loss, alpha, lam, start)
        points, losses, slopes = convex.solve_from(fine, loss, alpha, lam, start, slopes)
        error = convex.mismatch(coarse, loss, alpha, lam, points, losses)
        nodes = np.array([fine.table.weights.size])
        slope = slope_of_loss(model, fine, loss, alpha, points)
        found = Evaluation(points, losses, points.residual, error, nodes, slope, np.zeros(1))
        # what two tables did not solve is not a matter of quadrature
        if not found.converged[0]:
            return best if best.converged[0] else found
        if not best.quadrature_error[0] <= error[0]:
            best = found
        if error[0] <= tol:
            return found


def _ahead(
    model: Model, level: Level, excess: dict[str, float]
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
        if within(model, after):
            fine, coarse = label_table(model, after), label_table(model, after.along(by=-1))
            if fine is not None and coarse is not None:
                return after, fine, coarse
    return None


def _distance(
    model: Model, loss: Loss, alpha: Array, lam: Array, found: Evaluation, level: Level
) -> float:
    table = label_table(model, level)
    if table is None or not found.converged[0]:
        return np.inf
    return float(convex.mismatch(table, loss, alpha, lam, found.points, found.losses)[0])
