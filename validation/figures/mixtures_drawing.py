"""Pictures of the figures on mixtures: network and Hermite model together, and the heat map."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica.documents import plain
from replica.plotting import BARS, colours, draw_heat_map, letter_panels
from solvers.results import Array

from .drawing import legend_below

AXIS_LABELS = {
    "ratio": r"width over samples $k/m$",
    "split": r"split $\alpha_s$",
    "data_spread": r"data spread $\beta_s$",
    "alignment": r"mixture alignment $\gamma_1\cdot\gamma_2$",
    "proportion": r"share $\rho$ of the first component",
    "rank": r"rank $d_1 = d_2$",
}

SYMBOLS = {  # of the settings in a title
    "dimension": "n",
    "samples": "m",
    "ratio": "k/m",
    "data_spread": r"\beta_s",
    "split": r"\alpha_s",
    "alignment": r"\gamma_1\cdot\gamma_2",
    "lam": r"\lambda",
}

# Of the network and of the Hermite model: the theory given the first layers that were drawn, known
# where points are and no line between them, and the closed form, which knows of no draw.
LEARNERS = "network", "Hermite model"
THEORIES: dict[str, tuple[str, tuple[dict[str, Any], ...]]] = {
    "theory": (
        "given its first layer",
        (
            {"marker": "_", "markersize": 14, "markeredgewidth": 1.4, "linestyle": ""},
            {"marker": "_", "markersize": 7, "markeredgewidth": 2.6, "linestyle": ""},
        ),
    ),
    "closed": (
        "in closed form",
        ({"linestyle": "-", "linewidth": 1.0}, {"linestyle": "--", "linewidth": 1.0}),
    ),
}


def of_points(points: Sequence[dict[str, Any]], name: str, error: str) -> Array:
    """The ``error`` at every point, (N, students, 2): its "mean", "stderr" or theory."""
    return np.array([one[name][error] for one in points], dtype=float)


def draw_map(data: dict[str, Any]) -> Figure:
    """The heat map, alpha_s to the right and beta_s up, and contours of the theory, if known."""
    picture = Figure(figsize=(5, 4), layout="constrained")
    ax = picture.subplots()
    spreads = np.unique([one["x"] for one in data["points"]])
    splits = np.unique([one["other"]["split"] for one in data["points"]])
    mean, theory = (  # points of one split after the other
        of_points(data["points"], name, "generalisation").reshape(len(splits), len(spreads)).T
        for name in ("mean", "closed")
    )
    contours = theory if np.isfinite(theory).any() else None
    draw_heat_map(ax, splits, spreads, mean, "generalisation error", contours=contours)
    ax.set_xlabel(AXIS_LABELS["split"])
    ax.set_ylabel(AXIS_LABELS["data_spread"])
    fixed = {name: data["setting"][name] for name in ("dimension", "samples", "ratio", "lam")}
    lines = "\ncontours: theory in closed form" if contours is not None else ""
    ax.set_title(f"relu, {_pieces(fixed, data['draws'])}{lines}", fontsize="small")
    return picture


def draw_sweep(
    data: dict[str, Any], *, x: str, errors: Sequence[str], others: Sequence[dict[str, Any]]
) -> Figure:
    """Network as circles, Hermite model as crosses; open squares where nothing is proved.  Lines
    are the closed form, dashes at the points the theory given the first layer.

    A row for each of the ``errors``, a column for each of the ``others``, over ``x``.
    """
    students = data["setting"]["students"]
    panels = [(other, error) for error in errors for other in others]
    columns = len(others)
    rows = len(panels) // columns
    size = 1.5 + 3.8 * columns, (0.6 if columns > 1 else 1.2) + 3.2 * rows
    picture = Figure(figsize=size, layout="constrained")
    shared = "split" in others[0]  # the same data but for that: one scale
    grid = picture.subplots(rows, columns, squeeze=False, sharey="row" if shared else "none")
    axes = grid.ravel()
    for ax, (other, error) in zip(axes, panels, strict=True):
        points = [one for one in data["points"] if one["other"] == plain(other)]
        values = np.array([one["x"] for one in points], dtype=float)
        mean, bars = of_points(points, "mean", error), BARS * of_points(points, "stderr", error)
        theories = {name: of_points(points, name, error) for name in THEORIES}
        good = np.array([one["proved"] for one in points])
        for i, (student, colour) in enumerate(zip(students, colours(students), strict=True)):
            style: dict[str, Any] = {"color": colour, "markersize": 5, "label": student}
            ax.errorbar(
                values, mean[:, i, 0], bars[:, i, 0], fmt="o", capsize=2, markerfacecolor="white",
                **style,
            )  # fmt: skip
            for name, (_, styles) in THEORIES.items():
                for line, own in zip(theories[name][:, i].T, styles, strict=True):
                    ax.plot(values, line, color=colour, **own)
            for chosen, marker in ((good, "x"), (~good, "s")):
                style = {"color": colour, "markersize": 9, "markerfacecolor": "none"}
                ax.plot(values[chosen], mean[chosen, i, 1], marker, **style)
        ax.set_ylim(_limits(data["points"] if shared else points, error))
        of_any = {"color": "0.3", "markerfacecolor": "white", "label": f"network (±{BARS} s.e.)"}
        ax.errorbar([], [], [], fmt="o", markersize=5, capsize=2, **of_any)
        ax.plot([], [], "x", color="0.3", markersize=9, label="Hermite model")
        for name, (of, styles) in THEORIES.items():
            for learner, own in zip(LEARNERS, styles, strict=True):
                if np.isfinite(theories[name]).any():
                    ax.plot([], [], color="0.3", label=f"theory of the {learner}, {of}", **own)
        if not good.all():
            label = "Hermite model, not proved"
            ax.plot([], [], "s", color="0.3", markersize=9, markerfacecolor="none", label=label)
        if other:
            ax.set_title(_title(other))
        ax.set_xlabel(AXIS_LABELS[x])
        if error == "misclassification":
            ax.axhline(0.5, color="0.6", linewidth=0.8, linestyle=":", label="chance")
        if not shared or ax is axes[0]:
            ax.set_ylabel(f"{error} error" if error != "misclassification" else error)
    if len(panels) > 1:
        letter_panels(axes)
    own = {name: value for name, value in data["setting"].items() if name not in {x, *others[0]}}
    if data["panel"] == "3":
        own = {name: own[name] for name in own if name not in ("dimension", "alignment")}
    picture.suptitle(_pieces(own, data["draws"]), fontsize="small")
    named = [ax.get_legend_handles_labels() for ax in axes]
    handles = {label: handle for own in named for handle, label in zip(*own, strict=True)}
    legend_below(picture, list(handles.values()), ncols=6 if columns > 1 else 2)
    return picture


def _pieces(setting: Mapping[str, Any], draws: int) -> str:
    """The settings that have a symbol, and the number of draws, for a title."""
    stated = [f"${SYMBOLS[name]} = {setting[name]:g}$" for name in SYMBOLS if name in setting]
    return ", ".join([*stated, f"{draws} draws"])


def _limits(points: list[dict[str, Any]], error: str) -> tuple[float, float]:
    """Limits of the vertical axis, with room for two standard errors.

    A Hermite model may be far off where nothing is proved: it does not count there.
    """
    mean, bars = of_points(points, "mean", error), BARS * of_points(points, "stderr", error)
    hermite = mean[[one["proved"] for one in points], :, 1]
    shown = np.concatenate([(mean - bars)[..., 0], (mean + bars)[..., 0], hermite])
    low, high = np.nanmin(shown), np.nanmax(shown)
    return low - 0.06 * (high - low), high + 0.06 * (high - low)


def _title(other: dict[str, Any]) -> str:
    """What tells one column from another: its classes and what is drawn of them, or its split."""
    if "classes" in other:
        drawn = {"gaussian": "Gaussians", "images": "images themselves"}[other["source"]]
        return "classes {} and {}, {}".format(*other["classes"], drawn)
    return rf"$\alpha_s = {other['split']:g}$"
