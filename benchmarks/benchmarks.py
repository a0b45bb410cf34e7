"""The asv suite: ``ASV_PYTHONPATH=$PWD asv run --config benchmarks/asv.conf.json --python=same``.

Speed of the ridge kernel, of the public functions, of the command as a whole process and of
the simulation, with the literal baseline beside them; iterations and residuals of both.
"""

import itertools
import os
import subprocess
import sys
import tempfile
from dataclasses import replace

import numpy as np

import replica
from replica.equivalence import table_at
from replica.problem.laws import law
from replica.saddle_point import ridge, solve_damped
from validation import simulate

from . import literal, single_step

ridge.calls_of_one_group[0] = 1000  # times are those of all points but a process's first few
ONE_STEP = replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
THREE_STEPS = replica.GradientStep(student="tanh", target="sin", steps=[(2, 1)] * 3)
MODEL = ONE_STEP.srf(beta=1.0)
SIGN_LABELS = replica.SpikedRandomFeatures(student="tanh", target="sign", r=1.5, c=1.3, gamma=0.8)
# Of real labels only outliers are noisy: the others show every kink of a loss.
OUTLIER_LABELS = replace(SIGN_LABELS, target="sin", label_noise="outliers:0.1:9")
TIMED_LOSSES = {
    "logistic": ("logistic", SIGN_LABELS),
    "hinge": ("hinge", SIGN_LABELS),
    "squared hinge": ("squared_hinge", SIGN_LABELS),
    "absolute, outliers": ("absolute", OUTLIER_LABELS),
    "Huber, Student's t": ("huber:0.5", replace(OUTLIER_LABELS, label_noise="student:3:0.5")),
}
LOSS_GRID = {"alpha": np.linspace(0.2, 3, 25), "lam": [0.01, 0.1, 1.0]}
SHIFTS = (1e-9 * k for k in itertools.count(1))  # of a parameter: models new to all caches
POINT = {"alpha": 0.9, "lam": 0.1}
MANY_ALPHAS = np.linspace(0.2, 3, 1000)
PROBLEM_OPTIONS = ["--student", "tanh", "--target", "sin", "--alpha0", "20", "--eta", "3"]
CURVE_OPTIONS = [*PROBLEM_OPTIONS, "--alpha", "0.2:3:5", "--lam", "0.1", "--json"]
CURVE_COMMAND = ["-m", "replica", "curve", *CURVE_OPTIONS]

# Where Python, numba and matplotlib keep what they need not compute again.
CACHES = ("PYTHONPYCACHEPREFIX", "NUMBA_CACHE_DIR", "MPLCONFIGDIR", "XDG_CACHE_HOME")


def kernel_table(model=MODEL):
    """The table of 128 nodes that the kernel is timed on."""
    table = table_at(model, 1)
    assert len(table.weights) == 128
    return table


def groups_table(student="sigmoid", count=32):
    """A table of 128 nodes with ``count`` groups: the values of a Gaussian readout.

    For the sigmoid all groups respond differently; for tanh, opposite values respond alike.
    """
    values, shares = law("readout", "gaussian").discretise(count)
    step = replace(ONE_STEP, student=student, readout=(values.tolist(), shares.tolist()))
    return kernel_table(step.srf(beta=1.0))


def python(*arguments, **environment):
    """Run this interpreter with ``arguments`` to its end; a failure raises."""
    subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )


def python_first_run(*arguments):
    """The same with every cache empty: all modules are compiled anew, numpy's included."""
    with tempfile.TemporaryDirectory() as empty:
        python(*arguments, **dict.fromkeys(CACHES, empty))


class RidgeKernel:
    """``ridge.solve_points`` on a table of 128 nodes, and with residuals on two such."""

    params = (1, 1000)
    param_names = ("points",)

    def setup(self, points):
        self.table = kernel_table()
        self.alpha, self.lam = np.linspace(0.2, 3, points), np.full(points, 0.1)

    def time_solve_points(self, points):
        ridge.solve_points(self.table, self.alpha, self.lam)

    def time_solve_and_check(self, points):
        ridge.solve_points(self.table, self.alpha, self.lam, coarse=self.table)


class GeneralKernel:
    """``ridge.solve_points`` on a table of 32 groups and 128 nodes."""

    params = ("sigmoid", "tanh")
    param_names = ("student",)

    def setup(self, student):
        self.table = groups_table(student)
        self.alpha, self.lam = np.array([0.9]), np.array([0.1])

    def time_solve_points(self, student):
        ridge.solve_points(self.table, self.alpha, self.lam)


class Library:
    """The public functions, warm: their tables already made."""

    def setup(self):
        replica.learning_curve(MODEL, alpha=MANY_ALPHAS, lam=0.1)

    def time_solve(self):
        replica.solve(MODEL, **POINT)

    def time_solve_damped(self):
        solve_damped(kernel_table(), np.array([POINT["alpha"]]), np.array([POINT["lam"]]))

    def time_learning_curve_of_1000(self):
        replica.learning_curve(MODEL, alpha=MANY_ALPHAS, lam=0.1)

    def track_iterations(self):
        return replica.solve(MODEL, **POINT).iterations

    def track_residual(self):
        return replica.solve(MODEL, **POINT).residual


class Learnable:
    """Optima and bounds, warm: tables of earlier models already made."""

    def setup(self):
        self.time_optimal_lambda()

    def time_optimal_lambda(self):
        replica.optimal_lambda(MODEL, alpha=1.0)

    def time_optimal_eta_and_lambda(self):
        replica.optimal_eta(ONE_STEP, alpha=1.0, beta=1.0)

    def time_optimal_eta_and_lambda_without_tables(self):
        table_at.cache_clear()
        replica.optimal_eta(ONE_STEP, alpha=1.0, beta=1.0)

    def time_gradient(self):
        replica.gradient(ONE_STEP, **POINT, beta=1.0)

    def time_bounds(self):
        replica.bounds(MODEL)


class Losses:
    """One point of a loss at small and large penalties, tables of its labels included."""

    params = (tuple(TIMED_LOSSES), (1e-4, 0.05, 10.0))
    param_names = ("loss", "lam")

    def setup(self, loss, lam):
        self.point(loss, lam)  # imports and rules

    def time_point(self, loss, lam):
        """Of a model that has no tables yet."""
        self.point(loss, lam, shift=next(SHIFTS))

    def track_nodes(self, loss, lam):
        return self.point(loss, lam).nodes

    def point(self, loss, lam, shift=0.0):
        of, model = TIMED_LOSSES[loss]
        model = replace(model, r=model.r + shift)
        return replica.solve(model, alpha=2.0, lam=lam, loss=of, raise_on_failure=True)


class LossGrids:
    """Losses other than the square on a grid of 25 alpha and 3 lam, whose points share tables."""

    params = (tuple(TIMED_LOSSES),)
    param_names = ("loss",)

    def setup(self, loss):
        self.time_grid(loss)

    def time_grid(self, loss):
        of, model = TIMED_LOSSES[loss]
        replica.learning_curve(model, **LOSS_GRID, loss=of, raise_on_failure=True)


class Density:
    """The spectrum of one group: its edges, and its density at 1000 points."""

    params = (0.7, 2.0)
    param_names = ("alpha",)

    def setup(self, alpha):
        self.spectrum = replica.spectrum(MODEL, alpha)
        self.x = np.linspace(0, 1.05 * self.spectrum.edges.max(), 1000)
        self.spectrum.density(self.x)

    def time_density_of_1000(self, alpha):
        self.spectrum.density(self.x)

    def time_spectrum(self, alpha):
        replica.spectrum(MODEL, alpha)


class Process:
    """Whole processes, the start of the interpreter included."""

    number = 1
    timeout = 120

    def time_import(self):
        python("-c", "import replica")

    def time_curve_warm(self):
        python(*CURVE_COMMAND)

    def time_curve_first_run(self):
        python_first_run(*CURVE_COMMAND)


class Literal:
    """The equations as typed from the paper."""

    number = 1
    repeat = (1, 3, 20.0)
    timeout = 300

    def setup_cache(self):
        return literal.spectrum(MODEL.c, MODEL.beta)

    def time_set_up(self, eigenvalues):
        literal.spectrum(MODEL.c, MODEL.beta)

    def time_point(self, eigenvalues):
        literal.solve(MODEL, eigenvalues=eigenvalues, **POINT)

    def track_iterations(self, eigenvalues):
        return literal.solve(MODEL, eigenvalues=eigenvalues, **POINT).iterations

    def track_residual(self, eigenvalues):
        return literal.solve(MODEL, eigenvalues=eigenvalues, **POINT).residual


class Simulation:
    """A Monte Carlo of the network, small enough to repeat."""

    def time_simulate(self):
        simulate(ONE_STEP, **POINT, dimension=200, seeds=2, rng=0, beta=1.0)


class Steps:
    """Several giant steps, the staircase of a target, and the streamed single-step experiment."""

    timeout = 300

    def time_three_steps(self):
        replica.after_each_step(THREE_STEPS)

    def time_staircase(self):
        replica.staircase("z1 + z1*z2 + z1*z2*z3")

    def time_streamed_single_step(self):
        single_step.streamed(3326, test_samples=3326)

    def time_plain_single_step(self):
        single_step.plain(3326, test_samples=3326)
