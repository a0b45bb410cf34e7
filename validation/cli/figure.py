"""``replica-validate figure``: a figure of the documentation or of a paper."""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from replica.cli import Output, answer, progress, say, written
from replica.errors import InvalidArgument

from ..figures import PANELS, described, seconds
from ..figures import figure as find_figure

PAPERS = {  # by what stands before the slash
    "cui": "Cui et al., Asymptotics of feature learning in two-layer networks (arXiv:2402.04980)",
    "dandi": "Dandi et al., How two-layer neural networks learn (arXiv:2305.18270)",
    "mixtures": "Demir and Doğan, inputs from Gaussian mixtures (arXiv:2503.00856)",
    "": "Of this library's documentation",
}


def figure(
    name: Annotated[str, typer.Argument(help="One of those that --list names.")] = "",
    plot: Annotated[Path | None, written("The picture: .png, .pdf or .svg.")] = None,
    out: Annotated[
        Path | None, written("Its data: .json.  Beside the picture, for a panel of a family.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small and fast: 30 seconds at most.")
    ] = False,
    images: Annotated[
        str, typer.Option(help="For mixtures/3: a folder of IDX files, or an NPZ file.")
    ] = "",
    known: Annotated[bool, typer.Option("--list", help="What there is, a line each.")] = False,
) -> None:
    """A figure of the documentation or of a paper, with the data it is drawn from.

    A panel of a family keeps what it has computed in a folder beside the picture, .cells, and
    goes on from there when it was stopped.

    Examples
    --------
    replica-validate figure --list

    replica-validate figure readout-laws --quick --plot readout-laws.png
    """
    if known:
        answer(by_paper(described()))
        return
    module = find_figure(name)
    if plot is None:
        raise InvalidArgument("plot", None, "given: the file of the picture")
    if images and name not in PANELS:
        raise InvalidArgument("images", images, "left out: it is for mixtures/3")
    compute = module.data
    if name in PANELS:
        panel = name.partition("/")[2]
        out = out or plot.with_suffix(".json")
        folder = plot.with_suffix(".cells")
        compute = partial(module.data, panel, folder=folder, images=images)
    output = Output(out, plot)
    output.check((".json",))
    if quick:
        say(f"{name}: about {seconds(name)} s")
    start = time.monotonic()
    with progress("curves") as advance:
        data = compute(quick=quick, progress=advance)
    output.write(data, lambda: None, figure=lambda: module.draw(data))
    say(f"{name}: took {time.monotonic() - start:.0f} s")


def by_paper(texts: Mapping[str, str]) -> str:
    """A line for every figure, under the paper it belongs to."""
    lines = []
    for paper, title in PAPERS.items():
        own = [one for one in texts if one.rpartition("/")[0] == paper]
        lines += [f"{title}:", *(f"  {one:21} {texts[one]}" for one in own)] if own else []
    return "\n".join(lines)
