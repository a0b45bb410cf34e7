"""Figures of results: functions that draw into a matplotlib Axes, a new one unless given, and
return it."""

from .comparison import LIMIT, plot_comparison
from .curve import AT_END, abscissa_of, in_words, plot_curve, plot_optima
from .figure_elements import (
    BARS,
    REFERENCE,
    add_legend,
    axes,
    check_latex,
    colours,
    draw_band,
    draw_noted,
    draw_points,
    finish,
    letter_panels,
    marks_of,
    nudged,
    picture,
    spaced,
)
from .heat_map import draw_heat_map, mark_place, mark_smallest, plot_heat_map, with_all_axes
from .names import ERROR_LABELS, LABELS, class_names, error_drawn, setting, settings, symbol
from .results import (
    drawn_kappa,
    plot_allocation,
    plot_bounds,
    plot_confusion,
    plot_family,
    plot_functions,
    plot_learned,
    plot_spectrum,
    plot_staircase,
)
from .style import COLOURS, style

# Functions for users; others are shared with packages above.
__all__ = [
    "plot_allocation",
    "plot_bounds",
    "plot_comparison",
    "plot_confusion",
    "plot_curve",
    "plot_family",
    "plot_functions",
    "plot_heat_map",
    "plot_learned",
    "plot_optima",
    "plot_spectrum",
    "plot_staircase",
    "style",
]
