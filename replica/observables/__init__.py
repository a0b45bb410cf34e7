"""Observables of the theory: errors at a point or on a grid, bounds, optima, derivatives."""

from .bounds import BestBounds, Bounds, BoundsOverEta, best_bounds, bounds
from .calibration import Calibration, calibration
from .evaluate_model import LABELS_NEEDED
from .gradient import Gradient, gradient
from .grid import (
    Grid,
    data_set,
    grid_axes,
    models_on_grid,
    places_on_grid,
    scalar_arguments,
    solve_grid,
)
from .learnability import learnability
from .learned_function import LearnedFunction, learned_function
from .learning_curve import BEST, at_best, learning_curve
from .optimum import SEARCHED_RANGES, LocalMinimum, Optimum, optimal_eta, optimal_lambda
from .readout_curves import (
    UNCENTRED,
    beyond,
    classes_of,
    notes_of,
    notes_on,
    refuse_limit_options,
)
from .sample_allocation import SECONDS_A_USE, SampleAllocation, sample_allocation
from .samples_needed import BAND_TEXT, SamplesNeeded, samples_needed, wanted_error
from .solution import Solution, solve, solve_layer
from .theory_changes import (
    CHANGES,
    NOTED_SHIFT,
    NOTHING_LEARNED,
    far_below_limit_note,
    few_products_note,
    headline_error,
    large_penalty_note,
    price_note,
    ratio_note,
    shift_text,
)
