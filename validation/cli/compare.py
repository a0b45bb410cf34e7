"""``replica-validate compare``: theory beside a Monte Carlo of the same problem."""

from functools import partial
from typing import Annotated, Any

import typer

from replica.cli import DATASETS, Options, Output, answer, command, parse_request, progress
from replica.errors import InvalidArgument

from ..comparisons import compare as run_comparison
from ..comparisons import compare_grid
from ..comparisons import ladder as run_ladder
from ..run import DEFAULT_MEMORY, Simulated
from .common import (
    Device,
    Dimension,
    Key,
    Memory,
    Rng,
    Seeds,
    Store,
    What,
    Workers,
    drawn,
    seed_of,
    show_points,
    without_grids,
)


@command(files=DATASETS)
def compare(
    options: Options,
    output: Output,
    *,
    dimension: Dimension = 500,
    ladder: Annotated[
        str | None, drawn("Dimensions such as 250,500,1000: compare their limit d -> inf.")
    ] = None,
    seeds: Seeds = 5,
    rng: Rng = None,
    simulated: What = Simulated.network,
    store: Store = None,
    key: Key = None,
    workers: Workers = None,
    memory: Memory = DEFAULT_MEMORY,
    device: Device = "cpu",
) -> None:
    """Theory beside a Monte Carlo of the same problem, with a z-score for every point.

    The theory is that of the simulated dimension; a figure has the limit as thin lines.
    With --ladder, the limit that simulations at several dimensions point to; --seeds is then
    for the largest of them.

    Examples
    --------
    replica-validate compare --student tanh --target sin --alpha0 20 --eta 3 --alpha 0.5,1,2
    --lam 0.1 --plot points.png

    replica-validate compare --student tanh --target sin --alpha0 2 --eta 1,3 --beta 0.5,1
    --readout equal,gaussian --alpha 0.5:3:6 --lam 0.1 --simulated srf --out grid.csv
    """
    asked = parse_request(options)
    problem, width = without_grids(asked)
    settings: dict[str, Any] = {
        "alpha": asked.alpha,
        "lam": asked.lam,
        "seeds": seeds,
        "rng": seed_of(rng, store),
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
    run: Any = partial(run_comparison, dimension=dimension)
    if ladder is not None:
        run = partial(run_ladder, dimensions=dimensions(ladder))
    grids = {name: grid for name, grid in asked.grids.items() if grid.size > 1}
    if grids:
        grids |= {name: grid for name, grid in asked.grids.items() if name == "rate"}
        run = partial(compare_grid, grids=grids, run=run)
    with progress("draws") as advance:
        comparison = run(problem, progress=advance, **settings)
    document = comparison.document()

    def show() -> None:
        show_points(document, output)
        answer(f"{comparison.verdict}\nThe {comparison.note}.")

    output.write(
        document, show, figure=lambda: comparison.plot().figure, dataset=comparison.dataset
    )
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
