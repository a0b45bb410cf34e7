"""What the figures share: simulated points with their error bars, and the legend's entry."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..comparisons import BARS


def draw_points(ax: Axes, x: ArrayLike, mean: ArrayLike, stderr: ArrayLike, **style: Any) -> Any:
    """Simulated means (N,) at ``x`` with two standard errors; returns what is drawn."""
    default: dict[str, Any] = {"fmt": "o", "markersize": 4, "capsize": 2}
    return ax.errorbar(x, mean, BARS * np.array(stderr), **(default | style))


def add_legend_entry(ax: Axes, dimension: int, **style: Any) -> Any:
    """Draw no points, but in grey, with the label of those simulated at ``dimension``."""
    label = rf"simulated, $d = {dimension}$ (±{BARS} s.e.)"
    return draw_points(ax, [], [], [], color="0.3", label=label, **style)


# The network's own theory, what it is compared with, and how each is drawn.
THEORIES: dict[str, dict[str, Any]] = {
    "network": {"label": "network", "linewidth": 1.8},
    "equal": {"label": "network, equal row norms", "linewidth": 1.2, "linestyle": (0, (1, 1.5))},
    "srf": {"label": "sRF", "linewidth": 1.0, "linestyle": (0, (5, 2))},
}


def draw_theories(
    column: Any, data: dict[str, Any], curve: dict[str, Any], *, color: str, **style: Any
) -> None:
    """Theories of one curve and its simulated points: test errors in the upper of two Axes, in
    the lower what they differ by from the network's theory, in per cent of it."""
    x, at, own = np.array(data["x"]), np.array(data["simulated_at"]), np.array(curve["network"])
    mean, stderr = np.array(curve["simulated"]).T
    here = np.interp(at, x, own)
    label = style.pop("label", None)
    for kind, line in THEORIES.items():
        if kind in curve:
            shown = line | {"color": color, "label": label if kind == "network" else None}
            column[0].plot(x, curve[kind], **shown)
            column[1].plot(x, 100 * (np.array(curve[kind]) / own - 1), **shown)
    dots = {"color": color, "markerfacecolor": "white", "zorder": 3} | style
    draw_points(column[0], at, mean, stderr, **dots)
    draw_points(column[1], at, 100 * (mean / here - 1), 100 * stderr / here, **dots)


def theory_legend(axes: Any, dimension: int, *, equal: bool = False) -> None:
    """Labels of the axes of ``draw_theories``, and a legend of what lines and points are."""
    axes[0, 0].set_ylabel(r"test error $\epsilon_g$")
    axes[1, 0].set_ylabel("relative to the\nnetwork's theory (%)")
    for ax in axes[0]:
        ax.set_ylim(bottom=0)
    first = axes[0, 0]
    handles, _ = first.get_legend_handles_labels()
    for kind, line in THEORIES.items():
        if equal or kind != "equal":
            handles += first.plot([], [], **(line | {"color": "0.3"}))
    handles.append(add_legend_entry(first, dimension, markerfacecolor="white"))
    first.legend(handles=handles, frameon=False, fontsize="small")
