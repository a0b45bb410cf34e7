"""What comparisons at one size and at several have in common: agreement, verdict, figure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from replica.display import Displayed
from replica.observables import sweep
from replica.plotting import plot_comparison, spaced
from solvers.results import Array

from ..run import Simulation, points_dataset, rows_of
from .checks import Check, lean, share_within_two, verdict
from .theory import Theory

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


class Compared(Displayed):
    """Errors of theory and simulation at the same points.

    Attributes
    ----------
    test, train : Check
        Test and training errors.
    allowance : float
        What the simulated errors may be off by, relative to the theory, for their finite size.
    theory : Theory
        Which theory it is.
    """

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
    def share_within_two(self) -> float:
        """Share of all errors with abs(z) <= 2."""
        return share_within_two(*self.checks.values())

    @property
    def agrees(self) -> bool:
        """Whether every error is within 4 standard errors and the allowance of the theory.

        False if the theory did not converge somewhere.
        """
        return all(bool(check.agrees(self.allowance).all()) for check in self.checks.values())

    @property
    def leans(self) -> bool:
        """Whether the errors lie to one side of the theory together, by more than chance."""
        return lean(np.array([check.z for check in self.checks.values()]))

    @property
    def note(self) -> str:
        """Which theory it is, and why where that may surprise."""
        return self.theory.note

    @property
    def verdict(self) -> str:
        """Whether theory and simulation agree, in one sentence."""
        return verdict(self.checks, self.alpha, self.lam, self.allowance, self.size)

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
        """The columns as an xarray.Dataset with dimensions alpha, lam."""
        return points_dataset(self.columns(), self.settings)

    def plot(self, ax: "Axes | None" = None, *, error: str | None = None) -> "Axes":
        """Theory as lines and simulation as points, :func:`replica.plotting.plot_comparison`.

        Thinner lines: the published sRF beside the network's own theory, and the limit d -> inf
        where the theory is that of the simulated dimension.
        """
        beside = {label: self._curve(model) for label, model in self._beside.items()}
        theory, simulated = self._curve(self.theory.model), self.simulated
        return plot_comparison(
            self.dataset(), theory, ax, beside=beside, error=error, simulated=simulated
        )

    def _curve(self, model: Any) -> "xarray.Dataset":
        """The theory of ``model`` along alpha, at more points than were simulated."""
        alpha, loss = spaced(self.alpha), self._simulation.loss
        return sweep(model, alpha=alpha, lam=self.lam, grids={}, loss=loss).dataset()

    @property
    def _beside(self) -> Mapping[str, Any]:
        """Other theories by their labels."""
        theory = self.theory
        others = {} if theory.published is None else {"sRF": theory.published}
        if np.isfinite(theory.model.dimension):
            others[r"limit $d \to \infty$"] = replace(theory.model, dimension=np.inf)
        return others

    def _facts(self) -> dict[str, Any]:
        z = {f"z of {name}": check.z.ravel().round(2) for name, check in self.checks.items()}
        return z | {"verdict": self.verdict, "theory": self.note}

    def _rows(self) -> list[dict[str, Any]]:
        return rows_of(self.columns())
