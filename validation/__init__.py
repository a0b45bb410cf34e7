"""Finite-size experiments that check the theory."""

from .compare import Comparison, compare
from .draw.features import Instance, draw, trajectory
from .ladder import Ladder, ladder
from .run.monte_carlo import simulate
from .run.simulation import Simulation

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
