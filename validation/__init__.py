"""Finite-size experiments that check the theory."""

from .compare import Comparison, compare
from .features import Instance, draw, trajectory
from .monte_carlo import Simulation, simulate

__all__ = ["Comparison", "Instance", "Simulation", "compare", "draw", "simulate", "trajectory"]
