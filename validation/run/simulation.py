"""The result of a Monte Carlo: errors of every seed, their means and standard errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.random import SeedSequence

from replica import __version__
from replica.convex import Loss
from replica.display import Displayed
from replica.files import plain
from replica.given import Given
from replica.observables import data_set
from replica.plotting import plot_comparison
from replica.problem import Problem
from solvers.results import Array

from .cells import Experiment, Fixed

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


def _mean(name: str) -> Any:
    """The property of a mean over the seeds."""
    mean_doc = f"Mean {name} over the seeds, (N_a, N_l); NaN where it is not measured."
    return property(lambda result: result._of_seeds(name).mean(axis=0), doc=mean_doc)


def _stderr(name: str) -> Any:
    """The property of the standard error of a mean over the seeds."""
    stderr_doc = f"Standard error of ``{name}``, (N_a, N_l)."
    return property(lambda result: standard_error(result._of_seeds(name)), doc=stderr_doc)


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Displayed):
    """Test and training errors of S seeds at N_a values of alpha and N_l of lam.

    Returned by :func:`validation.simulate`.  Where a first layer or features are given, samples is
    in the place of alpha on all axes.

    Attributes
    ----------
    experiment : Experiment
        Sizes, problem and seeds that were simulated.
    seed : (S,) of int
        The indices of the seeds.
    errors : dict of name -> (S, N_a, N_l)
        Errors of every seed, by the names that a :class:`replica.Solution` has for them: test_error
        is the mean of (target - prediction)^2 over fresh inputs, on noiseless targets, train_error
        (1/n) sum (y - f)^2 over the training set; where labels are +-1 there is
        classification_error, and of a loss other than the square there are loss_error and
        train_loss.  Their means over the seeds are attributes of these names.
    test_variance : (S, N_a, N_l)
        Variance of the test error of a seed that is due to the finite test set.
    single : tuple of str
        Axes that were given as a number: in ``dataset`` they are no dimension.
    """

    experiment: Experiment
    seed: Array
    errors: dict[str, Array]
    test_variance: Array
    single: tuple[str, ...] = ()

    test_error = _mean("test_error")
    train_error = _mean("train_error")
    classification_error = _mean("classification_error")
    loss_error = _mean("loss_error")
    train_loss = _mean("train_loss")
    test_error_stderr = _stderr("test_error")
    train_error_stderr = _stderr("train_error")
    classification_error_stderr = _stderr("classification_error")

    @property
    def problem(self) -> Problem | Given:
        """The simulated problem."""
        simulated_problem: Problem | Given = self.experiment.problem
        return simulated_problem

    @property
    def beta(self) -> float:
        """Width over input dimension, p/d."""
        is_given = self.experiment.samples
        return self.experiment.width / self.dimension if is_given else self.experiment.model.beta

    @property
    def dimension(self) -> int:
        """Input dimension d; of given features, their number."""
        return self.experiment.dimension

    @property
    def alpha(self) -> Array:
        """Readout samples over input dimension, (N_a,)."""
        return np.array(self.experiment.alpha or self.samples / self.dimension)

    @property
    def samples(self) -> Array:
        """Readout samples n, (N_a,) of int."""
        return self.experiment.sizes

    @property
    def axes(self) -> dict[str, Array]:
        """Axes of the errors: alpha, or samples of a given layer or of features, and lam."""
        given = self.experiment.samples
        return ({"samples": self.samples} if given else {"alpha": self.alpha}) | {"lam": self.lam}

    @property
    def lam(self) -> Array:
        """Ridge penalties, (N_l,)."""
        return np.array(self.experiment.lam)

    @property
    def loss(self) -> Loss:
        """Loss that the readout minimises."""
        return self.experiment.loss

    @property
    def seed_sequence(self) -> SeedSequence:
        """The SeedSequence that gives this simulation again when taken as ``rng``."""
        return SeedSequence(self.experiment.entropy, spawn_key=self.experiment.spawn_key)

    @property
    def seeds(self) -> int:
        """S, the number of independent draws of each point."""
        return len(self.seed)

    def _of_seeds(self, name: str) -> Array:
        """An error of every seed; NaN where it is not measured."""
        seed_errors = self.errors.get(name)
        return np.full_like(self.test_variance, np.nan) if seed_errors is None else seed_errors

    @property
    def test_noise(self) -> Array:
        """The part of ``test_error_stderr`` that is due to the finite test sets, (N_a, N_l)."""
        return np.asarray(np.sqrt(self.test_variance.mean(axis=0) / self.seeds))

    @property
    def columns(self) -> dict[str, Array]:
        """Means and standard errors at every point, by name: arrays (N_a, N_l)."""
        axis_mesh = np.meshgrid(*self.axes.values(), indexing="ij")
        mean_columns: dict[str, Array] = dict(zip(self.axes, axis_mesh, strict=True))
        for error, values in self.errors.items():
            mean_columns |= {error: values.mean(axis=0), f"{error}_stderr": standard_error(values)}
        return mean_columns | {"test_noise": self.test_noise}

    def document(self, columns: Mapping[str, Array] | None = None) -> dict[str, Any]:
        """Plain values for JSON: problem, points, dimension (of features their number, the width)
        and seeds; None for NaN.

        ``columns``, (N_a, N_l) each, take the place of those above.
        """
        columns = self.columns if columns is None else columns
        simulation_document = {"problem": self._described, "points": rows_of(columns)}
        simulation_document |= self._size | self.origin
        return dict(plain(simulation_document | {"rng": self.experiment.entropy}))

    @property
    def _described(self) -> dict[str, Any]:
        """The problem, with its width and, where it is not the square, its loss."""
        loss_field = {} if self.loss.is_square else {"loss": self.loss.name}
        width_field = {} if self.experiment.samples else {"beta": self.beta}
        return self.experiment.described | width_field | loss_field

    @property
    def settings(self) -> dict[str, Any]:
        """The problem and the size of the simulation, in plain values."""
        return self._described | self._size

    @property
    def _size(self) -> dict[str, Any]:
        """The input dimension, or the number of given features, and the draws."""
        of_given_features = self.experiment.simulated is Fixed.features
        return {"width" if of_given_features else "dimension": self.dimension, "seeds": self.seeds}

    @property
    def origin(self) -> dict[str, Any]:
        """Values that, with the settings, it takes to run the simulation again."""
        simulated_experiment = self.experiment
        return {
            "simulated": str(simulated_experiment.simulated),
            "test_samples": simulated_experiment.test_samples,
            "rng": str(simulated_experiment.entropy),  # NetCDF has no integers so long
            "spawn_key": list(simulated_experiment.spawn_key),
            "versions": f"replica-srf {__version__}, numpy {np.__version__}, "
            f"scipy {scipy.__version__}",
        }

    def plot(self, ax: "Axes | None" = None, *, error: str | None = None) -> "Axes":
        """The means with two standard errors, :func:`replica.plotting.plot_comparison`."""
        return plot_comparison(self.dataset(), ax=ax, error=error)

    def _facts(self) -> dict[str, Any]:
        simulated_model = str(self.experiment.simulated)
        return {"simulated": simulated_model} | self.columns | self.axes

    def _rows(self) -> list[dict[str, Any]]:
        return rows_of(self.columns)

    def dataset(self) -> "xarray.Dataset":
        """Errors as an xarray.Dataset over alpha (or samples) and lam; errors of every seed, over
        the dimension seed, too, have names that end in _by_seed."""
        by_seed = {f"{error}_by_seed": values for error, values in self.errors.items()}
        dims, seed_errors = ("seed", *self.axes), by_seed | {"test_variance": self.test_variance}
        simulation_settings = self.settings | self.origin
        seed_axes: dict[str, Any] = {error: (dims, values) for error, values in seed_errors.items()}
        seed_axes["seed"] = "seed", self.seed
        return data_set(self.axes, self.columns, simulation_settings, self.single, seed_axes)


def rows_of(columns: Mapping[str, Array]) -> list[dict[str, Any]]:
    """Columns as a row for each point."""
    point_rows = zip(*(column.ravel().tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, point_values, strict=True)) for point_values in point_rows]


def standard_error(samples: Array) -> Array:
    """Standard error of the mean over the first axis; NaN of a single sample."""
    if len(samples) < 2:
        return np.full(samples.shape[1:], np.nan)
    return np.asarray(samples.std(axis=0, ddof=1) / np.sqrt(len(samples)))
