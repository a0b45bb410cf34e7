"""The network after one step and its Hermite models, side by side on the same draws.
docs/theory.md 12

    F rows ~ N(0, I/tr), w ~ N(0, I/k), f(x) = w . sigma(F x) / sqrt(k),
    G = (1/m) k^(-1/2) [w (y - f(X))^T o sigma'(F X^T)] X,  F^ = F + eta G,
    R = sigma(F^ X^T)^T / sqrt(k) on fresh samples,  (R^T R + lam m I) a = R^T y.

The Hermite model of order l has the features sigma_l(F^ x) of (12.1) in place of sigma(F^ x); its
first layer is the network's, trained with sigma.  Both have a theory given that layer,
docs/theory.md 20.  Errors are those of the paper, with its 1/2:

    training        1/(2m) sum (y - f)^2 + (lam/2) |a|^2,
    generalisation  1/2 E (y - f)^2, and the misclassification P(sign f != y) of labels +-1.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from replica import solve
from replica.errors import InvalidArgument
from replica.problem import Activation, activation, positive
from solvers.results import Array

from ..draws import gradient_step, seed_sequence, whole
from ..fit import fit_ridge
from .hermite_expansion import expand
from .image_tasks import LearningTask

LONGEST = 600.0  # seconds that the theory of a layer may take
TEST_BLOCK = 2**22  # numbers in one array of a block of test features: 32 MiB


class Errors(NamedTuple):
    """Errors (S, 1 + L) of :func:`side_by_side`: students, then the network and its models in turn.

    ``misclassification`` is NaN unless all labels are +-1.
    """

    training: Array
    generalisation: Array
    misclassification: Array


class Model(NamedTuple):
    """The network, or a Hermite model of it: a first layer (k, n), what is applied to its fields,
    and the variance of the features' noise."""

    weights: Array
    student: Activation
    noise: float

    def features(self, X: Array, rng: Generator) -> Array:
        """Those of inputs (b, n), (b, k)."""
        values = self.student(X @ self.weights.T)
        if self.noise:
            values += np.sqrt(self.noise) * rng.standard_normal(values.shape)
        return values


def bulk_scale(task: LearningTask) -> float:
    """b = sqrt(n / tr), the standard deviation of the bulk of a pre-activation."""
    return float(np.sqrt(task.dimension / task.trace))


def initial(task: LearningTask, width: int, seed: SeedSequence) -> tuple[Array, Array]:
    """Draw the layers before the step: F (k, n) and w (k,)."""
    rng = default_rng(seed)
    F = rng.standard_normal((width, task.dimension)) / np.sqrt(task.trace)
    return F, rng.standard_normal(width) / np.sqrt(width)


def stepped(
    F: Array, w: Array, batch: tuple[Array, Array], student: Activation, rate: float
) -> Array:
    """F^ (k, n), of a batch of inputs (m, n) and labels (m,)."""
    k = len(w)
    # in the letters of (1.1): the rate over k, and readouts a~ = sqrt(k) w
    return gradient_step(F, [batch], student=student, eta=rate / k, readout=np.sqrt(k) * w)


def models(
    task: LearningTask,
    *,
    students: Sequence[str | Activation],
    orders: Sequence[int],
    width: int,
    samples: int,
    rate: float,
    rng: Any = None,
) -> Iterator[list[Model]]:
    """The network and its Hermite models, of one draw of the first layer and its step, for every
    student in turn.  Parameters are those of :func:`side_by_side`."""
    k, m = whole("width", width, 1, "k"), whole("samples", samples, 1, "m")
    if not 0 <= rate < np.inf:
        raise InvalidArgument("rate", rate, "finite and 0 or more")
    layer, data = seed_sequence(rng).spawn(2)
    before, batch = initial(task, k, layer), task.draw(m, default_rng(data))
    for student in students:
        sigma = activation(student)
        expansions = [expand(sigma, order=order, b=bulk_scale(task)) for order in orders]
        F = stepped(*before, batch, sigma, rate)
        hermite = [Model(F, one.student, one.residual**2) for one in expansions]
        yield [Model(F, sigma, 0.0), *hermite]


def side_by_side(
    task: LearningTask,
    *,
    samples: int,
    lam: float,
    test_samples: int | None = None,
    rng: Any = None,
    **drawn: Any,
) -> Errors:
    """Errors of one draw of everything, for all students and models.  docs/theory.md 12

    Parameters
    ----------
    task : LearningTask
        A regression or classification, or anything with dimension, trace and draw.
    students : sequence of str or Activation
        sigma.  All of them have the same draws.
    orders : sequence of int
        l of the Hermite models; may be empty.
    width, samples : int
        k and m.  The step and the readout have m samples each.
    rate : float
        eta, 0 or more.
    lam : float
        Ridge penalty.
    test_samples : int
        Samples of the generalisation error, 5 m unless given.
    rng : None, int, SeedSequence or Generator

    Returns
    -------
    Errors

    Raises
    ------
    InvalidArgument
        If an argument is out of range.

    Examples
    --------
    >>> from validation.mixtures import mixture, regression, side_by_side
    >>> task = regression(mixture(50, eigenvalues=5.0), rng=1)
    >>> options = dict(students=["tanh"], width=40, samples=60, rate=2.0, lam=1e-2)
    >>> side_by_side(task, orders=[2, 3], rng=2, **options).training.shape
    (1, 3)
    """
    penalty = float(positive("lam", lam).item())
    test_samples = 5 * samples if test_samples is None else test_samples  # as published
    test_samples = whole("test_samples", test_samples, 1, "of the generalisation error")
    root, *streams = seed_sequence(rng).spawn(4)
    sets = list(models(task, samples=samples, rng=root, **drawn))
    train, test, fresh = map(default_rng, streams)
    X, y = task.draw(samples, train)
    X_test, y_test = task.draw(test_samples, test)
    errors = np.empty((3, len(sets), len(sets[0])))
    for i, j in np.ndindex(errors.shape[1:]):
        model = sets[i][j]
        R, k = model.features(X, fresh), len(model.weights)
        a = fit_readout(R, y, penalty * samples)
        squares = float(((y - R @ a / np.sqrt(k)) ** 2).mean())
        rows = max(1, TEST_BLOCK // k)
        blocks = (X_test[start : start + rows] for start in range(0, test_samples, rows))
        output = np.concatenate([model.features(x, fresh) @ a for x in blocks]) / np.sqrt(k)
        wrong = (np.sign(output) != y_test).mean() if (np.abs(y_test) == 1).all() else np.nan
        objective = (squares + penalty * float((a**2).sum())) / 2
        errors[:, i, j] = objective, ((y_test - output) ** 2).mean() / 2, wrong
    return Errors(*errors)


def in_theory(
    task: LearningTask, *, samples: int, lam: float, rng: Any = None, **drawn: Any
) -> Errors:
    """The errors of :func:`side_by_side` in theory, given the first layers that are drawn there:
    means over all else that is.  NaN where the theory is not known to its tolerance.
    docs/theory.md 20

    Parameters, and what is raised, are those of :func:`side_by_side`.

    Examples
    --------
    >>> from validation.mixtures import in_theory, mixture, regression
    >>> task = regression(mixture(50, eigenvalues=5.0), rng=1)
    >>> options = dict(students=["tanh"], width=40, samples=60, rate=2.0, lam=1e-2)
    >>> in_theory(task, orders=[2], rng=2, **options).generalisation.shape
    (1, 2)
    """
    root = seed_sequence(rng).spawn(1)[0]
    sets = models(task, samples=samples, rng=root, **drawn)
    layers = [[task.given(*model) for model in of_student] for of_student in sets]
    return solved_errors(layers, layers[0][0].width, samples, lam, samples=samples)


def solved_errors(
    models: Sequence[Sequence[Any]], width: int, m: int, lam: float, **at: Any
) -> Errors:
    """Errors in theory of students by models, whose m samples are said by ``at``."""
    errors = np.empty((3, len(models), len(models[0])))
    for i, j in np.ndindex(errors.shape[1:]):
        found = solve(models[i][j], lam=lam * m, time_limit=LONGEST, **at)
        overlaps = found.overlaps  # of a limit
        squares = found.squared_norm if overlaps is None else overlaps.q2.sum()
        objective = found.train_error + lam * width * squares
        errors[:, i, j] = objective / 2, found.loss_error, found.classification_error
    return Errors(*errors)


def fit_readout(features: Array, y: Array, penalty: float) -> Array:
    """a (k,) of (R^T R + penalty I) a = R^T y, R = features / sqrt(k).

    Where polynomial features are so large that their Gram matrix is singular in double
    precision, by their singular values, whose condition is only its root.
    """
    try:
        fitted = fit_ridge(lambda: [(features, y)], np.array([len(y)]), np.array([penalty]))
        return np.asarray(fitted.readouts[:, 0, 0])
    except InvalidArgument:
        U, s, Vh = np.linalg.svd(features / np.sqrt(features.shape[1]), full_matrices=False)
        return np.asarray((s / (s**2 + penalty) * (y @ U)) @ Vh)
