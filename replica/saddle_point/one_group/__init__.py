"""Compiled ridge regression for one group of neurons, from a table to all of (4.1)-(4.11).
docs/theory.md 4, 5, 16

(V1, V2) solve (4.1)-(4.4) by two steps of (4.2) -> (5.3), then by Newton's method on the two
equations without cancellation that ``isotropic`` states,

    lambda V2     = (1 - alpha/beta) + (alpha/beta) E[1 / (1 + V)]               (i)
    V1 / (c_e V2) = (1 - alpha) + alpha E[(1 + mu_2^2 V2) / (1 + V)]             (ii)

in the logarithms of V2 and of W1 = V2 / (q + 1/c), with q = beta V2 V1_hat.  All other unknowns
follow explicitly by (4.5)-(4.11).  Averages E are sums over the nodes of a table.

Isotropic rows, as of an sRF, have c_e = c, and W1 is V1.  Rows of a network have c_e(q), and C_e(q)
on u, the row norms (delta) and zeta.  Both are tabulated in the table (``rows``), and
V1 = V2 / (q + 1/c_e(q)).  Their readout has one more loading, chi on d mu_0 / d c.

The usual case is one spike and one direction zeta of the target that is N(0, 1) at every kappa; it
is written out in ``one_spike``.  In all other cases the equations have vectors and matrices (19.3),
in ``several``.

The entry point is ``solve_all``.
"""

from .points import STATUSES, solve_all, worth_compiling
from .responses import RESPONSE_TOLERANCE
from .violation import SMALLEST_ERROR, SMALLEST_OVERLAP

__all__ = [
    "RESPONSE_TOLERANCE",
    "SMALLEST_ERROR",
    "SMALLEST_OVERLAP",
    "STATUSES",
    "solve_all",
    "worth_compiling",
]
