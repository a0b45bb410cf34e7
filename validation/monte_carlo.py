"""Monte Carlo: a problem drawn, trained and tested many times at finite size.

The experiment is a grid of cells (point, seed), a point being a value of alpha.  A cell draws
everything afresh - initial rows, gradient batch, training set, test set - from a seed that
depends on the experiment's entropy and its own two indices alone: cells may run in any order,
and more seeds may be added, without a bit of the others changing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence, default_rng
from numpy.typing import ArrayLike

from replica.curves import positive
from replica.files import plain
from replica.grids import Problem, describe
from solvers.results import Array

from . import readout
from .arguments import seed_sequence, size, whole
from .data import gaussian_inputs
from .features import draw, spiked_model

# Over the input dimension.  Averaging over 8 d inputs adds some 20 % to the variance between
# seeds (measured: 1 to 100 %), which the standard error includes; 4 d inputs add twice that.
TEST_SAMPLES = 8


@dataclass(frozen=True, eq=False)
class Simulation:
    """Test and training errors of S seeds at N_a values of alpha and N_l of lam.

    Attributes
    ----------
    problem : GradientStep or SpikedRandomFeatures
    beta : float
        Width over input dimension, p/d.
    dimension : int
        Input dimension d.
    alpha : (N_a,)
    lam : (N_l,)
    test_error : (S, N_a, N_l)
        Mean of (target - prediction)^2 over fresh inputs, on noiseless targets.
    train_error : (S, N_a, N_l)
        (1/n) sum (y - f)^2 over the training set.
    seed_sequence : numpy.random.SeedSequence
        As ``rng``, it gives this simulation again.
    """

    problem: Problem
    beta: float
    dimension: int
    alpha: Array
    lam: Array
    test_error: Array
    train_error: Array
    seed_sequence: SeedSequence

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
        """Its standard error, (N_a, N_l)."""
        return standard_error(self.test_error)

    @property
    def train_mean(self) -> Array:
        """Mean training error over the seeds, (N_a, N_l)."""
        return np.asarray(self.train_error.mean(axis=0))

    @property
    def train_stderr(self) -> Array:
        """Its standard error, (N_a, N_l)."""
        return standard_error(self.train_error)

    def columns(self) -> dict[str, Array]:
        """What is known of every point, by name: arrays (N_a, N_l)."""
        alpha, lam = np.meshgrid(self.alpha, self.lam, indexing="ij")
        return {
            "alpha": alpha,
            "lam": lam,
            "simulated_test": self.test_mean,
            "stderr_test": self.test_stderr,
            "simulated_train": self.train_mean,
            "stderr_train": self.train_stderr,
        }

    def document(self, columns: Mapping[str, Array] | None = None) -> dict[str, Any]:
        """Plain values for JSON: problem, points, dimension and seeds; None for NaN.

        ``columns``, (N_a, N_l) each, take the place of those above.
        """
        columns = self.columns() if columns is None else columns
        rows = zip(*(values.ravel() for values in columns.values()), strict=True)
        document = {
            "problem": describe(self.problem) | {"beta": self.beta},
            "points": [dict(zip(columns, row, strict=True)) for row in rows],
            "dimension": self.dimension,
            "seeds": self.seeds,
        }
        return dict(plain(document))


def standard_error(samples: Array) -> Array:
    """Standard error of the mean over the first axis."""
    return np.asarray(samples.std(axis=0, ddof=1) / np.sqrt(len(samples)))


def simulate(
    problem: Problem,
    *,
    alpha: ArrayLike,
    lam: ArrayLike,
    dimension: int,
    seeds: int,
    rng: Any = None,
    beta: float | None = None,
    test_samples: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Train and test ``problem`` at a finite input dimension.

    Parameters
    ----------
    problem : GradientStep or SpikedRandomFeatures
        The network with its giant step, Eq. (1.1); or the sRF.
    alpha : float or array
        Readout samples over input dimension, n/d; n is rounded.  Every value has draws of
        its own.
    lam : float or array
        Ridge penalties of (1.2).  All of them are fitted to the same draws, so that at one
        alpha the errors at different lam are correlated.
    dimension : int
        Input dimension d, 2 or more.
    seeds : int
        Independent draws of each point, 2 or more.
    rng : None, int, SeedSequence or Generator
    beta : float
        Width over input dimension p/d, for a GradientStep; an sRF has its own.
    test_samples : int
        Inputs over which a test error is averaged, 8 d unless given.
    progress : callable (done, total)
        Called after each cell.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or the problem cannot be simulated.

    Examples
    --------
    >>> from replica import SpikedRandomFeatures
    >>> model = SpikedRandomFeatures(student="erf", target="sin", r=1.0, c=1.0, gamma=0.9)
    >>> found = simulate(model, alpha=[0.5, 2], lam=[0.01, 1], dimension=50, seeds=3, rng=0)
    >>> found.test_error.shape, found.test_mean.shape
    ((3, 2, 2), (2, 2))
    """
    model = spiked_model(problem, beta)
    alpha, lam = positive("alpha", alpha), positive("lam", lam)
    d = whole("dimension", dimension, 2, "the input dimension d")
    seeds = whole("seeds", seeds, 2, "a standard error needs two draws")
    samples = [size("alpha", float(ratio), d) for ratio in alpha]
    if test_samples is None:
        test_samples = TEST_SAMPLES * d
    test_samples = whole("test_samples", test_samples, 1, "inputs a test error is averaged over")
    root = seed_sequence(rng)
    test_error, train_error = errors = np.empty((2, seeds, len(alpha), len(lam)))
    for done, (seed, point) in enumerate(np.ndindex(seeds, len(alpha)), start=1):
        errors[:, seed, point] = run_cell(
            problem,
            samples=samples[point],
            lam=lam,
            dimension=d,
            beta=beta,
            test_samples=test_samples,
            rng=cell_seed(root, point, seed),
        )
        if progress is not None:
            progress(done, seeds * len(alpha))
    return Simulation(problem, model.beta, d, alpha, lam, test_error, train_error, root)


def cell_seed(root: SeedSequence, point: int, seed: int) -> SeedSequence:
    """The seed of one cell: a function of the root and the cell's indices alone."""
    return SeedSequence(
        root.entropy, spawn_key=(*root.spawn_key, point, seed), pool_size=root.pool_size
    )


def run_cell(
    problem: Problem,
    *,
    samples: int,
    lam: Array,
    dimension: int,
    beta: float | None,
    test_samples: int,
    rng: SeedSequence,
) -> Array:
    """Test and training errors, (2, N_l), of one draw of everything."""
    layer, *streams = seed_sequence(rng).spawn(4)
    inputs, noise, test = map(default_rng, streams)
    instance = draw(problem, dimension=dimension, rng=layer, beta=beta)
    X = inputs.standard_normal((samples, dimension))
    y = instance.labels(X, noise)
    model = spiked_model(problem, beta)
    fits = readout.fit(
        lambda bias: instance.features(X, bias),
        y,
        lam,
        intercept=model.intercept,
        train_bias=model.train_bias,
    )
    train = [((y - fit.predict(instance.features(X, fit.bias))) ** 2).mean() for fit in fits]
    squares = np.zeros(len(lam))
    for X_test in gaussian_inputs(test_samples, dimension, test, width=len(instance.W)):
        targets = instance.targets(X_test)
        for bias in {fit.bias for fit in fits}:
            features = instance.features(X_test, bias)
            for i, fit in enumerate(fits):
                if fit.bias == bias:
                    squares[i] += ((targets - fit.predict(features)) ** 2).sum()
    return np.stack([squares / test_samples, train])
