"""Points of a model that trains a bias: solved at the bias that minimises the training objective.

A scan of the biases by approximate solutions tells where its basins are (``bias_walk``; of ridge
regression, all points at once); the bottom of the lowest is found by solutions as precise as those
of a model that trains none (``trained_bias``).
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from solvers.results import Array, Status

from ..convex import Evaluation, Loss, concatenate, objective
from ..problem import Model
from .bias_walk import scan_biases
from .evaluate import evaluate_at_bias, is_ridge
from .search_ranges import bias_scan
from .trained_bias import BiasScan, best_bias

ROUGH = 1e-6  # quadrature of looks at ridge regression
BOTTOM, BOTTOM_OF_A_LOSS = 1e-9, 1e-5  # last step to the bottom


def with_trained_bias(
    model: Model, alpha: Array, lam: Array, loss: Loss, tol: float | None
) -> Evaluation:
    """The points (alpha[i], lam[i]), arrays (P,), each at its best bias.  docs/theory.md 7"""
    points = list(_each(alpha, lam))
    if is_ridge(model, loss):
        seen = _scans_of_ridge(model, alpha, lam, loss)
    else:
        seen = [scan_biases(model, loss, *point) for point in points]
    at_best = (
        _at_best(model, *point, loss, tol, each) for point, each in zip(points, seen, strict=True)
    )
    return concatenate(list(at_best))


def _each(alpha: Array, lam: Array) -> Iterator[tuple[Array, Array]]:
    """Points one by one, as arrays (1,)."""
    return zip(alpha[:, None], lam[:, None], strict=True)


def _scans_of_ridge(model: Model, alpha: Array, lam: Array, loss: Loss) -> list[BiasScan]:
    """Of each point, by solutions at every bias of the scan."""
    values, slopes = np.empty((2, len(bias_scan()), len(alpha)))
    for place, bias in enumerate(bias_scan()):
        there = model.with_bias(float(bias), train_bias=True)
        one = evaluate_at_bias(there, alpha, lam, loss, ROUGH)
        values[place], slopes[place] = _objective(model, alpha, lam, one), one.slope
    each = zip(values.T, slopes.T, strict=True)
    return [BiasScan(bias_scan(), *seen, partial(_off, seen[0])) for seen in each]


def _off(values: Array, place: int) -> float:
    return float(ROUGH * abs(values[place]))


def _objective(model: Model, alpha: Array, lam: Array, one: Evaluation) -> Array:
    return objective(one.losses.train, one.points.overlaps, alpha, lam, model.beta)


def _at_best(
    model: Model, alpha: Array, lam: Array, loss: Loss, tol: float | None, seen: BiasScan
) -> Evaluation:
    """One point, (1,); NaN where no best bias was found."""
    found: dict[float, Evaluation] = {}

    def at(bias: float) -> Evaluation:
        if bias not in found:
            found[bias] = evaluate_at_bias(
                model.with_bias(bias, train_bias=True), alpha, lam, loss, tol
            )
        return found[bias]

    def ask(bias: float) -> tuple[float, float]:
        one = at(bias)
        return float(_objective(model, alpha, lam, one)[0]), float(one.slope[0])

    bias = best_bias(seen, ask, BOTTOM if is_ridge(model, loss) else BOTTOM_OF_A_LOSS)
    one = replace(at(0.0 if np.isnan(bias) else bias), bias=np.array([bias]))
    if np.isnan(bias):
        failed = [each for each in found.values() if not each.converged[0]]
        one.points.status[:] = failed[-1].points.status if failed else Status.AT_EDGE
        for error in (*one.points.errors, *one.losses):
            error[:] = np.nan
    return one
