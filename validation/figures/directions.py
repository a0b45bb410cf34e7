"""Directions that the neurons of a network learn: figures of [D].

The stairway: which directions the neurons of a network learn, giant step after giant step.

The setting of [D]: relu student, readout +-1, n = d fresh samples a step, rate eta~ = 2.  A point
is the cosine of one neuron with the two directions of the target, of its row or of the gradient it
has just followed.  After the first step all lie along C_1, where the theory says.  The rest of the
plane is but weakly connected to it in (4 z1 + z1^2 + z2)/2, and the neurons stay near it;
in (z1 + z1^2 + z2 - z2^2)/2 they leave the line at the second step.  The last row has readout 1
for all neurons, for which the theory follows every step (n = 4 d, eta~ = 1).

One giant step on n = d^x samples: errors and directions learned against the sample exponent x.

The published single-step experiment of [D]: relu student of p = 2 d neurons, two teachers
He_1 + He_2/2 + He_4/24, rate 10 sqrt(n p), the readout fitted on the same samples with lam = 1.
With the mean and the linear part of the labels removed first, the step finds both teachers as n
approaches d^2; left in, they keep it on the one direction of C_1.
"""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from replica import GradientStep, after_each_step
from replica.files import plain
from replica.plotting import COLOURS, add_legend, letter_panels, setting
from replica.problem import describe
from solvers.results import Array

from ..comparisons import first_step
from ..draws import spread
from ..measure import alignment, initial_layer, single_step
from . import Run, Values
from .panels import legend_below

STUCK, ESCAPES = "(4*z1 + z1**2 + z2)/2", "(z1 + z1**2 + z2 - z2**2)/2"
BOTH_SIGNS = "\n$\\tilde a = \\pm 1$; theory: step 1"
TARGET_ROWS: list[tuple[str, Any, tuple[float, float], str]] = [
    (STUCK, "rademacher", (1, 2), r"$\frac{1}{2}(4z_1 + z_1^2 + z_2)$" + BOTH_SIGNS),
    (ESCAPES, "rademacher", (1, 2), r"$\frac{1}{2}(z_1 + z_1^2 + z_2 - z_2^2)$" + BOTH_SIGNS),
    (ESCAPES, 1.0, (4, 1), "the same,\n$\\tilde a = 1$; theory: all"),
]
STEP_COUNT = 6
DRAWN: dict[str, tuple[dict[str, Any], str]] = {  # dots of neurons, and the mark of the theory
    "rows": ({"marker": "o"}, "k+"),
    "gradients": ({"marker": "v", "alpha": 0.3}, "kx"),
}


def staircase_values(run: Run) -> Values:
    """Cosines of some neurons and of their gradients after every step, beside the theory."""
    d, width = (256, 128) if run.quick else (4096, 1024)
    staircase_panels = []
    for target, readout, samples_and_rate, _ in run.tracked(TARGET_ROWS):
        steps = [samples_and_rate] * STEP_COUNT
        staircase_step = GradientStep(student="relu", target=target, readout=readout, steps=steps)
        network_size: dict[str, Any] = {"dimension": d, "beta": width / d}
        cell = {"cosines of": describe(staircase_step), **network_size}
        compute = partial(_neuron_cosines, staircase_step, network_size)
        cosines = run.stored(cell, compute, (len(DRAWN), STEP_COUNT, width, 2))
        signs = spread(staircase_step.readout, width)
        by_sign = [np.flatnonzero(signs == sign)[:20] for sign in (-1.0, 1.0)]  # of either sign
        shown_neurons = np.concatenate(by_sign)
        predicted_cosines = first_step(staircase_step)
        predicted: list[Any] = [[predicted_cosines.weights], [predicted_cosines.gradients]]
        if readout == 1.0:
            theory = after_each_step(staircase_step)
            predicted = [[[one.weight_cosines] for one in theory],
                         [[one.gradient_cosines] for one in theory]]  # fmt: skip
        staircase_panels.append(
            {
                "readout": signs[shown_neurons],
                "cosines": dict(zip(DRAWN, cosines[:, :, shown_neurons], strict=True)),
                "predicted": dict(zip(DRAWN, predicted, strict=True)),
                "direction": predicted_cosines.direction,
            }
        )
    return dict(plain({"dimension": d, "width": width, "panels": staircase_panels}))


def _neuron_cosines(step: GradientStep, size: dict[str, Any]) -> Array:
    """Cosines of the neurons, and of their gradients, with the directions, after each of T steps:
    (2, T, p, 2)."""
    step_alignment = alignment(step, rng=0, **size)
    return np.stack([step_alignment.weights[1:], step_alignment.gradients])


def draw_staircase(data: dict[str, Any]) -> Figure:
    """A row for each problem, a panel for each step."""
    staircase_figure = Figure(figsize=(11, 6.2), layout="constrained")
    axes_grid = staircase_figure.subplots(len(TARGET_ROWS), STEP_COUNT, sharex=True, sharey=True)
    unit_circle = np.exp(1j * np.linspace(0, 2 * np.pi, 200))
    for axes_row, panel, (*_, label) in zip(axes_grid, data["panels"], TARGET_ROWS, strict=True):
        readout_signs, (x, y) = np.array(panel["readout"]), panel["direction"]
        for step, ax in enumerate(axes_row):
            ax.plot(unit_circle.real, unit_circle.imag, color="0.8", linewidth=0.8)
            ax.plot([-x, x], [-y, y], color="0.6", linewidth=0.8)
            for kind, (dots, theory_mark) in DRAWN.items():
                neuron_cosines = np.array(panel["cosines"][kind][step])
                for sign, colour in ((1, COLOURS[0]), (-1, COLOURS[1])):
                    of_sign = neuron_cosines[readout_signs == sign].T
                    ax.plot(*of_sign, linestyle="", color=colour, markersize=3, **dots)
                for theory in panel["predicted"][kind][step : step + 1]:
                    ax.plot(*np.transpose(theory), theory_mark, markersize=8, zorder=3)
            ax.set(aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        axes_row[0].set_ylabel(f"{label}\ncosine with $w_2$")
    for step, (top_axes, *_, bottom_axes) in enumerate(axes_grid.T, start=1):
        top_axes.set_title(f"step {step}", fontsize="medium")
        bottom_axes.set_xlabel("cosine with $w_1$")
    letter_panels(axes_grid[:, 0])
    size_text = rf"relu student, $d = {data['dimension']}$, $p = {data['width']}$"
    rate_texts = [rf"$n = {n:g}\,d$, $\tilde\eta = {eta:g}$" for _, _, (n, eta), _ in TARGET_ROWS]
    suptitle_parts = "; ".join([size_text, f"(a), (b) {rate_texts[0]}", f"(c) {rate_texts[2]}"])
    staircase_figure.suptitle(suptitle_parts.replace("1\\,d", "d"), fontsize="small")
    ax = axes_grid[0][0]
    for readout, colour in ((1, COLOURS[0]), (-1, COLOURS[1])):
        ax.plot([], [], color=colour, linewidth=6, label=rf"$\tilde a = {readout}$")
    for kind, (dots, theory_mark) in DRAWN.items():
        ax.plot([], [], linestyle="", markersize=4, color="0.3", **dots, label=kind)
        ax.plot([], [], theory_mark, markersize=8, label=f"theory, {kind}")
    ax.plot([], [], color="0.6", linewidth=0.8, label="$C_1 = E[y\\,x]$, the linear part")
    legend_below(staircase_figure, ax.get_legend_handles_labels()[0])
    return staircase_figure


# samples: test error and standard deviation over 10 draws, of the published notebook (d = 512)
PUBLISHED = {3326: (0.3360, 0.0063), 29532: (0.2068, 0.0059), 262144: (0.0774, 0.0021)}
TREATMENTS = {True: "mean and linear part removed", False: "labels as they are"}


def exponents_values(run: Run) -> Values:
    """Test errors and alignments of several draws at every n, with and without the removal."""
    d, test_samples = (64, 5000) if run.quick else (512, 100_000)
    exponent_curves = []
    for preprocess, exponent in run.tracked(list(product(TREATMENTS, (1.0, 1.3, 1.65, 2.0)))):
        draw_count = 4 if exponent < 2 else 2  # the last takes ten times as long
        how: dict[str, Any] = {"samples": int(d**exponent), "preprocess": preprocess}
        tests = {"test_samples": test_samples}
        step_errors = []
        for seed in range(draw_count):
            cell = {"single step": {"dimension": d} | how, **tests, "seed": seed}
            step_errors.append(run.stored(cell, partial(_one_step, d, seed, **tests, **how), (4,)))
        published_error, honest_error, cosine_across, cosine_along = np.transpose(step_errors)
        exponent_curves.append(
            {
                "exponent": exponent,
                **how,
                "draws": draw_count,
                "error": published_error.mean(),
                "deviation": published_error.std(),
                "honest_error": honest_error.mean(),
                "beyond": np.sqrt(cosine_across.mean()),
                "along": np.sqrt(cosine_along.mean()),
            }
        )
    return dict(plain({"dimension": d, "width": 2 * d, "curves": exponent_curves}))


def _one_step(d: int, seed: int, **how: Any) -> Array:
    """Test errors of one step, of A and B as estimated on test and on training samples, and mean
    squares of the neurons' cosines with (w1 - w2) / sqrt(2), which C_1 does not give, and with
    (w1 + w2) / sqrt(2)."""
    two_teachers = "(he1(z1) + he2(z1)/2 + he4(z1)/24 + he1(z2) + he2(z2)/2 + he4(z2)/24)/2"
    layer = initial_layer(student="relu", target=two_teachers, dimension=d, width=2 * d, rng=0)
    step_result = single_step(*layer, rng=seed, **how)
    beyond, along = (np.mean((step_result.cosines @ signs) ** 2) / 2 for signs in ([1, -1], [1, 1]))
    return np.array([step_result.published_test_error, step_result.test_error, beyond, along])


def draw_exponents(data: dict[str, Any]) -> Figure:
    """Test error on the left, cosines of the neurons on the right."""
    picture = Figure(figsize=(9.5, 3.8), layout="constrained")
    error_axis, cosine_axis = picture.subplots(1, 2)
    for (preprocess, label), treatment_hue in zip(TREATMENTS.items(), COLOURS, strict=False):
        points = [point for point in data["curves"] if point["preprocess"] is preprocess]
        names = ("exponent", "error", "deviation", "along", "beyond")
        x, errors, error_bars, along, across = ([point[name] for point in points] for name in names)
        style: dict[str, Any] = {"color": treatment_hue, "markersize": 4, "capsize": 2}
        error_axis.errorbar(x, errors, error_bars, fmt="o-", label=f"{label} (±1 s.d.)", **style)
        cosine_axis.plot(x, along, "o--", color=treatment_hue, markersize=4)
        cosine_axis.plot(x, across, "s-", color=treatment_hue, markersize=4)
    if data["dimension"] == 512:
        published_x = [np.log(n) / np.log(512) for n in PUBLISHED]
        published_means, deviations = zip(*PUBLISHED.values(), strict=True)
        error_axis.errorbar(
            published_x, published_means, deviations, fmt="D", color="0.3", markerfacecolor="none",
            capsize=4, label="published (±1 s.d., 10 draws)",
        )  # fmt: skip
    error_axis.set_ylim(bottom=0)
    error_axis.set_ylabel("test error")
    legend_handles, _ = error_axis.get_legend_handles_labels()
    legend_below(picture, legend_handles)
    for mark, sign, label_end in (("o--", "+", ", along $C_1$"), ("s-", "-", ", across it")):
        label = rf"with $(w_1 {sign} w_2)/\sqrt{{2}}${label_end}"
        cosine_axis.plot([], [], mark, color="0.3", markersize=4, label=label)
    cosine_axis.set_ylim(0, 1)
    cosine_axis.set_ylabel("root mean square cosine of neurons")
    add_legend(cosine_axis)
    title_pieces = ["relu student", setting("lam", 1.0), rf"$d = {data['dimension']}$, $p = 2d$"]
    error_axis.set_title(", ".join([*title_pieces, r"$\eta = 10\sqrt{np}$"]))
    letter_panels([error_axis, cosine_axis])
    for exponent_axis in (error_axis, cosine_axis):
        exponent_axis.set_xlabel(r"sample exponent $\log n/\log d$")
    return picture
