"""Finite-size experiments that check the theory."""

from .compare import Comparison, compare
from .draw.features import Instance, draw, trajectory
from .ladder import Ladder, ladder
from .monte_carlo import simulate
from .simulation import Simulation

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
