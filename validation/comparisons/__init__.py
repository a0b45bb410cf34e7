"""Simulation beside theory."""

from .comparing import compare, ladder
from .comparison import Comparison
from .extrapolation import Extrapolation, extrapolate
from .grid import compare_grid
from .neurons import AlignmentComparison, compare_alignment, first_step
from .theory import Theory, theory_of
