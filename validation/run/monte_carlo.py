"""Monte Carlo: a problem drawn, trained and tested many times at finite size.

Every seed is one cell (``cells.py``): a draw that serves all alpha and lam, so that errors of
one seed are correlated across the grid, and errors of different seeds independent.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from replica.convex import loss as as_loss
from replica.errors import InvalidArgument
from replica.given import FeatureSample, FirstLayer
from replica.observables import LABELS_NEEDED
from replica.problem import Problem, positive
from solvers import executors
from solvers.results import Array

from ..draws import MOST, check_device, seed_count, seed_sequence, size, spiked_model, whole
from . import store as cell_store
from .arguments import byte_count, fraction
from .cells import SQUARED_ERRORS, Experiment, Given, Simulated, run_cell
from .identity import describe_cells
from .resources import bytes_needed, check_memory, check_time, cost
from .simulation import Simulation

logger = logging.getLogger(__name__)

# Test inputs over max(d, n).  The noise of the test set equals that between seeds at 1 to 5 max(d,
# n) inputs, 6 for tanh/sin without label noise (alpha from .5 to 3, 100 seeds, d = 100 and 200:
# the number over d does not depend on d).  The standard error includes what is left of it.
TEST_INPUTS = 8
DEFAULT_MEMORY = "2GB"  # fits beside other work on a laptop
CORE_SPEED = 1e10  # multiply-adds a second of one core, to tell minutes from seconds
POOL_SECONDS = 8.0  # work below which starting a pool does not pay


def simulate(
    problem: Problem | FirstLayer | FeatureSample,
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
    progress: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Train and test ``problem`` at a finite input dimension.

    Parameters
    ----------
    problem : GradientStep, SpikedRandomFeatures, FirstLayer or FeatureSample
        The network with its giant step, Eq. (1.1); or the sRF.  Of a given first layer every seed
        draws fresh samples, and of given features it splits them: the first n of the rows, in a
        random order, are to train, those after the largest n to test.
    alpha : float or array
        Readout samples over input dimension, n/d; n is rounded.
    samples : int or array
        n, in the place of ``alpha`` and ``dimension``, where a layer or features are given.
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
        Width over input dimension p/d, for a GradientStep; an sRF has its own.
    simulated : {"network", "srf", "gaussian"}
        What is drawn of a GradientStep: the network itself, its sRF, or the conditional
        Gaussian model (3.1).  Of an sRF, "gaussian" is (3.1), anything else the sRF.
    loss : str or Loss
        Convex loss of the readout, see :func:`replica.loss`.
    test_samples : int
        Inputs over which the test errors of a seed are averaged, eight times the larger of d
        and n unless given, which makes their noise smaller than that between seeds; all rows
        that are left of given features.
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
    progress : callable (done, total)
        Called after each cell.

    Returns
    -------
    Simulation
        The same to the last bit whatever ``executor``, ``workers``, ``memory``, ``store`` and
        shards were, on machines of one kind.

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
    >>> simulation.test_error.shape, simulation.test_mean.shape
    ((3, 2, 2), (2, 2))
    """
    seeds = seed_count(seeds, least=2)
    experiment = plan(
        problem,
        alpha=alpha,
        samples=samples,
        lam=lam,
        dimension=dimension,
        rng=rng,
        beta=beta,
        simulated=simulated,
        loss=loss,
        test_samples=test_samples,
        device=device,
    )
    indices = np.arange(seeds)
    if shard is not None:
        part, parts = fraction("shard", shard, seeds)
        indices = indices[part - 1 :: parts]
    if store is not None and rng is None:
        raise InvalidArgument("rng", rng, "given with a store, to find its cells again")
    limit = byte_count("memory", memory)
    check_memory(experiment, limit)
    check_time(len(indices) * cost(experiment) / CORE_SPEED)
    processes = None if workers is None else whole("workers", workers, 1, "processes")
    cells = run_cells(
        experiment,
        [int(index) for index in indices],
        Machine(executor, processes, limit),
        folder=None if store is None else cell_store.open_folder(store),
        key=key,
        progress=progress,
    )
    measured = dict(zip(experiment.measures, np.moveaxis(cells, 0, 1), strict=True))
    test, train, variance = (measured.pop(name) for name in SQUARED_ERRORS)
    return Simulation(experiment, indices, test, train, variance, measured)


def plan(
    problem: Problem | FirstLayer | FeatureSample,
    *,
    alpha: ArrayLike | None,
    lam: ArrayLike,
    dimension: int | None,
    rng: Any,
    beta: float | None,
    simulated: str,
    loss: Any,
    test_samples: int | None,
    device: str,
    samples: ArrayLike | None = None,
) -> Experiment:
    """The arguments of :func:`simulate` that its cells need, checked."""
    root, of = seed_sequence(rng), as_loss(loss)
    if isinstance(problem, FirstLayer | FeatureSample):
        sizes = {"alpha": alpha, "dimension": dimension, "beta": beta}
        known = _given(problem, samples, simulated, test_samples, sizes)
    elif samples is not None:
        allowed = "left out unless a first layer or features are given: alpha says how many"
        raise InvalidArgument("samples", samples, allowed)
    else:
        known = _drawn(problem, alpha, dimension, beta, simulated, test_samples)
    experiment = Experiment(
        problem=problem,
        lam=tuple(map(float, positive("lam", lam))),
        entropy=root.entropy,
        spawn_key=tuple(root.spawn_key),
        pool_size=root.pool_size,
        device=check_device(device),
        loss=of,
        **known,
    )
    if of.kind == "margin" and not experiment.binary:
        raise InvalidArgument("loss", of.name, LABELS_NEEDED)
    if experiment.trained["train_bias"] and not of.is_square:
        raise InvalidArgument("loss", of.name, "square in a simulation that trains a bias")
    if device != "cpu" and not of.is_square:
        raise InvalidArgument("device", device, "cpu for a loss other than the square")
    experiment.sizes, experiment.width  # noqa: B018  (checks that neither is empty)
    return experiment


def _drawn(
    problem: Problem,
    alpha: ArrayLike | None,
    dimension: int | None,
    beta: float | None,
    simulated: str,
    test_samples: int | None,
) -> dict[str, Any]:
    """What an experiment is of a problem whose first layer is drawn."""
    spiked_model(problem, beta)  # refuses what the theory does
    d = whole("dimension", dimension, 2, "the input dimension d")
    if alpha is None:
        raise InvalidArgument("alpha", alpha, "given: readout samples over input dimension")
    ratios = positive("alpha", alpha)
    largest = max(d, size("alpha", float(ratios.max()), d))
    try:
        kind = Simulated(simulated)
    except ValueError:
        raise InvalidArgument("simulated", simulated, f"one of {', '.join(Simulated)}") from None
    if kind is Simulated.network and not problem.schedule:
        kind = Simulated.srf
    tests = _tests(test_samples, TEST_INPUTS * largest)
    sizes = {"alpha": tuple(map(float, ratios)), "dimension": d, "beta": beta}
    return {"simulated": kind, "test_samples": tests, **sizes}


def _given(
    problem: FirstLayer | FeatureSample,
    samples: ArrayLike | None,
    simulated: str,
    test_samples: int | None,
    sizes: dict[str, Any],
) -> dict[str, Any]:
    """What an experiment is of a given first layer, or of given features."""
    for name, value in sizes.items():
        if value is not None:
            allowed = "left out of what is given, which has its own sizes (samples says how many)"
            raise InvalidArgument(name, value, allowed)
    if simulated != "network":
        allowed = "left out: a given layer, or given features, are simulated as they are"
        raise InvalidArgument("simulated", simulated, allowed)
    known: dict[str, Any] = {"alpha": (), "beta": None}
    if samples is None:
        raise InvalidArgument("samples", samples, "given: how many the readout is trained on")
    most, rows = MOST, 0
    if isinstance(problem, FeatureSample):
        rows = len(problem.labels)
        most = rows - 1
    meaning = "samples of the readout"
    counts = tuple(whole("samples", n, 1, meaning, most) for n in np.atleast_1d(samples).tolist())
    if not counts:
        raise InvalidArgument("samples", samples, "one number of samples, or several")
    if isinstance(problem, FeatureSample):
        left = rows - max(counts)
        tests = _tests(test_samples, left, left)
        kind, d = Given.features, problem.width
    else:
        kind, d = Given.layer, problem.dimension
        tests = _tests(test_samples, TEST_INPUTS * max(d, *counts))
    return known | {"samples": counts, "dimension": d, "simulated": kind, "test_samples": tests}


def _tests(asked: int | None, usual: int, most: int = MOST) -> int:
    """How many inputs a test error is averaged over: as many as ``asked``, or the ``usual``."""
    if asked is None:
        return usual
    return whole("test_samples", asked, 1, "inputs a test error is averaged over", most)


class Machine(NamedTuple):
    """Where cells run: in an executor, or in so many ``workers`` (None: as many as pay), each with
    its part of ``memory`` in bytes."""

    executor: Executor | None
    workers: int | None
    memory: float


def run_cells(
    experiment: Experiment,
    indices: list[int],
    machine: Machine,
    *,
    folder: Path | None,
    key: str | None,
    progress: Callable[[int, int], None] | None,
) -> Array:
    """What is measured on the cells (S, M, A, L), read from the store where it is there."""
    measured: dict[int, Array] = {}
    if folder is not None:
        described, bounds = describe_cells(experiment, indices, key), experiment.bounds
        shape = (len(experiment.measures), len(experiment.sizes), len(experiment.lam))
        measured = cell_store.read(folder, described, shape, bounds)
    left = [index for index in indices if index not in measured]
    if folder is not None:
        logger.info(
            "%d of %d draws found in %s, %d are run", len(measured), len(indices), folder, len(left)
        )
        if left:
            cell_store.check_writable(folder, len(left))
    if progress is not None:
        progress(len(measured), len(indices))
    processes = 1
    if machine.executor is None:
        processes = machine.workers or pool_size(experiment, len(left))
        fitting = int(machine.memory // bytes_needed(experiment, keep=False))
        processes = min(processes, max(1, fitting))
    keep = processes * bytes_needed(experiment, keep=True) <= machine.memory
    task = partial(run_cell, experiment, keep=keep)
    for index, errors in executors.results(task, left, machine.executor, processes):
        if folder is not None:
            cell_store.write(folder, described[index], errors, bounds)
        measured[index] = errors
        if progress is not None:
            progress(len(measured), len(indices))
    return np.array([measured[index] for index in indices])


def pool_size(experiment: Experiment, cells: int) -> int:
    """How many processes to run so many cells in: 1 where starting more does not pay."""
    if experiment.device != "cpu" or cells * cost(experiment) / CORE_SPEED < POOL_SECONDS:
        return 1
    return max(1, min(executors.cores(), cells))
