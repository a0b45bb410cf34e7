"""The ``replica`` command."""

import sys
from typing import Annotated

import typer

from .. import __version__
from .bounds import bounds
from .common import run
from .curve import curve
from .explore import explore
from .optimum import optimum
from .spectrum import spectrum
from .staircase import staircase

app = typer.Typer(
    name="replica",
    add_completion=False,
    no_args_is_help=True,
    help="Exact theory of two-layer networks after giant gradient steps.",
)


@app.callback(invoke_without_command=True)
def print_version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Print the version and leave, where that is asked for before any command."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


for command in (curve, bounds, optimum, spectrum, staircase, explore):
    app.command()(command)


def main() -> None:
    """Entry point of ``replica``."""
    sys.exit(run(app))
