"""``replica-validate compare``: theory beside a Monte Carlo of the same problem."""

from functools import partial
from typing import Any

from replica.cli import (
    DATASETS,
    HELP,
    Options,
    Output,
    answer,
    asks_for_given,
    command,
    note_worse_than_zero,
    say,
)
from replica.errors import InvalidArgument

from ..comparisons import compare as run_comparison
from ..comparisons import compare_grid
from ..comparisons import ladder as run_ladder
from .common import MONTE_CARLO, drawing, drawn, parse_simulation, show_points

LADDER = drawn(
    "ladder", str | None, None, "Dimensions such as 250,500,1000: compare their limit d -> inf."
)


@command(offered=tuple(HELP), files=DATASETS, also=(*MONTE_CARLO, LADDER))
def compare(options: Options, output: Output, *, ladder: str | None, **told: Any) -> bool:
    """Theory beside a Monte Carlo of the same problem, with a z-score for every point.

    z = (simulated - theory) / standard error, which of a few seeds is large by chance more often
    than of many: the verdict allows for that.  The theory is that of the simulated dimension up to
    terms of order 1/d: what is off by more than chance, but by less than 20/d of itself, is called
    close but not equal.  A figure has the limit as pale lines.  With --ladder, the limit that
    simulations at several dimensions point to, by a line in 1/d; --seeds is then for the largest
    of them.

    A first layer of --weights, or the --features with their --labels, are the same in every draw:
    fresh samples, or other splits of the rows, are what is drawn.

    The exit status is 1 where they disagree, and 0 where there are not enough draws to tell.

    In Python: validation.compare and validation.ladder.

    Examples
    --------
    replica-validate compare --student tanh --target sin --alpha0 20 --eta 3 --alpha 0.5,1,2
    --lam 0.1 --plot points.png

    replica-validate compare --student tanh --target sin --alpha0 2 --eta 1,3 --beta 0.5,1
    --readout equal,gaussian --alpha 0.5:3:6 --lam 0.1 --simulated srf --out grid.csv
    """
    problem, at, grids = parse_simulation(options, told, on_grids=True)
    run: Any = run_comparison
    if ladder is not None:
        if asks_for_given(options):
            raise InvalidArgument("ladder", ladder, "left out of what is given, which has its size")
        del told["dimension"]
        run = partial(run_ladder, dimensions=dimensions(ladder))
    if any(grid.size > 1 for grid in grids.values()):
        varied = {name: grid for name, grid in grids.items() if grid.size > 1 or name == "rate"}
        run = partial(compare_grid, grids=varied, run=run)
    with drawing(told) as how:
        comparison = run(problem, theory=options.get("theory"), **at, **how)
    document = comparison.document()

    def show() -> None:
        show_points(document, output)
        if ladder is not None:
            say(
                "note: simulated are the limits of lines in 1/d, from which size d differs by "
                "slope/d; p_value is the chance of means as far off their line: small, it asks for "
                "larger sizes"
            )
        answer(f"{comparison.verdict}\nCompared with the {comparison.note}.")

    output.write(
        document, show, figure=lambda: comparison.plot().figure, dataset=comparison.dataset
    )
    if not asks_for_given(options):
        note_worse_than_zero(problem, comparison.checks["test_error"].theory.ravel())
    return not comparison.disagrees


def dimensions(ladder: str) -> list[int]:
    """The sizes of ``--ladder``; what are none is refused."""
    try:
        return [int(part) for part in ladder.split(",")]
    except ValueError:
        raise InvalidArgument("ladder", ladder, "dimensions such as 250,500,1000") from None
