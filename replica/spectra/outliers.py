"""Outliers, and from which size they lie beyond the bulk.  docs/theory.md 9"""

from dataclasses import replace

import numpy as np

from solvers.results import Array

from ..equivalence import Table
from ..problem import SpikedRandomFeatures
from ..saddle_point import penalty_on_m
from .resolvent import Resolvent


def outliers(model: SpikedRandomFeatures, table: Table) -> Array:
    """Eigenvalues of (sqrt(pi_a pi_b) E mu_0^a mu_0^b), the largest first, without zeros."""
    root = np.sqrt(model.geometry.fractions)
    mean = root[:, None] * table.offsets[: len(root)]
    values = np.linalg.eigvalsh((mean * table.weights) @ mean.T)[::-1]
    return np.asarray(values[values > 1e-12 * max(values[0], 1e-12)])


def outliers_from(resolvent: Resolvent, edge: float, count: int) -> Array:
    """The number of samples n from which each of ``count`` outliers lies above the bulk, whose
    upper end is ``edge``; NaN where the resolvent was not found there.  Eq. (9.2)

    At finite d an eigenvalue is where the equations (4.5) of m and theta have a solution without
    labels.  In m alone, that is where E mu_0 mu_0' / (1 + V), less what theta takes of it, has the
    eigenvalue 1 / d relative to the penalty of m at d = 1.  Where theta alone has an eigenvalue
    beyond the edge, as for n -> 0, the largest outliers lie above it for any n.
    """
    table, alpha = resolvent.real.table, resolvent.alpha
    # just above the edge: there V, like the root of the distance, has changed by 1e-3
    U = resolvent.at(np.array([edge * (1 + 1e-6)], dtype=complex))
    if not np.isfinite(U).all():
        return np.full(count, np.nan)
    V2 = U[:, -resolvent.responses.groups :].real
    total = 1 + resolvent.responses.from_analytic(U).real @ resolvent.real.coefficients
    groups, weights = len(table.classes), table.per_part(table.weights / total[0])
    penalty = penalty_on_m(replace(table, dimension=1.0), np.array([alpha]), V2)[0, :groups]
    of_m, of_theta = table.regressors[:groups], table.regressors[len(table.offsets) :]
    # theta = response E[kappa mu_1 s], without a spike as with one
    response = resolvent.real.analytic.susceptibility_matrix(U, np.array([alpha]))[0].real
    mixed, own = (of_m * weights) @ of_theta.T, (of_theta * weights) @ of_theta.T
    of_theta_alone = np.eye(len(own)) + own @ response
    taken = mixed @ response @ np.linalg.solve(of_theta_alone, mixed.T)
    size = np.sqrt(-penalty)  # above the bulk V_2 < 0
    values = np.linalg.eigvalsh(((of_m * weights) @ of_m.T - taken) / np.outer(size, size))
    always = int((np.linalg.eigvals(of_theta_alone).real < 0).sum())
    values = np.append(np.full(always, np.inf), values[::-1])[:count]
    return np.where(values > 0, alpha / np.where(values > 0, values, 1.0), np.inf)


def atom(table: Table, alpha: float) -> float:
    """1 - (rank of the features) / p.

    A group whose features are linear in the input given kappa adds to the rank only as long as
    the input has directions left; one whose features are functions of kappa alone, nothing.
    """
    size = max(float((table.c[:, None] * table.mu1**2 + table.mu2sq).max()), 1e-300)
    curved = table.mu2sq.max(axis=1) > 1e-13 * size
    straight = (table.c * (table.mu1**2).max(axis=1) > 1e-13 * size) & ~curved
    width = table.beta * table.fractions
    rank = width[curved].sum() + min(1.0, width[straight].sum())
    return float(max(0.0, 1 - min(alpha, rank) / table.beta))
