"""Saddle point of ridge regression: responses, signal, overlaps, errors.  docs/theory.md 4"""

from . import ridge
from .correlated import CorrelatedGroup
from .evaluation import (
    COLUMNS,
    ERRORS,
    Evaluation,
    Points,
    relative_change,
    solve_on_growing_tables,
)
from .linear_pencil import TrainedRows
from .one_pass import one_pass, solve_damped
from .overlaps import (
    THINNEST_FIELD,
    Conjugates,
    Field,
    MeanSquaredErrors,
    Overlaps,
    Scores,
    field_at_nodes,
    ridge_errors,
    ridge_scores,
    unknown_overlaps,
    variance_given_tau,
)
from .responses import LARGEST_MATRIX, RESPONSE_TOLERANCE, Responses, Susceptibility
from .ridge import SMALLEST_ERROR, Signal, responses_of
from .row_covariances import TabulatedRows
from .special_directions import DELTA, norm_variance
