"""``replica init``: a commented problem file to begin with."""

from pathlib import Path
from typing import Annotated

import typer

from ..documents import check_writable
from ..errors import InvalidArgument
from .common import file_name
from .option_table import TABLE
from .output import save


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
    save(path, TABLE.encode())
