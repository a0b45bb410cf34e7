"""Figures of curves: errors over one quantity, theories as lines and simulations as points, with
relative differences below.

Of the papers' figures the text leaves some settings open, which are chosen here: of figures 2, 4
and 5 of [C] lam, the sizes of the batch, the widths and the second pair of student and target; of
figure 6 alpha0, eta~, lam and the hard target.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import replica
from replica import GaussianMixture, GradientStep, SpikedRandomFeatures, plotting
from replica.documents import plain
from replica.plotting import COLOURS, LABELS, colours, setting, settings
from replica.problem import describe
from solvers.results import Array

from ..draws import trajectory
from ..measure import spike
from ..run import standard_error
from . import Run
from .panels import Curve, Panel, compute, draw_panels, sized

Fields = dict[str, Any]
FIT = {"lam": 0.1}
SINE: Fields = {"student": "tanh", "target": "sin"}
SINE_STEP = SINE | {"alpha0": 20, "eta": 3.0}
ALPHAS = (0.5, 1.0, 2.0, 3.0)  # simulated


def coloured(values: Sequence[Any]) -> Iterator[tuple[Any, str]]:
    """Values, each with the colour of its curve."""
    return zip(values, colours(values), strict=True)


def stated(fields: Fields) -> str:
    """The fields of a problem and of a fit, for a title."""
    return ", ".join(settings(fields))


def linear_panel(
    quick: bool, curves: Sequence[Curve], shared: Fields, title: str = "", **panel_options: Any
) -> Panel:
    """Curves over alpha, unless said otherwise, with the best linear predictor; the title states
    the fields that they have in common."""
    at = {"x": np.linspace(0.1, 3.2, 12 if quick else 60), "few": ALPHAS[1::2] if quick else ALPHAS}
    size = sized(quick, (600, 12), (200, 3))
    title = "\n".join(filter(None, [title, stated(shared | FIT)]))
    return Panel(curves, **(at | panel_options), size=size, linear=True, title=title)


def batches(quick: bool) -> list[Panel]:
    """Figure 2 of [C]: learning curves at several sizes of the step's batch, beside the best linear
    predictor; two pairs of student and target."""
    panels = []
    for values, fields in (
        ((1.0, 2.0, 5.0, 20.0), SINE | {"eta": 3.0}),
        ((0.5, 1.0, 2.0, 5.0), {"student": "tanh", "target": "tanh", "eta": 1.0}),
    ):
        curves = [
            Curve(GradientStep(**fields, alpha0=alpha0), FIT, setting("alpha0", alpha0), color)
            for alpha0, color in coloured(values)
        ]
        panels.append(linear_panel(quick, curves, fields | {"beta": 1.0}))
    return panels


def widths(quick: bool) -> list[Panel]:
    """Figure 5 of [C]: learning curves at several widths, the rate eta = eta~ p the same for all;
    and eta~ the same."""
    same_step = r"one learning rate $\eta$ for all widths: $\tilde\eta = 3/\beta$"
    same_rate = r"one rate per neuron, $\tilde\eta = \eta/p = 3$"
    panels = []
    for title, width_power in ((same_step, 1), (same_rate, 0)):
        curves = [
            Curve(
                GradientStep(**SINE_STEP | {"eta": 3 / beta**width_power}), FIT,
                setting("beta", beta), color, beta,
            )
            for beta, color in coloured((0.5, 1.0, 2.0, 4.0))
        ]  # fmt: skip
        title_settings = SINE | {"alpha0": 20} | {"rate" if width_power else "eta": 3.0}
        panels.append(linear_panel(quick, curves, title_settings, title))
    return panels


def spike_lengths(quick: bool) -> list[Panel]:
    """Figure 4 of [C], the effect of the spike: the network, and its sRF with r = 0; and sRFs of
    one c and gamma against the length r of the spike, at the simulated d and in the limit."""
    step = GradientStep(**SINE_STEP)
    srf, lengths = step.srf(beta=1.0), (0.3, 0.6, 1.0, 1.5, 2.0, 3.0)
    curve_without_spike = Curve(
        replace(srf, r=0.0), FIT, "without its spike: sRF, $r = 0$", COLOURS[4], kinds=("theory",)
    )
    curves_over_length = [
        Curve(
            lambda r: replace(srf, r=r), FIT | {"alpha": alpha}, setting("alpha", alpha), color,
            kinds=("theory", "limit"),
        )
        for alpha, color in coloured((0.5, 2.0))
    ]  # fmt: skip
    # close where the error falls steeply from its value without a spike, with slope 0
    panel_options: Fields = {"x": 3 * np.linspace(0.0, 1.0, 13 if quick else 121) ** 2}
    panel_options |= {"few": lengths[2::3] if quick else lengths, "abscissa": LABELS["r"]}
    title_settings = SINE | {"c": srf.c, "gamma": srf.gamma, "beta": 1.0}
    return [
        linear_panel(
            quick, [curve_without_spike, Curve(step, FIT, f"network, {setting('r', srf.r)}")],
            SINE_STEP | {"beta": 1.0},
        ),
        linear_panel(quick, curves_over_length, title_settings, at_dimension=True, **panel_options),
    ]  # fmt: skip


VARIABLE: Fields = {"student": "tanh", "alpha0": 10, "eta": 3.0}
LAW_TARGETS = {
    "sin": r"easy: $\sigma_\ast = \mathrm{sin}$",
    "he1+he3/2": r"hard: $\sigma_\ast = \mathrm{He}_1 + \mathrm{He}_3/2$",
}
LAWS: dict[str, tuple[Any, str]] = {
    "1": (1.0, r"equal, $\tilde a = 1$"),
    "+-1": ("rademacher", r"$\tilde a = \pm 1$"),
    "four": ([-1.5, -0.5, 0.5, 1.5], r"$\tilde a = \pm\frac{1}{2}, \pm\frac{3}{2}$"),
    "gaussian": ("gaussian", r"$\tilde a \sim N(0, 1)$"),
}


def readout_laws(quick: bool) -> list[Panel]:
    """Figure 6 of [C]: gains from variability of the first-step readout, a learning curve for each
    law, for an easy and for a hard target.

    A neuron with first-step readout a~ gets a spike of length proportional to it, so a network
    with several readout values has several functions mu_0(r kappa) to combine along the spike:
    with equal readout it has one.  Combinations of nearly dependent functions have large overlaps
    m, which cost m^2 / p: the theory is drawn at the dimension simulated, of the Gaussian law in
    the limit, too.
    """
    panels = []
    for target, title in LAW_TARGETS.items():
        curves = []
        for (law, (readout, label)), color in zip(LAWS.items(), COLOURS, strict=False):
            step = GradientStep(target=target, readout=readout, **VARIABLE)
            kinds = ("theory", "srf", "limit")[: 3 if law == "gaussian" else 2]
            # +-1 is the same problem as equal, for an odd student
            line_style = {"linestyle": (0, (4, 4)), "zorder": 3} if law == "+-1" else {}
            curves.append(Curve(step, FIT, label, color, kinds=kinds, style=line_style))
        alpha = 0.1 + 3.9 * np.linspace(0, 1, 12 if quick else 121) ** 2
        few, size = [0.5, 2.0] if quick else [0.5, 1.25, 2.0, 3.0], sized(quick, (600, 8), (400, 2))
        title += ", " + stated(VARIABLE | {"beta": 1.0} | FIT)
        panels.append(Panel(curves, alpha, few, size, title, at_dimension=True))
    return panels


STRUCTURED: Fields = {"student": "relu", "alpha0": 1.0, "eta": 2.0}
STRUCTURED_FIT = {"alpha": 2.0, "lam": 0.1}
# Of the curves of two classes the variances along the means and across, by the label.
CLASSES = {
    "isotropic classes": (1.0, 1.0),
    "variance 5 along the means": (5.0, 1.0),
    "variance 5 across them": (1.0, 5.0),
}


def of_classes(variances: tuple[float, float], separation: float) -> GradientStep:
    """The step on two classes."""
    means = np.array([[separation, 0.0], [-separation, 0.0]])
    law = GaussianMixture(means=means, covariances=np.diag(variances))
    # without an intercept outputs of relu neurons are not centred between the classes
    return GradientStep(**STRUCTURED, target="classes:1,-1", inputs=law, intercept=True)


def of_data_spike(variance: float = 5.0, angle: float = 45.0) -> GradientStep:
    """The step on a data spike, at an angle to the target."""
    along, across = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    target = f"tanh({along:.9f}*z1 + {across:.9f}*z2)"
    law = GaussianMixture(means=np.zeros((1, 2)), covariances=np.diag([variance, 1.0]))
    return GradientStep(**STRUCTURED, target=target, inputs=law)


def inputs(quick: bool) -> list[Panel]:
    """Gains from structure in the inputs: networks after one step on mixtures of Gaussians.

    Left, two classes, labels +-1, over their separation s: their means are +-s on one coordinate,
    and they are isotropic, or have the variance 5 along the means or across them.  Middle, one
    component that has a variance of its own along one coordinate, the data spike, over that
    variance; the target lies at 45 degrees to it.  Right, the same over that angle, at the variance
    5.  docs/theory.md 19
    """
    class_curves = [
        Curve(partial(of_classes, variances), STRUCTURED_FIT, label, color)
        for (label, variances), color in zip(CLASSES.items(), COLOURS, strict=False)
    ]
    step_of_variance, step_at_angle = of_data_spike, partial(of_data_spike, 5.0)
    theory_count, simulated_count = (7, 3) if quick else (31, 7)
    return [
        Panel(
            curves, np.linspace(low, high, theory_count), np.linspace(low, high, simulated_count),
            sized(quick, (1000, 12)), abscissa=abscissa,
        )
        for abscissa, low, high, curves in (
            ("separation of the classes $s$ (with intercept)", 0.0, 3.0, class_curves),
            ("variance of the data spike", 1.0, 9.0, [Curve(step_of_variance, STRUCTURED_FIT)]),
            ("angle between target and spike (degrees)", 0.0, 90.0,
             [Curve(step_at_angle, STRUCTURED_FIT)]),
        )
    ]  # fmt: skip


def at_rate(eta: float, **fields: Any) -> GradientStep:
    """A step of a rate."""
    return GradientStep(eta=eta, **fields)


def several(pair: tuple[float, float], count: float, **fields: Any) -> GradientStep:
    """Steps of a ``pair`` of samples and rate, ``count`` of them."""
    return GradientStep(steps=[pair] * int(count), **fields)


def rates_panel(
    quick: bool,
    title: str,
    curves: Sequence[Curve],
    full_size: tuple[int, int],
    *etas: float,
    **panel_options: Any,
) -> Panel:
    """Curves of one fit of the readout over the rate of the step, simulated at the ``etas``."""
    few = np.array(etas)
    dense = few[-1] * np.linspace(0, 1, 9 if quick else 81) ** 2  # close where the spike begins
    rates, few = np.union1d(dense, few), few[1::3] if quick else few
    title += stated(curves[0].fit | {"beta": curves[0].beta})
    return Panel(curves, rates, few, sized(quick, full_size), title, LABELS["eta"], **panel_options)


def networks(quick: bool) -> list[Panel]:
    """Networks beside their theory and their sRF, against the learning rate of one step.

    Left and middle, few samples in the step, so much noise in the gradient: it has a row
    covariance, which the sRF replaces by isotropic rows of that variance.  Right, little noise, but
    a linear target, which a student that saturates fits worse the more it does: there the
    fluctuation of the row norms is what counts, which the theory of equal row norms leaves out.
    docs/theory.md 15.  The theory is drawn at the dimension simulated, which matters for the
    shortest spikes alone: they need a large overlap m, which costs m^2 / p.  In the limit any spike
    is better than none.
    """
    panels = []
    for fields, readout_fit, beta, full_size, errors in (
        (SINE | {"alpha0": 0.3}, {"alpha": 2.0, "lam": 0.01}, 1.0, (1000, 10),
         ("test_error", "train_error")),
        ({"student": "erf", "target": "he1", "alpha0": 20.0}, {"alpha": 3.0, "lam": 0.03}, 2.0,
         (600, 10), ("test_error",)),
    ):  # fmt: skip
        step = partial(at_rate, **fields)
        curve = Curve(step, readout_fit, beta=beta, kinds=("theory", "equal", "srf"))
        etas, title = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0), stated(fields) + "\n"
        panels.append(
            rates_panel(quick, title, [curve], full_size, *etas, at_dimension=True, errors=errors)
        )
    return panels


def network_students(quick: bool) -> list[Panel]:
    """relu students against the learning rate of one step, at three sizes of its batch.
    docs/theory.md 16"""
    panels = []
    for target, lam in (("relu", 0.05), ("sin", 0.1)):
        curves = []
        for alpha0, color in coloured((0.3, 1.0, 3.0)):
            step = partial(at_rate, alpha0=alpha0, student="relu", target=target)
            curves.append(Curve(step, {"alpha": 2.0, "lam": lam}, setting("alpha0", alpha0), color))
        title, etas = f"relu student, {target} target\n", (0.5, 1.0, 2.0, 3.0, 4.0)
        panels.append(rates_panel(quick, title, curves, (600, 8), *etas))
    return panels


def network_steps(quick: bool) -> list[Panel]:
    """Networks after several steps, beside their theory and their sRF.  docs/theory.md 18"""
    panels, counts = [], np.arange(1, 3 if quick else 5)
    # student, target, noise; samples and rate of each step; alpha and lam of the readout
    for student, target, noise, samples_and_rate, alpha, lam in (
        ("tanh", "sin", 0.0, (2.0, 1.0), 1.0, 0.05),
        ("tanh", "sin", 0.0, (0.5, 2.0), 2.0, 0.01),
        ("relu", "relu", 0.3, (2.0, 1.0), 2.0, 0.1),
    ):
        step = partial(several, samples_and_rate, student=student, target=target, noise=noise)
        curve = Curve(step, {"alpha": alpha, "lam": lam}, kinds=("theory", "equal", "srf"))
        title = (
            rf"{student} student, {target} target, $\Delta = {noise:g}$" + "\n"
            rf"$\alpha_t = {samples_and_rate[0]:g}$, $\tilde\eta = {samples_and_rate[1]:g}$, "
        ) + stated(curve.fit | {"beta": 1.0})
        size = sized(quick, (600, 12))
        panels.append(Panel([curve], counts, counts, size, title, "giant steps"))
    return panels


CALIBRATED_PENALTIES = (0.003, 0.03, 1.0)
FIXED_ALPHA = 2.0  # where the penalty or the fraction of outliers varies
CLASSIFIED = SpikedRandomFeatures(
    student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8, label_noise="flip:0.1"
)
CORRUPTED = SpikedRandomFeatures(
    student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97, noise=0.05,
    label_noise="outliers:0.1:9",
)  # fmt: skip


def with_outliers(fraction: float) -> SpikedRandomFeatures:
    """The model of robust losses at a fraction of outliers."""
    return replace(CORRUPTED, label_noise=f"outliers:{fraction:g}:9")


def of_losses(problem: Any, fit: Fields, labels: dict[str, str], **how: Any) -> list[Curve]:
    """A curve of each loss, by its label and the penalty, if this is fixed."""
    penalty = settings({"lam": fit["lam"]}) if "lam" in fit else []
    return [
        Curve(problem, fit | {"loss": loss}, ", ".join([label, *penalty]), color,
              kinds=("theory",), **how)
        for (loss, label), color in zip(labels.items(), colours([*labels]), strict=True)
    ]  # fmt: skip


def alphas(quick: bool) -> tuple[Array, Sequence[float]]:
    """Samples over d at which losses have theories, and simulations."""
    return np.linspace(0.2, 4, 8 if quick else 191), [0.5, 2.0] if quick else ALPHAS


def classification(quick: bool) -> list[Panel]:
    """The classification error of square, logistic and hinge loss on spiked random features; labels
    are the sign of w*.x, a tenth of them flipped.

    Left: against the number of samples at a penalty where losses differ: at the best of each they
    are within half a percent.  Middle: against the penalty.  Last: the calibration of the logistic
    output given the projection on the spike.
    """
    labels, size = {loss: loss for loss in ("square", "logistic", "hinge")}, sized(quick, (500, 6))
    dense, few = np.geomspace(1e-3, 2, 6 if quick else 97), [0.01, 1.0] if quick else [0.01, 0.1, 1]
    error_options: Fields = {"errors": ("classification_error",)}
    fixed = {"alpha": FIXED_ALPHA}
    return [
        Panel(of_losses(CLASSIFIED, {"lam": 0.01}, labels), *alphas(quick), size, **error_options),
        Panel(
            of_losses(CLASSIFIED, fixed, labels), dense, few, size, stated(fixed), LABELS["lam"],
            scales={"xscale": "log"}, **error_options,
        ),
    ]  # fmt: skip


def robust_losses(quick: bool) -> list[Panel]:
    """Gains from a robust loss, on spiked random features; sine target, labels carry Gaussian noise
    and, one in ten, an outlier of standard deviation 3.

    Left: against the number of samples.  Right: against the fraction of outliers.
    """
    labels = {"square": "square", "huber:0.3": r"Huber, $\delta = 0.3$", "absolute": "absolute"}
    dense = 0.3 * np.linspace(0, 1, 4 if quick else 61) ** 2  # the first outliers cost most
    few, size = [0.0, 0.3] if quick else [0.0, 0.1, 0.2, 0.3], sized(quick, (400, 8))
    scales: Fields = {"scales": {"yscale": "log"}}
    fixed_alpha = {"alpha": FIXED_ALPHA}
    curves = of_losses(with_outliers, fixed_alpha | FIT, labels, fresh=True)
    return [
        Panel(of_losses(CORRUPTED, FIT, labels), *alphas(quick), size, "10 % outliers", **scales),
        Panel(curves, dense, few, size, stated(fixed_alpha), "fraction of outliers", **scales),
    ]


def calibrated() -> Fields:
    """Logistic output, and probability of the label +1, given the projection on the spike."""
    kappa = np.linspace(-3, 3, 61)
    calibrations = [
        replica.calibration(
            replica.solve(CLASSIFIED, alpha=FIXED_ALPHA, lam=lam, loss="logistic"), kappa
        )
        for lam in CALIBRATED_PENALTIES
    ]
    predicted, frequency = [output.predicted for output in calibrations], calibrations[0].frequency
    return dict(plain({"kappa": kappa, "predicted": predicted, "frequency": frequency}))


def draw_calibration(picture: Any, data: Fields) -> None:
    """Probabilities that are stated, and the frequency."""
    ax = picture.subplots()
    calibration_curves = zip(CALIBRATED_PENALTIES, data["predicted"], COLOURS[3:], strict=False)
    for lam, predicted, color in calibration_curves:
        ax.plot(data["kappa"], predicted, color=color, label=f"stated, {setting('lam', lam)}")
    ax.plot(data["kappa"], data["frequency"], "k--", linewidth=1, label="frequency")
    ax.set_title(f"logistic output, {setting('alpha', FIXED_ALPHA)}")
    ax.set_xlabel(r"projection on the spike $\kappa$")
    ax.set_ylabel(r"probability of $y = 1$")
    plotting.add_legend(ax)


REPEATED_FIT = {"lam": 0.05}


def repeated(count: int) -> GradientStep:
    """Steps on 2 d samples of rate 1, ``count`` of them; a step of rate 0 stands for none."""
    return GradientStep(**SINE, steps=[(2.0, 1.0)] * count or [(1.0, 0.0)])


def steps(quick: bool) -> list[Panel]:
    """Several steps on fresh batches of 2 d samples, of rate 1.

    Left, the learning curves of the readout after 0, 1, 2 and 3 steps; right, length and direction
    of the spike they build and the variance of the bulk over six steps.
    """
    curves = []
    for count, color in coloured((0, 1, 2, 3)):
        label = f"{count} step{'s' * (count != 1)}" if count else "random features"
        curves.append(Curve(repeated(count), REPEATED_FIT, label, color, kinds=("srf",)))
    alpha, size = np.linspace(0.1, 3, 12 if quick else 60), sized(quick, (1000, 8), (100, 3))
    return [Panel(curves, alpha, ALPHAS, size)]


def spikes(dimension: int, seeds: int, run: Run) -> Fields:
    """Length and direction of the spike and variance of the bulk after each of six steps, in theory
    and in simulated networks."""
    problem = repeated(6)
    predicted = [(step.r, step.c, step.gamma[0]) for step in replica.after_each_step(problem)]

    def measure(seed: int) -> Array:
        drawn_layers = list(trajectory(problem, dimension=dimension, beta=1.0, rng=seed))[1:]
        return np.array([(fit.r, fit.c, float(fit.gamma[0])) for fit in map(spike, drawn_layers)])

    cell = {"spike of": describe(problem), "dimension": dimension}
    measured: Array = np.array([
        run.stored(cell | {"seed": seed}, partial(measure, seed), (6, 3))
        for seed in range(seeds)
    ])  # fmt: skip
    means = {"measured": measured.mean(axis=0), "measured_stderr": standard_error(measured)}
    return dict(plain({"predicted": predicted, **means}))


def draw_spikes(picture: Any, data: Fields) -> None:
    """A panel for each quantity of the spike, over the number of steps."""
    panels = picture.subplots(3, 1, sharex=True)
    predicted, measured, stderr = (
        np.array(data[name]).T for name in ("predicted", "measured", "measured_stderr")
    )
    count = np.arange(1, predicted.shape[1] + 1)
    for i, (name, ax) in enumerate(zip(("r", "c", "gamma"), panels, strict=True)):
        ax.plot(count, predicted[i], color=COLOURS[0])
        style = {"color": COLOURS[0], "markerfacecolor": "white"}
        plotting.draw_points(ax, count, measured[i], stderr[i], **style)
        ax.set_ylabel(" ".join(LABELS[name].split()[-2:]))  # length r, variance c, cosine gamma
    panels[-1].set_xlabel("giant step")
    panels[-1].set_xticks(count)


# By the figure's name, without the paper: its panels, and how they are drawn.
FIGURE_PANELS: dict[str, tuple[Callable[[bool], list[Panel]], Fields]] = {
    "2": (batches, {}),
    "4": (spike_lengths, {"simulated": "what is simulated"}),
    "5": (widths, {}),
    "6": (readout_laws, {"simulated": "the network at this $d$"}),
    "inputs": (inputs, {}),
    "network": (networks, {"simulated": "the network at this $d$", "fontsize": "small"}),
    "network-steps": (network_steps, {"fontsize": "small"}),
    "network-students": (network_students, {"fontsize": "small"}),
    "classification": (classification, {"simulated": "the sRF"}),
    "robust-losses": (robust_losses, {"simulated": "the sRF"}),
    "steps": (steps, {"simulated": "the sRF"}),
}
# Title above all panels.
TITLES = {
    "inputs": STRUCTURED | {"beta": 1.0} | STRUCTURED_FIT,
    "classification": describe(CLASSIFIED),
    "robust-losses": describe(CORRUPTED) | {"label_noise": None},
    "steps": SINE | {"alpha0": 2.0, "eta": 1.0, "beta": 1.0} | REPEATED_FIT,
}
# Of figures with more than errors: what is drawn to the right of these, and the ratio of widths.
BESIDE = {"classification": (draw_calibration, (2, 1)), "steps": (draw_spikes, (1, 1))}


def data(name: str, run: Run) -> Fields:
    """Errors in theory and simulation of every panel; the calibration of logistic outputs, and the
    spike that steps build."""
    figure_values = compute(FIGURE_PANELS[name][0](run.quick), run)
    extra_values: Fields = {"figure": name}
    if name == "classification":
        extra_values |= calibrated()
    elif name == "steps":
        extra_values |= spikes(figure_values["dimension"], figure_values["seeds"], run)
    return figure_values | extra_values


def draw(data: Fields) -> Figure:
    """A column for each error of each panel, a colour for each of its curves."""
    name = data["figure"]
    panels, panel_options = FIGURE_PANELS[name]
    picture: Any = Figure(figsize=(12 if name in BESIDE else 10, 5.4), layout="constrained")
    picture.suptitle(stated(TITLES.get(name, {})), fontsize="small")
    columns, beside_panels = picture, None
    if name in BESIDE:
        draw_beside, ratios = BESIDE[name]
        columns, beside_panels = picture.subfigures(1, 2, width_ratios=ratios)
        draw_beside(beside_panels, data)
    upper_axes = draw_panels(columns, data, panels(True), **panel_options)
    plotting.letter_panels([*upper_axes, *(beside_panels.axes if beside_panels else ())])
    return picture
