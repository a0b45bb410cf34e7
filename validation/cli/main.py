"""The ``replica-validate`` command: finite-size experiments, alone or beside the theory.

Exit status as for ``replica``; 1 also where a comparison failed.
"""

import sys

from replica.cli import application, run

from .commands import alignment, compare, simulate, spectrum
from .figure import figure

app = application(
    "replica-validate",
    "Finite-size simulations, and their comparison with the theory.\n\n"
    "replica-validate COMMAND --help has the options of a command; replica is the theory alone.",
    (compare, simulate, alignment, spectrum, figure),
)


def main() -> None:
    """Entry point of ``replica-validate``."""
    sys.exit(run(app))
