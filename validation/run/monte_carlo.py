"""simulate: an experiment planned, its memory checked, its cells drawn, trained and tested.

Every seed is one cell (``cells.py``): a draw that serves all alpha and lam, so that errors of
one seed are correlated across the grid, and errors of different seeds independent.
"""

import logging
from concurrent.futures import Executor
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from replica.convex import loss as as_loss
from replica.display import Progress, progress_callback
from replica.errors import InvalidArgument
from replica.given import FeatureMoments, FeatureSample, FirstLayer, Given
from replica.observables import LABELS_NEEDED, scalar_arguments
from replica.problem import Problem, asked, check_call, check_device, positive, samples_of
from solvers import executors
from solvers.results import Array

from .. import draws
from . import store as cell_store
from .cells import Experiment, Fixed, Simulated, at_alpha, run_cell
from .simulation import Simulation
from .store import describe_cells

# Test inputs over max(d, n).  The noise of the test set equals that between seeds at 1 to 5 max(d,
# n) inputs, 6 for tanh/sin without label noise (alpha from .5 to 3, 100 seeds, d = 100 and 200:
# the number over d does not depend on d).  The standard error includes what is left of it.
TEST_INPUTS = 8


def plan(
    problem: Problem | Given,
    simulated: str,
    lam: ArrayLike,
    sizes: dict[str, Any],
    *,
    rng: Any,
    loss: Any,
    test_samples: int | None,
    device: str,
) -> Experiment:
    """The experiment of the arguments of :func:`simulate`, checked; ``sizes`` are alpha, samples,
    dimension and beta."""
    root_seed, cell_loss = draws.seed_sequence(rng), as_loss(loss)
    fields_of = _given_fields if isinstance(problem, Given) else _drawn_fields
    planned = fields_of(problem, simulated, **sizes)
    if test_samples is not None:
        most = planned["test_samples"] if isinstance(problem, FeatureSample) else draws.HUGE
        meaning = "inputs a test error is averaged over"
        planned["test_samples"] = draws.whole_number("test_samples", test_samples, 1, meaning, most)
    planned_experiment = Experiment(
        lam=tuple(map(float, positive("lam", lam))),
        entropy=root_seed.entropy,
        spawn_key=tuple(root_seed.spawn_key),
        device=check_device(device),
        loss=cell_loss,
        **planned,
    )
    several = getattr(problem, "outputs", 1) > 1 or planned_experiment.trained["train_bias"]
    if (several or device != "cpu") and not cell_loss.is_square:
        allowed_loss = "the square for several classes or outputs, a trained bias or a device"
        raise InvalidArgument("loss", cell_loss.name, allowed_loss)
    if cell_loss.kind == "margin" and not planned_experiment.binary:
        raise InvalidArgument("loss", cell_loss.name, LABELS_NEEDED)
    planned_experiment.sizes, planned_experiment.width  # noqa: B018  (checks that neither is empty)
    return planned_experiment


def _drawn_fields(
    problem: Any, simulated: str, *, alpha: Any, samples: Any, dimension: Any, beta: Any
) -> dict[str, Any]:
    """Fields of the experiment of a problem whose first layer is drawn; of a network model, its
    step is drawn."""
    if samples is not None:
        allowed_plan = "left out unless a first layer or features are given: alpha says how many"
        raise InvalidArgument("samples", samples, allowed_plan)
    reuse = 0.0
    if getattr(problem, "rows", None) is not None:
        for name, typed in (("beta", beta), ("simulated", simulated)):
            if typed not in (None, Simulated.network):
                raise InvalidArgument(name, typed, "left out of a network, which is what is drawn")
        problem, beta, reuse = problem.step, problem.beta, problem.rows.reuse
    if alpha is None:
        raise InvalidArgument("alpha", alpha, "given: readout samples over input dimension")
    draws.spiked_model(problem, beta)  # refuses what the theory does
    d = draws.whole_number("dimension", dimension, 2, "the input dimension d")
    alpha_grid = positive("alpha", alpha)
    if problem.follows_alpha and alpha_grid.size == 1:
        problem = at_alpha(problem, alpha_grid.item())
    test_samples = TEST_INPUTS * max(d, draws.size("alpha", float(alpha_grid.max()), d))
    try:
        drawn_kind = Simulated(simulated)
    except ValueError:
        raise InvalidArgument("simulated", simulated, f"one of {', '.join(Simulated)}") from None
    if drawn_kind is Simulated.network and not problem.schedule:
        drawn_kind = Simulated.srf
    if (
        reuse
        and not problem.follows_alpha
        and (reuse * alpha_grid.max() > problem.schedule[0][0] * (1 + 1e-12))
    ):
        allowed_plan = "at least reuse * alpha: the step has all samples that are reused"
        raise InvalidArgument("alpha0", problem.schedule[0][0], allowed_plan)
    sizes = {"alpha": tuple(map(float, alpha_grid)), "dimension": d, "test_samples": test_samples}
    return {"problem": problem, "simulated": drawn_kind, "beta": beta, "reuse": reuse, **sizes}


def _given_fields(
    problem: Any, simulated: str, *, alpha: Any, samples: Any, **sizes: Any
) -> dict[str, Any]:
    """Fields of the experiment of a given first layer, or of given features."""
    for samples_argument, typed in sizes.items():
        if typed is not None:
            allowed_plan = "left out of what is given, which has a size of its own"
            raise InvalidArgument(samples_argument, typed, allowed_plan)
    if simulated != "network":
        allowed_plan = "left out: a given layer, or given features, are simulated as they are"
        raise InvalidArgument("simulated", simulated, allowed_plan)
    samples_argument, samples = asked(problem, alpha, samples)
    if samples_argument == "alpha":
        samples = np.rint(
            samples_of(problem, samples_argument, positive(samples_argument, samples))
        ).astype(int)
    most_n, meaning = draws.HUGE, "samples of the readout"
    if isinstance(problem, FeatureSample):
        most_n = len(problem.labels) - 1
        meaning += f"; of the {most_n + 1} rows one or more are left to test"
    typed_n = np.atleast_1d(samples).tolist()
    sample_sizes = tuple(draws.whole_number("samples", n, 1, meaning, most_n) for n in typed_n)
    if not sample_sizes:
        raise InvalidArgument("samples", samples, "one number of samples, or several")
    layer = isinstance(problem, FirstLayer)
    fixed_part, d = (Fixed.layer, problem.dimension) if layer else (Fixed.features, problem.width)
    test_samples = TEST_INPUTS * max(d, *sample_sizes)
    if isinstance(problem, FeatureSample):
        test_samples = len(problem.labels) - min(sample_sizes)
    sizes = {"samples": sample_sizes, "dimension": d, "test_samples": test_samples}
    return {"problem": problem, "simulated": fixed_part, "alpha": (), "beta": None, **sizes}


def multiplications(experiment: Experiment) -> float:
    """Multiplications that the samples of the readout and the fits of a cell take, roughly."""
    p, largest_n = experiment.width, float(experiment.sizes.max())
    fit_count = len(experiment.sizes)
    if not experiment.loss.is_square:
        fit_count *= 20 * len(experiment.lam)  # about as many steps
    sample_count = 2 * largest_n + experiment.test_samples
    return sample_count * experiment.dimension * p + fit_count * largest_n * p * min(largest_n, p)


def bytes_needed(experiment: Experiment, *, keep: bool) -> float:
    """Peak memory of a process that runs one cell, an upper estimate."""
    d, p, sample_sizes = experiment.dimension, experiment.width, np.sort(experiment.sizes)
    n = float(sample_sizes[sample_sizes < p].max(initial=0))  # the largest of n x n systems
    gram_copies = 2.0 + experiment.trained["intercept"]
    dual_system = n * p + gram_copies * n**2
    primal_system = gram_copies * p**2 if sample_sizes[-1] >= p else 0.0
    if not experiment.loss.is_square:  # the design, a copy for each size, weighted copies
        n = float(sample_sizes[-1])
        dual_system, primal_system = 5 * n * p + 5 * min(n, p) ** 2, 0.0
    block_samples = draws.INPUT_BLOCK // max(d, p) + 1  # samples
    fit_arrays = (3.0 * (p + n) + 4.0 * block_samples) * len(sample_sizes) * len(experiment.lam)
    # a network's step sums gradients, block by block, beside its rows
    step_arrays = (3.0 if experiment.simulated is Simulated.network else 1.0) * p * d
    layer = float(p * d)
    if isinstance(experiment.problem, FeatureMoments):  # rows, and the normal numbers they are of
        layer = 3.0 * (sample_sizes[-1] + experiment.test_samples) * (p + 1)
    elif experiment.simulated is Fixed.features:
        layer = float(experiment.problem.features.size)
    design = float(sample_sizes[-1]) * (p + 1) if keep else 0.0
    # arrays of one block: inputs, fields, features, temporaries
    rows = 12 * max(draws.INPUT_BLOCK, d, p)
    peak = max(step_arrays, layer + max(dual_system, primal_system) + fit_arrays + design) + rows
    return 200e6 + 8 * peak  # the interpreter with what it imports, and LAPACK's buffers


def check_memory(experiment: Experiment, memory: float) -> None:
    """Refuse an experiment of which no cell fits in ``memory`` bytes: InvalidArgument."""
    bytes_of_cell = bytes_needed(experiment, keep=False)
    if bytes_of_cell > memory:
        of_features = experiment.simulated is Fixed.features
        input_text = "" if of_features else f"d = {experiment.dimension}, "
        cell = f"one cell of this size ({input_text}p = {experiment.width}, "
        allowed = f"{bytes_of_cell / 1e9:.3g}GB or more for {cell}n up to {experiment.sizes.max()})"
        raise InvalidArgument("memory", f"{memory / 1e9:.3g}GB", allowed)


logger = logging.getLogger(__name__)

DEFAULT_MEMORY = "2GB"  # fits beside other work on a laptop


@check_call
def simulate(
    problem: Problem | Given,
    *,
    alpha: ArrayLike | None = None,
    samples: ArrayLike | None = None,
    lam: ArrayLike,
    dimension: int | None = None,
    seeds: int,
    rng: Any = None,
    beta: float | None = None,
    simulated: str = "network",
    loss: Any = "square",
    test_samples: int | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    memory: str | float = DEFAULT_MEMORY,
    store: str | PathLike[str] | None = None,
    shard: str | tuple[int, int] | None = None,
    key: str | None = None,
    device: str = "cpu",
    progress: bool | Progress = False,
) -> Simulation:
    """Train and test ``problem`` at a finite input dimension.

    Parameters
    ----------
    problem : GradientStep, SpikedRandomFeatures, FirstLayer, FeatureSample or FeatureMoments
        The network with its giant step, Eq. (1.1), of which step.network(beta=..., reuse=r) trains
        the readout on samples of the step, a share r of its own; or the sRF.  Of a given first
        layer every seed draws fresh samples, and of given features it splits them: the first n of
        the rows, in a random order, are to train, all others to test.  Of moments it draws rows.
    alpha : float or array
        Readout samples over input dimension, n/d; n is rounded.  Not of given features.  Where the
        step's alpha0 is "alpha", each has a first layer of its own.
    samples : int or array
        n, in the place of ``alpha``, where a layer or features are given; the answer is along n.
    lam : float or array
        Ridge penalties of (1.2).  All alpha and lam share the draw of a seed: errors of one
        seed are correlated.
    dimension : int
        Input dimension d, 2 or more.
    seeds : int
        Independent draws, 2 or more.
    rng : None, int, SeedSequence or Generator
        The draw of seed i is a function of this, the problem, the dimension and i alone.
    beta : float
        Width over input dimension p/d, for a GradientStep; a model has its own.
    simulated : {"network", "srf", "gaussian"}
        Model that is drawn of a GradientStep: the network itself, its sRF, or the conditional
        Gaussian model (3.1).  Of an sRF, "gaussian" is (3.1), anything else the sRF.
    loss : str or Loss
        Convex loss of the readout, see :func:`replica.loss`.
    test_samples : int
        Inputs over which the test errors of a seed are averaged, eight times the larger of d
        and n unless given, which makes their noise smaller than that between seeds; of given
        features at every n all rows that are left, or as many of these.
        ``Simulation.test_noise`` tells what it contributes to the standard error.
    executor : concurrent.futures.Executor
        Where cells run; such as ``Client.get_executor()`` of dask.distributed.
    workers : int
        Processes of one thread each, where no executor is given.  Unless given, as many as
        cores and ``memory`` allow, or this process alone for a few seconds of work.
    memory : str or float
        Limit of all processes together (of each cell, with an executor): "2GB", "500MB" or
        a number of bytes.  Features that do not fit are made anew when needed again.
    store : path
        Folder in which every finished cell is kept at once.  The same call later, ``rng``
        included, goes on from there.
    shard : "i/N" or (i, N)
        Only the seeds of the i-th of N parts (from 1), for arrays of jobs that share a
        ``store``.  The call without a shard joins them.
    key : str
        For a store, what tells a function from an edited one where its values and its lines
        cannot: any text, another one whenever what the function computes changes.
    device : str
        "cpu", or a device of torch such as "cuda": same draws, same errors to rounding.
    progress : bool or callable
        Whether to draw a bar; a function is called with (done, total) after each cell.

    Returns
    -------
    Simulation
        Errors of every seed, which to the last bit do not depend on ``executor``, ``workers``,
        ``memory``, ``store`` and shards, on machines of one kind.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or the problem cannot be simulated.
    ConvergenceError
        If a readout of another loss than the square cannot be shown to be optimal.
    WorkerDied
        If workers die again and again.
    StoreError
        If a finished cell cannot be kept.

    Examples
    --------
    >>> from replica import SpikedRandomFeatures
    >>> from validation import simulate
    >>> model = SpikedRandomFeatures(student="erf", target="sin", r=1.0, c=1.0, gamma=0.9)
    >>> simulation = simulate(model, alpha=[0.5, 2], lam=[0.01, 1], dimension=50, seeds=3, rng=0)
    >>> simulation.test_error.shape, simulation.errors["test_error"].shape
    ((2, 2), (3, 2, 2))
    """
    seeds = draws.seed_count(seeds, least=2)
    plan_sizes: Any = {"alpha": alpha, "samples": samples, "dimension": dimension, "beta": beta}
    plan_options: Any = {"rng": rng, "loss": loss, "test_samples": test_samples, "device": device}
    experiment = plan(problem, simulated, lam, plan_sizes, **plan_options)
    indices = np.arange(seeds)
    if shard is not None:
        shard_index, shard_count = draws.fraction("shard", shard, seeds)
        indices = indices[shard_index - 1 :: shard_count]
    if store is not None and rng is None:
        raise InvalidArgument("rng", rng, "given with a store, to find its cells again")
    memory_limit = draws.byte_count("memory", memory)
    check_memory(experiment, memory_limit)
    processes = None if workers is None else draws.whole_number("workers", workers, 1, "processes")
    folder = None if store is None else cell_store.open_folder(store)
    cells_done: dict[int, Array] = {}
    if folder is not None:
        cells_described = describe_cells(experiment, indices.tolist(), key)
        cell_shape = (len(experiment.measures), len(experiment.sizes), len(experiment.lam))
        cells_done = cell_store.read(folder, cells_described, cell_shape)
        missing = len(indices) - len(cells_done)
        logger.info(
            "%d of %d draws found in %s, %d are run", len(cells_done), len(indices), folder, missing
        )
        if missing:
            cell_store.check_writable(folder, missing)
    cells_left = [int(index) for index in indices if index not in cells_done]
    if processes is None:
        # multiplications, some 8 s of a core: for fewer starting a pool does not pay
        pool_pays = device == "cpu" and len(cells_left) * multiplications(experiment) >= 8e10
        processes = max(1, min(executors.usable_cores(), len(cells_left))) if pool_pays else 1
    fitting_processes = max(1, int(memory_limit // bytes_needed(experiment, keep=False)))
    processes = 1 if executor is not None else min(processes, fitting_processes)
    keep_design = processes * bytes_needed(experiment, keep=True) <= memory_limit
    cell_task = partial(run_cell, experiment, keep=keep_design)
    with progress_callback(progress, "draws") as advance:
        if advance is not None:
            advance(len(cells_done), len(indices))
        for index, seed_cell in executors.run_all(cell_task, cells_left, executor, processes):
            if folder is not None:
                cell_store.write(folder, cells_described[index], seed_cell)
            cells_done[index] = seed_cell
            if advance is not None:
                advance(len(cells_done), len(indices))
    seed_cells = np.array([cells_done[index] for index in indices.tolist()])
    seed_errors = dict(zip(experiment.measures, np.moveaxis(seed_cells, 0, 1), strict=True))
    sample_axis = "samples" if experiment.samples else "alpha"
    scalars = scalar_arguments(**{sample_axis: alpha if samples is None else samples}, lam=lam)
    return Simulation(experiment, indices, seed_errors, seed_errors.pop("test_variance"), scalars)
