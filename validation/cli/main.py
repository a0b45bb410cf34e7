"""The ``replica-validate`` command: finite-size experiments, alone or beside the theory.

Exit status as for ``replica``; 1 also where a comparison failed.
"""

import sys

import typer

from replica.cli import print_version, run

from .alignment import alignment
from .compare import compare
from .figure import figure
from .simulate import simulate
from .spectrum import spectrum

app = typer.Typer(
    name="replica-validate",
    add_completion=False,
    no_args_is_help=True,
    help="Finite-size simulations, and their comparison with the theory.",
)
app.callback(invoke_without_command=True)(print_version)
for command in (compare, simulate, alignment, spectrum, figure):
    app.command()(command)


def main() -> None:
    """Entry point of ``replica-validate``."""
    sys.exit(run(app))
