"""The figure of a confusion matrix: how the inputs of each class are answered."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument
from .axes import axes, finish
from .legend import SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHADES = "Blues"  # of shares, from none to all
LARGEST = 9.0  # of shares, in points


def plot_confusion(point: Any, ax: "Axes | None" = None) -> "Axes":
    """The shares of the answers, a row for each class, in percent; grey of a class without inputs.

    Parameters
    ----------
    point : Solution
        Of several classes, as :func:`replica.solve` returns it.
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
        allowed = "a converged one of three classes or more, which has a confusion matrix"
        raise InvalidArgument("point", type(point).__name__, allowed)
    ax, shares = axes(ax), 100 * point.confusion
    names = [str(name) for name in point.model.classes]
    ax.set_facecolor("0.85")
    ax.imshow(shares, cmap=SHADES, vmin=0, vmax=100, aspect="auto")
    places = range(len(names))
    turned: dict[str, Any] = {"rotation": 45, "ha": "right"} if max(map(len, names)) > 3 else {}
    ax.set_xticks(places, names, **turned)
    ax.set_yticks(places, names)
    ax.tick_params(length=0, labelsize=SMALL)
    figure: Any = ax.get_figure(root=True)
    width, height = (pixels / (figure.dpi / 72) / len(names) for pixels in ax.bbox.size)
    size = min(LARGEST, width / 2.2, height / 1.3)  # of "100", and what is between rows
    for i, j in np.argwhere(shares >= 0.5):  # what is not 0 in percent
        ink = "white" if shares[i, j] > 60 else "black"
        ax.text(j, i, f"{shares[i, j]:.0f}", ha="center", va="center", color=ink, fontsize=size)
    return finish(ax, "answer", "class", point.settings)
