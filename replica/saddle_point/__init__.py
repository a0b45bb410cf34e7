"""The saddle point of ridge regression: responses, signal, overlaps, errors.  docs/theory.md 4"""

from . import ridge
from .damped import solve_damped
from .group_covariance import GroupCovariance, group_covariance
from .overlaps import Conjugates, Errors, Overlaps
from .pencil import Batch, resolvent
from .residual import check, relative_change, solve_and_check
from .responses import Responses, Susceptibility
from .ridge import RESPONSE_TOLERANCE, responses_of
from .row_covariance import FirstBatch, RowCovariance
from .rows import Rows
from .signal import Signal, newton_system, penalty_on_m, psi_from_conjugates, theta_from_p_hat

__all__ = [
    "RESPONSE_TOLERANCE",
    "Batch",
    "Conjugates",
    "Errors",
    "FirstBatch",
    "GroupCovariance",
    "Overlaps",
    "Responses",
    "RowCovariance",
    "Rows",
    "Signal",
    "Susceptibility",
    "check",
    "group_covariance",
    "newton_system",
    "penalty_on_m",
    "psi_from_conjugates",
    "relative_change",
    "resolvent",
    "responses_of",
    "ridge",
    "solve_and_check",
    "solve_damped",
    "theta_from_p_hat",
]
