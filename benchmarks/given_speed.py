"""What a point of the learning curve of a given layer costs.

    OMP_NUM_THREADS=1 python -m benchmarks.given_speed [p ...]

For each layer, of 400 and 1 000 neurons unless said: the processor time of a point of ten, what is
made once for all of them included, in inverses of a p x p matrix by ``numpy.linalg.inv``; and the
largest memory, in such matrices.  Then how many times faster a point is than section 20 as it is
written (``tests.given.literal``), at 1 024 strata of three directions; what the latter makes once
is left out.  Last, a curve of 20 numbers of samples beside its simulation with 20 draws of each, at
the largest p, both in elapsed time of one thread.
"""

import sys
import time
import timeit
import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np

import replica
from replica.problem import activation
from solvers.resources import one_thread
from tests.given.literal import layer_moments, ridge_errors
from tests.given.simulated import giant_step
from validation import simulate

NOISE = 0.1


def seconds(call: Callable[[], object], repeats: int = 1) -> float:
    """The least processor time of a call."""
    return min(timeit.repeat(call, number=1, repeat=repeats, timer=time.process_time))


def after_step(student: str, target: str, p: int, **options: str) -> replica.FirstLayer:
    """A layer after one giant step, d = p."""
    rng, sigma, directions = np.random.default_rng(0), activation(student), np.eye(p)[:, :1]
    teacher = activation(target)
    weights = giant_step(rng, p, p, sigma, sigma.slope, teacher, directions, 20, 3.0)
    return replica.FirstLayer(
        weights=weights,
        student=student,
        target=target,
        directions=directions,
        noise=NOISE,
        **options,
    )


def three_directions(p: int) -> replica.FirstLayer:
    """Relu rows, a third as long along each of three directions as in the bulk, d = p."""
    weights = np.random.default_rng(0).standard_normal((p, p)) / np.sqrt(p)
    weights[:, :3] += 0.3 * np.random.default_rng(1).standard_normal((p, 3)) + 0.3
    target, directions = "z1 + z1*z2 + sin(z3)", np.eye(p)[:, :3]
    return replica.FirstLayer(
        weights=weights, student="relu", target=target, directions=directions, noise=NOISE
    )


def curve(layer: replica.FirstLayer) -> object:
    """Ten points."""
    return replica.learning_curve(layer, alpha=np.linspace(0.25, 3, 10), lam=0.1)


def of_layer(name: str, layer: replica.FirstLayer) -> None:
    """Prints the row of a layer."""
    p = layer.width
    matrix = np.eye(p) + 0.1 * np.random.default_rng(0).standard_normal((p, p)) / np.sqrt(p)
    with one_thread():
        inverse = seconds(lambda: np.linalg.inv(matrix), 3)
        point = seconds(lambda: curve(layer)) / 10
    tracemalloc.start()
    curve(layer)
    memory = tracemalloc.get_traced_memory()[1] / matrix.nbytes
    tracemalloc.stop()
    print(f"{name:10} p = {p:5}: {point / inverse:6.1f} inverses, {memory:5.1f} matrices")


def against_literal(p: int = 200) -> None:
    """Prints the ratio to the equations as they are written."""
    layer = three_directions(p)
    nodes = np.random.default_rng(2).standard_normal((1024, 3))
    options = layer.weights, layer.bias, layer.student, layer.directions, nodes
    mu, S = layer_moments(*options)
    h = nodes[:, 0] + nodes[:, 0] * nodes[:, 1] + np.sin(nodes[:, 2])
    labels = h, np.zeros(1024), np.zeros_like(mu), NOISE
    with one_thread():
        ours = seconds(lambda: curve(layer)) / 10
        theirs = seconds(lambda: ridge_errors(np.ones(1024) / 1024, mu, S, *labels, p, 0.1))
    print(f"literal, p = {p}: {theirs:.2f} s a point, {theirs / ours:.0f} times as long")


def against_simulation(p: int) -> None:
    """Prints the ratio to the simulation that a curve replaces."""
    samples = np.linspace(p // 4, 3 * p, 20).astype(int)
    layer, at = after_step("tanh", "sin", p), dict(lam=0.1, samples=samples)
    taken = []
    with one_thread():
        for call in (replica.learning_curve, partial(simulate, seeds=20, rng=0, workers=1)):
            start = time.perf_counter()
            call(layer, **at)
            taken.append(time.perf_counter() - start)
    theory, simulation = taken
    times = f"{theory:.1f} s; simulated with 20 draws: {simulation:.0f} s"
    print(f"a curve of 20 points, p = {p}: {times}, {simulation / theory:.0f} times as long")


if __name__ == "__main__":
    curve(three_directions(20))  # what Python and the libraries do once
    sizes = [int(p) for p in sys.argv[1:] or ["400", "1000"]]
    for p in sizes:
        of_layer("tanh", after_step("tanh", "sin", p))
        of_layer("relu", after_step("relu", "relu", p))
        of_layer("relu, K=3", three_directions(p))
        of_layer("gelu", after_step("gelu", "tanh", p))
        of_layer("softplus", after_step("softplus", "z1 + z1**2", p))
    against_literal()
    against_simulation(max(sizes))
