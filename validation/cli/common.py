"""What the commands of ``replica-validate`` share, besides what ``replica`` shares."""

from pathlib import Path
from typing import Annotated, Any

import typer

from replica.cli import Output, Request, say
from replica.problem import Problem

from ..run import Simulated


def drawn(help_text: str) -> Any:
    """An option of the simulation."""
    return typer.Option(help=help_text, rich_help_panel="The simulation")


Dimension = Annotated[int, drawn("Input dimension d of the simulation.")]
Seeds = Annotated[int, drawn("Independent draws of each point, 2 or more.")]
Rng = Annotated[int | None, drawn("Seed of the random numbers.")]
What = Annotated[
    Simulated,
    drawn(
        "What is drawn: the network itself, the sRF its step makes, or the conditional Gaussian "
        "model."
    ),
]
Store = Annotated[
    Path | None,
    drawn("Folder that keeps every finished draw: the same line goes on from there."),
]
Shard = Annotated[
    str | None,
    drawn("i/N: only this part of the seeds, into --store; without it, join them."),
]
Key = Annotated[
    str | None,
    drawn(
        "Tells a compiled function from an edited one in --store: any text that you change when "
        "it changes."
    ),
]
Workers = Annotated[int | None, drawn("Processes, of one thread each (what pays, unless given).")]
Memory = Annotated[str, drawn("Limit of all processes together, such as 500MB.")]
Device = Annotated[str, drawn("cpu, or cuda (needs torch).")]

STORED_RNG = 0  # of simulations that are kept and were given no seed


def seed_of(rng: int | None, store: Path | None) -> int | None:
    """The seed of a simulation: with a store a fixed one, so that the same line finds its cells."""
    if rng is None and store is not None:
        say(f"note: --rng {STORED_RNG} is taken, since a store is found again by its seed")
        return STORED_RNG
    return rng


def show_points(document: dict[str, Any], output: Output) -> None:
    """Write the points of a document to standard output as a table: first what tells most of
    each, the test error and the scores."""
    parts = ("theory_", "simulated_", "stderr_")
    names = list(document["points"][0])
    last = [name for name in names if name.startswith(parts) and not name.endswith("_test")]
    output.table(document["points"], [name for name in names if name not in last] + last)


def single(asked: Request) -> tuple[Problem, float | None]:
    """The one problem to simulate, and its beta where that is not a field of it.

    Raises
    ------
    InvalidArgument
        If a model field is a grid.
    """
    asked.refuse_grids()
    return without_grids(asked)


def without_grids(asked: Request) -> tuple[Problem, float | None]:
    """The problem with the first value of every grid, and its beta where that is not a field."""
    problem = asked.problem
    if problem.rows is not None:  # what is drawn is the network of its step
        return problem.rows.step, problem.at_width(None).beta
    return problem, float(asked.grids["beta"][0]) if problem.schedule else None
