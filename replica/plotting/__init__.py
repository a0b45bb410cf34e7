"""Figures of results: functions that draw into a matplotlib Axes, or those of a new figure, and
return it."""

from .axes import (
    BARS,
    COLOURS,
    add_legend,
    axes,
    colours,
    draw_points,
    finish,
    is_logarithmic,
    letter_panels,
    residual_panel,
    spaced,
)
from .bounds import plot_bounds, plot_family, plot_functions, plot_learned
from .comparison import plot_comparison
from .curve import plot_curve
from .heat_map import draw_heat_map, mark_optimum, plot_heat_map
from .names import ERROR_LABELS, LABELS, setting
from .spectrum import plot_spectrum
from .staircase import plot_staircase

__all__ = [
    "BARS",
    "COLOURS",
    "ERROR_LABELS",
    "LABELS",
    "add_legend",
    "axes",
    "colours",
    "draw_heat_map",
    "draw_points",
    "finish",
    "is_logarithmic",
    "letter_panels",
    "mark_optimum",
    "plot_bounds",
    "plot_comparison",
    "plot_curve",
    "plot_family",
    "plot_functions",
    "plot_heat_map",
    "plot_learned",
    "plot_spectrum",
    "plot_staircase",
    "residual_panel",
    "setting",
    "spaced",
]
