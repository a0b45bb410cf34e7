"""What is asked of a Monte Carlo, checked: the experiment that its cells share."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from replica.convex import loss as as_loss
from replica.errors import InvalidArgument
from replica.given import FeatureSample, FirstLayer, Given, asked, samples_of
from replica.observables import LABELS_NEEDED
from replica.problem import Problem, check_device, positive

from ..draws import MOST, seed_sequence, size, spiked_model, whole
from .cells import Experiment, Fixed, Simulated

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
    root, of = seed_sequence(rng), as_loss(loss)
    known = (_given if isinstance(problem, Given) else _drawn)(problem, simulated, **sizes)
    if test_samples is not None:
        most = known["test_samples"] if isinstance(problem, FeatureSample) else MOST
        meaning = "inputs a test error is averaged over"
        known["test_samples"] = whole("test_samples", test_samples, 1, meaning, most)
    experiment = Experiment(
        lam=tuple(map(float, positive("lam", lam))),
        entropy=root.entropy,
        spawn_key=tuple(root.spawn_key),
        pool_size=root.pool_size,
        device=check_device(device),
        loss=of,
        **known,
    )
    if getattr(problem, "outputs", 1) > 1 and not of.is_square:
        raise InvalidArgument("loss", of.name, "the square for several classes or outputs")
    if of.kind == "margin" and not experiment.binary:
        raise InvalidArgument("loss", of.name, LABELS_NEEDED)
    if experiment.trained["train_bias"] and not of.is_square:
        raise InvalidArgument("loss", of.name, "square in a simulation that trains a bias")
    if device != "cpu" and not of.is_square:
        raise InvalidArgument("device", device, "cpu for a loss other than the square")
    experiment.sizes, experiment.width  # noqa: B018  (checks that neither is empty)
    return experiment


def _drawn(
    problem: Any, simulated: str, *, alpha: Any, samples: Any, dimension: Any, beta: Any
) -> dict[str, Any]:
    """Fields of the experiment of a problem whose first layer is drawn; of a network model, its
    step is drawn."""
    if samples is not None:
        allowed = "left out unless a first layer or features are given: alpha says how many"
        raise InvalidArgument("samples", samples, allowed)
    reuse = 0.0
    if getattr(problem, "rows", None) is not None:
        for name, value in (("beta", beta), ("simulated", simulated)):
            if value not in (None, Simulated.network):
                raise InvalidArgument(name, value, "left out of a network, which is what is drawn")
        problem, beta, reuse = problem.step, problem.beta, problem.rows.reuse
    if alpha is None:
        raise InvalidArgument("alpha", alpha, "given: readout samples over input dimension")
    if getattr(problem, "alpha0", None) == "alpha":
        if np.size(alpha) != 1:
            allowed = "a number, or alpha at a single alpha: one first layer serves all of them"
            raise InvalidArgument("alpha0", "alpha", allowed)
        problem = replace(problem, alpha0=positive("alpha", np.ravel(alpha)).item())
    spiked_model(problem, beta)  # refuses what the theory does
    d = whole("dimension", dimension, 2, "the input dimension d")
    ratios = positive("alpha", alpha)
    tests = TEST_INPUTS * max(d, size("alpha", float(ratios.max()), d))
    try:
        kind = Simulated(simulated)
    except ValueError:
        raise InvalidArgument("simulated", simulated, f"one of {', '.join(Simulated)}") from None
    if kind is Simulated.network and not problem.schedule:
        kind = Simulated.srf
    if reuse and reuse * ratios.max() > problem.schedule[0][0] * (1 + 1e-12):
        allowed = "at least reuse * alpha: the step has all samples that are reused"
        raise InvalidArgument("alpha0", problem.schedule[0][0], allowed)
    sizes = {"alpha": tuple(map(float, ratios)), "dimension": d, "beta": beta}
    return {"problem": problem, "simulated": kind, "test_samples": tests, "reuse": reuse, **sizes}


def _given(
    problem: Any, simulated: str, *, alpha: Any, samples: Any, **sizes: Any
) -> dict[str, Any]:
    """Fields of the experiment of a given first layer, or of given features."""
    for name, value in sizes.items():
        if value is not None:
            allowed = "left out of what is given, which has a size of its own"
            raise InvalidArgument(name, value, allowed)
    if simulated != "network":
        allowed = "left out: a given layer, or given features, are simulated as they are"
        raise InvalidArgument("simulated", simulated, allowed)
    name, samples = asked(problem, alpha, samples)
    if name == "alpha":
        samples = np.rint(samples_of(problem, name, positive(name, samples))).astype(int)
    most = len(problem.labels) - 1 if isinstance(problem, FeatureSample) else MOST
    meaning = "samples of the readout"
    counts = tuple(whole("samples", n, 1, meaning, most) for n in np.atleast_1d(samples).tolist())
    if not counts:
        raise InvalidArgument("samples", samples, "one number of samples, or several")
    layer = isinstance(problem, FirstLayer)
    kind, d = (Fixed.layer, problem.dimension) if layer else (Fixed.features, problem.width)
    tests = TEST_INPUTS * max(d, *counts)
    if isinstance(problem, FeatureSample):
        tests = len(problem.labels) - max(counts)
    sizes = {"samples": counts, "dimension": d, "test_samples": tests}
    return {"problem": problem, "simulated": kind, "alpha": (), "beta": None, **sizes}
