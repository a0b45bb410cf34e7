"""The network's errors in closed form: without a drawn layer, at the dimension it has.
docs/theory.md 19"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from replica import GradientStep, solve
from replica.problem import Activation, GaussianMixture
from replica.steps import features_at_dimension

from .hermite_model import LONGEST, Errors
from .tasks import MixtureTask


def closed_form(
    task: MixtureTask,
    *,
    students: Sequence[str | Activation],
    width: int,
    samples: int,
    rate: float,
    lam: float,
    tol: float = 1e-5,
    **nodes: int,
) -> Errors:
    """The errors of :func:`side_by_side` of the network alone, means over everything but the task:
    arrays (S, 1).  Equations (19.7)-(19.8)

    Parameters
    ----------
    task : MixtureTask
    students, width, samples, rate, lam
        As for :func:`side_by_side`.
    tol : float
        Of the averages over the inputs, relative.
    **nodes
        ``row_nodes`` and ``readout_nodes`` of :func:`replica.steps.features_at_dimension`.

    Raises
    ------
    InvalidArgument
        If an argument is out of range, or the structure has too many directions.

    Examples
    --------
    >>> from validation.mixtures import closed_form, mixture, regression
    >>> task = regression(mixture(400, eigenvalues=5.0), rng=1)
    >>> options = dict(students=["tanh"], width=200, samples=400, rate=2.0, lam=1e-2)
    >>> errors = closed_form(task, row_nodes=3, tol=1e-3, **options)
    >>> errors.generalisation.shape
    (1, 1)
    """
    n, errors = task.dimension, np.empty((3, len(students), 1))
    for i, student in enumerate(students):
        step = GradientStep(
            student=student,
            target=task.target,
            inputs=along_target(task),
            noise=task.noise,
            alpha0=samples / n,
            eta=rate / width,
            readout="gaussian",
        )
        model = features_at_dimension(step, beta=width / n, dimension=n, **nodes)
        at: dict[str, Any] = {"alpha": samples / n, "lam": lam * samples, "time_limit": LONGEST}
        found = solve(model, quadrature_tol=tol, **at)
        power = lam * width * found.overlaps.q2.sum()
        errors[0, i, 0] = (found.train_error + power) / 2
        errors[1:, i, 0] = found.loss_error, found.classification_error
    return Errors(*errors)


def along_target(task: MixtureTask) -> GaussianMixture:
    """The law of the inputs in coordinates of which the first is the target's, if it has one."""
    law, K = task.inputs, task.inputs.dimension
    if not task.directions.shape[1]:
        return law
    known = task.directions[:K, 0]
    beside = 1 - float(known @ known)  # of the target's direction, rounding or not
    first = np.append(known, np.sqrt(beside)) if beside > 1e-12 else known
    axes = np.linalg.qr(np.column_stack([first, np.eye(len(first))]))[0]
    axes *= np.where(axes.T @ first < 0, -1.0, 1.0)
    wide = law.within(len(first))
    return GaussianMixture(
        means=wide.means @ axes,
        covariances=axes.T @ wide.each_covariance @ axes,
        fractions=wide.fractions,
    )
