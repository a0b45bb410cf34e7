"""Figures 1, 3, 7 and 8 of [C]: learned functions, bounds at each learning rate, and spectra.

tanh network of width p = d, sin target, one step on 20 d samples.

1: the mean output given the projection on the target before the step, and on the spike after it,
   with the standard deviation over the other directions: C and its variance of (4.7).
3: bounds on the test error (8.1)-(8.2) against the rate, in the limit; and the error between
   them at the sRF's best penalty, for two sizes of the readout's data, at the simulated d.
7: the functions of that projection which attain the bounds, beside what networks learn at a large
   penalty; and those of the upper bound as the rate varies.
8: eigenvalues of the features' covariance, theory over simulated histograms.  More neurons than
   samples and fewer, one group of neurons and three; and a network whose first batch was small,
   with its own theory and that of its sRF.  The largest eigenvalue lies far from the bulk, near
   p E mu_0^2 where there is one group (9.2).

Settings that are open in the text: alpha and lam of 1, both alpha of 3, the rates of 7.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import replica
from replica import GradientStep, SpikedRandomFeatures, plotting, solve
from replica.files import plain
from replica.problem import Problem, describe
from solvers.results import Array

from ..measure import eigenvalues, measured_function
from ..run import standard_error
from . import Run, Values
from .panels import (
    draw_theories,
    legend_below,
    model_of,
    panels_with_differences,
    theory_legend,
)

SETTING: dict[str, Any] = {"student": "tanh", "target": "sin", "alpha0": 20}
STEP = GradientStep(eta=3.0, **SETTING)  # of the functions and of what is learned
# Random features and their projection on the target; the network and that on its spike.
LEARNED: dict[str, Problem] = {
    "before the step": SpikedRandomFeatures(student="tanh", target="sin", r=0.0, c=1.0, gamma=1.0),
    "after one step": STEP,
}
READOUT: dict[str, Any] = {"alpha": 1.0, "lam": 0.1}
LARGE_PENALTY: dict[str, Any] = {"alpha": 4.0, "lam": 10.0}  # where the upper bound is near
ACHIEVED_ALPHAS = (1.0, 10.0)  # where the best error is shown
FAMILY_ETAS = (0.3, 1.0, 3.0, 10.0, 30.0)
PLACES = np.linspace(-2.5, 2.5, 11)
DOTS = {"color": plotting.COLOURS[1], "markerfacecolor": "white"}  # on a line of another colour


def learned_values(
    run: Run,
    problems: Sequence[Problem] = tuple(LEARNED.values()),
    fit: dict[str, Any] = READOUT,
) -> Values:
    """Mean outputs of simulated networks at PLACES and their standard deviations over inputs, with
    the theory's."""
    network_size, learners = run.size((500, 6), (150, 3)), []
    for problem in run.tracked(problems):
        draw_options: dict[str, Any] = {**fit, **network_size}
        cell = {"learned": describe(problem), **draw_options, "kappa": PLACES}
        found = run.stored(cell, partial(measured_outputs, problem, draw_options), (3, PLACES.size))
        learned = replica.learned_function(model_of("srf", problem), **fit)
        theory = {"theory": learned.mean(PLACES), "theory_spread": learned.variance(PLACES) ** 0.5}
        learners.append(dict(zip(("mean", "stderr", "spread"), found, strict=True)) | theory | fit)
    return dict(plain({**network_size, "kappa": PLACES, "learners": learners}))


functions_values = partial(learned_values, problems=[STEP], fit=LARGE_PENALTY)


def measured_outputs(problem: Problem, options: dict[str, Any]) -> Array:
    """Mean output of simulated networks at PLACES, its standard error, and the standard deviation
    over inputs: (3, 11)."""
    beta = 1.0 if problem.schedule else None
    outputs = measured_function(problem, kappa=PLACES, rng=0, beta=beta, **options)
    output_spread = np.sqrt(outputs.variance.mean(axis=0))
    return np.array([outputs.mean.mean(axis=0), standard_error(outputs.mean), output_spread])


def bounds_values(run: Run) -> Values:
    """Bounds and best errors over the rate, and simulated networks at a few."""
    size = run.size((500, 6), (150, 3))
    simulated_rates = np.array([1.0, 10.0] if run.quick else [0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
    rates = np.union1d(np.geomspace(0.3, 30, 7 if run.quick else 61), simulated_rates)
    bounds: list[dict[str, float]] = []
    curve_kinds = ("theory", "srf", "limit", "simulated")
    achieved_curves: list[dict[str, Any]] = [
        {"alpha": alpha} | {name: [] for name in curve_kinds} for alpha in ACHIEVED_ALPHAS
    ]
    for rate in run.tracked(rates.tolist()):
        step = GradientStep(eta=rate, **SETTING)
        found = replica.bounds(step)
        bounds.append({"eta": rate, "lower": found.lower, "upper": found.upper})
        srf, network_model, in_limit = (
            model_of(kind, step, dimension=size["dimension"]) for kind in ("srf", "theory", "limit")
        )
        for achieved in achieved_curves:
            best_srf, best_limit = (
                replica.optimal_lambda(model, alpha=achieved["alpha"]) for model in (srf, in_limit)
            )
            achieved["srf"].append(best_srf.test_error)
            achieved["limit"].append(best_limit.test_error)
            best_fit: dict[str, Any] = {"alpha": achieved["alpha"], "lam": best_srf.lam}
            achieved["theory"].append(solve(network_model, **best_fit).test_error)
            if rate in simulated_rates:
                achieved["simulated"] += list(run.simulated(step, beta=1.0, **best_fit | size)[0])
    shared = {"x": rates, "simulated_at": simulated_rates, "bounds": bounds, "linear": found.linear}
    return dict(plain({**size, **shared, "curves": achieved_curves}))


def draw_learned(data: dict[str, Any]) -> Figure:
    """A panel before the step and one after it."""
    learned_figure = Figure(figsize=(10, 4), layout="constrained")
    panels = learned_figure.subplots(1, len(LEARNED), sharey=True)
    networks_label = f"{data['seeds']} networks, $d = {data['dimension']}$, ± one s.d."
    for ax, (name, problem), values in zip(panels, LEARNED.items(), data["learners"], strict=True):
        plotting.plot_learned(replica.learned_function(model_of("srf", problem), **READOUT), ax)
        # bars of one standard deviation, which is what the band is
        bars = np.array(values["spread"]) / plotting.BARS
        plotting.draw_points(ax, data["kappa"], values["mean"], bars, label=networks_label, **DOTS)
        plotting.add_legend(ax)
        settings_ = {"student": "tanh", "target": "sin"}
        settings_ |= SETTING | {"eta": STEP.eta} if problem is STEP else {}
        ax.set_title(", ".join([name, *plotting.settings(settings_ | READOUT | {"beta": 1.0})]))
    panels[0].set_xlabel(r"projection on the target $\kappa = w_\ast\cdot x$")
    panels[1].set_ylabel("")
    plotting.letter_panels(panels)
    return learned_figure


def draw_bounds(data: dict[str, Any]) -> Figure:
    """Draw bounds and the errors between them; below, relative differences of the errors."""
    bounds_figure = Figure(figsize=(7, 5.6), layout="constrained")
    bound_axes = panels_with_differences(bounds_figure, 1)
    (bounds_axis,), (difference_axis,) = bound_axes
    plotting.plot_bounds(data["bounds"], data["linear"], ax=bounds_axis)
    for line in bounds_axis.get_lines()[:2]:  # U and L; curves are at d, and may lie above U there
        line.set_label(rf"{line.get_label()} ($d\to\infty$)")
    alpha_hues = plotting.colours(ACHIEVED_ALPHAS)
    for curve, color, nudge in zip(data["curves"], alpha_hues, (-0.5, 0.5), strict=True):
        label = rf"best $\lambda$, {plotting.setting('alpha', curve['alpha'])}"
        draw_theories(bound_axes[:, 0], data, curve, color=color, label=label, marker_nudge=nudge)
    size = {name: data[name] for name in ("dimension", "seeds")}
    theory_legend(bound_axes, ("theory", "srf", "limit"), "the network at this $d$", size)
    bounds_axis.set(xlabel="", ylabel=plotting.ERROR_LABELS["test_error"])
    difference_axis.set_xlabel(plotting.LABELS["eta"])
    bounds_axis.set_title(", ".join(plotting.settings(SETTING | {"beta": 1.0})), fontsize="medium")
    return bounds_figure


def draw_functions(data: dict[str, Any]) -> Figure:
    """The functions that attain the bounds, and those within reach as the rate varies."""
    functions_figure = Figure(figsize=(10, 4), layout="constrained")
    left_axes, right_axes = functions_figure.subplots(1, 2, sharey=True)
    plotting.plot_functions(replica.bounds(STEP), left_axes, reach=2.6)
    (learner,) = data["learners"]
    fit_text = ", ".join(plotting.settings(LARGE_PENALTY | {"dimension": data["dimension"]}))
    networks_label = f"{data['seeds']} networks (±{plotting.BARS} s.e.),\n{fit_text}"
    network_means = (data["kappa"], learner["mean"], learner["stderr"])
    plotting.draw_points(left_axes, *network_means, label=networks_label, **DOTS)
    shown_settings = SETTING | {"eta": 3.0, "beta": 1.0}
    left_axes.set_title(", ".join(plotting.settings(shown_settings)))
    bounds_family: Sequence[Any] = replica.bounds(STEP, eta=FAMILY_ETAS).each
    plotting.plot_family(bounds_family, np.array(FAMILY_ETAS), right_axes, reach=2.6)
    right_axes.set_title(r"upper bound, $\lambda\to\infty$, as $\tilde\eta$ varies")
    right_axes.set_ylabel("")
    plotting.add_legend(left_axes)  # makes room above what both panels show, if it needs any
    plotting.letter_panels([left_axes, right_axes])
    return functions_figure


# model drawn, beta, alpha, title
SPECTRA: tuple[tuple[GradientStep, float, float, str], ...] = (
    (STEP, 2.0, 3.0, r"sRF, $n > p > d$"),
    (
        GradientStep(
            student="tanh", target="sin", alpha0=20, eta=2.0, readout=[-1, 0.5, 1.5]
        ), 1.5, 0.7, r"sRF, $\tilde a\in\{-1, \frac{1}{2}, \frac{3}{2}\}$, $n < p$",
    ),
    (GradientStep(student="tanh", target="tanh", alpha0=0.3, eta=6.0), 1.0, 2.0, "network"),
)  # fmt: skip


def spectra_values(run: Run) -> Values:
    """Simulated eigenvalues of every panel."""
    spectrum_size, eigenvalue_sets = run.size((600, 4)), []
    for step, beta, alpha, title in run.tracked(SPECTRA):
        drawn_problem, width = (step, beta) if title == "network" else (step.srf(beta=beta), None)
        spectrum_draw: dict[str, Any] = {"alpha": alpha, **spectrum_size}
        eigenvalue_cell = {"eigenvalues of": describe(drawn_problem), "beta": beta, **spectrum_draw}
        compute_spectrum = partial(eigenvalues, drawn_problem, beta=width, rng=0, **spectrum_draw)
        spectrum_shape = spectrum_size["seeds"], round(beta * spectrum_size["dimension"])
        eigenvalue_sets.append(run.stored(eigenvalue_cell, compute_spectrum, spectrum_shape))
    return dict(plain({"eigenvalues": eigenvalue_sets, **spectrum_size}))


def draw_spectra(data: dict[str, Any]) -> Figure:
    """A panel for each spectrum."""
    spectra = Figure(figsize=(12, 4.4), layout="constrained")
    spectrum_axes = spectra.subplots(1, len(SPECTRA))
    for axis, (step, beta, alpha, title), drawn_eigenvalues in zip(
        spectrum_axes, SPECTRA, data["eigenvalues"], strict=True
    ):
        spectrum_models = step.srf(beta=beta), step.network(beta=beta)
        theories = [replica.spectrum(model, alpha, time_limit=600.0)
                for model in spectrum_models[: 1 + (title == "network")]]  # fmt: skip
        plotting.plot_spectrum(theories[-1], axis, eigenvalues=np.array(drawn_eigenvalues))
        if title == "network":
            x = theories[0].grid(0, 600)
            srf_dashes: dict[str, Any] = {"color": plotting.COLOURS[1], "linestyle": "--"}
            axis.plot(x, x * theories[0].density(x), **srf_dashes, label="theory of its sRF")
        shown_settings = describe(step) | {"readout": None, "beta": beta, "alpha": alpha}
        facts = ", ".join(plotting.settings(shown_settings))  # the title has the readout
        axis.set_title("\n".join([title, facts, *theories[-1].notes]))
        axis.get_legend().remove()
    plotting.letter_panels(spectrum_axes)
    handles, labels = spectrum_axes[-1].get_legend_handles_labels()  # the last has all
    for handle, label in zip(handles, labels, strict=True):
        handle.set_label(label.partition(":")[0])  # of all panels: not where its outlier is
    legend_below(spectra, handles)
    spectra.suptitle(rf"$d = {data['dimension']}$, {data['seeds']} draws", fontsize="small")
    for axis in spectrum_axes[1:]:
        axis.set_ylabel("")
    return spectra
