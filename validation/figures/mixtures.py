"""Figures 1 to 6 of [M]: network and Hermite model on mixtures and images.  docs/theory.md 12

Panels 1a-1c, 2a-2c and 6 are sweeps of one quantity around n = m = k = 1000, beta_s = .74,
alpha_s = 1/2, two components of equal shares with one spike each, orthogonal, lam = 1e-4, labels
relu(xi . x) of a random xi, 20 draws.  4 is a heat map of beta_s and alpha_s, 5 sweeps beta_s at
three alpha_s, 3 sweeps the width on two classes of images.

Lines are the theory of the readout given the first layers of the first ``LAYERS`` draws
(docs/theory.md 20), up to a width of ``WIDEST``: points differ from them by their draws.  At full
size thin lines are the closed form, of the same tasks, in which no layer is drawn (docs/theory.md
19); in 4, whose tasks are all alike, the contours are.

What the text leaves open is chosen thus: every draw is fresh in everything; 2c draws its
eigenvalues uniformly below theta and rescales the second component's to the same trace; 5 are
slices of 4 in all (n, m, xi along the spikes) with three activations; Hermite models have the
order that the data spread needs, at most 5, and where the equivalence is not proved (beta_s on a
boundary, or order 5 too low) their markers are open; 3 has trace n^.74 and rate n^.37, order 4.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.random import SeedSequence

from replica.documents import plain
from replica.errors import InvalidArgument
from solvers.results import Array

from .. import mixtures as models
from ..run import standard_error
from .computing import Progress, kept, tracked
from .mixtures_drawing import draw_map, draw_sweep

LARGEST_ORDER = 5  # of a Hermite model, as in the paper
LAYERS = 4  # drawn ones that lines are means of
ROW_NODES = 3  # of the closed form along each spike: 5 change errors by 2e-6
WIDEST = 2000  # a theory takes k^3: 2 s at 1000 neurons
WIDTH_RATIOS = (0.1, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0, 1.1, 1.5, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True)
class Setting:
    """All that a cell depends on, but its seed."""

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
    """One axis: ``x`` takes ``values``, or the ``few`` when quick; for each of the ``others``."""

    x: str
    values: tuple[float, ...]
    few: tuple[float, ...]
    error: str = "generalisation"
    setting: Setting = field(default_factory=Setting)
    others: tuple[dict[str, Any], ...] = ({},)
    small: dict[str, Any] = field(default_factory=lambda: {"dimension": 100, "samples": 100})
    draws: int = 20
    layers: int = LAYERS
    tasks: int = LAYERS  # of these that have a closed form
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
    data, labels, rest = SeedSequence(seed).spawn(3)
    n = setting.dimension if task is None else task.dimension
    theta, rate = models.scaling(n, data_spread=setting.data_spread, split=setting.split)
    if task is None:
        mixed = models.mixture(
            n,
            eigenvalues=theta,
            spikes=int(setting.rank),
            alignment=setting.alignment,
            proportions=[setting.proportion, 1 - setting.proportion],
            drawn=setting.drawn,
            rng=data,
        )
        task = models.regression(mixed, aligned=setting.aligned, rng=labels)
    found = errors(
        task,
        students=setting.students,
        orders=[order_of(setting.data_spread)] if setting.hermite else [],
        width=width_of(setting),
        samples=setting.samples,
        rate=rate,
        lam=setting.lam,
        rng=rest,
    )
    return np.array(found)


def width_of(setting: Setting) -> int:
    """k."""
    return max(1, round(setting.ratio * setting.samples))


def task_of(setting: Setting, content: dict[str, Any]) -> models.LearningTask | None:
    """The task of a setting on images, whose digest goes into the ``content`` of cells."""
    if not setting.images:
        return None
    pixels = models.images(setting.images, classes=setting.classes)
    # not the name of a file, but what is in it
    content["images"] = pixels.digest
    # The classes are broad: theta is the trace, not one eigenvalue.
    n = pixels.first.shape[1]
    theta, _ = models.scaling(n, data_spread=setting.data_spread, split=0.0)
    return models.image_task(pixels, theta=theta, source=setting.source)


def order_of(data_spread: float) -> int:
    """The order that the data spread needs, at most 5."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", models.EquivalenceWarning)
        return models.needed_order(data_spread, largest=LARGEST_ORDER)


def data(
    panel: str,
    quick: bool,
    progress: Progress = None,
    *,
    store: Path | None = None,
    draws: int | None = None,
    images: str = "",
) -> dict[str, Any]:
    """Plain values of a panel: means and standard errors over ``draws`` at every point, and the
    theory; finished cells are kept in ``store``."""
    if (panel == "3") != bool(images):
        allowed = "given for mixtures/3 and for no other: a folder of IDX files, or an NPZ file"
        raise InvalidArgument("images", images, allowed)
    plan = SWEEP_PANELS[panel]
    draws = draws or (3 if quick else plan.draws)
    values = plan.few if quick else plan.values
    others = plan.others[:: plan.every if quick else 1]
    base = replace(plan.setting, images=images, **(plan.small if quick else {}))
    points: list[dict[str, Any]] = []
    total = len(others) * len(values) * draws
    for other in others:
        content: dict[str, Any] = {"images": None}
        task = task_of(replace(base, **other), content)
        for value in values:
            changes: dict[str, Any] = other | {plan.x: value}
            setting = replace(base, **changes)
            seeds = tracked(range(draws), progress, len(points) * draws, total)
            what = {"mixtures": asdict(setting) | content}
            known = {
                "other": other,
                "x": value,
                "order": order_of(setting.data_spread),
                "proved": models.proved(setting.data_spread, largest=LARGEST_ORDER),
            }
            layers = plan.layers if width_of(setting) <= WIDEST else 0
            counts = {"mean": draws, "theory": layers, "closed": 0 if quick else plan.tasks}
            points.append(known | means(setting, task, what, seeds, counts, store))
    return dict(plain({"panel": panel, "setting": asdict(base), "draws": draws, "points": points}))


def means(
    setting: Setting,
    task: models.LearningTask | None,
    what: dict[str, Any],
    seeds: Iterable[int],
    counts: dict[str, int],
    store: Path | None,
) -> dict[str, Any]:
    """Means of the errors over the ``seeds``, of the theory given their first layers, and of the
    closed form of their tasks, each over the first ``counts`` of them, and the standard errors of
    the first: each a dict of (students, 2)."""
    shape = 3, len(setting.students), 1 + setting.hermite
    kinds: dict[str, tuple[Callable[..., models.Errors], dict[str, Any]]] = {
        "mean": (models.side_by_side, {}),
        "theory": (models.in_theory, {"theory": "rows" if setting.source == "images" else True}),
        "closed": (of_task, {"theory": "closed form"}),
    }
    each: dict[str, list[Array]] = {name: [] for name in kinds}
    for seed in seeds:
        for name, (errors, mark) in kinds.items():
            if seed < counts[name]:
                compute = partial(cell, setting, task, seed, errors)
                each[name].append(kept(store, what | {"seed": seed} | mark, compute, shape))
    nothing = [np.full(shape, np.nan)]
    found = {name: np.mean(known or nothing, axis=0) for name, known in each.items()}
    found["stderr"] = standard_error(np.array(each["mean"]))
    return {name: dict(zip(models.Errors._fields, one, strict=True)) for name, one in found.items()}


def of_task(task: Any, *, rng: Any, **asked: Any) -> models.Errors:
    """The closed form, to 1e-3, which draws nothing."""
    return models.closed_form(task, row_nodes=ROW_NODES, tol=1e-3, **asked)


def draw(data: dict[str, Any]) -> Figure:
    """The picture of a panel's data."""
    if data["panel"] == "4":
        return draw_map(data)
    plan = SWEEP_PANELS[data["panel"]]
    errors = ("generalisation", "misclassification") if data["panel"] == "3" else (plan.error,)
    return draw_sweep(data, x=plan.x, errors=errors, others=plan.others)
