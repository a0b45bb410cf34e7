"""The theory of a network at its own dimension, at many points.  docs/theory.md 23"""

from dataclasses import replace
from typing import Any

import numpy as np

from solvers.resources import GivenUp, check_time, deadline
from solvers.results import Array, Indices, Status

from ..convex import solve_on_growing_tables
from ..equivalence import Table
from ..problem import Model
from ..saddle_point import Evaluation, field_at_nodes, ridge, unknown_overlaps
from .readout import class_error, solve_readouts
from .tabulate import LoadedTable, loaded_rows, table_at_dimension

DIMENSION_QUADRATURE_TOLERANCE = 2e-3
# Tolerance of the residual, and of the iterated leverage, over that of the quadrature, of which
# less than LEAST_TOLERANCE counts as that.
RESIDUAL_SHARE, LEVERAGE_SHARE, LEAST_TOLERANCE = 1 / 200, 1 / 400, 2e-6
ENOUGH_PRODUCTS = 0.3  # of directions of the bulk, for each sample and neuron
# Thresholds on 24 settings at d = 300 and 1000 (benchmarks/DIMENSION.md).
# Share of the bulk's variance in the noise direction: errors are right up to .2, and 3.1 standard
# errors off at .66, the next.
# Where this variance is more than twice that of the coordinates, errors are right if the training
# error moves from the limit as the test error does, up to 1.4 times as far.  If 2.4 to 3 times, it
# is 4.5, 6 and 2.8 standard errors off at d = 300, 500 and 1000, and the limit none to 2.6.  A
# training error that moves by less than 1.5 % is within that of simulation, as others are.
LARGEST_SHARE, LARGEST_NOISE, FARTHEST, LEAST_SHIFT = 0.4, 2.0, 2.0, 0.015
CHUNK = 2**19  # points times nodes handled at once: 4 MB an array


def evaluate_at_dimension(
    model: Model,
    limit: Evaluation,
    alpha: Array,
    lam: Array,
    tol: float | None,
    time_limit: float,
) -> Evaluation:
    """Ridge regression at the points (alpha[i], lam[i]), arrays (P,), of a network at its own
    dimension.

    Errors are those of the ``limit`` times their ratio to it on tables of the same nodes, from
    which the rounding of steep features by few nodes nearly cancels.
    """
    found, tol = Evaluation(len(alpha)), DIMENSION_QUADRATURE_TOLERANCE if tol is None else tol
    scale = np.clip(tol, LEAST_TOLERANCE, DIMENSION_QUADRATURE_TOLERANCE)
    residual_tol, leverage_tol = RESIDUAL_SHARE * scale, LEVERAGE_SHARE * scale
    found.overlaps, found.conjugates = unknown_overlaps(len(alpha))
    ratios, network = np.full((3, len(alpha)), np.nan), replace(model, dimension=np.inf)
    of_limit = np.array([limit.test_error, limit.train_error, limit.classification_error])

    def tables_for(level: int, _: Indices) -> tuple[LoadedTable, LoadedTable] | None:
        at = table_at_dimension(network, model.dimension, level)
        in_limit = table_at_dimension(network, np.inf, level)
        return None if at is None or in_limit is None else (at, in_limit)

    def solve_on(tables: tuple[LoadedTable, LoadedTable], points: Indices, _: Any) -> Indices:
        size = max(1, CHUNK // tables[0].weights.size)
        for rows in np.array_split(points, -(-len(points) // size)):
            check_time()
            coarser, V = (
                np.stack([solved.overlaps.V1[rows, 0, 0], solved.overlaps.V2[rows, 0]], axis=1)
                for solved in (found, limit)
            )
            V = np.where(np.isfinite(coarser), coarser, V)
            at = solve_readouts(tables[0], alpha[rows], lam[rows], V, leverage_tol)
            errors, residual = _limit(tables[1], alpha[rows], lam[rows])
            ratio = np.array([*at.errors, at.wrong]) / errors
            change = np.abs(ratio / ratios[:, rows] - 1)[: 2 + model.labels.binary].max(axis=0)
            change, residual = np.nan_to_num(change, nan=np.inf), np.maximum(at.residual, residual)
            ratios[:, rows] = ratio
            test, train, wrong = of_limit[:, rows] * ratio
            found.store(
                rows,
                test_error=test,
                train_error=train,
                loss_error=(test + tables[0].noise) / 2,
                train_loss=train / 2,
                classification_error=wrong,
                residual=residual,
                quadrature_error=np.maximum(change, limit.quadrature_error[rows]),
                iterations=at.passes,
                nodes=np.full(len(rows), tables[0].weights.size),
                converged=residual <= residual_tol,
                open=~(change <= tol),
            )
            found.overlaps.V1[rows, 0, 0], found.overlaps.V2[rows, 0] = at.V.T
            found.overlaps.m[rows] = at.m[:, :1]
        return points[found.open[points] & found.converged[points]]

    found.flag(~limit.converged, limit.status[~limit.converged])
    noise_ratio = 0.0
    with deadline(time_limit * len(alpha)), np.errstate(all="ignore"):  # what is not finite is NaN
        try:
            rows = loaded_rows(network)
            few = products_per_fit(model, alpha, model.dimension) < ENOUGH_PRODUCTS
            noise = rows.loading_covariance[-1, -1] / model.dimension
            noisy = noise > LARGEST_SHARE * float(model.geometry.c[0])
            noise_ratio = rows.noise_ratio
            found.flag(found.open & few, Status.FEW_DIRECTIONS)
            found.flag(found.open & noisy, Status.NOISY_ROWS)
        except (GivenUp, np.linalg.LinAlgError) as error:
            status = error.status if isinstance(error, GivenUp) else Status.NOT_FINITE
            found.flag(found.open.copy(), status)
        solve_on_growing_tables(found, np.flatnonzero(found.open), tables_for, solve_on)
    found.close(residual_tol)
    if noise_ratio > LARGEST_NOISE:
        test, train = np.abs(ratios[:2] - 1)
        far = train > np.maximum(FARTHEST * test, LEAST_SHIFT)
        found.flag(found.converged & far, Status.NOISY_ROWS)
    return found


def products_per_fit(model: Model, alpha: Array, dimension: float) -> Array:
    """Products of two directions of the bulk over samples or neurons, D^2/2 over max(n, p), at
    ``alpha`` (P,) for a network of one kind of neurons; inf for features without degree two.

    With D = 1 / E rho^2 directions, degree two of a feature is noise of its own where this is much
    larger than 1.  docs/network.md, "How large d must be"
    """
    if model.student.odd and not any(model.geometry.bias):
        return np.full(alpha.shape, np.inf)
    rows = loaded_rows(replace(model, dimension=np.inf))
    return np.asarray(rows.share_of_directions**2 * dimension / (2 * np.maximum(alpha, model.beta)))


def _limit(table: Table, alpha: Array, lam: Array) -> tuple[Array, Array]:
    """Test, training and classification errors in the limit on a ``table``, (3, P), and their
    residuals (P,)."""
    found = ridge.solve_points(table, alpha, lam)
    field = field_at_nodes(ridge.responses_of(table), found.overlaps)
    errors = [*found.errors, class_error(table, field.centre, field.variance)]
    return np.array(errors), found.residual
