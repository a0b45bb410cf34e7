"""Overlaps, conjugates, scores, and the local field (centre, variance, response), over points.

P points (pairs alpha, lambda), A groups of neurons, K spikes, K' directions of the target away from
them.  Names follow docs/theory.md 4.

The local field omega is the output for a new input.  Given kappa it has mean C and variance S^2.
Given kappa and tau it is N(C + P.tau, S^2 - |P|^2):

    C(kappa) = mu_0 . m + sum_b mu_1^b kappa . theta_b,    P = sum_b mu_1^b psi_b,
    S^2 = m_1^T Q_1 m_1 + m_2 . q_2,    V = m_1^T V_1 m_1 + m_2 . V_2.    docs/theory.md 6

For other inputs than N(0, I) the component of the input is given, too.  psi_b is then multiplied
with the component's mean in C and with its root in P.  In S^2, |P|^2 replaces the psi_b psi_b^T of
Q_1 (19.3).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array

from .responses import Responses


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
    overlap_shapes = (A, A), (A,), (m,), (A, theta), (A, psi), (A, A), (A,)
    conjugate_shapes = (A, A), (A,), (m,), (A, theta + psi), (A, A), (A,)
    overlaps = Overlaps(*(np.full((points, *shape), np.nan) for shape in overlap_shapes))
    return overlaps, Conjugates(*(np.full((points, *shape), np.nan) for shape in conjugate_shapes))


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


# Smallest standard deviation of omega over its mean: thinner densities are lost to rounding.
THINNEST_FIELD = 1e-9
SMALLEST_RESPONSE = 1e-150  # of V, by which scores divide; the proximal map is then the identity


class Scores(NamedTuple):
    """Averages of the score given kappa: E s, -E s', E s^2, (P, N) each, and E tau s, (P, N, K').
    Eq. (6.1)"""

    mean: Array
    slope: Array
    square: Array
    along: Array

    @property
    def flat(self) -> Array:
        """E s and E tau s in one row, (P, (1 + K') N), as in ``Table.target_parts``."""
        score_averages = np.concatenate([self.mean[..., None], self.along], axis=2)
        return score_averages.swapaxes(1, 2).reshape(len(score_averages), -1)

    def p_hat_term(self, field: "Field") -> Array:
        """E[tau s - P s'] given kappa, (P, N, K'), of which p_hat is an average.  Eq. (6.2)"""
        return np.asarray(self.along + field.tau_slope * self.slope[..., None])


def ridge_scores(table: Any, field: "Field") -> Scores:
    """Averages of the score (y - omega) / (1 + V) of the square loss.

    The ``table`` is a ``Table`` or an object with its ``weights``, ``h``, ``g``, ``spread`` and
    ``noise``.
    """
    R, error = 1 / (1 + field.response), table.h - field.centre
    squared_error = error * error + (table.spread + table.noise)  # Eq. (4.7)
    squared_error += field.variance - 2 * np.vecdot(field.tau_slope, table.g.T)
    return Scores(error * R, R, squared_error * R**2, R[..., None] * (table.g.T - field.tau_slope))


def ridge_errors(table: Any, scores: Scores) -> MeanSquaredErrors:
    """Test and training error of ridge regression, from ``ridge_scores``.  Eq. (4.11)"""
    # E s^2 = epsilon / (1 + V)^2
    test_error = (scores.square / (scores.slope * scores.slope)) @ table.weights - table.noise
    return MeanSquaredErrors(test_error, scores.square @ table.weights)


class Field(NamedTuple):
    """Law of omega at every point and kappa, and its response to training on a sample there.

    Attributes
    ----------
    centre : (P, N)
        Mean C.  Eq. (4.5)
    tau_slope : (P, N, K')
        Slope P of the mean in tau.  Eq. (6.1)
    variance : (P, N)
        Variance S^2 given kappa alone.  Eq. (4.7)
    response : (P, N)
        Response V.  Eq. (4.1)
    """

    centre: Array
    tau_slope: Array
    variance: Array
    response: Array

    def select(self, kappa: Array | slice) -> "Field":
        """Field at some of the kappa."""
        return Field(*(field_values[:, kappa] for field_values in self))

    def project_tau(self, count: int) -> "Field":
        """Field given the first ``count`` components of tau alone, on which labels depend."""
        return self._replace(tau_slope=self.tau_slope[..., :count])

    @property
    def for_new_samples(self) -> "Field":
        """Field for new samples, which were not in the training set: its response is 0."""
        return self._replace(response=np.full_like(self.response, SMALLEST_RESPONSE))


def field_at_nodes(
    responses: Responses, o: Overlaps, owner: NDArray[np.int64] | None = None
) -> Field:
    """Local field at every point and node of the table of ``responses``.

    With an ``owner`` (N,), node j belongs to the point owner[j] alone, and arrays are (1, N).
    Eqs. (4.5), (6.1), (4.7), (4.1)
    """
    table = responses.table

    def combine(overlap_rows: Array, moments: Array) -> Array:
        """Linear combinations of ``moments`` (n, N) with coefficients ``overlap_rows`` (P, n): (P,
        N), or (1, N) where each node has an ``owner``: there with that point's coefficients
        alone."""
        if owner is None:
            return overlap_rows @ moments
        owner_of_part = np.tile(owner, moments.shape[1] // owner.size)
        return np.einsum("nr,rn->n", overlap_rows[owner_of_part], moments)[None]

    readout_overlaps = np.concatenate([o.m, o.special.reshape(len(o.m), -1)], axis=1)
    field_output = combine(readout_overlaps, table.regressors)
    field_output = field_output.reshape(len(field_output), 1 + len(table.g), -1)
    centre, tau_slope = field_output[:, 0], field_output[:, 1:].swapaxes(1, 2)

    def quadratic_field(V: Array) -> Array:
        """Quadratic form V . B(kappa) at every node, of the packed matrix and vector V.  Eq.
        (4.1)"""
        return responses.at_nodes(V) if owner is None else combine(V, table.response_coefficients)

    field_variance = quadratic_field(responses.pack(o.Q1, o.q2))
    if not table.isotropic:  # Q_1 contains psi psi^T, which holds for directions N(0, 1)
        field_variance += (tau_slope**2).sum(axis=-1)
        field_variance -= sum(combine(psi, table.mu1) ** 2 for psi in np.moveaxis(o.psi, -1, 0))
    field_response = quadratic_field(responses.pack(o.V1, o.V2))
    # both are positive, even after rounding
    field_variance = np.maximum(field_variance, THINNEST_FIELD**2 * centre**2 + 1e-300)
    return Field(centre, tau_slope, field_variance, np.maximum(field_response, SMALLEST_RESPONSE))


def variance_given_tau(field: Field) -> Array:
    """Variance S^2 - |P|^2 of omega given kappa and tau, (P, N), bounded below by its rounding."""
    field_variance = field.variance - (field.tau_slope**2).sum(axis=-1)
    return np.asarray(np.maximum(field_variance, 1e-14 * field.variance + 1e-300))
