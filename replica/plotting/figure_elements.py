"""Parts of all figures: Axes, colours, points, titles and panels.

Functions draw into an Axes and return it; nothing is shown.  Theory is drawn as lines, what is
simulated as points with error bars of two standard errors.
"""

import io
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

from solvers.results import Array

from ..errors import InvalidArgument
from .names import settings, with_theory
from .style import COLOURS, current, hue

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

COLOUR_MAP = "viridis"  # of ordered values, and of a colour bar
# Settings without a number that have a colour of their own.
NAMED_COLOURS = {
    "network": 0, "srf": 1, "gaussian": 2,  # theories and simulated models
    "square": 0, "logistic": 1, "hinge": 2, "huber": 3, "absolute": 4,  # losses
    "equal": 0, "rademacher": 1, "box": 3,  # laws of the readout
    "relu": 0, "tanh": 1, "sigmoid": 2, "erf": 3,  # students
}  # fmt: skip
SMALL = "small"  # the font of legends and titles
BARS = 2  # standard errors shown
FEW = 5  # points, up to which a line of theory has marks: of more these look like measured ones
REFERENCE: dict[str, Any] = {"color": "0.4", "linestyle": ":", "linewidth": 1.0}


def picture(figure: "Figure", kind: str) -> bytes:
    """A figure as a file of that kind: png, svg, pdf or eps, the last two with the TrueType fonts
    that journals ask for."""
    import matplotlib

    picture_bytes, dpi = io.BytesIO(), matplotlib.rcParams["savefig.dpi"]
    if kind == "eps":
        mix_with_white(figure)
    with matplotlib.rc_context({"pdf.fonttype": 42, "ps.fonttype": 42}):
        figure.savefig(picture_bytes, format=kind, dpi=150 if dpi == "figure" else dpi)
    return picture_bytes.getvalue()


def mix_with_white(figure: "Figure") -> None:
    """Replace transparent colours by their mixture with white: EPS files have no transparency."""
    from matplotlib.colors import to_rgba_array

    for artist in figure.findobj():
        coloured: Any = artist
        name = "facecolor" if hasattr(coloured, "get_facecolor") else "color"
        if hasattr(coloured, f"get_{name}"):
            rgba_colour = to_rgba_array(getattr(coloured, f"get_{name}")(), coloured.get_alpha())
            if len(rgba_colour) == 1 and 0 < (opacity := rgba_colour[0, 3]) < 1:
                getattr(coloured, f"set_{name}")(tuple(1 - opacity * (1 - rgba_colour[0, :3])))
                coloured.set_alpha(None)


def check_latex() -> None:
    """Refuse settings of matplotlib that ask for LaTeX where there is none."""
    import matplotlib

    if matplotlib.rcParams["text.usetex"] and shutil.which("latex") is None:
        allowed_usetex = "False in the settings of matplotlib: LaTeX is not installed"
        raise InvalidArgument("text.usetex", True, allowed_usetex)


def axes(ax: "Axes | None") -> "Axes":
    """``ax``, or the Axes of a new figure."""
    check_latex()
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=current().size, layout="constrained").subplots()
    return ax


def colours(values: Sequence[Any]) -> list[str]:
    """A colour for each of up to eight settings: of numbers from dark to light in their order; of
    names the same in every figure that has the name, unless two of a figure would share it.

    Examples
    --------
    >>> colours(["network", "gaussian"]) == colours(["network", "srf", "gaussian"])[::2]
    True
    >>> colours([2, 0.1, 1])[1]
    '#440154'
    """
    if not current().colours:
        return [hue(colour_index) for colour_index in range(len(values))]
    if len(values) > 1 and not any(isinstance(value, str) for value in values):
        from matplotlib import colormaps
        from matplotlib.colors import to_hex

        colour_places = np.argsort(np.argsort(np.asarray(values, dtype=float))) / (len(values) - 1)
        # a line on white can be no lighter
        return [to_hex(shade) for shade in colormaps[COLOUR_MAP](0.85 * colour_places)]
    taken_colours: list[int] = []
    for value in values:
        colour_name = str(value).partition(":")[0]
        colour_index = NAMED_COLOURS.get(colour_name, crc32(colour_name.encode())) % len(COLOURS)
        while colour_index in taken_colours and len(taken_colours) < len(COLOURS):
            colour_index = (colour_index + 1) % len(COLOURS)
        taken_colours.append(colour_index)
    return [COLOURS[colour_index] for colour_index in taken_colours]


def draw_noted(ax: "Axes", x: Any, values: Any, **style: Any) -> None:
    """Draw open the points whose errors may be off, as a note says."""
    ax.plot(x, values, "s", linestyle="none", markerfacecolor="white", markersize=4, **style)


def draw_points(ax: "Axes", x: ArrayLike, mean: ArrayLike, stderr: ArrayLike, **style: Any) -> Any:
    """Draw simulated means (N,) at ``x`` with two standard errors; return the artist.  Markers are
    open, so that one shows under another."""
    point_style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4}
    point_style["markerfacecolor"] = "none"
    point_style |= {"capsize": 2, "zorder": 3}
    return ax.errorbar(x, mean, BARS * np.asarray(stderr, dtype=float), **(point_style | style))


def draw_band(ax: "Axes", x: Array, mean: ArrayLike, stderr: ArrayLike, **style: Any) -> None:
    """Shade two standard errors around means (N,) at ``x``, as far as both are known."""
    mean, band_height = np.asarray(mean), BARS * np.asarray(stderr)
    ax.fill_between(x, mean - band_height, mean + band_height, alpha=0.2, linewidth=0, **style)


def is_logarithmic(x: Array) -> bool:
    """True if the finite points span a decade, and their steps are more even in the logarithm."""
    x = np.unique(x[np.isfinite(x)])
    if x.size < 2 or x[0] <= 0 or x[-1] < 9.99 * x[0]:
        return False
    step_spread = [np.ptp(steps) / steps.mean() for steps in (np.diff(np.log(x)), np.diff(x))]
    return bool(step_spread[0] <= step_spread[1])


def set_scale(ax: "Axes", x: Array, axis: str = "x") -> None:
    """Make an axis logarithmic if the points ``x`` along it are spaced so."""
    if is_logarithmic(x):
        getattr(ax, f"set_{axis}scale")("log")
        from matplotlib.ticker import LogLocator, NullFormatter

        drawn, finite_x = getattr(ax, f"{axis}axis"), x[np.isfinite(x)]
        if finite_x.max() < 50 * finite_x.min():  # powers of ten would label it too rarely
            low_panel = axis == "y" and ax.bbox.height < ax.figure.dpi  # an inch
            drawn.set_major_locator(LogLocator(subs=(1.0, 3.0) if low_panel else (1.0, 2.0, 5.0)))
            drawn.set_major_formatter("{x:g}")
        drawn.set_minor_formatter(NullFormatter())


def spaced(x: Array, count: int = 101) -> Array:
    """``x`` and ``count`` values between its finite ends, for a smooth line."""
    spacing, finite_x = np.geomspace if is_logarithmic(x) else np.linspace, x[np.isfinite(x)]
    return np.unique(np.concatenate([x, spacing(finite_x.min(), finite_x.max(), count)]))


def marks_of(y: ArrayLike, few: int = FEW) -> dict[str, Any]:
    """Style of a line through the values ``y``: marks on all where a ``few`` are known, else on
    those whose neighbours are not."""
    y_known = np.isfinite(np.asarray(y, dtype=float))
    beside = np.pad(y_known, 1)
    alone_or_few = y_known if y_known.sum() <= few else y_known & ~(beside[:-2] | beside[2:])
    marked = np.flatnonzero(alone_or_few).tolist()
    return {"marker": ".", "markersize": 6, "markevery": marked} if marked else {}


def from_zero(ax: "Axes") -> None:
    """Start the ordinate at zero, unless it is logarithmic, now or later."""
    if not is_empty(ax):
        ax.dataLim.intervaly = (0, max(ax.dataLim.y1, 0))
    ax.lines[0].sticky_edges.y.append(0)  # without a margin below
    ax.autoscale_view(scalex=False)


def is_empty(ax: "Axes") -> bool:
    """True if no value that is drawn is known."""
    return not np.isfinite(ax.dataLim.intervaly).all()


def say_empty(ax: "Axes") -> None:
    """Write into the frame that nothing is known."""
    ax.text(0.5, 0.5, "no point converged", ha="center", va="center", transform=ax.transAxes)


def nudged(x: Array, places: float, among: int = 1) -> Array:
    """``x`` moved to the side by ``places`` times 0.012 of its range.

    ``among`` such sets, side by side, take at most 0.7 of the distance to the next ``x``.
    """
    abscissae = np.log(x) if is_logarithmic(x) else x
    if abscissae.size < 2:
        return x
    least_gap = np.diff(np.unique(abscissae)).min(initial=np.ptp(abscissae))
    abscissae = abscissae + min(0.012 * np.ptp(abscissae), 0.7 * least_gap / among) * places
    return np.asarray(np.exp(abscissae) if is_logarithmic(x) else abscissae)


def finish(
    ax: "Axes",
    abscissa: str,
    ordinate: str,
    described: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    below: Sequence["Axes"] = (),
) -> "Axes":
    """``ax`` with its labels, the abscissa's under the panels ``below`` it, a small title of the
    settings ``described`` and of ``notes``, and a legend; where nothing is known, a sentence in
    place of numbers and legend."""
    figure: Any = ax.get_figure(root=True)
    bottom_axes = [ax, *below][-1]
    bottom_axes.set_xlabel(abscissa)
    ax.set_ylabel(ordinate)
    figure.draw_without_rendering()  # so that the layout is known
    _break_label(bottom_axes.xaxis.label, bottom_axes.bbox.width)
    if described and current().title:
        title = ax.set_title("", fontsize=SMALL)
        title_parts = settings(with_theory(described, described)), notes
        stated = [in_lines(title, pieces, ", ", ax.bbox.width) for pieces in title_parts]
        title.set_text("\n".join(filter(None, stated)))
    for panel in filter(is_empty, (ax, *below)):
        panel.set(ylim=(0, 1), yticks=[])
    if is_empty(ax):
        say_empty(ax)
    else:
        add_legend(ax, below)
    colour_bars = [one for one in figure.axes if one.get_label() == "<colorbar>"]
    for panel in (ax, *below, *colour_bars):  # of the height that the legend leaves
        _break_label(panel.yaxis.label, panel.bbox.height)
    return ax


def _break_label(label: Any, room: float) -> None:
    """Break a label into lines of that length, in pixels."""
    label_words = re.findall(r"(?:\$[^$]*\$|[^\s$])+", label.get_text())
    label.set_text(in_lines(label, label_words, " ", room))


def in_lines(drawn: Any, pieces: Sequence[str], between: str, room: float) -> str:
    """Text of the pieces, joined by ``between``, in lines that are no longer than ``room`` pixels
    as the text ``drawn``."""
    text_lines = [*pieces[:1]]
    for piece in pieces[1:]:
        drawn.set_text(text_lines[-1] + between + piece)
        if max(drawn.get_window_extent().size) > room:
            text_lines[-1] += between.rstrip()
            text_lines.append(piece)
        else:
            text_lines[-1] = drawn.get_text()
    return "\n".join(text_lines)


def letter_panels(panels: Iterable["Axes"]) -> None:
    """Write (a), (b), ... before the titles of the panels of a figure."""
    for letter, ax in zip("abcdefghijklmnopqrstuvwxyz", panels, strict=False):
        title = ax.get_title()
        ax.set_title("")
        lettered_title = rf"$\mathbf{{({letter})}}$ {title}".rstrip()
        ax.set_title(lettered_title, loc="left", fontsize="medium" if len(title) < 20 else SMALL)


def panels_below(ax: "Axes", *shares: float) -> list["Axes"]:
    """Panels under ``ax`` of these ``shares`` of its height, cut off it, with the same abscissa."""
    figure: Any = ax.get_figure()
    left, bottom, right, top = ax.get_position().extents
    corners = {"left": left, "bottom": bottom, "right": right, "top": top}
    place: Any = ax.get_subplotspec() or figure.add_gridspec(1, 1, **corners)[0]
    upper_panel, *lower_panels = place.subgridspec(
        1 + len(shares), 1, height_ratios=[1 - sum(shares), *shares], hspace=0.05
    )
    ax.set_subplotspec(upper_panel)
    cut_panels = [figure.add_subplot(grid_cell, sharex=ax) for grid_cell in lower_panels]
    for panel in [ax, *cut_panels[:-1]]:
        panel.tick_params(labelbottom=False)
    figure.align_ylabels([ax, *cut_panels])
    return cut_panels


def add_legend(ax: "Axes", below: Sequence["Axes"] = ()) -> "Axes":
    """``ax`` with a legend that covers nothing: inside it, or where there is no place under it and
    the panels ``below``, in a constrained layout."""
    legend_gap = 0.05  # inches around a legend under its axes
    entries = ax.get_legend_handles_labels()
    if not any(entries):
        return ax
    options: dict[str, Any] = {"frameon": False, "fontsize": SMALL}
    from matplotlib.transforms import ScaledTranslation

    lowest: Any = [ax, *below][-1]
    figure: Any = ax.get_figure(root=True)
    if (old_legend := lowest.get_legend()) is not None:
        old_legend.remove()
    legend_box = ax.legend(loc="best", **options)
    figure.draw_without_rendering()
    extent = legend_box.get_window_extent()
    legend_fits = extent.height <= ax.bbox.height and extent.width <= ax.bbox.width
    # a layout is not imposed on other axes, such as a colour bar
    is_fixed = figure.get_layout_engine() is None and len(figure.axes) > 1 + len(below)
    legend_box.set_frame_on(legend_covers := not legend_fits or _covers_drawing(ax, extent))
    if is_fixed or not legend_covers:
        return ax
    legend_box.remove()
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
        figure.draw_without_rendering()
    panel_box = lowest.get_tightbbox()  # with its labels
    left, right = max(panel_box.x0, 0), min(panel_box.x1, figure.bbox.x1)
    centre_shift = left + right - lowest.bbox.x0 - lowest.bbox.x1, panel_box.y0 - lowest.bbox.y0
    inches = centre_shift[0] / (2 * figure.dpi), centre_shift[1] / figure.dpi - legend_gap
    legend_transform = lowest.transAxes + ScaledTranslation(*inches, figure.dpi_scale_trans)
    under: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "borderaxespad": 0}
    under["bbox_transform"] = legend_transform
    for rows in range(1, len(entries[0]) + 1):
        ncols = -(-len(entries[0]) // rows)
        legend_box = lowest.legend(*entries, **options, **under, ncols=ncols)
        legend_excess = legend_box.get_window_extent().width - (right - left)
        if legend_excess > 0 and ncols <= 2:  # long texts are broken: each would take a line
            widest_text = max(text.get_window_extent().width for text in legend_box.get_texts())
            for text in legend_box.get_texts():
                text_parts = text.get_text().split(", ")
                text.set_text(in_lines(text, text_parts, ", ", widest_text - legend_excess / ncols))
            legend_excess = legend_box.get_window_extent().width - (right - left)
        if legend_excess <= 0:
            break
    figure.draw_without_rendering()
    return ax


def _covers_drawing(ax: "Axes", extent: "Bbox") -> bool:
    """True if a box on the canvas lies on a line, a point, an error bar or a text."""
    drawn = [(line.get_transform(), line.get_path()) for line in ax.lines]
    drawn += [(one.get_transform(), path) for one in ax.collections for path in one.get_paths()]
    paths = [transform.transform_path(path) for transform, path in drawn if np.size(path.vertices)]
    filled_paths = [patch.get_transform().transform_path(patch.get_path()) for patch in ax.patches]
    text_boxes = [text.get_window_extent() for text in ax.texts]
    return (
        any(path.intersects_bbox(extent, filled=False) for path in paths)
        or any(path.intersects_bbox(extent, filled=True) for path in filled_paths)
        or any(extent.overlaps(text) for text in text_boxes)
    )
