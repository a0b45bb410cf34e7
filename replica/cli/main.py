"""The ``replica`` command, and ``replica init``: a commented problem file to begin with."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidArgument
from ..files import check_writable
from .best import bounds, optimum, plan
from .command_runner import application, file_name, run
from .curve import curve
from .explore import explore
from .option_table import OPTION_FILE
from .printing import save
from .readout import readout
from .spectrum import spectrum, staircase


def init(
    path: Annotated[Path, typer.Argument(parser=file_name, metavar="PATH", help="The new file.")],
) -> None:
    """Write a commented problem file, problem.toml say, to be changed and read by --config.

    Examples
    --------
    replica init problem.toml

    replica curve --config problem.toml --plot curve.png
    """
    check_writable("the new file", path, (".toml",))
    if path.exists():
        raise InvalidArgument("the new file", str(path), "one that is not there yet")
    save(path, OPTION_FILE.encode())


app = application(
    "replica",
    "Exact theory of two-layer networks after giant gradient steps.\n\n"
    "replica COMMAND --help has the options of a command; replica-validate simulates.",
    (curve, readout, bounds, optimum, plan, spectrum, staircase, explore, init),
)


def main() -> None:
    """Entry point of ``replica``."""
    sys.exit(run(app))
