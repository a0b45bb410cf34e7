"""Finite-size experiments that check the theory."""

from .compare.compare import Comparison, compare
from .compare.ladder import Ladder, ladder
from .draw.features import Instance, draw, trajectory
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
