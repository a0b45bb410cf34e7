"""``replica-validate simulate``: a Monte Carlo by itself."""

from replica.cli import DATASETS, Options, Output, command, parse_request, progress
from replica.errors import InvalidArgument

from ..run import DEFAULT_MEMORY, Simulated
from ..run import simulate as run_simulation
from .common import (
    Device,
    Dimension,
    Key,
    Memory,
    Rng,
    Seeds,
    Shard,
    Store,
    What,
    Workers,
    seed_of,
    show_points,
    single,
)


@command(without=("model",), files=DATASETS, drawn=False)
def simulate(
    options: Options,
    output: Output,
    *,
    dimension: Dimension = 500,
    seeds: Seeds = 5,
    rng: Rng = None,
    simulated: What = Simulated.network,
    store: Store = None,
    shard: Shard = None,
    key: Key = None,
    workers: Workers = None,
    memory: Memory = DEFAULT_MEMORY,
    device: Device = "cpu",
) -> None:
    """A Monte Carlo by itself: mean errors and their standard errors.

    With --store, a run that was stopped goes on when the same line is typed again; --shard 2/8
    does one part of it in a job array.

    Examples
    --------
    replica-validate simulate --student tanh --target sin --alpha0 20 --eta 3 --alpha 0.5,1,2
    --lam 0.1 --dimension 500 --seeds 50 --store cells --out errors.nc

    replica-validate simulate --config problem.toml --dimension 2000 --store cells --shard 3/16
    """
    asked = parse_request(options)
    problem, width = single(asked)
    if shard is not None and store is None:
        raise InvalidArgument("shard", shard, "given with --store, where the parts meet")
    with progress("draws") as advance:
        simulation = run_simulation(
            problem,
            alpha=asked.alpha,
            lam=asked.lam,
            dimension=dimension,
            seeds=seeds,
            rng=seed_of(rng, store),
            beta=width,
            simulated=simulated,
            loss=asked.loss,
            store=store,
            shard=shard,
            key=key,
            workers=workers,
            memory=memory,
            device=device,
            progress=advance,
        )
    document = simulation.document()
    output.write(document, lambda: show_points(document, output), dataset=simulation.dataset)
