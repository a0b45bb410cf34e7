"""The command ``replica``."""

from . import common
from .common import one_number, run
from .main import main
from .options import SRF, ProblemOptions, Request, request
from .spectrum import leave_unless_converged, spectrum_document

__all__ = [
    "SRF",
    "ProblemOptions",
    "Request",
    "common",
    "leave_unless_converged",
    "main",
    "one_number",
    "request",
    "run",
    "spectrum_document",
]
