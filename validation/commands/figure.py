"""``replica-validate figure``: a figure of the documentation or of a paper."""

from pathlib import Path
from typing import Annotated

import typer

from replica import command_line as common

from ..figures import NAMES
from ..figures import figure as find_figure


def figure(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.")],
    plot: Annotated[Path, typer.Option(help="The picture: .png, .pdf or .svg.")],
    out: Annotated[Path | None, typer.Option(help="Its data: .json.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small and fast.")] = False,
) -> None:
    """A figure of the documentation or of a paper, with the data it is drawn from."""
    module = find_figure(name)
    common.check_outputs(out, plot, (".json",))
    with common.progress("curves") as advance:
        data = module.data(quick, advance)
    if out is not None:
        common.save_points(out, data)
    common.save_figure(plot, module.draw(data))
