"""The figure of an error over two parameters: a heat map with contours and its smallest value."""

from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from . import names
from .figure_elements import COLOUR_MAP, SMALL, axes, finish, say_empty, set_scale
from .style import COLUMN, current

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

WIDE_RANGE = 5  # factor between values from which colours are of their logarithm


def is_map(curve: "xarray.Dataset", name: str) -> bool:
    """True if a variable has two dimensions or more of 12 values, and is drawn as a heat map."""
    return sum(curve.sizes[dim] >= 12 for dim in curve[name].dims) > 1


def plot_heat_map(
    curve: "xarray.Dataset", ax: "Axes | None" = None, *, error: str = "test_error"
) -> "Axes":
    """An error over the two long dimensions of a data set, with contours; a star on the smallest.

    Parameters
    ----------
    curve : xarray.Dataset
        As returned by :func:`replica.learning_curve`, with two dimensions of several values.
    ax : matplotlib Axes, optional
        Where to draw; those of a new figure unless given.
    error : str
        The variable drawn; "lam" or "eta" where the best of them was searched, without a star.

    Raises
    ------
    InvalidArgument
        If not exactly two dimensions have several values.

    Examples
    --------
    >>> from replica import GradientStep, learning_curve
    >>> from replica.plotting import plot_heat_map
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> grid = learning_curve(step, beta=1.0, eta=[0.5, 1, 2, 4], alpha=[0.5, 1, 2, 4], lam=0.1)
    >>> ax = plot_heat_map(grid)
    """
    curve = with_all_axes(curve)
    name = names.error_drawn(curve.data_vars, error)
    drawn_variable = curve[name]
    long = [str(dim) for dim in drawn_variable.dims if drawn_variable.sizes[dim] > 1]
    if len(long) != 2:
        raise InvalidArgument(
            "a heat map", ", ".join(long), "of two parameters, with a single value of each other"
        )
    y_name, x_name = sorted(long, key=lambda dim: (dim == "alpha", drawn_variable.sizes[dim]))
    ax = axes(ax)
    x, y = curve[x_name].values, curve[y_name].values
    map_values = drawn_variable.squeeze().transpose(y_name, x_name).values
    at_best = "" if name in names.BEST_OF else names.at_best(curve, name)
    draw_heat_map(ax, x, y, map_values, names.DRAWN[name] + at_best)
    if np.isfinite(map_values).any() and name not in names.BEST_OF:
        j, i = np.unravel_index(np.nanargmin(map_values), map_values.shape)
        at_map_edge = i in (0, x.size - 1) or j in (0, y.size - 1)
        edge_note = ", at the edge" if at_map_edge else ""
        mark_smallest(ax, map_values[j, i], {x_name: x[i], y_name: y[j]}, edge_note)
    x_label, y_label = (names.axis_label(curve, dim) for dim in (x_name, y_name))
    return finish(ax, x_label, y_label, names.shared_settings(curve))


def with_all_axes(curve: "xarray.Dataset") -> "xarray.Dataset":
    """Data set in which every coordinate is a dimension, also of a single value."""
    if not hasattr(curve, "data_vars"):
        raise InvalidArgument("curve", type(curve).__name__, "a data set of replica.learning_curve")
    return curve.expand_dims([name for name, one in curve.coords.items() if one.ndim == 0])


def draw_heat_map(
    ax: "Axes", x: Array, y: Array, values: Array, label: str, *, contours: Array | None = None
) -> None:
    """``values`` (y, x) as colours with a bar called ``label``, and contours of them, or of others,
    at its ticks; grey where nothing is known."""
    unknown_grey = "0.85"  # the colour of values that are not known
    from matplotlib.colors import LogNorm

    finite = values[np.isfinite(values)]
    if finite.size < values.size:
        ax.fill_between([], [], color=unknown_grey, label="not converged")
    wide = finite.size > 0 and finite.min() > 0 and finite.max() / finite.min() > WIDE_RANGE
    ax.set_facecolor(unknown_grey)
    norm = LogNorm() if wide else None
    mesh = ax.pcolormesh(x, y, values, cmap=COLOUR_MAP, shading="nearest", norm=norm)
    set_scale(ax, x)
    set_scale(ax, y, "y")
    mesh.set_rasterized(True)  # in a PDF, too: no seams between cells
    if not finite.size:
        say_empty(ax)
        return
    colour_bar = ax.get_figure().colorbar(mesh, ax=ax, label=label)  # type: ignore[union-attr]
    if finite.max() > finite.min():
        levels = contour_levels(float(finite.min()), float(finite.max()))
        contour_values = values if contours is None else contours
        drawn = ax.contour(x, y, contour_values, levels=levels, colors="white", linewidths=0.7)
        colour_bar.add_lines(drawn)
        decimals = max(len(f"{one:.10g}".partition(".")[2]) for one in levels)
        contour_texts = [
            f"${names.number_text(one)}$" if wide else f"{one:.{decimals}f}" for one in levels
        ]
        colour_bar.set_ticks(levels, labels=contour_texts)
        if current().size[0] >= COLUMN:  # else they would cover each other
            ax.clabel(drawn, fmt=dict(zip(levels, contour_texts, strict=True)), fontsize=SMALL)
        colour_bar.minorticks_off()


def contour_levels(low: float, high: float) -> list[float]:
    """Some values of few digits between ``low`` and ``high``, spaced by factors over one of 5.

    Examples
    --------
    >>> [round(level, 9) for level in contour_levels(0.142, 0.208)]
    [0.15, 0.16, 0.17, 0.18, 0.19, 0.2]
    >>> [round(level, 9) for level in contour_levels(0.02, 0.9)]
    [0.05, 0.1, 0.2, 0.5]
    """
    most_contours = 8  # of contours
    from matplotlib.ticker import LogLocator, MaxNLocator

    locator: Any = MaxNLocator(most_contours)
    if low > 0 and (decades := np.log10(high / low)) > np.log10(WIDE_RANGE):
        level_digits = ((1.3, [1, 1.5, 2, 3, 5, 7]), (2.5, [1, 2, 5]), (4, [1, 3]), (np.inf, [1]))
        subs = next(subs for most, subs in level_digits if decades < most)
        locator = LogLocator(subs=subs, numticks=most_contours)
    return [float(level) for level in locator.tick_values(low, high) if low < level < high]


def mark_smallest(ax: "Axes", error: float, at: dict[str, float], note: str = "") -> None:
    """A star at the smallest ``error``: at the place that ``at`` names, (x, y) or x alone.  Its
    label ends with the ``note``."""
    place_text = " and ".join(names.setting(name, value) for name, value in at.items())
    star_x, star_y = [*at.values(), error][:2]
    mark_place(ax, star_x, star_y, f"smallest ${names.number_text(error)}$ at {place_text}{note}")


def mark_place(ax: "Axes", x: float, y: float, label: str) -> None:
    """A star at a place."""
    star_style: dict[str, Any] = {"color": "white", "markeredgecolor": "black", "markersize": 12}
    ax.plot([x], [y], "*", clip_on=False, zorder=4, label=label, **star_style)
