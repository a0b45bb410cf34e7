"""What comparisons at one size and at several have in common: agreement, verdict, figure."""

from typing import TYPE_CHECKING, Any

import numpy as np

from replica.convex import Loss
from replica.display import Displayed
from replica.plotting import plot_comparison, spaced
from solvers.results import Array

from ..run import Simulation, points_dataset, rows_of
from .checks import Check, differ, verdict
from .theory import Theory, curves

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


class Compared(Displayed):
    """Errors of theory and simulation at the same points; the attributes are documented in
    :class:`Comparison` and :class:`Ladder`."""

    test: Check
    train: Check
    allowance: float
    theory: Theory
    simulated = "simulated"  # what the errors that are compared are

    @property
    def _simulation(self) -> Simulation:
        """The simulation whose problem and points these are."""
        raise NotImplementedError

    @property
    def size(self) -> str:
        """What ``allowance`` is for."""
        raise NotImplementedError

    @property
    def checks(self) -> dict[str, Check]:
        """The checks by the names of the errors: test, train, and what else is measured."""
        return {"test": self.test, "train": self.train}

    @property
    def alpha(self) -> Array:
        """Readout samples over input dimension, (N_a,)."""
        return self._simulation.alpha

    @property
    def lam(self) -> Array:
        """Ridge penalties, (N_l,)."""
        return self._simulation.lam

    @property
    def loss(self) -> Loss:
        """What the readout minimises."""
        return self._simulation.loss

    @property
    def agrees(self) -> bool:
        """Whether every error is within 4 standard errors and the allowance of the theory.

        False if the theory did not converge somewhere.
        """
        return all(bool(check.agrees(self.allowance).all()) for check in self.checks.values())

    @property
    def differs(self) -> bool:
        """Whether the errors differ from the theory by more than chance: one of them by far, or all
        to one side."""
        z = np.array([check.z for check in self.checks.values()])
        return differ(z, self._simulation.seeds)

    @property
    def note(self) -> str:
        """Which theory it is, and why where that may surprise."""
        return self.theory.note

    @property
    def verdict(self) -> str:
        """Whether theory and simulation agree, in one sentence."""
        return verdict(
            self.checks,
            self.alpha,
            self.lam,
            allowance=self.allowance,
            size=self.size,
            seeds=self._simulation.seeds,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The problem and the size of the simulation, in plain values."""
        return self._simulation.settings

    def columns(self) -> dict[str, Array]:
        """What is known of every point, by name: arrays (N_a, N_l)."""
        known = self._simulation.columns()
        columns = {name: known[name] for name in ("alpha", "lam")}
        for name, check in self.checks.items():
            parts = {part: getattr(check, part) for part in ("theory", "simulated", "stderr")}
            columns |= {f"{part}_{name}": values for part, values in parts.items()}
            columns["z" if name == "test" else f"z_{name}"] = check.z
        return columns

    def dataset(self) -> "xarray.Dataset":
        """The columns as an xarray.Dataset with dimensions alpha, lam; its attributes are what it
        takes to run the comparison again."""
        return points_dataset(self.columns(), self.settings | self.origin)

    @property
    def origin(self) -> dict[str, Any]:
        """What, beside the settings, it takes to run the comparison again."""
        return self._simulation.origin | {"theory": self.note}

    def plot(self, ax: "Axes | None" = None, *, error: str | None = None) -> "Axes":
        """Theory as lines and simulation as points, :func:`replica.plotting.plot_comparison`.

        Thin lines: the published sRF beside the network's own theory; pale ones: the limit d -> inf
        where the theory is that of the simulated dimension.
        """
        lines = curves([self.theory], {}, spaced(self.alpha), self.lam, self.loss)
        return plot_comparison(self.dataset(), lines, ax, error=error, simulated=self.simulated)

    def _facts(self) -> dict[str, Any]:
        z = {f"z of {name}": check.z.ravel().round(2) for name, check in self.checks.items()}
        return z | {"verdict": self.verdict, "theory": self.note}

    def _rows(self) -> list[dict[str, Any]]:
        return rows_of(self.columns())
