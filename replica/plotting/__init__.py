"""Figures of results: functions that draw into a matplotlib Axes, or those of a new figure, and
return it."""

from .axes import LABELS, axes, finish, is_logarithmic
from .bounds import plot_bounds, plot_family, plot_functions, plot_learned
from .curve import plot_curve
from .spectrum import plot_spectrum
from .staircase import plot_staircase

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
