"""Groups of neurons and their spikes as arrays: shapes checked, equal groups merged.

Rows of group b of the first layer are sqrt(c_b) w_i + sum_k r_bk u_k, with orthonormal spikes
u_k at cosines gamma_tk = w_t . u_k to the target's directions.  docs/theory.md 2
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array

from ..errors import InvalidArgument


@dataclass(frozen=True, eq=False)
class Geometry:
    """Groups of neurons and their spikes as arrays.

    Attributes
    ----------
    r : (A, K)
        Loadings.
    c, bias, fractions : (A,)
        Bulk variances, biases and shares.
    gamma : (T, K)
        Cosines of the target directions with the spikes.
    first : int (A,)
        Index of the first of the given groups that are merged in each group.
    """

    r: Array
    c: Array
    bias: Array
    fractions: Array
    gamma: Array
    first: NDArray[np.int64]

    @classmethod
    def from_fields(
        cls, r: Any, c: Any, bias: Any, fractions: Any, gamma: Any, directions: int, key: Any = 0
    ) -> "Geometry":
        """Geometry of a model's fields, numbers or nested sequences.

        Parameters
        ----------
        r, c, bias, fractions, gamma
            As for :class:`SpikedRandomFeatures`.
        directions : int
            Number T of target directions.
        key : float or array (A,)
            Groups with different values are not merged.

        Raises
        ------
        InvalidArgument
            If shapes do not fit each other, shares do not sum to 1, or gamma has a norm above 1.

        Examples
        --------
        >>> groups = Geometry.from_fields([2, 2, 1], 1, 0, None, gamma=0.9, directions=1)
        >>> groups.r.ravel(), groups.fractions.round(3)
        (array([2., 1.]), array([0.667, 0.333]))
        """
        rows = _group_rows(r, c, bias, fractions)
        groups, spikes = len(rows), rows.shape[1] - 2
        shares = np.full(groups, 1 / groups) if fractions is None else np.array(fractions)
        if shares.size != groups or abs(shares.sum() - 1) > 1e-9:
            raise InvalidArgument("fractions", fractions, "a share for each group, of sum 1")
        keys = np.column_stack([rows, np.broadcast_to(key, groups)])
        first, shares = _merge_equal_rows(keys, shares)
        rows, cosines = rows[first], _cosine_matrix(gamma, directions, spikes)
        return cls(rows[:, :-2], rows[:, -2], rows[:, -1], shares, cosines, first)


def _group_rows(r: Any, c: Any, bias: Any, fractions: Any) -> Array:
    """Loadings, bulk variance and bias of each group in a row, (A, K + 2).

    A single value of any of them holds for all groups.
    """
    try:
        loadings = np.array(r, dtype=float)
        loadings = loadings.reshape(-1, 1) if loadings.ndim < 2 else loadings
        variances, biases = np.array(c, dtype=float), np.array(bias, dtype=float)
        shares = np.ones(1) if fractions is None else np.array(fractions)
        shapes = (x.shape for x in (variances, biases, shares))
        (groups,) = np.broadcast_shapes(loadings.shape[:1], *shapes)
        if not (groups and loadings.size) or loadings.ndim > 2 or shares.ndim != 1:
            raise ValueError
    except ValueError:
        allowed = (
            "of shape (), (A,) or (A, K), with c, bias and fractions of shape () "
            f"or (A,); c is {c}, bias {bias}, fractions {fractions}"
        )
        raise InvalidArgument("r", r, allowed) from None
    columns = (np.broadcast_to(x, groups) for x in (variances, biases))
    return np.column_stack([np.broadcast_to(loadings, (groups, loadings.shape[1])), *columns])


def _cosine_matrix(gamma: Any, directions: int, spikes: int) -> Array:
    """``gamma`` as the matrix (T, K) of cosines of T ``directions`` with K ``spikes``."""
    try:
        cosines = np.atleast_2d(np.array(gamma, dtype=float))
    except ValueError:  # rows of different lengths
        cosines = np.empty((0, 0))
    if cosines.shape == (1, directions) and spikes == 1:
        cosines = cosines.T
    if cosines.shape != (directions, spikes):
        allowed = f"of shape {directions, spikes}, target directions by spikes"
        raise InvalidArgument("gamma", gamma, allowed)
    if np.linalg.norm(cosines, 2) > 1 + 1e-12:
        raise InvalidArgument("gamma", gamma, "a cosine in [-1, 1] (a matrix of norm at most 1)")
    return cosines


def _merge_equal_rows(rows: Array, shares: Array) -> tuple[NDArray[np.int64], Array]:
    """Indices of the distinct ``rows`` of positive share, in order, and their total shares."""
    present = np.flatnonzero(shares > 0)
    # not np.unique of rows: an interrupt inside its comparisons becomes a TypeError
    index: dict[tuple[float, ...], int] = {}
    classes = [index.setdefault(tuple(row), len(index)) for row in rows[present].tolist()]
    first_index = np.unique(classes, return_index=True)[1]
    totals = np.bincount(classes, weights=shares[present])
    return present[first_index], totals / totals.sum()


def complement_root(alignment: Array) -> Array:
    """L (T, K') with L L^T = 1 - Gamma Gamma^T: the target's directions orthogonal to the spikes.

    A single column of zeros if the spikes span them all.  L is a smooth function of Gamma.
    """
    columns = triangular_root(np.eye(len(alignment)) - alignment @ alignment.T)
    return columns if columns.size else np.zeros((len(alignment), 1))


def triangular_root(matrix: Array, size: float = 1.0) -> Array:
    """Cholesky factor L (T, K') with L L^T = ``matrix``, which may be singular.

    A pivot below the rounding of its diagonal entry, or of ``size``, has no column.

    Examples
    --------
    >>> triangular_root(np.array([[4.0, 2.0], [2.0, 1.0]])).tolist()
    [[2.0], [1.0]]
    """
    remaining, columns = np.array(matrix), []
    smallest_pivot = 1e-13 * np.maximum(size, np.diagonal(remaining))
    for t in range(len(remaining)):
        if remaining[t, t] > smallest_pivot[t]:
            columns.append(remaining[:, t] / np.sqrt(remaining[t, t]))
            remaining = remaining - np.outer(columns[-1], columns[-1])
    return np.stack(columns, axis=1) if columns else np.empty((len(remaining), 0))


def symmetric_root(covariances: Array) -> Array:
    """Symmetric square roots of covariances (..., n, n)."""
    values, vectors = np.linalg.eigh(covariances)
    roots = np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return np.asarray((vectors * roots) @ vectors.swapaxes(-1, -2))
