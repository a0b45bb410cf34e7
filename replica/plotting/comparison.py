"""The figure of a comparison: theory as lines, simulation as points with error bars, and below
them how far the points are from the lines."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .axes import BARS, REFERENCE, axes, draw_points, from_zero, nudged, panel_below, set_scale
from .curve import (
    KINDS,
    STYLES,
    Line,
    abscissa_of,
    draw_line,
    error_drawn,
    finish_lines,
    label_kinds,
    lines_of,
)
from .names import ERROR_LABELS

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

MARKERS: dict[str, dict[str, Any]] = {"train_error": {"fmt": "s", "markerfacecolor": "white"}}
THIN = (0.8, 0.4)  # widths of the lines of other theories


def plot_comparison(
    points: "xarray.Dataset",
    theory: "xarray.Dataset | None" = None,
    ax: "Axes | None" = None,
    *,
    beside: "Mapping[str, xarray.Dataset] | None" = None,
    error: str | None = None,
    simulated: str = "simulated",
) -> "Axes":
    """Simulated errors along the longest dimension, each set of them on the line of its theory.

    Parameters
    ----------
    points : xarray.Dataset
        Means simulated_<name> and standard errors stderr_<name>, with the theory at the same
        points, theory_<name>, if their differences are to be drawn; <name> is test and train, or
        classification_error.  As :meth:`~validation.Comparison.dataset` of a comparison has them;
        any parameter may be a dimension.
    theory : xarray.Dataset, optional
        As returned by :func:`replica.learning_curve`, over the same dimensions; denser along the
        longest.
    ax : matplotlib Axes, optional
        Where to draw; its lower quarter is cut off for the differences in standard errors, over a
        band of two.
    beside : dict of label -> xarray.Dataset, optional
        Other theories, drawn as thinner lines: the sRF's, the limit d -> inf.
    error : str, optional
        test_error, with the training error beside it, or classification_error, which is drawn
        unless asked otherwise where labels are +-1.
    simulated : str
        What the points are, for the legend.

    Examples
    --------
    >>> from replica import SpikedRandomFeatures, learning_curve
    >>> from replica.plotting import plot_comparison
    >>> from validation import compare
    >>> model = SpikedRandomFeatures(student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97)
    >>> report = compare(model, alpha=[0.5, 1, 2], lam=0.1, dimension=60, seeds=3, rng=0)
    >>> theory = learning_curve(model, alpha=[0.3, 0.5, 1, 2, 3], lam=0.1)
    >>> ax = plot_comparison(report.dataset(), theory)
    """
    ax = axes(ax)
    name = error_drawn([one for one in ERROR_LABELS if f"simulated_{_short(one)}" in points], error)
    kinds = list(STYLES) if name == "test_error" else [name]
    abscissa = abscissa_of(points, f"simulated_{_short(name)}")
    lines = lines_of(points, f"simulated_{_short(name)}", abscissa)
    below = panel_below(ax) if f"theory_{_short(name)}" in points else None
    others = dict(beside or {})
    for line in lines:
        for kind in kinds:
            if theory is not None:
                label = line.label if kind == name else ""
                draw_line(ax, theory, abscissa, line, kind, label=label)
            for width, other in zip(THIN, others.values(), strict=False):
                draw_line(ax, other, abscissa, line, kind, linewidth=width)
            at, short = points.sel(line.at), _short(kind)
            x, mean, stderr = (
                at[one] for one in (abscissa, f"simulated_{short}", f"stderr_{short}")
            )
            draw_points(ax, x, mean, stderr, color=line.colour, **MARKERS.get(kind, {}))
    set_scale(ax, points[abscissa].values)
    from_zero(ax)
    if below is not None:
        _draw_differences(below, points, abscissa, lines, kinds)
    if theory is not None:
        label_kinds(ax, lines, kinds, "theory")
    style: dict[str, Any] = {"color": "0.3" if len(lines) > 1 else lines[0].colour}
    for width, label in zip(THIN, others, strict=False):
        ax.plot([], [], linewidth=width, label=label, **style)
    for kind in kinds:
        label = f"{KINDS.get(kind, ERROR_LABELS[kind])}, {simulated} (±{BARS} s.e.)"
        draw_points(ax, [], [], [], label=label, **style, **MARKERS.get(kind, {}))
    finish_lines(ax, points, lines, abscissa, kinds)
    if below is not None:
        below.set_xlabel(ax.get_xlabel())
        ax.set_xlabel("")
    return ax


def _short(name: str) -> str:
    """The name of an error in columns of simulations: test and train for short."""
    return {"test_error": "test", "train_error": "train"}.get(name, name)


def _draw_differences(
    ax: "Axes", points: "xarray.Dataset", abscissa: str, lines: Sequence[Line], kinds: Sequence[str]
) -> None:
    """Differences of the points from the theory in standard errors, side by side."""
    sets = [(line, kind) for line in lines for kind in kinds]
    reach = [BARS]
    for i, (line, kind) in enumerate(sets):
        at, name = points.sel(line.at), _short(kind)
        off = (at[f"simulated_{name}"] - at[f"theory_{name}"]).values
        with np.errstate(divide="ignore", invalid="ignore"):  # a constant target has stderr 0
            z = off / at[f"stderr_{name}"].values
        x = nudged(at[abscissa].values, i - (len(sets) - 1) / 2)
        style = {"fmt": "o", "markersize": 4, "color": line.colour} | MARKERS.get(kind, {})
        ax.plot(x, z, style.pop("fmt"), **style)
        reach += np.abs(z[np.isfinite(z)]).tolist()
    ax.axhline(0, **REFERENCE)
    ax.axhspan(-BARS, BARS, color="0.93", zorder=0, linewidth=0)
    ax.set_ylim(-1.2 * max(reach), 1.2 * max(reach))
    ax.set_ylabel("off by (s.e.)")
