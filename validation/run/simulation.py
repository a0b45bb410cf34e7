"""The result of a Monte Carlo: errors of every seed, their means and standard errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.random import SeedSequence

from replica import __version__
from replica.convex import Loss
from replica.display import Displayed
from replica.documents import plain
from replica.given import Given as GivenModel
from replica.plotting import plot_comparison
from replica.problem import Problem, netcdf_attributes
from solvers.results import Array

from .cells import SQUARED_ERRORS, Experiment, Given

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

UNITS = {  # of what is measured
    "test_error": "mean squared error",
    "train_error": "mean squared error",
    "test_variance": "(mean squared error)^2",
    "loss_error": "mean loss",
    "train_loss": "mean loss",
    "classification_error": "share of samples",
}


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Displayed):
    """Test and training errors of S seeds at N_a values of alpha and N_l of lam.

    Returned by :func:`validation.simulate`.  Where a first layer or features are given, samples is
    in the place of alpha on all axes.

    Attributes
    ----------
    experiment : Experiment
        What was simulated.
    seed : (S,) of int
        The indices of the seeds.
    test_error : (S, N_a, N_l)
        Mean of (target - prediction)^2 over fresh inputs, on noiseless targets.
    train_error : (S, N_a, N_l)
        (1/n) sum (y - f)^2 over the training set.
    test_variance : (S, N_a, N_l)
        Variance of ``test_error`` that is due to the finite test set.
    measured : dict of name -> (S, N_a, N_l)
        Of a loss other than the square loss_error and train_loss, mean losses of new and of
        training samples; where labels are +-1 classification_error.
    """

    experiment: Experiment
    seed: Array
    test_error: Array
    train_error: Array
    test_variance: Array
    measured: dict[str, Array] = field(default_factory=dict)

    @property
    def problem(self) -> Problem | GivenModel:
        """What was simulated."""
        problem: Problem | GivenModel = self.experiment.problem
        return problem

    @property
    def beta(self) -> float:
        """Width over input dimension, p/d."""
        given = self.experiment.samples
        return self.experiment.width / self.dimension if given else self.experiment.model.beta

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
        """Where errors are: alpha, or the samples of what is given, and lam."""
        given = self.experiment.samples
        return ({"samples": self.samples} if given else {"alpha": self.alpha}) | {"lam": self.lam}

    @property
    def lam(self) -> Array:
        """Ridge penalties, (N_l,)."""
        return np.array(self.experiment.lam)

    @property
    def loss(self) -> Loss:
        """What the readout minimises."""
        return self.experiment.loss

    @property
    def seed_sequence(self) -> SeedSequence:
        """The SeedSequence that gives this simulation again when taken as ``rng``."""
        of = self.experiment
        return SeedSequence(of.entropy, spawn_key=of.spawn_key, pool_size=of.pool_size)

    @property
    def seeds(self) -> int:
        """S, the number of independent draws of each point."""
        return len(self.test_error)

    @property
    def test_mean(self) -> Array:
        """Mean test error over the seeds, (N_a, N_l)."""
        return np.asarray(self.test_error.mean(axis=0))

    @property
    def test_stderr(self) -> Array:
        """Standard error of ``test_mean``, (N_a, N_l)."""
        return standard_error(self.test_error)

    @property
    def test_noise(self) -> Array:
        """The part of ``test_stderr`` that is due to the finite test sets, (N_a, N_l)."""
        return np.asarray(np.sqrt(self.test_variance.mean(axis=0) / self.seeds))

    @property
    def train_mean(self) -> Array:
        """Mean training error over the seeds, (N_a, N_l)."""
        return np.asarray(self.train_error.mean(axis=0))

    @property
    def train_stderr(self) -> Array:
        """Standard error of ``train_mean``, (N_a, N_l)."""
        return standard_error(self.train_error)

    @property
    def errors(self) -> dict[str, Array]:
        """What has a theory, by name: squared errors, and what else is measured; (S, N_a, N_l)."""
        measured = dict(sorted(self.measured.items()))
        return {"test": self.test_error, "train": self.train_error, **measured}

    def columns(self) -> dict[str, Array]:
        """What is known of every point, by name: arrays (N_a, N_l)."""
        at = np.meshgrid(*self.axes.values(), indexing="ij")
        return {
            **dict(zip(self.axes, at, strict=True)),
            "simulated_test": self.test_mean,
            "stderr_test": self.test_stderr,
            "test_noise": self.test_noise,
            "simulated_train": self.train_mean,
            "stderr_train": self.train_stderr,
            **{f"simulated_{name}": values.mean(axis=0) for name, values in self.measured.items()},
            **{f"stderr_{name}": standard_error(v) for name, v in self.measured.items()},
        }

    def document(self, columns: Mapping[str, Array] | None = None) -> dict[str, Any]:
        """Plain values for JSON: problem, points, dimension (of features their number, the width)
        and seeds; None for NaN.

        ``columns``, (N_a, N_l) each, take the place of those above.
        """
        columns = self.columns() if columns is None else columns
        document = {"problem": self._described, "points": rows_of(columns)}
        document |= self._size | self.origin
        return dict(plain(document | {"rng": self.experiment.entropy}))

    @property
    def _described(self) -> dict[str, Any]:
        """The problem, with its width and, where it is not the square, its loss."""
        named = {} if self.loss.is_square else {"loss": self.loss.name}
        width = {} if self.experiment.samples else {"beta": self.beta}
        return self.experiment.described | width | named

    @property
    def settings(self) -> dict[str, Any]:
        """The problem and the size of the simulation, in plain values."""
        return self._described | self._size

    @property
    def _size(self) -> dict[str, Any]:
        """The input dimension, or the number of given features, and the draws."""
        of_features = self.experiment.simulated is Given.features
        return {"width" if of_features else "dimension": self.dimension, "seeds": self.seeds}

    @property
    def origin(self) -> dict[str, Any]:
        """What, beside the settings, it takes to run the simulation again."""
        of = self.experiment
        return {
            "simulated": str(of.simulated),
            "test_samples": of.test_samples,
            "rng": str(of.entropy),  # NetCDF has no integers so long
            "spawn_key": list(of.spawn_key),
            "versions": f"replica-srf {__version__}, numpy {np.__version__}, "
            f"scipy {scipy.__version__}",
        }

    def plot(self, ax: "Axes | None" = None, *, error: str | None = None) -> "Axes":
        """The means with two standard errors, :func:`replica.plotting.plot_comparison`."""
        points = points_dataset(self.axes, self.columns(), self.settings)
        return plot_comparison(points, ax=ax, error=error)

    def _facts(self) -> dict[str, Any]:
        drawn = str(self.experiment.simulated)
        names = (*self.axes, "test_mean", "test_stderr", "train_mean", "train_stderr")
        return {"simulated": drawn} | {name: getattr(self, name) for name in names}

    def _rows(self) -> list[dict[str, Any]]:
        return rows_of(self.columns())

    def dataset(self) -> "xarray.Dataset":
        """Everything, as an xarray.Dataset with dimensions seed, alpha (or samples), lam."""
        import xarray

        dims = ("seed", *self.axes)
        measured = {name: getattr(self, name) for name in SQUARED_ERRORS} | self.measured
        each = {name: (dims, of, {"units": UNITS[name]}) for name, of in measured.items()}
        over = {
            name: (dims[1:], getattr(self, name), {"units": UNITS["test_error"]})
            for name in ("test_mean", "test_stderr", "test_noise", "train_mean", "train_stderr")
        }
        axes = {
            "seed": ("seed", self.seed, {"long_name": "index of the draw"}),
            "alpha": ("alpha", self.alpha, {"units": "n/d", "long_name": "readout samples"}),
            "samples": ("samples", self.samples, {"long_name": "readout samples"}),
            "lam": ("lam", self.lam, {"long_name": "ridge penalty"}),
        }
        attrs = netcdf_attributes(self.settings | self.origin)
        return xarray.Dataset(
            {**each, **over}, coords={name: axes[name] for name in dims}, attrs=attrs
        )


def rows_of(columns: Mapping[str, Array]) -> list[dict[str, Any]]:
    """Columns as a row for each point."""
    rows = zip(*(values.ravel().tolist() for values in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def points_dataset(
    axes: Mapping[str, Array], columns: Mapping[str, Array], settings: Mapping[str, Any]
) -> "xarray.Dataset":
    """Columns as an xarray.Dataset over the axes."""
    import xarray

    variables = {name: (tuple(axes), v) for name, v in columns.items() if name not in axes}
    return xarray.Dataset(variables, axes, netcdf_attributes(dict(settings)))


def standard_error(samples: Array) -> Array:
    """Standard error of the mean over the first axis; NaN of a single sample."""
    if len(samples) < 2:
        return np.full(samples.shape[1:], np.nan)
    return np.asarray(samples.std(axis=0, ddof=1) / np.sqrt(len(samples)))
