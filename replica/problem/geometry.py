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
    """Loadings r (A, K), bulk variances c (A,), biases (A,) and shares (A,) of the groups;
    cosines gamma (T, K) of the target directions with the spikes; and for each group the ``first``
    (A,) of those given that are merged in it."""

    r: Array
    c: Array
    bias: Array
    fractions: Array
    gamma: Array
    first: NDArray[np.int64]

    @classmethod
    def of(
        cls, r: Any, c: Any, bias: Any, fractions: Any, gamma: Any, directions: int, apart: Any = 0
    ) -> "Geometry":
        """The geometry of numbers or nested sequences, as a model has them.

        Parameters
        ----------
        r, c, bias, fractions, gamma
            As for :class:`SpikedRandomFeatures`.
        directions : int
            Of the target, T.
        apart : float or array (A,)
            Groups that differ in it are not merged.

        Raises
        ------
        InvalidArgument
            If shapes do not fit each other, shares do not sum to 1, or gamma has a norm above 1.

        Examples
        --------
        >>> groups = Geometry.of(r=[2, 2, 1], c=1, bias=0, fractions=None, gamma=0.9, directions=1)
        >>> groups.r.ravel(), groups.fractions.round(3)
        (array([2., 1.]), array([0.667, 0.333]))
        """
        rows = _rows(r, c, bias, fractions)
        groups, spikes = len(rows), rows.shape[1] - 2
        shares = np.full(groups, 1 / groups) if fractions is None else np.array(fractions)
        if shares.size != groups or abs(shares.sum() - 1) > 1e-9:
            raise InvalidArgument("fractions", fractions, "one for each group, of sum 1")
        keys = np.column_stack([rows, np.broadcast_to(apart, groups)])
        first, shares = _merged(keys, shares)
        rows, cosines = rows[first], _cosines(gamma, directions, spikes)
        return cls(rows[:, :-2], rows[:, -2], rows[:, -1], shares, cosines, first)


def _rows(r: Any, c: Any, bias: Any, fractions: Any) -> Array:
    """Loadings, bulk variance and bias of each group in a row, (A, K + 2), a single value of any
    of them being that of all groups."""
    try:
        loadings = np.array(r, dtype=float)
        variances, biases = np.array(c, dtype=float), np.array(bias, dtype=float)
        shares = np.ones(1) if fractions is None else np.array(fractions)
        loadings = loadings.reshape(-1, 1) if loadings.ndim < 2 else loadings
        sizes = {len(loadings), variances.size, biases.size, shares.size}
        groups = max(sizes)
        flat = max(variances.ndim, biases.ndim) <= 1 and loadings.ndim <= 2 and shares.ndim == 1
        if not loadings.size or sizes - {1, groups} or not flat:
            raise ValueError
    except ValueError:
        raise InvalidArgument(
            "r",
            r,
            "of shape (), (A,) or (A, K), with c, bias and fractions of shape () "
            f"or (A,); c is {c}, bias {bias}, fractions {fractions}",
        ) from None
    parts = loadings, variances.reshape(-1, 1), biases.reshape(-1, 1)
    return np.column_stack([np.broadcast_to(part, (groups, *part.shape[1:])) for part in parts])


def _cosines(gamma: Any, directions: int, spikes: int) -> Array:
    """``gamma`` as the matrix (T, K) of cosines between ``directions`` and ``spikes``."""
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


def _merged(rows: Array, shares: Array) -> tuple[NDArray[np.int64], Array]:
    """The first of each of the different ``rows`` of positive share, in the order they come, and
    what those that are equal share together."""
    present = np.flatnonzero(shares > 0)
    # not np.unique of rows: an interrupt inside its comparison of them becomes a TypeError
    known: dict[tuple[float, ...], int] = {}
    classes = [known.setdefault(tuple(row), len(known)) for row in rows[present].tolist()]
    first = np.unique(classes, return_index=True)[1]
    merged = np.bincount(classes, weights=shares[present])
    return present[first], merged / merged.sum()


def remainder(alignment: Array) -> Array:
    """L (T, K') with L L^T = 1 - Gamma Gamma^T, one column for each direction that is left; a
    single column of zeros where none is.  A smooth function of Gamma."""
    columns = triangular_root(np.eye(len(alignment)) - alignment @ alignment.T)
    return columns if columns.size else np.zeros((len(alignment), 1))


def triangular_root(matrix: Array, size: float = 1.0) -> Array:
    """Cholesky's L (T, K') with L L^T = ``matrix``, positive or singular: without the columns of
    what the rows before determine.  Every diagonal is known to rounding of itself and of ``size``.

    Examples
    --------
    >>> triangular_root(np.array([[4.0, 2.0], [2.0, 1.0]])).tolist()
    [[2.0], [1.0]]
    """
    rest, columns = np.array(matrix), []
    least = 1e-13 * np.maximum(size, np.diagonal(rest))
    for t in range(len(rest)):
        if rest[t, t] > least[t]:
            columns.append(rest[:, t] / np.sqrt(rest[t, t]))
            rest = rest - np.outer(columns[-1], columns[-1])
    return np.stack(columns, axis=1) if columns else np.empty((len(rest), 0))


def symmetric_root(covariances: Array) -> Array:
    """The symmetric roots of covariances (..., n, n)."""
    values, vectors = np.linalg.eigh(covariances)
    roots = np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return np.asarray((vectors * roots) @ vectors.swapaxes(-1, -2))
