"""The saddle point of ridge regression: responses, signal, overlaps, errors.  docs/theory.md 4"""

from . import ridge
from .damped import solve_damped
from .overlaps import Conjugates, Errors, Overlaps
from .pencil import Rows
from .residual import check, relative_change, solve_and_check
from .responses import Responses, Susceptibility
from .ridge import RESPONSE_TOLERANCE, responses_of
from .rows import TabulatedRows
from .signal import Signal, newton_system, penalty_on_m, psi_from_conjugates, theta_from_p_hat
from .special import norm_variance

__all__ = [
    "RESPONSE_TOLERANCE",
    "Conjugates",
    "Errors",
    "Overlaps",
    "Responses",
    "Rows",
    "Signal",
    "Susceptibility",
    "TabulatedRows",
    "check",
    "newton_system",
    "norm_variance",
    "penalty_on_m",
    "psi_from_conjugates",
    "relative_change",
    "responses_of",
    "ridge",
    "solve_and_check",
    "solve_damped",
    "theta_from_p_hat",
]
