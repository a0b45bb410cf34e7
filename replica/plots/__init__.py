"""Figures of results: functions that take and return a matplotlib Axes."""

from .bounds import plot_bounds, plot_family, plot_functions, plot_learned
from .curve import LABELS, axes, finish, is_logarithmic, plot_curve, plot_staircase
from .spectrum import plot_spectrum

__all__ = [
    "LABELS",
    "axes",
    "finish",
    "is_logarithmic",
    "plot_bounds",
    "plot_curve",
    "plot_family",
    "plot_functions",
    "plot_learned",
    "plot_spectrum",
    "plot_staircase",
]
