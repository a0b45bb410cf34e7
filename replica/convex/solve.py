"""Any convex loss: solutions of the saddle point on one table of labels.  docs/theory.md 6

The fixed point of one pass (``equations``) is iterated by Anderson's method first, and by Newton's
where that is slow.  Many points are solved at once.
"""

from collections.abc import Callable

import numpy as np

from solvers.fixed_point import fixed_point
from solvers.newton import newton
from solvers.results import Array, Result, Rows, Status

from ..saddle_point import Overlaps, ridge
from .equations import Equations

COORDINATE_TOLERANCE = 1e-9  # estimated error of the coordinates, which are of order one
# Largest change of a coordinate in one pass at a solution: thin layers of the averages leave that
# much rounding.
LOSS_RESIDUAL_TOLERANCE = 1e-8
# Unknowns, beyond which the differences for Newton's slopes take too long.
MANY_UNKNOWNS = 40
# Earlier passes that are combined, passes at most, where Newton's method follows and where not
ANDERSON_FEW, ANDERSON_MANY = (6, 20), (20, 300)
NEWTON_STEPS = 10  # at most
# Largest change of a coordinate by passes that Anderson's method combines: much less than m's
# longest step, as a pass that takes m that far starts from where the map is not yet nearly linear.
ANDERSON_BEGINS = 0.3
ANDERSON_LONGEST = 4.0  # change of a coordinate by a combination: a factor of 50 in a logarithm

System = Callable[[Array, Rows], tuple[Array, Array]]


def solve_points(
    equations: Equations,
    alpha: Array,
    lam: Array,
    start: Overlaps | None = None,
    *,
    tol: float = COORDINATE_TOLERANCE,
    check: Callable[[], None] = lambda: None,
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
    tol : float
        Estimated error of a coordinate.
    check : callable
        Called before every pass: what it raises ends the iteration.
    """
    if start is None:
        start = ridge.solve_points(equations.table, alpha, lam).overlaps
    first = np.nan_to_num(equations.coordinates.pack(start))

    def image(x: Array, rows: Rows) -> Array:
        check()
        return equations.image(x, alpha[rows], lam[rows])

    def system(x: Array, rows: Rows) -> tuple[Array, Array]:
        check()
        return equations.system(x, alpha[rows], lam[rows])

    many = first.shape[1] > MANY_UNKNOWNS
    memory, passes = ANDERSON_MANY if many else ANDERSON_FEW
    result = fixed_point(
        image,
        first,
        tol=tol,
        size=np.ones_like,
        memory=memory,
        near=ANDERSON_BEGINS,
        longest=ANDERSON_LONGEST,
        max_iterations=passes,
    )
    if not many:
        result = _by_newton(system, first, result, tol)
    return equations.coordinates.unpack(result.value), result


def _by_newton(system: System, start: Array, first: Result, tol: float) -> Result:
    """The ``first`` result with the rows that are not solved taken on by Newton's method."""
    rows = np.flatnonzero(~first.converged)
    if not rows.size:
        return first
    usable = np.isfinite(first.value[rows]).all(axis=1, keepdims=True)
    second = newton(
        lambda x, inner: system(x, rows[inner]),
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
