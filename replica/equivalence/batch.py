"""What the batch of a gradient step does to the rows, as moments at nodes.  docs/theory.md 18"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array


class Batch(NamedTuple):
    """The sample of one step at M nodes, as A groups of neurons see it.  Eqs. (18.4)-(18.10)

    Attributes
    ----------
    alpha : float
        Samples over input dimension.
    pairs : (D + 2, D + 2, M)
        Weights times the products of (1, x_1, ..., x_D, phi): the projections of the input on the
        D directions that labels know, and the sample's share in the batch's noise vector.  The
        weights of the nodes are those of 1 with itself.
    t11, t12 : (A, M)
        What a sample adds to the pencil.
    F, lam, L : (A, M)
        The sample's weights in f, l and Lam of (18.2), in this order.  Eq. (18.5)
    g, v : (A,)
        How delta is passed on, and d times the variance of what is added to it: v_f of (18.7).
    directions : (D + 1, S)
        All that the labels know and, last, the batch's noise vector, in the coordinates of the
        special directions.
    kept : float
        What weight decay leaves of the rows.
    """

    alpha: float
    pairs: Array
    t11: Array
    t12: Array
    F: Array
    lam: Array
    L: Array
    g: Array
    v: Array
    directions: Array
    kept: float = 1.0

    @property
    def weights(self) -> Array:
        """Of the nodes, (M,)."""
        return self.pairs[0, 0]

    def of(self, groups: NDArray[np.int64]) -> "Batch":
        """The batch as some of the groups see it."""
        parts = ("t11", "t12", "F", "lam", "L", "g", "v")
        return self._replace(**{name: getattr(self, name)[groups] for name in parts})
