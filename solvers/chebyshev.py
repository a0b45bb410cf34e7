"""Chebyshev series, one or side by side on panels."""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebder, chebpts1, chebvander

from .results import Array


@cache
def to_coefficients(points: int) -> Array:
    """The matrix (n, n) from values at the n Chebyshev points to the coefficients of the series
    that takes them.

    Examples
    --------
    >>> import numpy as np
    >>> from numpy.polynomial.chebyshev import chebpts1
    >>> np.abs(to_coefficients(3) @ chebpts1(3) ** 2).round(12)  # x^2 = (1 + T_2) / 2
    array([0.5, 0. , 0.5])
    """
    return np.linalg.inv(chebvander(chebpts1(points), points - 1))


@cache
def _derivative(points: int) -> Array:
    """The matrix (n - 1, n) from the coefficients of a series to those of its derivative."""
    return chebder(np.eye(points))


class HalfLine(NamedTuple):
    """Functions of q >= 0, each a Chebyshev series on every one of some panels of equal length in

        s = log((1 + near q) / (1 + far q)),

    which is linear in q up to 1 / near, logarithmic up to 1 / far and linear in 1 / q from there.

    Attributes
    ----------
    series : (k, panels, n)
        The n coefficients of k functions.
    near, far : float

    Examples
    --------
    >>> import numpy as np
    >>> q, middles = HalfLine.points(5, 12, 1e2, 1e-2)
    >>> table = HalfLine((1 / (1 + q))[None] @ to_coefficients(12).T, 1e2, 1e-2)
    >>> (value,), (slope,) = table.at(np.array([3.0]))
    >>> bool(abs(value[0] - 1 / 4) < 1e-9 and abs(slope[0] + 1 / 16) < 1e-7)
    True
    """

    series: Array
    near: float
    far: float

    @staticmethod
    def points(panels: int, points: int, near: float, far: float) -> tuple[Array, Array]:
        """q at the Chebyshev points of all panels (panels, points), and in their middles."""
        place = (np.append(chebpts1(points), 0.0) + 1) / 2 + np.arange(panels)[:, None]
        e = (near / far) ** (place / panels)
        q = (e - 1) / (near - far * e)
        return q[:, :-1], q[:, -1]

    def place(self, q: Array) -> tuple[Array, Array, Array]:
        """Of q (P,): the panel, where in [-1, 1] of it, and
        the derivative of that in q; NaN where q is not finite."""
        panels, near, far = self.series.shape[1], 1 + self.near * q, 1 + self.far * q
        unit = panels / np.log(self.near / self.far)
        s = unit * np.log1p((self.near - self.far) * q / far)
        panel = np.clip(np.where(np.isfinite(s), s, 0.0).astype(int), 0, panels - 1)
        return panel, 2 * (s - panel) - 1, 2 * unit * (self.near - self.far) / (near * far)

    def at(self, q: Array, which: slice = np.s_[:]) -> tuple[Array, Array]:
        """``which`` functions at q (P,), and their derivatives, (k, P)."""
        panel, x, dx = self.place(q)
        chosen, T = self.series[which][:, panel], chebvander(x, self.series.shape[2] - 1)
        slopes = T[:, :-1] @ _derivative(T.shape[1])
        return (chosen * T).sum(axis=2), (chosen * slopes).sum(axis=2) * dx
