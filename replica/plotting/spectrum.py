"""The figure of a spectrum: density of the eigenvalues, per decade where it spans several."""

from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.results import Array

from ..errors import InvalidArgument
from .axes import axes, finish, from_zero
from .styles import hue

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_spectrum(
    spectrum: Any, ax: "Axes | None" = None, *, eigenvalues: Array | None = None
) -> "Axes":
    """Density of the bulk, over a histogram of simulated eigenvalues if they are given.

    On a logarithmic abscissa the ordinate is x times the density, so that areas are masses.

    Parameters
    ----------
    spectrum : Spectrum or LayerSpectrum
        As :func:`replica.spectrum` returns it.
    ax : matplotlib Axes, optional
        Where to draw; those of a new figure unless given.
    eigenvalues : array (p,) or (draws, p), optional
        Of simulated matrices.

    Examples
    --------
    >>> from replica import GradientStep, spectrum
    >>> from replica.plotting import plot_spectrum
    >>> step = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    >>> ax = plot_spectrum(spectrum(step.srf(beta=0.5), alpha=2.0))
    """
    ax = axes(ax)
    intervals = [spectrum.grid(k, 200) for k in range(len(spectrum.edges))]
    lines = [(x, spectrum.density(x)) for x in intervals]
    # tails below that are thinner than the line
    least = 1e-4 * max(float((x * y).max()) for x, y in lines)
    lines = [(x[x * y > least], y[x * y > least]) for x, y in lines]
    lines = [_to_edges(spectrum, k, *line) for k, line in enumerate(lines)]
    low, high = min(x[0] for x, _ in lines), max(x[-1] for x, _ in lines)
    logarithmic = high / low > 30  # a linear abscissa leaves small eigenvalues no room
    if eigenvalues is not None:
        if np.ndim(eigenvalues) not in (1, 2):
            raise InvalidArgument("eigenvalues", eigenvalues, "an array (p,) or (draws, p)")
        values = np.ravel(eigenvalues)
        edges = np.geomspace(low, high, 61) if logarithmic else np.linspace(low, high, 61)
        count, _ = np.histogram(values, edges)
        width = np.diff(np.log(edges)) if logarithmic else np.diff(edges)
        height = count / values.size / width
        ax.stairs(height, edges, fill=True, color="0.8", label="simulated eigenvalues")
    for i, (x, y) in enumerate(lines):
        ax.plot(x, x * y if logarithmic else y, color=hue(0), label="" if i else "theory")
    if logarithmic:
        ax.set_xscale("log")
    from_zero(ax)
    p = None if eigenvalues is None else np.shape(eigenvalues)[-1]
    beyond = [x for x in spectrum.outliers_at(p) if high < x and (logarithmic or x < 3 * high)]
    if beyond:
        style: dict[str, Any] = {"color": hue(0), "markersize": 7, "clip_on": False}
        ax.plot(beyond, [0] * len(beyond), "v", label="outlier, theory", **style)
    ordinate = r"density in $\log x$, $x\,\varrho(x)$" if logarithmic else r"density $\varrho(x)$"
    abscissa = r"eigenvalue $x$ of $\Phi^\top\Phi/n$"
    return finish(ax, abscissa, ordinate, spectrum.settings, spectrum.notes)


def _to_edges(spectrum: Any, interval: int, x: Array, y: Array) -> tuple[Array, Array]:
    """The density y at x with its zeros at the sharp ends of an interval."""
    ends = spectrum.edges[interval][spectrum.sharp[interval]]
    x, y = np.append(x, ends), np.append(y, np.zeros(ends.size))
    order = np.argsort(x)
    return x[order], y[order]
