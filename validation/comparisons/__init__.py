"""Simulation beside theory."""

from .comparing import compare, ladder
from .comparison import Comparison
from .extrapolation import Extrapolation, extrapolate
from .grid import compare_grid
from .neurons import AlignmentComparison, compare_alignment, first_step
from .theory import Theory, theory_of

__all__ = [
    "AlignmentComparison",
    "Comparison",
    "Extrapolation",
    "Theory",
    "compare",
    "compare_alignment",
    "compare_grid",
    "extrapolate",
    "first_step",
    "ladder",
    "theory_of",
]
