"""``replica-validate compare``: theory beside a Monte Carlo of the same problem."""

from typing import Annotated, Any

import typer

from replica.cli import Options, common, parse_request
from replica.errors import InvalidArgument

from ..comparisons import Comparison, Ladder
from ..comparisons import compare as run_comparison
from ..comparisons import ladder as run_ladder
from ..run import DEFAULT_MEMORY, Simulated
from .common import (
    TABLES,
    Device,
    Dimension,
    Key,
    Memory,
    Rng,
    Seeds,
    Store,
    What,
    Workers,
    print_document,
    single,
)


@common.problem_options()
def compare(
    options: Options,
    *,
    dimension: Dimension = 500,
    ladder: Annotated[
        str | None,
        typer.Option(help="Dimensions such as 250,500,1000: compare their limit d -> inf."),
    ] = None,
    seeds: Seeds = 5,
    rng: Rng = None,
    simulated: What = Simulated.network,
    store: Store = None,
    key: Key = None,
    workers: Workers = None,
    memory: Memory = DEFAULT_MEMORY,
    device: Device = "cpu",
    out: common.Out = None,
    plot: common.Plot = None,
    as_json: common.Json = False,
) -> None:
    """Theory beside a Monte Carlo of the same problem, with a z-score for every point.

    The theory is that of the simulated dimension; a figure has the limit as thin lines.
    With --ladder, the limit that simulations at several dimensions point to; --seeds is then
    for the largest of them.
    """
    asked = parse_request(options)
    common.check_outputs(out, plot, TABLES)
    problem, width = single(asked)
    settings: dict[str, Any] = {
        "alpha": asked.alpha,
        "lam": asked.lam,
        "seeds": seeds,
        "rng": rng,
        "beta": width,
        "simulated": simulated,
        "loss": asked.loss,
        "model": asked.model,
        "store": store,
        "key": key,
        "workers": workers,
        "memory": memory,
        "device": device,
    }
    comparison: Comparison | Ladder
    with common.progress("draws") as advance:
        settings["progress"] = advance
        if ladder is not None:
            sizes = dimensions(ladder)
            comparison = run_ladder(problem, dimensions=sizes, **settings)
        else:
            comparison = run_comparison(problem, dimension=dimension, **settings)
    document = comparison.document()
    if out is not None:
        common.save_points(out, document)
    if plot is not None:
        common.save_figure(plot, comparison.plot().figure)
    print_document(document, as_json)
    if not as_json:
        common.answer(f"{comparison.verdict}\nThe {comparison.theory.note}.")
    if not comparison.agrees:
        raise typer.Exit(1)


def dimensions(ladder: str) -> list[int]:
    """The sizes of ``--ladder``.

    Raises
    ------
    InvalidArgument
    """
    try:
        return [int(part) for part in ladder.split(",")]
    except ValueError:
        raise InvalidArgument("ladder", ladder, "dimensions such as 250,500,1000") from None
