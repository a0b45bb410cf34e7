"""Any convex loss: solutions of the saddle point on one table of labels.  docs/theory.md 6

The fixed point of one pass (``equations``) is iterated by Broyden's method, and then by Newton's
where that is slow or, of few points, where no slopes are known to begin with; what the slopes are
is kept for the next table.  With many unknowns the slopes are too many, and Anderson's method takes
the place of both.  Many points are solved at once.
"""

from collections.abc import Callable

import numpy as np

from solvers.fixed_point import Anderson, Broyden, fixed_point
from solvers.newton import newton
from solvers.results import Array, Result, Rows, Status

from ..saddle_point import Overlaps, ridge
from .equations import Equations

COORDINATE_TOLERANCE = 1e-9  # estimated error of the coordinates, which are of order one
# Largest change of a coordinate in one pass at a solution: thin layers of the averages leave that
# much rounding.
LOSS_RESIDUAL_TOLERANCE = 1e-8
# Unknowns, beyond which there are too many slopes, and differences for them take too long.
MANY_UNKNOWNS = 40
MEMORY, MANY_PASSES = 20, 300  # earlier passes that are combined, and passes at most, there
PASSES = 20  # by Broyden's method at most
# Where points are few, differences for Newton's slopes, of all unknowns in one pass, cost little
# more than a pass on a small table: where none are known they are taken once no coordinate is off
# by more than this.
FEW_POINTS, NEWTON_BEGINS = 8, 0.1
NEWTON_STEPS = 10  # at most
# Largest change of a coordinate by passes that slopes are learned of: much less than m's longest
# step, as a pass that takes m that far starts from where the map is not yet nearly linear.
ACCELERATION_BEGINS = 0.3
LONGEST = 4.0  # change of a coordinate by an accelerated step: a factor of 50 in V2

System = Callable[[Array, Rows], tuple[Array, Array]]


def solve_points(
    equations: Equations,
    alpha: Array,
    lam: Array,
    start: Overlaps | None = None,
    jacobian: Array | None = None,
    *,
    tol: float = COORDINATE_TOLERANCE,
) -> tuple[Overlaps, Result]:
    """Overlaps at the points (alpha[i], lam[i]), arrays (P,), and how they were reached.

    Rows that did not converge hold whatever the solver left.  The residual is the largest change of
    a coordinate in one pass.

    Parameters
    ----------
    equations : Equations
    alpha, lam : arrays (P,)
    start : Overlaps, optional
        Guesses, such as the overlaps on another table; ridge regression's unless given.
    jacobian : object array (P,), optional
        Of each point the derivatives (k, k) of x - T(x), x in coordinates and T one pass, as far as
        another table has shown them, or None.  Overwritten by what is known now, None where the
        iteration did not converge.
    tol : float
        Estimated error of a coordinate.
    """
    if start is None:
        start = ridge.solve_points(equations.table, alpha, lam).overlaps
    first = np.nan_to_num(equations.coordinates.pack(start))

    def image(x: Array, rows: Rows) -> Array:
        return equations.image(x, alpha[rows], lam[rows])

    def system(x: Array, rows: Rows) -> tuple[Array, Array]:
        return equations.system(x, alpha[rows], lam[rows])

    P, k = first.shape
    few = k <= MANY_UNKNOWNS
    jacobian = np.full(P, None) if jacobian is None else jacobian
    early = few and P <= FEW_POINTS and all(each is None for each in jacobian)
    slopes = _known(jacobian, k) if few else np.empty(0)
    result = fixed_point(
        image,
        first,
        tol=NEWTON_BEGINS if early else tol,
        size=np.ones_like,
        accelerator=Broyden(slopes) if few else Anderson(MEMORY),
        near=ACCELERATION_BEGINS,
        longest=LONGEST,
        max_iterations=PASSES if few else MANY_PASSES,
    )
    if few:
        rows = np.flatnonzero(~result.converged | early)
        result = _by_newton(system, first, result, rows, slopes, tol)
        for row, solved in enumerate(result.converged):
            jacobian[row] = slopes[row] if solved else None
    return equations.coordinates.unpack(result.value), result


def _known(jacobian: Array, k: int) -> Array:
    """The slopes of P points as one array (P, k, k), the identity where none are known."""
    slopes = np.tile(np.eye(k), (len(jacobian), 1, 1))
    for row, matrix in enumerate(jacobian):
        # tables may differ in how many offsets are independent
        if matrix is not None and matrix.shape == (k, k):
            slopes[row] = matrix
    return slopes


def _by_newton(
    system: System, start: Array, first: Result, rows: Rows, slopes: Array, tol: float
) -> Result:
    """The ``first`` result with some ``rows`` taken on by Newton's method, which overwrites their
    ``slopes`` (P, k, k)."""
    if not rows.size:
        return first
    usable = (first.status[rows] != Status.NOT_FINITE)[:, None]

    def noted(x: Array, inner: Rows) -> tuple[Array, Array]:
        residual, slopes[rows[inner]] = system(x, rows[inner])
        return residual, slopes[rows[inner]]

    second = newton(
        noted,
        np.where(usable, first.value[rows], start[rows]),
        size=np.ones_like,
        signed=np.ones(start.shape[1], dtype=bool),
        tol=tol,
        max_iterations=NEWTON_STEPS,
    )
    # differences, and layers of the averages, leave Newton's residual some rounding
    small = second.residual <= 0.1 * LOSS_RESIDUAL_TOLERANCE
    second.status[(second.status == Status.NO_PROGRESS) & small] = Status.CONVERGED
    return first.continued(rows, second)
