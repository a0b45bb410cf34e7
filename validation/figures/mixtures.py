"""Figures 1 to 6 of [M]: network and Hermite model on mixtures and images.  docs/theory.md 12

Panels 1a-1c, 2a-2c and 6 are sweeps of one quantity around n = m = k = 1000, beta_s = .74,
alpha_s = 1/2, two components of equal shares with one spike each, orthogonal, lam = 1e-4, labels
relu(xi . x) of a random xi, 20 draws.  4 is the heat map, 5 sweeps beta_s at three alpha_s, 3
sweeps the width on two classes of images.

What the text leaves open is chosen thus: every draw is fresh in everything; 2c draws its
eigenvalues uniformly below theta and rescales the second component's to the same trace; 5 are
slices of 4 in all (n, m, xi along the spikes) with three activations; Hermite models have the
order that the data spread needs, at most 5, and where the equivalence is not proved (beta_s on a
boundary, or order 5 too low) their markers are open; 3 has trace n^.74 and rate n^.37, order 4.
"""

import warnings
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

from ..mixtures import (
    EquivalenceWarning,
    Errors,
    ImageSet,
    Scaling,
    image_task,
    images,
    inside,
    mixture,
    needed_order,
    regression,
    scaling,
    shared_draws,
    side_by_side,
)
from ..run import standard_error
from .computing import Progress, kept
from .mixtures_drawing import draw_map, draw_sweep

LARGEST_ORDER = 5  # of a Hermite model, as in the paper
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


def grid(low: float, high: float, count: int) -> tuple[float, ...]:
    """Equally spaced values without the last digits' noise."""
    return tuple(float(value) for value in np.linspace(low, high, count).round(12))


SLICES = Setting(dimension=400, samples=500, aligned=True)
SWEEP_PANELS = {
    "1a": Sweep("ratio", WIDTH_RATIOS, (0.5, 1.0, 2.0)),
    "1b": Sweep("split", grid(0, 1, 20), (0.0, 0.5, 1.0)),
    "1c": Sweep("data_spread", grid(0, 1, 20), (0.1, 0.45, 0.74, 0.95)),
    "2a": Sweep("alignment", grid(-1, 1, 11), (-1.0, 0.0, 1.0)),
    "2b": Sweep("proportion", grid(0, 1, 11), (0.0, 0.5, 1.0)),
    "2c": Sweep("rank", grid(1, 10, 10), (1.0, 4.0, 10.0), setting=Setting(drawn=True)),
    "3": Sweep(
        "ratio",
        (0.2, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0),
        (0.5, 1.0, 2.0),
        setting=Setting(samples=500),
        others=({"classes": (0, 1)}, {"classes": (5, 9)}),
        small={"samples": 100},
    ),
    "5": Sweep(
        "data_spread",
        grid(0, 1, 10),
        (0.1, 0.45, 0.74, 0.95),
        setting=SLICES,
        others=({"split": 0.0}, {"split": 0.5}, {"split": 1.0}),
    ),
    "6": Sweep("ratio", WIDTH_RATIOS, (0.5, 1.0, 2.0), error="training"),
}
MAP_SIZES = {"dimension": 400, "samples": 500, "width": 500, "lam": 1e-4}


def cell(setting: Setting, pixels: ImageSet | None, seed: int) -> Array:
    """Errors (3, students, 2) of one draw, of the network and its Hermite model; on images where
    there are ``pixels``."""
    data, labels, rest = SeedSequence(seed).spawn(3)
    order = order_of(setting.data_spread)
    if pixels is not None:
        n = pixels.first.shape[1]
        # The classes are broad: theta is the trace, not one eigenvalue.
        theta, _ = scaling(n, data_spread=setting.data_spread, split=0.0)
        task: Any = image_task(pixels, theta=theta, source=setting.source)
        rate = scaling(n, data_spread=setting.data_spread, split=setting.split).eta
    else:
        theta, rate = scaling(
            setting.dimension, data_spread=setting.data_spread, split=setting.split
        )
        share = setting.proportion
        mixed = mixture(
            setting.dimension,
            eigenvalues=theta,
            spikes=int(setting.rank),
            alignment=setting.alignment,
            proportions=[share, 1 - share],
            drawn=setting.drawn,
            rng=data,
        )
        task = regression(mixed, aligned=setting.aligned, rng=labels)
    return np.array(
        side_by_side(
            task,
            students=setting.students,
            orders=[order],
            width=max(1, round(setting.ratio * setting.samples)),
            samples=setting.samples,
            rate=rate,
            lam=setting.lam,
            rng=rest,
        )
    )


def order_of(data_spread: float) -> int:
    """The order that the data spread needs, at most 5; ``proved`` says whether that is enough."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EquivalenceWarning)
        return needed_order(data_spread, largest=LARGEST_ORDER)


def proved(data_spread: float) -> bool:
    """Whether the equivalence with the Hermite model of order ``order_of`` is proved."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EquivalenceWarning)
        return inside(data_spread) and needed_order(data_spread) <= LARGEST_ORDER


def sweep(
    panel: str, quick: bool, progress: Progress, folder: Path | None, draws: int | None, path: str
) -> dict[str, Any]:
    """Means and standard errors over the draws, at every point of a panel."""
    plan = SWEEP_PANELS[panel]
    draws = draws or (3 if quick else plan.draws)
    values = plan.few if quick else plan.values
    base = replace(plan.setting, images=path, **(plan.small if quick else {}))
    points: list[dict[str, Any]] = []
    total = len(plan.others) * len(values) * draws
    for other in plan.others:
        classes = replace(base, **other).classes
        pixels = images(path, classes=classes) if path else None
        # not the name of a file, but what is in it
        content = {"images": None if pixels is None else pixels.digest}
        wrong = (np.nan, np.nan) if pixels is None else (0.0, 1.0)  # misclassification, of images
        low, high = np.array([(0.0, np.inf), (0.0, np.inf), wrong]).T[:, :, None, None]
        for value in values:
            changes: dict[str, Any] = other | {plan.x: value}
            setting = replace(base, **changes)
            errors = np.empty((draws, 3, len(setting.students), 2))
            for seed in range(draws):
                what = {"mixtures": asdict(setting) | content, "seed": seed}
                compute = partial(cell, setting, pixels, seed)
                errors[seed] = kept(folder, what, compute, errors.shape[1:], (low, high))
                if progress is not None:
                    progress(len(points) * draws + seed + 1, total)
            points.append(
                {
                    "other": other,
                    "x": value,
                    "order": order_of(setting.data_spread),
                    "proved": proved(setting.data_spread),
                    "mean": dict(zip(Errors._fields, errors.mean(axis=0), strict=True)),
                    "stderr": dict(zip(Errors._fields, standard_error(errors), strict=True)),
                }
            )
    return dict(plain({"panel": panel, "setting": asdict(base), "draws": draws, "points": points}))


def heat_map(
    quick: bool, progress: Progress, folder: Path | None, draws: int | None
) -> dict[str, Any]:
    """Generalisation errors (beta_s, alpha_s), means over the draws.  All cells of
    a seed share its draws."""
    side, draws = (5, draws or 2) if quick else (30, draws or 20)
    sizes: dict[str, Any] = (
        {"dimension": 60, "samples": 75, "width": 75, "lam": 1e-4} if quick else MAP_SIZES
    )
    axis = grid(0, 1, side)
    pairs = [scaling(sizes["dimension"], data_spread=b, split=a) for b in axis for a in axis]
    errors = np.empty((draws, side, side))
    for seed, row in np.ndindex(draws, side):  # a row of one seed is kept as soon as it is there
        part = pairs[row * side : (row + 1) * side]
        compute = partial(map_row, part, seed, sizes)
        what = {"map": sizes, "side": side, "row": row, "seed": seed}
        errors[seed, row] = kept(folder, what, compute, (side,))
        if progress is not None:
            progress(seed * side + row + 1, draws * side)
    mean, stderr = errors.mean(axis=0), standard_error(errors)
    return dict(
        plain({"panel": "4", "axis": axis, "mean": mean, "stderr": stderr, "draws": draws, **sizes})
    )


def map_row(pairs: list[Scaling], seed: int, sizes: dict[str, Any]) -> Array:
    """Errors of one row of the map, (len(pairs),)."""
    return np.array(list(shared_draws(pairs, rng=seed, **sizes)))


def data(
    panel: str,
    quick: bool,
    progress: Progress = None,
    *,
    store: Path | None = None,
    draws: int | None = None,
    images: str = "",
) -> dict[str, Any]:
    """Plain values of a panel, means over ``draws``; finished cells are kept in ``store``."""
    if (panel == "3") != bool(images):
        allowed = "given for mixtures/3 and for no other: a folder of IDX files, or an NPZ file"
        raise InvalidArgument("images", images, allowed)
    if panel == "4":
        return heat_map(quick, progress, store, draws)
    return sweep(panel, quick, progress, store, draws, images)


def draw(data: dict[str, Any]) -> Figure:
    """The picture of a panel's data."""
    if data["panel"] == "4":
        return draw_map(data)
    plan = SWEEP_PANELS[data["panel"]]
    errors = ("generalisation", "misclassification") if data["panel"] == "3" else (plan.error,)
    return draw_sweep(data, x=plan.x, errors=errors, others=plan.others)
