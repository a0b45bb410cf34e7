"""Functions that attain the bounds on the test error: weighted least squares of the target on all
functions that the output may be made of.  docs/theory.md 8"""

from functools import cache
from typing import NamedTuple

import numpy as np

from solvers.linear import least_squares
from solvers.resources import check_time
from solvers.results import Array, Status
from solvers.scalar_minimum import lowest_minimum
from solvers.successive_refinement import settle

from ..equivalence import Table, tables
from ..problem import LabelLaw, SpikedRandomFeatures
from ..saddle_point import ridge
from .evaluate_model import BIAS_SCAN


class Fit(NamedTuple):
    """The function that attains a bound on a table: m (F,), and the overlaps with special
    directions (A, K + K')."""

    table: Table
    m: Array
    special: Array

    @classmethod
    def best(cls, table: Table, count: int) -> "Fit":
        """The best with the first ``count`` regressors alone."""
        root, coefficients = np.sqrt(table.per_part(table.weights)), np.zeros(len(table.regressors))
        regressors = (root * table.regressors[:count]).T
        coefficients[:count] = least_squares(regressors[None], (root * table.target_parts)[None])[0]
        m, special = np.split(coefficients, [len(table.offsets)])
        return cls(table, m, special.reshape(len(table.mu1), -1))

    def error(self, table: Table | None = None) -> float:
        """The test error by the moments of another table, or of its own.  Eqs. (8.1)-(8.2)"""
        error_table = self.table if table is None else table
        conditional = ridge.conditional_error(error_table, self.m[None], self.special[None])[1][0]
        return float(error_table.weights @ conditional - error_table.noise)


class BoundFits(NamedTuple):
    """Functions that attain the lower and the upper bound, ``each`` with its bias added to all
    neurons, known to a ``change`` relative to E y^2."""

    each: tuple[Fit, Fit]
    biases: tuple[float, float] = (0.0, 0.0)
    change: float = np.inf
    status: Status = Status.QUADRATURE

    @classmethod
    def on(cls, tables: tuple[Table, Table]) -> "BoundFits":
        """Fits on the table of either, the upper one without theta and psi.  Eqs. (8.1)-(8.2)"""
        lower, upper = tables
        return cls((Fit.best(lower, len(lower.regressors)), Fit.best(upper, len(upper.offsets))))

    def errors(self) -> tuple[float, float]:
        """The lower and the upper bound; NaN unless they are known."""
        if self.status is not Status.CONVERGED:
            return np.nan, np.nan
        return self.each[0].error(), self.each[1].error()


def best_fits(model: SpikedRandomFeatures, quadrature_tol: float) -> BoundFits:
    """Functions that attain the bounds of a model, at the best biases if one is trained."""
    if not model.train_bias:
        return _fits_at_biases(model, (0.0, 0.0), quadrature_tol)

    power = LabelLaw(model.labels.mean).averages(model.inputs).power

    @cache
    def errors(bias: float) -> Array:
        return np.array(_fits_at_biases(model, (bias, bias), quadrature_tol).errors())

    def with_slopes(bias: float) -> Array:
        """The two bounds plus E y^2 (row 0), and their slopes in the bias (row 1)."""
        # The difference leaves 1e-8 of the bound's third derivative, and rounding 1e-12; the bound
        # is flat to the square of both.
        h = 1e-4
        return np.array([errors(bias) + power, (errors(bias + h) - errors(bias - h)) / (2 * h)])

    bias_scan = np.array([with_slopes(float(bias)) for bias in BIAS_SCAN])

    def best_bias(i: int) -> float:
        scanned_bounds = bias_scan[..., i].T
        return lowest_minimum(lambda b: with_slopes(b)[:, i], BIAS_SCAN, *scanned_bounds, xtol=1e-8)

    best_biases = best_bias(0), best_bias(1)
    if np.isnan(best_biases).any():
        return _fits_at_biases(model, (0.0, 0.0), quadrature_tol)._replace(status=Status.AT_EDGE)
    return _fits_at_biases(model, best_biases, quadrature_tol)


def _fits_at_biases(
    model: SpikedRandomFeatures, biases: tuple[float, float], quadrature_tol: float
) -> BoundFits:
    """Functions that attain the bounds at given biases, on tables of growing size.

    A function is fitted on the finer of two tables, and its error measured on both: the
    difference, relative to E y^2, estimates the quadrature error.
    """
    check_time()

    def relative_change(coarse: BoundFits, fine: BoundFits) -> float:
        fit_pairs = zip(coarse.each, fine.each, strict=True)
        bound_changes = [f.error() - f.error(c.table) for c, f in fit_pairs]
        label_power = fine.each[0].table.weights @ fine.each[0].table.power
        return float(np.abs(bound_changes).max() / (label_power or 1.0))

    pairs = (tables(model.with_bias(bias)) for bias in biases)
    # as far as there are both
    settled_fits = settle(zip(*pairs, strict=False), BoundFits.on, relative_change, quadrature_tol)
    status = Status.CONVERGED if settled_fits.converged else Status.QUADRATURE
    return settled_fits.value._replace(biases=biases, change=settled_fits.change, status=status)


def linear_error(model: SpikedRandomFeatures) -> float:
    """E sigma_*^2 - (E sigma_*)^2 - |C_1|^2, of N(0, I), with the constant kept where none can be
    fitted: an odd student without biases and intercept.  docs/theory.md 8"""
    target_law = LabelLaw(model.labels.mean).averages(model.inputs)
    h0 = model.student.moments(model.geometry.bias, np.ones_like(model.geometry.bias)).mean
    has_constant = model.intercept or model.train_bias or bool(np.abs(h0).max() > 1e-12)
    # of the coordinates, with the constant first where there is one
    term_count = len(target_law.first) + 1
    gram = np.empty((term_count, term_count))
    gram[0], gram[1:, 0], gram[1:, 1:] = 1.0, target_law.inputs, target_law.second
    gram[0, 1:], C_1 = target_law.inputs, np.append(target_law.mean, target_law.first)
    terms = slice(None if has_constant else 1, None)
    return float(target_law.power - C_1[terms] @ np.linalg.pinv(gram[terms, terms]) @ C_1[terms])
