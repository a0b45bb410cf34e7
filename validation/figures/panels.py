"""Parts of figures: models, sizes and legends; and panels of errors over one parameter, theories as
lines with simulated points on them, and their relative differences below.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

import replica
from replica import GradientStep, plotting
from replica.documents import plain
from replica.observables import solve_grid
from replica.plotting import COLOURS, ERROR_LABELS, LABELS, REFERENCE
from solvers.results import Array

from ..run import simulate
from . import Run, Values


def sized(quick: bool, full: tuple[int, int], small: tuple[int, int] = (100, 2)) -> dict[str, int]:
    """The dimension and the draws of a simulation, ``full`` or ``small``."""
    return dict(zip(("dimension", "seeds"), small if quick else full, strict=True))


def model_of(kind: str, problem: Any, beta: float = 1.0, dimension: float = np.inf) -> Any:
    """Model of a step for a theory of THEORIES, or an sRF, at a ``dimension``; in the limit for the
    kind "limit"."""
    theory_model = problem
    if isinstance(problem, GradientStep):
        models_of_step = {"srf": problem.srf, "limit": problem.srf, "equal": problem.network}
        row_options: dict[str, Any] = {"row_norms": False} if kind == "equal" else {}
        theory_model = models_of_step.get(kind, problem.network)(beta=beta, **row_options)
    return replace(theory_model, dimension=np.inf if kind == "limit" else dimension)


def panels_with_differences(picture: Any, count: int) -> Any:
    """Axes (2, count): a row of panels, and a low one below each for differences."""
    panel_axes = picture.subplots(2, count, sharex="col", squeeze=False, height_ratios=(2.6, 1))
    for difference_axis in panel_axes[1]:
        difference_axis.axhline(0, color="0.3", linewidth=KINDS["theory"]["linewidth"], zorder=1.5)
    return panel_axes


def add_legend_entry(
    ax: Axes, dimension: int | None, draws: int | None = None, **style: Any
) -> Any:
    """Draw no points, but in grey, with the label of those simulated at ``dimension`` by so many
    ``draws``, where these are the same for all."""
    size_text = "" if dimension is None else f", $d = {dimension}$"
    size_text += "" if draws is None else f", {draws} draws"
    legend_label = f"simulated{size_text} (±{plotting.BARS} s.e.)"
    return plotting.draw_points(ax, [], [], [], color="0.3", label=legend_label, **style)


def legend_below(figure: Any, handles: Sequence[Any], **options: Any) -> None:
    """Put a legend of the ``handles`` below all panels of a figure, and take their labels from the
    panels'."""
    legend_style = {"loc": "outside lower center", "frameon": False, "fontsize": "small"}
    legend_labels = [handle.get_label() for handle in handles]
    legend_columns = len(handles) if figure.get_figwidth() > 8 else 2
    figure.legend(handles, legend_labels, **({**legend_style, "ncols": legend_columns} | options))
    for handle in handles:
        handle.set_label("")


# The theory of what is simulated, what it is compared with, and how each is drawn.
KINDS: dict[str, dict[str, Any]] = {
    "theory": {"linewidth": 1.8},
    "equal": {"label": "theory of equal row norms", "linewidth": 1.2, "linestyle": (0, (1, 1.5))},
    "srf": {"label": "theory of the sRF", "linewidth": 1.0, "linestyle": (0, (5, 2))},
    "limit": {
        "label": r"theory of the sRF, $d\to\infty$",
        "linewidth": 1.0,
        "linestyle": (0, (5, 1, 1, 1)),
    },
}


def draw_theories(
    column: Any,
    data: dict[str, Any],
    curve: dict[str, Any],
    *,
    color: str,
    label: str = "",
    marker_nudge: float = 0.0,
) -> None:
    """Draw theories of one curve and its simulated points: errors in the upper of two Axes, in the
    lower their differences from the first theory in per cent, the points ``nudged`` by
    ``marker_nudge``."""
    x, theory_kinds = np.array(data["x"]), [kind for kind in KINDS if kind in curve]
    theory = np.array(curve[theory_kinds[0]], float)  # NaN where not known
    for kind in theory_kinds:
        theory_style = KINDS[kind] | {"color": color, "label": ""}
        if kind == theory_kinds[0]:
            theory_style = KINDS["theory"] | {"color": color, "label": label}
        column[0].plot(x, curve[kind], **theory_style)
        if kind != theory_kinds[0]:  # which is 0, of every colour
            column[1].plot(x, 100 * (np.array(curve[kind], float) / theory - 1), **theory_style)
    mean, stderr = np.array(curve["simulated"]).T
    x_drawn = np.array(data["simulated_at"], dtype=float)
    unit, style = np.interp(x_drawn, x, theory) / 100, {"color": color, "markerfacecolor": "white"}
    plotting.draw_points(column[0], x_drawn, mean, stderr, **style)
    plotting.draw_points(
        column[1], plotting.nudged(x_drawn, marker_nudge), mean / unit - 100, stderr / unit, **style
    )


def theory_legend(
    axes: Any,
    dimension: int | None,
    kinds: Sequence[str],
    simulated: str = "the network",
    draws: int | None = None,
) -> None:
    """Label of the lower axes of ``draw_theories``, legends of its curves, and below all panels a
    legend of the ``kinds`` of lines and points, if all points are of ``simulated``."""
    axes[1, 0].set_ylabel("off the theory (%)", fontsize="small")
    theory_handles = []
    for kind in kinds:
        line_style = KINDS[kind]
        if kind == kinds[0]:
            line_style = KINDS["theory"] | {"label": f"theory of {simulated}"}
        theory_handles += axes[0, 0].plot([], [], **(line_style | {"color": "0.3"}))
    theory_handles.append(add_legend_entry(axes[0, 0], dimension, draws, markerfacecolor="white"))
    legend_below(axes[0, 0].get_figure(root=True), theory_handles)
    for error_axis, difference_axis in axes.T:
        lowest_error, highest_error = error_axis.get_ylim()
        if error_axis.get_yscale() == "linear" and lowest_error < 0.6 * highest_error:
            error_axis.set_ylim(bottom=0)
        plotting.add_legend(error_axis, [difference_axis])
        if difference_axis.get_legend() and error_axis.get_yscale() == "linear":
            # room above the lines
            error_axis.set_ylim(top=1.15 * error_axis.get_ylim()[1])
            plotting.add_legend(error_axis, [difference_axis])


@dataclass(frozen=True)
class Curve:
    """Errors of ``problem`` at one ``fit`` of the readout; where this has no alpha, or no lam, that
    is the abscissa, of which the problem is a function elsewhere.

    ``kinds`` are those of KINDS.  A curve with a ``style`` of its own is a line of the first,
    and not simulated.  ``fresh`` draws are others at every value.
    """

    problem: Any
    fit: dict[str, Any]
    label: str = ""
    color: str = COLOURS[0]
    beta: float = 1.0
    kinds: tuple[str, ...] = ("theory", "srf")
    style: dict[str, Any] = field(default_factory=dict)
    fresh: bool = False

    def points(self, values: Array) -> list[tuple[Any, dict[str, Any]]]:
        """Problems with the fits of their readouts that make up the curve at these ``values``."""
        for axis_name in {"alpha", "lam"} - self.fit.keys():
            return [(self.problem, self.fit | {axis_name: values})]
        return [(self.problem(value), self.fit) for value in values.tolist()]


@dataclass(frozen=True)
class Panel:
    """Curves with theories at ``x`` and simulations at ``few``; a column for each of the
    ``errors``.  The theory is that ``at_dimension`` d of the simulation, or of the limit."""

    curves: Sequence[Curve]
    x: Array
    few: Sequence[float] | Array
    size: dict[str, Any]
    title: str = ""
    abscissa: str = LABELS["alpha"]
    errors: tuple[str, ...] = ("test_error",)
    at_dimension: bool = False
    linear: bool = False
    scales: dict[str, str] = field(default_factory=dict)


def compute(panels: Sequence[Panel], run: Run) -> Values:
    """Plain values of all curves, panel by panel, with the settings of the figure."""
    curve_values: list[list[Values]] = [[] for _ in panels]
    panel_curves = [(i, curve) for i, panel in enumerate(panels) for curve in panel.curves]
    for i, curve in run.tracked(panel_curves):
        curve_values[i].append(_curve_errors(panels[i], curve, run.store))
    return dict(plain({**panels[0].size, "panels": curve_values}))


def _curve_errors(panel: Panel, curve: Curve, store: Path | None) -> Values:
    """Theories at ``x`` and simulated means and standard errors at ``few``, for every error."""
    simulated_abscissae = np.array(panel.few)
    curve_errors: dict[str, Any] = {error: {} for error in panel.errors}
    at_d = panel.size["dimension"] if panel.at_dimension else np.inf
    for theory_kind in curve.kinds:
        column_parts = [
            solve_grid(model_of(theory_kind, problem, curve.beta, at_d), grids={}, **fit).columns
            for problem, fit in curve.points(panel.x)
        ]
        for error, error_lines in curve_errors.items():
            error_lines[theory_kind] = np.concatenate([columns[error] for columns in column_parts])
    if not curve.style:
        column_parts = [
            simulate(
                problem, rng=point_index * curve.fresh, store=store,
                beta=curve.beta if problem.schedule else None, **fit, **panel.size,
            ).columns
            for point_index, (problem, fit) in enumerate(curve.points(simulated_abscissae))
        ]  # fmt: skip
        for error, error_lines in curve_errors.items():
            keys = error, f"{error}_stderr"
            error_columns = (np.stack([x[key].ravel() for key in keys], -1) for x in column_parts)
            error_lines["simulated"] = np.concatenate([*error_columns])
    if panel.linear:
        curve_model = model_of("theory", curve.points(panel.x[:1])[0][0], curve.beta)
        curve_errors["linear"] = replica.bounds(curve_model).linear
    return curve_errors | panel.size | {"x": panel.x, "simulated_at": simulated_abscissae}


def draw_panels(
    picture: Any,
    data: dict[str, Any],
    panels: Sequence[Panel],
    *,
    simulated: str = "the network",
    fontsize: str | None = None,
) -> Any:
    """Draw a column for each error of each panel; the legend names the ``simulated`` model, and its
    size where all are of one. Returns the upper Axes."""
    figure_columns = [
        (panel, curves, error)
        for panel, curves in zip(panels, data["panels"], strict=True)
        for error in panel.errors
    ]
    all_curves = [curve for curves in data["panels"] for curve in curves]
    one_size = all(curve["dimension"] == data["dimension"] for curve in all_curves)
    panel_axes = panels_with_differences(picture, len(figure_columns))
    for two_axes, (panel, curves, error) in zip(panel_axes.T, figure_columns, strict=True):
        for curve_index, (curve, values) in enumerate(zip(panel.curves, curves, strict=True)):
            line_style: dict[str, Any] = {"color": curve.color, "label": curve.label}
            if curve.style:
                two_axes[0].plot(values["x"], values[error]["theory"], **line_style, **curve.style)
            else:
                nudge = curve_index - (len(curves) - 1) / 2
                draw_theories(two_axes, values, values[error], marker_nudge=nudge, **line_style)
        if panel.linear:
            two_axes[0].axhline(curves[0]["linear"], **REFERENCE, label="best linear predictor")
        dimension_text = "" if one_size else f", $d = {curves[0]['dimension']}$"
        two_axes[0].set_title(panel.title + dimension_text, fontsize=fontsize)
        if panel is panels[0] or len(panel.errors) > 1:
            two_axes[0].set_ylabel(ERROR_LABELS[error])
        two_axes[0].set(**panel.scales)
        if "yscale" in panel.scales:  # powers of ten would label it too rarely
            two_axes[0].yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            two_axes[0].yaxis.set_major_formatter("{x:g}")
            two_axes[0].yaxis.set_minor_formatter(NullFormatter())
        two_axes[1].set_xlabel(panel.abscissa)
        if panel.x.dtype.kind == "i":
            two_axes[1].xaxis.set_major_locator(MaxNLocator(integer=True))
    theory_kinds = [kind for kind in KINDS if any(kind in curve[error] for curve in all_curves)]
    size_and_draws = (data["dimension"], data["seeds"]) if one_size else (None, None)
    theory_legend(panel_axes, size_and_draws[0], theory_kinds, simulated, size_and_draws[1])
    return panel_axes[0]
