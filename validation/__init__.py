"""Finite-size experiments that check the theory."""

from . import mixtures as mixtures
from .comparisons import Comparison, compare, ladder
from .draws import Instance, draw, first_layer, trajectory
from .run import Simulation, simulate

__all__ = [
    "Comparison",
    "Instance",
    "Simulation",
    "compare",
    "draw",
    "first_layer",
    "ladder",
    "simulate",
    "trajectory",
]


def __dir__() -> list[str]:
    """Names that completion offers: the public ones."""
    return [*__all__, "mixtures"]
