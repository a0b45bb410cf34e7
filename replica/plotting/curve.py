"""Figures along a parameter, a line for every combination of the others: errors, and optima, the
smallest error above panels of the best penalty and learning rate.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import isclose
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from . import figure_elements, names
from .heat_map import is_map, plot_heat_map, with_all_axes

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


# lines told apart by their colour and a legend; of more, a colour bar
MOST_COLOURS = len(names.COLOURS)
STYLES = {"test_error": "-", "train_error": "--"}
MARKERS: dict[str, dict[str, Any]] = {"train_error": {"marker": "s", "markerfacecolor": "none"}}


class Line(NamedTuple):
    """A line of a figure: its place on the other axes of a grid, its label and colour."""

    at: dict[str, Any]
    label: str
    colour: Any


def plot_curve(
    curve: "xarray.Dataset",
    ax: "Axes | None" = None,
    *,
    error: str | None = None,
    train: bool = True,
    points: Any = None,
) -> "Axes":
    """Errors along the longest dimension of a data set; over two long ones, a heat map.

    Parameters
    ----------
    curve : xarray.Dataset
        As returned by :func:`replica.learning_curve`.  Its longest dimension becomes the
        abscissa (alpha or samples on a tie); every combination of the others gets a line, with a
        gap where the theory is not known.  A line of five known points or fewer has marks, unless
        measured points are drawn beside it.  With more than eight values of one parameter a colour
        bar tells them apart.
    ax : matplotlib Axes, optional
        Where to draw; those of a new figure unless given.
    error : str, optional
        The variable drawn; classification_error where labels are +-1, else test_error.  "lam" or
        "eta" where the best of them was searched.
    train : bool
        Whether to draw the training error, if it is known, dashed, beside the test error.
    points : pandas.DataFrame, or dict of name -> array, optional
        Measured points to draw beside the lines: the abscissa, the error, the parameters by which
        the lines differ and, as far as they are known, its standard error, <error>_stderr, and the
        training error, drawn as squares, with its own.

    Raises
    ------
    InvalidArgument
        If it is no data set, or has no such error, or more than eight lines of several
        parameters; if the points lack a column, or there is no line of theirs.

    Examples
    --------
    >>> from replica import SpikedRandomFeatures, learning_curve
    >>> from replica.plotting import plot_curve
    >>> model = SpikedRandomFeatures(student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97)
    >>> curve = learning_curve(model, alpha=[0.5, 1, 2, 4], lam=[0.01, 0.1])
    >>> mine = {"alpha": [1, 2], "lam": [0.1, 0.1], "test_error": [0.043, 0.036]}
    >>> ax = plot_curve(curve, points=mine)
    """
    curve = with_all_axes(curve)
    name = names.error_drawn(curve.data_vars, error)
    if is_map(curve, name):
        if points is not None:
            raise InvalidArgument("points", type(points).__name__, "left out of a map")
        return plot_heat_map(curve, ax, error=name)
    ax = figure_elements.axes(ax)
    abscissa = abscissa_of(curve, name)
    lines, x = lines_of(curve, name, abscissa), curve[abscissa].values
    with_train_error = train and name == "test_error" and "train_error" in curve
    errors = list(STYLES) if with_train_error else [name]
    few_marks = figure_elements.FEW if points is None else 0
    for line in lines:
        for error_name in errors:
            label = line.label if error_name == name else ""
            draw_line(ax, curve, abscissa, line, error_name, few_marks, label=label)
    draw_bands(ax, curve, abscissa, lines, name)
    mark_exceptions(ax, curve, abscissa, lines, name)
    if points is not None:
        _draw_measured(ax, points, abscissa, errors, lines)
    figure_elements.set_scale(ax, x)
    if name in names.BEST_OF:
        figure_elements.set_scale(ax, curve[name].values.ravel(), "y")
    else:
        figure_elements.from_zero(ax)
    if len(errors) > 1:
        # it may then lie below the training error
        has_noise = np.any(curve.get("noise", curve.attrs.get("noise", 0)) > 0)
        theory_labels = ["test error, without label noise"] * bool(has_noise)
        point_marks = figure_elements.marks_of(curve[name].sel(lines[0].at), few_marks)
        point_marks.pop("markevery", None)
        markers = dict.fromkeys(errors, point_marks) if points is None else MARKERS
        label_errors(ax, lines, errors, theory_labels, markers)
    return finish_lines(ax, curve, lines, abscissa, errors)


def draw_line(
    ax: "Axes",
    curve: "xarray.Dataset",
    abscissa: str,
    line: Line,
    error_name: str,
    few: int = figure_elements.FEW,
    **style: Any,
) -> None:
    """Draw a line of a figure: the error ``error_name``, with marks if a ``few`` are known."""
    values, line_dashes = curve[error_name].sel(line.at).values, STYLES.get(error_name, "-")
    looks = {
        "linestyle": line_dashes,
        "color": line.colour,
        **figure_elements.marks_of(values, few),
        **style,
    }
    ax.plot(curve[abscissa].values, values, **looks)


def draw_bands(
    ax: "Axes", curve: "xarray.Dataset", abscissa: str, lines: Sequence[Line], name: str
) -> None:
    """Shade two standard errors over rows around each line, if the error ``name`` has them."""
    if f"{name}_stderr" not in curve:
        return
    x = curve[abscissa].values
    for line in lines:
        middle, stderr = (curve[each].sel(line.at).values for each in (name, f"{name}_stderr"))
        figure_elements.draw_band(ax, x, middle, stderr, color=line.colour)
    shade = lines[0].colour if len(lines) == 1 else "0.3"
    label = f"±{figure_elements.BARS} s.e. over other rows"
    figure_elements.draw_band(ax, x, np.nan, np.nan, color=shade, label=label)


def mark_exceptions(
    ax: "Axes", curve: "xarray.Dataset", abscissa: str, lines: Sequence[Line], name: str
) -> None:
    """Draw open the points whose errors may be off, as a note says, and crosses at points that did
    not converge: on the abscissa if no line did, else one above another in colours of the lines."""
    x, not_converged = curve[abscissa].values, curve[name].isnull()
    all_or_any = not_converged.all if len(lines) <= MOST_COLOURS else not_converged.any
    shared_gaps = all_or_any([*lines[0].at])
    gaps_of_lines = [((not_converged & ~shared_gaps).sel(line.at), line.colour) for line in lines]
    # of any scale of the ordinate
    on_axis: dict[str, Any] = {"clip_on": False, "transform": ax.get_xaxis_transform()}
    cross_height = 0.0
    for gap, colour in [(shared_gaps, "0.3"), *gaps_of_lines]:
        if gap.any():
            gap_x = x[gap.values]
            ax.plot(gap_x, np.full(gap_x.size, cross_height), "x", color=colour, **on_axis)
            cross_height += 0.04 * (gap is not shared_gaps)  # crosses of lines, one above another
    if not_converged.any():
        ax.plot([], [], "x", color="0.3", label="not converged")
    mark_noted(ax, curve, abscissa, lines, name)


def mark_noted(
    ax: "Axes", curve: "xarray.Dataset", abscissa: str, lines: Sequence[Line], name: str
) -> None:
    """Draw open the points whose errors may be off, as a note says."""
    noted = curve.get("noted", curve[name] * 0) > 0  # NaN where a point was taken out
    if not noted.any():
        return
    for line in lines:
        noted_values = curve[name].where(noted).sel(line.at)
        figure_elements.draw_noted(ax, curve[abscissa], noted_values, color=line.colour)
    figure_elements.draw_noted(ax, [], [], color="0.3", label="may be off: see its note")


def _draw_measured(
    ax: "Axes", points: Any, abscissa: str, errors: Sequence[str], lines: Sequence[Line]
) -> None:
    """Draw measured points in the colours of their lines: the first of the ``errors``, and the
    others as far as they are given."""
    try:
        columns = {str(name): np.asarray(points[name]) for name in points}
    except (TypeError, KeyError, IndexError):
        columns = {}
    column_shapes = {column.shape for column in columns.values()}
    if len(column_shapes) != 1 or len(column_shapes.pop()) != 1:
        allowed = "a data frame, such as simulation.to_dataframe(), or arrays of one length by name"
        sizes = ", ".join(f"{column.size} of {name}" for name, column in columns.items())
        raise InvalidArgument("points", sizes or type(points).__name__, allowed)
    if old := {"stderr", "train_stderr"} & {*columns}:
        allowed = "an error's name and _stderr, such as test_error_stderr"
        raise InvalidArgument("the column of a standard error", ", ".join(sorted(old)), allowed)
    differing = [dim for dim in lines[0].at if len({line.at[dim] for line in lines}) > 1]
    if lacking := [name for name in (abscissa, errors[0], *differing) if name not in columns]:
        raise InvalidArgument("points", ", ".join(columns), f"of columns {', '.join(lacking)}, too")
    stderrs = [x for x in (f"{error_name}_stderr" for error_name in errors) if x in columns]
    measured_names = [abscissa, *(x for x in errors if x in columns), *stderrs]
    try:
        measured_numbers = {name: columns[name].astype(float) for name in measured_names}
    except (TypeError, ValueError):
        raise InvalidArgument("points", ", ".join(measured_names), "of numbers") from None
    for name in stderrs:
        if (measured_numbers[name] < 0).any():
            allowed = f"of a {name} that is 0 or more"
            raise InvalidArgument("points", float(measured_numbers[name].min()), allowed)
    x, no_bars = measured_numbers[abscissa], np.full(len(columns[abscissa]), np.nan)
    dims = [dim for dim in lines[0].at if dim in columns]
    is_drawn = np.zeros(len(x), dtype=bool)
    for line in lines:
        matches = [[_same(v, line.at[dim]) for v in columns[dim].tolist()] for dim in dims]
        on_line = np.broadcast_to(np.all(matches, axis=0), x.shape)
        is_drawn |= on_line
        for error_name in errors if on_line.any() else ():
            if error_name in columns:
                stderr = measured_numbers.get(f"{error_name}_stderr", no_bars)[on_line]
                style = {"color": line.colour} | MARKERS.get(error_name, {})
                values = measured_numbers[error_name][on_line]
                figure_elements.draw_points(ax, x[on_line], values, stderr, **style)
    bars_text = f" (±{figure_elements.BARS} s.e.)" if stderrs else ""
    figure_elements.draw_points(ax, [], [], [], color="0.3", label=f"measured{bars_text}")
    if not is_drawn.all():
        missing_point = ", ".join(f"{dim} {columns[dim][~is_drawn].tolist()[0]}" for dim in dims)
        raise InvalidArgument("points", missing_point, "on the lines that the curve has")


def _same(value: Any, at: Any) -> bool:
    """True if a value of a point is the value of a line, up to its digits."""
    both_numbers = isinstance(value, (int, float)) and isinstance(at, (int, float))
    return isclose(value, at, rel_tol=1e-6) if both_numbers else bool(value == at)


def abscissa_of(curve: "xarray.Dataset", name: str) -> str:
    """The dimension along which the variable ``name`` is drawn: the longest, alpha or
    samples on a tie."""
    numbers = [str(dim) for dim in curve[name].dims if curve[dim].dtype.kind in "fi"]
    return max(numbers, key=lambda dim: (curve.sizes[dim], dim in ("alpha", "samples")))


def lines_of(curve: "xarray.Dataset", name: str, abscissa: str) -> list[Line]:
    """The lines of a figure of the variable ``name`` along ``abscissa``, with their colours.

    Raises
    ------
    InvalidArgument
        If more than eight of several parameters are to be told apart.
    """
    others = {str(dim): curve[dim].values.tolist() for dim in curve[name].dims if dim != abscissa}
    varying = [dim for dim, values in others.items() if len(values) > 1]
    line_places = [dict(zip(others, at, strict=True)) for at in product(*others.values())]
    line_count = len(line_places)
    if line_count > MOST_COLOURS and (len(varying) > 1 or curve[varying[0]].dtype.kind not in "fi"):
        raise InvalidArgument(
            "a figure",
            f"{' x '.join(str(curve.sizes[dim]) for dim in varying)} lines",
            f"of at most {MOST_COLOURS} lines, or of lines over one parameter beside the abscissa",
        )
    labels = [", ".join(names.setting(dim, at[dim]) for dim in varying) for at in line_places]
    line_colours: Sequence[Any] = [names.hue(place) for place in range(line_count)]
    if line_count > MOST_COLOURS:
        values, labels = curve[varying[0]].values, [""] * line_count
        line_colours = _shades(values).to_rgba(values)
    elif len(varying) == 1:
        line_colours = figure_elements.colours([at[varying[0]] for at in line_places])
    return [Line(*line) for line in zip(line_places, labels, line_colours, strict=True)]


def in_words(error_name: str) -> str:
    """The label of an error without its symbol."""
    return names.ERROR_LABELS[error_name].partition(" $")[0]


def label_errors(
    ax: "Axes",
    lines: Sequence[Line],
    errors: Sequence[str],
    theories: Sequence[str] = (),
    markers: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Label the line style of each error in the legend, with the ``markers`` of its points; the
    first has the name of the first of the ``theories``, if there are any, and the dashes of the
    others, where they are of several, no colour."""
    line_colour = lines[0].colour if len(lines) == 1 else "0.3"
    for error_name in errors:
        is_first = bool(theories) and error_name == errors[0]
        label = theories[0] if is_first else in_words(error_name)
        look = (markers or {}).get(error_name, {})
        error_colour = line_colour if is_first or len(theories) < 2 else "0.3"
        ax.plot([], [], STYLES.get(error_name, "-"), color=error_colour, label=label, **look)


def finish_lines(
    ax: "Axes",
    curve: "xarray.Dataset",
    lines: Sequence[Line],
    abscissa: str,
    errors: Sequence[str],
    below: Sequence["Axes"] = (),
) -> "Axes":
    """``ax`` with its labels and shared settings; of many lines with a colour bar, beside the
    panels ``below`` too."""
    # a bar beside all panels: these stay of one width
    if len(lines) > MOST_COLOURS and not figure_elements.is_empty(ax):
        varying = next(dim for dim in lines[0].at if curve.sizes[dim] > 1)
        shades, label = _shades(curve[varying].values), names.LABELS.get(varying, varying)
        ax.get_figure().colorbar(shades, ax=[ax, *below], label=label)  # type: ignore[union-attr]
    ordinate = "mean squared error" if len(errors) > 1 else names.DRAWN[errors[0]]
    if errors[0] not in names.BEST_OF and not below:  # panels below show what is best
        ordinate += names.at_best(curve, errors[0])
    described = names.shared_settings(curve, [abscissa])
    label = names.LABELS.get(abscissa, names.symbol(abscissa))
    return figure_elements.finish(ax, label, ordinate, described, below=below)


def _shades(values: Array) -> Any:
    """Map from values to colours."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize

    norm = LogNorm if figure_elements.is_logarithmic(values) else Normalize
    return ScalarMappable(norm(values.min(), values.max()), figure_elements.COLOUR_MAP)


AT_END = "at an end of the range searched"


def plot_optima(curve: "xarray.Dataset", ax: "Axes | None" = None) -> "Axes":
    """The smallest error along the longest dimension; in panels cut off below, the best lam and the
    best eta.  Over two long dimensions, a heat map of the error.

    Parameters
    ----------
    curve : xarray.Dataset
        As returned by :func:`replica.learning_curve` with ``lam="best"``, ``eta="best"`` or both.
        A best value at an end of the range searched has an open marker.
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
    name = names.error_drawn(curve.data_vars)
    if is_map(curve, name):
        return plot_heat_map(curve, ax, error=name)
    searched = [best_name for best_name in names.BEST_OF if best_name in curve.data_vars]
    if not searched:
        allowed = 'one of learning_curve(..., lam="best"), or eta="best"'
        raise InvalidArgument("curve", None, allowed)
    ax, abscissa = figure_elements.axes(ax), abscissa_of(curve, name)
    lines, x = lines_of(curve, name, abscissa), curve[abscissa].values
    best_panels = figure_elements.panels_below(ax, *[0.3] * len(searched))
    for line in lines:
        draw_line(ax, curve, abscissa, line, name, label=line.label)
    draw_bands(ax, curve, abscissa, lines, name)
    mark_exceptions(ax, curve, abscissa, lines, name)
    at_end: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "white", "markersize": 4}
    at_edge = curve.at_edge.astype(str)  # of a point that was taken out it is NaN
    for best_name, panel in zip(searched, best_panels, strict=True):
        values_at_edge = curve[best_name].where(at_edge.str.contains(rf"\b{best_name}\b"))
        for line in lines:
            draw_line(panel, curve, abscissa, line, best_name)
            panel.plot(x, values_at_edge.sel(line.at), "o", color=line.colour, **at_end)
        if values_at_edge.notnull().any():
            panel.plot([], [], "o", color="0.3", label=AT_END, **at_end)
        panel.set_ylabel(f"best {names.symbol(best_name)}")
        panel.margins(y=0.2)
        figure_elements.set_scale(panel, curve[best_name].values.ravel(), "y")
        lowest, high = panel.get_ylim()
        if high < 1.05 * lowest:  # it hardly varies, and digits that are not known would be drawn
            panel.set_ylim(0.95 * lowest, 1.05 * high)
        if legend_box := figure_elements.add_legend(panel).get_legend():
            legend_box.set_frame_on(True)  # its circle looks like a point
    figure_elements.set_scale(ax, x)
    figure_elements.from_zero(ax)
    return finish_lines(ax, curve, lines, abscissa, [name], best_panels)
