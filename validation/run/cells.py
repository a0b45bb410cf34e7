"""An Experiment, and a cell of it: one seed's samples, in blocks, at every alpha and lam.

A cell draws a first layer, one design of max(n) training samples and one test set.  The first
n samples serve each n = alpha d, and every penalty.  A given layer is the same in every cell; of
given features the design is the first of the rows, in an order that is drawn, and the test set
of each n the rows after these.  Of a network that reuses samples of its step, a share of the
design's are those, the step's first, evenly among them, so that the first n have that share.  Each
stream of random numbers starts from a seed that is a function of the experiment's entropy, the
dimension and the seed's index alone: cells may run in any order and on any machine, and more may be
added, without a bit of the others changing.  With one BLAS thread a cell, neither do the errors.

Samples come in blocks: drawn, or rows of given features.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import Any

import numpy as np
from numpy.random import SeedSequence, default_rng

from replica.convex import LOSSES, Loss
from replica.fit import Blocks, fit_convex_readout, fit_readout, mean_losses, squared_errors
from replica.given import FeatureMoments, FeatureSample
from replica.problem import Problem, SpikedRandomFeatures, describe, refuse_options
from solvers import arrays
from solvers.resources import one_thread
from solvers.results import Array

from .. import draws


@dataclass(frozen=True, eq=False)
class DrawnSamples:
    """Samples of a drawn layer, in blocks that come out the same every time they are asked for.

    The seeds are those of the inputs, of features that are noisy, and of the label noise; without
    the last, labels are noiseless.  Features and labels are put on the ``device``.  A share
    ``reuse`` of the samples, in any number of the first ones, are the first of ``of_step``.
    """

    layer: draws.Instance
    count: int
    inputs: SeedSequence
    features: SeedSequence
    noise: SeedSequence | None
    device: str
    of_step: "DrawnSamples | None" = None
    reuse: float = 0.0

    def blocks(self, bias: float = 0.0) -> Iterator[tuple[Any, Any]]:
        """Features (b, p) with ``bias`` added to all neurons, and labels (b,) or (b, C)."""
        feature_rng = default_rng(self.features)
        layer = self.layer
        if self.device != "cpu":
            layer = replace(layer, W=arrays.to_device(layer.W, self.device))
        for X, y in self.drawn():
            device_inputs = arrays.to_device(X, self.device)
            yield layer.features(device_inputs, bias, feature_rng), arrays.to_device(y, self.device)

    def drawn(self) -> Iterator[tuple[Array, Array]]:
        """Inputs (b, d) and labels (b,)."""
        label_rng = None if self.noise is None else default_rng(self.noise)
        pairs = (zip(*block, strict=True) for block in self.of_step.drawn()) if self.of_step else ()
        reused_samples, samples_drawn = chain.from_iterable(pairs), 0
        for X, component in self.layer.draw_inputs(self.count, default_rng(self.inputs)):
            if label_rng is None:
                block_labels = self.layer.targets(X, component)
            else:
                block_labels = self.layer.labels(X, label_rng, component=component)
            before = reused_of(np.arange(samples_drawn, samples_drawn + len(X) + 1), self.reuse)
            for reused_sample in np.flatnonzero(np.diff(before)):
                X[reused_sample], block_labels[reused_sample] = next(reused_samples)
            samples_drawn += len(X)
            yield X, block_labels


def reused_of(n: Any, reuse: float) -> Any:
    """Number of the first ``n`` samples that are samples of the step: never more than it has."""
    return np.floor(n * reuse + 1e-9).astype(int)  # but for rounding


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Some ``rows`` (n,) of ``features`` (N, p) and ``labels`` (N,) or (N, C), in blocks, on the
    ``device``."""

    features: Array
    labels: Array
    rows: Array
    device: str

    def blocks(self, bias: float = 0.0) -> Iterator[tuple[Any, Any]]:
        """Features (b, p) and labels (b,) or (b, C); no ``bias`` is trained here."""
        block_rows = max(1, draws.INPUT_BLOCK // self.features.shape[1])
        for first_row in range(0, len(self.rows), block_rows):
            given_rows = self.rows[first_row : first_row + block_rows]
            pair = self.features[given_rows], self.labels[given_rows]
            yield arrays.to_device(pair[0], self.device), arrays.to_device(pair[1], self.device)


def repeatable(samples: DrawnSamples | GivenRows, keep: bool) -> Callable[[float], Blocks]:
    """The blocks of samples as a function of the bias, to be gone through again and again.

    Kept in memory, or else made anew each time; the numbers are the same to the last bit.
    """
    if not keep:
        return lambda bias: lambda: samples.blocks(bias)

    def kept_blocks(bias: float) -> Blocks:
        blocks_kept = list(samples.blocks(bias))
        return lambda: blocks_kept

    return kept_blocks


# To be raised with every change of the method that moves the numbers of a cell: a stored cell
# has the number of its method.
CELL_METHOD = 2


class Simulated(StrEnum):
    """Models of a problem that can be drawn."""

    network = "network"
    srf = "srf"
    gaussian = "gaussian"


class Fixed(StrEnum):
    """Parts that are the same in every draw, which are given."""

    layer = "given layer"
    features = "given features"


@dataclass(frozen=True)
class Experiment:
    """Parameters that all cells of a Monte Carlo share, in plain values: they travel to workers.

    ``entropy`` and ``spawn_key`` are those of the root SeedSequence.  Of a given layer and of given
    features there are ``samples`` in the place of ``alpha``; the dimension of the latter is their
    number.
    """

    problem: Any  # a Problem, or what is given
    simulated: Simulated | Fixed
    beta: float | None
    dimension: int
    alpha: tuple[float, ...]
    lam: tuple[float, ...]
    test_samples: int
    entropy: Any
    spawn_key: tuple[int, ...]
    device: str = "cpu"
    loss: Loss = LOSSES["square"]
    samples: tuple[int, ...] = ()
    reuse: float = 0.0  # share of the readout's samples that are the step's

    @property
    def model(self) -> SpikedRandomFeatures:
        """The sRF that the theory makes of the problem."""
        return draws.spiked_model(self.problem, self.beta)

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the errors of a cell: losses unless they are half the squared errors, and
        classification errors where labels are +-1 or classes."""
        loss_measures = () if self.loss.is_square else ("loss_error", "train_loss")
        given_classes = self.samples and getattr(self.problem, "classes", None) is not None
        class_measures = ("classification_error",) if self.binary or given_classes else ()
        return "test_error", "train_error", "test_variance", *loss_measures, *class_measures

    @property
    def binary(self) -> bool:
        """True if labels are +-1."""
        return self.problem.binary if self.samples else self.model.labels.binary

    @property
    def described(self) -> dict[str, Any]:
        """Problem in plain values; a given layer or given features by their sizes."""
        reuse_field = {"reuse": self.reuse} if self.reuse else {}
        return reuse_field | (self.problem.described if self.samples else describe(self.problem))

    @property
    def trained(self) -> dict[str, bool]:
        """Parameters trained in addition to the readout's weights."""
        model = self.problem if self.samples else self.model
        return {"intercept": model.intercept, "train_bias": not self.samples and model.train_bias}

    @property
    def sizes(self) -> Array:
        """Training samples n at every alpha, (A,) of int."""
        if self.samples:
            return np.array(self.samples)
        return np.array([draws.size("alpha", alpha, self.dimension) for alpha in self.alpha])

    @property
    def test_sizes(self) -> Array:
        """Test samples at every alpha, (A,) of int: of given rows, those that are not to train."""
        is_sample = isinstance(self.problem, FeatureSample)
        rows = len(self.problem.labels) if is_sample else int(self.sizes.max()) + self.test_samples
        return np.minimum(self.test_samples, rows - self.sizes)

    @property
    def step_samples(self) -> int:
        """Samples n0 of the first step."""
        return draws.size("alpha0", self.problem.schedule[0][0], self.dimension)

    @property
    def width(self) -> int:
        """The number of neurons p."""
        if self.samples:
            return int(self.problem.width)
        return draws.size("beta", self.model.beta, self.dimension)

    def seed(self, index: int) -> SeedSequence:
        """The seed of one cell."""
        return SeedSequence(self.entropy, spawn_key=(*self.spawn_key, self.dimension, index))


def at_alpha(problem: Problem, alpha: float) -> Problem:
    """A problem whose step is trained on as many samples as the readout, of one alpha."""
    if isinstance(problem, SpikedRandomFeatures):
        return problem.at_alpha(alpha)
    step_of_alpha: Any = problem
    problem_at_alpha: Problem = replace(step_of_alpha, alpha0=alpha)
    return problem_at_alpha


def run_cell(experiment: Experiment, index: int, keep: bool = False) -> Array:
    """The ``measures`` (M, A, L) of one seed, in their order.

    ``keep`` holds all training features in memory, for speed.
    """
    if not experiment.samples and experiment.problem.follows_alpha:
        alpha_experiments = [
            replace(experiment, problem=at_alpha(experiment.problem, alpha), alpha=(alpha,))
            for alpha in experiment.alpha
        ]
        return np.concatenate([run_cell(part, index, keep) for part in alpha_experiments], axis=1)
    with one_thread():
        train, test, labelled_test = draw_samples(experiment, index)
        train_sizes, lam = experiment.sizes, np.array(experiment.lam)
        design, loss, trained_parts = repeatable(train, keep), experiment.loss, experiment.trained
        if loss.is_square:
            fits = fit_readout(design, train_sizes, lam, **trained_parts)
        else:
            intercept = trained_parts["intercept"]
            fits = fit_convex_readout(design(0.0), train_sizes, lam, loss, intercept=intercept)
        test_sizes = experiment.test_sizes
        test_error, variance = squared_errors(repeatable(test, keep=False), fits, test_sizes)
        measured = {"test_error": test_error, "train_error": fits.train, "test_variance": variance}
        if not loss.is_square:
            measured["train_loss"], _ = mean_losses(design, fits, train_sizes, loss)
        if len(experiment.measures) > len(measured):
            measured["loss_error"], measured["classification_error"] = mean_losses(
                repeatable(labelled_test, keep=False), fits, test_sizes, loss
            )
        return np.stack([measured[name] for name in experiment.measures])


def draw_samples(
    experiment: Experiment, index: int
) -> tuple[DrawnSamples | GivenRows, DrawnSamples | GivenRows, DrawnSamples | GivenRows]:
    """Training samples of one seed, and test samples with noiseless targets, and with labels, of
    which the first ``test_sizes`` are for each size."""
    torch_device, count = experiment.device, int(experiment.sizes.max())
    _, inputs, features, noise, *test_streams = experiment.seed(index).spawn(7)
    if experiment.simulated is Fixed.features:
        given, rng = experiment.problem, default_rng(inputs)
        if isinstance(given, FeatureMoments):
            end = count + experiment.test_samples
            drawn_rows, stratum = given.law.draw(end, rng)
            constant_labels = given.label_variances[stratum] == 0  # and free of rounding
            given_labels = np.where(constant_labels, given.label_means[stratum], drawn_rows[:, -1])
            given_Phi, row_order = drawn_rows[:, :-1], np.arange(end)
        else:
            given_Phi, given_labels = given.features, given.labels
            row_order = rng.permutation(len(given_labels))
        training_rows = GivenRows(given_Phi, given_labels, row_order[:count], torch_device)
        # from the last one on: the first of these are in no training set
        test_rows = replace(training_rows, rows=row_order[::-1][: experiment.test_samples])
        return training_rows, test_rows, test_rows
    cell_layer = draw_layer(experiment, index)
    train_set = DrawnSamples(cell_layer, count, inputs, features, noise, torch_device)
    if experiment.reuse:
        _, *step_streams = draws.streams(layer_seed(experiment, index))
        step_samples = replace(
            train_set, count=experiment.step_samples, inputs=step_streams[0], noise=step_streams[1]
        )
        train_set = replace(train_set, of_step=step_samples, reuse=experiment.reuse)
    inputs, features, noise = test_streams
    test = DrawnSamples(cell_layer, experiment.test_samples, inputs, features, None, torch_device)
    return train_set, test, replace(test, noise=noise)


def layer_seed(experiment: Experiment, index: int) -> SeedSequence:
    """The seed of the first layer of one seed."""
    return experiment.seed(index).spawn(1)[0]


def draw_layer(experiment: Experiment, index: int) -> draws.Instance:
    """The first layer of one seed, of the model that is simulated."""
    problem, d = experiment.problem, experiment.dimension
    layer_stream = layer_seed(experiment, index)
    if experiment.simulated is Fixed.layer:
        return draws.instance_of(problem)
    refuse_options(problem, "alpha0")  # each alpha has a layer of its own
    if experiment.simulated is Simulated.gaussian:
        return draws.draw_gaussian(experiment.model, dimension=d, rng=layer_stream)
    if experiment.simulated is Simulated.srf:
        return draws.draw(experiment.model, dimension=d, rng=layer_stream)
    return draws.draw(problem, dimension=d, rng=layer_stream, beta=experiment.beta)
