"""The figure of optima: the smallest error, and panels of the best penalty and learning rate."""

from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument
from .axes import add_legend, axes, from_zero, panels_below, set_scale
from .curve import abscissa_of, draw_line, finish_lines, lines_of, mark_exceptions
from .heat_map import is_map, plot_heat_map, with_all_axes
from .names import BEST_OF, error_drawn, symbol

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


AT_END = "at an end of the range searched"


def plot_optima(curve: "xarray.Dataset", ax: "Axes | None" = None) -> "Axes":
    """The smallest error along the longest dimension; in panels cut off below, the best lam and the
    best eta.  Over two long dimensions, a heat map of the error.

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
    searched = [one for one in BEST_OF if one in curve.data_vars]
    if not searched:
        allowed = 'one of learning_curve(..., lam="best"), or eta="best"'
        raise InvalidArgument("curve", None, allowed)
    ax, abscissa = axes(ax), abscissa_of(curve, name)
    lines, x = lines_of(curve, name, abscissa), curve[abscissa].values
    below = panels_below(ax, *[0.3] * len(searched))
    for line in lines:
        draw_line(ax, curve, abscissa, line, name, label=line.label)
    mark_exceptions(ax, curve, abscissa, lines, name)
    at_end: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "white", "markersize": 4}
    at_edge = curve.at_edge.astype(str)  # of a point that was taken out it is NaN
    for one, panel in zip(searched, below, strict=True):
        ends = curve[one].where(at_edge.str.contains(rf"\b{one}\b"))
        for line in lines:
            draw_line(panel, curve, abscissa, line, one, marker="o", markersize=4)
            panel.plot(x, ends.sel(line.at), "o", color=line.colour, **at_end)
        if ends.notnull().any():
            panel.plot([], [], "o", color="0.3", label=AT_END, **at_end)
        panel.set_ylabel(f"best {symbol(one)}")
        panel.margins(y=0.2)
        set_scale(panel, curve[one].values.ravel(), "y")
        low, high = panel.get_ylim()
        if high < 1.05 * low:  # it hardly varies, and digits that are not known would be drawn
            panel.set_ylim(0.95 * low, 1.05 * high)
        if box := add_legend(panel).get_legend():
            box.set_frame_on(True)  # its circle looks like a point
    set_scale(ax, x)
    from_zero(ax)
    return finish_lines(ax, curve, lines, abscissa, [name], below)
