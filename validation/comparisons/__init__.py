"""Simulation beside theory."""

from .checks import Extrapolation, extrapolate
from .comparing import compare, compare_grid, ladder
from .comparison import AlignmentComparison, Comparison, compare_alignment, first_step
from .theory import Theory, theory_of
