"""Any convex loss: solutions of the saddle point on one table of labels.  docs/theory.md 6

The fixed point of one pass (``equations``) is iterated by Anderson's method, of many points at
once.
"""

import numpy as np

from solvers.fixed_point import fixed_point
from solvers.results import Array, Result, Rows

from ..saddle_point import Overlaps, ridge
from .equations import Equations

COORDINATE_TOLERANCE = 1e-9  # estimated error of the coordinates, which are of order one
# Largest change of a coordinate in one pass at a solution: thin layers of the averages leave that
# much rounding.
LOSS_RESIDUAL_TOLERANCE = 1e-8
MEMORY = 10  # earlier passes that are combined


def solve_points(
    equations: Equations,
    alpha: Array,
    lam: Array,
    start: Overlaps | None = None,
    past: Array | None = None,
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
    past : array (P, MEMORY, 2, k), optional
        Changes of the k coordinates and of their images that an earlier solve has seen, such as on
        another table; updated.
    tol : float
        Estimated error of a coordinate.
    """
    if start is None:
        start = ridge.solve_points(equations.table, alpha, lam).overlaps

    def image(x: Array, rows: Rows) -> Array:
        return equations.image(x, alpha[rows], lam[rows])

    x = np.nan_to_num(equations.coordinates.pack(start))
    result = fixed_point(
        image,
        x,
        tol=tol,
        size=np.ones_like,
        past=np.zeros((len(x), MEMORY, 2, x.shape[1])) if past is None else past,
        # much less than m's longest step: a pass that takes m that far starts from where the map is
        # not yet nearly linear
        near=0.3,
        longest=4.0,  # a factor of 50 in V2
        max_iterations=80,
    )
    return equations.coordinates.unpack(result.value), result
