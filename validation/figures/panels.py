"""Parts of figures: models, sizes and legends; and panels of errors over one parameter, theories as
lines with simulated points on them, and their relative differences below.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

import replica
from replica import GradientStep, plotting
from replica.files import plain
from replica.observables import solve_grid
from replica.plotting import COLOURS, ERROR_LABELS, LABELS, REFERENCE
from solvers.results import Array

from . import Run, Values


def model_of(kind: str, problem: Any, beta: float = 1.0, dimension: float = np.inf) -> Any:
    """Model of a step for a theory of THEORIES, or an sRF, at a ``dimension``; in the limit for the
    kind "limit"."""
    theory_model = problem
    if isinstance(problem, GradientStep):
        models_of_step = {"srf": problem.srf, "limit": problem.srf, "equal": problem.network}
        norm_options: dict[str, Any] = {"row_norms": False} if kind == "equal" else {}
        theory_model = models_of_step.get(kind, problem.network)(beta=beta, **norm_options)
    return replace(theory_model, dimension=np.inf if kind == "limit" else dimension)


def panels_with_differences(picture: Any, count: int) -> Any:
    """Axes (2, count): a row of panels, and a low one below each for differences."""
    panel_axes = picture.subplots(2, count, sharex="col", squeeze=False, height_ratios=(2.6, 1))
    for difference_axis in panel_axes[1]:
        difference_axis.axhline(0, color="0.3", linewidth=KINDS["theory"]["linewidth"], zorder=1.5)
    return panel_axes


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
    first_kind = theory_kinds[0]
    theory = np.array(curve[first_kind], float)  # NaN where not known
    for kind in theory_kinds:
        theory_style = KINDS[kind] | {"color": color, "label": label if kind == first_kind else ""}
        column[0].plot(x, curve[kind], **theory_style)
        if kind != first_kind:  # which is 0, of every colour
            column[1].plot(x, 100 * (np.array(curve[kind], float) / theory - 1), **theory_style)
    mean, stderr = np.array(curve["simulated"]).T
    x_drawn = np.array(data["simulated_at"], dtype=float)
    unit, style = np.interp(x_drawn, x, theory) / 100, {"color": color, "markerfacecolor": "white"}
    plotting.draw_points(column[0], x_drawn, mean, stderr, **style)
    plotting.draw_points(
        column[1], plotting.nudged(x_drawn, marker_nudge), mean / unit - 100, stderr / unit, **style
    )


def theory_legend(
    axes: Any, kinds: Sequence[str], simulated: str, size: dict[str, int] | None
) -> None:
    """Label of the lower axes of ``draw_theories``, legends of its curves, and below all panels a
    legend of the ``kinds`` of lines and of points, of what is ``simulated`` and its ``size``, where
    that is the same for all."""
    axes[1, 0].set_ylabel("off the theory (%)", fontsize="small")
    theory_handles = []
    for kind in kinds:
        line_style = {"label": f"theory of {simulated}"} | KINDS[kind] | {"color": "0.3"}
        theory_handles += axes[0, 0].plot([], [], **line_style)
    size_text = ", $d = {dimension}$, {seeds} draws".format(**size) if size else ""
    style = {"label": f"simulated{size_text} (±{plotting.BARS} s.e.)", "markerfacecolor": "white"}
    theory_handles.append(plotting.draw_points(axes[0, 0], [], [], [], color="0.3", **style))
    legend_below(axes[0, 0].get_figure(root=True), theory_handles)
    for error_axis, difference_axis in axes.T:
        lowest_error, highest_error = error_axis.get_ylim()
        if error_axis.get_yscale() == "linear" and lowest_error < 0.6 * highest_error:
            error_axis.set_ylim(bottom=0)
        plotting.add_legend(error_axis, [difference_axis])


@dataclass(frozen=True)
class Curve:
    """Errors of ``problem`` at one ``fit`` of the readout; where this has no alpha, or no lam, that
    is the abscissa, of which the problem is a function elsewhere.

    ``kinds`` are those of KINDS.
    """

    problem: Any
    fit: dict[str, Any]
    label: str = ""
    color: str = COLOURS[0]
    beta: float = 1.0
    kinds: tuple[str, ...] = ("theory", "srf")

    def points(self, values: Array) -> list[tuple[Any, dict[str, Any]]]:
        """Problems with the fits of their readouts that make up the curve at these ``values``."""
        for axis_name in {"alpha", "lam"} - self.fit.keys():
            return [(self.problem, self.fit | {axis_name: values})]
        return [(self.problem(value), self.fit) for value in values.tolist()]


@dataclass(frozen=True)
class Panel:
    """Curves with theories at ``x`` and simulations at ``few`` more, of the ``full`` dimension and
    draws, or the ``small`` ones; a column for each of the ``errors``.  The theory is that
    ``at_dimension`` d of the simulation, or of the limit."""

    curves: Sequence[Curve]
    x: Array
    few: Sequence[float] | Array
    full: tuple[int, int]
    title: str = ""
    abscissa: str = LABELS["alpha"]
    errors: tuple[str, ...] = ("test_error",)
    at_dimension: bool = False
    linear: bool = False
    scales: dict[str, str] = field(default_factory=dict)
    small: tuple[int, int] = (100, 2)


def compute(panels: Sequence[Panel], run: Run) -> Values:
    """Plain values of all curves, panel by panel, with the settings of the figure."""
    curve_values: list[list[Values]] = [[] for _ in panels]
    panel_curves = [(i, curve) for i, panel in enumerate(panels) for curve in panel.curves]
    for i, curve in run.tracked(panel_curves):
        curve_values[i].append(_curve_errors(panels[i], curve, run))
    return dict(plain({**run.size(panels[0].full, panels[0].small), "panels": curve_values}))


def _curve_errors(panel: Panel, curve: Curve, run: Run) -> Values:
    """Theories at all points and simulated means and standard errors at a few, for every error."""
    x, few, size = panel.x, np.array(panel.few), run.size(panel.full, panel.small)
    if run.quick:
        x, few = x[np.unique(np.linspace(0, len(x) - 1, 11).round().astype(int))], few[1::2]
    x = np.union1d(x, few)
    error_curves: dict[str, Any] = {error: {} for error in panel.errors}
    panel_d = size["dimension"] if panel.at_dimension else np.inf
    for theory_kind in curve.kinds:
        column_parts = [
            solve_grid(model_of(theory_kind, problem, curve.beta, panel_d), grids={}, **fit)
            .log_unsolved()
            .columns
            for problem, fit in curve.points(x)
        ]
        for error, error_lines in error_curves.items():
            error_lines[theory_kind] = np.concatenate([columns[error] for columns in column_parts])
    simulated_parts = [
        run.simulated(
            problem, panel.errors, beta=curve.beta if problem.schedule else None, **fit, **size
        )
        for problem, fit in curve.points(few)
    ]
    for error, points in zip(panel.errors, np.hstack(simulated_parts), strict=True):
        error_curves[error]["simulated"] = points
    if panel.linear:
        curve_model = model_of("theory", curve.points(x[:1])[0][0], curve.beta)
        error_curves["linear"] = replica.bounds(curve_model).linear
    return error_curves | size | {"x": x, "simulated_at": few}


def draw_panels(
    picture: Any,
    data: dict[str, Any],
    panels: Sequence[Panel],
    *,
    simulated: str = "the network",
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
            curve_label = curve.label if error == panel.errors[0] else ""
            style: dict[str, Any] = {"color": curve.color, "label": curve_label}
            nudge = curve_index - (len(curves) - 1) / 2
            draw_theories(two_axes, values, values[error], marker_nudge=nudge, **style)
        if panel.linear:
            two_axes[0].axhline(curves[0]["linear"], **REFERENCE, label="best linear predictor")
        dimension_text = "" if one_size else f", $d = {curves[0]['dimension']}$"
        two_axes[0].set_title(panel.title + dimension_text)
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
    size = {name: data[name] for name in ("dimension", "seeds")} if one_size else None
    theory_legend(panel_axes, theory_kinds, simulated, size)
    return panel_axes[0]
