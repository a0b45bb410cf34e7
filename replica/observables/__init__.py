"""What is asked of the theory: errors at a point or on a grid, bounds, optima, derivatives."""

from . import solution
from .bounds import BestBounds, Bounds, BoundsOverEta, best_bounds, bounds
from .calibration import Calibration, calibration
from .gradient import Gradient, gradient
from .learned import LearnedFunction, learned_function
from .learning_curve import Grid, learning_curve, sweep, variants
from .optimum import LocalMinimum, Optimum, optimal_eta, optimal_lambda
from .solution import Solution, solve
from .trained_bias import RANGE

__all__ = [
    "RANGE",
    "BestBounds",
    "Bounds",
    "BoundsOverEta",
    "Calibration",
    "Gradient",
    "Grid",
    "LearnedFunction",
    "LocalMinimum",
    "Optimum",
    "Solution",
    "best_bounds",
    "bounds",
    "calibration",
    "gradient",
    "learned_function",
    "learning_curve",
    "optimal_eta",
    "optimal_lambda",
    "solution",
    "solve",
    "sweep",
    "variants",
]
