"""The figure of a staircase: what each giant step adds."""

from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.results import Array

from .axes import axes, finish
from .legend import SMALL
from .styles import hue

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    shares = [0.0, *(stage.explained for stage in staircase.stages)]
    for step, stage in enumerate(staircase.stages, start=1):
        low, high = shares[step - 1 : step + 1]
        linear = step <= staircase.linear_stages
        colour = hue(0) if linear else hue(1)
        ax.bar(step, high - low, bottom=low, width=1.0, color=colour, alpha=0.25, linewidth=0)
        ax.plot([step - 0.5, step - 0.5, step + 0.5], [low, high, high], color=colour)
        samples = "d" if stage.leap == 1 else f"d^{stage.leap}"
        names = "\n".join(_sum_of_coordinates(direction) for direction in stage.directions)
        ax.annotate(
            f"{names}\n$n\\sim {samples}$",
            (step, high),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=SMALL,
        )
    lines = max((len(stage.directions) for stage in staircase.stages), default=0) + 1
    ax.set_ylim(0, 1.08 + 0.07 * lines)
    ax.set_xlim(0.4, max(2, len(staircase.stages)) + 0.6)
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.set_xticks(range(1, max(2, len(staircase.stages)) + 1))
    each = "giant step, each on a fresh batch of $n$ samples"
    described = {name: staircase.settings[name] for name in staircase.settings if name != "degree"}
    return finish(ax, each, "share of the variance in reach", described)


def _sum_of_coordinates(direction: Array) -> str:
    """A direction (r,) as text, such as 0.97 z1 + 0.24 z2, up to parts that two digits show."""
    if np.count_nonzero(np.abs(direction) > 5e-3) == 1:
        return f"$z_{np.abs(direction).argmax() + 1}$"
    parts = [f"{x:+.2f}\\,z_{i}" for i, x in enumerate(direction, 1) if abs(x) > 5e-3]
    return f"${' '.join(parts)}$".replace("$+", "$", 1)
