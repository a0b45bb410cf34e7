"""The saddle point of ridge regression: responses, signal, overlaps and errors."""

from . import ridge
from .group_covariance import GroupCovariance, group_covariance
from .overlaps import Conjugates, Errors, Overlaps
from .responses import Responses, Susceptibility
from .ridge import TOLERANCE, responses_of
from .row_covariance import FirstBatch, RowCovariance
from .signal import Signal, newton_system, penalty_on_m, rest_of_target, theta_of_rest

__all__ = [
    "TOLERANCE",
    "Conjugates",
    "Errors",
    "FirstBatch",
    "GroupCovariance",
    "Overlaps",
    "Responses",
    "RowCovariance",
    "Signal",
    "Susceptibility",
    "group_covariance",
    "newton_system",
    "penalty_on_m",
    "responses_of",
    "rest_of_target",
    "ridge",
    "theta_of_rest",
]
