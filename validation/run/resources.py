"""What a cell takes: time and memory, from its sizes."""

import numpy as np

from replica.errors import InvalidArgument
from replica.given import FeatureMoments

from ..draws import INPUT_BLOCK
from ..fit import routes
from .cells import Experiment, Given, Simulated

PROCESS_BYTES = 200e6  # the interpreter with what it imports, and LAPACK's buffers
CORE_SPEED = 1e10  # multiply-adds a second of one core
LONGEST = 3e7 * 1000  # seconds of one core: a year of a thousand of them
CONVEX_STEPS = 20  # about as many as the readout of a loss other than the square takes
BLOCK_ARRAYS = 12  # of one block, held at a time: inputs, fields, features, temporaries


def seconds_needed(experiment: Experiment) -> float:
    """Time of one cell on one core: passes over all samples, and fits."""
    d, p, n = experiment.dimension, experiment.width, float(experiment.sizes.max())
    samples = 2 * n + experiment.test_samples
    if experiment.simulated is Simulated.network:
        samples += 2 * d * sum(alpha0 for alpha0, eta in experiment.problem.schedule if eta)
    fits = len(experiment.sizes)
    if not experiment.loss.is_square:
        fits *= CONVEX_STEPS * len(experiment.lam)
    return (samples * d * p + fits * n * p * min(n, p)) / CORE_SPEED


def bytes_needed(experiment: Experiment, *, keep: bool) -> float:
    """Peak memory of a process that runs one cell, an upper estimate."""
    d, p, sizes = experiment.dimension, experiment.width, np.sort(experiment.sizes)
    way = routes(sizes, p, len(experiment.lam))
    several = len(experiment.lam) > 1
    n = float(sizes[way.dual - 1]) if way.dual else 0.0
    dual = n * p + n**2 * (5 if way.dual_eigen else 1 + several)
    last = way.dual == len(sizes)
    primal = 0.0 if last else p**2 * (5.0 if way.primal_eigen else 2.0)
    if not experiment.loss.is_square:  # the design, a copy for each size, weighted copies
        n = float(sizes[-1])
        dual, primal = 5 * n * p + 5 * min(n, p) ** 2, 0.0
    block = INPUT_BLOCK // max(d, p) + 1  # samples
    fits = (3.0 * (p + n) + 4.0 * block) * len(sizes) * len(experiment.lam)
    # a network's step sums gradients, block by block, beside its rows
    step = (3.0 if experiment.simulated is Simulated.network else 1.0) * p * d
    layer = float(p * d)
    if isinstance(experiment.problem, FeatureMoments):  # rows, and the normal numbers they are of
        layer = 3.0 * (sizes[-1] + experiment.test_samples) * (p + 1)
    elif experiment.simulated is Given.features:
        layer = float(experiment.problem.features.size)
    kept = float(sizes[-1]) * (p + 1) if keep else 0.0
    rows = BLOCK_ARRAYS * max(INPUT_BLOCK, d, p)
    numbers = max(step, layer + max(dual, primal) + fits + kept) + rows
    return PROCESS_BYTES + 8 * numbers


def check_resources(experiment: Experiment, cells: int, memory: float) -> None:
    """Refuse an experiment of which no cell fits in ``memory``, or whose ``cells`` would take one
    core, with all others, longer than anyone waits: InvalidArgument."""
    need = bytes_needed(experiment, keep=False)
    if need > memory:
        features = experiment.simulated is Given.features
        inputs = "" if features else f"d = {experiment.dimension}, "
        raise InvalidArgument(
            "memory",
            f"{memory / 1e9:.3g}GB",
            f"{need / 1e9:.3g}GB or more for one cell of this size ({inputs}"
            f"p = {experiment.width}, n up to {experiment.sizes.max()})",
        )
    seconds = cells * seconds_needed(experiment)
    if seconds > LONGEST:
        allowed = f"smaller: all draws would take one core {seconds / 3.15e7:.1e} years or more"
        raise InvalidArgument("dimension, alpha0, alpha or seeds", None, allowed)
