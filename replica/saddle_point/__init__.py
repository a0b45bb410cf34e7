"""Saddle point of ridge regression: responses, signal, overlaps, errors.  docs/theory.md 4"""

from . import ridge
from .correlated import CorrelatedGroup
from .damped import solve_damped
from .local_field import (
    THINNEST_FIELD,
    Field,
    Scores,
    field_at_nodes,
    ridge_errors,
    ridge_scores,
    variance_given_tau,
)
from .one_group import RESPONSE_TOLERANCE
from .one_pass import one_pass
from .overlaps import Conjugates, MeanSquaredErrors, Overlaps, unknown_overlaps
from .pencil import TrainedRows
from .residual import SMALLEST_ERROR, relative_change, solve_and_check, with_residuals
from .responses import LARGEST_MATRIX, Responses, Susceptibility
from .ridge import responses_of
from .rows import TabulatedRows
from .signal import Signal, penalty_on_m
from .special_directions import DELTA, norm_variance
