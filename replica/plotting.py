"""Figures of results: functions that draw into the Axes ``ax``, or those of a new figure where it
is left out, and return it.  ``replica.plots`` is where they are made."""

from .plots import (
    plot_bounds,
    plot_curve,
    plot_family,
    plot_functions,
    plot_learned,
    plot_spectrum,
    plot_staircase,
)

__all__ = [
    "plot_bounds",
    "plot_curve",
    "plot_family",
    "plot_functions",
    "plot_learned",
    "plot_spectrum",
    "plot_staircase",
]
