"""The network's own theory beside its sRF's: kernel, public functions, and making a model."""

from dataclasses import replace

import numpy as np

import replica
from replica.saddle_point import ridge

from .benchmarks import MANY_ALPHAS, ONE_STEP, POINT, SHIFTS, kernel_table

# The network's own theory is timed with many samples in the step, and with few, with and
# without noise of the labels: its averages over the law of a label take more nodes without.
FEW_SAMPLES = replica.GradientStep(student="tanh", target="tanh", alpha0=0.5, eta=3.0)
TIMED_STEPS = {
    "sin, alpha0 = 20": ONE_STEP,
    "noise 0.2": replace(FEW_SAMPLES, noise=0.2),
    "noise 0": FEW_SAMPLES,
}
TIMED_MODELS = {
    "relu, one step": replica.GradientStep(student="relu", target="relu", alpha0=3, eta=3.0),
    "gelu, three steps": replica.GradientStep(
        student="gelu", target="tanh", noise=0.1, steps=[(1, 2)] * 3
    ),
}


class NetworkKernel:
    """``ridge.solve_points`` for the network itself and for its sRF, 1 000 points, 128 nodes."""

    params = (tuple(TIMED_STEPS), ("network", "srf"))
    param_names = ("step", "model")

    def setup(self, step, model):
        self.table = kernel_table(getattr(TIMED_STEPS[step], model)(beta=1.0))
        self.lam = np.full(len(MANY_ALPHAS), 0.1)

    def time_solve_points(self, step, model):
        ridge.solve_points(self.table, MANY_ALPHAS, self.lam)


class Network:
    """The public functions on the network itself, and making its model: what its rows have
    tabulated, of one step and of three."""

    params = (tuple(TIMED_MODELS),)
    param_names = ("step",)

    def setup(self, step):
        self.model = TIMED_MODELS[step].network(beta=1.0)
        self.time_solve(step)

    def time_solve(self, step):
        replica.solve(self.model, **POINT)

    def time_learning_curve_of_1000(self, step):
        replica.learning_curve(self.model, alpha=MANY_ALPHAS, lam=0.1)

    def time_model(self, step):
        """Of a step that is new to all caches."""
        noise = next(SHIFTS)
        replica.solve(replace(TIMED_MODELS[step], noise=noise).network(beta=1.0), **POINT)
