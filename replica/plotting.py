"""Figures of the theory.  Functions draw into an Axes and return it; nothing is shown."""

from typing import TYPE_CHECKING, Any

import numpy as np

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
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(6, 4), layout="constrained").subplots()
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
    ax.set_xlabel(LABELS.get(abscissa, abscissa))
    ax.set_ylabel("mean squared error")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, fontsize="small")
    return ax


def is_logarithmic(x: np.ndarray[Any, Any]) -> bool:
    """Whether the points are better spaced in the logarithm."""
    return bool(x.size > 2 and (x > 0).all() and x.max() / x.min() > 50)


def _symbol(dim: str) -> str:
    """The symbol at the end of a label."""
    label = LABELS.get(dim, dim)
    return label[label.index("$") :].split(" = ")[0].rstrip("$") + "$" if "$" in label else dim
