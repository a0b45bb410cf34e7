"""The command ``replica``."""

from . import common
from .common import run
from .main import main
from .options import SRF_FIELDS, Options, Request, parse_request, single_number
from .spectrum import TimeLimit, leave_unless_converged, spectrum_document

__all__ = [
    "SRF_FIELDS",
    "Options",
    "Request",
    "TimeLimit",
    "common",
    "leave_unless_converged",
    "main",
    "parse_request",
    "run",
    "single_number",
    "spectrum_document",
]
