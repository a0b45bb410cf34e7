"""The responses of several groups of neurons.  docs/theory.md 4

Rows of group b have covariance C_b/d, and the groups share the inputs: their responses couple
through the A x A matrix G of (4.3).  The C_b are c_b for an sRF; in general they commute, and
traces over them are averages over L levels c_bl with weights omega_l:

    G_l = V1_hat (1 + D_l V1_hat)^-1,  D_l = diag(beta V2_b c_bl),                (4.3)
    V2_b = pi_b / (Lambda_b + sum_l omega_l c_bl G_l,bb),
    V1 = sum_l omega_l K_l / beta,  K_l = (D_l^-1 + V1_hat)^-1.                    (4.4)

Given the conjugates these are A equations for V2, solved by Newton; V1 and the linear
response follow.
"""

import numpy as np
from numpy.typing import NDArray

from solvers.newton import newton
from solvers.results import Array

from .responses import Responses


class Groups(Responses):
    """Any number of groups."""

    @property
    def levels(self) -> tuple[Array, Array]:
        """c_bl (L, A) and omega_l (L,): one level, of weight 1, for isotropic rows."""
        return self.table.c[None], np.ones(1)

    def from_conjugates(self, V_hat: Array, lam: Array) -> Array:
        """(V1, V2) from their conjugates: V2 by Newton from below, then V1.  Eqs. (4.3)-(4.4)"""
        V1_hat, V2_hat = self.unpack(V_hat)
        Lam = lam[:, None] + V2_hat  # Lambda_b
        pi, (c, omega) = self.table.fractions, self.levels

        def system(V2: Array, rows: NDArray[np.int64]) -> tuple[Array, Array]:
            G = self._coupling(V1_hat[rows], V2)[0]
            trace = np.einsum("lb,plbb->pb", omega[:, None] * c, G)  # tr C_b G_bb / d
            total = Lam[rows] + trace
            jacobian = self._trace_slope(G) * -V2[:, None, :] / total[..., None]
            jacobian[:, range(self.groups), range(self.groups)] += 1
            return np.log(V2 * total / pi), jacobian  # Eq. (4.4)

        smallest = pi / (Lam + self.table.c * np.diagonal(V1_hat, axis1=1, axis2=2))
        # what is not a number stays so, without keeping the other points from their answer
        invalid = ~np.all(np.isfinite(smallest) & (smallest > 0), axis=1)
        smallest[invalid], Lam[invalid], V1_hat[invalid] = 1.0, 1.0, 0.0
        V2 = newton(system, smallest, tol=1e-14).value
        V2[invalid] = np.nan
        K = self._coupling(V1_hat, V2)[2]
        return self.pack(np.einsum("l,plab->pab", omega, K) / self.beta, V2)  # Eq. (4.4)

    def second_moments_at(self, V_hat: Array, lam: Array, X: Array) -> Array:
        """(Q1, q2) at fixed conjugates.  Eq. (4.10)"""
        V = self.from_conjugates(V_hat, lam)
        return self._second_moments(V, V_hat, X[:, None])[:, 0]

    def log_residual(self, V: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """log V - log of its image under (4.2)-(4.4), or their difference where signed.

        NaN, which Newton steps back from, where a trial V1 is not positive semidefinite.
        """
        invalid = np.any(self.shrinkage(V) <= 0, axis=1) | np.any(np.abs(V) > 1e150, axis=1)
        V = np.where(invalid[:, None], np.where(self.signed, 0.0, 1.0), V)
        V_hat = self.conjugates(V, alpha)
        image = self.from_conjugates(V_hat, lam)
        before, after = self.magnitude(V), self.magnitude(image)
        residual = np.where(self.signed, V / before - image / after, np.log(before / after))
        residual[invalid] = np.nan
        # From d image / d V to the coordinates log V and, where signed, V / size.
        slope = self._slope(image, V, V_hat, alpha)
        slope *= before[:, None, :] / after[..., None]
        for ab in np.flatnonzero(self.signed):
            aa, bb = (self.diagonal[group[ab]] for group in self.upper)
            slope[:, ab] -= (image / after)[:, ab, None] / 2 * (slope[:, aa] + slope[:, bb])
        for ab in np.flatnonzero(self.signed):
            half = (V / before)[:, ab, None] / 2 * slope[:, :, ab]
            for group in self.upper:
                slope[:, :, self.diagonal[group[ab]]] += half
        return residual, np.eye(V.shape[1]) - slope

    def analytic_residual(self, U: Array, alpha: Array, lam: Array) -> tuple[Array, Array]:
        """V2 Lambda + diag(V1_hat V1) = pi, which is (4.4) as V2 c G_bb = (V1_hat V1)_bb, and V1
        against its image, without the inner solve of ``from_conjugates``; U = V."""
        V = U
        V_hat = self.conjugates(V, alpha)
        V1, V2 = self.unpack(V)
        V1_hat, V2_hat = self.unpack(V_hat)
        pi, groups, (c, omega) = self.table.fractions, self.groups, self.levels
        K = self._coupling(V1_hat, V2)[2]
        weight = omega[:, None, None] / self.beta
        image = (weight * K).sum(axis=1)
        Lam = lam[:, None] + V2_hat
        trace = (V2 * Lam + np.einsum("pab,pba->pa", V1_hat, V1)) / pi - 1
        size = self.magnitude(V)[:, :-groups]
        residual = np.concatenate([(V1 - image)[:, *self.upper] / size, trace], axis=1)
        # How the residual changes with each unknown j: V_hat by -K_j of ``_conjugate_slope``.
        unknowns = V.shape[1]
        dV1, dV2 = self.unpack(np.eye(unknowns))
        K1, K2 = self.unpack(self._conjugate_slope(V, alpha).reshape(-1, unknowns))
        K1, K2 = K1.reshape(-1, unknowns, groups, groups), K2.reshape(-1, unknowns, groups)
        d_inverse = (dV2 / (self.beta * V2[:, None] * V2[:, None]))[:, :, None] / c
        middle = K1[:, :, None] + d_inverse[..., None] * np.eye(groups)
        d_image = (weight * (K[:, None] @ middle @ K[:, None])).sum(axis=2)
        slope = np.empty((len(V), unknowns, unknowns), residual.dtype)
        slope[:, :-groups] = ((dV1 - d_image)[:, :, *self.upper] / size[:, None]).swapaxes(1, 2)
        d_trace = dV2 * Lam[:, None] - V2[:, None] * K2
        d_trace += np.einsum("pab,jba->pja", V1_hat, dV1)
        d_trace -= np.einsum("pjab,pba->pja", K1, V1)
        slope[:, -groups:] = (d_trace / pi).swapaxes(1, 2)
        return residual, slope

    def second_moments(self, V: Array, alpha: Array, lam: Array, X: Array) -> Array:
        """Q = R (X + K Q): (1 - R K) Q = R X with the two responses R and K."""
        V_hat = self.conjugates(V, alpha)
        size = self.magnitude(V)
        slope = self._slope(V, V, V_hat, alpha) * (size[:, None, :] / size[..., None])
        matrix = np.eye(V.shape[1]) - slope
        source = self._second_moments(V, V_hat, X[:, None])[:, 0] / size
        return size * np.linalg.solve(matrix, source[..., None])[..., 0]

    def _slope(self, image: Array, V: Array, V_hat: Array, alpha: Array) -> Array:
        """R K, the derivative of (4.2)-(4.4) as a map of V, (P, D, D): R = -d image / d V_hat."""
        K = self._conjugate_slope(V, alpha)
        return self._second_moments(image, V_hat, K).transpose(0, 2, 1)

    def _conjugate_slope(self, V: Array, alpha: Array) -> Array:
        """K = -d V_hat / d V of (4.2), (P, D, D): row j holds how all V_hat change with V_j."""
        W = self.shrinkage(V, self.workspace(V)) ** 2
        W = W * (alpha[:, None] / self.beta * self.table.weights)
        return np.asarray((self.coefficients * W[:, None]) @ self.products.T)

    def _coupling(self, V1_hat: Array, V2: Array) -> tuple[Array, Array, Array]:
        """G_l, P_l = (1 + V1_hat D_l)^-1 and K_l, (P, L, A, A) each.  Eq. (4.3)"""
        D = self.beta * V2[:, None] * self.levels[0]
        V1_hat = V1_hat[:, None]
        P = np.linalg.inv(np.eye(self.groups) + V1_hat * D[:, :, None, :])
        return P @ V1_hat, P, D[..., None] * P

    def _trace_slope(self, G: Array) -> Array:
        """-d (tr C_b G_bb / d) / d V2_a, (P, A, A), from dG_bb/dD_a = -G_ab^2 at every level."""
        c, omega = self.levels
        weights = self.beta * omega[:, None, None] * c[:, :, None] * c[:, None, :]
        return np.einsum("lba,plba->pba", weights, G * G)

    def _second_moments(self, V: Array, V_hat: Array, X: Array) -> Array:
        """Eq. (4.10) for several sources X (P, S, D) at each point."""
        shape = X.shape
        _, V2 = self.unpack(V)
        V1_hat, _ = self.unpack(V_hat)
        X1, X2 = self.unpack(X.reshape(-1, shape[-1]))
        X1 = X1.reshape(*shape[:2], 1, self.groups, self.groups)
        X2 = X2.reshape(*shape[:2], self.groups)
        pi, beta, (c, omega) = self.table.fractions, self.beta, self.levels
        G, P, K = self._coupling(V1_hat, V2)
        P = P[:, None]
        # diagonals of P X1 P'
        D = np.einsum("lb,pslb->psb", omega[:, None] * c, ((P @ X1) * P).sum(axis=-1))
        inner = np.eye(self.groups) - (V2**2 / pi)[..., None] * self._trace_slope(G)
        source = (V2**2 / pi)[:, None] * (X2 + D)
        q2 = np.linalg.solve(inner, source.transpose(0, 2, 1)).transpose(0, 2, 1)
        # -dK = K (X1 + d(D^-1)) K
        d_inverse = (q2 / (beta * V2[:, None] ** 2))[:, :, None] / c
        middle = X1 + d_inverse[..., None] * np.eye(self.groups)
        K = K[:, None]
        Q1 = (K @ middle @ (omega[:, None, None] * K)).sum(axis=2) / beta
        flat = self.pack(Q1.reshape(-1, self.groups, self.groups), q2.reshape(-1, self.groups))
        return flat.reshape(shape)
