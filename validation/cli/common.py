"""What the commands of ``replica-validate`` share, besides what ``replica`` shares."""

from pathlib import Path
from typing import Annotated, Any

import typer

from replica import documents as files
from replica.cli import Request, common
from replica.problem import Problem

from ..run import Simulated

TABLES = (".csv", ".json")

Dimension = Annotated[int, typer.Option(help="Input dimension d of the simulation.")]
Seeds = Annotated[int, typer.Option(help="Independent draws of each point, 2 or more.")]
Rng = Annotated[int | None, typer.Option(help="Seed of the random numbers.")]
What = Annotated[
    Simulated,
    typer.Option(
        help="What is drawn: the network itself, the sRF its step makes, or the conditional "
        "Gaussian model."
    ),
]
Store = Annotated[
    Path | None,
    typer.Option(help="Folder that keeps every finished draw: the same line goes on from there."),
]
Shard = Annotated[
    str | None,
    typer.Option(help="i/N: only this part of the seeds, into --store; without it, join them."),
]
Key = Annotated[
    str | None,
    typer.Option(
        help="Tells a compiled function from an edited one in --store: any text that you change "
        "when it changes."
    ),
]
Workers = Annotated[
    int | None, typer.Option(help="Processes, of one thread each (what pays, unless given).")
]
Memory = Annotated[str, typer.Option(help="Limit of all processes together, such as 500MB.")]
Device = Annotated[str, typer.Option(help="cpu, or cuda (needs torch).")]


def print_document(document: dict[str, Any], as_json: bool) -> None:
    """Write the document to standard output as JSON, or else its points as a table."""
    if as_json:
        common.answer(files.to_json(document))
    else:
        common.print_table(document["points"], list(document["points"][0]))


def single(asked: Request) -> tuple[Problem, float | None]:
    """The one problem to simulate, and its beta where that is not a field of it.

    Raises
    ------
    InvalidArgument
        If a model field is a grid: a comparison is over alpha and lam.
    """
    asked.refuse_grids()
    problem = asked.problem
    if problem.rows is not None:  # what is drawn is the network of its step
        return problem.rows.step, problem.at_width(None).beta
    return problem, float(asked.grids["beta"][0]) if problem.schedule else None
