"""Simulation beside theory."""

from .agreement_checks import Extrapolation, extrapolate
from .compare_alignment import AlignmentComparison, compare_alignment, first_step
from .compare_simulations import compare, compare_grid, ladder
from .comparison_results import Comparison
from .theory import Theory, theory_of
