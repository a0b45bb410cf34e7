"""The theory of a network whose readout is trained on samples of its step, at many points.
docs/theory.md 21"""

from typing import Any

import numpy as np

from solvers.resources import check_time, deadline
from solvers.results import Array, Indices, Status

from ..convex import Loss, solve_on_growing_tables
from ..errors import InvalidArgument
from ..problem import SpikedRandomFeatures
from ..saddle_point import Evaluation, unknown_overlaps
from .cavity import Cavity
from .readout import Readout
from .strata import SAMPLE_RULES, SampleNodes, strata

REUSE_QUADRATURE_TOLERANCE, REUSE_RESIDUAL_TOLERANCE = 1e-5, 1e-9
ACCEPTED = 1e-3  # on the finest rule, where no tolerance is asked for: large rates, few samples
IN_DOUBT = 1e3 * 4 * np.finfo(float).eps  # of the labels' power: rounding is a thousandth of it


def evaluate_reused(
    model: SpikedRandomFeatures,
    alpha: Array,
    lam: Array,
    loss: Loss,
    tol: float | None,
    time_limit: float,
    level: int = 0,
) -> Evaluation:
    """Ridge regression at the points (alpha[i], lam[i]), arrays (P,), of a network that reuses
    samples.

    Raises
    ------
    InvalidArgument
        If the loss is not the square, or more samples are reused than the step has.
    """
    rows: Any = model.rows
    if not loss.is_square:
        raise InvalidArgument("loss", loss.name, "the square where samples of the step are reused")
    if (most := rows.reuse * alpha.max()) > rows.step.alpha0 * (1 + 1e-12):
        allowed = f"at least reuse * alpha, {most:g}: the step has all samples that are reused"
        raise InvalidArgument("alpha0", rows.step.alpha0, allowed)
    found, count = Evaluation(len(alpha)), len(alpha)
    starts: list[Cavity | None] = [None] * count
    tol, accepted = (REUSE_QUADRATURE_TOLERANCE, ACCEPTED) if tol is None else (tol, tol)
    kinds = tuple(tuple(values.tolist()) for values in rows.kinds)
    shares = tuple(np.ravel(1.0 if model.fractions is None else model.fractions).tolist())
    found.overlaps, found.conjugates = unknown_overlaps(count, len(shares), len(shares))

    def strata_at(level: int, _: Indices) -> SampleNodes | None:
        if level >= len(SAMPLE_RULES):
            return None
        return strata(rows.step, kinds, shares, level, rows.row_norms)

    def solve_on(table: SampleNodes, points: Indices, _: Any) -> Indices:
        last, noise = None, float(table.weights @ (table.y - table.target) ** 2)
        for i in points:
            check_time()
            reused = rows.reuse * alpha[i]
            counts = reused, max(rows.step.alpha0 - reused, 0.0), alpha[i] - reused
            readout = Readout(table, counts, model.beta, lam[i], model.dimension)
            try:
                starts[i] = last = readout.solve_cavity(starts[i] or last)
                errors = readout.errors(last)
            except np.linalg.LinAlgError:  # where Newton's method has lost its way
                found.flag(i, Status.NO_PROGRESS)
                last = None
                continue
            before = np.array([found.test_error[i], found.train_error[i]])
            change = np.abs(before / [errors.test, errors.train] - 1).max()
            change = np.nan_to_num(change, nan=np.inf)  # of the first strata
            overlaps = found.overlaps
            overlaps.m[i], overlaps.theta[i, :, 0] = errors.m, errors.theta
            overlaps.psi[i, :, 0] = errors.psi
            lost = errors.test < IN_DOUBT * float(table.weights @ table.y**2) or errors.train < 0
            found.store(
                i,
                test_error=errors.test,
                train_error=errors.train,
                loss_error=(errors.test + noise) / 2,
                train_loss=errors.train / 2,
                classification_error=errors.classification if model.labels.binary else np.nan,
                residual=errors.residual,
                quadrature_error=change,
                iterations=found.iterations[i] + last.iterations,
                nodes=table.weights.size,
                converged=errors.residual <= REUSE_RESIDUAL_TOLERANCE,
                open=change > tol,
            )
            last = last if found.converged[i] else None
            if lost:
                found.flag(i, Status.ROUNDING)
        return points[found.open[points] & found.converged[points]]

    with deadline(time_limit * count), np.errstate(all="ignore"):  # errors not finite are flagged
        solve_on_growing_tables(found, np.arange(count), strata_at, solve_on, level)
    found.open &= found.quadrature_error > accepted
    found.close(REUSE_RESIDUAL_TOLERANCE)
    for part in found.overlaps:
        part[~found.converged] = np.nan
    return found
