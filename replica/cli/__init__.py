"""The command ``replica``, and the parts of it that ``replica-validate`` shares."""

from .command_runner import (
    DATASETS,
    Interrupted,
    TimeLimit,
    Tolerance,
    application,
    command,
    option,
    run,
    written,
)
from .explore import Guard
from .given import asks_for_given, parse_given
from .main import main
from .notes import note_worse_than_zero
from .option_table import (
    HELP,
    SRF_FIELDS,
    Options,
    parse_grid,
    parse_law,
    parse_steps,
    single_number,
)
from .options import Request, parse_request
from .printing import Output, answer, progress, say, with_options
from .spectrum import spectrum_document, warn_unless_converged
