"""The figure of a comparison: theory as lines, simulation as points with error bars, and below
them how far the points are from the lines.

Of several theories the first is drawn as full lines, another as thin ones, broken where colours
tell lines apart (its training errors dotted), and a limit as pale broad ones, on which a line that
has reached its limit lies."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from . import figure_elements
from .curve import (
    MARKERS,
    STYLES,
    Line,
    abscissa_of,
    draw_line,
    finish_lines,
    in_words,
    label_errors,
    lines_of,
    mark_noted,
)
from .heat_map import with_all_axes
from .names import COLUMN, current, error_drawn, hue

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

LIMIT = r"limit $d \to \infty$"  # the label of theories of infinite dimension


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
        their differences are drawn.  As :meth:`~validation.Comparison.dataset` of a comparison has
        them; any parameter may be a dimension.
    theories : dict of label -> xarray.Dataset, optional
        As returned by :func:`replica.learning_curve`, over the same dimensions; denser along the
        longest; NaN where a theory is of no use.  Where the first is ``noted`` beside a point, it
        has an open square.  The first is drawn as full lines, others as thin ones, broken if there
        are several lines, that of the label ``LIMIT`` as pale ones.
    ax : matplotlib Axes, optional
        Where to draw; its lower quarter is cut off for the differences in standard errors, over a
        band of two.
    error : str, optional
        test_error, with the training error beside it, or classification_error, which is drawn
        unless asked otherwise where labels are +-1.
    simulated : str
        What the points are, for the legend.

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
    ax = figure_elements.axes(ax)
    theories = {label: with_all_axes(theory) for label, theory in (theories or {}).items()}
    points = with_all_axes(points)
    compared = "source" in points.dims
    if compared:
        points = points.sel(source="simulation", drop=True)
    name = error_drawn(points.data_vars, error)
    errors = list(STYLES) if name == "test_error" else [name]
    abscissa = abscissa_of(points, name)
    lines = lines_of(points, name, abscissa)
    difference_panels = figure_elements.panels_below(ax, 0.25) if compared else []
    # other theories than the first: thin, and of another colour where colours tell nothing else, or
    # broken; theories of infinite dimension: pale, and below
    thin_line: dict[str, Any] = {"linewidth": 1.0}
    thin_line |= {"color": hue(1)} if len(lines) == 1 else {"linestyle": "-."}
    pale_line: dict[str, Any] = {"linewidth": 4.0, "alpha": 0.25, "zorder": 1}
    styles = {label: pale_line if label == LIMIT else thin_line for label in [*theories][1:]}
    for line in lines:
        for error_name in errors:
            for label, theory in theories.items():
                style = styles.get(label, {})
                if "linestyle" in style and error_name != name:
                    style = style | {"linestyle": ":"}
                legend_label = line.label if error_name == name and not style else ""
                few_points = theory.sizes[abscissa] < 3  # errors that a line does not show
                mark = {"marker": "_", "markersize": 14} if few_points else {}
                draw_line(
                    ax, theory, abscissa, line, error_name, 0, label=legend_label, **mark, **style
                )
            at = points.sel(line.at)
            mean, stderr = at[error_name], at[f"{error_name}_stderr"]
            # bars of test and training error side by side: long ones would cross
            x = figure_elements.nudged(
                at[abscissa].values, errors.index(error_name) - (len(errors) - 1) / 2
            )
            has_label = error_name == name and not theories  # else the label is of a line
            label_shown = line.label if has_label else ""
            style = {"color": line.colour, "label": label_shown} | MARKERS.get(error_name, {})
            # thin bars, as those of two lines may overlap
            figure_elements.draw_points(ax, x, mean, stderr, elinewidth=0.8, capthick=0.8, **style)
    figure_elements.set_scale(ax, points[abscissa].values)
    figure_elements.from_zero(ax)
    for panel in difference_panels:
        _draw_differences(panel, points, abscissa, lines, errors)
    if theories:
        label_errors(ax, lines, errors, [*theories], MARKERS)
    colour: Any = "0.3" if len(lines) > 1 else lines[0].colour
    for label, style in styles.items():
        ax.plot([], [], label=label, **({"color": colour} | style))
    bars_text = f"(±{figure_elements.BARS} s.e.)"
    for error_name in errors[:1] if theories else errors:  # other points are beside their lines
        label = f"{'' if theories else in_words(error_name) + ', '}{simulated} {bars_text}"
        figure_elements.draw_points(
            ax, [], [], [], label=label, color=colour, **MARKERS.get(error_name, {})
        )
    for theory in [*theories.values()][:1]:  # where there are points
        beside_points = theory.where(theory[abscissa].isin(points[abscissa]), drop=True)
        mark_noted(ax, beside_points, abscissa, lines, name)
    return finish_lines(ax, points, lines, abscissa, errors, difference_panels)


def _draw_differences(
    ax: "Axes",
    points: "xarray.Dataset",
    abscissa: str,
    lines: Sequence[Line],
    errors: Sequence[str],
) -> None:
    """Differences of the points from the theory in standard errors; their logarithms beyond the
    band of two, if any are so large that it would not show."""
    for line, error_name in product(lines, errors):
        line_points = points.sel(line.at)
        style = {"color": line.colour} | MARKERS.get(error_name, {})
        figure_elements.draw_points(
            ax, line_points[abscissa], line_points[f"{error_name}_z"], np.nan, **style
        )
    ax.axhline(0, **figure_elements.REFERENCE)
    ax.axhspan(-figure_elements.BARS, figure_elements.BARS, color="0.93", zorder=0, linewidth=0)
    ax.margins(y=0.2)
    if (largest_z := np.abs(ax.dataLim.intervaly).max()) > 10 * figure_elements.BARS:
        ax.set_yscale(
            "symlog",
            linthresh=figure_elements.BARS,
            linscale=np.log10(largest_z / figure_elements.BARS) / 2,
        )
        z_tick, (z_low, z_high) = float(f"{largest_z:.0e}"), ax.get_ylim()
        ax.set_yticks(
            [
                z
                for z in (-z_tick, -figure_elements.BARS, figure_elements.BARS, z_tick)
                if z_low < z < z_high
            ]
        )
        ax.yaxis.set_major_formatter("{x:g}")
    ax.set_ylabel("$z$ (s.e.)" if current().size[0] >= COLUMN else "$z$")  # in one line
