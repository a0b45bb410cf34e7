"""The local field omega, the output for a new input: its law given kappa, and given tau as well.

Given kappa it has mean C and variance S^2, and given tau too it is N(C + P.tau, S^2 - |P|^2):

    C(kappa) = mu_0 . m + sum_b mu_1^b kappa . theta_b,    P = sum_b mu_1^b psi_b,
    S^2 = m_1^T Q_1 m_1 + m_2 . q_2,    V = m_1^T V_1 m_1 + m_2 . V_2.    docs/theory.md 6

Of other inputs than N(0, I) it is given the component as well, psi_b being multiplied with the mean
there in C and with the root in P; S^2 then has |P|^2 for the psi_b psi_b^T in Q_1 (19.3).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array

from .overlaps import Errors, Overlaps
from .responses import Responses

# Least standard deviation of omega, of its mean: densities thinner than that are lost to rounding.
THINNEST_FIELD = 1e-9
UNMOVED = 1e-150  # V where features vanish: prox is the identity, and scores divide by V


class Scores(NamedTuple):
    """E s, -E s', E s^2, (P, N) each, and E tau s (P, N, K'), given kappa.  Eq. (6.1)"""

    mean: Array
    slope: Array
    square: Array
    along: Array

    @property
    def parts(self) -> Array:
        """E s and E tau s side by side, (P, (1 + K') N)."""
        parts = np.concatenate([self.mean[..., None], self.along], axis=2)
        return parts.swapaxes(1, 2).reshape(len(parts), -1)

    def pulled(self, field: "Field") -> Array:
        """E[tau s - P s'] given kappa, (P, N, K')."""
        return np.asarray(self.along + field.pull * self.slope[..., None])


def scores_of_ridge(table: Any, field: "Field") -> Scores:
    """The averages of the square loss, whose score is (y - omega) / (1 + V), on a ``table``, or
    what else has the ``weights``, ``h``, ``g``, ``spread`` and ``noise`` of one."""
    R, error = 1 / (1 + field.response), table.h - field.centre
    power = error**2 + table.spread + table.noise + field.power  # Eq. (4.7)
    power -= 2 * np.einsum("pnk,kn->pn", field.pull, table.g)
    return Scores(error * R, R, power * R**2, R[..., None] * (table.g.T - field.pull))


def errors_of_ridge(table: Any, s: Scores) -> Errors:
    """Test and training error from the averages of ``scores_of_ridge``.  Eq. (4.11)"""
    # s^2 = epsilon / (1 + V)^2
    test = (s.square / s.slope**2) @ table.weights - table.noise
    return Errors(test, s.square @ table.weights)


class Field(NamedTuple):
    """The law of omega at every point and kappa, and what training on a sample there changes.

    Attributes
    ----------
    centre : (P, N)
        C, its mean.  Eq. (4.5)
    pull : (P, N, K')
        P, its slope in tau.  Eq. (6.1)
    power : (P, N)
        S^2, its variance given kappa alone.  Eq. (4.7)
    response : (P, N)
        V.  Eq. (4.1)
    """

    centre: Array
    pull: Array
    power: Array
    response: Array

    def at(self, kappa: Array | slice) -> "Field":
        """At some of the kappa."""
        return Field(*(part[:, kappa] for part in self))

    def entering(self, count: int) -> "Field":
        """Given the first ``count`` of tau alone, those that labels depend on."""
        return self._replace(pull=self.pull[..., :count])

    @property
    def unmoved(self) -> "Field":
        """The same for new samples, which training did not see."""
        return self._replace(response=np.full_like(self.response, UNMOVED))


def field_on(responses: Responses, o: Overlaps, owner: NDArray[np.int64] | None = None) -> Field:
    """C, P, S^2 and V at every point and node of the table of ``responses``; or for one point alone
    at each node, its ``owner`` (N,): arrays (1, N).  Eqs. (4.5), (6.1), (4.7), (4.1)"""
    table = responses.table

    def combined(rows: Array, moments: Array) -> Array:
        """The moments (n, N) with the weights ``rows`` (P, n), or those of all parts."""
        if owner is None:
            return rows @ moments
        every = np.tile(owner, moments.shape[1] // owner.size)
        return np.einsum("nr,rn->n", rows[every], moments)[None]

    readout = np.concatenate([o.m, o.special.reshape(len(o.m), -1)], axis=1)
    output = combined(readout, table.regressors)
    centre, *slopes = np.split(output, 1 + len(table.g), axis=1)
    pull = np.stack(slopes, axis=-1)

    def of_packed(V: Array) -> Array:
        """V . B(kappa)."""
        return responses.at_nodes(V) if owner is None else combined(V, responses.coefficients)

    power = of_packed(responses.pack(o.Q1, o.q2))
    if not table.isotropic:  # Q_1 has psi psi^T, as if all directions were N(0, 1)
        power += (pull**2).sum(axis=-1)
        power -= sum(combined(psi, table.mu1) ** 2 for psi in np.moveaxis(o.psi, -1, 0))
    response = of_packed(responses.pack(o.V1, o.V2))
    # rounding leaves both positive
    power = np.maximum(power, THINNEST_FIELD**2 * centre**2 + 1e-300)
    return Field(centre, pull, power, np.maximum(response, UNMOVED))


def remaining(field: Field) -> Array:
    """S^2 - |P|^2 (P, N), the variance given kappa and tau: at least what rounding leaves of it."""
    rest = field.power - (field.pull**2).sum(axis=-1)
    return np.asarray(np.maximum(rest, 1e-14 * field.power + 1e-300))
