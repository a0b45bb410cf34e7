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
    cosines gamma (T, K) of the target directions with the spikes."""

    r: Array
    c: Array
    bias: Array
    fractions: Array
    gamma: Array

    @classmethod
    def of(
        cls, *, r: Any, c: Any, bias: Any, fractions: Any, gamma: Any, directions: int
    ) -> "Geometry":
        """The geometry of numbers or nested sequences, as a model has them.

        Parameters
        ----------
        r, c, bias, fractions, gamma
            As for :class:`SpikedRandomFeatures`.
        directions : int
            Of the target, T.

        Raises
        ------
        InvalidArgument
            If shapes do not fit each other, shares do not sum to 1, or gamma has a norm above 1.

        Examples
        --------
        >>> found = Geometry.of(r=[2, 2, 1], c=1, bias=0, fractions=None, gamma=0.9, directions=1)
        >>> found.r.ravel(), found.fractions.round(3)
        (array([2., 1.]), array([0.667, 0.333]))
        """
        try:
            loadings = np.array(r, dtype=float)
            variances, biases = np.array(c, dtype=float), np.array(bias, dtype=float)
            loadings = loadings.reshape(-1, 1) if loadings.ndim < 2 else loadings
            cosines = np.atleast_2d(np.array(gamma, dtype=float))
            shares = np.array([]) if fractions is None else np.array(fractions)
            sizes = {len(loadings), variances.size, biases.size, max(1, shares.size)}
            groups = max(sizes)
            if 0 in (loadings.size, cosines.size) or (fractions is not None and not shares.ndim):
                raise ValueError
            flat = max(variances.ndim, biases.ndim, shares.ndim) <= 1 and loadings.ndim <= 2
            if sizes - {1, groups} or not flat:
                raise ValueError
        except ValueError:
            raise InvalidArgument(
                "r",
                r,
                "of shape (), (A,) or (A, K), with c, bias and fractions of shape () "
                f"or (A,); c is {c}, bias {bias}, fractions {fractions}",
            ) from None
        if not shares.size:
            shares = np.full(groups, 1 / groups)
        if shares.size != groups or abs(shares.sum() - 1) > 1e-9:
            raise InvalidArgument("fractions", fractions, "one for each group, of sum 1")
        expected = directions, loadings.shape[1]
        if cosines.shape != expected:
            if cosines.shape != (1, directions) or expected[1] != 1:
                raise InvalidArgument(
                    "gamma", gamma, f"of shape {expected}, target directions by spikes"
                )
            cosines = cosines.T
        if np.linalg.norm(cosines, 2) > 1 + 1e-12:
            raise InvalidArgument(
                "gamma", gamma, "a cosine in [-1, 1] (a matrix of norm at most 1)"
            )
        rows = np.column_stack(
            [
                np.broadcast_to(part, (groups, *part.shape[1:]))
                for part in (loadings, variances.reshape(-1, 1), biases.reshape(-1, 1))
            ]
        )
        rows, shares = _merged(rows, shares)
        return cls(rows[:, :-2], rows[:, -2], rows[:, -1], shares, cosines)


def _merged(rows: Array, shares: Array) -> tuple[Array, Array]:
    """Different ``rows`` in the order they come, and what they share together; none of share 0."""
    rows, shares = rows[shares > 0], shares[shares > 0]
    first, classes = distinct(rows)
    merged = np.bincount(classes, weights=shares)
    return rows[first], merged / merged.sum()


def distinct(rows: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of the different rows in the order they come, and which of them every row is.

    Not ``np.unique``: an interrupt inside its comparison of rows becomes a TypeError.
    """
    seen: dict[tuple[float, ...], int] = {}
    classes = np.array([seen.setdefault(tuple(row), len(seen)) for row in rows.tolist()])
    return np.unique(classes, return_index=True)[1], classes


def remainder(alignment: Array) -> Array:
    """L (T, K') with L L^T = 1 - Gamma Gamma^T, one column for each direction that is left; a
    single column of zeros where none is."""
    values, vectors = np.linalg.eigh(np.eye(len(alignment)) - alignment @ alignment.T)
    kept = values > 1e-13
    if not kept.any():
        return np.zeros((len(alignment), 1))
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
