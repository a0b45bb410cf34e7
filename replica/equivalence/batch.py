"""Effect of a batch of a gradient step on the rows, as moments at nodes.  docs/theory.md 18"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array


class Batch(NamedTuple):
    """Law of a sample of one step at M nodes, and its effect on A groups.  Eqs. (18.4)-(18.10)

    Attributes
    ----------
    alpha : float
        Number of samples over the input dimension.
    pairs : (D + 2, D + 2, M)
        Quadrature weights times products of two of (1, x_1, ..., x_D, phi).  The x_i are the
        projections of the input on the D directions on which labels depend, and phi is the sample's
        coefficient in the batch's noise vector.  The entry of 1 with 1 is the weights themselves.
    t11, t12 : (A, M)
        Contribution of a sample to the pencil.  Eq. (18.5)
    F, lam, L : (A, M)
        The sample's weights in the vectors f, l and Lam of (18.2), in this order.  Eq. (18.5)
    g, v : (A,)
        Factor g of delta in the recursion (18.1), and d times the variance of the noise added to
        delta, v_f of (18.7).
    directions : (D + 1, S)
        The D directions on which labels depend and, last, the batch's noise vector, in the
        coordinates of the special directions.
    decay_factor : float
        Factor of the rows by weight decay, 1 without decay.
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
    decay_factor: float = 1.0

    @property
    def weights(self) -> Array:
        """Quadrature weights of the nodes, (M,)."""
        return self.pairs[0, 0]

    def select(self, groups: NDArray[np.int64]) -> "Batch":
        """Batch restricted to some of the groups."""
        fields = ("t11", "t12", "F", "lam", "L", "g", "v")
        return self._replace(**{name: getattr(self, name)[groups] for name in fields})
