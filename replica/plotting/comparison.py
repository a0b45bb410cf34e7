"""The figure of a comparison: theory as lines, simulation as points with error bars, and below
them how far the points are from the lines.

Of several theories the first is drawn as full lines, another as thin ones, broken where colours
tell lines apart (its training errors dotted), and a limit as pale broad ones, on which a line that
has reached its limit lies.  Where points are compared with different theories, markers of the first
are open, of others filled, which the legend says."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, product
from typing import TYPE_CHECKING, Any

import numpy as np

from . import figure_elements
from .curve import MARKERS, STYLES, LineFigure, in_words
from .heat_map import with_all_axes
from .names import error_drawn
from .style import COLUMN, current, hue

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

LIMIT = r"limit $d \to \infty$"  # the label of theories of infinite dimension
FILLS = ("none", "full", "left", "bottom", "right", "top")  # of markers, by the theory of a point


def plot_comparison(
    points: "xarray.Dataset",
    theories: "Mapping[str, xarray.Dataset] | None" = None,
    ax: "Axes | None" = None,
    *,
    error: str | None = None,
    simulated: str = "simulated",
) -> "Axes":
    """Simulated errors along the longest dimension, each set of them on the line of its theory.

    Parameters
    ----------
    points : xarray.Dataset
        Simulated errors, by their names as in :func:`replica.learning_curve`, with standard errors,
        <error>_stderr.  With a dimension ``source``, theory and simulation, and scores <error>_z,
        their differences are drawn.  ``theory`` names the theory of every point.  As
        :meth:`~validation.Comparison.dataset` of a comparison has them; any parameter may be a
        dimension.  Where the theory is ``noted``, it has an open square.
    theories : dict of label -> xarray.Dataset, optional
        As returned by :func:`replica.learning_curve`, over the same dimensions; denser along the
        longest; NaN where a theory is of no use.  The first is drawn as full lines, others as thin
        ones, broken if there are several lines, that of the label ``LIMIT`` as pale ones.
    ax : matplotlib Axes, optional
        Where to draw; its lower quarter is cut off for the differences in standard errors, over a
        band of two.
    error : str, optional
        test_error, with the training error beside it, or classification_error, which is drawn
        unless asked otherwise where labels are +-1.
    simulated : str
        Word for the points in the legend.

    Examples
    --------
    >>> from replica import SpikedRandomFeatures, learning_curve
    >>> from replica.plotting import plot_comparison
    >>> from validation import compare
    >>> model = SpikedRandomFeatures(student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97)
    >>> report = compare(model, alpha=[0.5, 1, 2], lam=0.1, dimension=60, seeds=3, rng=0)
    >>> theory = learning_curve(model, alpha=[0.3, 0.5, 1, 2, 3], lam=0.1)
    >>> ax = plot_comparison(report.dataset(), {"theory": theory})
    """
    theories = {label: with_all_axes(theory) for label, theory in (theories or {}).items()}
    points = with_all_axes(points)
    has_differences = "source" in points.dims
    theory_points = points.sel(source="theory", drop=True) if has_differences else points
    if has_differences:
        points = points.sel(source="simulation", drop=True)
    name = error_drawn(points.data_vars, error)
    errors = list(STYLES) if name == "test_error" else [name]
    figure = LineFigure.of(points, name, ax)
    ax, abscissa, lines = figure.ax, figure.abscissa, figure.lines
    difference_panels = figure_elements.panels_below(ax, 0.25) if has_differences else []
    # other theories than the first: thin, and of another colour where colours tell nothing else, or
    # broken; theories of infinite dimension: pale, and below
    thin_line: dict[str, Any] = {"linewidth": 1.0}
    thin_line |= {"color": hue(1)} if len(lines) == 1 else {"linestyle": "-."}
    pale_line: dict[str, Any] = {"linewidth": 4.0, "alpha": 0.25, "zorder": 1, "linestyle": "-"}
    styles = {label: pale_line if label == LIMIT else thin_line for label in [*theories][1:]}
    for line, error_name in product(lines, errors):
        for label, theory in theories.items():
            line_style = dict(styles.get(label, {}))
            if line_style.get("linestyle") == "-." and error_name != name:
                line_style["linestyle"] = ":"
            if theory.sizes[abscissa] < 3:  # errors that a line does not show
                line_style |= {"marker": "_", "markersize": 14}
            legend_label = line.label if error_name == name and label not in styles else ""
            figure.draw_line(line, error_name, 0, theory, label=legend_label, **line_style)
        for at, _, look in _by_theory(points, line.at, error_name, line.colour):
            # thin bars, as those of two lines may overlap
            point_style = look | {"elinewidth": 0.8, "capthick": 0.8}
            point_style["label"] = line.label if error_name == name and not theories else ""
            bars = at[error_name], at[f"{error_name}_stderr"]
            figure_elements.draw_points(ax, at[abscissa], *bars, **point_style)
    figure_elements.set_scale(ax, points[abscissa].values)
    figure_elements.from_zero(ax)
    for panel in difference_panels:
        _draw_differences(panel, figure, errors)
    if theories:
        figure.label_errors(errors, [*theories], MARKERS)
    for label, style in styles.items():
        ax.plot([], [], label=label, **({"color": figure.colour} | style))
    bars_text = f"(±{figure_elements.BARS} s.e.)"
    for error_name in errors[:1] if theories else errors:  # other points are beside their lines
        for _, theory_name, look in _by_theory(points, {}, error_name, figure.colour):
            label = f"{'' if theories else in_words(error_name) + ', '}{simulated} {bars_text}"
            label += f", theory: {theory_name}" * bool(theory_name)
            figure_elements.draw_points(ax, [], [], [], label=label, **look)
    figure.mark_noted(theory_points, [figure.name])
    return figure.finish(errors, difference_panels)


def _by_theory(
    points: "xarray.Dataset", at: Mapping[str, Any], error_name: str, colour: Any
) -> "Iterator[tuple[xarray.Dataset, str, dict[str, Any]]]":
    """Points of a place on some axes, those that are compared with each theory, its name where
    there are several, and the look of their markers."""
    look, points_there = {"color": colour} | MARKERS.get(error_name, {}), points.sel(at)
    named = "theory" in points.data_vars
    theory_names = [*dict.fromkeys(points.theory.values.ravel().tolist())] if named else []
    if len(theory_names) < 2:
        yield points_there, "", look
        return
    numbers = points_there.drop_vars("theory")
    for theory_name, fill in zip(theory_names, cycle(FILLS), strict=False):
        filled = {"fillstyle": fill, "markerfacecolor": "none" if fill == "none" else colour}
        yield numbers.where(points_there.theory == theory_name), theory_name, look | filled


def _draw_differences(ax: "Axes", figure: LineFigure, errors: Sequence[str]) -> None:
    """Differences of the points from the theory in standard errors; their logarithms beyond the
    band of two, if any are so large that it would not show."""
    bars = figure_elements.BARS
    for line, error_name in product(figure.lines, errors):
        for at, _, look in _by_theory(figure.curve, line.at, error_name, line.colour):
            z = at[f"{error_name}_z"]
            figure_elements.draw_points(ax, at[figure.abscissa], z, np.nan, **look)
    ax.axhline(0, **figure_elements.REFERENCE)
    ax.axhspan(-bars, bars, color="0.93", zorder=0, linewidth=0)
    ax.margins(y=0.2)
    from matplotlib.ticker import MaxNLocator

    ax.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 4, 5, 10], integer=True))
    if (largest_z := np.abs(ax.dataLim.intervaly).max()) > 10 * bars:
        ax.set_yscale("symlog", linthresh=bars, linscale=np.log10(largest_z / bars) / 2)
        z_tick, (z_low, z_high) = float(f"{largest_z:.0e}"), ax.get_ylim()
        ax.set_yticks([z for z in (-z_tick, -bars, bars, z_tick) if z_low < z < z_high])
        ax.yaxis.set_major_formatter("{x:g}")
    ax.set_ylabel("$z$ (s.e.)" if current().size[0] >= COLUMN else "$z$")  # in one line
