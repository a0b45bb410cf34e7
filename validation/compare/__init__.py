"""Simulation beside theory."""

from .alignment import alignment, compare_alignment, spike
from .compare import Comparison, compare
from .ladder import Ladder, ladder
from .learned import measure
from .plotting import BARS, dense, plot_comparison
from .single_step import initial_layer, single_step
from .spectrum import eigenvalues
from .theory import theory_of

__all__ = [
    "BARS",
    "Comparison",
    "Ladder",
    "alignment",
    "compare",
    "compare_alignment",
    "dense",
    "eigenvalues",
    "initial_layer",
    "ladder",
    "measure",
    "plot_comparison",
    "single_step",
    "spike",
    "theory_of",
]
