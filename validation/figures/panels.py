"""Panels of errors over one parameter: theories as lines, simulated points on them, with relative
differences below."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

import replica
from replica.documents import plain
from replica.observables import solve_grid
from replica.plotting import COLOURS, ERROR_LABELS, LABELS, REFERENCE
from solvers.results import Array

from ..run import simulate
from .computing import Progress, model_of, tracked
from .drawing import KINDS, draw_theories, panels_with_differences, theory_legend


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
        for name in {"alpha", "lam"} - self.fit.keys():
            return [(self.problem, self.fit | {name: values})]
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


def compute(
    panels: Sequence[Panel], progress: Progress, store: Path | None, **also: Any
) -> dict[str, Any]:
    """Plain values of all curves, panel by panel, with the settings of the figure."""
    found: list[list[dict[str, Any]]] = [[] for _ in panels]
    every = [(i, curve) for i, panel in enumerate(panels) for curve in panel.curves]
    for i, curve in tracked(every, progress):
        found[i].append(_errors(panels[i], curve, store))
    return dict(plain({**also, **panels[0].size, "panels": found}))


def _errors(panel: Panel, curve: Curve, store: Path | None) -> dict[str, Any]:
    """Theories at ``x`` and simulated means and standard errors at ``few``, for every error."""
    few = np.array(panel.few)
    found: dict[str, Any] = {error: {} for error in panel.errors}
    d = panel.size["dimension"] if panel.at_dimension else np.inf
    for kind in curve.kinds:
        each = [
            solve_grid(model_of(kind, problem, curve.beta, d), grids={}, **fit).columns
            for problem, fit in curve.points(panel.x)
        ]
        for error, lines in found.items():
            lines[kind] = np.concatenate([one[error] for one in each])
    if not curve.style:
        each = [
            simulate(
                problem, rng=i * curve.fresh, store=store,
                beta=curve.beta if problem.schedule else None, **fit, **panel.size,
            ).columns
            for i, (problem, fit) in enumerate(curve.points(few))
        ]  # fmt: skip
        for error, lines in found.items():
            keys = error, f"{error}_stderr"
            parts = [np.stack([one[key].ravel() for key in keys], axis=-1) for one in each]
            lines["simulated"] = np.concatenate(parts)
    if panel.linear:
        model = model_of("theory", curve.points(panel.x[:1])[0][0], curve.beta)
        found["linear"] = replica.bounds(model).linear
    return found | panel.size | {"x": panel.x, "simulated_at": few}


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
    columns = [
        (panel, curves, error)
        for panel, curves in zip(panels, data["panels"], strict=True)
        for error in panel.errors
    ]
    every = [curve for curves in data["panels"] for curve in curves]
    one_size = all(curve["dimension"] == data["dimension"] for curve in every)
    axes = panels_with_differences(picture, len(columns))
    for column, (panel, curves, error) in zip(axes.T, columns, strict=True):
        for i, (curve, values) in enumerate(zip(panel.curves, curves, strict=True)):
            shown: dict[str, Any] = {"color": curve.color, "label": curve.label}
            if curve.style:
                column[0].plot(values["x"], values[error]["theory"], **shown, **curve.style)
            else:
                places = i - (len(curves) - 1) / 2
                draw_theories(column, values, values[error], places=places, **shown)
        if panel.linear:
            column[0].axhline(curves[0]["linear"], **REFERENCE, label="best linear predictor")
        sizes = "" if one_size else f", $d = {curves[0]['dimension']}$"
        column[0].set_title(panel.title + sizes, fontsize=fontsize)
        if panel is panels[0] or len(panel.errors) > 1:
            column[0].set_ylabel(ERROR_LABELS[error])
        column[0].set(**panel.scales)
        column[1].set_xlabel(panel.abscissa)
        if panel.x.dtype.kind == "i":
            column[1].xaxis.set_major_locator(MaxNLocator(integer=True))
    kinds = [kind for kind in KINDS if any(kind in curve[error] for curve in every)]
    size = (data["dimension"], data["seeds"]) if one_size else (None, None)
    theory_legend(axes, size[0], kinds, simulated, size[1])
    return axes[0]
