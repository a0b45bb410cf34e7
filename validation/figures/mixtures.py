"""Figures 1 to 6 of [M]: network and Hermite model on mixtures and images.  docs/theory.md 12

Panels 1a-1c, 2a-2c and 6 are sweeps of one quantity around n = m = k = 1000, beta_s = .74,
alpha_s = 1/2, two components of equal shares with one spike each, orthogonal, lam = 1e-4, labels
relu(xi . x) of a random xi, 20 draws.  4 is a heat map of beta_s and alpha_s, 5 sweeps beta_s at
three alpha_s, 3 sweeps the width on two classes of images.

Lines are the theory of the readout given the first layers of the first ``LAYERS`` draws
(docs/theory.md 20), up to a width of 2000: points differ from them by their draws.  At full
size thin lines are the closed form, of the same tasks, in which no layer is drawn (docs/theory.md
19); in 4, whose tasks are all alike, the contours are.

Settings that the text leaves open are chosen thus: every draw is fresh in everything; 2c draws its
eigenvalues uniformly below theta and rescales the second component's to the same trace; 5 are
slices of 4 in all (n, m, xi along the spikes) with three activations; Hermite models have the
order that the data spread needs, at most 5, and where the equivalence is not proved (beta_s on a
boundary, or order 5 too low) their markers are open; 3 has trace n^.74 and rate n^.37, order 4.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.random import SeedSequence

from replica.errors import InvalidArgument
from replica.files import plain
from replica.plotting import BARS, colours, draw_heat_map, letter_panels
from solvers.results import Array

from .. import mixtures as models
from ..run import standard_error
from . import Run, Values
from .panels import legend_below

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
THEORY_MARKERS: dict[str, tuple[str, tuple[dict[str, Any], ...]]] = {
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


LARGEST_ORDER = 5  # of a Hermite model, as in the paper
LAYERS = 4  # drawn ones that lines are means of
WIDTH_RATIOS = (0.1, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0, 1.1, 1.5, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True)
class Setting:
    """Parameters of a cell, all but its seed."""

    dimension: int = 1000
    samples: int = 1000
    ratio: float = 1.0
    data_spread: float = 0.74
    split: float = 0.5
    alignment: float = 0.0
    proportion: float = 0.5
    rank: int = 1
    drawn: bool = False
    aligned: bool = False
    lam: float = 1e-4
    students: tuple[str, ...] = ("relu", "tanh", "sigmoid")
    hermite: bool = True
    images: str = ""
    classes: tuple[int, int] = (0, 1)
    source: str = "gaussian"


@dataclass(frozen=True)
class Sweep:
    """Axis of a figure: ``x`` takes ``values``, or the ``few`` when quick; for each of the
    ``others``."""

    x: str
    values: tuple[float, ...]
    few: tuple[float, ...]
    error: str = "generalisation"
    setting: Setting = field(default_factory=Setting)
    others: tuple[dict[str, Any], ...] = ({},)
    small: dict[str, Any] = field(default_factory=lambda: {"dimension": 100, "samples": 100})
    layers: int = LAYERS
    tasks: int = LAYERS  # layers of these that have a closed form
    every: int = 1  # of the others, when quick


def grid(low: float, high: float, count: int) -> tuple[float, ...]:
    """Equally spaced values without the last digits' noise."""
    return tuple(float(value) for value in np.linspace(low, high, count).round(12))


SLICES = Setting(dimension=400, samples=500, aligned=True)
SPREADS = grid(0, 1, 30)
SWEEP_PANELS = {
    "1a": Sweep("ratio", WIDTH_RATIOS, (0.5, 1.0, 2.0)),
    "1b": Sweep("split", grid(0, 1, 20), (0.0, 0.5, 1.0)),
    "1c": Sweep("data_spread", grid(0, 1, 20), (0.1, 0.45, 0.74, 0.95)),
    "2a": Sweep("alignment", grid(-1, 1, 11), (-1.0, 0.0, 1.0)),
    "2b": Sweep("proportion", grid(0, 1, 11), (0.0, 0.5, 1.0)),
    "2c": Sweep("rank", grid(1, 10, 10), (1.0, 4.0, 10.0), setting=Setting(drawn=True), tasks=0),
    "3": Sweep(
        "ratio",
        (0.2, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0),
        (0.5, 1.0, 2.0),
        setting=Setting(samples=500),
        others=tuple(
            {"classes": classes, "source": source}
            for source in ("gaussian", "images")
            for classes in ((0, 1), (5, 9))
        ),
        small={"samples": 100},
        tasks=0,
    ),
    "4": Sweep(
        "data_spread",
        SPREADS,
        SPREADS[::6],
        setting=replace(SLICES, students=("relu",), hermite=False),
        others=tuple({"split": split} for split in SPREADS),
        small={"dimension": 60, "samples": 75},
        layers=0,
        tasks=1,
        every=6,
    ),
    "5": Sweep(
        "data_spread",
        grid(0, 1, 10),
        (0.1, 0.45, 0.95),
        setting=SLICES,
        others=({"split": 0.0}, {"split": 0.5}, {"split": 1.0}),
        small={"dimension": 100, "samples": 100, "students": ("relu", "tanh")},
        tasks=1,
    ),
    "6": Sweep("ratio", WIDTH_RATIOS, (0.5, 1.0, 2.0), error="training", tasks=0),
}


def cell(
    setting: Setting,
    task: models.LearningTask | None,
    seed: int,
    errors: Callable[..., models.Errors],
) -> Array:
    """Errors (3, students, 2) of one draw, simulated or in theory, of the network and its Hermite
    model; on a mixture that is drawn with the rest unless there is a ``task``, of images."""
    mixture_seed, label_seed, layer_seed = SeedSequence(seed).spawn(3)
    n = setting.dimension if task is None else task.dimension
    theta, step_rate = models.scaling(n, data_spread=setting.data_spread, split=setting.split)
    if task is None:
        drawn_mixture = models.mixture(
            n,
            eigenvalues=theta,
            spikes=int(setting.rank),
            alignment=setting.alignment,
            proportions=[setting.proportion, 1 - setting.proportion],
            drawn=setting.drawn,
            rng=mixture_seed,
        )
        task = models.regression(drawn_mixture, aligned=setting.aligned, rng=label_seed)
    mixture_errors = errors(
        task,
        students=setting.students,
        orders=[models.order_within(setting.data_spread, LARGEST_ORDER)] if setting.hermite else [],
        width=width_of(setting),
        samples=setting.samples,
        rate=step_rate,
        lam=setting.lam,
        rng=layer_seed,
    )
    return np.array(mixture_errors)


def width_of(setting: Setting) -> int:
    """Width k of the network of a setting."""
    return max(1, round(setting.ratio * setting.samples))


def task_of(setting: Setting) -> tuple[models.LearningTask | None, str | None]:
    """The task of a setting on images, and the digest of these."""
    if not setting.images:
        return None, None
    task_pixels = models.images(setting.images, classes=setting.classes)
    # The classes are broad: theta is the trace, not one eigenvalue.
    n = task_pixels.first.shape[1]
    theta, _ = models.scaling(n, data_spread=setting.data_spread, split=0.0)
    # not the name of a file, but what is in it, goes into the name of a cell
    return models.image_task(task_pixels, theta=theta, source=setting.source), task_pixels.digest


def data(panel: str, run: Run, *, draws: int | None = None, images: str = "") -> Values:
    """Plain values of a panel: means and standard errors over ``draws`` at every point, and the
    theory."""
    if (panel == "3") != bool(images):
        allowed = "given for mixtures/3 and for no other: a folder of IDX files, or an NPZ file"
        raise InvalidArgument("images", images, allowed)
    sweep = SWEEP_PANELS[panel]
    draws = draws or (3 if run.quick else 20)
    sweep_values = sweep.few if run.quick else sweep.values
    column_settings = sweep.others[:: sweep.every if run.quick else 1]
    base = replace(sweep.setting, images=images, **(sweep.small if run.quick else {}))
    tasks = [task_of(replace(base, **column_setting)) for column_setting in column_settings]
    points: list[dict[str, Any]] = []
    for (column_setting, (task, digest)), sweep_value in run.tracked(
        [*product(zip(column_settings, tasks, strict=True), sweep_values)]
    ):
        varied_settings: dict[str, Any] = column_setting | {sweep.x: sweep_value}
        setting = replace(base, **varied_settings)
        cell = {"mixtures": asdict(setting) | {"images": digest}}
        point_settings = {
            "other": column_setting,
            "x": sweep_value,
            "order": models.order_within(setting.data_spread, LARGEST_ORDER),
            "proved": models.proved(setting.data_spread, largest=LARGEST_ORDER),
        }
        layers = sweep.layers if width_of(setting) <= 2000 else 0  # k^3: 2 s at 1000 neurons
        counts = {"mean": draws, "theory": layers, "closed": 0 if run.quick else sweep.tasks}
        points.append(point_settings | point_means(setting, task, cell, counts, run))
    return dict(plain({"panel": panel, "setting": asdict(base), "draws": draws, "points": points}))


def point_means(
    setting: Setting,
    task: models.LearningTask | None,
    what: dict[str, Any],
    counts: dict[str, int],
    run: Run,
) -> dict[str, Any]:
    """Means of the errors over draws, of the theory given their first layers, and of the closed
    form of their tasks, each over the first ``counts`` of the seeds, and the standard errors of the
    first: each a dict of (students, 2)."""
    shape = 3, len(setting.students), 1 + setting.hermite
    error_kinds: dict[str, tuple[Callable[..., models.Errors], dict[str, Any]]] = {
        "mean": (models.side_by_side, {}),
        "theory": (models.in_theory, {"theory": "rows" if setting.source == "images" else True}),
        "closed": (of_task, {"theory": "closed form"}),
    }
    each = {
        name: [
            run.stored(
                what | {"seed": seed} | cell_mark, partial(cell, setting, task, seed, errors), shape
            )
            for seed in range(min(counts["mean"], counts[name]))
        ]
        for name, (errors, cell_mark) in error_kinds.items()
    }
    no_draws = [np.full(shape, np.nan)]
    found = {name: np.mean(seed_errors or no_draws, axis=0) for name, seed_errors in each.items()}
    found["stderr"] = standard_error(np.array(each["mean"]))
    return {name: dict(zip(models.Errors._fields, one, strict=True)) for name, one in found.items()}


def of_task(task: Any, *, rng: Any, **cell_settings: Any) -> models.Errors:
    """The closed form, to 1e-3, which draws nothing."""
    # 5 nodes along each spike change errors by 2e-6
    return models.closed_form(task, row_nodes=3, tol=1e-3, **cell_settings)


def of_points(points: Sequence[dict[str, Any]], name: str, error: str) -> Array:
    """The ``error`` at every point, (N, students, 2): its "mean", "stderr" or theory."""
    return np.array([point[name][error] for point in points], dtype=float)


def draw_map(data: dict[str, Any]) -> Figure:
    """The heat map, alpha_s to the right and beta_s up, and contours of the theory, if known."""
    heat_map = Figure(figsize=(5, 4), layout="constrained")
    map_axes = heat_map.subplots()
    spreads = np.unique([figure_point["x"] for figure_point in data["points"]])
    splits = np.unique([figure_point["other"]["split"] for figure_point in data["points"]])
    map_mean, closed_form = (  # points of one split after the other
        of_points(data["points"], name, "generalisation").reshape(len(splits), len(spreads)).T
        for name in ("mean", "closed")
    )
    closed_map = closed_form if np.isfinite(closed_form).any() else None
    draw_heat_map(map_axes, splits, spreads, map_mean, "generalisation error", contours=closed_map)
    map_axes.set_xlabel(AXIS_LABELS["split"])
    map_axes.set_ylabel(AXIS_LABELS["data_spread"])
    fixed = {name: data["setting"][name] for name in ("dimension", "samples", "ratio", "lam")}
    lines = "\ncontours: theory in closed form" if closed_map is not None else ""
    map_axes.set_title(f"relu, {_settings_title(fixed, data['draws'])}{lines}", fontsize="small")
    return heat_map


def draw_sweep(data: dict[str, Any], plan: Sweep) -> Figure:
    """Network as circles, Hermite model as crosses; open squares where nothing is proved.  Lines
    are the closed form, dashes at the points the theory given the first layer.

    A row for each error, a column for each of the plan's ``others``.
    """
    students, sweep_columns = data["setting"]["students"], len(plan.others)
    errors = ("generalisation", "misclassification") if data["panel"] == "3" else (plan.error,)
    figure_size = 1.5 + 3.8 * sweep_columns, (0.6 if sweep_columns > 1 else 1.2) + 3.2 * len(errors)
    sweep_figure = Figure(figsize=figure_size, layout="constrained")
    shared_scale = "split" in plan.others[0]  # data that differ in that alone: one scale
    sweep_axes = sweep_figure.subplots(
        len(errors), sweep_columns, squeeze=False, sharey="row" if shared_scale else "none"
    ).ravel()
    hues = colours(students)
    for ax, (error, column_setting) in zip(sweep_axes, product(errors, plan.others), strict=True):
        points = [point for point in data["points"] if point["other"] == plain(column_setting)]
        sweep_values = np.array([point["x"] for point in points], dtype=float)
        mean, stderrs = of_points(points, "mean", error), BARS * of_points(points, "stderr", error)
        is_proved = np.array([point["proved"] for point in points])
        for i, colour in enumerate(hues):
            dots: dict[str, Any] = {"color": colour, "markersize": 5, "markerfacecolor": "white"}
            ax.errorbar(sweep_values, mean[:, i, 0], stderrs[:, i, 0], fmt="o", capsize=2, **dots)
            for name, (_, styles) in THEORY_MARKERS.items():
                theory_lines = of_points(points, name, error)[:, i].T
                for line, mark in zip(theory_lines, styles, strict=True):
                    ax.add_artist(Line2D(sweep_values, line, color=colour, **mark))
            dots |= {"markersize": 9, "markerfacecolor": "none", "linestyle": ""}
            ax.plot(sweep_values[is_proved], mean[is_proved, i, 1], marker="x", **dots)
            # artists leave the scale as it is: where nothing is proved a model may be far off
            not_proved = sweep_values[~is_proved], mean[~is_proved, i, 1]
            ax.add_artist(Line2D(*not_proved, marker="s", **dots))
        ax.set_title(_column_title(column_setting))
        ax.set_xlabel(AXIS_LABELS[plan.x])
        if error == "misclassification":
            ax.axhline(0.5, color="0.6", linewidth=0.8, linestyle=":")  # chance
        if not shared_scale or ax is sweep_axes[0]:
            ax.set_ylabel(f"{error} error" if error != "misclassification" else error)
    if len(sweep_axes) > 1:
        letter_panels(sweep_axes)
    unstated = {plan.x, *plan.others[0]}
    unstated |= {"dimension", "alignment"} if data["panel"] == "3" else set()
    stated = {name: value for name, value in data["setting"].items() if name not in unstated}
    sweep_figure.suptitle(_settings_title(stated, data["draws"]), fontsize="small")

    def entry(label: str, **style: Any) -> Line2D:
        return Line2D([], [], **({"color": "0.3", "linestyle": ""} | style), label=label)

    handles = [
        entry(name, marker="o", color=shade) for name, shade in zip(students, hues, strict=True)
    ]
    handles.append(entry(f"network (±{BARS} s.e.)", marker="o", markerfacecolor="white"))
    handles.append(entry("Hermite model", marker="x", markersize=9))
    for name, (kind, styles) in THEORY_MARKERS.items():
        if np.isfinite(of_points(data["points"], name, errors[0])).any():
            texts = [f"theory of the {learner}, {kind}" for learner in ("network", "Hermite model")]
            handles += [entry(text, **mark) for text, mark in zip(texts, styles, strict=True)]
    if not all(point["proved"] for point in data["points"]):
        open_marker = {"marker": "s", "markersize": 9, "markerfacecolor": "none"}
        handles.append(entry("Hermite model, not proved", **open_marker))
    if "misclassification" in errors:
        handles.append(entry("chance", linestyle=":", linewidth=0.8))
    legend_below(sweep_figure, handles, ncols=6 if sweep_columns > 1 else 2)
    return sweep_figure


def _settings_title(setting: Mapping[str, Any], draws: int) -> str:
    """The settings that have a symbol, and the number of draws, for a title."""
    symbols = [f"${SYMBOLS[name]} = {setting[name]:g}$" for name in SYMBOLS if name in setting]
    return ", ".join([*symbols, f"{draws} draws"])


def _column_title(other: dict[str, Any]) -> str:
    """Title of a column: its classes, and the images drawn of them, or its split."""
    if "classes" in other:
        image_source = {"gaussian": "Gaussians", "images": "images themselves"}[other["source"]]
        return "classes {} and {}, {}".format(*other["classes"], image_source)
    return rf"$\alpha_s = {other['split']:g}$" if other else ""


def draw(data: dict[str, Any]) -> Figure:
    """The picture of a panel's data."""
    return draw_map(data) if data["panel"] == "4" else draw_sweep(data, SWEEP_PANELS[data["panel"]])
