"""The readout of a given first layer, and of given features.  docs/theory.md 20"""

from .evaluate_readout import (
    TOLERANCE,
    Given,
    GivenPoint,
    check_memory,
    errors_at,
    evaluate_readout,
    has_classes,
)
from .first_layer import FirstLayer
from .gaussian import FeatureMoments
from .sample import MOST_ROWS, ROWS_PER_FEATURE, FeatureSample
from .solve_point import equations_of, solve_point
from .strata import Posterior, Strata
