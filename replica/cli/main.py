"""The ``replica`` command."""

import sys

from .bounds import bounds
from .common import application, run
from .curve import curve
from .explore import explore
from .init import init
from .optimum import optimum
from .plan import plan
from .readout import readout
from .spectrum import spectrum
from .staircase import staircase

app = application(
    "replica",
    "Exact theory of two-layer networks after giant gradient steps.\n\n"
    "replica COMMAND --help has the options of a command; replica-validate simulates.",
    (curve, readout, bounds, optimum, plan, spectrum, staircase, explore, init),
)


def main() -> None:
    """Entry point of ``replica``."""
    sys.exit(run(app))
