"""Giant step on n = d^x samples: errors and directions learned against the sample exponent x.

The published single-step experiment of [D]: relu student of p = 2 d neurons, two teachers
He_1 + He_2/2 + He_4/24, rate 10 sqrt(n p), the readout fitted on the same samples with lam = 1.
With the mean and the linear part of the labels removed first, the step finds both teachers as n
approaches d^2; left in, they keep it on the one direction of C_1.
"""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica.documents import plain
from replica.plotting import COLOURS, add_legend, letter_panels, setting
from solvers.results import Array

from ..measure import initial_layer, single_step
from .computing import Progress, stored, tracked
from .drawing import legend_below

TWO_TEACHERS = "(he1(z1) + he2(z1)/2 + he4(z1)/24 + he1(z2) + he2(z2)/2 + he4(z2)/24)/2"
# samples: test error and standard deviation over 10 draws, of the published notebook (d = 512)
PUBLISHED = {3326: (0.3360, 0.0063), 29532: (0.2068, 0.0059), 262144: (0.0774, 0.0021)}
EXPONENTS = (1.0, 1.3, 1.65, 2.0)
TREATMENTS = {True: "mean and linear part removed", False: "labels as they are"}


def data(quick: bool, progress: Progress = None, *, store: Path | None = None) -> dict[str, Any]:
    """Test errors and alignments of several draws at every n, with and without the removal."""
    d, test_samples = (64, 5000) if quick else (512, 100_000)
    curves = []
    for preprocess, x in tracked(list(product(TREATMENTS, EXPONENTS)), progress):
        draws = 4 if x < 2 else 2  # the last takes ten times as long
        how: dict[str, Any] = {"samples": int(d**x), "preprocess": preprocess}
        size = {"test_samples": test_samples}
        each = []
        for seed in range(draws):
            cell = {"single step": {"dimension": d} | how, **size, "seed": seed}
            each.append(stored(store, cell, partial(_one_draw, d, seed, **size, **how), (4,)))
        error, honest, beyond, along = np.transpose(each)
        curves.append(
            {
                "exponent": x,
                **how,
                "draws": draws,
                "error": error.mean(),
                "deviation": error.std(),
                "honest_error": honest.mean(),
                "beyond": np.sqrt(beyond.mean()),
                "along": np.sqrt(along.mean()),
            }
        )
    return dict(plain({"dimension": d, "width": 2 * d, "curves": curves}))


def _one_draw(d: int, seed: int, **how: Any) -> Array:
    """Test errors of one step, of A and B as estimated on test and on training samples, and mean
    squares of the neurons' cosines with (w1 - w2) / sqrt(2), which C_1 does not give, and with
    (w1 + w2) / sqrt(2)."""
    of: dict[str, Any] = {"student": "relu", "target": TWO_TEACHERS}
    one = single_step(*initial_layer(**of, dimension=d, width=2 * d, rng=0), rng=seed, **how)
    beyond, along = (np.mean((one.cosines @ signs) ** 2) / 2 for signs in ([1, -1], [1, 1]))
    return np.array([one.published_test_error, one.test_error, beyond, along])


def draw(data: dict[str, Any]) -> Figure:
    """Test error on the left, cosines of the neurons on the right."""
    picture = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = picture.subplots(1, 2)
    for (preprocess, label), colour in zip(TREATMENTS.items(), COLOURS, strict=False):
        points = [point for point in data["curves"] if point["preprocess"] is preprocess]
        names = ("exponent", "error", "deviation", "along", "beyond")
        x, errors, bars, along, beyond = ([point[name] for point in points] for name in names)
        style: dict[str, Any] = {"color": colour, "markersize": 4, "capsize": 2}
        left.errorbar(x, errors, bars, fmt="o-", label=f"{label} (±1 s.d.)", **style)
        right.plot(x, along, "o--", color=colour, markersize=4)
        right.plot(x, beyond, "s-", color=colour, markersize=4)
    if data["dimension"] == 512:
        x = [np.log(n) / np.log(512) for n in PUBLISHED]
        means, deviations = zip(*PUBLISHED.values(), strict=True)
        left.errorbar(
            x, means, deviations, fmt="D", color="0.3", markerfacecolor="none", capsize=4,
            label="published (±1 s.d., 10 draws)",
        )  # fmt: skip
    left.set_ylim(bottom=0)
    left.set_ylabel("test error")
    handles, _ = left.get_legend_handles_labels()
    legend_below(picture, handles)
    for marks, sign, what in (("o--", "+", ", along $C_1$"), ("s-", "-", ", across it")):
        label = rf"with $(w_1 {sign} w_2)/\sqrt{{2}}${what}"
        right.plot([], [], marks, color="0.3", markersize=4, label=label)
    right.set_ylim(0, 1)
    right.set_ylabel("root mean square cosine of neurons")
    add_legend(right)
    pieces = ["relu student", setting("lam", 1.0), rf"$d = {data['dimension']}$, $p = 2d$"]
    left.set_title(", ".join([*pieces, r"$\eta = 10\sqrt{np}$"]))
    letter_panels([left, right])
    for ax in (left, right):
        ax.set_xlabel(r"sample exponent $\log n/\log d$")
    return picture
