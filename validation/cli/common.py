"""What the commands of ``replica-validate`` share, besides what ``replica`` shares."""

import logging
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from replica.cli import (
    Interrupted,
    Options,
    Output,
    Request,
    asks_for_given,
    option,
    parse_given,
    parse_request,
    progress,
    say,
)
from replica.problem import Problem
from solvers.results import Array

from ..run import DEFAULT_MEMORY, Simulated

drawn = partial(option, panel="The simulation")
DIMENSION = drawn("dimension", int, 500, "Input dimension d of the simulation.")
SEEDS = drawn("seeds", int, 5, "Independent draws of each point, 2 or more.")
RNG = drawn("rng", int | None, None, "Seed of the random numbers.")
SIMULATED = drawn(
    "simulated", Simulated, Simulated.network,
    "What is drawn: the network itself, the sRF its step makes, or the conditional Gaussian model.",
)  # fmt: skip
MONTE_CARLO = (  # what ``validation.simulate`` is told
    drawn("dimension", int | None, None, "Input dimension d (500 unless a layer is given)."),
    SEEDS, RNG, SIMULATED,
    drawn("store", Path | None, None, "Folder that keeps every finished draw: the same line goes "
                                      "on from there."),
    drawn("key", str | None, None, "Tells a function from an edited one in --store where its "
                                   "values cannot: any text that you change with it."),
    drawn("workers", int | None, None, "Processes of one thread (what pays, unless given)."),
    drawn("memory", str, DEFAULT_MEMORY, "Limit of all processes together, such as 500MB."),
    drawn("device", str, "cpu", "cpu, or cuda (needs torch)."),
)  # fmt: skip
STORED_RNG = 0  # of simulations that are kept and were given no seed


def parse_simulation(
    options: Options, told: dict[str, Any], *, on_grids: bool
) -> tuple[Any, dict[str, Any], dict[str, Array]]:
    """What is simulated, with the first value of every grid of its fields; at which points; and
    these grids, of none unless that is allowed.

    A problem's usual dimension is put among what the simulation is ``told``, unless one was typed.
    """
    if asks_for_given(options):
        model, points, loss = parse_given(options)
        if "samples" in points:
            points["samples"] = [int(n) for n in points["samples"]]
        return model, points | {"loss": loss}, {}
    asked = parse_request(options)
    problem, width = first_problem(asked, asked.grids if on_grids else ())
    if told["dimension"] is None:
        told["dimension"] = DIMENSION.default
    at = {"alpha": asked.alpha, "lam": asked.lam, "beta": width, "loss": asked.loss}
    return problem, at, asked.grids


@contextmanager
def drawing(options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The ``options`` of a Monte Carlo, with its progress and, where draws are kept, a seed by
    which they are found again."""
    store, rng = options["store"], options["rng"]
    if rng is None and store is not None:
        say(f"note: --rng {STORED_RNG} is taken, since a store is found again by its seed")
        rng = STORED_RNG
    logging.getLogger("validation.run").setLevel(logging.INFO)  # tells what the store had
    with watched("draws", store) as advance:
        yield {**options, "rng": rng, "progress": advance}


@contextmanager
def watched(what: str, store: Path | None) -> Iterator[Callable[[int, int], None]]:
    """A callback (done, total) that shows progress; an interruption says what is kept."""
    done = total = 0
    with progress(what) as advance:

        def count(*now: int) -> None:
            nonlocal done, total
            done, total = now
            advance(done, total)

        try:
            yield count
        except KeyboardInterrupt:
            kept = f"are kept in {store}: the same command goes on from there"
            if store is None:
                kept = (
                    "were done and none is kept: with --store FOLDER all that is simulated is, and "
                    "the same command goes on from there"
                )
            raise Interrupted(f"interrupted; {done} of {total} {what} {kept}") from None


def show_points(document: dict[str, Any], output: Output) -> None:
    """Write the points of a document to standard output as a table: first what tells most of
    each, the classification error where labels are +-1, the test error and the scores, these to two
    digits."""
    names = list(document["points"][0])
    first = names.index("source") + 1 if "source" in names else names.index("test_error")

    def place(name: str) -> int:
        return next(i for i, part in enumerate(("class", "test_error", "_z", "")) if part in name)

    def shown(name: str, value: Any) -> Any:
        return "" if value is None else round(value, 2) if name.endswith("_z") else value

    points = [{k: shown(k, value) for k, value in point.items()} for point in document["points"]]
    tested = "the labels" if "features" in document["problem"] else "targets without noise"
    output.table(points, names[:first] + sorted(names[first:], key=place), tested)


def first_problem(asked: Request, on_grids: Container[str] = ()) -> tuple[Problem, float | None]:
    """The problem with the first value of every grid, and its beta where that is not a field; grids
    of other fields than those ``on_grids`` are refused."""
    asked.refuse_grids(allowed=on_grids)
    problem = asked.problem
    if problem.reuse:
        return problem, None
    if problem.rows is not None:  # what is drawn is the network of its step
        return problem.step, problem.model_at().beta
    return problem, float(asked.grids["beta"][0]) if problem.schedule else None
