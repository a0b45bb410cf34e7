"""The saddle point of a convex loss on one table of labels: one pass of its equations.

The unknowns are those of ridge regression; the scores s of (6.1), averaged given kappa by
``averages``, take the place of (h - C) / (1 + V), and -E s' that of 1 / (1 + V).  One pass,

    overlaps -> E[s | kappa], ... -> conjugates (6.2)-(6.3) -> overlaps (4.3)-(4.6), (4.9),

is a map whose fixed point is wanted; m and theta are taken a Newton step further in it, as C
enters E[s | kappa] with the known slope E[s' | kappa].  ``solve`` finds the fixed point, in
unconstrained coordinates, so that no extrapolation leaves the domain.  docs/theory.md 6
"""

from typing import NamedTuple

import numpy as np

from solvers.linear import solve_rows
from solvers.results import Array

from ..saddle_point import (
    Conjugates,
    Overlaps,
    Signal,
    Susceptibility,
    newton_system,
    penalty_on_m,
    psi_from_conjugates,
    ridge,
    theta_from_p_hat,
)
from .averages import Losses, at_once, losses, scores
from .coordinates import Coordinates
from .label_tables import LabelTable
from .local_field import Field, Scores, field_on
from .losses import Loss

# Longest step of m in one pass, in what it adds to the output over the labels' size: from far away
# a Newton step may lead to where the loss has no slope.
LONGEST_STEP_OF_M = 2.0
# Least slope in m of E[mu_0 s], of the score's size.  It bounds a step where there is no slope, and
# moves no solution, which is where E[mu_0 s] vanishes.
SLOPE_FLOOR = 1e-6
SCORE_ROUNDING = 1e-15  # E[mu_0 s] that is all rounding, of the score's size
LARGEST_COORDINATE = 1e6  # beyond it rounding takes small steps for none
DIFFERENCE = 1e-6  # step of the differences for Newton's slopes, which need few digits


class Update(NamedTuple):
    """What one pass makes of overlaps: the new ones, and the conjugates on the way."""

    overlaps: Overlaps
    conjugates: Conjugates


class Equations:
    """The saddle point of one table of labels and one loss, for any number of points (alpha, lam).

    ``longest_step`` bounds the steps of m: shorter ones find their way where E[mu_0 s] is all but
    a jump.
    """

    def __init__(
        self, label_table: LabelTable, loss: Loss, longest_step: float = LONGEST_STEP_OF_M
    ) -> None:
        self.table, self.labels, self.loss = *label_table, loss
        self.longest_step = longest_step
        self.responses = ridge.responses_of(self.table)
        self.coordinates = Coordinates(self.table)
        self.points_at_once = at_once(self.labels, loss)  # at one kappa after the other, at least

    def field(self, o: Overlaps) -> Field:
        """C, P, S^2 and V at every point and kappa."""
        return field_on(self.table, self.responses, o)

    def update(self, alpha: Array, lam: Array, o: Overlaps) -> Update:
        """The map whose fixed point solves (6.1)-(6.3), (4.3)-(4.6) and (4.9)."""
        table, responses, field = self.table, self.responses, self.field(o)
        s = scores(self.labels, self.loss, field)
        V_hat = responses.conjugates_from(s.slope, alpha)  # Eq. (6.2)
        V = responses.from_conjugates(V_hat, lam)  # Eqs. (4.3)-(4.4)
        V1, V2 = responses.unpack(V)
        pulled = s.pulled(field) * table.weights[:, None]
        p_hat = np.einsum("pnk,an->pak", pulled, table.mu1)  # Eq. (6.2)
        susceptibility = responses.susceptibility(V, V_hat, alpha)
        penalty = penalty_on_m(table, alpha, V2)
        # Eqs. (4.5), (6.2)
        m, theta, m_hat, theta_hat = self._signal(s, penalty, susceptibility, p_hat, o)
        psi = psi_from_conjugates(susceptibility, theta_hat, p_hat)  # Eq. (4.6)
        signal = responses.signal_sources(V, V_hat, alpha, theta_hat, p_hat)
        X1, X2 = ridge.sources(table, s.square * table.weights, alpha, m_hat, signal)  # Eq. (6.3)
        Q = responses.second_moments_at(V_hat, lam, responses.pack(X1, X2))  # Eq. (4.9)
        Q1, q2 = responses.unpack(Q)
        return Update(
            Overlaps(V1, V2, m, theta, psi, Q1 + signal.Q1, q2),
            Conjugates(*responses.unpack(V_hat), m_hat, theta_hat, p_hat, X1, X2),
        )

    def _signal(
        self,
        s: Scores,
        penalty: Array,
        susceptibility: Susceptibility,
        p_hat: Array,
        o: Overlaps,
    ) -> Signal:
        """m, theta and their conjugates: a Newton step on (4.5), with the ``penalty`` on m.

        Far from the solution a loss may have no slope at all (hinge, all margins short of 1): a
        floor on the slope and a limit on the step lead m towards where it has one.
        """
        coordinates, weights = self.coordinates, self.table.weights
        combine, regressors = coordinates.combine, coordinates.regressors  # m = combine x
        x, free = o.m @ coordinates.resolve.T, slice(combine.shape[1])
        offset = theta_from_p_hat(susceptibility, p_hat)  # theta = root phi + offset
        phi = (o.theta.reshape(offset.shape) - offset)[:, None] @ susceptibility.inverse_root
        before = np.concatenate([x, phi[:, 0]], axis=1)
        moment = (s.mean * weights) @ regressors.T
        gram = (regressors * (s.slope * weights)[:, None]) @ regressors.T
        score_size = np.sqrt(s.square @ weights)[:, None]
        # where E[mu_0 s] has no slope, rounding would carry it off
        moment[:, free] *= np.abs(moment[:, free]) > SCORE_ROUNDING * score_size
        on_x = combine.T @ (penalty[..., None] * combine)
        matrix, right = newton_system(gram, moment, susceptibility.root, on_x, before)
        diagonal = np.einsum("pii->pi", matrix)
        diagonal[:, free] += SLOPE_FLOOR * score_size / coordinates.size + 1e-300
        step = solve_rows(matrix, right)
        longest = self.longest_step * coordinates.size
        length = np.linalg.norm(step[:, free], axis=1) / longest
        x, phi = np.split(before + step / np.maximum(1.0, length)[:, None], [free.stop], axis=1)
        m = x @ combine.T
        theta = (susceptibility.root @ phi[..., None])[..., 0] + offset
        theta_hat = (susceptibility.inverse_root @ phi[..., None])[..., 0]
        shape = o.theta.shape
        return Signal(m, theta.reshape(shape), penalty * m, theta_hat.reshape(shape))

    def errors(self, o: Overlaps) -> tuple[Array, Losses]:
        """Squared test errors on noiseless targets (P,), and the losses.  Eqs. (4.7), (4.11)"""
        table, field = self.table, self.field(o)
        # E (E[y | x] - f)^2
        error = (field.centre - table.h) ** 2 + table.spread + field.power
        error -= 2 * np.einsum("pnk,kn->pn", field.pull, table.g)
        return error @ table.weights, losses(self.labels, table.weights, self.loss, field)

    def image(self, x: Array, alpha: Array, lam: Array) -> Array:
        """One pass, in coordinates (P, k) of order one, as many points at a time as averages are
        taken of; NaN where it leads out of all bounds."""
        size, after = self.points_at_once, np.empty_like(x)
        with np.errstate(all="ignore"):
            for b in (slice(i, i + size) for i in range(0, len(x), size)):
                update = self.update(alpha[b], lam[b], self.coordinates.unpack(x[b]))
                after[b] = self.coordinates.pack(update.overlaps)
        return np.where(np.abs(after) < LARGEST_COORDINATE, after, np.nan)

    def system(self, x: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """x - T(x) (P, k) and its derivatives (P, k, k), by differences."""
        P, k = x.shape
        shifted = (x[:, None] + DIFFERENCE * np.eye(k + 1, k, -1)).reshape(-1, k)
        image = self.image(shifted, np.repeat(alpha, k + 1), np.repeat(lam, k + 1))
        residual = (shifted - image).reshape(P, k + 1, k)
        with np.errstate(all="ignore"):
            slope = (residual[:, 1:] - residual[:, :1]) / DIFFERENCE
        return residual[:, 0], slope.transpose(0, 2, 1)
