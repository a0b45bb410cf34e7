"""Monte Carlo: many draws of one experiment, in parallel, stored as they finish."""

from . import store
from .cells import Simulated
from .monte_carlo import MEMORY, simulate
from .simulation import Simulation

__all__ = [
    "MEMORY",
    "Simulated",
    "Simulation",
    "simulate",
    "store",
]
