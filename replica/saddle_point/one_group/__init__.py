"""Ridge regression of one group of neurons, compiled: each point from end to end.
docs/theory.md 4, 5, 16

(V1, V2) solve (4.1)-(4.4) by two steps of (4.2) -> (5.3), then by Newton's method on the two
equations without cancellation that ``isotropic`` states,

    lambda V2     = (1 - alpha/beta) + (alpha/beta) E[1 / (1 + V)]               (i)
    V1 / (c_e V2) = (1 - alpha) + alpha E[(1 + mu_2^2 V2) / (1 + V)]             (ii)

in the logarithms of V2 and of W1 = V2 / (q + 1/c), with q = beta V2 V1_hat.  All else is explicit,
(4.5)-(4.11); averages E are sums over the nodes of a table.

Isotropic rows, those of an sRF, have c_e = c, and W1 is V1.  Those of a network have c_e(q), and
C_e(q) on u, the row norms (delta) and zeta; both come with the table (``rows``), and
V1 = V2 / (q + 1/c_e(q)).  Their readout has one loading more, chi on d mu_0 / d c.

One spike and one direction zeta of the target, which is N(0, 1) whatever kappa is, are the usual
case, and written out in ``one_spike``.  Of ``several``, or of inputs that are not isotropic, the
same equations are those of vectors and matrices (19.3).

Others call ``solved``.
"""

from .points import STATUSES, solved, worthwhile
from .responses import RESPONSE_TOLERANCE
from .violation import SMALLEST_ERROR, SMALLEST_OVERLAP

__all__ = [
    "RESPONSE_TOLERANCE",
    "SMALLEST_ERROR",
    "SMALLEST_OVERLAP",
    "STATUSES",
    "solved",
    "worthwhile",
]
