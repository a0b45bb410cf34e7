"""What the commands of ``replica-validate`` share, besides what ``replica`` shares."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from replica.cli import Interrupted, Options, Output, Request, option, parse_given, progress, say
from replica.given import FeatureSample, FirstLayer
from replica.problem import Problem

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


def simulated_given(options: Options) -> tuple[FirstLayer | FeatureSample, dict[str, Any]]:
    """The layer, or the features, that is simulated as it is, and at which points."""
    model, points, loss = parse_given(options)
    if "samples" in points:
        points["samples"] = [int(n) for n in points["samples"]]
    return model, points | {"loss": loss}


def with_dimension(told: dict[str, Any]) -> None:
    """Put the usual dimension among what a simulation is ``told``, unless one was typed."""
    if told["dimension"] is None:
        told["dimension"] = DIMENSION.default


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
    parts = ("theory_", "simulated_", "stderr_")
    names = list(document["points"][0])
    of_labels = [
        f"{part}classification_error" for part in ("theory_", "simulated_", "z_", "stderr_")
    ]
    first = next(i for i, name in enumerate(names) if name.startswith(parts))
    shares = [name for name in of_labels if name in names]
    names = [*names[:first], *shares, *(name for name in names[first:] if name not in shares)]
    last = [
        name
        for name in names
        if name.startswith(parts) and not name.endswith("_test") and name not in shares
    ]

    def shown(name: str, value: Any) -> Any:
        return round(value, 2) if name.startswith("z") and value is not None else value

    points = [{k: shown(k, value) for k, value in point.items()} for point in document["points"]]
    output.table(points, [name for name in names if name not in last] + last)


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
        return problem.step, problem.model().beta
    return problem, float(asked.grids["beta"][0]) if problem.schedule else None
