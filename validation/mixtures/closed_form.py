"""Errors of the network and its Hermite models in closed form: without a drawn layer, at the
dimension it has.
docs/theory.md 19"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from replica import GradientStep
from replica.problem import Activation, GaussianMixture
from replica.steps import features_at_dimension

from .hermite_expansion import expand
from .hermite_model import Errors, bulk_scale, solved_errors
from .mixtures import MixtureTask


def closed_form(
    task: MixtureTask,
    *,
    students: Sequence[str | Activation],
    orders: Sequence[int] = (),
    width: int,
    samples: int,
    rate: float,
    lam: float,
    tol: float = 1e-5,
    **nodes: int,
) -> Errors:
    """The errors of :func:`side_by_side`, means over everything but the task.  Equations
    (19.7)-(19.8); a Hermite model has its polynomial as the readout's student, and feature noise.

    Parameters
    ----------
    task : MixtureTask
    students, orders, width, samples, rate, lam
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
    >>> errors = closed_form(task, orders=[2], row_nodes=3, tol=1e-3, **options)
    >>> errors.generalisation.shape
    (1, 2)
    """
    n, models = task.dimension, []
    for student in students:
        step = GradientStep(
            student=student,
            target=task.target,
            inputs=along_target(task),
            noise=task.noise,
            alpha0=samples / n,
            eta=rate / width,
            readout="gaussian",
        )
        network = features_at_dimension(step, beta=width / n, dimension=n, **nodes)
        expansions = [expand(step.student, order=order, b=bulk_scale(task)) for order in orders]
        hermite = [
            replace(network, student=one.student, feature_noise=one.residual**2)
            for one in expansions
        ]
        models.append([network, *hermite])
    return solved_errors(models, width, samples, lam, alpha=samples / n, quadrature_tol=tol)


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
