"""The theory of a network at its own dimension, at many points.  docs/theory.md 23"""

from dataclasses import replace
from math import factorial
from typing import Any

import numpy as np

from solvers.resources import GivenUp, check_time, deadline
from solvers.results import Array, Indices, Status

from ..equivalence import Table
from ..problem import Model
from ..saddle_point import (
    Evaluation,
    field_at_nodes,
    ridge,
    solve_on_growing_tables,
    unknown_overlaps,
)
from .readout import class_error, solve_readouts
from .tabulate import LoadedTable, loaded_rows, table_at_dimension

# Thresholds on 24 settings at d = 300 and 1000 (benchmarks/DIMENSION.md).
# Share of the bulk's variance in the noise direction: errors are right up to .2, and the training
# error is 2.3 standard errors off at .66, the next.
# Where this variance is more than twice that of the coordinates, errors are right if the training
# error moves from the limit as the test error does, up to 1.4 times as far.  Where it falls
# farther, it is 3 and 4 standard errors off at d = 300 and 500; and at d = 200 up to 4 where it
# falls by 2 to 6 % as the test error rises, which is up to 6 off there.  A training error that
# moves by less than 1.5 % is within that of simulation, as others are.
LARGEST_SHARE, LARGEST_NOISE, FARTHEST, LEAST_SHIFT = 0.4, 2.0, 2.0, 0.015
# Variance of the responses that rare large features make: from .02 to .2 test errors are 4 to 50 %
# off (He_3, cube, He_2 at d = 200 and 400; of exp(x) up to 170 %), below up to 3 %.
MOST_VARIANCE = 0.02
# Share of the limit's test error: below it networks of d = 200 and 400 had up to 75 % more, from it
# on up to 12 %; the change from the limit is known to about a fifth of itself.
LEAST_OF_LIMIT = 0.5
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
    # weight of dropped nodes over the quadrature tolerance, between the least one and the default
    dropped_share, least_tolerance = 1 / 200, 2e-6
    enough_products = 0.3  # of two or three directions of the bulk, for each sample and neuron
    dimension_quadrature_tolerance, dimension_residual_tolerance = 2e-3, 1e-8
    evaluation, tol = Evaluation(len(alpha)), dimension_quadrature_tolerance if tol is None else tol
    dimension_tol = float(np.clip(tol, least_tolerance, dimension_quadrature_tolerance))
    dropped = dropped_share * dimension_tol
    evaluation.overlaps, evaluation.conjugates = unknown_overlaps(len(alpha))
    ratios, limit_network = np.full((3, len(alpha)), np.nan), replace(model, dimension=np.inf)
    has_rare_features = np.zeros(len(alpha), dtype=bool)
    limit_errors = np.array([limit.test_error, limit.train_error, limit.classification_error])

    def solve_on(level: int, points: Indices, _: Any) -> tuple[LoadedTable | None, Indices]:
        own_table = table_at_dimension(limit_network, model.dimension, level, dropped)
        limit_table = table_at_dimension(limit_network, np.inf, level, dropped)
        if own_table is None or limit_table is None:
            return None, points[:0]
        chunk_size = max(1, CHUNK // own_table.weights.size)
        for chunk in np.array_split(points, -(-len(points) // chunk_size)):
            check_time()
            V1, V2 = limit.overlaps.V1[chunk, 0, 0], limit.overlaps.V2[chunk, 0]
            V_guess = np.stack([V1, V2], axis=1)
            readouts = solve_readouts(own_table, alpha[chunk], lam[chunk], V_guess)
            chunk_limit, fit_residual = _limit(limit_table, alpha[chunk], lam[chunk])
            ratio = np.array([*readouts.errors, readouts.wrong]) / chunk_limit
            change = np.abs(ratio / ratios[:, chunk] - 1)[: 2 + model.labels.binary].max(axis=0)
            change = np.nan_to_num(change, nan=np.inf)
            fit_residual = np.maximum(readouts.residual, fit_residual)
            ratios[:, chunk] = ratio
            has_rare_features[chunk] = readouts.rare > MOST_VARIANCE
            test_error, train_error, class_errors = limit_errors[:, chunk] * ratio
            evaluation.store(
                chunk,
                test_error=test_error,
                train_error=train_error,
                loss_error=(test_error + own_table.noise) / 2,
                train_loss=train_error / 2,
                classification_error=class_errors,
                residual=fit_residual,
                quadrature_error=np.maximum(change, limit.quadrature_error[chunk]),
                iterations=readouts.passes,
                nodes=np.full(len(chunk), own_table.weights.size),
                converged=fit_residual <= dimension_residual_tolerance,
                open=~(change <= tol),
            )
            evaluation.overlaps.V1[chunk, 0, 0], evaluation.overlaps.V2[chunk, 0] = readouts.V.T
            evaluation.overlaps.m[chunk] = readouts.m[:, :1]
        return own_table, points[evaluation.open[points] & evaluation.converged[points]]

    evaluation.flag(~limit.converged, limit.status[~limit.converged])
    noise_ratio = 0.0
    with deadline(time_limit * len(alpha)), np.errstate(all="ignore"):  # what is not finite is NaN
        try:
            loaded = loaded_rows(limit_network)
            has_few = products_per_fit(model, alpha, model.dimension) < enough_products
            noise_variance = loaded.loading_covariance[-1, -1] / model.dimension
            is_noisy = noise_variance > LARGEST_SHARE * float(model.geometry.c[0])
            noise_ratio = loaded.noise_ratio
            evaluation.flag(evaluation.open & has_few, Status.FEW_DIRECTIONS)
            evaluation.flag(evaluation.open & is_noisy, Status.NOISY_ROWS)
        except (GivenUp, np.linalg.LinAlgError) as error:
            failure_status = error.status if isinstance(error, GivenUp) else Status.NOT_FINITE
            evaluation.flag(evaluation.open.copy(), failure_status)
        solve_on_growing_tables(evaluation, np.flatnonzero(evaluation.open), solve_on)
    evaluation.close(dimension_residual_tolerance)
    evaluation.flag(evaluation.converged & has_rare_features, Status.RARE_FEATURES)
    headline = 2 if model.labels.binary else 0
    is_far_below = np.minimum(ratios[0], ratios[headline]) < LEAST_OF_LIMIT
    evaluation.flag(evaluation.converged & is_far_below, Status.FAR_BELOW_LIMIT)
    if noise_ratio > LARGEST_NOISE:
        test_shift, train_shift = ratios[:2] - 1
        is_far = np.abs(train_shift) > np.maximum(FARTHEST * np.abs(test_shift), LEAST_SHIFT)
        is_far |= (train_shift < -LEAST_SHIFT) & (test_shift > 0)
        evaluation.flag(evaluation.converged & is_far, Status.NOISY_ROWS)
    return evaluation


def products_per_fit(model: Model, alpha: Array, dimension: float) -> Array:
    """Products of k directions of the bulk over samples or neurons, D^k / k! over max(n, p), at
    ``alpha`` (P,) for a network of one kind of neurons: k = 2, or 3 where features are odd.

    With D = 1 / E rho^2 directions, degree k of a feature is noise of its own where this is much
    larger than 1.  docs/network.md, "How large d must be"
    """
    features_are_odd = model.student.odd and not any(model.geometry.bias)
    degree = 3 if features_are_odd else 2
    directions = loaded_rows(replace(model, dimension=np.inf)).share_of_directions * dimension
    fits = dimension * np.maximum(alpha, model.beta)
    return np.asarray(directions**degree / factorial(degree) / fits)


def _limit(table: Table, alpha: Array, lam: Array) -> tuple[Array, Array]:
    """Test, training and classification errors in the limit on a ``table``, (3, P), and their
    residuals (P,)."""
    limit_points = ridge.solve_points(table, alpha, lam)
    limit_field = field_at_nodes(ridge.responses_of(table), limit_points.overlaps)
    errors = [*limit_points.errors, class_error(table, limit_field.centre, limit_field.variance)]
    return np.array(errors), limit_points.residual
