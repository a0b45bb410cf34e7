"""Saddle-point equations of a convex loss on a table of labels: Newton's step for m, fixed point.

The unknowns are those of ridge regression.  The score s of (6.1), averaged given kappa by
``averages``, replaces (h - C) / (1 + V), and -E s' replaces 1 / (1 + V).  One pass of the
equations,

    overlaps -> E[s | kappa], ... -> conjugates (6.2)-(6.3) -> overlaps (4.3)-(4.6), (4.9),

is a map, ``one_pass``, whose fixed point is the solution.  For one group and one spike, with E over
kappa, tau, xi and the label, its steps are

    omega = C + P tau + sqrt(S^2 - P^2) xi,   C = mu_0 m + mu_1 kappa theta,   P = mu_1 psi,
        S^2 = mu_1^2 Q1 + mu_2^2 q2,   V = mu_1^2 V1 + mu_2^2 V2;
    V1_hat = (alpha/beta) E mu_1^2 (-s'),   V2_hat = (alpha/beta) E mu_2^2 (-s');
    V1 = <D/R>,   V2 = <1/R>,   R = lam + V2_hat + V1_hat D, over the bulk's eigenvalues D;
    E mu_0 s = 0,   theta = alpha c V2 E kappa mu_1 s,   psi = alpha V1 E mu_1 (tau s - P s');
    (Q1, q2) = -d(V1, V2) along (V1_hat, V2_hat) -> (V1_hat, V2_hat) + s (X1, X2), X of (6.3).

lam enters R alone.  m and the overlaps with special directions take a Newton step, as they enter
the averages with the known slope E[s' | kappa].  ``solve`` finds the fixed point by Anderson's
method, in unconstrained coordinates, so that no extrapolation leaves the domain. docs/theory.md 6

Unconstrained coordinates.  V1 and Q1 - psi psi' are positive definite.  Their coordinates are the
logarithms of the diagonals of their Cholesky factors, and the other entries relative to the
diagonals.  V2 and q2 have logarithms.  m and the overlaps with special directions are measured by
their contribution to the prediction, relative to the labels' root mean square.  If offsets are
nearly dependent, as with many groups, large entries of m nearly cancel; the coordinates are then
the independent combinations of m.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from solvers.fixed_point import COMBINED, fixed_point
from solvers.linear import solve_rows
from solvers.results import Array, Indices, Result

from ..equivalence import Table, tables
from ..problem import Model
from ..saddle_point import (
    Conjugates,
    Field,
    Overlaps,
    Points,
    Scores,
    Signal,
    Susceptibility,
    field_at_nodes,
    one_pass,
    ridge,
)
from .averages import losses, scores
from .label_tables import LabelTable, is_odd
from .losses import Loss


class Task(NamedTuple):
    """P points of one model to solve, with ``alpha`` and ``lam`` (P,) and the tolerance ``tol`` of
    the quadrature."""

    model: Model
    loss: Loss
    alpha: Array
    lam: Array
    tol: float = 1e-6

    @property
    def folded(self) -> bool:
        """True if the problem is the same at opposite kappa, so that half of the nodes will do."""
        return self.loss.is_symmetric and is_odd(self.model)

    def select(self, point_rows: Indices) -> "Task":
        """Task with some of the points."""
        return self._replace(alpha=self.alpha[point_rows], lam=self.lam[point_rows])

    def ridge(self) -> Points:
        """Solutions of ridge regression at these points, on the first of its tables."""
        return ridge.solve_points(next(tables(self.model)), self.alpha, self.lam)


class Coordinates:
    """Coordinates (P, k) of order one of the overlaps of P points, for one table.

    Attributes
    ----------
    size : float
        Root mean square of the labels.
    unit : (A, K + K')
        Overlaps with special directions whose output has the root mean square ``size``.
    combine, resolve : (F, n), (n, F)
        Maps between the F entries of m and n independent combinations x: m = combine x, and
        x = resolve m.
    regressors : (n + A (K + K'), (1 + K') N)
        Regressors of the table, with these combinations of the offsets instead of all.
    """

    def __init__(self, table: Table) -> None:
        A, self.spikes = table.loadings.shape[:2]
        self.lower = np.tril_indices(A)
        self.size = float(np.sqrt(table.label_power.sum())) or 1.0
        offset_regressors, special_regressors = np.split(table.regressors, [len(table.offsets)])
        output_norms = np.sqrt(special_regressors**2 @ table.per_part(table.weights)).reshape(A, -1)
        self.unit = self.size / np.where(output_norms > 0, output_norms, self.size)
        # for dependent offsets m has the least norm, in units of their columns, as in ridge
        # regression
        offset_columns = np.sqrt(table.weights)[:, None] * table.offsets.T
        offset_norms = np.linalg.norm(offset_columns, axis=0)
        offset_norms = np.where(offset_norms > 0, offset_norms, 1.0)
        _, offset_sigma, Vt = np.linalg.svd(offset_columns / offset_norms, full_matrices=False)
        # other combinations have such large m that their output is lost to rounding
        is_independent = offset_sigma > 1e-10 * offset_sigma[0]
        self.combine = Vt[is_independent].T / offset_sigma[is_independent] / offset_norms[:, None]
        self.resolve = Vt[is_independent] * offset_sigma[is_independent, None] * offset_norms
        self.regressors = np.concatenate([self.combine.T @ offset_regressors, special_regressors])
        # ends of the coordinates of V1, V2, m, theta and psi, Q1 - psi psi'; q2 is last
        entry_count = self.lower[0].size
        self.ends = np.cumsum([entry_count, A, self.combine.shape[1], self.unit.size, entry_count])

    def pack(self, overlaps: Overlaps) -> Array:
        """Coordinates (P, k) of overlaps."""
        A = len(self.unit)
        matrices = np.stack([overlaps.V1, overlaps.Q1 - overlaps.psi @ overlaps.psi.swapaxes(1, 2)])
        cholesky_factors = np.sqrt(np.maximum(matrices, 1e-300)) if A == 1 else _cholesky(matrices)
        diagonal = np.diagonal(cholesky_factors, axis1=2, axis2=3)
        logs, V2, q2 = (np.log(np.maximum(x, 1e-300)) for x in (diagonal, overlaps.V2, overlaps.q2))
        factor_rows = np.where(np.eye(A), logs[..., None], cholesky_factors / diagonal[..., None])
        V1, spread = factor_rows[:, :, *self.lower]
        special_overlaps = (overlaps.special / self.unit).reshape(len(V2), -1)
        return np.concatenate(
            [V1, V2, overlaps.m @ self.resolve.T / self.size, special_overlaps, spread, q2], axis=1
        )

    def unpack(self, coordinates: Array) -> Overlaps:
        """Overlaps with the coordinates x (P, k)."""
        A = len(self.unit)
        V1, V2, m, special_overlaps, spread, q2 = np.split(coordinates, self.ends, axis=1)
        factor_rows = np.zeros((2, len(coordinates), A, A))
        factor_rows[:, :, *self.lower] = V1, spread
        logs = np.diagonal(factor_rows, axis1=2, axis2=3)
        # bounded so that squares and products of a few values do not overflow
        factor_diagonal, V2, q2 = (np.exp(np.clip(part, -300.0, 300.0)) for part in (logs, V2, q2))
        cholesky_factors = factor_diagonal[..., None] * np.where(np.eye(A), 1.0, factor_rows)
        V1, spread = cholesky_factors @ cholesky_factors.swapaxes(2, 3)
        special_overlaps = special_overlaps.reshape(-1, *self.unit.shape) * self.unit
        theta, psi = np.split(special_overlaps, [self.spikes], axis=2)
        m, Q1 = m @ self.combine.T * self.size, spread + psi @ psi.swapaxes(1, 2)
        return Overlaps(V1, V2, m, theta, psi, Q1, q2)


def _cholesky(overlap_matrix: Array) -> Array:
    """Cholesky factors of matrices (..., A, A); NaN for those without one."""
    try:
        return np.linalg.cholesky(overlap_matrix)
    except np.linalg.LinAlgError:
        if overlap_matrix.ndim == 2:
            return np.full_like(overlap_matrix, np.nan)
        return np.stack([_cholesky(one_matrix) for one_matrix in overlap_matrix])


# Longest step of m in one pass, by its contribution to the output over the labels' size: far from
# the solution a Newton step may lead to where the loss has no slope.
LONGEST_STEP_OF_M = 2.0
COORDINATE_TOLERANCE = 1e-9  # estimated error of the coordinates, which are of order one
# Largest change of a coordinate in one pass at a solution: rounding in thin layers of the averages
# is that large.
LOSS_RESIDUAL_TOLERANCE = 1e-8


class Equations:
    """Saddle-point equations of one table of labels and one loss, for any number of points."""

    def __init__(self, label_table: LabelTable, loss: Loss) -> None:
        self.table, self.labels, self.loss = *label_table, loss
        self.responses = ridge.responses_of(self.table)
        self.scores = partial(scores, self.labels, loss)  # a function of a Field.  Eqs. (6.2)-(6.3)
        self.coordinates = Coordinates(self.table)

    def update(self, alpha: Array, lam: Array, o: Overlaps) -> tuple[Overlaps, Conjugates, Scores]:
        """Map whose fixed point solves (6.1)-(6.3), (4.3)-(4.6) and (4.9): one pass of the
        equations."""
        return one_pass(self.responses, alpha, lam, o, self.scores, partial(self._signal, o))

    def _signal(
        self, o: Overlaps, score: Scores, field: Field, susceptibility: Susceptibility
    ) -> Signal:
        """Newton step on (6.2) for m, the overlaps with special directions and their conjugates.

        The unknowns are (x, phi), with m = combine x and phi of ``signal``.  Far from the solution
        a loss may have no slope, such as the hinge if all margins are below 1.  A floor on the
        slope and a limit on the step lead m to where it has one.
        """
        coordinates, table, penalty_on_m = self.coordinates, self.table, susceptibility.penalty
        phi_root, inverse_root = susceptibility.roots()
        combine_m, regressors = coordinates.combine, coordinates.regressors
        newton_m, offset_count = o.m @ coordinates.resolve.T, combine_m.shape[1]
        m_slice, phi_slice = slice(offset_count), slice(offset_count, None)
        phi = o.special.reshape(len(newton_m), 1, -1) @ inverse_root
        newton_unknowns = np.concatenate([newton_m, phi[:, 0]], axis=1)
        score_moments = (score.flat * table.per_part(table.weights)) @ regressors.T
        slope_weights = table.per_part(score.slope * table.weights)
        slope_gram = (regressors * slope_weights[:, None]) @ regressors.T
        score_size = np.sqrt(score.square @ table.weights)[:, None]
        # where E[mu_0 s] has no slope, its rounding would give large steps
        score_moments[:, m_slice] *= np.abs(score_moments[:, m_slice]) > 1e-15 * score_size
        # map from (x, phi) to coefficients of regressors, theta = root phi; quadratic penalties
        to_coefficients, penalties = np.tile(np.eye(len(regressors)), (2, len(newton_m), 1, 1))
        to_coefficients[:, phi_slice, phi_slice] = phi_root
        penalties[:, m_slice, m_slice] = combine_m.T @ (penalty_on_m[..., None] * combine_m)
        to_unknowns = to_coefficients.swapaxes(1, 2)
        newton_matrix = to_unknowns @ slope_gram @ to_coefficients + penalties
        gradient = to_unknowns @ score_moments[..., None] - penalties @ newton_unknowns[..., None]
        newton_rhs = gradient[..., 0]
        newton_diagonal = np.einsum("pii->pi", newton_matrix)
        # a bound on steps where there is no slope; solutions do not change, as E[mu_0 s] = 0 there
        newton_diagonal[:, m_slice] += 1e-6 * score_size / coordinates.size + 1e-300
        newton_step = solve_rows(newton_matrix, newton_rhs)
        # the mean output alone: the part of tau in the slope is taken to be linear
        coefficient_step = (to_coefficients @ newton_step[..., None])[..., 0]
        output_step = coefficient_step @ regressors[:, : table.weights.size]
        step_of_m = np.linalg.norm(newton_step[:, m_slice], axis=1) / coordinates.size
        step_fraction = LONGEST_STEP_OF_M / np.maximum(step_of_m, LONGEST_STEP_OF_M)
        if (limited := step_fraction < 1).any():
            slope = (newton_rhs * newton_step).sum(axis=1)
            step_fraction = self._halved(step_fraction, limited, slope, output_step, score, field)
        stepped_unknowns = newton_unknowns + step_fraction[:, None] * newton_step
        m, phi = stepped_unknowns[:, m_slice] @ combine_m.T, stepped_unknowns[:, phi_slice, None]
        theta, theta_hat = (np.stack([phi_root, inverse_root]) @ phi).reshape(2, *o.special.shape)
        return Signal(m, theta, penalty_on_m * m, theta_hat)

    def _halved(
        self, step_fraction: Array, far: Array, slope: Array, C_step: Array, s: Scores, field: Field
    ) -> Array:
        """Fractions (P,) of Newton's steps in the signal that are taken, halved where ``far``.

        The whole steps add ``C_step`` (P, N) to C.  A convex function falls along them, with
        ``slope`` (P,) at the start.  E[mu_0 s] may be nearly a jump: a limited step is halved, at
        most ten times, until the function rises at its end at most half as steeply as it falls at
        its start.
        """
        far, weights = np.flatnonzero(far), self.table.weights
        field = Field(*(field_part[far] for field_part in field))
        slope, C_step = slope[far], C_step[far]
        # contribution of the penalties to the slope at the start, and its change over the full step
        penalty = (s.mean[far] * C_step) @ weights - slope
        rise = slope - (s.slope[far] * C_step**2) @ weights

        def slope_at(t: Array) -> Array:
            shifted = field._replace(centre=field.centre + t[:, None] * C_step)
            return np.asarray((self.scores(shifted).mean * C_step) @ weights - penalty - t * rise)

        for _ in range(10):
            too_steep = slope_at(step_fraction[far]) < -slope / 2
            if not too_steep.any():
                break
            step_fraction[far[too_steep]] /= 2
        return step_fraction

    def errors(self, overlaps: Overlaps) -> dict[str, Array]:
        """Test error on noiseless targets, training error, and losses on new and training samples,
        (P,), with the field names of ``Solution`` as keys.  Eqs. (4.7), (4.11)"""
        label_table, field = self.table, field_at_nodes(self.responses, overlaps)
        # E (E[y | x] - f)^2
        target_error = (field.centre - label_table.h) ** 2 + label_table.spread + field.variance
        target_error -= 2 * np.einsum("pnk,kn->pn", field.tau_slope, label_table.g)
        mean_losses = losses(self.labels, label_table.weights, self.loss, field)
        return {"test_error": target_error @ label_table.weights, **mean_losses}

    def solve(
        self,
        alpha: Array,
        lam: Array,
        start: Overlaps,
        history: Array | None = None,
        *,
        tol: float = COORDINATE_TOLERANCE,
    ) -> tuple[Overlaps, Result]:
        """Solve the equations at the points (alpha[i], lam[i]), arrays (P,), from guesses
        ``start``.

        Returns overlaps with an estimated error ``tol`` of the coordinates, and the ``Result`` of
        the iteration.  Points that did not converge have the solver's last values.  The residual is
        the largest change of a coordinate in one pass.  The ``history`` (P, COMBINED, 2, k) is that
        of ``fixed_point``, for k coordinates, such as of a solve on another table; it is updated.
        """
        pack, unpack = self.coordinates.pack, self.coordinates.unpack

        def pass_image(x: Array, rows: Indices) -> Array:
            coordinates_after = pack(self.update(alpha[rows], lam[rows], unpack(x))[0])
            # at larger coordinates, small steps are lost to rounding
            return np.where(np.abs(coordinates_after) < 1e6, coordinates_after, np.nan)

        x = np.nan_to_num(pack(start))
        loss_solution = fixed_point(
            pass_image,
            x,
            tol=tol,
            size=np.ones_like,
            history=np.zeros((len(x), COMBINED, 2, x.shape[1])) if history is None else history,
            # much less than m's longest step, after which the map is not nearly linear
            linear_below=0.3,
            longest_step=4.0,  # a factor of 50 in V2
            max_iterations=200,  # usually a dozen; many for continuous readouts far from ridge
        )
        return unpack(loss_solution.value), loss_solution
