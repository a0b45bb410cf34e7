"""Figures along a parameter, a line for every combination of the others: errors, and optima, the
smallest error above panels of the best penalty and learning rate.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from math import isclose
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from . import figure_elements, names
from .heat_map import is_map, plot_heat_map, with_all_axes
from .style import COLOURS, hue

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


# lines told apart by their colour and a legend; of more, a colour bar
MOST_COLOURS = len(COLOURS)
STYLES = {"test_error": "-", "train_error": "--"}
MARKERS: dict[str, dict[str, Any]] = {"train_error": {"marker": "s", "markerfacecolor": "none"}}


class Line(NamedTuple):
    """A line of a figure: its place on the other axes of a grid, its label and colour."""

    at: dict[str, Any]
    label: str
    colour: Any


class LineFigure(NamedTuple):
    """Lines of the variable ``name`` of a data set along an abscissa, a line for each combination
    of its other dimensions."""

    ax: "Axes"
    curve: "xarray.Dataset"
    name: str
    abscissa: str
    lines: list[Line]

    @classmethod
    def of(cls, curve: "xarray.Dataset", name: str, ax: "Axes | None") -> "LineFigure":
        """The figure in ``ax`` or in Axes of its own, with nothing drawn."""
        abscissa = abscissa_of(curve, name)
        return cls(figure_elements.axes(ax), curve, name, abscissa, lines_of(curve, name, abscissa))

    def draw_line(
        self,
        line: Line,
        error_name: str,
        few: int = figure_elements.FEW,
        curve: "xarray.Dataset | None" = None,
        ax: "Axes | None" = None,
        **style: Any,
    ) -> None:
        """Draw a line of the error ``error_name``, with marks if a ``few`` are known, of this data
        set or another and in these Axes or others."""
        curve = self.curve if curve is None else curve
        values = curve[error_name].sel(line.at).values
        looks = {"linestyle": STYLES.get(error_name, "-"), "color": line.colour}
        looks |= figure_elements.marks_of(values, few) | style
        (self.ax if ax is None else ax).plot(curve[self.abscissa].values, values, **looks)

    def draw_errors(self, errors: Sequence[str], few: int = figure_elements.FEW) -> None:
        """Draw the lines of all ``errors``, of the first with its label, two standard errors over
        rows around it, and what is not known."""
        for line in self.lines:
            for error_name in errors:
                label = line.label if error_name == self.name else ""
                self.draw_line(line, error_name, few, label=label)
        self._draw_bands()
        self._mark_exceptions()
        self.mark_noted(self.curve, errors)
        self._draw_fits(errors)

    def _draw_bands(self) -> None:
        """Shade two standard errors over rows around each line, if there are any."""
        if f"{self.name}_stderr" not in self.curve:
            return
        x, names_of_band = self.curve[self.abscissa].values, (self.name, f"{self.name}_stderr")
        for line in self.lines:
            middle, stderr = (self.curve[each].sel(line.at).values for each in names_of_band)
            figure_elements.draw_band(self.ax, x, middle, stderr, color=line.colour)
        label = f"±{figure_elements.BARS} s.e. over test rows"
        figure_elements.draw_band(self.ax, x, np.nan, np.nan, color=self.colour, label=label)

    def _mark_exceptions(self) -> None:
        """Draw crosses at points that did not converge: on the abscissa if no line did, else one
        above another in colours of the lines."""
        x, unknown = self.curve[self.abscissa].values, self.curve[self.name].isnull()
        all_or_any = unknown.all if len(self.lines) <= MOST_COLOURS else unknown.any
        shared_gaps = all_or_any([*self.lines[0].at])
        gaps_of_lines = [((unknown & ~shared_gaps).sel(one.at), one.colour) for one in self.lines]
        # of any scale of the ordinate
        on_axis: dict[str, Any] = {"clip_on": False, "transform": self.ax.get_xaxis_transform()}
        cross_height = 0.0
        for gap, colour in [(shared_gaps, "0.3"), *gaps_of_lines]:
            if gap.any():
                gap_x = x[gap.values]
                heights = np.full(gap_x.size, cross_height)
                self.ax.plot(gap_x, heights, "x", color=colour, **on_axis)
                cross_height += 0.04 * (gap is not shared_gaps)
        if unknown.any():
            self.ax.plot([], [], "x", color="0.3", label="not converged")

    def mark_noted(self, curve: "xarray.Dataset", errors: Sequence[str]) -> None:
        """Draw open the points of a data set whose ``errors`` may be off, as a note says."""
        noted_of_errors = {name: _is_noted(curve, name) for name in errors}
        noted_errors = [name for name in errors if noted_of_errors[name].any()]
        for name, line in product(noted_errors, self.lines):
            values = curve[name].where(noted_of_errors[name]).sel(line.at)
            figure_elements.draw_noted(self.ax, curve[self.abscissa], values, color=line.colour)
        if noted_errors:
            label = "may be off: see its note"
            figure_elements.draw_noted(self.ax, [], [], color="0.3", label=label)

    def _draw_fits(self, errors: Sequence[str]) -> None:
        """Draw errors of fits to random rows where those of the theory have a note, or are not
        known."""
        draw = partial(figure_elements.draw_points, self.ax, marker="D")
        drawn_errors = dict[str, Any]()
        for name in (name for name in errors if f"fitted_{name}" in self.curve):
            is_drawn = self.curve[name].isnull() | _is_noted(self.curve, name)
            is_drawn &= self.curve[f"fitted_{name}"].notnull()
            drawn_errors |= {name: is_drawn} if is_drawn.any() else {}
        for (name, is_drawn), line in product(drawn_errors.items(), self.lines):
            fits = self.curve[[f"fitted_{name}", f"fitted_{name}_stderr"]].where(is_drawn)
            means, stderr = (values.sel(line.at).values for values in fits.values())
            draw(self.curve[self.abscissa], means, stderr, color=line.colour)
        if drawn_errors:
            label = f"fits to random rows (±{figure_elements.BARS} s.e.)"
            draw([], [], [], color="0.3", label=label)

    @property
    def colour(self) -> Any:
        """Colour in the legend of what all lines have: that of the only line, or grey."""
        return self.lines[0].colour if len(self.lines) == 1 else "0.3"

    def label_errors(
        self,
        errors: Sequence[str],
        theories: Sequence[str] = (),
        markers: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Label the line style of each error in the legend, with the ``markers`` of its points; the
        first has the name of the first of the ``theories``, if there are any, and the dashes of the
        others, where they are of several, no colour."""
        for error_name in errors:
            is_first = bool(theories) and error_name == errors[0]
            label = theories[0] if is_first else in_words(error_name)
            colour = self.colour if is_first or len(theories) < 2 else "0.3"
            look = {"color": colour, "label": label, **(markers or {}).get(error_name, {})}
            self.ax.plot([], [], STYLES.get(error_name, "-"), **look)

    def finish(self, errors: Sequence[str], below: Sequence["Axes"] = ()) -> "Axes":
        """The Axes with labels and shared settings; of many lines with a colour bar, beside the
        panels ``below`` too."""
        ax, curve, abscissa = self.ax, self.curve, self.abscissa
        # a bar beside all panels: these stay of one width
        if len(self.lines) > MOST_COLOURS and not figure_elements.is_empty(ax):
            varying = next(dim for dim in self.lines[0].at if curve.sizes[dim] > 1)
            shades, label = _shades(curve[varying].values), names.axis_label(curve, varying)
            figure: Any = ax.get_figure()
            figure.colorbar(shades, ax=[ax, *below], label=label)
        ordinate = "mean squared error" if len(errors) > 1 else names.DRAWN[errors[0]]
        if errors[0] not in names.BEST_OF:
            ordinate += names.at_best(curve, errors[0])
        described = names.shared_settings(curve, [abscissa])
        label = names.axis_label(curve, abscissa)
        return figure_elements.finish(ax, label, ordinate, described, below=below)


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
    figure = LineFigure.of(curve, name, ax)
    with_train_error = train and name == "test_error" and "train_error" in curve
    errors = list(STYLES) if with_train_error else [name]
    few_marks = figure_elements.FEW if points is None else 0
    figure.draw_errors(errors, few_marks)
    if points is not None:
        _draw_measured(figure, points, errors)
    figure_elements.set_scale(figure.ax, curve[figure.abscissa].values)
    if name in names.BEST_OF:
        figure_elements.set_scale(figure.ax, curve[name].values.ravel(), "y")
    else:
        figure_elements.from_zero(figure.ax)
    if len(errors) > 1:
        # it may then lie below the training error
        curve_has_noise = np.any(curve.get("noise", curve.attrs.get("noise", 0)) > 0)
        theory_labels = ["test error, without label noise"] * bool(curve_has_noise)
        point_marks = figure_elements.marks_of(curve[name].sel(figure.lines[0].at), few_marks)
        point_marks.pop("markevery", None)
        markers = dict.fromkeys(errors, point_marks) if points is None else MARKERS
        figure.label_errors(errors, theory_labels, markers)
    return figure.finish(errors)


def _draw_measured(figure: LineFigure, points: Any, errors: Sequence[str]) -> None:
    """Draw measured points in the colours of their lines: the first of the ``errors``, and the
    others as far as they are given."""
    import pandas

    try:
        table = pandas.DataFrame({str(name): np.asarray(points[name]) for name in points})
    except (TypeError, KeyError, IndexError, ValueError):
        allowed = "a data frame, such as simulation.to_dataframe(), or arrays of one length by name"
        raise InvalidArgument("points", type(points).__name__, allowed) from None
    if old := {"stderr", "train_stderr"} & {*table}:
        allowed = "an error's name and _stderr, such as test_error_stderr"
        raise InvalidArgument("the column of a standard error", ", ".join(sorted(old)), allowed)
    dims = [*figure.lines[0].at]
    differing = [dim for dim in dims if len({line.at[dim] for line in figure.lines}) > 1]
    needed = figure.abscissa, errors[0], *differing
    if lacking := [name for name in needed if name not in table]:
        raise InvalidArgument("points", ", ".join(table), f"of columns {', '.join(lacking)}, too")
    stderrs = [name for name in (f"{error_name}_stderr" for error_name in errors) if name in table]
    measured = [figure.abscissa, *(name for name in errors if name in table), *stderrs]
    try:
        table[measured] = table[measured].astype(float)
    except (TypeError, ValueError):
        raise InvalidArgument("points", ", ".join(measured), "of numbers") from None
    if (table[stderrs] < 0).any(axis=None):
        raise InvalidArgument("points", ", ".join(stderrs), "of standard errors that are 0 or more")
    table_dims, is_drawn = [dim for dim in dims if dim in table], np.zeros(len(table), dtype=bool)
    for line in figure.lines:
        on_line = np.ones(len(table), dtype=bool)
        for dim in table_dims:
            on_line &= np.array([_same(value, line.at[dim]) for value in table[dim]], dtype=bool)
        is_drawn |= on_line
        own = {name: table[name].to_numpy()[on_line] for name in measured}
        for error_name in [x for x in errors if x in own and on_line.any()]:
            stderr = own.get(f"{error_name}_stderr", np.nan)
            style = {"color": line.colour} | MARKERS.get(error_name, {})
            figure_elements.draw_points(
                figure.ax, own[figure.abscissa], own[error_name], stderr, **style
            )
    bars_text = f" (±{figure_elements.BARS} s.e.)" if stderrs else ""
    figure_elements.draw_points(figure.ax, [], [], [], color="0.3", label=f"measured{bars_text}")
    if not is_drawn.all():
        first = table.loc[~is_drawn, table_dims].iloc[0].to_dict()
        missing_point = ", ".join(f"{dim} {value}" for dim, value in first.items())
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
    line_colours: Sequence[Any] = [hue(place) for place in range(line_count)]
    if line_count > MOST_COLOURS:
        values, labels = curve[varying[0]].values, [""] * line_count
        line_colours = _shades(values).to_rgba(values)
    elif len(varying) == 1:
        line_colours = figure_elements.colours([at[varying[0]] for at in line_places])
    return [Line(*line) for line in zip(line_places, labels, line_colours, strict=True)]


def _is_noted(curve: "xarray.Dataset", error_name: str) -> Any:
    """Whether each point of a data set has a note that this error of it may be off."""
    noted_name = "noted_training" if error_name.startswith("train") else "noted"
    return curve.get(noted_name, curve[error_name] * 0) > 0  # NaN of a point taken out


def in_words(error_name: str) -> str:
    """The label of an error without its symbol."""
    return names.ERROR_LABELS[error_name].partition(" $")[0]


def _shades(values: Array) -> Any:
    """Map from values to colours."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize

    norm = LogNorm if figure_elements.is_logarithmic(values) else Normalize
    return ScalarMappable(norm(values.min(), values.max()), figure_elements.COLOUR_MAP)


AT_END = "at an end of the range searched or solved"


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
    error_name = names.error_drawn(curve.data_vars)
    if is_map(curve, error_name):
        return plot_heat_map(curve, ax, error=error_name)
    best_names = [best_name for best_name in names.BEST_OF if best_name in curve.data_vars]
    if not best_names:
        allowed_curve = 'one of learning_curve(..., lam="best"), or eta="best"'
        raise InvalidArgument("curve", None, allowed_curve)
    figure = LineFigure.of(curve, error_name, ax)
    ax, x = figure.ax, curve[figure.abscissa].values
    best_panels = figure_elements.panels_below(ax, *[0.3] * len(best_names))
    figure.draw_errors([error_name])
    at_end: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "white", "markersize": 4}
    edge_names = curve.at_edge.astype(str)  # of a point that was taken out it is NaN
    has_ends = False
    for best_name, panel in zip(best_names, best_panels, strict=True):
        values_at_edge = curve[best_name].where(edge_names.str.contains(rf"\b{best_name}\b"))
        for line in figure.lines:
            figure.draw_line(line, best_name, ax=panel)
            panel.plot(x, values_at_edge.sel(line.at), "o", color=line.colour, **at_end)
        has_ends |= bool(values_at_edge.notnull().any())
        panel.set_ylabel(f"best {names.symbol(best_name)}")
        panel.margins(y=0.2)
        figure_elements.set_scale(panel, curve[best_name].values.ravel(), "y")
        y_low, y_high = panel.get_ylim()
        if y_high < 1.05 * y_low:  # it hardly varies, and digits that are not known would be drawn
            panel.set_ylim(0.95 * y_low, 1.05 * y_high)
    if has_ends:
        ax.plot([], [], "o", color="0.3", label=AT_END, **at_end)
    figure_elements.set_scale(ax, x)
    figure_elements.from_zero(ax)
    figure.finish([error_name], best_panels)
    if has_ends and (legend_box := ax.get_legend()):
        legend_box.set_frame_on(True)  # its circle looks like a point
    return ax
