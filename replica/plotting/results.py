"""Figures of single results: a confusion matrix, a spectrum, a staircase, uses of N samples, bounds
with the functions that attain them, the learned function.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from .figure_elements import REFERENCE, SMALL, axes, colours, finish, from_zero, marks_of, set_scale
from .names import BEST_OF, ERROR_LABELS, LABELS, best_label, class_names, number_text, setting
from .style import hue

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_confusion(point: Any, ax: "Axes | None" = None) -> "Axes":
    """The shares of the answers, a row for each class, in percent; grey of a class without inputs.

    Parameters
    ----------
    point : Solution
        A point with classes, as :func:`replica.solve` returns it.
    ax : matplotlib Axes, optional
        Where to draw; those of a new figure unless given.

    Raises
    ------
    InvalidArgument
        If the point has no confusion matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from replica import FeatureSample, solve
    >>> from replica.plotting import plot_confusion
    >>> rng = np.random.default_rng(0)
    >>> of = rng.integers(0, 3, 150)
    >>> features = rng.standard_normal((3, 8))[of] + rng.standard_normal((150, 8))
    >>> sample = FeatureSample(features=features, labels=of)
    >>> ax = plot_confusion(solve(sample, samples=50, lam=0.1))  # as .plot_confusion()
    """
    if getattr(point, "confusion", None) is None or not point.converged:
        allowed_point = "a converged solution of classes, or of labels -1 and 1, of what is given"
        raise InvalidArgument("point", type(point).__name__, allowed_point)
    ax, percents = axes(ax), 100 * point.confusion
    classes = class_names(point.model)
    ax.set_facecolor("0.85")
    ax.imshow(percents, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    class_places = range(len(classes))
    crowded = len(classes) * max(map(len, classes)) > 40  # characters of names side by side
    turned_labels: dict[str, Any] = {"rotation": 45, "ha": "right"} if crowded else {}
    ax.set_xticks(class_places, classes, **turned_labels)
    ax.set_yticks(class_places, classes)
    ax.tick_params(length=0, labelsize=SMALL)
    figure: Any = ax.get_figure(root=True)
    width, height = (pixels / (figure.dpi / 72) / len(classes) for pixels in ax.bbox.size)
    size = min(9.0, width / 2.2, height / 1.3)  # in points: "100" fits, and rows have a gap
    for i, j in np.argwhere(percents >= 0.5):  # shares that are not 0 in percent
        ink = "white" if percents[i, j] > 60 else "black"
        ax.text(j, i, f"{percents[i, j]:.0f}", ha="center", va="center", color=ink, fontsize=size)
    return finish(ax, "answer (% of the rows of a class)", "class", point.settings)


def plot_spectrum(
    spectrum: Any,
    ax: "Axes | None" = None,
    *,
    eigenvalues: Array | None = None,
    label: str | None = None,
) -> "Axes":
    """Density of the bulk, over a histogram of simulated eigenvalues if they are given; where the
    density is not known, the histogram alone.  Dashed where it is not converged.

    On a logarithmic abscissa the ordinate is x times the density, so that areas are masses.

    Parameters
    ----------
    spectrum : Spectrum, LayerSpectrum or None
        As :func:`replica.spectrum` returns it; None where it is not known.
    ax : matplotlib Axes, optional
        Where to draw; those of a new figure unless given.
    eigenvalues : array (p,) or (draws, p), optional
        Eigenvalues of simulated matrices.
    label : str, optional
        Name of the spectrum in the legend, in the place of a title, for several spectra in the same
        axes: each has a colour of its own.

    Examples
    --------
    >>> from replica import GradientStep, spectrum
    >>> from replica.plotting import plot_spectrum
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> ax = plot_spectrum(spectrum(step.srf(beta=0.5), alpha=2.0), label="after the step")
    >>> before = GradientStep(student="tanh", target="sin", alpha0=20, eta=0.0)
    >>> ax = plot_spectrum(spectrum(before.srf(beta=0.5), alpha=2.0), ax, label="before")
    """
    ax = axes(ax)
    if eigenvalues is not None and np.ndim(eigenvalues) not in (1, 2):
        raise InvalidArgument("eigenvalues", eigenvalues, "an array (p,) or (draws, p)")
    if spectrum is None:
        if eigenvalues is None:
            raise InvalidArgument("spectrum", None, "given, unless there are eigenvalues")
        nonzero_x = np.ravel(eigenvalues)
        nonzero_x = nonzero_x[nonzero_x > 1e-12 * nonzero_x.max()]  # others are 0 up to rounding
        logarithmic = bool(nonzero_x.max() > LOGARITHMIC * nonzero_x.min())
        bars_label = "simulated eigenvalues (no theory)"
        _draw_histogram(ax, eigenvalues, nonzero_x.min(), nonzero_x.max(), logarithmic, bars_label)
        ax.set_xscale("log" if logarithmic else "linear")
        return finish(ax, EIGENVALUE, DENSITIES[logarithmic])
    intervals = [  # with their sharp ends, at which the density is 0
        np.union1d(spectrum.grid(k, 200), edges[spectrum.sharp[k]])
        for k, edges in enumerate(spectrum.edges)
    ]
    density_lines = [(x, spectrum.density(x)) for x in intervals]
    # tails below that are thinner than the line
    least_mass = 1e-4 * max(float(np.nanmax(x * y)) for x, y in density_lines)
    for k, (x, y) in enumerate(density_lines):
        is_visible = x * y > least_mass
        is_visible[1:] |= is_visible[:-1]  # down to the axis
        is_visible |= np.isin(x, spectrum.edges[spectrum.sharp])
        density_lines[k] = x[is_visible], y[is_visible]
    lowest_x, high = min(x[0] for x, _ in density_lines), max(x[-1] for x, _ in density_lines)
    matrix_p = None if eigenvalues is None else np.shape(eigenvalues)[-1]
    outliers = {"theory": [x for x in spectrum.outliers_at(matrix_p) if x > high], "simulated": []}
    if eigenvalues is not None:
        simulated_outliers = spectrum.outliers_among(eigenvalues)
        outliers["simulated"] = simulated_outliers[np.isfinite(simulated_outliers)].tolist()
    # a linear abscissa leaves small eigenvalues no room
    largest_drawn = max([high, *outliers["theory"], *outliers["simulated"]])
    others_drawn = {line.get_color() for line in ax.lines}
    colour, name = hue(len(others_drawn)), label or "theory"
    logarithmic = bool(largest_drawn > LOGARITHMIC * lowest_x)
    if others_drawn:  # the ordinates must be of one kind
        logarithmic = ax.get_xscale() == "log"
    if eigenvalues is not None:
        _draw_histogram(ax, eigenvalues, lowest_x, high, logarithmic, "simulated eigenvalues")
    line, line_label = ("-", name) if spectrum.converged else ("--", f"{name}, not converged")
    for i, (x, y) in enumerate(density_lines):
        ax.plot(x, x * y if logarithmic else y, line, color=colour, label="" if i else line_label)
    if logarithmic:
        ax.set_xscale("log")
    from_zero(ax)
    marks: dict[str, Any] = {"theory": ("|", colour, 12), "simulated": ("o", "black", 4)}
    for source, outlier_places in outliers.items():
        if outlier_places:
            marker, ink, size = marks[source]
            look: dict[str, Any] = {"color": ink, "markersize": size, "markeredgewidth": 1.5}
            look |= {"markerfacecolor": "none", "linestyle": "none", "clip_on": False}
            at_p = f": {', '.join(f'{x:.3g}' for x in outlier_places[:2])}" * (source == "theory")
            look["label"] = f"outlier, {name if source == 'theory' else source}{at_p}"
            above = [0.04] * len(outlier_places)  # the axis
            ax.plot(outlier_places, above, marker, transform=ax.get_xaxis_transform(), **look)
    if spectrum.outliers.size and not outliers["theory"] and matrix_p is None:  # they grow with p
        positions = ", ".join(rf"${x:.3g}\,p$" for x in spectrum.outliers[:2])
        beyond_axes: dict[str, Any] = {"transform": ax.transAxes, "clip_on": False}
        place_label = f"outlier, {name}: about {positions}"
        height = 0.03 * (1 + 2 * len(others_drawn))
        ax.plot(
            [1], [height], ">", color=colour, linestyle="none", label=place_label, **beyond_axes
        )
    described = spectrum.settings if label is None else None
    return finish(ax, EIGENVALUE, DENSITIES[logarithmic], described, spectrum.notes)


EIGENVALUE = r"eigenvalue $x$ of $\Phi^\top\Phi/n$"
DENSITIES = r"density $\varrho(x)$", r"density $x\,\varrho(x)$ of $\log x$"  # if logarithmic
LOGARITHMIC = 30  # largest over smallest eigenvalue from which on the abscissa is logarithmic


def _draw_histogram(
    ax: "Axes", eigenvalues: Any, low: float, high: float, logarithmic: bool, label: str
) -> None:
    """Share of all eigenvalues in 60 bins, over their width, on an abscissa or its logarithm."""
    edges = np.geomspace(low, high, 61) if logarithmic else np.linspace(low, high, 61)
    bin_counts, _ = np.histogram(np.ravel(eigenvalues), edges)
    bin_width = np.diff(np.log(edges)) if logarithmic else np.diff(edges)
    bin_height = bin_counts / np.size(eigenvalues) / bin_width
    ax.stairs(bin_height, edges, fill=True, color="0.8", label=label)


def plot_staircase(staircase: Any, ax: "Axes | None" = None) -> "Axes":
    """Share of the target's variance that can be explained after each step, as a staircase.

    Parameters
    ----------
    staircase : Staircase
        As returned by :func:`replica.staircase`.
    ax : matplotlib Axes, optional
        Where to draw; those of a new figure unless given.

    Examples
    --------
    >>> from replica import staircase
    >>> from replica.plotting import plot_staircase
    >>> ax = plot_staircase(staircase("z1 + z1*z2 + z1*z2*z3"))
    """
    ax = axes(ax)
    explained_shares = [0.0, *(stage.explained for stage in staircase.stages)]
    for step, stage in enumerate(staircase.stages, start=1):
        low, high = explained_shares[step - 1 : step + 1]
        is_linear = step <= staircase.linear_stages
        colour = hue(0) if is_linear else hue(1)
        ax.bar(step, high - low, bottom=low, width=1.0, color=colour, alpha=0.25, linewidth=0)
        ax.plot([step - 0.5, step - 0.5, step + 0.5], [low, high, high], color=colour)
        sample_order = "d" if stage.leap == 1 else f"d^{stage.leap}"
        names = "\n".join(_sum_of_coordinates(direction) for direction in stage.directions)
        ax.annotate(
            f"{names}\n$n\\sim {sample_order}$",
            (step, high),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=SMALL,
        )
    direction_lines = max((len(stage.directions) for stage in staircase.stages), default=0) + 1
    ax.set_ylim(0, 1.08 + 0.07 * direction_lines)
    ax.set_xlim(0.4, max(2, len(staircase.stages)) + 0.6)
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.set_xticks(range(1, max(2, len(staircase.stages)) + 1))
    step_label = "giant step, each on $n$ fresh samples"
    described = {name: staircase.settings[name] for name in staircase.settings if name != "degree"}
    return finish(ax, step_label, "share of the variance in reach", described)


def _sum_of_coordinates(direction: Array) -> str:
    """A direction (r,) as text, such as 0.97 z1 + 0.24 z2, up to parts that two digits show."""
    if np.count_nonzero(np.abs(direction) > 5e-3) == 1:
        return f"$z_{np.abs(direction).argmax() + 1}$"
    coordinate_terms = [f"{x:+.2f}\\,z_{i}" for i, x in enumerate(direction, 1) if abs(x) > 5e-3]
    return f"${' '.join(coordinate_terms)}$".replace("$+", "$", 1)


BOTH = "all for both"
# Of every use: the field that varies, the label of its points, and their mark.
USE_MARKERS = {
    BOTH: ("alpha0", BOTH, "*"),
    "split": ("alpha0", "share for the step, the rest for the readout", "o"),
    "best split": ("alpha0", "the best share for the step, the rest for the readout", "D"),
    "part for the step": ("alpha0", "share for the step, all for the readout", "s"),
    "part for the readout": ("alpha", "share for the readout, all for the step", "^"),
}


def plot_allocation(
    plans: Sequence[Mapping[str, Any]],
    ax: "Axes | None" = None,
    *,
    described: Mapping[str, Any] | None = None,
) -> "Axes":
    """The test error against the share of N samples that a layer is trained on.

    Parameters
    ----------
    plans : sequence of mappings
        "use", one of ``USE_MARKERS``, "alpha0", "alpha" and "test_error"; "lam" and "eta", which
        the label of the error calls the best where they vary.
    ax : matplotlib Axes, optional
        Where to draw; those of a new figure unless given.
    described : mapping, optional
        Settings to state in a title.

    Examples
    --------
    >>> from replica.plotting import plot_allocation
    >>> both = dict(use="all for both", alpha0=2.0, alpha=2.0, test_error=0.1)
    >>> half = dict(use="split", alpha0=1.0, alpha=1.0, test_error=0.2)
    >>> ax = plot_allocation([both, half])
    """
    ax = axes(ax)
    plan_of_both = next(plan for plan in plans if plan["use"] == BOTH)
    for i, (plan_use, (field, label, marker)) in enumerate(USE_MARKERS.items()):
        own = [p for p in plans if p["use"] == plan_use and np.isfinite(p["test_error"])]
        if own:
            shares, errors = ([plan[name] for plan in own] for name in (field, "test_error"))
            style: dict[str, Any] = {"color": hue(i), "markersize": 10 if plan_use == BOTH else 6}
            ax.plot(np.divide(shares, plan_of_both[field]), errors, marker, label=label, **style)
    ax.set_xlim(0, 1.04)
    ax.margins(y=0.1)
    abscissa = rf"one layer's share of the $N = {number_text(plan_of_both['alpha0'])}\,d$ samples"
    solved_plans = [plan for plan in plans if np.isfinite(plan["test_error"])]
    if unsolved_uses := dict.fromkeys(p["use"] for p in plans if p not in solved_plans):
        ax.plot([], [], " ", label=f"not solved: {', '.join(unsolved_uses)}")
    searched = [name for name in BEST_OF if len({plan.get(name) for plan in solved_plans}) > 1]
    return finish(ax, abscissa, ERROR_LABELS["test_error"] + best_label(searched), described)


MEAN_LABEL = "conditional mean of the output"


def plot_bounds(
    points: Sequence[Mapping[str, Any]],
    linear: float,
    alpha: Array | Sequence[float] = (),
    ax: "Axes | None" = None,
    *,
    described: Mapping[str, Any] | None = None,
) -> "Axes":
    """Bounds against the learning rate, and the error at the best penalty between them.

    Parameters
    ----------
    points : sequence of mappings
        "eta", "lower", "upper" and, for every value of alpha, "achieved_<alpha>".
    linear : float
        Error of the best linear predictor.
    alpha : sequence of float
        Readout samples over dimension, of the errors at the best penalty.
    ax : matplotlib Axes, optional
        Where to draw; those of a new figure unless given.
    described : mapping, optional
        Settings to state in a title, but for eta.

    Examples
    --------
    >>> from replica import GradientStep, bounds
    >>> from replica.plotting import plot_bounds
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> over = bounds(step, eta=[0.5, 1, 2, 4])
    >>> points = [dict(eta=e, lower=b.lower, upper=b.upper) for e, b in zip(over.eta, over.each)]
    >>> ax = plot_bounds(points, over.linear)  # as over.plot()
    """
    ax = axes(ax)
    eta = np.array([point["eta"] for point in points], dtype=float)
    lower_bounds, upper_bounds = (
        np.array([point[k] for point in points]) for k in ("lower", "upper")
    )
    ax.fill_between(eta, lower_bounds, upper_bounds, color=hue(0), alpha=0.12, linewidth=0)
    line_label = r"upper bound $U$, $\lambda\to\infty$"
    ax.plot(eta, upper_bounds, color=hue(0), label=line_label, **marks_of(upper_bounds))
    line_label = r"lower bound $L$"
    ax.plot(eta, lower_bounds, "--", color=hue(0), label=line_label, **marks_of(lower_bounds))
    for i, alpha_value in enumerate(alpha, start=1):
        achieved = np.array([point[f"achieved_{alpha_value:g}"] for point in points], dtype=float)
        line_label = rf"best $\lambda$ at {setting('alpha', alpha_value)}"
        ax.plot(eta, achieved, color=hue(i), label=line_label, **marks_of(achieved))
    ax.axhline(linear, **REFERENCE, label="best linear predictor")
    set_scale(ax, eta)
    from_zero(ax)
    fixed_settings = {name: value for name, value in (described or {}).items() if name != "eta"}
    return finish(ax, LABELS["eta"], ERROR_LABELS["test_error"], fixed_settings)


def plot_functions(bounds: Any, ax: "Axes | None" = None, *, reach: float = 3.0) -> "Axes":
    """The functions of kappa that attain both bounds, beside the target's mean.

    Parameters
    ----------
    bounds : Bounds
        Bounds of a model with one spike.
    ax : matplotlib Axes, optional
        Where to draw; those of a new figure unless given.
    reach : float
        Largest modulus of kappa shown.

    Examples
    --------
    >>> from replica import GradientStep, bounds
    >>> from replica.plotting import plot_functions
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> ax = plot_functions(bounds(step))
    """
    ax, kappa = axes(ax), drawn_kappa(reach)
    _draw_target(ax, kappa, bounds.target_function)
    lower_label = rf"lower bound, $L = {bounds.lower:.3g}$"
    upper_label = rf"upper bound, $U = {bounds.upper:.3g}$"
    ax.plot(kappa, bounds.lower_function(kappa), "--", color=hue(0), label=lower_label)
    ax.plot(kappa, bounds.upper_function(kappa), color=hue(0), label=upper_label)
    return finish(ax, LABELS["kappa"], MEAN_LABEL, bounds.settings)


def plot_family(
    each: Sequence[Any], eta: Array, ax: "Axes | None" = None, *, reach: float = 3.0
) -> "Axes":
    """The functions that attain the upper bound, a line for each learning rate.

    Parameters
    ----------
    each : sequence of Bounds
        Bounds of models with one spike.
    eta : (n,)
        Their learning rates.
    ax, reach
        As in :func:`plot_functions`.

    Examples
    --------
    >>> from replica import GradientStep, bounds
    >>> from replica.plotting import plot_family
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> over = bounds(step, eta=[0.5, 1, 2, 4])
    >>> ax = plot_family(over.each, over.eta)
    """
    ax, kappa = axes(ax), drawn_kappa(reach)
    for rate, bounds, shade in zip(eta, each, colours(eta.tolist()), strict=True):
        rate_label = setting("eta", rate)
        ax.plot(kappa, bounds.upper_function(kappa), color=shade, label=rate_label)
    _draw_target(ax, kappa, each[-1].target_function)
    return finish(ax, LABELS["kappa"], MEAN_LABEL)


def plot_learned(learned: Any, ax: "Axes | None" = None, *, reach: float = 3.0) -> "Axes":
    """Mean output of the trained network given kappa, with a band of one standard deviation.

    Parameters
    ----------
    learned : LearnedFunction
        Function of a model with one spike, or along a direction.
    ax, reach
        As in :func:`plot_functions`.

    Examples
    --------
    >>> from replica import GradientStep, learned_function
    >>> from replica.plotting import plot_learned
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> ax = plot_learned(learned_function(step.srf(beta=1.0), alpha=1.0, lam=0.1))
    """
    ax, kappa = axes(ax), drawn_kappa(reach)
    learned_mean, learned_variance = learned.moments(kappa)
    output_deviation = np.sqrt(learned_variance)
    label = "± one standard deviation, theory"
    band_low, band_high = learned_mean - output_deviation, learned_mean + output_deviation
    ax.fill_between(kappa, band_low, band_high, color=hue(0), alpha=0.2, linewidth=0, label=label)
    ax.plot(kappa, learned_mean, color=hue(0), label=r"learned, $C(\kappa)$, theory")
    _draw_target(ax, kappa, learned.target_mean)
    facts = learned.settings
    abscissa = r"projection $\kappa$ on the direction" if "direction" in facts else LABELS["kappa"]
    return finish(ax, abscissa, "output of the network", facts)


def _draw_target(ax: "Axes", kappa: Array, mean: Callable[[Array], Array]) -> None:
    """The conditional ``mean`` of the target, dotted."""
    ax.plot(kappa, mean(kappa), "k:", label=r"target, $h(\kappa)$")


def drawn_kappa(reach: float = 3.0) -> Array:
    """Values of kappa to draw a function at."""
    return np.linspace(-reach, reach, 301)
