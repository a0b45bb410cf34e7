"""The figure of a learning curve."""

from typing import TYPE_CHECKING, Any

from .axes import LABELS, axes, finish, is_logarithmic

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


def plot_curve(curve: "xarray.Dataset", ax: "Axes | None" = None, *, train: bool = True) -> "Axes":
    """Test error (solid) and training error (dashed) of a learning curve.

    Parameters
    ----------
    curve : xarray.Dataset
        As returned by :func:`replica.learning_curve`.  Its longest dimension becomes the
        abscissa (alpha on a tie); every combination of the others gets a line.
    ax : matplotlib Axes, optional
    train : bool
        Whether to draw the training error too.
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
        line = lines.isel(line=i)
        label = ", ".join(f"{_symbol(dim)} = {float(line[dim]):.3g}" for dim in varying)
        (test,) = ax.plot(x, line.test_error, label=label or "test error", **style)
        if train:
            dashed = {"color": test.get_color(), "linestyle": "--", **style}
            ax.plot(x, line.train_error, label="" if varying else "training error", **dashed)
    if varying and train:
        ax.plot([], [], color="0.4", label="test error")
        ax.plot([], [], color="0.4", linestyle="--", label="training error")
    if is_logarithmic(x):
        ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    return finish(ax, LABELS.get(abscissa, abscissa), "mean squared error")


def _symbol(dim: str) -> str:
    """The symbol of a parameter, out of its label; the name of one that has no label."""
    label = LABELS.get(dim, dim)
    return label[label.index("$") :].split(" = ")[0].rstrip("$") + "$" if "$" in label else dim
