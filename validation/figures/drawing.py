"""What the figures share: simulated points with their error bars, and the legend's entry."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from replica.plotting import BARS


def draw_points(ax: Axes, x: ArrayLike, mean: ArrayLike, stderr: ArrayLike, **style: Any) -> Any:
    """Simulated means (N,) at ``x`` with two standard errors; returns what is drawn."""
    default: dict[str, Any] = {"fmt": "o", "markersize": 4, "capsize": 2}
    return ax.errorbar(x, mean, BARS * np.array(stderr), **(default | style))


def add_legend_entry(ax: Axes, dimension: int, **style: Any) -> Any:
    """Draw no points, but in grey, with the label of those simulated at ``dimension``."""
    label = rf"simulated, $d = {dimension}$ (±{BARS} s.e.)"
    return draw_points(ax, [], [], [], color="0.3", label=label, **style)
