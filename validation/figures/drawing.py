"""What the figures share: curves with simulated points on them and their differences below, and
what legends say of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from replica.plotting import (
    BARS,
    ERROR_LABELS,
    REFERENCE,
    add_legend,
    colours,
    draw_points,
    letter_panels,
    nudged,
    setting,
)

DIFFERENCE = "off by (%)"  # the ordinate of differences from a theory


def panels_with_differences(picture: Figure, count: int, **options: Any) -> Any:
    """Axes (2, count): a row of panels, and a low one below each for differences."""
    axes = picture.subplots(2, count, sharex="col", height_ratios=(2.6, 1), **options)
    for below in axes[1]:
        below.axhline(0, **REFERENCE)
    axes[1, 0].set_ylabel(DIFFERENCE)
    return axes


def draw_curve(
    column: Any,
    x: ArrayLike,
    theory: ArrayLike,
    at: ArrayLike,
    mean: ArrayLike,
    stderr: ArrayLike,
    *,
    color: str,
    label: str = "",
    places: float = 0.0,
) -> None:
    """A theory over ``x`` and the simulated points at ``at`` in the upper of two Axes; in the
    lower, what the points are off by, in per cent, ``nudged`` by ``places``."""
    column[0].plot(x, theory, color=color, label=label)
    draw_points(column[0], at, mean, stderr, color=color)
    draw_differences(column[1], x, theory, at, mean, stderr, places, color=color)


def draw_differences(
    ax: Axes,
    x: ArrayLike,
    theory: ArrayLike,
    at: ArrayLike,
    mean: ArrayLike,
    stderr: ArrayLike,
    places: float = 0.0,
    **style: Any,
) -> None:
    """What simulated points are off by from a theory, in per cent of it."""
    where = np.asarray(at, dtype=float)
    unit = np.interp(where, np.asarray(x, dtype=float), np.asarray(theory, dtype=float)) / 100
    off, bars = np.asarray(mean) / unit - 100, np.asarray(stderr) / unit
    draw_points(ax, nudged(where, places), off, bars, **style)


def draw_losses(axes: Any, data: dict[str, Any], names: list[str], over: Sequence[str]) -> None:
    """A curve for each loss in every column, over alpha and over something else; they share their
    draws."""
    losses = [curve["loss"] for curve in data["curves"]]
    each = zip(data["curves"], names, colours(losses), strict=True)
    for i, (curve, name, color) in enumerate(each):
        for column, x in zip(axes.T, over, strict=True):
            label = name if x == "lam" else f"{name}, {setting('lam', curve['lam'])}"
            values = [data[x], curve[f"theory_{x}"], data[f"few_{x}"]]
            values += [curve[f"{part}_{x}"] for part in ("simulated", "stderr")]
            draw_curve(column, *values, color=color, label=label, places=i - 1)


def add_legend_entry(
    ax: Axes, dimension: int | None, draws: int | None = None, **style: Any
) -> Any:
    """Draw no points, but in grey, with the label of those simulated at ``dimension`` by so many
    ``draws``, where these are the same for all."""
    size = "" if dimension is None else f", $d = {dimension}$"
    size += "" if draws is None else f", {draws} draws"
    label = f"simulated{size} (±{BARS} s.e.)"
    return draw_points(ax, [], [], [], color="0.3", label=label, **style)


def legend_below(figure: Any, handles: Sequence[Any], **options: Any) -> None:
    """One legend under all panels of a figure; its ``handles`` stand in no panel's own."""
    shown = {"loc": "outside lower center", "frameon": False, "fontsize": "small"}
    labels = [handle.get_label() for handle in handles]
    columns = len(handles) if figure.get_figwidth() > 8 else 2
    figure.legend(handles, labels, **({**shown, "ncols": columns} | options))
    for handle in handles:
        handle.set_label("")


# The theory of what is simulated, what it is compared with, and how each is drawn.
THEORIES: dict[str, dict[str, Any]] = {
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
    """Theories of one curve and its simulated points: errors in the upper of two Axes, in the
    lower what they differ by from the theory of what is simulated, in per cent of it, the points
    ``nudged`` by ``places``."""
    x, own = np.array(data["x"]), np.array(curve["theory"])
    for kind, line in THEORIES.items():
        if kind in curve:
            shown = line | {"color": color, "label": label if kind == "theory" else ""}
            column[0].plot(x, curve[kind], **shown)
            column[1].plot(x, 100 * (np.array(curve[kind]) / own - 1), **shown)
    at = data["simulated_at"]
    dots: dict[str, Any] = {"color": color, "markerfacecolor": "white"}
    mean, stderr = np.array(curve["simulated"]).T
    draw_points(column[0], at, mean, stderr, **dots)
    draw_differences(column[1], x, own, at, mean, stderr, places, **dots)


def theory_legend(
    axes: Any,
    dimension: int | None,
    kinds: Sequence[str],
    own: str = "the network",
    draws: int | None = None,
) -> None:
    """Labels of the axes of ``draw_theories``, legends of its curves, and below all panels one of
    what ``kinds`` of lines and points are, if all points are of ``own``."""
    axes[0, 0].set_ylabel(ERROR_LABELS["test_error"])
    axes[1, 0].set_ylabel("off the theory (%)")
    handles = []
    for kind in kinds:
        label = f"theory of {own}" if kind == "theory" else THEORIES[kind]["label"]
        handles += axes[0, 0].plot([], [], **(THEORIES[kind] | {"color": "0.3", "label": label}))
    handles.append(add_legend_entry(axes[0, 0], dimension, draws, markerfacecolor="white"))
    legend_below(axes[0, 0].figure, handles)
    for ax in axes[0]:
        ax.set_ylim(bottom=0)
        add_legend(ax)
    if len(axes[0]) > 1:
        letter_panels(axes[0])
