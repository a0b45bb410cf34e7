"""What is asked of the theory: errors at a point or on a grid, bounds, optima, derivatives."""

from . import solution
from .bounds import Bounds, best_bounds, bounds
from .calibration import Calibration, calibration
from .gradient import gradient
from .learned import LearnedFunction, learned_function
from .learning_curve import Grid, learning_curve, models_on_grid, sweep
from .optimum import Optimum, optimal_eta, optimal_lambda
from .solution import Solution, solve
from .trained_bias import RANGE

__all__ = [
    "RANGE",
    "Bounds",
    "Calibration",
    "Grid",
    "LearnedFunction",
    "Optimum",
    "Solution",
    "best_bounds",
    "bounds",
    "calibration",
    "gradient",
    "learned_function",
    "learning_curve",
    "models_on_grid",
    "optimal_eta",
    "optimal_lambda",
    "solution",
    "solve",
    "sweep",
]
