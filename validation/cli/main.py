"""The ``replica-validate`` command: finite-size experiments, alone or beside the theory; and
``replica-validate figure``, a figure of the documentation or of a paper.

Exit status as for ``replica``; 1 also where a comparison failed.
"""

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from replica.cli import Output, answer, application, run, say, written
from replica.errors import InvalidArgument

from ..figures import FIGURES, Run
from ..figures import figure as find_figure
from ..run import store as cells
from .commands import alignment, compare, simulate, spectrum, watched

PAPERS = {  # by what stands before the slash
    "cui": "Cui et al., Asymptotics of feature learning in two-layer networks (arXiv:2402.04980)",
    "dandi": "Dandi et al., How two-layer neural networks learn (arXiv:2305.18270)",
    "mixtures": "Demir and Doğan, inputs from Gaussian mixtures (arXiv:2503.00856)",
    "": "Of this library's documentation",
}


def figure(
    name: Annotated[str, typer.Argument(help="One of those that --list names.")] = "",
    plot: Annotated[Path | None, written("The picture: .png, .pdf, .svg or .eps.")] = None,
    out: Annotated[Path | None, written("Its data: .json.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small and fast: 30 seconds at most.")
    ] = False,
    store: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps what is simulated: the same line goes on from there."),
    ] = None,
    draws: Annotated[
        int | None, typer.Option(min=2, help="For mixtures: of each point, 20 unless given.")
    ] = None,
    images: Annotated[
        str, typer.Option(help="For mixtures/3: a folder of IDX files, or an NPZ file.")
    ] = "",
    known: Annotated[bool, typer.Option("--list", help="What there is, a line each.")] = False,
) -> None:
    """A figure of a paper (cui, dandi, mixtures) or of the documentation.

    Examples
    --------
    replica-validate figure --list

    replica-validate figure cui/2 --quick --plot cui-2.png
    """
    if known:
        answer(by_paper())
        return
    figure_entry = find_figure(name)
    if plot is None:
        raise InvalidArgument("plot", None, "given: the file of the picture")
    mixture_options = {"images": images, "draws": draws}
    for option, typed in mixture_options.items():
        if typed and not name.startswith("mixtures/"):
            raise InvalidArgument(option, typed, "left out: it is for figures of mixtures")
    options: dict[str, Any] = {option: typed for option, typed in mixture_options.items() if typed}
    figure_output = Output(out, plot)
    figure_output.check((".json",))
    if store is not None:
        cells.open_folder(store)
    figure_start = time.monotonic()
    with watched("curves", store) as advance:
        figure_data = figure_entry.values(Run(quick, advance, store), **options)
    figure_output.write(figure_data, lambda: None, figure=lambda: figure_entry.draw(figure_data))
    say(f"{name}: took {time.monotonic() - figure_start:.1f} s")


def by_paper() -> str:
    """A line for every figure, under the paper it belongs to."""
    listed_figures = []
    for paper, title in PAPERS.items():
        names = [name for name in FIGURES if name.rpartition("/")[0] == paper]
        listed_figures += [f"{title}:", *(f"  {name:22} {FIGURES[name].text}" for name in names)]
    return "\n".join(listed_figures)


app = application(
    "replica-validate",
    "Finite-size simulations, and their comparison with the theory.\n\n"
    "replica-validate COMMAND --help has the options of a command; replica is the theory alone.",
    (compare, simulate, alignment, spectrum, figure),
)


def main() -> None:
    """Entry point of ``replica-validate``."""
    sys.exit(run(app))
