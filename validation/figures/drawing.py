"""Curves with simulated points on them and their differences below, and their legends."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from replica import plotting


def panels_with_differences(picture: Any, count: int) -> Any:
    """Axes (2, count): a row of panels, and a low one below each for differences."""
    axes = picture.subplots(2, count, sharex="col", squeeze=False, height_ratios=(2.6, 1))
    for below in axes[1]:
        below.axhline(0, **plotting.REFERENCE)
    axes[1, 0].set_ylabel("off by (%)")
    return axes


def add_legend_entry(
    ax: Axes, dimension: int | None, draws: int | None = None, **style: Any
) -> Any:
    """Draw no points, but in grey, with the label of those simulated at ``dimension`` by so many
    ``draws``, where these are the same for all."""
    size = "" if dimension is None else f", $d = {dimension}$"
    size += "" if draws is None else f", {draws} draws"
    label = f"simulated{size} (±{plotting.BARS} s.e.)"
    return plotting.draw_points(ax, [], [], [], color="0.3", label=label, **style)


def legend_below(figure: Any, handles: Sequence[Any], **options: Any) -> None:
    """Put a legend of the ``handles`` below all panels of a figure, and take their labels from the
    panels'."""
    shown = {"loc": "outside lower center", "frameon": False, "fontsize": "small"}
    labels = [handle.get_label() for handle in handles]
    columns = len(handles) if figure.get_figwidth() > 8 else 2
    figure.legend(handles, labels, **({**shown, "ncols": columns} | options))
    for handle in handles:
        handle.set_label("")


# The theory of what is simulated, what it is compared with, and how each is drawn.
KINDS: dict[str, dict[str, Any]] = {
    "theory": {"linewidth": 1.8},
    "equal": {"label": "equal row norms", "linewidth": 1.2, "linestyle": (0, (1, 1.5))},
    "srf": {"label": "theory of the sRF", "linewidth": 1.0, "linestyle": (0, (5, 2))},
    "limit": {
        "label": r"theory of the sRF, $d\to\infty$",
        "linewidth": 1.0,
        "linestyle": (0, (5, 1, 1, 1)),
    },
}


def draw_theories(
    column: Any,
    data: dict[str, Any],
    curve: dict[str, Any],
    *,
    color: str,
    label: str = "",
    places: float = 0.0,
) -> None:
    """Draw theories of one curve and its simulated points: errors in the upper of two Axes, in the
    lower their differences from the first theory in per cent, the points ``nudged`` by
    ``places``."""
    x, kinds = np.array(data["x"]), [kind for kind in KINDS if kind in curve]
    first = np.array(curve[kinds[0]], float)  # NaN where not known
    for kind in kinds:
        shown = KINDS[kind] | {"color": color, "label": ""}
        if kind == kinds[0]:
            shown = KINDS["theory"] | {"color": color, "label": label}
        column[0].plot(x, curve[kind], **shown)
        column[1].plot(x, 100 * (np.array(curve[kind], float) / first - 1), **shown)
    mean, stderr = np.array(curve["simulated"]).T
    at = np.array(data["simulated_at"], dtype=float)
    unit, style = np.interp(at, x, first) / 100, {"color": color, "markerfacecolor": "white"}
    plotting.draw_points(column[0], at, mean, stderr, **style)
    plotting.draw_points(
        column[1], plotting.nudged(at, places), mean / unit - 100, stderr / unit, **style
    )


def theory_legend(
    axes: Any,
    dimension: int | None,
    kinds: Sequence[str],
    simulated: str = "the network",
    draws: int | None = None,
) -> None:
    """Label of the lower axes of ``draw_theories``, legends of its curves, and below all panels a
    legend of the ``kinds`` of lines and points, if all points are of ``simulated``."""
    axes[1, 0].set_ylabel("off the theory (%)")
    handles = []
    for kind in kinds:
        line = KINDS[kind]
        if kind == kinds[0]:
            line = KINDS["theory"] | {"label": f"theory of {simulated}"}
        handles += axes[0, 0].plot([], [], **(line | {"color": "0.3"}))
    handles.append(add_legend_entry(axes[0, 0], dimension, draws, markerfacecolor="white"))
    legend_below(axes[0, 0].get_figure(root=True), handles)
    for ax, below in axes.T:
        low, high = ax.get_ylim()
        if ax.get_yscale() == "linear" and low < 0.6 * high:
            ax.set_ylim(bottom=0)
        plotting.add_legend(ax, [below])
