"""What all figures share: the Axes to draw into, and the labels of the parameters.

Functions draw into an Axes and return it; nothing is shown.
"""

from typing import TYPE_CHECKING

from solvers.results import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {
    "alpha": r"readout samples per dimension $\alpha = n/d$",
    "lam": r"ridge penalty $\lambda$",
    "alpha0": r"gradient samples per dimension $\alpha_0 = n_0/d$",
    "eta": r"learning rate $\tilde\eta$",
    "beta": r"width over dimension $\beta = p/d$",
    "noise": r"label noise variance $\Delta$",
    "r": r"spike length $r$",
    "c": r"bulk variance $c$",
    "gamma": r"spike-target cosine $\gamma$",
}


def axes(ax: "Axes | None") -> "Axes":
    """``ax``, or those of a new figure."""
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(6, 4), layout="constrained").subplots()
    return ax


MANY_ENTRIES = 6  # of a legend


def finish(ax: "Axes", abscissa: str, ordinate: str) -> "Axes":
    """``ax`` with its labels, and a legend of what it shows."""
    ax.set_xlabel(abscissa)
    ax.set_ylabel(ordinate)
    # beside the axes where entries are so many that they would cover what is drawn
    if len(ax.get_legend_handles_labels()[1]) > MANY_ENTRIES:
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    else:
        ax.legend(frameon=False, fontsize="small")
    return ax


def is_logarithmic(x: Array) -> bool:
    """Whether the points are better spaced in the logarithm."""
    return bool(x.size > 2 and (x > 0).all() and x.max() / x.min() > 50)
