"""The figure of optima: the smallest error, and below it the best penalty and learning rate."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument
from .axes import add_legend, axes, from_zero, panel_below, set_scale
from .curve import abscissa_of, draw_line, finish_lines, lines_of
from .heat_map import is_map, plot_heat_map, with_all_axes
from .names import BEST_OF, error_drawn

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

STYLES = {"lam": "o-", "eta": "s--"}


def plot_optima(curve: "xarray.Dataset", ax: "Axes | None" = None) -> "Axes":
    """The smallest error along the longest dimension; in a panel cut off below, the best lam and
    eta.  Over two long dimensions, a heat map of the error.

    Parameters
    ----------
    curve : xarray.Dataset
        As returned by :func:`replica.learning_curve` with ``lam="best"``, ``eta="best"`` or both.
        The marker of a best value that is at an end of the range searched is open.
    ax : matplotlib Axes, optional
        Where to draw; those of a new figure unless given.

    Raises
    ------
    InvalidArgument
        If there are more than eight lines of several parameters.

    Examples
    --------
    >>> from replica import GradientStep, learning_curve
    >>> from replica.plotting import plot_optima
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> ax = plot_optima(learning_curve(step, beta=[0.5, 1], alpha=[0.5, 1, 2], lam="best"))
    """
    curve = with_all_axes(curve)
    name = error_drawn(curve.data_vars)
    if is_map(curve, name):
        return plot_heat_map(curve, ax, error=name)
    ax, abscissa = axes(ax), abscissa_of(curve, name)
    lines, below, x = lines_of(curve, name, abscissa), panel_below(ax, 0.4), curve[abscissa].values
    searched = [one for one in STYLES if one in curve.data_vars]
    if not searched:
        raise InvalidArgument(
            "curve", None, 'one of learning_curve(..., lam="best"), or eta="best"'
        )
    for line in lines:
        at = curve.sel(line.at)
        draw_line(ax, curve, abscissa, line, name, label=line.label)
        edges = [text.split() for text in at.at_edge.values.tolist()]
        for one in searched:
            style: dict[str, Any] = {"color": line.colour, "markersize": 4}
            below.plot(x, at[one].values, STYLES[one], **style)
            ends = [one in edge for edge in edges]
            marker, style["markerfacecolor"] = STYLES[one][0], "white"
            below.plot(x[ends], at[one].values[ends], marker, **style)
    colour: Any = lines[0].colour if len(lines) == 1 else "0.3"
    for one in searched:
        below.plot([], [], STYLES[one], color=colour, markersize=4, label=BEST_OF[one])
    if any(curve.at_edge.values.ravel().tolist()):
        style = {"color": colour, "markerfacecolor": "white", "markersize": 4}
        below.plot([], [], "o", label="at an end of the range searched", **style)
    best = np.concatenate([curve[one].values.ravel() for one in searched])
    if np.nanmax(best) > 10 * np.nanmin(best):  # of less, a logarithmic axis has few ticks
        below.set_yscale("log")
    below.margins(y=0.2)
    set_scale(ax, x)
    from_zero(ax)
    finish_lines(ax, curve, lines, abscissa, [name], [below])
    below.set_xlabel(ax.get_xlabel())
    ax.set_xlabel("")
    add_legend(below)
    return ax
