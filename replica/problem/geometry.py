"""Groups of neurons and their spikes as arrays: shapes checked, equal groups merged.

Rows of group b of the first layer are sqrt(c_b) w_i + sum_k r_bk u_k, with orthonormal spikes
u_k at cosines gamma_tk = w_t . u_k to the target's directions.  docs/theory.md 2
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.linear import triangular_root
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
        group_rows = _group_rows(r, c, bias, fractions)
        group_count, spike_count = len(group_rows), group_rows.shape[1] - 2
        shares = np.full(group_count, 1 / group_count) if fractions is None else np.array(fractions)
        if shares.size != group_count or abs(shares.sum() - 1) > 1e-9:
            raise InvalidArgument("fractions", fractions, "a share for each group, of sum 1")
        group_keys = np.column_stack([group_rows, np.broadcast_to(key, group_count)])
        first, shares = _merge_equal_rows(group_keys, shares)
        group_rows, cosines = group_rows[first], _cosine_matrix(gamma, directions, spike_count)
        return cls(group_rows[:, :-2], group_rows[:, -2], group_rows[:, -1], shares, cosines, first)


def _group_rows(r: Any, c: Any, bias: Any, fractions: Any) -> Array:
    """Loadings, bulk variance and bias of each group in a row, (A, K + 2).

    A single value of any of them holds for all groups.
    """
    try:
        spike_r = np.array(r, dtype=float)
        spike_r = spike_r.reshape(-1, 1) if spike_r.ndim < 2 else spike_r
        group_variances, group_biases = np.array(c, dtype=float), np.array(bias, dtype=float)
        group_shares = np.ones(1) if fractions is None else np.array(fractions)
        group_shapes = (x.shape for x in (group_variances, group_biases, group_shares))
        (group_count,) = np.broadcast_shapes(spike_r.shape[:1], *group_shapes)
        if not (group_count and spike_r.size) or spike_r.ndim > 2 or group_shares.ndim != 1:
            raise ValueError
    except ValueError:
        allowed_shapes = (
            "of shape (), (A,) or (A, K), with c, bias and fractions of shape () "
            f"or (A,); c is {c}, bias {bias}, fractions {fractions}"
        )
        raise InvalidArgument("r", r, allowed_shapes) from None
    columns = (np.broadcast_to(x, group_count) for x in (group_variances, group_biases))
    return np.column_stack([np.broadcast_to(spike_r, (group_count, spike_r.shape[1])), *columns])


def _cosine_matrix(gamma: Any, directions: int, spikes: int) -> Array:
    """``gamma`` as the matrix (T, K) of cosines of T ``directions`` with K ``spikes``."""
    try:
        spike_cosines = np.atleast_2d(np.array(gamma, dtype=float))
    except ValueError:  # rows of different lengths
        spike_cosines = np.empty((0, 0))
    if spike_cosines.shape == (1, directions) and spikes == 1:
        spike_cosines = spike_cosines.T
    if spike_cosines.shape != (directions, spikes):
        allowed_cosines = f"of shape {directions, spikes}, target directions by spikes"
        raise InvalidArgument("gamma", gamma, allowed_cosines)
    if np.linalg.norm(spike_cosines, 2) > 1 + 1e-12:
        raise InvalidArgument("gamma", gamma, "a cosine in [-1, 1] (a matrix of norm at most 1)")
    return spike_cosines


def _merge_equal_rows(rows: Array, group_shares: Array) -> tuple[NDArray[np.int64], Array]:
    """Indices of the distinct ``rows`` of positive share, in order, and their total shares."""
    present_groups = np.flatnonzero(group_shares > 0)
    # not np.unique of rows: an interrupt inside its comparisons becomes a TypeError
    index: dict[tuple[float, ...], int] = {}
    row_class = [index.setdefault(tuple(row), len(index)) for row in rows[present_groups].tolist()]
    first_index = np.unique(row_class, return_index=True)[1]
    class_shares = np.bincount(row_class, weights=group_shares[present_groups])
    return present_groups[first_index], class_shares / class_shares.sum()


def complement_root(alignment: Array) -> Array:
    """L (T, K') with L L^T = 1 - Gamma Gamma^T: the target's directions orthogonal to the spikes.

    A single column of zeros if the spikes span them all.  L is a smooth function of Gamma.
    """
    complement_columns = triangular_root(np.eye(len(alignment)) - alignment @ alignment.T)
    return complement_columns if complement_columns.size else np.zeros((len(alignment), 1))
