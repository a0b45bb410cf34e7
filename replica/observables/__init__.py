"""Observables of the theory: errors at a point or on a grid, bounds, optima, derivatives."""

from .axes import data_set, grid_axes, models_on_grid, places_on_grid, scalar_arguments
from .best_bounds import BestBounds, best_bounds
from .bounds import Bounds, BoundsOverEta, bounds
from .calibration import Calibration, calibration
from .evaluate_model import BIAS_SCAN, LABELS_NEEDED
from .gradient import Gradient, gradient
from .grid import Grid, solve_grid
from .learnability import learnability
from .learned_function import LearnedFunction, learned_function
from .learning_curve import BEST, at_best, learning_curve
from .optimum import SEARCHED_RANGES, LocalMinimum, Optimum, optimal_eta, optimal_lambda
from .readout_curves import (
    UNCENTRED,
    beyond,
    classes_of,
    has_classes,
    layer_curve,
    notes_of,
    notes_on,
    refuse_limit_options,
)
from .sample_allocation import SECONDS_A_USE, SampleAllocation, sample_allocation
from .samples_needed import BAND_TEXT, SamplesNeeded, samples_needed, wanted_error
from .solution import Solution, solve, solve_layer
from .theory_changes import (
    NOTED_SHIFT,
    NOTHING_LEARNED,
    few_products_note,
    headline_error,
    price_note,
    ratio_note,
)
