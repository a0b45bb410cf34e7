"""The saddle point of ridge regression: responses, signal, overlaps, errors.  docs/theory.md 4"""

from . import ridge
from .group_covariance import GroupCovariance, group_covariance
from .overlaps import Conjugates, Errors, Overlaps
from .residual import relative_change, residual
from .responses import Responses, Susceptibility
from .ridge import RESPONSE_TOLERANCE, responses_of
from .row_covariance import FirstBatch, RowCovariance
from .signal import Signal, newton_system, penalty_on_m, psi_from_conjugates, theta_from_p_hat

__all__ = [
    "RESPONSE_TOLERANCE",
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
    "psi_from_conjugates",
    "relative_change",
    "residual",
    "responses_of",
    "ridge",
    "theta_from_p_hat",
]
