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
    result, tol = Evaluation(len(alpha)), DIMENSION_QUADRATURE_TOLERANCE if tol is None else tol
    scale = np.clip(tol, LEAST_TOLERANCE, DIMENSION_QUADRATURE_TOLERANCE)
    residual_tol, leverage_tol = RESIDUAL_SHARE * scale, LEVERAGE_SHARE * scale
    result.overlaps, result.conjugates = unknown_overlaps(len(alpha))
    ratios, network = np.full((3, len(alpha)), np.nan), replace(model, dimension=np.inf)
    of_limit = np.array([limit.test_error, limit.train_error, limit.classification_error])

    def tables_for(level: int, _: Indices) -> tuple[LoadedTable, LoadedTable] | None:
        own_table = table_at_dimension(network, model.dimension, level)
        limit_table = table_at_dimension(network, np.inf, level)
        return None if own_table is None or limit_table is None else (own_table, limit_table)

    def solve_on(tables: tuple[LoadedTable, LoadedTable], points: Indices, _: Any) -> Indices:
        size = max(1, CHUNK // tables[0].weights.size)
        for rows in np.array_split(points, -(-len(points) // size)):
            check_time()
            coarser, V = (
                np.stack([solved.overlaps.V1[rows, 0, 0], solved.overlaps.V2[rows, 0]], axis=1)
                for solved in (result, limit)
            )
            V = np.where(np.isfinite(coarser), coarser, V)
            fits = solve_readouts(tables[0], alpha[rows], lam[rows], V, leverage_tol)
            errors, residual = _limit(tables[1], alpha[rows], lam[rows])
            ratio = np.array([*fits.errors, fits.wrong]) / errors
            change = np.abs(ratio / ratios[:, rows] - 1)[: 2 + model.labels.binary].max(axis=0)
            change = np.nan_to_num(change, nan=np.inf)
            residual = np.maximum(fits.residual, residual)
            ratios[:, rows] = ratio
            test, train, class_errors = of_limit[:, rows] * ratio
            result.store(
                rows,
                test_error=test,
                train_error=train,
                loss_error=(test + tables[0].noise) / 2,
                train_loss=train / 2,
                classification_error=class_errors,
                residual=residual,
                quadrature_error=np.maximum(change, limit.quadrature_error[rows]),
                iterations=fits.passes,
                nodes=np.full(len(rows), tables[0].weights.size),
                converged=residual <= residual_tol,
                open=~(change <= tol),
            )
            result.overlaps.V1[rows, 0, 0], result.overlaps.V2[rows, 0] = fits.V.T
            result.overlaps.m[rows] = fits.m[:, :1]
        return points[result.open[points] & result.converged[points]]

    result.flag(~limit.converged, limit.status[~limit.converged])
    noise_ratio = 0.0
    with deadline(time_limit * len(alpha)), np.errstate(all="ignore"):  # what is not finite is NaN
        try:
            rows = loaded_rows(network)
            has_few = products_per_fit(model, alpha, model.dimension) < ENOUGH_PRODUCTS
            noise = rows.loading_covariance[-1, -1] / model.dimension
            is_noisy = noise > LARGEST_SHARE * float(model.geometry.c[0])
            noise_ratio = rows.noise_ratio
            result.flag(result.open & has_few, Status.FEW_DIRECTIONS)
            result.flag(result.open & is_noisy, Status.NOISY_ROWS)
        except (GivenUp, np.linalg.LinAlgError) as error:
            status = error.status if isinstance(error, GivenUp) else Status.NOT_FINITE
            result.flag(result.open.copy(), status)
        solve_on_growing_tables(result, np.flatnonzero(result.open), tables_for, solve_on)
    result.close(residual_tol)
    if noise_ratio > LARGEST_NOISE:
        test, train = np.abs(ratios[:2] - 1)
        is_far = train > np.maximum(FARTHEST * test, LEAST_SHIFT)
        result.flag(result.converged & is_far, Status.NOISY_ROWS)
    return result


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
    points = ridge.solve_points(table, alpha, lam)
    field = field_at_nodes(ridge.responses_of(table), points.overlaps)
    errors = [*points.errors, class_error(table, field.centre, field.variance)]
    return np.array(errors), points.residual
