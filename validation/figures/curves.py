"""Figures of curves: errors over one quantity, theories as lines and simulations as points, with
relative differences below.

Of the papers' figures the text leaves some settings open, which are chosen here: of figures 2, 4
and 5 of [C] lam, the sizes of the batch, the widths and the second pair of student and target; of
figure 6 alpha0, eta~, lam and the hard target.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

import replica
from replica import GaussianMixture, GradientStep, SpikedRandomFeatures, plotting
from replica.files import plain
from replica.plotting import COLOURS, LABELS, colours, setting, settings
from replica.problem import describe
from solvers.results import Array

from ..draws import trajectory
from ..measure import spike
from ..run import standard_error
from . import Run
from .panels import Curve, Panel, compute, draw_panels

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
    curves: Sequence[Curve], shared: Fields, title: str = "", **panel_options: Any
) -> Panel:
    """Curves over alpha, unless said otherwise, with the best linear predictor; the title states
    the fields that they have in common."""
    at: Fields = {"x": np.linspace(0.1, 3.2, 60), "few": ALPHAS} | panel_options
    title = "\n".join(filter(None, [title, stated(shared | FIT)]))
    return Panel(curves, full=(600, 12), small=(200, 3), linear=True, title=title, **at)


def batches() -> list[Panel]:
    """Figure 2 of [C]: learning curves at several sizes of the step's batch, beside the best linear
    predictor; two pairs of student and target."""
    batch_panels = []
    for batch_sizes, step_fields in (
        ((1.0, 2.0, 5.0, 20.0), SINE | {"eta": 3.0}),
        ((0.5, 1.0, 2.0, 5.0), {"student": "tanh", "target": "tanh", "eta": 1.0}),
    ):
        batch_curves = [
            Curve(GradientStep(**step_fields, alpha0=alpha0), FIT, setting("alpha0", alpha0), hue)
            for alpha0, hue in coloured(batch_sizes)
        ]
        batch_panels.append(linear_panel(batch_curves, step_fields | {"beta": 1.0}))
    return batch_panels


def widths() -> list[Panel]:
    """Figure 5 of [C]: learning curves at several widths, the rate eta = eta~ p the same for all;
    and eta~ the same."""
    same_step = r"one learning rate $\eta$ for all widths: $\tilde\eta = 3/\beta$"
    same_rate = r"one rate per neuron, $\tilde\eta = \eta/p = 3$"
    width_panels = []
    for panel_title, width_power in ((same_step, 1), (same_rate, 0)):
        width_curves = [
            Curve(
                GradientStep(**SINE_STEP | {"eta": 3 / beta**width_power}), FIT,
                setting("beta", beta), color, beta,
            )
            for beta, color in coloured((0.5, 1.0, 2.0, 4.0))
        ]  # fmt: skip
        title_settings = SINE | {"alpha0": 20} | {"rate" if width_power else "eta": 3.0}
        width_panels.append(linear_panel(width_curves, title_settings, panel_title))
    return width_panels


def spike_lengths() -> list[Panel]:
    """Figure 4 of [C], the effect of the spike: the network, and its sRF with r = 0; and sRFs of
    one c and gamma against the length r of the spike, at the simulated d and in the limit."""
    spike_step = GradientStep(**SINE_STEP)
    srf = spike_step.srf(beta=1.0)
    spikeless_curve = Curve(
        replace(srf, r=0.0), FIT, "without its spike: sRF, $r = 0$", COLOURS[4], kinds=("theory",)
    )
    curves_over_length = [
        Curve(
            lambda r: replace(srf, r=r), FIT | {"alpha": alpha}, setting("alpha", alpha), hue,
            kinds=("theory", "limit"),
        )
        for alpha, hue in coloured((0.5, 2.0))
    ]  # fmt: skip
    title_settings = SINE | {"c": srf.c, "gamma": srf.gamma, "beta": 1.0}
    return [
        linear_panel(
            [spikeless_curve, Curve(spike_step, FIT, f"network, {setting('r', srf.r)}")],
            SINE_STEP | {"beta": 1.0},
        ),
        linear_panel(
            curves_over_length, title_settings, abscissa=LABELS["r"], at_dimension=True,
            # close where the error falls steeply from its value without a spike, with slope 0
            x=3 * np.linspace(0.0, 1.0, 121) ** 2, few=(0.3, 0.6, 1.0, 1.5, 2.0, 3.0),
        ),
    ]  # fmt: skip


VARIABLE: Fields = {"student": "tanh", "alpha0": 10, "eta": 3.0}
LAW_TARGETS = {
    "sin": r"easy: $\sigma_\ast = \mathrm{sin}$",
    "he1+he3/2": r"hard: $\sigma_\ast = \mathrm{He}_1 + \mathrm{He}_3/2$",
}
LAWS: dict[str, tuple[Any, str]] = {
    "1": (1.0, r"equal, $\tilde a = 1$"),
    # the same problem as equal, for an odd student
    "+-1": ("rademacher", r"$\tilde a = \pm 1$, on the line of 1"),
    "four": ([-1.5, -0.5, 0.5, 1.5], r"$\tilde a = \pm\frac{1}{2}, \pm\frac{3}{2}$"),
    "gaussian": ("gaussian", r"$\tilde a \sim N(0, 1)$"),
}


def readout_laws() -> list[Panel]:
    """Figure 6 of [C]: gains from variability of the first-step readout, a learning curve for each
    law, for an easy and for a hard target.

    A neuron with first-step readout a~ gets a spike of length proportional to it, so a network
    with several readout values has several functions mu_0(r kappa) to combine along the spike:
    with equal readout it has one.  Combinations of nearly dependent functions have large overlaps
    m, which cost m^2 / p: the theory is drawn at the dimension simulated, of the Gaussian law in
    the limit, too.
    """
    law_panels = []
    for law_target, title in LAW_TARGETS.items():
        law_curves = []
        for (law, (readout, law_label)), color in zip(LAWS.items(), COLOURS, strict=False):
            law_step = GradientStep(target=law_target, readout=readout, **VARIABLE)
            law_kinds = ("theory", "srf", "limit")[: 3 if law == "gaussian" else 2]
            law_curves.append(Curve(law_step, FIT, law_label, color, kinds=law_kinds))
        alpha, few = 0.1 + 3.9 * np.linspace(0, 1, 121) ** 2, (0.5, 1.25, 2.0, 3.0)
        title += ", " + stated(VARIABLE | {"beta": 1.0} | FIT)
        panel_options: Fields = {"at_dimension": True, "small": (400, 2)}
        law_panels.append(Panel(law_curves, alpha, few, (600, 8), title, **panel_options))
    return law_panels


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
    class_means = np.array([[separation, 0.0], [-separation, 0.0]])
    class_law = GaussianMixture(means=class_means, covariances=np.diag(variances))
    # without an intercept outputs of relu neurons are not centred between the classes
    return GradientStep(**STRUCTURED, target="classes:1,-1", inputs=class_law, intercept=True)


def of_data_spike(variance: float = 5.0, angle: float = 45.0) -> GradientStep:
    """The step on a data spike, at an angle to the target."""
    cos_angle, sin_angle = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    spike_target = f"tanh({cos_angle:.9f}*z1 + {sin_angle:.9f}*z2)"
    spiked_law = GaussianMixture(means=np.zeros((1, 2)), covariances=np.diag([variance, 1.0]))
    return GradientStep(**STRUCTURED, target=spike_target, inputs=spiked_law)


def inputs() -> list[Panel]:
    """Gains from structure in the inputs: networks after one step on mixtures of Gaussians.

    Left, two classes, labels +-1, over their separation s: their means are +-s on one coordinate,
    and they are isotropic, or have the variance 5 along the means or across them.  Middle, one
    component that has a variance of its own along one coordinate, the data spike, over that
    variance; the target lies at 45 degrees to it.  Right, the same over that angle, at the variance
    5.  docs/theory.md 19
    """
    class_curves = [
        Curve(partial(of_classes, variances), STRUCTURED_FIT, class_label, color)
        for (class_label, variances), color in zip(CLASSES.items(), COLOURS, strict=False)
    ]
    step_of_variance, step_at_angle = of_data_spike, partial(of_data_spike, 5.0)
    return [
        Panel(
            curves, np.linspace(x0, x1, 31), np.linspace(x0, x1, 7), (1000, 12), abscissa=x_label
        )
        for x_label, x0, x1, curves in (
            ("separation of the classes $s$ (with intercept)", 0.0, 3.0, class_curves),
            ("variance of the data spike", 1.0, 9.0, [Curve(step_of_variance, STRUCTURED_FIT)]),
            ("angle between target and spike (°)", 0.0, 90.0,
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
    title: str, curves: Sequence[Curve], full: tuple[int, int], *etas: float, **panel_options: Any
) -> Panel:
    """Curves of one fit of the readout over the rate of the step, simulated at the ``etas``."""
    rates = etas[-1] * np.linspace(0, 1, 81) ** 2  # close where the spike begins
    title += stated(curves[0].fit | {"beta": curves[0].beta})
    return Panel(curves, rates, etas, full, title, LABELS["eta"], **panel_options)


def networks() -> list[Panel]:
    """Networks beside their theory and their sRF, against the learning rate of one step.

    Left and middle, few samples in the step, so much noise in the gradient: it has a row
    covariance, which the sRF replaces by isotropic rows of that variance.  Right, little noise, but
    a linear target, which a student that saturates fits worse the more it does: there the
    fluctuation of the row norms is what counts, which the theory of equal row norms leaves out.
    docs/theory.md 15.  The theory is drawn at the dimension simulated, which matters for the
    shortest spikes alone: they need a large overlap m, which costs m^2 / p.  In the limit any spike
    is better than none.
    """
    network_panels = []
    for step_fields, readout_fit, beta, full_size, errors in (
        (SINE | {"alpha0": 0.3}, {"alpha": 2.0, "lam": 0.01}, 1.0, (1000, 10),
         ("test_error", "train_error")),
        ({"student": "erf", "target": "he1", "alpha0": 20.0}, {"alpha": 3.0, "lam": 0.03}, 2.0,
         (600, 10), ("test_error",)),
    ):  # fmt: skip
        network_step = partial(at_rate, **step_fields)
        curve = Curve(network_step, readout_fit, beta=beta, kinds=("theory", "equal", "srf"))
        etas, title = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0), stated(step_fields) + "\n"
        network_panels.append(
            rates_panel(title, [curve], full_size, *etas, at_dimension=True, errors=errors)
        )
    return network_panels


def network_students() -> list[Panel]:
    """relu students against the learning rate of one step, at three sizes of its batch.
    docs/theory.md 16"""
    student_panels = []
    for student_target, lam in (("relu", 0.05), ("sin", 0.1)):
        curves = []
        for alpha0, color in coloured((0.3, 1.0, 3.0)):
            step = partial(at_rate, alpha0=alpha0, student="relu", target=student_target)
            curves.append(Curve(step, {"alpha": 2.0, "lam": lam}, setting("alpha0", alpha0), color))
        title, etas = f"relu student, {student_target} target\n", (0.5, 1.0, 2.0, 3.0, 4.0)
        student_panels.append(rates_panel(title, curves, (600, 8), *etas))
    return student_panels


def network_steps() -> list[Panel]:
    """Networks after several steps, beside their theory and their sRF.  docs/theory.md 18"""
    steps_panels, counts = [], np.arange(1, 5)
    # student, target, noise; samples and rate of each step; alpha and lam of the readout
    for student, target, noise, samples_and_rate, fit_alpha, lam in (
        ("tanh", "sin", 0.0, (2.0, 1.0), 1.0, 0.05),
        ("tanh", "sin", 0.0, (0.5, 2.0), 2.0, 0.01),
        ("relu", "relu", 0.3, (2.0, 1.0), 2.0, 0.1),
    ):
        steps_of = partial(several, samples_and_rate, student=student, target=target, noise=noise)
        curve = Curve(steps_of, {"alpha": fit_alpha, "lam": lam}, kinds=("theory", "equal", "srf"))
        title = (
            rf"{student} student, {target} target, $\Delta = {noise:g}$" + "\n"
            rf"$\alpha_t = {samples_and_rate[0]:g}$, $\tilde\eta = {samples_and_rate[1]:g}$, "
        ) + stated(curve.fit | {"beta": 1.0})
        steps_panels.append(Panel([curve], counts, counts, (600, 12), title, "giant steps"))
    return steps_panels


CALIBRATED_PENALTIES = (0.003, 0.03, 1.0)
LOSS_ALPHAS = np.linspace(0.2, 4, 191)
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


def of_losses(problem: Any, fit: Fields, labels: dict[str, str]) -> list[Curve]:
    """A curve of each loss, by its label and the penalty, if this is fixed."""
    penalty_text = settings({"lam": fit["lam"]}) if "lam" in fit else []
    return [
        Curve(problem, fit | {"loss": curve_loss}, ", ".join([label, *penalty_text]), color,
              kinds=("theory",))
        for (curve_loss, label), color in zip(labels.items(), colours([*labels]), strict=True)
    ]  # fmt: skip


def classification() -> list[Panel]:
    """The classification error of square, logistic and hinge loss on spiked random features; labels
    are the sign of w*.x, a tenth of them flipped.

    Left: against the number of samples at a penalty where losses differ: at the best of each they
    are within half a percent.  Middle: against the penalty.  Last: the calibration of the logistic
    output given the projection on the spike.
    """
    losses, size = {loss: loss for loss in ("square", "logistic", "hinge")}, (500, 6)
    error_options: Fields = {"errors": ("classification_error",)}
    fixed = {"alpha": FIXED_ALPHA}
    return [
        Panel(of_losses(CLASSIFIED, {"lam": 0.01}, losses), LOSS_ALPHAS, ALPHAS, size,
              **error_options),
        Panel(
            of_losses(CLASSIFIED, fixed, losses), np.geomspace(1e-3, 2, 97), (0.01, 0.1, 1.0), size,
            stated(fixed), LABELS["lam"], scales={"xscale": "log"}, **error_options,
        ),
    ]  # fmt: skip


def robust_losses() -> list[Panel]:
    """Gains from a robust loss, on spiked random features; sine target, labels carry Gaussian noise
    and, one in ten, an outlier of standard deviation 3.

    Left: against the number of samples.  Right: against the fraction of outliers.
    """
    loss_texts = {"square": "square", "huber:0.3": r"Huber, $\delta = 0.3$", "absolute": "absolute"}
    outlier_fractions = 0.3 * np.linspace(0, 1, 61) ** 2  # the first outliers cost most
    log_y: Fields = {"scales": {"yscale": "log"}}
    fixed_alpha = {"alpha": FIXED_ALPHA}
    curves = of_losses(with_outliers, fixed_alpha | FIT, loss_texts)
    return [
        Panel(of_losses(CORRUPTED, FIT, loss_texts), LOSS_ALPHAS, ALPHAS, (400, 8), "10 % outliers",
              **log_y),
        Panel(curves, outlier_fractions, (0.0, 0.1, 0.2, 0.3), (400, 8), stated(fixed_alpha),
              "fraction of outliers", **log_y),
    ]  # fmt: skip


def calibrated(curve_values: Fields, run: Run) -> Fields:
    """Logistic output, and probability of the label +1, given the projection on the spike."""
    kappa_grid = np.linspace(-3, 3, 61)
    calibrations = [
        replica.calibration(
            replica.solve(CLASSIFIED, alpha=FIXED_ALPHA, lam=penalty, loss="logistic"), kappa_grid
        )
        for penalty in CALIBRATED_PENALTIES
    ]
    predicted, frequency = [stated.predicted for stated in calibrations], calibrations[0].frequency
    return dict(plain({"kappa": kappa_grid, "predicted": predicted, "frequency": frequency}))


def draw_calibration(picture: Any, data: Fields) -> None:
    """Probabilities that are stated, and the frequency."""
    axes = picture.subplots()
    calibration_curves = zip(CALIBRATED_PENALTIES, data["predicted"], COLOURS[3:], strict=False)
    for penalty, curve, hue in calibration_curves:
        axes.plot(data["kappa"], curve, color=hue, label=f"stated, {setting('lam', penalty)}")
    axes.plot(data["kappa"], data["frequency"], "k--", linewidth=1, label="frequency")
    axes.set_title(f"logistic output, {setting('alpha', FIXED_ALPHA)}")
    axes.set_xlabel(r"projection on the spike $\kappa$")
    axes.set_ylabel(r"probability of $y = 1$")
    plotting.add_legend(axes)


REPEATED_FIT = {"lam": 0.05}


def repeated(count: int) -> GradientStep:
    """Steps on 2 d samples of rate 1, ``count`` of them; a step of rate 0 stands for none."""
    return GradientStep(**SINE, steps=[(2.0, 1.0)] * count or [(1.0, 0.0)])


def steps() -> list[Panel]:
    """Several steps on fresh batches of 2 d samples, of rate 1.

    Left, the learning curves of the readout after 0, 1, 2 and 3 steps; right, length and direction
    of the spike they build and the variance of the bulk over six steps.
    """
    step_curves = []
    for count, color in coloured((0, 1, 2, 3)):
        steps_label = f"{count} step{'s' * (count != 1)}" if count else "random features"
        step_curves.append(Curve(repeated(count), REPEATED_FIT, steps_label, color, kinds=("srf",)))
    return [Panel(step_curves, np.linspace(0.1, 3, 60), ALPHAS, (1000, 8))]


def spikes(curve_values: Fields, run: Run) -> Fields:
    """Length and direction of the spike and variance of the bulk after each of six steps, in theory
    and in simulated networks."""
    spiked_steps, seeds = repeated(6), curve_values["seeds"]
    predicted = [(step.r, step.c, step.gamma[0]) for step in replica.after_each_step(spiked_steps)]
    how: Fields = {"dimension": curve_values["dimension"], "beta": 1.0}

    def measure_spikes() -> Array:
        drawn = [list(trajectory(spiked_steps, rng=seed, **how))[1:] for seed in range(seeds)]
        return np.array([[(fit.r, fit.c, *fit.gamma) for fit in map(spike, one)] for one in drawn])

    cell = {"spike of": describe(spiked_steps), **how, "seeds": seeds}
    seen = run.stored(cell, measure_spikes, (seeds, len(predicted), 3))
    spike_means = {"measured": seen.mean(axis=0), "measured_stderr": standard_error(seen)}
    return dict(plain({"predicted": predicted, **spike_means}))


def draw_spikes(picture: Any, data: Fields) -> None:
    """A panel for each quantity of the spike, over the number of steps."""
    spike_panels = picture.subplots(3, 1, sharex=True)
    predicted_spikes, measured_spikes, spike_stderr = (
        np.array(data[name]).T for name in ("predicted", "measured", "measured_stderr")
    )
    step_numbers = np.arange(1, predicted_spikes.shape[1] + 1)
    for i, (name, axis) in enumerate(zip(("r", "c", "gamma"), spike_panels, strict=True)):
        axis.plot(step_numbers, predicted_spikes[i], color=COLOURS[0])
        point_style = {"color": COLOURS[0], "markerfacecolor": "white"}
        plotting.draw_points(axis, step_numbers, measured_spikes[i], spike_stderr[i], **point_style)
        axis.set_ylabel(" ".join(LABELS[name].split()[-2:]))  # length r, variance c, cosine gamma
    spike_panels[-1].set_xlabel("giant step")
    spike_panels[-1].set_xticks(step_numbers)


class CurveFigure(NamedTuple):
    """Panels of a figure, what is simulated in them, and the settings in the title above all; of
    figures with more than errors ``beside`` are its values, from those of the panels, how they are
    drawn to the right of these, and the ratio of widths."""

    panels: Callable[[], list[Panel]]
    simulated: str = "the network"
    title: Fields | None = None
    beside: tuple[Callable[[Fields, Run], Fields], Callable[[Any, Fields], None], Any] | None = None


CURVE_FIGURES = {  # by the figure's name, without the paper
    "2": CurveFigure(batches),
    "4": CurveFigure(spike_lengths, "what is simulated"),
    "5": CurveFigure(widths),
    "6": CurveFigure(readout_laws, "the network at this $d$"),
    "inputs": CurveFigure(inputs, title=STRUCTURED | {"beta": 1.0} | STRUCTURED_FIT),
    "network": CurveFigure(networks, "the network at this $d$"),
    "network-steps": CurveFigure(network_steps),
    "network-students": CurveFigure(network_students),
    "classification": CurveFigure(
        classification, "the sRF", describe(CLASSIFIED), (calibrated, draw_calibration, (2, 1))
    ),
    "robust-losses": CurveFigure(
        robust_losses, "the sRF", describe(CORRUPTED) | {"label_noise": None}
    ),
    "steps": CurveFigure(
        steps, "the sRF", SINE | {"alpha0": 2.0, "eta": 1.0, "beta": 1.0} | REPEATED_FIT,
        (spikes, draw_spikes, (1, 1)),
    ),
}  # fmt: skip


def data(name: str, run: Run) -> Fields:
    """Errors in theory and simulation of every panel, and what is drawn beside them."""
    curve_figure = CURVE_FIGURES[name]
    values = compute(curve_figure.panels(), run) | {"figure": name}
    return values | (curve_figure.beside[0](values, run) if curve_figure.beside else {})


def draw(data: Fields) -> Figure:
    """A column for each error of each panel, a colour for each of its curves."""
    curve_figure = CURVE_FIGURES[data["figure"]]
    picture: Any = Figure(figsize=(12 if curve_figure.beside else 10, 5.4), layout="constrained")
    picture.suptitle(stated(curve_figure.title or {}), fontsize="small")
    columns, beside_axes = picture, []
    if curve_figure.beside:
        _, draw_beside, width_ratios = curve_figure.beside
        columns, beside_panels = picture.subfigures(1, 2, width_ratios=width_ratios)
        draw_beside(beside_panels, data)
        beside_axes = beside_panels.axes
    panel_axes = draw_panels(columns, data, curve_figure.panels(), simulated=curve_figure.simulated)
    plotting.letter_panels([*panel_axes, *beside_axes])
    return picture
