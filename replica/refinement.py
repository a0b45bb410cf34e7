"""Points of a smooth loss that the first shared tables do not resolve, on finer ones.

kappa, tau, a mixture of Gaussians and the proximal map have rules of their own, and what one of
them leaves is seldom what the others do.  Nodes are a product, so that to refine all for the
sake of one would cost many times as much: every axis is asked for what it leaves, and those that
matter go on, at once as far as that may need.
"""

import numpy as np

from solvers.results import Array

from . import convex
from .evaluation import Evaluation
from .label_tables import Level, axes, first_level, label_table, within
from .losses import Loss
from .network import Model

SHARE = 0.2  # of the tolerance, that what is left along one axis may take
RATE = 12.0  # by which that falls from level to level, at best


def solve_refined(
    model: Model, loss: Loss, alpha: Array, lam: Array, found: Evaluation, tol: float
) -> Evaluation:
    """One point, (1,) everywhere, ``found`` on the first tables: on the last that are offered,
    unless it meets the tolerance before."""
    level, slopes = first_level(model), None
    names = doubtful = axes(model, exact=loss.pieces is not None)
    while True:
        apart = {
            name: _distance(model, loss, alpha, lam, found, level.along(name, by=-1))
            for name in doubtful
        }
        # an undefined distance is not a small one
        doubtful = [n for n, size in apart.items() if not size <= SHARE * tol]
        for name in doubtful:
            steps = np.log(apart[name] / tol) / np.log(RATE)
            level = level.along(name, by=int(np.ceil(steps)) if 1 < steps < np.inf else 1)
        if not doubtful:
            doubtful, level = names, level.along()
        fine, coarse = label_table(model, level), label_table(model, level.along(by=-1))
        if fine is None or coarse is None or not within(model, level):
            return found
        start = found.points.overlaps if found.converged[0] else None
        rough = label_table(model, first_level(model).along(by=-1))
        if slopes is None and start is not None and rough is not None:
            slopes = convex.slopes_near(rough, loss, alpha, lam, start)
        points, losses, slopes = convex.solve_from(
            fine, loss, alpha, lam, start, slopes, tol=convex.UNKNOWNS * tol
        )
        error = convex.mismatch(coarse, loss, alpha, lam, points, losses)
        nodes = np.array([fine.table.weights.size])
        found = Evaluation(points, losses, points.residual, error, nodes, np.zeros(1))
        # what two tables did not solve is not a matter of quadrature
        if not found.converged[0] or error[0] <= tol:
            return found


def _distance(
    model: Model, loss: Loss, alpha: Array, lam: Array, found: Evaluation, level: Level
) -> float:
    table = label_table(model, level)
    if table is None or not found.converged[0]:
        return np.inf
    return float(convex.mismatch(table, loss, alpha, lam, found.points, found.losses)[0])
