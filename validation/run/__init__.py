"""Monte Carlo: many draws of one experiment, in parallel, stored as they finish."""

from solvers.executors import WorkerDied

from . import store
from .cells import Simulated, draw_layer
from .monte_carlo import DEFAULT_MEMORY, simulate
from .simulation import Simulation, rows_of, standard_error
from .store import StoreError
