"""Chebyshev series on an interval, and on panels of the half line."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebder, chebpts1, chebvander

from .results import Array


@cache
def coefficient_matrix(points: int) -> Array:
    """Matrix (n, n) that maps values at the n Chebyshev points to the coefficients of the
    Chebyshev series through them.

    Examples
    --------
    >>> import numpy as np
    >>> from numpy.polynomial.chebyshev import chebpts1
    >>> np.abs(coefficient_matrix(3) @ chebpts1(3) ** 2).round(12)  # x^2 = (1 + T_2) / 2
    array([0.5, 0. , 0.5])
    """
    return np.linalg.inv(chebvander(chebpts1(points), points - 1))


@cache
def _derivative_matrix(points: int) -> Array:
    """Matrix (n - 1, n) that maps coefficients of a series to coefficients of its derivative."""
    return chebder(np.eye(points))


class HalfLine(NamedTuple):
    """Functions of q >= 0 as Chebyshev series on panels.  The panels have equal length in

        s = log((1 + near q) / (1 + far q)),

    which is linear in q up to 1 / near, logarithmic up to 1 / far, and linear in 1 / q beyond.

    Attributes
    ----------
    series : (k, panels, n)
        The n coefficients of k functions on each panel.
    near, far : float
        Inverses of the values of q between which s is logarithmic.

    Examples
    --------
    >>> import numpy as np
    >>> q, middles = HalfLine.panel_points(5, 12, 1e2, 1e-2)
    >>> table = HalfLine((1 / (1 + q))[None] @ coefficient_matrix(12).T, 1e2, 1e-2)
    >>> (value,), (slope,) = table.evaluate(np.array([3.0]))
    >>> bool(abs(value[0] - 1 / 4) < 1e-9 and abs(slope[0] + 1 / 16) < 1e-7)
    True
    """

    series: Array
    near: float
    far: float

    @staticmethod
    def panel_points(panels: int, points: int, near: float, far: float) -> tuple[Array, Array]:
        """Values of q at the Chebyshev points of panels, (panels, points), and at their middles."""
        position = (np.append(chebpts1(points), 0.0) + 1) / 2 + np.arange(panels)[:, None]
        ratio = (near / far) ** (position / panels)
        q = (ratio - 1) / (near - far * ratio)
        return q[:, :-1], q[:, -1]

    def locate(self, q: Array) -> tuple[Array, Array, Array]:
        """Panel of each q (P,), coordinate x in [-1, 1] there, and dx/dq; NaN where q is not
        finite."""
        panels, near, far = self.series.shape[1], 1 + self.near * q, 1 + self.far * q
        unit = panels / np.log(self.near / self.far)
        s = unit * np.log1p((self.near - self.far) * q / far)
        panel = np.clip(np.where(np.isfinite(s), s, 0.0).astype(int), 0, panels - 1)
        return panel, 2 * (s - panel) - 1, 2 * unit * (self.near - self.far) / (near * far)

    def evaluate(self, q: Array, functions: slice = np.s_[:]) -> tuple[Array, Array]:
        """Values and derivatives, (k, P) each, of the selected functions at q (P,)."""
        panel, x, dx = self.locate(q)
        coefficients, T = self.series[functions][:, panel], chebvander(x, self.series.shape[2] - 1)
        slopes = T[:, :-1] @ _derivative_matrix(T.shape[1])
        return (coefficients * T).sum(axis=2), (coefficients * slopes).sum(axis=2) * dx


def interpolated(function: Callable[[Array], Array], at: Array, points: int = 16) -> Array:
    """Values ``(k, *shape)`` of k functions of one variable at many places ``at``, through
    Chebyshev series on panels.

    Panels are halved until the last coefficients are below 1e-12 of the largest; where that takes
    as many evaluations, ``function`` itself is called at all places.

    Examples
    --------
    >>> x = np.linspace(-5, 5, 2000)
    >>> values = interpolated(lambda x: np.stack([np.tanh(x), np.cos(x)]), x)
    >>> bool(np.abs(values - [np.tanh(x), np.cos(x)]).max() < 1e-12)
    True
    """
    low, high = float(at.min()), float(at.max())
    panels = max(int(high - low), 1)
    while panels * points < at.size / 4:
        edges = np.linspace(low, high, panels + 1)
        half = (edges[1] - edges[0]) / 2
        x = edges[:-1, None] + half * (1 + chebpts1(points))
        values = np.asarray(function(x.ravel())).reshape(-1, panels, points)
        series = values @ coefficient_matrix(points).T
        last = np.abs(series[..., -2:]).max(axis=(1, 2))
        if (last <= 1e-12 * np.abs(series).max(axis=(1, 2))).all():
            panel = np.minimum(((at - low) / (2 * half)).astype(int), panels - 1)
            t = (at - edges[panel]) / half - 1
            b1, b2 = np.zeros((2, len(series), *at.shape))
            for k in range(points - 1, 0, -1):  # Clenshaw's recurrence
                b1, b2 = series[:, panel, k] + 2 * t * b1 - b2, b1
            return np.asarray(series[:, panel, 0] + t * b1 - b2)
        panels *= 2
    return np.asarray(function(at.ravel())).reshape(-1, *at.shape)
