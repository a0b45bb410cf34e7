"""The command ``replica``, and what ``replica-validate`` is made of, too."""

from .common import DATASETS, TABLES, application, command, file_name, run, written
from .main import main
from .options import SRF_FIELDS, Options, Request, parse_request, single_number
from .output import Output, answer, progress, save_figure, save_points, say
from .spectrum import leave_unless_converged, spectrum_document

__all__ = [
    "DATASETS",
    "SRF_FIELDS",
    "TABLES",
    "Options",
    "Output",
    "Request",
    "answer",
    "application",
    "command",
    "file_name",
    "leave_unless_converged",
    "main",
    "parse_request",
    "progress",
    "run",
    "save_figure",
    "save_points",
    "say",
    "single_number",
    "spectrum_document",
    "written",
]
