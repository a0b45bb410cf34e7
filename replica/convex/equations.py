"""The saddle point of a convex loss on one table of labels: one pass, and its fixed point.

The unknowns are those of ridge regression; the scores s of (6.1), averaged given kappa by
``local_fields``, take the place of (h - C) / (1 + V), and -E s' that of 1 / (1 + V).  One pass,

    overlaps -> E[s | kappa], ... -> conjugates (6.2)-(6.3) -> overlaps (4.3)-(4.6), (4.9),

is a map whose fixed point is wanted; m and theta are taken a Newton step further in it, as C
enters E[s | kappa] with the known slope E[s' | kappa].  It is iterated in unconstrained
coordinates, so that no extrapolation leaves the domain: by Anderson's method first, then by
Newton's where that is slow, last along a path of decreasing lambda; or by Broyden's, from the
solution and the slopes on another table.
"""

from typing import NamedTuple

import numpy as np

from solvers.broyden import Root, broyden
from solvers.fixed_point import Anderson, Leave, Limits, fixed_point
from solvers.newton import newton
from solvers.results import Array, Result, Rows, Status

from ..equivalence import Table
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
from .field_of_overlaps import field_on
from .label_tables import LabelTable
from .local_field import Field, Scores
from .losses import Loss

TOLERANCE = 1e-10  # of the unknowns, relative
RESIDUAL_TOLERANCE = 1e-8  # largest change of a coordinate in one pass
MEMORY = 6
SWEEPS, BRIEF = 60, 30  # of Anderson's method
NEWTON, NEARBY = 15, 10  # steps of Newton's, and of Broyden's
ROUNDING = 1e-15  # of E[mu_0 s], relative
FLOOR = 1e-6  # on the slope in m, of the score's size
LONGEST = 2.0  # step in what m adds to the prediction, of the labels' size
LARGEST = 1e6  # coordinate, beyond which rounding takes small steps for none
NEAR = 1.0  # change of a coordinate, that of m short of its limit: Anderson's method may begin
FURTHEST = 4.0  # that it may lead a coordinate
STEP = 1e-6  # of the differences for Newton's slopes, which need few digits
FACTOR = 4.0  # between penalties


class Update(NamedTuple):
    """One pass of the equations: the new overlaps and the conjugates on the way."""

    overlaps: Overlaps
    conjugates: Conjugates


class Slopes(NamedTuple):
    """Slopes (k, k) of the equations near a point, in the coordinates of one table."""

    matrix: Array
    coordinates: Coordinates


class Equations:
    """The saddle point of one table of labels and one loss, for any number of points."""

    def __init__(self, given: LabelTable, loss: Loss, longest: float = LONGEST) -> None:
        self.given, self.loss, self.table = given, loss, given.table
        self.longest = longest
        self.responses = ridge.responses_of(given.table)
        self.coordinates = Coordinates(given.table)
        self.rows = at_once(given.labels, loss)

    def field(self, o: Overlaps) -> Field:
        """C, P, S^2 and V at every point and kappa."""
        return field_on(self.table, self.responses, o)

    def update(self, alpha: Array, lam: Array, o: Overlaps) -> Update:
        """The map whose fixed point solves (6.1)-(6.3), (4.3)-(4.6) and (4.9)."""
        parts = [
            self._update(alpha[b], lam[b], Overlaps(*(x[b] for x in o)))
            for b in self._blocks(len(alpha))
        ]
        overlaps = Overlaps(*map(np.concatenate, zip(*(p.overlaps for p in parts), strict=True)))
        hats = Conjugates(*map(np.concatenate, zip(*(p.conjugates for p in parts), strict=True)))
        return Update(overlaps, hats)

    def _update(self, alpha: Array, lam: Array, o: Overlaps) -> Update:
        table, responses, field = self.table, self.responses, self.field(o)
        s = scores(self.given.labels, self.loss, field)
        V_hat = responses.conjugates_from(s.slope, alpha)  # Eq. (6.2)
        V = responses.from_conjugates(V_hat, lam)
        V1, V2 = responses.unpack(V)
        along = (s.along + field.pull * s.slope[..., None]) * table.weights[:, None]
        p_hat = np.einsum("pnk,an->pak", along, table.mu1)
        susceptibility = responses.susceptibility(V, V_hat, alpha)
        m, theta, m_hat, theta_hat = self._signal(s, alpha, V2, susceptibility, p_hat, o)
        psi = psi_from_conjugates(susceptibility, theta_hat, p_hat)  # Eq. (4.6)
        signal = responses.signal_sources(V, V_hat, alpha, theta_hat, p_hat)
        X1, X2 = ridge.sources(table, s.square * table.weights, alpha, m_hat, signal)  # Eq. (6.3)
        Q1, q2 = responses.unpack(responses.second_moments_at(V_hat, lam, responses.pack(X1, X2)))
        return Update(
            Overlaps(V1, V2, m, theta, psi, Q1 + signal.Q1, q2),
            Conjugates(*responses.unpack(V_hat), m_hat, theta_hat, p_hat, X1, X2),
        )

    def _signal(
        self,
        s: Scores,
        alpha: Array,
        V2: Array,
        susceptibility: Susceptibility,
        p_hat: Array,
        o: Overlaps,
    ) -> Signal:
        """m, theta and their conjugates: a Newton step on (4.5).

        Far from the solution a loss may have no slope at all (hinge, all margins short of 1): a
        floor on the slope and a limit on the step lead m towards where it has one.
        """
        table, combine = self.table, self.coordinates.combine
        P, free = len(V2), combine.shape[1]
        given = theta_from_p_hat(susceptibility, p_hat)
        size = free + given.shape[1]
        penalty = penalty_on_m(table, alpha, V2)
        x = o.m @ self.coordinates.resolve.T
        phi = (o.theta.reshape(P, 1, -1) - given[:, None]) @ susceptibility.inverse_root
        before = np.concatenate([x, phi[:, 0]], axis=1)
        force = (s.mean * table.weights) @ self.coordinates.regressors.T
        gram = ((s.slope * table.weights) @ self.coordinates.pairs).reshape(P, size, size)
        spread = np.sqrt(s.square @ table.weights)[:, None]
        # where no slope holds m, rounding would carry it off
        force[:, :free] *= np.abs(force[:, :free]) > ROUNDING * spread
        on_x = combine.T @ (penalty[..., None] * combine)
        matrix, right = newton_system(gram, force, susceptibility.root, on_x, before)
        matrix[:, range(free), range(free)] += FLOOR * spread / self.coordinates.size
        lost = ~np.isfinite(matrix).all(axis=(1, 2))
        matrix[lost] = np.eye(size)
        step = (np.linalg.pinv(matrix, hermitian=True) @ right[..., None])[..., 0]
        step[lost] = np.nan
        length = np.linalg.norm(step[:, :free], axis=1) / (self.longest * self.coordinates.size)
        after = before + step / np.maximum(1.0, length)[:, None]
        m, phi = after[:, :free] @ combine.T, after[:, free:, None]
        theta = (susceptibility.root @ phi)[..., 0] + given
        theta_hat = (susceptibility.inverse_root @ phi)[..., 0]
        shape = (P, *table.loadings.shape[:2])
        return Signal(m, theta.reshape(shape), penalty * m, theta_hat.reshape(shape))

    def errors(self, o: Overlaps) -> tuple[Array, Losses]:
        """Squared test error on noiseless targets (4.7), and the losses."""
        tests, parts = [], []
        for b in self._blocks(len(o.V2)):
            field = self.field(Overlaps(*(x[b] for x in o)))
            tests.append(square_error(self.table, field))
            parts.append(losses(self.given.labels, self.table.weights, self.loss, field))
        return np.concatenate(tests), Losses(*map(np.concatenate, zip(*parts, strict=True)))

    def _blocks(self, count: int) -> list[slice]:
        return [slice(i, i + self.rows) for i in range(0, count, self.rows)]

    def root_near(
        self,
        alpha: Array,
        lam: Array,
        start: Overlaps,
        slopes: Slopes,
        tol: float,
        enough: float,
    ) -> Root | None:
        """Of one point, by Broyden's method."""
        matrix = self.coordinates.slopes_from(slopes.coordinates, slopes.matrix)
        if matrix is None:
            return None
        with np.errstate(all="ignore"):
            return broyden(
                lambda x: self.residual(x, alpha, lam),
                self.coordinates.pack(start)[0],
                matrix,
                tol=tol,
                enough=enough,
                max_iterations=NEARBY,
            )

    def residual(self, x: Array, alpha: Array, lam: Array) -> tuple[Array, Update]:
        """x - T(x) (k,) of one point, and the pass that gave it."""
        found = self.update(alpha, lam, self.coordinates.unpack(x[None]))
        return x - self.coordinates.pack(found.overlaps)[0], found

    def image(self, x: Array, alpha: Array, lam: Array) -> Array:
        """The map in coordinates, (P, k), which are of order one; NaN where it is lost."""
        with np.errstate(all="ignore"):
            found = self.update(alpha, lam, self.coordinates.unpack(x))
            after = self.coordinates.pack(found.overlaps)
        return np.where(np.abs(after) < LARGEST, after, np.nan)

    def solve(
        self,
        alpha: Array,
        lam: Array,
        start: Overlaps | None,
        brief: bool = False,
        leave: Leave | None = None,
    ) -> Result:
        """Anderson, then Newton; without a good start, a path in lambda from where the problem
        is easy."""
        given = start is not None
        if start is None:
            start = ridge.solve_points(self.table, alpha, lam).overlaps
        first = np.nan_to_num(self.coordinates.pack(start))
        if brief:
            return self.extrapolate(alpha, lam, first, BRIEF, leave)
        result = self.iterate(alpha, lam, first, leave)
        if given:
            return result
        rows = _unsolved(result)
        return _replace(result, rows, self.path(alpha[rows], lam[rows])) if rows.size else result

    def iterate(self, alpha: Array, lam: Array, start: Array, leave: Leave | None = None) -> Result:
        """Anderson acceleration, and Newton for the rows it leaves."""
        first = self.extrapolate(alpha, lam, start, SWEEPS, leave)
        rows = _unsolved(first)
        if not rows.size:
            return first
        usable = np.isfinite(first.value[rows]).all(axis=1, keepdims=True)
        second = newton(
            lambda x, inner: self.system(x, alpha[rows[inner]], lam[rows[inner]]),
            np.where(usable, first.value[rows], start[rows]),
            size=np.ones_like,
            signed=np.ones(start.shape[1], dtype=bool),
            tol=TOLERANCE,
            max_iterations=NEWTON,
        )
        # differences, and layers of the averages, leave Newton's residual some rounding
        level = second.residual <= 0.1 * RESIDUAL_TOLERANCE
        second.status[(second.status == Status.NO_PROGRESS) & level] = Status.CONVERGED
        return _replace(first, rows, second)

    def extrapolate(
        self, alpha: Array, lam: Array, start: Array, sweeps: int, leave: Leave | None = None
    ) -> Result:
        """Anderson acceleration."""
        return fixed_point(
            lambda x, rows: self.image(x, alpha[rows], lam[rows]),
            start,
            tol=TOLERANCE,
            size=np.ones_like,
            anderson=Anderson(MEMORY, NEAR, FURTHEST),
            limits=Limits(max_iterations=sweeps, leave=leave),
        )

    def system(self, x: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """x - T(x) (P, k) and its derivatives (P, k, k), by differences."""
        P, k = x.shape
        shifted = (x[:, None] + STEP * np.eye(k + 1, k, -1)).reshape(-1, k)
        image = self.image(shifted, np.repeat(alpha, k + 1), np.repeat(lam, k + 1))
        residual = (shifted - image).reshape(P, k + 1, k)
        with np.errstate(all="ignore"):
            slope = (residual[:, 1:] - residual[:, :1]) / STEP
        return residual[:, 0], slope.transpose(0, 2, 1)

    def path(self, alpha: Array, lam: Array) -> Result:
        """From a penalty of order one down to ``lam``, by factors of FACTOR or less, every stage
        extrapolated from the last two."""
        top = np.maximum(lam * FACTOR, 1.0)
        stages = int(np.ceil(np.log(top / lam).max() / np.log(FACTOR)))
        first = ridge.solve_points(self.table, alpha, top).overlaps
        start, before = np.nan_to_num(self.coordinates.pack(first)), None
        iterations = np.zeros(len(alpha), dtype=np.int64)
        for stage in np.linspace(0.0, 1.0, stages + 1):
            result = self.iterate(alpha, top ** (1 - stage) * lam**stage, start)
            iterations += result.iterations
            if not result.converged.any():
                break
            ahead = result.value if before is None else 2 * result.value - before
            start, before = np.where(result.converged[:, None], ahead, start), result.value
        return Result(result.value, result.residual, iterations, result.status)


def square_error(table: Table, field: Field) -> Array:
    """E (E[y | x] - f)^2, (P,).  Eqs. (4.7), (4.11)"""
    error = (field.centre - table.h) ** 2 + table.spread + field.power
    error -= 2 * np.einsum("pnk,kn->pn", field.pull, table.g)
    return error @ table.weights


def _unsolved(result: Result) -> Rows:
    """Rows to be tried otherwise."""
    return np.flatnonzero(~result.converged & (result.status != Status.LEFT))


def _replace(result: Result, rows: Rows, by: Result) -> Result:
    """``result`` with the named rows taken from ``by``, iterations added up."""
    value, residual = result.value.copy(), result.residual.copy()
    iterations, status = result.iterations.copy(), result.status.copy()
    value[rows], residual[rows], status[rows] = by.value, by.residual, by.status
    iterations[rows] += by.iterations
    return Result(value, residual, iterations, status)
