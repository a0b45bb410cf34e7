"""Finite-size experiments that check the theory."""

from .compare import Comparison, Ladder, compare, ladder
from .draw import Instance, draw, trajectory
from .run import Simulation, simulate

__all__ = [
    "Comparison",
    "Instance",
    "Ladder",
    "Simulation",
    "compare",
    "draw",
    "ladder",
    "simulate",
    "trajectory",
]
