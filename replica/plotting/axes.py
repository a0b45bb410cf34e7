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
from .names import settings, visible
from .styles import COLOURS, COLUMN, current, hue

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

COLOUR_MAP = "viridis"  # of ordered values, and of a colour bar
LIGHTEST = 0.85  # of the map, of what a line on white can be
# Settings without a number that have a colour of their own.
NAMED = {
    "network": 0, "srf": 1, "gaussian": 2,  # theories and simulated models
    "square": 0, "logistic": 1, "hinge": 2, "huber": 3, "absolute": 4,  # losses
    "equal": 0, "rademacher": 1, "box": 3,  # laws of the readout
    "relu": 0, "tanh": 1, "sigmoid": 2, "erf": 3,  # students
}  # fmt: skip
SMALL = "small"  # the font of legends and titles
BARS = 2  # standard errors shown
FEW_POINTS = 41  # from which on lines have no corners that are seen
REFERENCE: dict[str, Any] = {"color": "0.4", "linestyle": ":", "linewidth": 1.0}


def picture(figure: "Figure", kind: str) -> bytes:
    """A figure as a file of that kind: png, svg, pdf or eps, the last two with the TrueType fonts
    that journals ask for."""
    import matplotlib

    content = io.BytesIO()
    if kind == "eps":
        mix_with_white(figure)
    with matplotlib.rc_context({"pdf.fonttype": 42, "ps.fonttype": 42}):
        figure.savefig(content, format=kind, dpi=150)
    return content.getvalue()


def mix_with_white(figure: "Figure") -> None:
    """Give what is transparent the colour that it has on white: EPS files have no transparency."""
    from matplotlib.colors import to_rgba_array

    for artist in figure.findobj():
        drawn: Any = artist
        name = "facecolor" if hasattr(drawn, "get_facecolor") else "color"
        if hasattr(drawn, f"get_{name}"):
            found = to_rgba_array(getattr(drawn, f"get_{name}")(), drawn.get_alpha())
            if len(found) == 1 and 0 < (share := found[0, 3]) < 1:
                getattr(drawn, f"set_{name}")(tuple(1 - share * (1 - found[0, :3])))
                drawn.set_alpha(None)


def check_latex() -> None:
    """Refuse settings of matplotlib that ask for LaTeX where there is none."""
    import matplotlib

    if matplotlib.rcParams["text.usetex"] and shutil.which("latex") is None:
        allowed = "False in the settings of matplotlib: LaTeX is not installed"
        raise InvalidArgument("text.usetex", True, allowed)


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
        return [hue(place) for place in range(len(values))]
    if len(values) > 1 and not any(isinstance(value, str) for value in values):
        from matplotlib import colormaps
        from matplotlib.colors import to_hex

        places = np.argsort(np.argsort(np.asarray(values, dtype=float))) / (len(values) - 1)
        return [to_hex(shade) for shade in colormaps[COLOUR_MAP](LIGHTEST * places)]
    taken: list[int] = []
    for value in values:
        name = str(value).partition(":")[0]
        place = NAMED.get(name, crc32(name.encode())) % len(COLOURS)
        while place in taken and len(taken) < len(COLOURS):
            place = (place + 1) % len(COLOURS)
        taken.append(place)
    return [COLOURS[place] for place in taken]


def draw_points(ax: "Axes", x: ArrayLike, mean: ArrayLike, stderr: ArrayLike, **style: Any) -> Any:
    """Draw simulated means (N,) at ``x`` with two standard errors; return the artist."""
    default: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4}
    default |= {"capsize": 2, "zorder": 3}
    return ax.errorbar(x, mean, BARS * np.asarray(stderr, dtype=float), **(default | style))


def is_logarithmic(x: Array) -> bool:
    """True if the finite points span a decade, and their steps are more even in the logarithm."""
    x = np.unique(x[np.isfinite(x)])
    if x.size < 2 or x[0] <= 0 or x[-1] < 9.99 * x[0]:
        return False
    uneven = [np.ptp(steps) / steps.mean() for steps in (np.diff(np.log(x)), np.diff(x))]
    return bool(uneven[0] <= uneven[1])


def is_narrow(ax: "Axes") -> bool:
    """True in a figure for a column of a paper."""
    return bool(ax.get_figure(root=True).get_figwidth() < COLUMN)  # type: ignore[union-attr]


def set_scale(ax: "Axes", x: Array, axis: str = "x") -> None:
    """Make an axis logarithmic if the points ``x`` along it are spaced so."""
    if is_logarithmic(x):
        getattr(ax, f"set_{axis}scale")("log")
        from matplotlib.ticker import LogLocator, NullFormatter

        drawn, known = getattr(ax, f"{axis}axis"), x[np.isfinite(x)]
        if known.max() < 50 * known.min():  # powers of ten would label it too rarely
            drawn.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            drawn.set_major_formatter("{x:g}")
        drawn.set_minor_formatter(NullFormatter())


def spaced(x: Array, count: int = 101) -> Array:
    """``x`` and ``count`` values between its finite ends, for a smooth line."""
    between, known = np.geomspace if is_logarithmic(x) else np.linspace, x[np.isfinite(x)]
    return np.unique(np.concatenate([x, between(known.min(), known.max(), count)]))


def smooth(x: Array, y: Array) -> tuple[Array, Array]:
    """Points of a smooth line through few points, monotone between any two.

    Many points, or points that are not all known, are returned unchanged.
    """
    from scipy.interpolate import PchipInterpolator  # takes .3 s to import

    rises = np.all(np.diff(x) > 0) and np.isfinite([x, y]).all()
    if not (3 <= x.size < FEW_POINTS and rises):
        return x, y
    scaled, at = np.log if is_logarithmic(x) else np.asarray, spaced(x)
    return at, PchipInterpolator(scaled(x), y)(scaled(at))


def from_zero(ax: "Axes") -> None:
    """Let the ordinate begin at zero, with a little room above the data."""
    top = float(ax.dataLim.y1)
    ax.set_ylim(0, 1.06 * top if np.isfinite(top) and top > 0 else None)


def nudged(x: Array, places: float, among: int = 1) -> Array:
    """``x`` moved to the side by ``places`` times 0.012 of its range.

    ``among`` such sets, side by side, take at most 0.7 of the distance to the next ``x``.
    """
    at = np.log(x) if is_logarithmic(x) else x
    if at.size < 2:
        return x
    gap = np.diff(np.unique(at)).min(initial=np.ptp(at))
    at = at + min(0.012 * np.ptp(at), 0.7 * gap / among) * places
    return np.asarray(np.exp(at) if is_logarithmic(x) else at)


def finish(
    ax: "Axes",
    abscissa: str,
    ordinate: str,
    described: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> "Axes":
    """``ax`` with its labels, a small title of the settings ``described`` and of ``notes``, and a
    legend."""
    figure: Any = ax.get_figure(root=True)
    width, height = (pixels / (figure.dpi / 72) for pixels in ax.bbox.size)  # in points
    for put, drawn, label, room in (
        (ax.set_xlabel, ax.xaxis.label, abscissa, width),
        (ax.set_ylabel, ax.yaxis.label, ordinate, height),
    ):
        words = re.findall(r"\$[^$]*\$|\S+", label)
        put(in_lines(words, " ", room / (0.55 * float(drawn.get_fontsize()))))
    if described and current().title:
        fits, known = width / 4.3, settings(described)  # points a character of a small font
        # beside a simulation the legend says which theory it is
        if {"alpha0", "steps"} & described.keys() and not {"theory", "seeds"} & described.keys():
            known.append("theory of the sRF")
        stated = (in_lines(pieces, ", ", fits) for pieces in (known, notes))
        ax.set_title("\n".join(filter(None, stated)), fontsize=SMALL)
    return add_legend(ax)


def in_lines(pieces: Sequence[str], between: str, fits: float) -> str:
    """Text of the pieces, joined by ``between``, in lines of at most ``fits`` characters."""
    lines = [""]
    for piece in pieces:
        longer = lines[-1] + between + piece if lines[-1] else piece
        if visible(longer) > fits and lines[-1]:
            lines[-1] += between.rstrip()
            lines.append(piece)
        else:
            lines[-1] = longer
    return "\n".join(lines)


def letter_panels(panels: Iterable["Axes"]) -> None:
    """Write (a), (b), ... before the titles of the panels of a figure."""
    for letter, ax in zip("abcdefghijklmnopqrstuvwxyz", panels, strict=False):
        title = ax.get_title()
        ax.set_title("")
        text = rf"$\mathbf{{({letter})}}$ {title}".rstrip()
        ax.set_title(text, loc="left", fontsize="medium" if len(title) < 20 else SMALL)


def panel_below(ax: "Axes", share: float = 0.25) -> "Axes":
    """A panel under ``ax`` of that ``share`` of its height, cut off it, with the same abscissa."""
    spec = ax.get_subplotspec()
    figure: Figure = ax.get_figure()  # type: ignore[assignment]
    gap = 0.05
    if spec is None:
        left, bottom, width, height = ax.get_position().bounds
        above = (1 - share) * height - gap
        ax.set_position((left, bottom + height - above, width, above))
        below = figure.add_axes((left, bottom, width, share * height), sharex=ax)
    else:
        parts = spec.subgridspec(2, 1, height_ratios=[1 - share, share], hspace=gap)
        ax.set_subplotspec(parts[0])
        below = figure.add_subplot(parts[1], sharex=ax)
    ax.tick_params(labelbottom=False)
    return below


def add_legend(ax: "Axes") -> "Axes":
    """``ax`` with a legend inside it that covers nothing: where there is no place, the ordinate is
    extended above the data."""
    if not any(ax.get_legend_handles_labels()):
        return ax
    options: dict[str, Any] = {"frameon": False, "fontsize": SMALL}
    box = ax.legend(loc="best", **options)
    ax.get_figure(root=True).draw_without_rendering()  # type: ignore[union-attr]
    extent = box.get_window_extent()
    fits = extent.height <= ax.bbox.height and extent.width <= ax.bbox.width
    if fits and not _covers(ax, extent):
        left, low = ax.transAxes.inverted().transform(extent.min).tolist()
        box.set_loc((left, low))  # so that it stays there
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


def _covers(ax: "Axes", extent: "Bbox") -> bool:
    """True if a box on the canvas lies on a line, a point, an error bar or a text."""
    drawn = [(line.get_transform(), line.get_path()) for line in ax.lines]
    drawn += [(one.get_transform(), path) for one in ax.collections for path in one.get_paths()]
    paths = [transform.transform_path(path) for transform, path in drawn if np.size(path.vertices)]
    filled = [patch.get_transform().transform_path(patch.get_path()) for patch in ax.patches]
    texts = [text.get_window_extent() for text in ax.texts]
    return (
        any(path.intersects_bbox(extent, filled=False) for path in paths)
        or any(path.intersects_bbox(extent, filled=True) for path in filled)
        or any(extent.overlaps(text) for text in texts)
    )
