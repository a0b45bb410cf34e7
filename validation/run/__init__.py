"""Monte Carlo: many draws of one experiment, in parallel, stored as they finish."""

from . import store
from .cells import Simulated
from .monte_carlo import DEFAULT_MEMORY, simulate
from .simulation import Simulation, standard_error

__all__ = [
    "DEFAULT_MEMORY",
    "Simulated",
    "Simulation",
    "simulate",
    "standard_error",
    "store",
]
