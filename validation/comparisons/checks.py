"""Whether theory and simulation agree: a z score and a verdict for every error.

A mean over seeds differs from the theory by its sampling error, which ``stderr`` estimates,
and by a finite-size bias of order 1/d.  Both are allowed for:

    |theory - simulated| <= 4 stderr max(1, theory / simulated) + allowance * theory.

The factor: errors vary between seeds by a factor rather than by an amount, and the more the
closer the readout comes to interpolation.  A few seeds that miss the rare large values are too
low in mean and in standard error alike; it is the relative standard error that they estimate.
"""

from dataclasses import dataclass

import numpy as np

from replica.observables import sweep
from replica.problem import SpikedRandomFeatures
from solvers.results import Array

from ..run import Simulation

STANDARD_ERRORS = 4.0  # few of some hundred errors with Gaussian noise are further off
ALLOWANCE = 20.0  # times 1/d: the finite-size bias allowed for, measured in ``compare``


@dataclass(frozen=True, eq=False)
class Check:
    """One kind of error, theory beside simulation.  Every array is (N_a, N_l).

    Attributes
    ----------
    theory : array
        NaN where the theory did not converge.
    simulated, stderr : array
        Mean over the seeds, and its standard error.
    """

    theory: Array
    simulated: Array
    stderr: Array

    @property
    def z(self) -> Array:
        """(theory - simulated) / stderr."""
        with np.errstate(divide="ignore", invalid="ignore"):  # a constant target has stderr 0
            return np.asarray((self.theory - self.simulated) / self.stderr)

    def agrees(self, allowance: float) -> Array:
        """Boolean array: whether the difference is within the tolerance of this module.

        False where the theory did not converge.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = self.stderr * (self.theory / self.simulated)
        stderr = np.fmax(self.stderr, scaled)  # ignores the 0/0 of a target that is zero
        # 1e-12 for rounding: all else vanishes for a constant target with an intercept
        tolerance = STANDARD_ERRORS * stderr + allowance * self.theory + 1e-12
        return np.asarray(np.abs(self.theory - self.simulated) <= tolerance)


def share_within_two(*checks: Check) -> float:
    """Share of all errors with abs(z) <= 2."""
    return float((np.abs([check.z for check in checks]) <= 2).mean())


def columns(simulation: Simulation, test: Check, train: Check) -> dict[str, Array]:
    """What a comparison knows of every point, by name: arrays (N_a, N_l)."""
    known = simulation.columns()
    return {
        "alpha": known["alpha"],
        "lam": known["lam"],
        "theory_test": test.theory,
        "simulated_test": test.simulated,
        "stderr_test": test.stderr,
        "z": test.z,
        "theory_train": train.theory,
        "simulated_train": train.simulated,
        "stderr_train": train.stderr,
        "z_train": train.z,
    }


def theory_at(model: SpikedRandomFeatures, simulation: Simulation) -> dict[str, Array]:
    """What the theory has at the points simulated, by name of what is measured, (N_a, N_l) each."""
    alpha, lam = simulation.alpha, simulation.lam
    theory = sweep(model, alpha=alpha, lam=lam, grids={}, loss=simulation.loss).columns
    names = ("test_error", "train_error", *simulation.measured)
    return {name: theory[name].reshape(simulation.test_mean.shape) for name in names}
