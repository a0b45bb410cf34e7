"""Compiled responses of one group of neurons, (4.1)-(4.4).  docs/theory.md 4, 5, 16

(V1, V2) solve (4.1)-(4.4), (16.6) by two steps of (4.2) -> (5.3), then by Newton's method on the
two equations without cancellation that ``isotropic`` states,

    lambda V2     = (1 - alpha/beta) + (alpha/beta) E[1 / (1 + V)]               (i)
    V1 / (c_e V2) = (1 - alpha) + alpha E[(1 + mu_2^2 V2) / (1 + V)]             (ii)

in the logarithms of V2 and of W1 = V2 / (q + 1/c), with q = beta V2 V1_hat.  Averages E are sums
over the nodes of a table.

Isotropic rows, as of an sRF, have c_e = c, and W1 is V1.  Rows of a network have c_e(q), tabulated
in the table (``rows``), and V1 = V2 / (q + 1/c_e(q)).

The signal, the second moments and the errors (4.5)-(4.11) follow without iteration, in ``ridge``.
"""

from .points import (
    CALLS_BEFORE_CORE,
    IMAGE,
    NEWTON,
    POINTS_PER_CALL,
    SECOND_MOMENTS,
    SOLVE,
    STATUSES,
    kernel,
    run,
    solved,
)
from .responses import RESPONSE_TOLERANCE

__all__ = [
    "CALLS_BEFORE_CORE",
    "IMAGE",
    "NEWTON",
    "POINTS_PER_CALL",
    "RESPONSE_TOLERANCE",
    "SECOND_MOMENTS",
    "SOLVE",
    "STATUSES",
    "kernel",
    "run",
    "solved",
]
