"""``replica-validate simulate``: a Monte Carlo by itself."""

from replica.cli import Options, common, parse_request
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
    print_document,
    single,
)


@common.problem_options(without=("model",))
def simulate(
    options: Options,
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
    out: common.Out = None,
    as_json: common.Json = False,
) -> None:
    """A Monte Carlo by itself: mean errors and their standard errors.

    With --store, a run that was stopped goes on when the same line is typed again; --shard 2/8
    does one part of it in a job array.
    """
    asked = parse_request(options)
    common.check_outputs(out, None)
    problem, width = single(asked)
    if shard is not None and store is None:
        raise InvalidArgument("shard", shard, "given with --store, where the parts meet")
    with common.progress("draws") as advance:
        simulation = run_simulation(
            problem,
            alpha=asked.alpha,
            lam=asked.lam,
            dimension=dimension,
            seeds=seeds,
            rng=rng,
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
    if out is not None:
        common.save_points(out, document, simulation.dataset)
    print_document(document, as_json)
