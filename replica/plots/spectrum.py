"""The figure of a spectrum: density of the eigenvalues, per decade where it spans several."""

from typing import TYPE_CHECKING

import numpy as np

from solvers.results import Array

from ..spectra import Spectrum
from .curve import axes, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE = 30.0  # ratio of edges from which the abscissa is logarithmic
VISIBLE = 1e-4  # of the largest x times density, below which a tail is not shown


def plot_spectrum(
    found: Spectrum, ax: "Axes | None" = None, *, eigenvalues: Array | None = None
) -> "Axes":
    """Density of the bulk, over a histogram of simulated eigenvalues if they are given.

    On a logarithmic abscissa the ordinate is x times the density, so that areas are masses.

    Parameters
    ----------
    found : Spectrum
    ax : matplotlib Axes, optional
        Where to draw; a new figure's when absent.
    eigenvalues : array, optional
        Of one or more simulated matrices.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = axes(ax)
    lines = [(x, found.density(x)) for x in (found.grid(k, 600) for k in range(len(found.edges)))]
    top = max(float((x * y).max()) for x, y in lines)
    lines = [(x[x * y > VISIBLE * top], y[x * y > VISIBLE * top]) for x, y in lines]
    low, high = min(x[0] for x, _ in lines), max(x[-1] for x, _ in lines)
    logarithmic = high / low > WIDE
    if eigenvalues is not None:
        values = np.ravel(eigenvalues)
        edges = np.geomspace(low, high, 61) if logarithmic else np.linspace(low, high, 61)
        count, _ = np.histogram(values, edges)
        width = np.diff(np.log(edges)) if logarithmic else np.diff(edges)
        height = count / values.size / width
        ax.stairs(height, edges, fill=True, color="0.8", label="simulated eigenvalues")
    for i, (x, y) in enumerate(lines):
        ax.plot(x, x * y if logarithmic else y, "C0", label="" if i else "theory")
    if logarithmic:
        ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    beside = [f"atom at 0: {found.atom:.3g}"] if found.atom else []
    beside += [rf"outlier at ${value:.3g}\,p$" for value in found.outliers[:2]]
    for text in beside:
        ax.plot([], [], " ", label=text)
    per_log, per_unit = r"density in $\log x$, $x\,\varrho(x)$", r"density $\varrho(x)$"
    ordinate = per_log if logarithmic else per_unit
    return finish(ax, r"eigenvalue $x$ of $\Phi^\top\Phi/n$", ordinate)
