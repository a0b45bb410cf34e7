"""The network after one step and its Hermite models, side by side on the same draws.
docs/theory.md 12

    F rows ~ N(0, I/tr), w ~ N(0, I/k), f(x) = w . sigma(F x) / sqrt(k),
    G = (1/m) k^(-1/2) [w (y - f(X))^T o sigma'(F X^T)] X,  F^ = F + eta G,
    R = sigma(F^ X^T)^T / sqrt(k) on fresh samples,  (R^T R + lam m I) a = R^T y.

The Hermite model of order l has the features sigma_l(F^ x) of (12.1) in place of sigma(F^ x); its
first layer is the network's, trained with sigma.  Errors are those of the paper, with its 1/2:

    training        1/(2m) sum (y - f)^2 + (lam/2) |a|^2,
    generalisation  1/2 E (y - f)^2, and the misclassification P(sign f != y) of labels +-1.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import default_rng

from replica.errors import InvalidArgument
from replica.problem import Activation, activation, positive
from solvers.results import Array

from ..draws import seed_sequence, whole
from ..fit import fit_ridge
from .hermite_expansion import expand
from .tasks import LearningTask

Features = Callable[[Array], Array]
TEST_BLOCK = 2**22  # numbers in one array of a block of test features: 32 MiB


class Errors(NamedTuple):
    """Errors (S, 1 + L) of :func:`side_by_side`: students, then the network and its models in turn.

    ``misclassification`` is NaN unless all labels are +-1.
    """

    training: Array
    generalisation: Array
    misclassification: Array


def bulk_scale(task: LearningTask) -> float:
    """b = sqrt(n / tr), the standard deviation of the bulk of a pre-activation."""
    return float(np.sqrt(task.dimension / task.trace))


def side_by_side(
    task: LearningTask,
    *,
    students: Sequence[str | Activation],
    orders: Sequence[int],
    width: int,
    samples: int,
    rate: float,
    lam: float,
    test_samples: int | None = None,
    rng: Any = None,
) -> Errors:
    """Errors of one draw of everything, for all students and models.  docs/theory.md 12

    Parameters
    ----------
    task : LearningTask
        A ``Regression`` or ``Classification``, or anything with dimension, trace and draw.
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
    >>> task = regression(mixture(50, eigenvalues=5.0, rng=0), rng=1)
    >>> options = dict(students=["tanh"], width=40, samples=60, rate=2.0, lam=1e-2)
    >>> side_by_side(task, orders=[2, 3], rng=2, **options).training.shape
    (1, 3)
    """
    k, m = whole("width", width, 1, "k"), whole("samples", samples, 1, "m")
    test_samples = 5 * m if test_samples is None else test_samples  # as published
    test_samples = whole("test_samples", test_samples, 1, "of the generalisation error")
    penalty = float(positive("lam", lam).item())
    if not 0 <= rate < np.inf:
        raise InvalidArgument("rate", rate, "finite and 0 or more")
    layer, first, second, test, fresh = map(default_rng, seed_sequence(rng).spawn(5))
    F = layer.standard_normal((k, task.dimension)) / np.sqrt(task.trace)
    w = layer.standard_normal(k) / np.sqrt(k)
    b = bulk_scale(task)
    X0, y0 = task.draw(m, first)
    X, y = task.draw(m, second)
    X_test, y_test = task.draw(test_samples, test)
    fields = F @ X0.T
    errors = np.empty((3, len(students), 1 + len(orders)))
    for i, student in enumerate(students):
        sigma = activation(student) if isinstance(student, str) else student
        layer_after = F + rate * gradient(fields, w, X0, y0, sigma)
        trained, tested = X @ layer_after.T, _blocks(X_test, layer_after)
        expansions = [expand(sigma, order=order, b=b) for order in orders]
        models: list[Features] = [sigma]
        models += [partial(expansion.features, rng=fresh) for expansion in expansions]
        fits = []
        for j, features in enumerate(models):
            R = features(trained)
            a = fit_readout(R, y, penalty * m)
            squares = float(((y - R @ a / np.sqrt(k)) ** 2).mean())
            errors[0, i, j] = (squares + penalty * float((a**2).sum())) / 2
            fits.append(a)
        pairs = list(zip(models, fits, strict=True))
        outputs = np.hstack([[features(x) @ a for features, a in pairs] for x in tested])
        outputs /= np.sqrt(k)
        errors[1, i] = ((y_test - outputs) ** 2).mean(axis=1) / 2
        errors[2, i] = (np.sign(outputs) != y_test).mean(axis=1)
    if not (np.abs(y_test) == 1).all():
        errors[2] = np.nan
    return Errors(*errors)


def gradient(fields: Array, w: Array, X: Array, y: Array, student: Activation) -> Array:
    """G (k, n) of the module's docstring, from fields F X^T (k, m)."""
    k, m = fields.shape
    residual = y - w @ student(fields) / np.sqrt(k)
    weighted = student.slope(fields)
    weighted *= w[:, None]
    weighted *= residual
    return np.asarray(weighted @ X / (m * np.sqrt(k)))


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


def _blocks(X: Array, layer: Array) -> Any:
    """Fields X layer^T in blocks (b, k): memory does not grow with the number of inputs."""
    rows = max(1, TEST_BLOCK // len(layer))
    return (X[start : start + rows] @ layer.T for start in range(0, len(X), rows))
