"""The figure of a comparison: theory as lines, simulation as points with error bars."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from replica.observables import Grid
from replica.plotting import LABELS, axes, finish, is_logarithmic

from .one_size import Comparison
from .several_sizes import Ladder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = 2  # standard errors shown


def plot_comparison(
    comparison: Comparison | Ladder,
    theory: Grid,
    beside: Mapping[str, Grid] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Test (filled) and training error (open) against alpha, a colour for each lam.

    Parameters
    ----------
    comparison : Comparison or Ladder
    theory : Grid
        The theory over a denser alpha and the same lam, drawn as lines.
    beside : dict of label -> Grid, optional
        Other theories at the same points, drawn as thinner lines: the sRF's, the limit d -> inf.
    ax : matplotlib Axes, optional
        Where to draw; a new figure's when absent.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = axes(ax)
    lams = comparison.lam
    simulated = "extrapolated" if isinstance(comparison, Ladder) else "simulated"
    shape = (theory.axes["alpha"].size, lams.size)
    for name, line, marker in (("test", "-", "o"), ("train", "--", "s")):
        curve = theory.columns[f"{name}_error"].reshape(shape)
        check = getattr(comparison, name)
        for i, lam in enumerate(lams):
            colour = f"C{i}"
            label = "training" if name == "train" else "test"
            prefix = rf"$\lambda$ = {lam:.3g}, " if lams.size > 1 else ""
            alpha = theory.axes["alpha"]
            ax.plot(alpha, curve[:, i], line, color=colour, label=f"{prefix}{label}, theory")
            for width, (other, grid) in zip((0.7, 0.4), (beside or {}).items(), strict=False):
                ax.plot(
                    alpha,
                    grid.columns[f"{name}_error"].reshape(shape)[:, i],
                    line,
                    color=colour,
                    linewidth=width,
                    alpha=0.6,
                    label=f"{prefix}{label}, {other}",
                )
            ax.errorbar(
                comparison.alpha,
                check.simulated[:, i],
                BARS * check.stderr[:, i],
                fmt=marker,
                color=colour,
                markerfacecolor=colour if name == "test" else "white",
                markersize=5,
                capsize=2,
                label=f"{prefix}{label}, {simulated} (±{BARS} s.e.)",
            )
    if is_logarithmic(comparison.alpha):
        ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    return finish(ax, LABELS["alpha"], "mean squared error")


def dense(alpha: np.ndarray, count: int = 101) -> np.ndarray:
    """Values of alpha for a smooth line through the range of ``alpha``."""
    spaced = np.geomspace if is_logarithmic(alpha) else np.linspace
    return np.unique(np.concatenate([alpha, spaced(alpha.min(), alpha.max(), count)]))
