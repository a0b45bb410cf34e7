"""The figure of optima: the smallest test error against alpha, and below it where it is."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .axes import axes, finish, from_zero, panel_below, set_scale
from .legend import add_legend
from .names import ERROR_LABELS, LABELS
from .styles import hue

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_optima(
    points: Sequence[Mapping[str, Any]],
    ax: "Axes | None" = None,
    *,
    described: Mapping[str, Any] | None = None,
) -> "Axes":
    """The smallest test error against alpha; in a panel cut off below, the best lam and eta.

    Parameters
    ----------
    points : sequence of mappings
        "alpha", "lam", "eta" (NaN where it was not varied), "test_error" and, where one of the
        first two lies at an end of the range searched, its name in "at_edge": its marker is open.
    ax : matplotlib Axes, optional
        Where to draw; those of a new figure unless given.
    described : mapping, optional
        Settings to state in a title; lam or eta among them was held, and is not drawn.

    Examples
    --------
    >>> from replica import SpikedRandomFeatures, optimal_lambda
    >>> from replica.plotting import plot_optima
    >>> model = SpikedRandomFeatures(student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97)
    >>> points = []
    >>> for alpha in (0.5, 1, 2):
    ...     best = optimal_lambda(model, alpha=alpha)
    ...     errors = dict(lam=best.lam, eta=best.eta, test_error=best.test_error)
    ...     points.append(dict(alpha=alpha, **errors))
    >>> ax = plot_optima(points)
    """
    ax = axes(ax)
    below = panel_below(ax, 0.4)
    alpha = np.array([point["alpha"] for point in points])
    ax.plot(alpha, [point["test_error"] for point in points], ".-", color=hue(0))
    for i, (name, marker) in enumerate((("lam", "o"), ("eta", "s"))):
        best = np.array([point[name] for point in points], dtype=float)
        if np.isfinite(best).any() and (described or {}).get(name) is None:
            style: dict[str, Any] = {"color": hue(i + 1), "markersize": 4}
            below.plot(alpha, best, f"{marker}-", label=f"best {LABELS[name]}", **style)
            ends = np.array([name in point.get("at_edge", "").split() for point in points])
            if ends.any():
                style |= {"markerfacecolor": "white", "label": "at an end of the range searched"}
                below.plot(alpha[ends], best[ends], marker, **style)
    low, high = below.dataLim.intervaly
    if high > 10 * low:  # of less, a logarithmic axis has few ticks
        below.set_yscale("log")
    below.margins(y=0.2)
    set_scale(ax, alpha)
    from_zero(ax)
    finish(ax, "", ERROR_LABELS["test_error"], described)
    below.set_xlabel(LABELS["alpha"])
    add_legend(below)
    return ax
