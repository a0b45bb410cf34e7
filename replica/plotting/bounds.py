"""Figures of bounds: errors between them, functions that attain them, the learned function."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.results import Array

from .axes import REFERENCE, axes, colours, finish, from_zero, marks_of, set_scale
from .names import ERROR_LABELS, LABELS, setting
from .styles import hue

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    lower, upper = (np.array([point[k] for point in points]) for k in ("lower", "upper"))
    ax.fill_between(eta, lower, upper, color=hue(0), alpha=0.12, linewidth=0)
    label = r"upper bound $U$, $\lambda\to\infty$"
    ax.plot(eta, upper, color=hue(0), label=label, **marks_of(upper))
    ax.plot(eta, lower, "--", color=hue(0), label=r"lower bound $L$", **marks_of(lower))
    for i, ratio in enumerate(alpha, start=1):
        achieved = np.array([point[f"achieved_{ratio:g}"] for point in points], dtype=float)
        label = rf"best $\lambda$ at {setting('alpha', ratio)}"
        ax.plot(eta, achieved, color=hue(i), label=label, **marks_of(achieved))
    ax.axhline(linear, **REFERENCE, label="best linear predictor")
    set_scale(ax, eta)
    from_zero(ax)
    fixed = {name: value for name, value in (described or {}).items() if name != "eta"}
    return finish(ax, LABELS["eta"], ERROR_LABELS["test_error"], fixed)


def plot_functions(bounds: Any, ax: "Axes | None" = None, *, reach: float = 3.0) -> "Axes":
    """The functions of kappa that attain both bounds, beside the target's mean.

    Parameters
    ----------
    bounds : Bounds
        Of a model with one spike.
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
    lower = rf"lower bound, $L = {bounds.lower:.3g}$"
    upper = rf"upper bound, $U = {bounds.upper:.3g}$"
    ax.plot(kappa, bounds.lower_function(kappa), "--", color=hue(0), label=lower)
    ax.plot(kappa, bounds.upper_function(kappa), color=hue(0), label=upper)
    return finish(ax, LABELS["kappa"], MEAN_LABEL, bounds.settings)


def plot_family(
    each: Sequence[Any], eta: Array, ax: "Axes | None" = None, *, reach: float = 3.0
) -> "Axes":
    """The functions that attain the upper bound, a line for each learning rate.

    Parameters
    ----------
    each : sequence of Bounds
        Of models with one spike.
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
        label = setting("eta", rate)
        ax.plot(kappa, bounds.upper_function(kappa), color=shade, label=label)
    _draw_target(ax, kappa, each[-1].target_function)
    return finish(ax, LABELS["kappa"], MEAN_LABEL)


def plot_learned(learned: Any, ax: "Axes | None" = None, *, reach: float = 3.0) -> "Axes":
    """Mean output of the trained network given kappa, with a band of one standard deviation.

    Parameters
    ----------
    learned : LearnedFunction
        Of a model with one spike, or along a direction.
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
    mean, variance = learned.moments(kappa)
    spread = np.sqrt(variance)
    label = "± one standard deviation, theory"
    low, high = mean - spread, mean + spread
    ax.fill_between(kappa, low, high, color=hue(0), alpha=0.2, linewidth=0, label=label)
    ax.plot(kappa, mean, color=hue(0), label=r"learned, $C(\kappa)$, theory")
    _draw_target(ax, kappa, learned.target_mean)
    known = learned.settings
    along = r"projection $\kappa$ on the direction" if "direction" in known else LABELS["kappa"]
    return finish(ax, along, "output of the network", known)


def _draw_target(ax: "Axes", kappa: Array, mean: Callable[[Array], Array]) -> None:
    """The conditional ``mean`` of the target, dotted."""
    ax.plot(kappa, mean(kappa), "k:", label=r"target, $h(\kappa)$")


def drawn_kappa(reach: float = 3.0) -> Array:
    """Values of kappa to draw a function at."""
    return np.linspace(-reach, reach, 301)
