"""The saddle point of ridge regression: responses, signal, overlaps, errors.  docs/theory.md 4"""

from . import ridge
from .damped import solve_damped
from .group_pencil import GroupBatch, GroupRows
from .overlaps import Conjugates, Errors, Overlaps
from .pencil import Batch, resolvent
from .residual import check, relative_change, solve_and_check
from .responses import Responses, Susceptibility
from .ridge import RESPONSE_TOLERANCE, responses_of
from .rows import Rows
from .signal import Signal, newton_system, penalty_on_m, psi_from_conjugates, theta_from_p_hat

__all__ = [
    "RESPONSE_TOLERANCE",
    "Batch",
    "Conjugates",
    "Errors",
    "GroupBatch",
    "GroupRows",
    "Overlaps",
    "Responses",
    "Rows",
    "Signal",
    "Susceptibility",
    "check",
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
