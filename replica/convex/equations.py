"""The saddle point of a convex loss on one table of labels: one pass of its equations.

The unknowns are those of ridge regression; the scores s of (6.1), averaged given kappa by
``averages``, take the place of (h - C) / (1 + V), and -E s' that of 1 / (1 + V).  One pass,

    overlaps -> E[s | kappa], ... -> conjugates (6.2)-(6.3) -> overlaps (4.3)-(4.6), (4.9),

is a map whose fixed point is wanted: ``sweep`` of the saddle point, with the averages here.  Its
steps are, with E over kappa, tau, xi and the label, and of one group of one spike,

    omega = C + P tau + sqrt(S^2 - P^2) xi,   C = mu_0 m + mu_1 kappa theta,   P = mu_1 psi,
        S^2 = mu_1^2 Q1 + mu_2^2 q2,   V = mu_1^2 V1 + mu_2^2 V2;
    V1_hat = (alpha/beta) E mu_1^2 (-s'),   V2_hat = (alpha/beta) E mu_2^2 (-s');
    V1 = <D/R>,   V2 = <1/R>,   R = lam + V2_hat + V1_hat D, over the bulk's eigenvalues D;
    E mu_0 s = 0,   theta = alpha c V2 E kappa mu_1 s,   psi = alpha V1 E mu_1 (tau s - P s');
    (Q1, q2) = -d(V1, V2) as V1_hat and V2_hat move with speeds X1 and X2 of (6.3).

lam stands in R alone.  m and the overlaps with special directions are taken a Newton step further,
as they enter the averages with the known slope E[s' | kappa].  ``solve`` finds the fixed point by
Anderson's method, in unconstrained coordinates, so that no extrapolation leaves the domain.
docs/theory.md 6
"""

from functools import partial

import numpy as np

from solvers.fixed_point import fixed_point
from solvers.linear import solve_rows
from solvers.results import Array, Result, Rows

from ..saddle_point import (
    Conjugates,
    Field,
    Overlaps,
    Scores,
    Signal,
    Susceptibility,
    field_at_nodes,
    penalty_on_m,
    ridge,
    sweep,
)
from .averages import losses, scores
from .coordinates import Coordinates
from .label_tables import LabelTable
from .losses import Loss

# Longest step of m in one pass, in what it adds to the output over the labels' size: from far away
# a Newton step may lead to where the loss has no slope.
LONGEST_STEP_OF_M = 2.0
COORDINATE_TOLERANCE = 1e-9  # estimated error of the coordinates, which are of order one
# Largest change of a coordinate in one pass at a solution: thin layers of the averages leave that
# much rounding.
LOSS_RESIDUAL_TOLERANCE = 1e-8
MEMORY = 10  # earlier passes that are combined


class Equations:
    """The saddle point of one table of labels and one loss, for any number of points."""

    def __init__(self, label_table: LabelTable, loss: Loss) -> None:
        self.table, self.labels, self.loss = *label_table, loss
        self.responses = ridge.responses_of(self.table)
        self.scores = partial(scores, self.labels, loss)  # of a Field.  Eqs. (6.2)-(6.3)
        self.coordinates = Coordinates(self.table)

    def update(self, alpha: Array, lam: Array, o: Overlaps) -> tuple[Overlaps, Conjugates, Scores]:
        """The map whose fixed point solves (6.1)-(6.3), (4.3)-(4.6) and (4.9)."""
        return sweep(self.responses, alpha, lam, o, self.scores, partial(self._signal, alpha, o))

    def _signal(
        self, alpha: Array, o: Overlaps, s: Scores, field: Field, V2: Array, of: Susceptibility
    ) -> Signal:
        """m, the overlaps with special directions and their conjugates: a Newton step on (6.2), in
        the unknowns (x, phi) with m = combine x, as ``signal`` has phi.

        Far from the solution a loss may have no slope at all (hinge, all margins short of 1): a
        floor on the slope and a limit on the step lead m towards where it has one.
        """
        coordinates, table, root = self.coordinates, self.table, of.root
        penalty = penalty_on_m(table, alpha, V2)
        combine, regressors = coordinates.combine, coordinates.regressors
        x, count = o.m @ coordinates.resolve.T, combine.shape[1]
        free, special = slice(count), slice(count, None)
        phi = o.special.reshape(len(x), 1, -1) @ of.inverse_root
        before = np.concatenate([x, phi[:, 0]], axis=1)
        moment = (s.flat * table.per_part(table.weights)) @ regressors.T
        slope = table.per_part(s.slope * table.weights)
        gram = (regressors * slope[:, None]) @ regressors.T
        score_size = np.sqrt(s.square @ table.weights)[:, None]
        # where E[mu_0 s] has no slope, rounding would carry it off
        moment[:, free] *= np.abs(moment[:, free]) > 1e-15 * score_size
        # what (x, phi) add to the output by way of theta = root phi, and their quadratic penalties
        turn, held = np.tile(np.eye(len(regressors)), (2, len(x), 1, 1))
        turn[:, special, special] = root
        held[:, free, free] = combine.T @ (penalty[..., None] * combine)
        turned = turn.swapaxes(1, 2)
        matrix = turned @ gram @ turn + held
        right = (turned @ moment[..., None] - held @ before[..., None])[..., 0]
        diagonal = np.einsum("pii->pi", matrix)
        # bounds a step where there is no slope, and moves no solution: there E[mu_0 s] vanishes
        diagonal[:, free] += 1e-6 * score_size / coordinates.size + 1e-300
        step = solve_rows(matrix, right)
        # of the mean output: what the rest has in the slope is taken to be linear
        along = (turn @ step[..., None])[..., 0] @ regressors[:, : table.weights.size]
        length = np.linalg.norm(step[:, free], axis=1) / coordinates.size
        part = self._part_of_step(length, (right * step).sum(axis=1), along, s, field)
        after = before + part[:, None] * step
        m, phi = after[:, free] @ combine.T, after[:, special, None]
        theta, theta_hat = (np.stack([root, of.inverse_root]) @ phi).reshape(2, *o.special.shape)
        return Signal(m, theta, penalty * m, theta_hat)

    def _part_of_step(
        self, length: Array, slope: Array, along: Array, s: Scores, field: Field
    ) -> Array:
        """The parts (P,) that are taken of Newton's steps in the signal, which are ``length`` (P,)
        long in m and add ``along`` (P, N) to C: none longer than m's longest.

        A convex function falls along the step, by ``slope`` (P,) at its start.  E[mu_0 s] may be
        all but a jump: a step that is too long is halved until the function rises no more than half
        as steeply at its end as it falls at its start, or ten times.
        """
        part = LONGEST_STEP_OF_M / np.maximum(length, LONGEST_STEP_OF_M)
        far, weights = np.flatnonzero(part < 1), self.table.weights
        if not far.size:
            return part
        field, slope, along = Field(*(each[far] for each in field)), slope[far], along[far]
        # what the penalties have in the slope, at the start and at the whole step
        penalty = (s.mean[far] * along) @ weights - slope
        rise = slope - (s.slope[far] * along**2) @ weights

        def slope_at(t: Array) -> Array:
            moved = field._replace(centre=field.centre + t[:, None] * along)
            return np.asarray((self.scores(moved).mean * along) @ weights - penalty - t * rise)

        for _ in range(10):
            rises = slope_at(part[far]) < -slope / 2
            if not rises.any():
                break
            part[far[rises]] /= 2
        return part

    def errors(self, o: Overlaps) -> dict[str, Array]:
        """The squared test error on noiseless targets, the training error, and the losses on new
        and on training samples, (P,), by the names that ``Solution`` has.  Eqs. (4.7), (4.11)"""
        table, field = self.table, field_at_nodes(self.responses, o)
        # E (E[y | x] - f)^2
        error = (field.centre - table.h) ** 2 + table.spread + field.variance
        error -= 2 * np.einsum("pnk,kn->pn", field.tau_slope, table.g)
        known = losses(self.labels, table.weights, self.loss, field)
        return {"test_error": error @ table.weights, **known}

    def solve(
        self,
        alpha: Array,
        lam: Array,
        start: Overlaps,
        past: Array | None = None,
        *,
        tol: float = COORDINATE_TOLERANCE,
    ) -> tuple[Overlaps, Result]:
        """Overlaps at the points (alpha[i], lam[i]), arrays (P,), from guesses to start with, and
        how they were reached: to an estimated error of ``tol`` of a coordinate.

        Rows that did not converge hold whatever the solver left.  The residual is the largest
        change of a coordinate in one pass.  The ``past`` (P, MEMORY, 2, k) are changes of the k
        coordinates and of their images that an earlier solve has seen, such as on another table;
        they are updated.
        """
        pack, unpack = self.coordinates.pack, self.coordinates.unpack

        def image(x: Array, rows: Rows) -> Array:
            with np.errstate(all="ignore"):
                after = pack(self.update(alpha[rows], lam[rows], unpack(x))[0])
            # further out rounding takes small steps for none
            return np.where(np.abs(after) < 1e6, after, np.nan)

        x = np.nan_to_num(pack(start))
        result = fixed_point(
            image,
            x,
            tol=tol,
            size=np.ones_like,
            history=np.zeros((len(x), MEMORY, 2, x.shape[1])) if past is None else past,
            # much less than m's longest step: a pass that takes m that far starts from where the
            # map is not yet nearly linear
            linear_below=0.3,
            longest_step=4.0,  # a factor of 50 in V2
            max_iterations=200,  # a dozen are usual; continuous readouts far from ridge take many
        )
        return unpack(result.value), result
