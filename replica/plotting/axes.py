"""What all figures share: Axes, colours, titles, and legends that cover nothing.

Functions draw into an Axes and return it; nothing is shown.  Theory is drawn as lines, what is
simulated as points with error bars of two standard errors.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

from solvers.results import Array

from .names import settings, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

# No two are close for those who confuse red and green: blue, orange, plum, sky, brown, navy, grey
# and black.
COLOURS = (
    "#0072B2", "#E69F00", "#882255", "#56B4E9", "#8C510A", "#332288", "#999999", "#000000",
)  # fmt: skip
COLOUR_MAP = "viridis"  # of a colour bar
# Settings without a number that have a colour of their own.
NAMED = {
    "network": 0, "srf": 1, "gaussian": 2,  # what is drawn of a problem
    "square": 0, "logistic": 1, "hinge": 2, "huber": 3, "absolute": 4,  # losses
    "equal": 0, "rademacher": 1, "box": 3,  # laws of the readout
    "relu": 0, "tanh": 1, "sigmoid": 2, "erf": 3,  # students
}  # fmt: skip
BARS = 2  # standard errors shown
REFERENCE: dict[str, Any] = {"color": "0.4", "linestyle": ":", "linewidth": 1.0}
SMALL = "small"
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": SMALL}
POINT = 72.0  # an inch


def axes(ax: "Axes | None") -> "Axes":
    """``ax``, or those of a new figure."""
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(6, 4), layout="constrained").subplots()
    return ax


def colours(values: Sequence[Any]) -> list[str]:
    """A colour for each of up to eight settings, the same in every figure that has the setting,
    unless two of a figure would share it.

    Examples
    --------
    >>> colours([0.1, 1.0]) == colours([1e-3, 0.1, 1.0])[1:]
    True
    """
    taken: list[int] = []
    for value in values:
        place = _place(value) % len(COLOURS)
        while place in taken and len(taken) < len(COLOURS):
            place = (place + 1) % len(COLOURS)
        taken.append(place)
    return [COLOURS[place] for place in taken]


def _place(value: Any) -> int:
    """Where in the list of colours a setting's own is: decades follow one another in it, and
    factors of two up to sixteen differ."""
    if isinstance(value, str):
        name = value.partition(":")[0]
        return NAMED.get(name, crc32(name.encode()))
    return 2 + 3 * round(3 * np.log10(abs(value))) if value and np.isfinite(value) else 0


def draw_points(ax: "Axes", x: ArrayLike, mean: ArrayLike, stderr: ArrayLike, **style: Any) -> Any:
    """Simulated means (N,) at ``x`` with two standard errors; returns what is drawn."""
    default: dict[str, Any] = {"fmt": "o", "markersize": 4, "capsize": 2, "zorder": 3}
    return ax.errorbar(x, mean, BARS * np.asarray(stderr, dtype=float), **(default | style))


def is_logarithmic(x: Array) -> bool:
    """Whether the points are better spaced in the logarithm."""
    return bool(x.size > 2 and (x > 0).all() and x.max() / x.min() > 50)


def spaced(x: Array, count: int = 101) -> Array:
    """``x`` and ``count`` values between its ends, for a smooth line."""
    between = np.geomspace if is_logarithmic(x) else np.linspace
    return np.unique(np.concatenate([x, between(x.min(), x.max(), count)]))


def from_zero(ax: "Axes") -> None:
    """Let the ordinate begin at zero, with a little room above what is drawn."""
    top = float(ax.dataLim.y1)
    ax.set_ylim(0, 1.06 * top if np.isfinite(top) and top > 0 else None)


def finish(
    ax: "Axes",
    abscissa: str,
    ordinate: str,
    described: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> "Axes":
    """``ax`` with its labels, a small title of the settings ``described`` and of ``notes``, and a
    legend."""
    ax.set_xlabel(abscissa)
    ax.set_ylabel(ordinate)
    if described:
        ax.set_title("\n".join([_wrapped(settings(described), ax), *notes]), fontsize=SMALL)
    return add_legend(ax)


def _wrapped(pieces: Iterable[str], ax: "Axes") -> str:
    """The pieces with commas between them, in lines no wider than ``ax``."""
    width = ax.bbox.width / ax.get_figure(root=True).dpi * POINT  # type: ignore[union-attr]
    lines = [""]
    for piece in pieces:
        longer = f"{lines[-1]}, {piece}" if lines[-1] else piece
        if visible(longer) * 4.3 > width and lines[-1]:  # points a character of a small font
            lines[-1] += ","
            lines.append(piece)
        else:
            lines[-1] = longer
    return "\n".join(lines)


def add_legend(ax: "Axes", **options: Any) -> "Axes":
    """``ax`` with a legend inside it that covers nothing: where there is no place, one is made
    above what is drawn."""
    handles, labels = ax.get_legend_handles_labels()
    if not labels:
        return ax
    options = {"handles": handles} | LEGEND | options
    box = ax.legend(loc="best", **options)
    ax.get_figure(root=True).draw_without_rendering()  # type: ignore[union-attr]
    if not _covers(ax, box.get_window_extent()):
        box.set_loc(_corner(ax, box.get_window_extent()))
        return ax
    for columns in (4, 3, 2, 1):
        box = ax.legend(loc="upper center", ncols=columns, **options)
        extent = box.get_window_extent()
        if extent.width <= ax.bbox.width:
            break
    share = min(extent.height / ax.bbox.height + 0.04, 0.8)
    scale = ax.yaxis.get_transform()
    low, high = scale.transform(ax.get_ylim())
    data = scale.transform(ax.dataLim.intervaly)[1]
    room = low + (max(data, low) - low if np.isfinite(data) else high - low) / (1 - share)
    ax.set_ylim(top=float(scale.inverted().transform(max(room, high))))
    return ax


def _corner(ax: "Axes", extent: "Bbox") -> tuple[float, float]:
    """Where the legend is, so that it stays there."""
    low, left = ax.transAxes.inverted().transform(extent.min)[::-1]
    return float(left), float(low)


def _covers(ax: "Axes", extent: "Bbox") -> bool:
    """Whether a box on the canvas lies on a line, a point, an error bar or a text."""
    drawn = [(line.get_transform(), line.get_path()) for line in ax.lines]
    drawn += [(one.get_transform(), path) for one in ax.collections for path in one.get_paths()]
    drawn += [(patch.get_transform(), patch.get_path()) for patch in ax.patches]
    paths = [transform.transform_path(path) for transform, path in drawn if np.size(path.vertices)]
    texts = [text.get_window_extent() for text in ax.texts]
    return any(path.intersects_bbox(extent, filled=False) for path in paths) or any(
        extent.overlaps(text) for text in texts
    )


def letter_panels(panels: Iterable["Axes"]) -> None:
    """Write (a), (b), ... above the panels of a figure, to their left."""
    for letter, ax in zip("abcdefghijklmnopqrstuvwxyz", panels, strict=False):
        ax.set_title(f"({letter})", loc="left", fontweight="bold", fontsize="medium")


def panel_below(ax: "Axes") -> "Axes":
    """A low panel under ``ax``, cut off it, which shares its abscissa."""
    spec = ax.get_subplotspec()
    figure: Figure = ax.get_figure()  # type: ignore[assignment]
    if spec is None:
        left, bottom, width, height = ax.get_position().bounds
        ax.set_position((left, bottom + 0.3 * height, width, 0.7 * height))
        below = figure.add_axes((left, bottom, width, 0.25 * height), sharex=ax)
    else:
        parts = spec.subgridspec(2, 1, height_ratios=[3.2, 1], hspace=0.05)
        ax.set_subplotspec(parts[0])
        below = figure.add_subplot(parts[1], sharex=ax)
    ax.tick_params(labelbottom=False)
    return below
