"""Learnability: the part of a linear function of given features that the mean readout of ridge
regression learns.  docs/theory.md 20
"""

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.arrays import like, to_host
from solvers.resources import TIME_LIMIT, GivenUp, check_time, deadline, one_thread
from solvers.results import Array

from ..errors import InvalidArgument
from ..given import FeatureSample, Given, GivenPoint, equations_of
from ..problem import check_call, finite_array
from .solution import solve_layer


@check_call
def learnability(
    model: Given,
    direction: ArrayLike,
    *,
    samples: Any = None,
    alpha: Any = None,
    lam: Any,
    quadrature_tol: float | None = None,
    time_limit: float = TIME_LIMIT,
) -> Any:
    """The part of a target that ridge regression on given features learns.

    The target is f* = u phi, linear in the features along a ``direction`` u.  On labels f* the mean
    prediction over the readout's samples is f, and its learnability is E f f* / E f*^2 over new
    inputs.  It is from 0 to 1 for one stratum of FeatureMoments; several strata, which the fit
    weighs in its own way, and rows may leave it outside.  Of an eigenvector of the second moments
    of Gaussian features, of the eigenvalue s, it is s / (s + kappa), with the effective penalty
    kappa of a :class:`Solution`.  Labels of the ``model`` are not used.

    Parameters
    ----------
    model : FirstLayer, FeatureSample or FeatureMoments
        Features of the readout.  With an intercept f and f* are of deviations from the mean.
    direction : array (p,) or (p, k)
        u in the space of the p features, of any length; or one in each column.
    samples, alpha : float
        One of them: the number n of the readout's samples, or n/d of a FirstLayer.
    lam : float
        Ridge penalty of (1.2).
    quadrature_tol, time_limit : float
        As in :func:`replica.solve`; the time is that of all directions together.

    Returns
    -------
    float or array (k,)
        NaN where the point did not converge, or took too long, or f* is 0.

    Raises
    ------
    InvalidArgument
        If an argument is out of range.

    Examples
    --------
    >>> from replica import FeatureMoments, learnability, solve
    >>> moments = FeatureMoments(covariances=np.diag([4.0, 1.0, 0.1]), label_means=1.0)
    >>> kappa = solve(moments, samples=10, lam=0.5).kappa
    >>> learned = learnability(moments, np.eye(3), samples=10, lam=0.5)
    >>> learned.round(3), bool(np.allclose(learned, [s / (s + kappa) for s in (4.0, 1.0, 0.1)]))
    (array([0.954, 0.84 , 0.344]), True)
    """
    if not isinstance(model, Given):
        raise InvalidArgument("model", model, "a FirstLayer, a FeatureSample or FeatureMoments")
    target_directions = finite_array("direction", direction, None)
    if len(target_directions) != model.width:
        allowed = f"of shape ({model.width},), or a direction of {model.width} features in a column"
        allowed += ": direction.T" * (target_directions.shape[1:] == (model.width,))
        raise InvalidArgument("direction", f"shape {target_directions.shape}", allowed)
    target_columns = target_directions.reshape(model.width, -1).T
    learned_parts = np.full(len(target_columns), np.nan)
    readout_settings = "square", quadrature_tol, time_limit
    with deadline(time_limit), suppress(GivenUp):
        layer, given_point = solve_layer(model, alpha, samples, lam, *readout_settings)
        if layer.converged:
            if isinstance(model, FeatureSample):
                target_columns = _in_coordinates(model, target_columns)
            learned_parts = _learned_parts(given_point, layer.samples, layer.lam, target_columns)
    return float(learned_parts[0]) if target_directions.ndim == 1 else learned_parts


def _in_coordinates(model: FeatureSample, targets: Array) -> Array:
    """The ``targets`` (k, p) in the coordinates of rows that span fewer directions, (k, r); 0 where
    they are at right angles to all rows."""
    if model.row_directions is None:
        return targets
    in_coordinates, sizes = targets @ model.row_directions, np.linalg.norm(targets, axis=1)
    in_coordinates[np.linalg.norm(in_coordinates, axis=1) <= 1e-12 * sizes] = 0.0
    return np.asarray(in_coordinates)


@one_thread()
def _learned_parts(given_point: GivenPoint, samples: float, lam: float, targets: Array) -> Array:
    """The part of each of the ``targets`` (k, p), directions of the features."""
    assert given_point.given is not None
    assert given_point.last is not None
    ridge_equations, G = equations_of(given_point.given, samples, lam), given_point.last.response
    strata = ridge_equations.strata
    V = ridge_equations.response_of_square(strata.positive(strata.trace(G)))
    kept_residual, learned_parts = ridge_equations.left(1 / (1 + V), V), np.empty(len(targets))
    if given_point.given.intercept:  # its feature takes the mean of f*
        feature_mean = to_host(strata.mix_vectors(strata.shares, 0 * strata.shares))
        *feature_means, feature_constant = feature_mean.reshape(-1, strata.coordinates)[0]
        targets = np.column_stack([targets, -(targets @ feature_means) / feature_constant])
    for i, target_x in enumerate(targets):
        check_time()
        u_x = like(target_x, G)
        learned_readout = u_x - G @ (like(ridge_equations.lam, G) * u_x)
        product = u_x[:, None] * learned_readout
        overlaps, power = strata.trace(product + product.T) / 2, strata.trace(u_x[:, None] * u_x)
        # a row is not in the readout that it tests
        overlaps = (overlaps - (1 - kept_residual) * power) / kept_residual
        with np.errstate(invalid="ignore"):
            learned_parts[i] = strata.shares @ overlaps / (strata.shares @ power)  # Eq. (20.17)
    return learned_parts
