"""The saddle point of ridge regression: responses, signal, overlaps, errors.  docs/theory.md 4"""

from . import ridge
from .damped import solve_damped
from .local_field import (
    THINNEST_FIELD,
    Field,
    Scores,
    errors_of_ridge,
    field_on,
    remaining,
    scores_of_ridge,
)
from .one_group import RESPONSE_TOLERANCE, SMALLEST_ERROR
from .overlaps import Conjugates, Errors, Overlaps
from .pencil import Rows
from .residual import check, relative_change, solve_and_check
from .responses import MANY, Responses, Susceptibility
from .ridge import responses_of
from .rows import TabulatedRows
from .signal import Signal, penalty_on_m
from .special import norm_variance
from .sweep import sweep

__all__ = [
    "MANY",
    "RESPONSE_TOLERANCE",
    "SMALLEST_ERROR",
    "THINNEST_FIELD",
    "Conjugates",
    "Errors",
    "Field",
    "Overlaps",
    "Responses",
    "Rows",
    "Scores",
    "Signal",
    "Susceptibility",
    "TabulatedRows",
    "check",
    "errors_of_ridge",
    "field_on",
    "norm_variance",
    "penalty_on_m",
    "relative_change",
    "remaining",
    "responses_of",
    "ridge",
    "scores_of_ridge",
    "solve_and_check",
    "solve_damped",
    "sweep",
]
