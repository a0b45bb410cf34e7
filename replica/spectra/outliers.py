"""Outliers, the sample sizes from which they leave the bulk, and the atom.  docs/theory.md 9"""

from dataclasses import replace

import numpy as np

from solvers.results import Array

from ..equivalence import Table
from ..problem import SpikedRandomFeatures
from ..saddle_point import penalty_on_m
from .resolvent import Resolvent


def outliers(model: SpikedRandomFeatures, table: Table) -> Array:
    """Nonzero eigenvalues of (sqrt(pi_a pi_b) E mu_0^a mu_0^b), the largest first."""
    root = np.sqrt(model.geometry.fractions)
    mean = root[:, None] * table.offsets[: len(root)]
    values = np.linalg.eigvalsh((mean * table.weights) @ mean.T)[::-1]
    return np.asarray(values[values > 1e-12 * max(values[0], 1e-12)])


def outliers_from(resolvent: Resolvent, edge: float, count: int) -> Array:
    """Sample sizes n from which each of ``count`` outliers lies above the bulk.  Eq. (9.2)

    ``edge`` is the upper end of the bulk; NaN if the resolvent was not found there.

    At finite d, z is an eigenvalue where the equations (4.5) for m and theta have a solution
    without labels.  With theta eliminated, E mu_0 mu_0' / (1 + V) less the contribution of theta
    then has the eigenvalue 1 / d, relative to the penalty of m at d = 1.  Where theta alone has an
    eigenvalue beyond the edge, as for n -> 0, the largest outliers lie above it for any n.
    """
    table, alpha = resolvent.real.table, resolvent.alpha
    # slightly above the edge: V, which varies as the root of the distance, differs by 1e-3
    U = resolvent.solutions(np.array([edge * (1 + 1e-6)], dtype=complex))
    if not np.isfinite(U).all():
        return np.full(count, np.nan)
    V2 = U[:, -resolvent.responses.groups :].real
    total = 1 + resolvent.responses.from_analytic(U).real @ resolvent.real.coefficients
    groups, weights = len(table.classes), table.per_part(table.weights / total[0])
    penalty = penalty_on_m(replace(table, dimension=1.0), np.array([alpha]), V2)[0, :groups]
    phi_m, phi_theta = table.regressors[:groups], table.regressors[len(table.offsets) :]
    # theta = response E[kappa mu_1 s], with a spike and without
    response = resolvent.real.analytic.susceptibility_matrix(U, np.array([alpha]))[0].real
    cross, gram = (phi_m * weights) @ phi_theta.T, (phi_theta * weights) @ phi_theta.T
    theta_system = np.eye(len(gram)) + gram @ response
    of_theta = cross @ response @ np.linalg.solve(theta_system, cross.T)
    size = np.sqrt(-penalty)  # above the bulk V_2 < 0
    values = np.linalg.eigvalsh(((phi_m * weights) @ phi_m.T - of_theta) / np.outer(size, size))
    always_outside = int((np.linalg.eigvals(theta_system).real < 0).sum())
    values = np.append(np.full(always_outside, np.inf), values[::-1])[:count]
    return np.where(values > 0, alpha / np.where(values > 0, values, 1.0), np.inf)


def atom(table: Table, alpha: float) -> float:
    """Share of zero eigenvalues, 1 - (rank of the features) / p.

    Groups whose features are linear in the input given kappa have at most rank d in all.  A group
    whose features are functions of kappa alone has rank 0.
    """
    size = max(float((table.c[:, None] * table.mu1**2 + table.mu2sq).max()), 1e-300)
    curved = table.mu2sq.max(axis=1) > 1e-13 * size
    straight = (table.c * (table.mu1**2).max(axis=1) > 1e-13 * size) & ~curved
    width = table.beta * table.fractions
    rank = width[curved].sum() + min(1.0, width[straight].sum())
    return float(max(0.0, 1 - min(alpha, rank) / table.beta))
