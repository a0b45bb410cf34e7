"""Simulation beside theory."""

from .neurons import AlignmentComparison, compare_alignment, first_step
from .one_size import Comparison, compare
from .several_sizes import Extrapolation, Ladder, extrapolate, ladder
from .theory import Theory, theory_of

__all__ = [
    "AlignmentComparison",
    "Comparison",
    "Extrapolation",
    "Ladder",
    "Theory",
    "compare",
    "compare_alignment",
    "extrapolate",
    "first_step",
    "ladder",
    "theory_of",
]
