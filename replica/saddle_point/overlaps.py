"""Order parameters and their conjugates, as arrays over points.

P points (pairs alpha, lambda), A groups of neurons, K spikes, K' directions of the target away from
them.  Names follow docs/theory.md 4.
"""

from typing import NamedTuple

import numpy as np

from solvers.results import Array


class Overlaps(NamedTuple):
    """Overlaps of the trained readout, and its responses.  docs/theory.md 4

    Attributes
    ----------
    V1 : (P, A, A)
        Response (posterior covariance) of the readout-weighted bulk.  Eq. (4.4)
    V2 : (P, A)
        Response of the readout.  Eq. (4.4)
    m : (P, A) or (P, A + 1)
        Sum of the readout in each group over sqrt(p); last, the output intercept, if trained.
        Eq. (4.5)
    theta : (P, A, K) or (P, A, K + 1)
        Overlap of the readout-weighted bulk with the spikes; last, in a network, the overlap chi
        with the row norms.  Eqs. (4.5), (16.10)
    psi : (P, A, K')
        Overlap of the readout-weighted bulk with the other target directions.  Eq. (4.6)
    Q1 : (P, A, A)
        Second moment of the readout-weighted bulk.  Eq. (4.9)
    q2 : (P, A)
        Squared norm of the readout in each group over p.  Eq. (4.9)
    """

    V1: Array
    V2: Array
    m: Array
    theta: Array
    psi: Array
    Q1: Array
    q2: Array

    @property
    def special(self) -> Array:
        """Overlaps with all special directions: theta, then psi, (P, A, K + K')."""
        return np.concatenate([self.theta, self.psi], axis=-1)


class Conjugates(NamedTuple):
    """Conjugates of the overlaps (hatted in the papers), which contain the data.

    Attributes
    ----------
    V1, V2 : (P, A, A), (P, A)
        Conjugates of V1 and V2.  Eq. (4.2)
    m : (P, A) or (P, A + 1)
        Conjugate of m; 0 in the limit of infinite dimension.
    special : (P, A, K + K')
        Conjugates of theta, then psi.  Eqs. (4.5), (4.13)
    X1, X2 : (P, A, A), (P, A)
        Conjugates of Q1 - psi psi^T and of q2: (4.8) in the form (4.13), in which X1 has no p_hat.
    """

    V1: Array
    V2: Array
    m: Array
    special: Array
    X1: Array
    X2: Array


def unknown_overlaps(
    points: int, groups: int = 1, offsets: int = 1, theta: int = 1, psi: int = 1
) -> tuple[Overlaps, Conjugates]:
    """NaN overlaps and conjugates of P ``points``, of A ``groups`` and ``offsets`` m, with sizes
    ``theta`` and ``psi`` of each group's overlaps of these names."""
    A, m = groups, offsets
    shapes = (A, A), (A,), (m,), (A, theta), (A, psi), (A, A), (A,)
    conjugate = (A, A), (A,), (m,), (A, theta + psi), (A, A), (A,)
    overlaps = Overlaps(*(np.full((points, *shape), np.nan) for shape in shapes))
    return overlaps, Conjugates(*(np.full((points, *shape), np.nan) for shape in conjugate))


class MeanSquaredErrors(NamedTuple):
    """Mean squared errors at P points.  Eq. (4.11)

    Attributes
    ----------
    test : (P,)
        On new samples, against the noiseless target.
    train : (P,)
        On the training samples, whose labels have noise.
    """

    test: Array
    train: Array
