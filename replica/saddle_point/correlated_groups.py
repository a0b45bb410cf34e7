"""The bulk of the network itself with several readout values.  docs/theory.md 15

The equations of ``groups`` with the levels of B; and overlaps along u, the rest zeta of w_* and
the row norms from

    M' = (blockdiag(C_b^-1 / tau_b) + Vh1 x (1 - u u^T))^-1,  tau_b = beta V2_b,   (15.6)

on the extended covariances [[C_b, k_b], [k_b^T, v_b]].  With the l-th level's K, P, G of
(4.3)-(4.4), w_jk its weight between two vectors, and k_b = sum_j k_bj |j>, M~ (Vh1 also along
u) has the blocks

    dd: sum w_jk K,  dn: sum w_jk P^T tau k_k,  nn: tau v - tau k_j (sum w_jk G) k_k tau,

of which M' is the update M~ + M~_.u N M~_u., N = Vh1 (1 - M~_uu Vh1)^-1.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from solvers.results import Array

from .group_covariance import GroupCovariance
from .groups import Groups
from .responses import SignalSources, Susceptibility


class GroupBlock(NamedTuple):
    """M~ and M' on (u, norms, zeta) by groups, (P, 3A, 3A), with what made them."""

    tilde: Array
    freed: Array
    N: Array
    G: Array
    P: Array
    K: Array


class CorrelatedGroups(Groups):
    """Any number of groups with C_b = 1 + a_b^2 b B."""

    @property
    def covariance(self) -> GroupCovariance:
        """Of the groups' rows."""
        assert isinstance(self.table.covariance, GroupCovariance)
        return self.table.covariance

    @property
    def levels(self) -> tuple[Array, Array]:
        """c_bl (L, A) and omega_l (L,)."""
        return self.covariance.levels, self.covariance.weights

    @cached_property
    def kept(self) -> tuple[Array, Array]:
        """Where theta, groups first, and psi stand among (u, norms, zeta) by groups."""
        A = self.groups
        order = np.arange(3 * A).reshape(3, A)
        return order[: self.table.loadings.shape[1]].T.ravel(), order[2]

    def susceptibility(self, V: Array, V_hat: Array, alpha: Array) -> Susceptibility:
        """Eq. (15.7)"""
        along, rest = self.kept
        M = (alpha / self.beta)[:, None, None] * self._block(V, V_hat).freed
        return Susceptibility.of(M, along, rest)

    def signal_sources(
        self, V: Array, V_hat: Array, alpha: Array, theta_hat: Array, p_hat: Array
    ) -> SignalSources:
        """The terms of (15.8) in nu = (theta_hat, p_hat): through V2_b, and directly in Q_1."""
        of, A = self.covariance, self.groups
        block = self._block(V, V_hat)
        nu = np.zeros((len(V), 3 * A))
        along, rest = self.kept
        nu[:, along], nu[:, rest] = theta_hat.reshape(len(V), -1), p_hat[:, :, 0]
        overlap = (block.freed @ nu[..., None])[:, :A, 0]  # along u
        # what acts on the rows: nu, and the release of u
        force = np.zeros((3, len(V), A))
        force[0] = nu[:, :A] + (block.N @ (block.tilde @ nu[..., None])[:, :A])[..., 0]
        force[1] = nu[:, 2 * A :]
        norms = nu[:, A : 2 * A]
        tau = self.beta * self.unpack(V)[1]
        pulled = (tau * norms) * of.k.T[:, None]  # tau k_j f_n, (3, P, A)
        rows = np.einsum("plab,jpb->jpla", block.K, force)
        rows += np.einsum("plba,jpb->jpla", block.P, pulled)
        Q1 = np.einsum("ljk,jpla,kplb->pab", of.pairs, rows, rows)
        Q1 -= overlap[:, :, None] * overlap[:, None, :]
        # z = (1 + Vh1 P Sigma)^-1 f: tau_b pulls on z_b C_b z_b
        z = np.einsum("plab,jpb->jpla", block.P, force)
        z -= np.einsum("plab,jpb->jpla", block.G, pulled)
        X2 = np.einsum("la,ljk,jpla,kpla->pa", of.levels, of.pairs, z, z)
        X2 += 2 * norms * np.einsum("aj,ljk,kpla->pa", of.k, of.pairs, z) + of.v * norms**2
        scale = ((alpha / self.beta) ** 2)[:, None]
        return SignalSources(
            np.zeros((len(V), A, A)), scale * self.beta * X2, scale[..., None] * Q1
        )

    def _block(self, V: Array, V_hat: Array) -> GroupBlock:
        of, A = self.covariance, self.groups
        V1_hat, V2 = self.unpack(V_hat)[0], self.unpack(V)[1]
        G, P, K = self._coupling(V1_hat, V2)
        tau = self.beta * V2
        back = P.swapaxes(-1, -2)
        dd = np.einsum("ljk,plab->pjkab", of.pairs[:, :2, :2], K)
        dn = np.einsum("ljk,plab,bk->pjab", of.pairs[:, :2], back, of.k) * tau[:, None, None]
        nn = -np.einsum("aj,ljk,plab,bk->pab", of.k, of.pairs, G, of.k)
        nn *= tau[:, :, None] * tau[:, None, :]
        nn += (tau * of.v)[:, :, None] * np.eye(A)
        M = np.empty((len(V), 3, A, 3, A))
        for j, row in ((0, 0), (1, 2)):
            for k, column in ((0, 0), (1, 2)):
                M[:, row, :, column] = dd[:, j, k]
            M[:, row, :, 1] = dn[:, j]
            M[:, 1, :, row] = dn[:, j].swapaxes(-1, -2)
        M[:, 1, :, 1] = nn
        tilde = M.reshape(len(V), 3 * A, 3 * A)
        unresolved = np.einsum("l,plab->pab", of.pairs[:, 0, 0], back)  # 1 - M~_uu Vh1
        N = V1_hat @ np.linalg.inv(unresolved)
        return GroupBlock(tilde, tilde + tilde[:, :, :A] @ N @ tilde[:, :A], N, G, P, K)
