"""``replica-validate simulate``: a Monte Carlo by itself."""

from typing import Any

from replica.cli import DATASETS, HELP, Options, Output, command
from replica.errors import InvalidArgument

from ..run import simulate as run_simulation
from .common import MONTE_CARLO, drawing, drawn, parse_simulation, show_points

SHARD = drawn(
    "shard", str | None, None, "i/N: only this part of the seeds, into --store; without, join them."
)


@command(
    offered=tuple(HELP),
    without=("theory",),
    files=DATASETS,
    also=(*MONTE_CARLO, SHARD),
    drawn=False,
)
def simulate(options: Options, output: Output, *, shard: str | None, **told: Any) -> None:
    """A Monte Carlo by itself: mean errors and their standard errors.

    With --store, a run that was stopped goes on when the same line is typed again; --shard 2/8
    does one part of it in a job array.  In Python: validation.simulate.

    Examples
    --------
    replica-validate simulate --student tanh --target sin --alpha0 20 --eta 3 --alpha 0.5,1,2
    --lam 0.1 --dimension 500 --seeds 50 --store cells --out errors.nc

    replica-validate simulate --config problem.toml --dimension 2000 --store cells --shard 3/16
    """
    if shard is not None and told["store"] is None:
        raise InvalidArgument("shard", shard, "given with --store, where the parts meet")
    problem, at, _ = parse_simulation(options, told, on_grids=False)
    with drawing(told) as how:
        simulation = run_simulation(problem, shard=shard, **at, **how)
    document = simulation.document()
    output.write(document, lambda: show_points(document, output), dataset=simulation.dataset)
