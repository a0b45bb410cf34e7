"""The order parameters and their conjugates, as arrays over points.

P points (pairs alpha, lambda), A groups of neurons, K spikes, K' remaining target
directions.  Names follow docs/theory.md 4.
"""

from typing import NamedTuple

from solvers.results import Array


class Overlaps(NamedTuple):
    """What the trained readout is correlated with.

    Attributes
    ----------
    V1 : (P, A, A)
        Response (posterior covariance) of the readout-weighted bulk.
    V2 : (P, A)
        Response of the readout.
    m : (P, A) or (P, A + 1)
        Sum of the readout in each group over sqrt(p); last, the output intercept, where one
        is trained.
    theta : (P, A, K)
        Overlap of the readout-weighted bulk with the spikes.
    psi : (P, A, K')
        The same with the rest of the target directions.
    Q1 : (P, A, A)
        Second moment of the readout-weighted bulk.
    q2 : (P, A)
        Squared norm of the readout in each group over p.
    """

    V1: Array
    V2: Array
    m: Array
    theta: Array
    psi: Array
    Q1: Array
    q2: Array


class Conjugates(NamedTuple):
    """What the data impose: the conjugate of each overlap (hatted in the papers).

    Attributes
    ----------
    V1, V2, m, theta, p : arrays
        Shapes as of the overlaps; p is conjugate to psi, and m vanishes in the limit.
    X1, X2 : (P, A, A), (P, A)
        Conjugate to Q1 and q2.  Eq. (4.8)
    """

    V1: Array
    V2: Array
    m: Array
    theta: Array
    p: Array
    X1: Array
    X2: Array


class Errors(NamedTuple):
    """test and train: (P,) each.  Eq. (4.11)"""

    test: Array
    train: Array
