"""Chebyshev series on an interval, and on panels of the half line."""

from collections.abc import Callable
from functools import cache, partial
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
        panel_position = (np.append(chebpts1(points), 0.0) + 1) / 2 + np.arange(panels)[:, None]
        log_ratio_of_q = (near / far) ** (panel_position / panels)
        q = (log_ratio_of_q - 1) / (near - far * log_ratio_of_q)
        return q[:, :-1], q[:, -1]

    def locate(self, q: Array) -> tuple[Array, Array, Array]:
        """Panel of each q (P,), coordinate x in [-1, 1] there, and dx/dq; NaN where q is not
        finite."""
        panel_count = self.series.shape[1]
        near_factor, far_factor = 1 + self.near * q, 1 + self.far * q
        panels_per_log = panel_count / np.log(self.near / self.far)
        panel_position = panels_per_log * np.log1p((self.near - self.far) * q / far_factor)
        panel = np.clip(
            np.where(np.isfinite(panel_position), panel_position, 0.0).astype(int),
            0,
            panel_count - 1,
        )
        return (
            panel,
            2 * (panel_position - panel) - 1,
            2 * panels_per_log * (self.near - self.far) / (near_factor * far_factor),
        )

    def evaluate(self, q: Array, functions: slice = np.s_[:]) -> tuple[Array, Array]:
        """Values and derivatives, (k, P) each, of the selected functions at q (P,)."""
        panel, x, x_slope = self.locate(q)
        panel_series, T = self.series[functions][:, panel], chebvander(x, self.series.shape[2] - 1)
        T_slopes = T[:, :-1] @ _derivative_matrix(T.shape[1])
        return (panel_series * T).sum(axis=2), (panel_series * T_slopes).sum(axis=2) * x_slope


def interpolant(
    function: Callable[[Array], Array], low: float, high: float, most: float, points: int = 16
) -> Callable[[Array], Array]:
    """Chebyshev series on panels between ``low`` and ``high`` for k functions of one variable: a
    function of places of any shape with values ``(k, *shape)``.

    Panels are halved until the last coefficients are below 1e-12 of the largest; where that takes
    ``most`` evaluations, ``function`` itself is called at all places.

    Examples
    --------
    >>> x = np.linspace(-5, 5, 2000)
    >>> series = interpolant(lambda x: np.stack([np.tanh(x), np.cos(x)]), -5, 5, 2000)
    >>> bool(np.abs(series(x) - [np.tanh(x), np.cos(x)]).max() < 1e-12)
    True
    """
    panel_count = max(int(high - low), 1)
    while panel_count * points < most:
        panel_edges = np.linspace(low, high, panel_count + 1)
        half_panel = (high - low) / panel_count / 2
        panel_nodes = panel_edges[:-1, None] + half_panel * (1 + chebpts1(points))
        node_values = np.asarray(function(panel_nodes.ravel())).reshape(-1, panel_count, points)
        series = np.moveaxis(node_values @ coefficient_matrix(points).T, 2, 0).copy()
        if (np.abs(series[-2:]).max(axis=(0, 2)) <= 1e-12 * np.abs(series).max(axis=(0, 2))).all():
            return partial(_sum_on_panels, series, low, half_panel)
        panel_count *= 2
    return lambda places: np.asarray(function(places.ravel())).reshape(-1, *places.shape)


def _sum_on_panels(panel_series: Array, low: float, half_panel: float, places: Array) -> Array:
    """Sums (k, *shape) of Chebyshev ``panel_series`` (n, k, panels), on panels of width 2
    ``half_panel`` from ``low``, by Clenshaw's recurrence."""
    panel_place = (places - low) / half_panel / 2
    panel = np.minimum(panel_place.astype(int), panel_series.shape[2] - 1)
    panel_coordinate = 2 * (panel_place - panel) - 1
    twice_coordinate = 2 * panel_coordinate
    b1, b2 = np.zeros((panel_series.shape[1], *places.shape)), 0.0
    for series_term in panel_series[:0:-1]:
        b1, b2 = np.take(series_term, panel, axis=1) + twice_coordinate * b1 - b2, b1
    return np.asarray(np.take(panel_series[0], panel, axis=1) + panel_coordinate * b1 - b2)
