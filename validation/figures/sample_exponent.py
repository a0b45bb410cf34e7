"""One giant step on n = d^x samples: what it learns against the sample exponent x.

The published single-step experiment of [D]: relu student of p = 2 d neurons, two teachers
He_1 + He_2/2 + He_4/24, rate 10 sqrt(n p), the readout fitted on the same samples with lam = 1.
With the mean and the linear part of the labels removed first, the step finds both teachers as n
approaches d^2; left in, they keep it on the one direction of C_1.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica.documents import plain
from replica.plotting import COLOURS, add_legend, letter_panels

from ..measure import initial_layer, single_step

TWO_TEACHERS = "(he1(z1) + he2(z1)/2 + he4(z1)/24 + he1(z2) + he2(z2)/2 + he4(z2)/24)/2"
# samples: test error and standard deviation over 10 draws, of the published notebook (d = 512)
PUBLISHED = {3326: (0.3360, 0.0063), 29532: (0.2068, 0.0059), 262144: (0.0774, 0.0021)}
TREATMENTS = {True: "mean and linear part removed", False: "labels as they are"}


def data(quick: bool, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Test errors and alignments of several draws at every n, with and without the removal."""
    d = 64 if quick else 512
    exponents = [1.0, 1.3, 1.65, 2.0]
    layer, readout = initial_layer(
        student="relu", target=TWO_TEACHERS, dimension=d, width=2 * d, rng=0
    )
    curves = []
    for preprocess in TREATMENTS:
        for x in exponents:
            draws = 4 if x < 2 else 2  # the last takes ten times as long
            draws_of_x = [
                single_step(
                    layer,
                    readout,
                    samples=int(d**x),
                    test_samples=5000 if quick else 100_000,
                    preprocess=preprocess,
                    rng=seed,
                )
                for seed in range(draws)
            ]
            errors = [one.published_test_error for one in draws_of_x]
            honest = [one.test_error for one in draws_of_x]
            # alignment with the plane beyond what C_1 alone gives: with (w1 - w2) / sqrt(2)
            beyond = [(one.cosines @ [1, -1]) / np.sqrt(2) for one in draws_of_x]
            along = [(one.cosines @ [1, 1]) / np.sqrt(2) for one in draws_of_x]
            curves.append(
                {
                    "preprocess": preprocess,
                    "exponent": x,
                    "samples": int(d**x),
                    "draws": draws,
                    "error": np.mean(errors),
                    "deviation": np.std(errors),
                    "honest_error": np.mean(honest),
                    "beyond": np.sqrt(np.mean(np.square(beyond))),
                    "along": np.sqrt(np.mean(np.square(along))),
                }
            )
            if progress is not None:
                progress(len(curves), len(TREATMENTS) * len(exponents))
    return dict(plain({"dimension": d, "width": 2 * d, "curves": curves}))


def draw(data: dict[str, Any]) -> Figure:
    """Test error on the left, cosines of the neurons on the right."""
    picture = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = picture.subplots(1, 2)
    for (preprocess, label), colour in zip(TREATMENTS.items(), COLOURS, strict=False):
        own = [point for point in data["curves"] if point["preprocess"] is preprocess]
        x = [point["exponent"] for point in own]
        bars = [point["deviation"] for point in own]
        style: dict[str, Any] = {"color": colour, "markersize": 4, "capsize": 2, "label": label}
        left.errorbar(x, [point["error"] for point in own], bars, fmt="o-", **style)
        right.plot(x, [point["along"] for point in own], "o--", color=colour, markersize=4)
        right.plot(x, [point["beyond"] for point in own], "s-", color=colour, markersize=4)
    if data["dimension"] == 512:
        x = [np.log(n) / np.log(512) for n in PUBLISHED]
        means, deviations = zip(*PUBLISHED.values(), strict=True)
        left.errorbar(
            x, means, deviations, fmt="D", color="0.3", markerfacecolor="none", capsize=4,
            label="published (±1 s.d., 10 draws)",
        )  # fmt: skip
    left.set_ylim(bottom=0)
    left.set_ylabel("test error")
    add_legend(left)
    right.plot(
        [], [], "o--", color="0.3", markersize=4, label=r"with $(w_1 + w_2)/\sqrt{2}$, $C_1$"
    )
    right.plot([], [], "s-", color="0.3", markersize=4, label=r"with $(w_1 - w_2)/\sqrt{2}$")
    right.set_ylim(0, 1)
    right.set_ylabel("root mean square cosine of neurons")
    add_legend(right)
    letter_panels([left, right])
    for ax in (left, right):
        ax.set_xlabel(r"sample exponent $\log n/\log d$")
    return picture
