"""``replica-validate figure``: a figure of the documentation or of a paper."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from replica.cli import common
from replica.errors import InvalidArgument

from ..figures import FIGURES, PANELS
from ..figures import figure as find_figure


def figure(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(FIGURES + PANELS)}.")],
    plot: Annotated[
        Path,
        typer.Option(
            help="The picture: .png, .pdf or .svg.", parser=common.file_name, metavar="PATH"
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Its data: .json.  Beside the picture, for a panel of a family.",
            parser=common.file_name,
            metavar="PATH",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small and fast.")] = False,
    images: Annotated[
        str, typer.Option(help="For mixtures/3: a folder of IDX files, or an NPZ file.")
    ] = "",
) -> None:
    """A figure of the documentation or of a paper, with the data it is drawn from.

    A panel of a family keeps what it has computed in a folder beside the picture, .cells, and
    goes on from there when it was stopped.
    """
    module = find_figure(name)
    if images and name not in PANELS:
        raise InvalidArgument("images", images, "left out: it is for mixtures/3")
    compute = module.data
    if name in PANELS:
        panel = name.partition("/")[2]
        out = out or plot.with_suffix(".json")
        folder = plot.with_suffix(".cells")
        compute = partial(module.data, panel, folder=folder, images=images)
    common.check_outputs(out, plot, (".json",))
    with common.progress("curves") as advance:
        data = compute(quick=quick, progress=advance)
    if out is not None:
        common.save_points(out, data)
    common.save_figure(plot, module.draw(data))
