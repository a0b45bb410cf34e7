"""Figures of the theory.  Functions draw into an Axes and return it; nothing is shown."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..steps import Staircase

if TYPE_CHECKING:
    import xarray
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


def finish(ax: "Axes", abscissa: str, ordinate: str) -> "Axes":
    """``ax`` with its labels, and a legend of what it shows."""
    ax.set_xlabel(abscissa)
    ax.set_ylabel(ordinate)
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_curve(curve: "xarray.Dataset", ax: "Axes | None" = None, *, train: bool = True) -> "Axes":
    """Test error (solid) and training error (dashed) of a learning curve.

    Parameters
    ----------
    curve : xarray.Dataset
        As returned by :func:`replica.learning_curve`.  Its longest dimension becomes the
        abscissa (alpha on a tie); every combination of the others gets a line.
    ax : matplotlib Axes, optional
        Where to draw; a new figure's when absent.
    train : bool
        Whether to draw the training error too.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = axes(ax)
    dims = [str(dim) for dim in curve.test_error.dims]
    abscissa = max(dims, key=lambda dim: (curve.sizes[dim], dim == "alpha"))
    others = [dim for dim in dims if dim != abscissa]
    varying = [dim for dim in others if curve.sizes[dim] > 1]
    lines = curve.stack(line=others) if others else curve.expand_dims("line")
    x = curve[abscissa].values
    style: dict[str, Any] = {"marker": "." if x.size < 30 else ""}
    for i in range(lines.sizes["line"]):
        one = lines.isel(line=i)
        label = ", ".join(f"{_symbol(dim)} = {float(one[dim]):.3g}" for dim in varying)
        (test,) = ax.plot(x, one.test_error, label=label or "test error", **style)
        if train:
            dashed = {"color": test.get_color(), "linestyle": "--", **style}
            ax.plot(x, one.train_error, label="" if varying else "training error", **dashed)
    if varying and train:
        ax.plot([], [], color="0.4", label="test error")
        ax.plot([], [], color="0.4", linestyle="--", label="training error")
    if is_logarithmic(x):
        ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    return finish(ax, LABELS.get(abscissa, abscissa), "mean squared error")


def plot_staircase(found: "Staircase", ax: "Axes | None" = None) -> "Axes":
    """Share of the target's variance that can be explained after each step, as a staircase.

    Parameters
    ----------
    found : Staircase
        As returned by :func:`replica.staircase`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure's when absent.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = axes(ax)
    shares = [0.0, *(stage.explained for stage in found.stages)]
    for step, stage in enumerate(found.stages, start=1):
        low, high = shares[step - 1 : step + 1]
        linear = step <= found.linear_stages
        colour = "C0" if linear else "C1"
        ax.bar(step, high - low, bottom=low, width=1.0, color=colour, alpha=0.25, linewidth=0)
        ax.plot([step - 0.5, step - 0.5, step + 0.5], [low, high, high], color=colour)
        samples = "d" if stage.leap == 1 else f"d^{stage.leap}"
        names = "\n".join(_direction(direction) for direction in stage.directions)
        ax.annotate(
            f"{names}\n$n\\sim {samples}$",
            (step, high),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize="small",
        )
    lines = max((len(stage.directions) for stage in found.stages), default=0) + 1
    ax.set_ylim(0, 1.08 + 0.07 * lines)
    ax.set_xlim(0.4, max(2, len(found.stages)) + 0.6)
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.set_xticks(range(1, max(2, len(found.stages)) + 1))
    ax.set_xlabel("giant step, each on a fresh batch of $n$ samples")
    ax.set_ylabel("share of the variance in reach")
    ax.set_title(found.target.name.replace("**", "^"), fontsize="medium")
    return ax


def _direction(direction: "np.ndarray[Any, Any]") -> str:
    """The main parts of a direction as text, such as 0.97 z1 + 0.24 z2."""
    if np.count_nonzero(np.abs(direction) > 5e-3) == 1:
        return f"$z_{np.abs(direction).argmax() + 1}$"
    parts = [f"{x:+.2f}\\,z_{i}" for i, x in enumerate(direction, 1) if abs(x) > 5e-3]
    return f"${' '.join(parts)}$".replace("$+", "$", 1)


def is_logarithmic(x: np.ndarray[Any, Any]) -> bool:
    """Whether the points are better spaced in the logarithm."""
    return bool(x.size > 2 and (x > 0).all() and x.max() / x.min() > 50)


def _symbol(dim: str) -> str:
    """The symbol at the end of a label."""
    label = LABELS.get(dim, dim)
    return label[label.index("$") :].split(" = ")[0].rstrip("$") + "$" if "$" in label else dim
